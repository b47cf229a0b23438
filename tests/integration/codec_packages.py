# SPDX-License-Identifier: BSD-3-Clause
"""Packages that only a few tests need, in separate folders below build/."""

import sys

import cluster
import packages
import pip_install

def folder(name="codec-packages"):
    """Made once for each list, tests/NAME.txt; workers find it through PYTHONPATH."""
    place, pins = cluster.BUILD / name, cluster.ROOT / "tests" / f"{name}.txt"
    stamp = place / pins.name
    with packages.alone(name):
        if not stamp.exists() or stamp.read_bytes() != pins.read_bytes():
            pip_install.install(sys.executable, ["--no-deps", "--upgrade", "--target", place, "-r", pins])
            stamp.write_bytes(pins.read_bytes())
    return place
