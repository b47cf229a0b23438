"""Python environments of other versions, made below build/venvs/ when a test first needs them.

tests/versions/NAME.txt is the complete pinned list of one; its first line names the Python:
"# Python 3.12: what it is". An environment is kept until its list changes.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import debian_pythons
import jobs
import packages
import pytest

LISTS = jobs.ROOT / "tests" / "versions"
VENVS = jobs.ROOT / "build" / "venvs"
PIP = "pip==26.3"  # required by the newest Python


def pythons():
    """The versions that crema was tested with, the oldest first."""
    return [f"3.{minor}" for minor in re.findall(r"^PYTHON\((\d+),", (jobs.ROOT / "contract" / "pythons.def").read_text(), re.M)]


def each():
    """The versions for a test of every version: the newest; in CI the oldest and a free-threaded one, too; all if all cells are requested."""
    if os.environ.get("CREMA_ALL_CELLS"):
        found = pythons()
    elif os.environ.get("CREMA_FURTHER_CELLS"):
        found = [pythons()[0], pythons()[-1]]
    else:
        found = [pythons()[-1]]
    return found + debian_pythons.FREE_THREADED


def interpreter(version):
    """A Python of that version that really starts."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}.*/bin/python3"))]
    for name in filter(None, names):
        if subprocess.run([name, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return name
    return debian_pythons.interpreter(version)


def empty(python, place):
    """A venv that has pip; Debian's own Pythons come without it."""
    done = subprocess.run([python, "-m", "venv", "--clear", place], capture_output=True)
    if done.returncode == 0:
        return
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", place], check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check", "--no-deps",
                    "--target", packages_of(place), PIP], check=True, capture_output=True)


def packages_of(place):
    return next(place.glob("lib/python3*/site-packages"))


def make(place, version, wanted, mark="ready\n", install=None):
    """A venv of that Python with these packages; returns its bin directory. `mark` identifies the request. Without a
    version: of this Python, with its packages available. Made once, by one process at a time."""
    with packages.alone(f"venv-{place.name}"):
        return make_alone(place, version, wanted, mark, install)


def make_alone(place, version, wanted, mark, install):
    ready = place / "ready"
    if not ready.exists() or ready.read_text() != mark:
        python = interpreter(version) if version else sys.executable
        if python is None:
            pytest.skip("no such Python on this machine")
        empty(python, place)
        if not version:
            packages_of(place).joinpath("base.pth").write_text(sysconfig.get_path("purelib") + "\n")
        import pip_install  # here: it is in scripts/, which workers do not have

        pip_install.keep_bytecode(packages_of(place))
        (install or pip_install.install)(place / "bin" / "python", wanted)
        ready.write_text(mark)
    return place / "bin"


def beside(name, pins):
    """The bin directory of this Python with a pinned list in addition to all that is here; made again when the list changes."""
    return make(VENVS / name, "", ["--no-deps", "-r", pins], pins.read_text())


def python_of(name):
    """The Python version that a list names."""
    return (LISTS / f"{name}.txt").read_text().split(":", 1)[0].removeprefix("# Python ")


def digest(name):
    return hashlib.sha256((LISTS / f"{name}.txt").read_bytes()).hexdigest() + "\n"


def is_made(name):
    ready = VENVS / name / "ready"
    return ready.exists() and ready.read_text() == digest(name)


def environment(name):
    """The bin directory of the environment of tests/versions/NAME.txt."""
    return make(VENVS / name, python_of(name), ["--no-deps", "-r", LISTS / f"{name}.txt"], digest(name))
