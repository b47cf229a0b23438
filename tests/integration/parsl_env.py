"""Parsl together with the tests' own packages: a venv below build/, made once."""

import sys

import jobs
import venvs

LIST = jobs.ROOT / "tests" / "parsl.txt"


def python():
    """The interpreter that has both."""
    return venvs.make(venvs.VENVS / "parsl", None, ["-r", LIST], LIST.read_text() + sys.version) / "python"
