# SPDX-License-Identifier: BSD-3-Clause
"""Packages that only the codec tests need, in a separate folder below build/."""

import sys

import cluster
import packages
import pip_install

LIST = cluster.ROOT / "tests" / "codec-packages.txt"


def folder():
    """Made once for each list; workers find it through PYTHONPATH."""
    place = cluster.BUILD / "codec-packages"
    stamp = place / LIST.name
    with packages.alone("codec-packages"):
        if not stamp.exists() or stamp.read_bytes() != LIST.read_bytes():
            pip_install.install(sys.executable, ["--no-deps", "--upgrade", "--target", place, "-r", LIST])
            stamp.write_bytes(LIST.read_bytes())
    return place
