# SPDX-License-Identifier: BSD-3-Clause
"""Packages that only the codec tests need, in a separate folder below build/."""

import subprocess
import sys

import cluster
import packages

LIST = cluster.ROOT / "tests" / "codec-packages.txt"


def folder():
    """Made once for each list; workers find it through PYTHONPATH."""
    place = cluster.BUILD / "codec-packages"
    stamp = place / LIST.name
    with packages.alone("codec-packages"):
        if not stamp.exists() or stamp.read_bytes() != LIST.read_bytes():
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "--upgrade", "--target", place, "-r", LIST], check=True, capture_output=True, timeout=300)
            stamp.write_bytes(LIST.read_bytes())
    return place
