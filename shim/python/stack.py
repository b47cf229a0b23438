# SPDX-License-Identifier: BSD-3-Clause
"""What a process without a Dask worker says about itself, as JSON text.

The shim compiles this text when coffea's work function is first called (py_executor.c), with
`_put(text)` in its globals. It only reads, and imports nothing that coffea has not imported.
"""
import json
import os
import sys


def _version(name):
    version = getattr(sys.modules.get(name), "__version__", None)
    return version if isinstance(version, str) else None


def _folder():
    try:
        return os.getcwd()
    except OSError:
        return None


_facts = {name: _version(name) for name in ("coffea", "uproot", "awkward", "numpy")}
_facts["python"] = sys.version.split()[0]
_facts["cwd"] = _folder()
_put(json.dumps(_facts))
