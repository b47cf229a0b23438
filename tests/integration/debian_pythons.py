"""CPythons of Debian's next release that this machine lacks, unpacked below build/pythons/ and linked to the libraries
that come with them. Nothing is installed and no privileges are needed: they start as any other Python does, and create
environments. Mirror, proxy and keys are those of this machine's apt; without a Debian mirror there are none.

A free-threaded one (3.14t) is no package of Debian's: it is compiled from the sources of the package, which takes all
cores for minutes. scripts/test does so before the tests.

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
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror():
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages"], capture_output=True, text=True)
    return next((uri for uri in done.stdout.split() if uri.rstrip("/").endswith("/debian")), None)


def apt(place, *command):
    """Keeps lists, archives and the status of installed packages (none) below `place`."""
    for folder in ("lists/partial", "archives/partial"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (place / "status").touch()
    own = {"Dir::Etc::SourceList": place / "sources.list", "Dir::Etc::SourceParts": "-", "Dir::State::Lists": place / "lists",
           "Dir::State::status": place / "status", "Dir::Cache": place, "APT::Sandbox::User": "", "APT::Install-Recommends": 0,
           "Acquire::Languages": "none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
    return subprocess.run(["apt-get", "-qq", *(f"-o{name}={value}" for name, value in own.items()), *command],
                          capture_output=True).returncode == 0


def unpack(version, place, uri):
    """True if it was unpacked and starts."""
    place.mkdir(parents=True)
    (place / "sources.list").write_text(f"deb [signed-by={KEYS}] {uri} sid main\n")
    if not apt(place, "update") or not apt(place, "install", "--download-only", "-y", f"python{version}", f"libpython{version}-testsuite"):
        return False
    for file in place.glob("archives/*.deb"):
        subprocess.run(["dpkg", "-x", file, place], check=True)
    for folder in ("lists", "archives"):
        shutil.rmtree(place / folder)
    tools = packages.unpacked("patchelf", "patchelf")
    (loader,) = place.glob("usr/lib/*/ld-linux-*.so.*")
    python = place / "usr" / "bin" / f"python{version}"
    # An RPATH, not a RUNPATH: it also applies to libraries that the interpreter loads later.
    subprocess.run([tools / "usr/bin/patchelf", "--set-interpreter", loader, "--force-rpath", "--set-rpath", loader.parent, python], check=True)
    return subprocess.run([python, "-c", "import ssl, sqlite3, venv"]).returncode == 0


def sources(version, place, uri):
    """The newest sources of that Python that the mirror has, unpacked; None: it has none."""
    for patch in PATCHES:
        file = f"python{version}_{version}.{patch}.orig.tar.xz"
        done = subprocess.run(["curl", "-sfL", "-o", place / file, f"{uri.rstrip('/')}/pool/main/p/python{version}/{file}"])
        if done.returncode == 0:
            subprocess.run(["tar", "xf", file], cwd=place, check=True)
            return next(place.glob("Python-*"))
    return None


def build(version, place, uri):
    """True if it was compiled and starts."""
    (place / "usr").mkdir(parents=True)
    tree = sources(version.rstrip("t"), place, uri)
    if not tree:
        return False
    for command in (["./configure", "-q", "--disable-gil", "OPT=-DNDEBUG -O1", f"--prefix={place}/usr"],
                    ["make", "-s", f"-j{len(os.sched_getaffinity(0))}"], ["make", "-s", "install"]):
        if subprocess.run(command, cwd=tree, capture_output=True).returncode:
            return False
    shutil.rmtree(tree)
    return subprocess.run([place / "usr" / "bin" / f"python{version}", "-c", "import bz2, ctypes, lzma, sqlite3, ssl, venv, zlib"]).returncode == 0


@functools.cache
def interpreter(version):
    """None if this machine cannot have it. Made once, by one process at a time; what could not be compiled is not tried again."""
    compiled = version in FREE_THREADED
    uri = mirror() if version in VERSIONS or compiled else None
    if not uri or not shutil.which("dpkg"):
        return None
    place = PLACE / version
    with packages.alone(f"python-{version}"):
        if compiled and (place / "failed").exists():
            return None
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            made = (build if compiled else unpack)(version, place, uri)
            (place / ("ready" if made else "failed")).touch()
            if not made:
                return None
    return str(place / "usr" / "bin" / f"python{version}")


if __name__ == "__main__":
    (PLACE / sys.argv[1] / "failed").unlink(missing_ok=True)
    found = interpreter(sys.argv[1])
    print(found or f"no Python {sys.argv[1]} can be had here")
    sys.exit(not found)
