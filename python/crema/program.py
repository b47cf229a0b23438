# SPDX-License-Identifier: BSD-3-Clause
"""Finds and runs the `crema` program, which computes all numbers."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
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


def _command(arguments, directory):
    """Arguments and environment of `crema report`; directory: one or a list, which is read as one."""
    directories = directory if isinstance(directory, (list, tuple)) else [directory] if directory else []
    command = [find(), "report", *(word for d in directories for word in ("--dir", str(d))), *map(str, arguments)]
    return command, {"CREMA_PYTHON": sys.executable or "python3", **os.environ}


def _failed(status, errors):
    lines = errors.decode(errors="replace").strip().splitlines()
    return CremaError(lines[-1] if lines else f"'crema report' ended with status {status}")


def _late():
    return CremaError(f"'crema report' did not finish within {REPORT_SECONDS} s")


def report(*arguments, directory=None):
    """Standard output of `crema report`."""
    command, env = _command(arguments, directory)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=REPORT_SECONDS, env=env)
    except subprocess.TimeoutExpired:
        raise _late() from None
    except OSError as error:
        raise CremaError(f"cannot run '{command[0]}': {error.strerror}") from None
    if done.returncode:
        raise _failed(done.returncode, done.stderr)
    return done.stdout.decode(errors="replace")


def report_json(*arguments, directory=None):
    """The run as in `crema report --json`."""
    return json.loads(report(*arguments, "--json", "-", directory=directory))


def report_id(run, directory=None):
    """The run's whole id: the first member of its JSON, of which nothing more is read unless another program wrote it differently."""
    command, env = _command(("--run", run, "--json", "-"), directory)
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env)
        except OSError as error:
            raise CremaError(f"cannot run '{command[0]}': {error.strerror}") from None
        timer = threading.Timer(REPORT_SECONDS, process.kill)
        timer.start()
        try:
            head = process.stdout.readline() + process.stdout.readline()
            found = re.match(rb'\{\s*"run": ("[^"]*"),', head)
            rest = b"" if found else process.stdout.read()
            status = None if found else process.wait()
        finally:
            late = not timer.is_alive()
            timer.cancel()
            process.kill()
            process.communicate()
        if found:
            return json.loads(found[1])
        if late:
            raise _late()
        errors.seek(0)
        if status:
            raise _failed(status, errors.read())
    try:
        return json.loads(head + rest)["run"]
    except (ValueError, TypeError, KeyError):
        raise CremaError(f"'{command[0]}' printed no run as JSON") from None
