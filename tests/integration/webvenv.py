"""An environment with HTTP clients that not all tests need, and whose pins do not fit theirs: what is
missing of the .venv, over it."""

import jobs
import venvs

PINS = jobs.ROOT / "tests" / "web-requirements.txt"


def environment():
    """Its bin folder; made once, and again when the pins change."""
    return venvs.beside("web", PINS)
