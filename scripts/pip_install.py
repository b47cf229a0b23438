# SPDX-License-Identifier: BSD-3-Clause
"""pip_install.py PYTHON ARGUMENT...: what `PYTHON -m pip install ARGUMENT...` does, without byte code.

With uv, if this Python has it: that takes a tenth of the time. It is told pip's own index, links and certificates. If uv fails, for
whatever reason, pip installs, which needs pip in PYTHON. Status and last message: pip's.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

# pip's settings, and the variables in which uv takes them.
SETTINGS = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE"}


def settings(listed, environment):
    """The environment for uv; listed: the output of `pip config list`, lines as global.index-url='URL'."""
    found = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        variable = SETTINGS.get(name.rpartition(".")[2])
        if variable:  # pip separates by spaces or lines
            separator = "," if variable == "UV_FIND_LINKS" else " "
            found[variable] = separator.join(ast.literal_eval(value).split())
    # A file from the cache must not change with the one that was installed.
    return {"UV_LINK_MODE": "copy", "UV_HTTP_TIMEOUT": "60", **found, **environment}


def by_uv(python, wanted):
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        return False
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    done = subprocess.run([uv, "pip", "install", "--python", python, "--quiet", *wanted], env=settings(listed.stdout, os.environ),
                          capture_output=True, text=True)
    if done.returncode:
        print(f"uv failed, pip installs: {done.stderr.strip()[-500:]}", file=sys.stderr)
    return done.returncode == 0


def by_pip(python, wanted):
    """Raises RuntimeError with pip's message."""
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--no-input", *wanted],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])


def install(python, wanted):
    """The same."""
    if not by_uv(python, wanted):
        by_pip(python, wanted)


def keep_bytecode(packages):
    """What is installed in this folder (site-packages) has no byte code: imported modules write theirs, even if the environment forbids it."""
    (packages / "keep_bytecode.pth").write_text("import sys; sys.dont_write_bytecode = False\n")


if __name__ == "__main__":
    try:
        install(sys.argv[1], sys.argv[2:])
        keep_bytecode(next(Path(sys.argv[1]).parents[1].glob("lib/python3*/site-packages")))
    except RuntimeError as e:
        sys.exit(str(e))
