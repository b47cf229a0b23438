"""Modules that look as Dask's, coffea's, uproot's and h5py's do where crema looks at them, and do nothing: a worker's
process without any of them. They are imported as files are, so the library patches them as it does the real ones."""

import importlib.abc
import importlib.util
import sys

SOURCES = {
    "tornado": "", "tornado.ioloop": """
made = []
class PeriodicCallback:
    def __init__(self, function, milliseconds): self.function = function; made.append(self)
    def start(self): pass
    def stop(self): pass
""",
    "dask": "", "dask._task_spec": """
class Task:
    def __init__(self, func, *args): self.func, self.args = func, args
class DataNode:
    def __init__(self, value): self.value = value
""",
    "distributed": "", "distributed.comm": "", "distributed.comm.tcp": """
class TCP:
    def __init__(self, stream): pass
""",
    "distributed.worker": """
class Worker:
    def start_unsafe(self): return "started"
def iscoroutinefunction(f): return False
def key_split(key): return key.split("-")[0]
def _run_task_simple(): pass
def _run_task(task, data, state, key):
    try:
        task.func(*task.args)
    except ValueError:
        return {"op": "task-erred"}
    return {"op": "task-finished"}
def _run_actor(method, args, kwargs, state, key): return method(*args)
""",
    "coffea": "", "coffea.processor": "", "coffea.processor.executor": """
class WorkItem:
    def __init__(self, dataset, filename, treename, entrystart, entrystop):
        self.dataset, self.filename, self.treename = dataset, filename, treename
        self.entrystart, self.entrystop = entrystart, entrystop
class FileMeta:
    def __init__(self, dataset, filename, treename):
        self.dataset, self.filename, self.treename = dataset, filename, treename
class _reduce:
    def __call__(self, *parts): pass
class Runner:
    @staticmethod
    def _work_function(item, processor_instance=None): return item.result
    @staticmethod
    def metadata_fetcher_root(item): return item
scatter = lambda: None
""",
    "uproot": "", "uproot.models": "", "uproot.models.TBasket": """
class Model_TBasket:
    def read_members(self, chunk, cursor, context, file=None):
        if context.get("fails"):
            raise ValueError
        return "read"
""",
    "uproot.models.RNTuple": """
class Model_ROOT_3a3a_RNTuple:
    def read_page(self, destination, cluster, locator, bytes): return self.read_locator(locator, bytes, None)
    def read_locator(self, locator, bytes, cursor): return b""
    def gpu_read_cluster_pages(self): return "gpu"
""",
    "uproot._dask": """
class UprootReadMixin:
    def read_tree(self, tree, start, stop):
        if start < 0:
            raise ValueError
        return "read"
""",
    "pyarrow": "", "pyarrow._s3fs": "", "isal": "", "isal.isal_zlib": "",
    "h5py": "", "h5py._hl": "", "h5py._hl.dataset": """
class Dataset:
    def __init__(self, filters): self._filters = filters
    def __getitem__(self, i): return i
    def __setitem__(self, i, value): pass
    def __array__(self): return 1
    def read_direct(self, to): pass
    def write_direct(self, what): pass
""",
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, is_package=True) if name in SOURCES else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], module.__name__, "exec"), module.__dict__)


sys.meta_path.insert(0, Finder())
