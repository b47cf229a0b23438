# SPDX-License-Identifier: BSD-3-Clause
"""Shortens the start of the tests' Python programs: they import Dask some hundred times, and coffea a hundred times.

Python imports this file in each program that has the folder on its PYTHONPATH. The program then runs as without it, except
that no garbage was collected while the modules of PACKAGES were imported, that later collections skip these modules, also at
the program's end, and that libyaml parsed Dask's configuration.
"""

import gc
import sys
from importlib.machinery import PathFinder

PACKAGES = {"dask", "distributed", "coffea.processor", "coffea.nanoevents", "awkward", "uproot", "numba", "numpy", "scipy", "hist"}


class Finder:
    """Before Python's own finders: finds as they do."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "yaml" and (name not in PACKAGES or not gc.isenabled()):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and hasattr(spec.loader, "exec_module"):
            spec.loader.exec_module = (parses_fast if name == "yaml" else without_gc)(spec.loader.exec_module)
        return spec


def without_gc(exec_module):
    """Modules live as long as the program: the collector would find nothing."""
    def run(module):
        gc.disable()
        try:
            exec_module(module)
        finally:
            gc.freeze()
            gc.enable()

    return run


def parses_fast(exec_module):
    def run(module):
        exec_module(module)
        module.SafeLoader = getattr(module, "CSafeLoader", module.SafeLoader)

    return run


sys.meta_path.insert(0, Finder)
