"""Modules that look like Dask's, coffea's, uproot's and h5py's in the places that crema checks, and do nothing: for a worker's
process without any of them. They are imported like files, so the library patches them like the real ones."""

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
    "distributed": "", "distributed.utils": """
def key_split(key):
    if "no-kind" in key:
        raise ValueError(key)
    return f"kind of {key}"
""", "distributed.comm": "", "distributed.comm.tcp": """
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
        result = task.func(*task.args)
    except ValueError as error:
        return {"op": "task-erred", "actual_exception": error}
    return {"op": "task-finished", "result": result}
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
    "uproot.source": "",
    "grpc": "class StatusCode: OK, NOT_FOUND = object(), object()", "grpc._common": "def deserialize(message, deserializer): return deserializer(message)",
    "grpc._channel": """
import grpc
from grpc import _common
class _RPCState:
    def __init__(self, due, initial_metadata=None, trailing_metadata=None, code=None, details=None): self.due, self.code, self.target = due, code, None
def _handle_event(event, state, deserializer):
    # event: messages, and the status with which the call ends
    messages, code = event
    got = [_common.deserialize(message, deserializer) for message in messages]
    state.code = code
    return got
""",
    "grpc.aio": "", "grpc.aio._call": """
class Call:
    def __init__(self, method): self.method = method
""",
    "XRootD": "", "XRootD.client": """
import threading, time
class Status:
    def __init__(self, ok): self.ok = ok
class Chunks:
    def __init__(self, size): self.size = size
class Client:
    def answer(self, ok, response, callback, begin=time.perf_counter_ns):
        # after 20 ms, by a thread of the client's or as what the call returns; how long it took goes into times
        start = begin()
        def arrive():
            time.sleep(0.02)
            self.times.append(begin() - start)  # before the callback, after which another thread may have the GIL
            callback(Status(ok), response)
        if callback:
            threading.Thread(target=arrive, daemon=True).start()
            return Status(True)
        time.sleep(0.02)
        self.times.append(begin() - start)
        return Status(ok), response
class File(Client):
    def __init__(self): self.times, self.opened = [], None
    def open(self, url, flags=0, mode=0, timeout=0, callback=None):
        self.opened = url
        if "black-hole" in url:
            threading.Event().wait()
        return Status(True), None
    def close(self, timeout=0, callback=None): return Status(True), None
    def get_property(self, name):
        server = self.opened.split("/")[2] if "://" in self.opened else ""
        return {"LastURL": self.opened if "://" in self.opened else "file://localhost" + self.opened, "DataServer": server}[name]
    def read(self, offset=0, size=0, timeout=0, callback=None):
        if size < 0:
            return Status(False) if callback else (Status(False), None)
        return self.answer(offset >= 0, bytes(size) if offset >= 0 else None, callback)
    def vector_read(self, chunks, timeout=0, callback=None): return self.answer(True, Chunks(sum(n for _, n in chunks)), callback)
    def readline(self, offset=0, size=0, chunksize=0): return b"a line"
    def stat(self, force=False, timeout=0, callback=None): return Status(True), None
class FileSystem:
    def copy(self, source, target, force=False): return Status(True), None
    def rm(self, path, timeout=0, callback=None): return Status(True), None
class CopyProcess:
    def run(self, handler=None): return Status(True), []
""",
    # codecs are builtin functions: here some that do not compress, with known lengths
    "cramjam": "", "cramjam.cramjam": """
import _operator
class snappy:
    compress_into, decompress_into = _operator.countOf, _operator.indexOf
""",
    "numcodecs": "", "numcodecs.blosc": "from _heapq import heapify as decompress",
    "lz4": "", "lz4.frame": "", "lz4.frame._frame": "from _codecs import utf_16_le_decode as decompress",
    "blosc2": "", "blosc2.blosc2_ext": """
import math
vldecompress = math.factorial
class SChunk:
    decompress_chunk = math.isqrt
class vlmeta:
    set_vlmeta = math.gcd
""",
    # methods of objects are builtin functions as well, and have their object
    "pyarrow._parquet": """
from types import SimpleNamespace as Space
class Reader(list):
    def __init__(self, *codecs):
        group = Space(column=lambda i: Space(compression=codecs[i]))
        self.metadata = Space(num_columns=len(codecs), num_row_groups=1, row_group=lambda i: group)
class ParquetReader:
    read_all, read_row_group, read_row_groups = Reader("ZSTD", "UNCOMPRESSED").copy, Reader("ZSTD", "SNAPPY").copy, Reader("GZIP", "ZSTD").copy
""",
    "pyarrow.lib": """
import _operator
class _RecordBatchStreamWriter:
    _open = _operator.setitem
""",
    "h5py.h5d": """
class Dataset:
    def __init__(self, filters, stored): self.filters, self.stored = filters, stored
    def get_create_plist(self): return self
    def get_layout(self): return 1
    def get_alloc_time(self): return 2
    def get_storage_size(self): return self.stored
import _operator
class DatasetID:
    read, write = _operator.is_, _operator.is_not
""",
    "httpcore": "", "httpcore._async": "", "httpcore._sync": "", "httpcore._sync.http2": """
class HTTP2Connection:
    def __init__(self, stream): self._network_stream = stream
""",
    "h5py": "", "h5py._hl": "", "h5py._hl.filters": "def get_filters(list): return list.filters", "h5py._hl.dataset": """
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
