# SPDX-License-Identifier: BSD-3-Clause
"""A FUSE file system out of Debian's packages, unpacked below build/: nothing is installed."""

import contextlib
import os
import shutil
import subprocess

import cluster

PACKAGES = ["bindfs", "libfuse2"]


def unpacked():
    """(program, environment)"""
    found = shutil.which("bindfs")
    if found:
        return found, {}
    place = cluster.BUILD / "bindfs"
    program = place / "usr" / "bin" / "bindfs"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        download = ["apt-get", "download", *PACKAGES]
        if subprocess.run(download, cwd=place, capture_output=True).returncode:
            subprocess.run(["apt-get", "update"], capture_output=True)  # the lists may be old
            subprocess.run(download, cwd=place, check=True, capture_output=True)
        for package in place.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, place], check=True)
    (library,) = {path.parent for path in place.rglob("libfuse.so.2")}
    return program, {"LD_LIBRARY_PATH": str(library)}


@contextlib.contextmanager
def mounted(lower, mount):
    """lower seen through FUSE at mount; OSError where this machine does not allow that."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise OSError("/dev/fuse cannot be opened")
    try:
        program, env = unpacked()
    except (subprocess.CalledProcessError, OSError) as why:
        raise OSError(f"bindfs cannot be had: {why}") from why
    done = subprocess.run([program, lower, mount], env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"bindfs: {done.stderr.strip().splitlines()[-1:]}")
    try:
        yield
    finally:
        subprocess.run(["umount", mount], check=True)
