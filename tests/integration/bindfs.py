# SPDX-License-Identifier: BSD-3-Clause
"""A FUSE file system from Debian's packages, unpacked below build/: nothing is installed."""

import contextlib
import os
import shutil
import subprocess
import time

import packages

PACKAGES = ["bindfs", "libfuse2"]


def unpacked():
    """(program, environment)"""
    found = shutil.which("bindfs")
    if found:
        return found, {}
    place = packages.unpacked("bindfs", *PACKAGES)
    (library,) = {path.parent for path in place.rglob("libfuse.so.2")}
    return place / "usr/bin/bindfs", {"LD_LIBRARY_PATH": str(library)}


@contextlib.contextmanager
def mounted(lower, mount, *options):
    """lower seen through FUSE at mount; OSError if this machine does not allow that."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise OSError("/dev/fuse cannot be opened")
    try:
        program, env = unpacked()
    except (subprocess.CalledProcessError, OSError) as why:
        raise OSError(f"bindfs cannot be had: {why}") from why
    done = subprocess.run([program, *options, lower, mount], env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"bindfs: {done.stderr.strip().splitlines()[-1:]}")
    try:
        yield
    finally:
        # Files that were just closed there are released after a short while.
        for last in [False] * 50 + [True]:
            if subprocess.run(["umount", mount], check=last, capture_output=not last).returncode == 0:
                break
            time.sleep(0.1)
