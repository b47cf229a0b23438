"""Debian packages unpacked below build/, without installing them: an installed server would start as a
service of the machine. Unpacked once, by one process at a time. Those of another release come with their libraries, and
run with these as any other program does. Mirror, proxy and keys are those of this machine's apt."""

import contextlib
import fcntl
import shutil
import signal
import subprocess

import jobs
import pytest

BUILD = jobs.ROOT / "build"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
WITHOUT = "Debian's packages are not available here"


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


def made_once(name, make):
    """build/NAME, made by make(it) unless it exists; None if that returned False."""
    place = BUILD / name
    with alone(name.replace("/", "-")):
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            if not make(place):
                return None
            (place / "ready").touch()
    return place


def download(place, packages):
    place.mkdir(parents=True)
    command = ["apt-get", "download", *packages]
    if subprocess.run(command, cwd=place, capture_output=True).returncode:
        subprocess.run(["apt-get", "update"], capture_output=True)  # the lists may be old
        subprocess.run(command, cwd=place, check=True, capture_output=True)
    for name in packages:
        (file,) = place.glob(f"{name}_*.deb")
        subprocess.run(["dpkg", "-x", file, place], check=True)
    return True


def unpacked(folder, *packages):
    """build/FOLDER with the files of these packages, unpacked in this order."""
    return made_once(folder, lambda place: download(place, packages))


def mirror():
    """Debian's, as this machine's apt knows it; None: it has none."""
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


def elf_files(place, name):
    """The programs and libraries of a package in place/archives."""
    (archive,) = place.glob(f"archives/{name}_*.deb")
    listed = subprocess.run(["dpkg", "-c", archive], check=True, capture_output=True, text=True).stdout.splitlines()
    for path in (place / line.split()[5] for line in listed if line.startswith("-")):
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                yield path


def link(place, files):
    """Makes these files use the loader and the libraries below `place`."""
    patchelf = unpacked("patchelf", "patchelf") / "usr/bin/patchelf"
    (loader,) = place.glob("usr/lib/*/ld-linux-*.so.*")
    folders = dict.fromkeys([loader.parent, *(file.parent for file in files if ".so" in file.name)])
    # An RPATH, not a RUNPATH: it also applies to libraries that the program loads later.
    path = ["--force-rpath", "--set-rpath", ":".join(map(str, folders))]
    for file in files:
        # A library has no interpreter, a static program has none of it.
        if subprocess.run([patchelf, "--set-interpreter", loader, *path, file], capture_output=True).returncode:
            subprocess.run([patchelf, *path, file], capture_output=True)


def of_release(release, place, wanted, linked):
    """Unpacks below `place` these packages of a Debian release and all that they need; the programs and libraries of the packages
    `linked` then run on this machine. False: this machine cannot have them."""
    uri = mirror() if shutil.which("dpkg") else None
    if not uri:
        return False
    place.mkdir(parents=True)
    (place / "sources.list").write_text(f"deb [signed-by={KEYS}] {uri} {release} main\n")
    if not apt(place, "update") or not apt(place, "install", "--download-only", "-y", *wanted):
        return False
    for file in place.glob("archives/*.deb"):
        subprocess.run(["dpkg", "-x", file, place], check=True)
    link(place, [file for name in linked for file in elf_files(place, name)])
    for folder in ("lists", "archives"):
        shutil.rmtree(place / folder)
    return True


def of_debian(name, wanted, linked=()):
    """build/debian/NAME with these packages of Debian's stable release, as of_release() has them; skips the test without them."""
    return made_or_skip(name, lambda place: of_release("trixie", place, wanted, linked))


def made_or_skip(name, make):
    """build/debian/NAME, made from Debian's packages; skips the test if this machine cannot have them."""
    place = made_once(f"debian/{name}", make)
    if place is None:
        pytest.skip(WITHOUT)
    return place
