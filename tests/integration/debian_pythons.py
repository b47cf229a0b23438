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

import packages

PLACE = packages.BUILD / "pythons"
VERSIONS = ["3.14", "3.15"]  # Debian packages the test suites of these, too
FREE_THREADED = ["3.14t"] if {"CREMA_FURTHER_CELLS", "CREMA_ALL_CELLS"} & set(os.environ) else []
PATCHES = range(20, -1, -1)  # a mirror keeps the sources of few of these


def unpack(version, place):
    """True if it was unpacked and starts."""
    if not packages.of_release("sid", place, [f"python{version}", f"libpython{version}-testsuite"], [f"python{version}-minimal"]):
        return False
    return subprocess.run([place / "usr" / "bin" / f"python{version}", "-c", "import ssl, sqlite3, venv"]).returncode == 0


def sources(version, place):
    """The newest sources of that Python that the mirror has, unpacked; None: it has none."""
    for patch in PATCHES:
        file = f"python{version}_{version}.{patch}.orig.tar.xz"
        done = subprocess.run(["curl", "-sfL", "-o", place / file, f"{packages.mirror().rstrip('/')}/pool/main/p/python{version}/{file}"])
        if done.returncode == 0:
            subprocess.run(["tar", "xf", file], cwd=place, check=True)
            return next(place.glob("Python-*"))
    return None


def build(version, place):
    """True if it was compiled and starts."""
    (place / "usr").mkdir(parents=True)
    tree = sources(version.rstrip("t"), place) if packages.mirror() else None
    if not tree:
        return False
    # Without what no test of ours imports; byte code is made when a module is imported, and not three times for all modules.
    options = ["--disable-gil", "--disable-test-modules", "--without-ensurepip", "OPT=-DNDEBUG -O1", f"--prefix={place}/usr"]
    for command in (["./configure", "-q", *options],
                    ["make", "-s", f"-j{len(os.sched_getaffinity(0))}"], ["make", "-s", "install", "COMPILEALL_OPTS=-x ."]):
        if subprocess.run(command, cwd=tree, capture_output=True).returncode:
            return False
    shutil.copytree(tree / "Lib" / "test", place / "usr" / "lib" / f"python{version}" / "test")  # its suites, in Python
    shutil.rmtree(tree)
    return subprocess.run([place / "usr" / "bin" / f"python{version}", "-c", "import bz2, ctypes, lzma, sqlite3, ssl, venv, zlib"]).returncode == 0


@functools.cache
def interpreter(version):
    """None if this machine cannot have it. What could not be compiled is not tried again."""
    compiled = version in FREE_THREADED
    if version not in VERSIONS + FREE_THREADED or (PLACE / f"{version}.failed").exists():
        return None
    place = packages.made_once(f"pythons/{version}", functools.partial(build if compiled else unpack, version))
    if not place and compiled:
        (PLACE / f"{version}.failed").touch()
    return place and str(place / "usr" / "bin" / f"python{version}")


if __name__ == "__main__":
    (PLACE / f"{sys.argv[1]}.failed").unlink(missing_ok=True)
    found = interpreter(sys.argv[1])
    print(found or f"no Python {sys.argv[1]} can be had here")
    sys.exit(not found)
