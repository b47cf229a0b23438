"""CPythons of Debian's next release that this machine lacks, unpacked below build/pythons/ and linked to the libraries
that come with them (packages.py). Nothing is installed and no privileges are needed: they start as any other Python does,
and create environments. Without a Debian mirror there are none.

A free-threaded one (3.14t) is no package of Debian's: it is compiled from the sources of the package, which takes
minutes. scripts/test does so beside the first tests, and those that need it wait.

    python tests/integration/debian_pythons.py 3.15     prints the interpreter's path
"""

import functools
import os
import shutil
import subprocess
import sys

import cells
import packages

PLACE = packages.BUILD / "pythons"
VERSIONS = ["3.14", "3.15"]  # Debian packages the test suites of these, too
FREE_THREADED = ["3.14t"] if cells.FURTHER else []
PATCHES = range(20, -1, -1)  # a mirror keeps the sources of few of these


def unpack(version, place):
    """True if it was unpacked and starts."""
    if not packages.of_release("sid", place, [f"python{version}", f"libpython{version}-testsuite"], [f"python{version}-minimal"]):
        return False
    return subprocess.run([place / "usr" / "bin" / f"python{version}", "-c", "import ssl, sqlite3, venv"]).returncode == 0


def sources(version, place):
    """The newest sources of that Python that the mirror has, unpacked; None: it has none."""
    mirror = packages.mirror()
    for patch in PATCHES if mirror else ():
        file = f"python{version}_{version}.{patch}.orig.tar.xz"
        done = subprocess.run(["curl", "-sfL", "-o", place / file, f"{mirror.rstrip('/')}/pool/main/p/python{version}/{file}"])
        if done.returncode == 0:
            subprocess.run(["tar", "xf", file], cwd=place, check=True)
            return next(place.glob("Python-*"))
    return None


def built(version, place):
    """True if it was compiled and starts. What could not be compiled is not tried again: others wait for the first try."""
    failed = PLACE / f"{version}.failed"
    if failed.exists():
        return False
    try:
        made = build(version, place)
    except (OSError, subprocess.SubprocessError):
        made = False
    if not made:
        failed.parent.mkdir(parents=True, exist_ok=True)
        failed.touch()
    return made


def build(version, place):
    """True if it was compiled and starts."""
    (place / "usr").mkdir(parents=True)
    tree = sources(version.rstrip("t"), place)
    if not tree:
        return False
    # -h: compileall prints its help. Byte code is made when a module is imported, and not three times for all modules.
    for command in (["./configure", "-q", "--disable-gil", "--without-ensurepip", "OPT=-DNDEBUG -O1", f"--prefix={place}/usr"],
                    ["make", "-s", f"-j{len(os.sched_getaffinity(0))}"], ["make", "-s", "install", "COMPILEALL_OPTS=-h"]):
        if subprocess.run(command, cwd=tree, capture_output=True).returncode:
            return False
    shutil.rmtree(tree)
    return subprocess.run([place / "usr" / "bin" / f"python{version}", "-c", "import bz2, ctypes, lzma, sqlite3, ssl, venv, zlib"]).returncode == 0


@functools.cache
def interpreter(version):
    """None if this machine cannot have it."""
    if version not in VERSIONS + FREE_THREADED:
        return None
    place = packages.made_once(f"pythons/{version}", functools.partial(built if version in FREE_THREADED else unpack, version))
    return place and str(place / "usr" / "bin" / f"python{version}")


if __name__ == "__main__":
    (PLACE / f"{sys.argv[1]}.failed").unlink(missing_ok=True)
    found = interpreter(sys.argv[1])
    print(found or f"no Python {sys.argv[1]} can be had here")
    sys.exit(not found)
