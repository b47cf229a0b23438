# SPDX-License-Identifier: BSD-3-Clause
"""The command `crema` of the wheel: the program that lies in this package, with its library and agent beside it."""

import os
import sys
from pathlib import Path


def main():
    program = Path(__file__).resolve().parent / "bin" / "crema"
    os.environ.setdefault("CREMA_PYTHON", sys.executable or "python3")
    try:
        os.execv(program, ["crema", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"crema: cannot run '{program}': {error.strerror}")
