"""What a test needs to know of the machine it runs on."""

import os


def stolen():
    """Seconds that a hypervisor took from this host's CPUs: threads lose them and nothing shows which."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
