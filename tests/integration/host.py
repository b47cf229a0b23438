"""What tests need to know about their machine."""

import os
import subprocess

import pytest


def stolen():
    """CPU seconds that a hypervisor took from this host: threads lose them without any record."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def namespaces(*kinds):
    """The unshare command for these namespaces; skips the test if this machine does not allow them."""
    words = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), *kinds]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces of our own on this machine")
    return words
