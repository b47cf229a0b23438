"""What tests need to know about their machine."""

import os


def stolen():
    """CPU seconds that a hypervisor took from this host: threads lose them without any record."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
