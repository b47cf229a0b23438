"""On a worker's PYTHONPATH: simulates modules of another version. CREMA_TEST_RENAME=PACKAGE:OLD:NEW replaces a
name in the source of every module of the package when it is imported."""

import importlib.abc
import importlib.machinery
import os
import re
import sys

package, old, new = os.environ["CREMA_TEST_RENAME"].split(":")


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != package and not name.startswith(package + "."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if isinstance(getattr(spec, "loader", None), importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = self.get_source(fullname)
        return compile(re.sub(rf"\b{old}\b", new, source), self.path, "exec", dont_inherit=True)


sys.meta_path.insert(0, Finder())
