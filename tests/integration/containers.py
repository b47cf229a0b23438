"""Real containers (systemd-nspawn): own processes, home, /tmp and shared memory, on the machine's network. The files are this
machine's without other mounts; what a container writes there is gone at its end."""

import contextlib
import os
import subprocess

import packages
import pytest

HOME = "/home/inside"  # each container has its own


@contextlib.contextmanager
def image(place):
    """The folder `place` as the root of containers."""
    if os.geteuid():
        pytest.skip("a throw-away system needs root")
    place.mkdir()
    subprocess.run(["mount", "--bind", "/", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def bind(path, inside=None):
    """The option that shows a file or folder inside, read-only."""
    return "--bind-ro=" + ":".join(str(p).replace(":", r"\:") for p in (path, *filter(None, [inside])))


def command(root, *options):
    """What starts a container, without its --machine= and its command. It ends as its first process does; SIGTERM is passed on
    to that. Read-only: several share the root, each writes to its own layer."""
    nspawn = packages.unpacked("nspawn", "systemd-container") / "usr/bin/systemd-nspawn"
    return [str(word) for word in (nspawn, "--quiet", "--register=no", "--keep-unit", "--console=pipe", f"--directory={root}", "--read-only",
                                   "--volatile=overlay", "--kill-signal=SIGTERM", "--tmpfs=/tmp", f"--tmpfs={HOME}", f"--setenv=HOME={HOME}",
                                   *options)]


def apptainer():
    """The command, from Debian's unstable: it finds its other files from its own place, where Debian's are elsewhere."""
    def make(place):
        if not packages.of_release("sid", place, ["apptainer"], ["apptainer"]):
            return False
        (place / "usr/etc").symlink_to("../etc")
        (place / "usr/lib/var").symlink_to("../../var")
        (place / "var/lib/apptainer/mnt/session").mkdir(parents=True, exist_ok=True)
        return True

    return packages.made_or_skip("apptainer", make) / "usr/bin/apptainer"
