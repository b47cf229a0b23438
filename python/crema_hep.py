# SPDX-License-Identifier: BSD-3-Clause
"""The command `crema` of the wheel: the program inside the package `crema`, with its library and agent.

The distribution is crema-hep. The distribution `crema` on PyPI is a music library, which installs a package of
the same name into the same folder; the two cannot be installed together. This module is outside that folder, so it
works, and reports the clash, whichever of the two was installed last.
"""

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "crema"


def clash():
    """One line if the music library is in the package's folder, too; else None."""
    if (PACKAGE / "analyze.py").exists() or (PACKAGE / "models").exists():
        return (f"'{PACKAGE}' also contains the music library 'crema': run 'pip uninstall crema', "
                "then install the wheel of crema-hep with --force-reinstall")
    return None


def main():
    program = PACKAGE / "bin" / "crema"
    found = clash()
    if found:  # measuring works, but 'import crema' does not
        print(f"crema: {found}", file=sys.stderr)
    os.environ.setdefault("CREMA_PYTHON", sys.executable or "python3")
    try:
        os.execv(program, ["crema", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"crema: cannot run '{program}': {error.strerror}")
