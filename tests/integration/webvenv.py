"""An environment with HTTP clients that not all tests need, and whose pins conflict with theirs: it adds
the packages that the .venv lacks."""

import jobs
import venvs

PINS = jobs.ROOT / "tests" / "web-requirements.txt"


def environment():
    """Its bin directory; made once, and again when the pins change."""
    return venvs.beside("web", PINS)
