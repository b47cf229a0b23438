# SPDX-License-Identifier: BSD-3-Clause
"""Finds and runs the `crema` program, which computes all numbers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# A report of a large journal takes minutes; a program that hangs must not block a notebook forever.
REPORT_SECONDS = 600


class CremaError(RuntimeError):
    """What failed and what to do about it, in one line."""


def find():
    """The path of the program: $CREMA_PROGRAM, else in this package, else on PATH, else next to Python."""
    named = os.environ.get("CREMA_PROGRAM")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise CremaError(f"CREMA_PROGRAM is '{named}', which is not an executable program")
        return named
    here = Path(__file__).resolve().parent
    places = [Path(sys.executable).parent, here.parents[1] / "build"]
    found = shutil.which("crema", path=here / "bin") or shutil.which("crema") or shutil.which("crema", path=os.pathsep.join(map(str, places)))
    if not found:
        raise CremaError("the program 'crema' is not on PATH: install it, or set CREMA_PROGRAM")
    return found


def report(*arguments, directory=None):
    """Standard output of `crema report`; directory: one or a list, which is read as one."""
    directories = directory if isinstance(directory, (list, tuple)) else [directory] if directory else []
    command = [find(), "report", *(word for d in directories for word in ("--dir", str(d))), *map(str, arguments)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=REPORT_SECONDS,
                              env={"CREMA_PYTHON": sys.executable or "python3", **os.environ})
    except subprocess.TimeoutExpired:
        raise CremaError(f"'crema report' did not finish within {REPORT_SECONDS} s") from None
    except OSError as error:
        raise CremaError(f"cannot run '{command[0]}': {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise CremaError(lines[-1] if lines else f"'crema report' ended with status {done.returncode}")
    return done.stdout.decode(errors="replace")


def report_json(*arguments, directory=None):
    """The run as in `crema report --json`."""
    return json.loads(report(*arguments, "--json", "-", directory=directory))
