# SPDX-License-Identifier: BSD-3-Clause
"""XrdClHttp, the plug-in that reads https:// in XRootD's client. PyPI's wheel lacks it, and Debian's is for version 5: compiled below build/
from PyPI's sources of the installed client, against that client's own libraries."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import packages

VERSION = importlib.metadata.version("xrootd")
CONFIG = """
url = http://*;https://*;dav://*;davs://*
lib = {library}
enable = true
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{command[0]} of XrdClHttp: {done.stderr[-2000:]}")


def sources(place):
    """The folder src of PyPI's source distribution."""
    run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "xrootd", "--dest", place,
        f"xrootd=={VERSION}")
    (archive,) = place.glob("xrootd-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(place, [each for each in tar if each.name.startswith(f"xrootd-{VERSION}/src/")], filter="data")
    return place / f"xrootd-{VERSION}" / "src"


def write_version(src):
    """XrdVersion.hh, which cmake would make: the client refuses a plug-in of another version."""
    major, minor, patch = map(int, VERSION.split("."))
    text = (src / "XrdVersion.hh.in").read_text()
    for name, value in (("STRING", f"v{VERSION}"), ("NUMBER", major * 10000 + minor * 100 + patch), ("MAJOR", major)):
        text = text.replace(f"@XRootD_VERSION_{name}@", str(value))
    (src / "XrdVersion.hh").write_text(text)


def write_whole(src):
    """A file with all sources: its compiler reads the headers of the standard library once, and takes an eighth of the CPU."""
    for header in (src / "XrdClHttp").glob("*.hh"):  # one of them has no guard
        header.write_text("#pragma once\n" + header.read_text())
    (src / "whole.cc").write_text("".join(f'#include "{file}"\n' for file in sorted((src / "XrdClHttp").glob("*.cc"))))


def build(place):
    """Takes ten seconds."""
    work = place / "work"
    work.mkdir(parents=True)
    src = sources(work)
    write_version(src)
    write_whole(src)
    run("g++", "-std=c++20", "-O0", "-fPIC", "-w", f"-I{src}", f"-I{src / 'XrdXml' / 'tinyxml'}", "-c", src / "whole.cc", "-o", work / "whole.o")
    client = Path(importlib.util.find_spec("pyxrootd").origin).parent
    libraries = [next(client.glob(f"lib{name}.so.[0-9]")) for name in ("XrdCl", "XrdUtils", "XrdXml")]
    run("g++", "-shared", "-Wl,-z,defs", "-o", place / "libXrdClHttp.so", work / "whole.o", *libraries, "-lcurl", "-lcrypto")
    shutil.rmtree(work)
    return True


def environment(folder, certificate):
    """The variables with which a process reads https:// by the plug-in and trusts this certificate; folder: for its configuration."""
    library = packages.made_once(f"xrdcl-http-{VERSION}", build) / "libXrdClHttp.so"
    folder.mkdir()
    (folder / "http.conf").write_text(CONFIG.format(library=library))
    return {"XRD_PLUGINCONFDIR": str(folder), "XRD_HTTPCERTFILE": str(certificate)}
