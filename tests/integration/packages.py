"""Debian packages unpacked below build/, without installing them: an installed server would start as a
service of the machine. Unpacked once, by one process at a time."""

import contextlib
import fcntl
import shutil
import signal
import subprocess

import jobs

BUILD = jobs.ROOT / "build"


@contextlib.contextmanager
def alone(name):
    """Holds a lock: only one process of this checkout runs this block for `name`. What it installs, or waits for, is not
    part of the time in which a test hangs."""
    BUILD.mkdir(exist_ok=True)
    left = signal.alarm(0)
    try:
        with open(BUILD / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    finally:
        signal.alarm(left)


def unpacked(folder, *packages):
    """build/FOLDER with the files of these packages, unpacked in this order."""
    place = BUILD / folder
    with alone(folder):
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            download = ["apt-get", "download", *packages]
            if subprocess.run(download, cwd=place, capture_output=True).returncode:
                subprocess.run(["apt-get", "update"], capture_output=True)  # the lists may be old
                subprocess.run(download, cwd=place, check=True, capture_output=True)
            for name in packages:
                (file,) = place.glob(f"{name}_*.deb")
                subprocess.run(["dpkg", "-x", file, place], check=True)
            (place / "ready").touch()
    return place
