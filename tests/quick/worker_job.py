"""A worker's process, with the library preloaded: a few tasks of which every number is known. Prints what only the process knows."""

import asyncio
import concurrent.futures
import ctypes
import importlib
import json
import os
import queue
import resource
import socket
import subprocess
import sys
import threading
import time
import traceback
import types
import zlib
from pathlib import Path

import stack  # first: makes its modules importable

threading.Thread(target=int).start()  # every worker has started a thread before it imports Dask

if sys.argv[2] == "lacking":
    stack.SOURCES[sys.argv[3]] = ""  # another version of it
    for end in [at for at, sign in enumerate(sys.argv[3]) if sign == "."]:
        stack.SOURCES.setdefault(sys.argv[3][:end], "")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import blosc2.blosc2_ext
import coffea.processor.executor as executor
import cramjam.cramjam
import distributed.comm.tcp
import distributed.utils
import distributed.worker as dask
import grpc._channel
import grpc.aio._call
import h5py._hl.dataset
import h5py._hl.filters
import h5py.h5d
import httpcore._sync.http2
import lz4.frame._frame
import numcodecs.blosc
import pyarrow._parquet
import pyarrow.lib
import tornado.ioloop
import uproot._dask
import uproot.models.RNTuple
import uproot.models.TBasket
import XRootD.client
from coffea.processor.executor import FileMeta, Runner, WorkItem
from dask._task_spec import DataNode, Task

Space = types.SimpleNamespace
told = {"pid": os.getpid(), "tasks": {}}


def children_ns():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def gpu(worker):
    """Loads libraries, each in a task of its name; then opens the device of GPUDirect Storage, in a /dev of its own."""
    worker.run("none-1", work)
    for library in sys.argv[4:]:
        worker.run(f"{os.path.basename(library)}-1", lambda: (ctypes.CDLL(library), work()))
    if not os.geteuid():
        libc = ctypes.CDLL(None, use_errno=True)
        assert not libc.unshare(0x20000) and not libc.mount(b"none", b"/", None, 0x44000, None) and not libc.mount(b"none", b"/dev", b"tmpfs", 0, None)
        os.close(os.open("/dev/other", os.O_CREAT))
        time.sleep(1)  # so that the agent has sent the others' records before it checks
        os.rename("/dev/other", "/dev/nvidia-fs0")
        opens = {"open": lambda: open("/dev/nvidia-fs0").close(), "syscall": lambda: (libc.syscall(257, -100, b"/dev/nvidia-fs0", 0), time.sleep(1))}
        worker.run("device-1", lambda: (opens[sys.argv[3]](), work()))
    print(json.dumps(told))


def io_uring(worker):
    """Makes a ring in one of several ways; in one of them the same task reads a file through it."""
    way, library, path = sys.argv[3:6]
    rings = ctypes.CDLL(library)
    size = os.path.getsize(path)
    worker.run("plain-1", lambda: os.read(os.open(path, os.O_RDONLY), 1000))
    time.sleep(1 if way == "itself" else 0)  # so that the agent has sent its record before it checks

    def ring():
        if way == "liburing":
            before = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
            told["got"] = rings.ring_read(path.encode(), ctypes.create_string_buffer(size), size)
            told["charged"] = 512 * (resource.getrusage(resource.RUSAGE_SELF).ru_inblock - before)
        elif way == "package":
            stack.SOURCES["liburing"] = ""
            import liburing
        else:
            told["got"] = rings.ring_by_itself() if way == "itself" else rings.ring_by_syscall()
        time.sleep(1.5 if way == "itself" else 0)

    worker.run("ring", ring)
    worker.run("plain-2", lambda: os.read(os.open(path, os.O_RDONLY), 1000))
    tornado.ioloop.made[0].function()
    print(json.dumps(told))


def clocks():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return {"boot": time.clock_gettime_ns(time.CLOCK_BOOTTIME), "cpu": time.thread_time_ns(), "resident": resident,
            "voluntary": usage.ru_nvcsw, "involuntary": usage.ru_nivcsw}


class Loop:
    def run_in_executor(self, pool, function, *args):
        return self.future


class Worker(dask.Worker):
    def __init__(self):
        self.scheduler, self.loop, self.handlers = Space(address="tcp://10.9.8.7:8786"), Loop(), {"actor_execute": None}
        self.state = Space(tasks={}, actors={}, nthreads=3, executing_count=2, ready=[1], long_running=[], executed_count=5)
        self.memory_manager, self.nanny, self.address, self.name = Space(memory_limit=7654321), None, "tcp://10.1.1.1:4001", "w-1"

    def run(self, key, func, *args, node=None, needs={}, span="the-span", annotations=(), old=False):
        """As Dask does once it has received the task. A dependency that was sent to this worker as well has its span. Workers of
        old versions do not know the task's prefix."""
        self.state.tasks[key] = Space(key=key, prefix="a-prefix", span_id=span, annotations=dict(annotations), priority=(0, 12, 0),
                                      dependencies=[Space(key=k, span_id=s) for k, s in needs.items()])
        if old:
            del self.state.tasks[key].prefix
        before = clocks()
        dask._run_task(node or Task(func, *args), {}, {"worker": self}, key)
        told["tasks"][str(key)] = [before, clocks()]

    def elsewhere(self, key, message):
        self.state.tasks[key] = Space(prefix="far", span_id="far-span", annotations={}, priority=(0, 1), dependencies=[])
        self.loop.__dict__["future"] = future = concurrent.futures.Future()
        self.loop.run_in_executor(None, dask._run_task_simple)
        future.set_result(message)


def work(*_):
    pass


def fails():
    raise ValueError


def fails_because():
    try:
        try:
            raise OSError(5, "the disk")
        except OSError as first:
            raise RuntimeError("in between") from first
    except RuntimeError as second:
        raise ValueError("one line\nand another") from second


def pooled(worker):
    """The pool's thread runs another task, and then continues with this one."""
    import multiprocessing.pool

    with multiprocessing.pool.ThreadPool(1) as pool:
        pool.apply(lambda: [worker.run("within-pool", spin, 0.01), spin(0.1)])


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def codecs(noise):
    packed = zlib.compress(b"x" * 100_000)
    zlib.decompress(packed)
    stream = zlib.decompressobj()
    first = stream.decompress(packed[:50], 1000)
    rest = stream.decompress(stream.unconsumed_tail + packed[50:] + b"behind")
    stream.flush()
    before = time.thread_time_ns()
    big = zlib.compress(noise, 1)
    told["codecs"] = {"packed": len(packed), "stream": len(first + rest), "big": len(big), "cpu": time.thread_time_ns() - before}


MODULE = "import zlib\nTEXT = zlib.decompress({packed})\nzlib.compress(TEXT)\n"
MODULES = {"outer_text": "import importlib\nimport inner_text\n" + MODULE + "importlib.import_module('named_text')\n",
           "inner_text": MODULE, "named_text": MODULE, "failing_text": MODULE + "raise ValueError\n"}


def codecs_of_other_shapes():
    """Into the caller's buffer, and in pieces: they return a length, or also how much input was used."""
    assert cramjam.cramjam.snappy.decompress_into(b"aaaab", ord("b")) == 4
    assert cramjam.cramjam.snappy.compress_into(b"aaaabbbb?", ord("b")) == 4
    assert lz4.frame._frame.decompress(b"a\0b\0c", None, False) == ("ab", 4)


UNSEEN = {"into": (lambda: numcodecs.blosc.decompress([1, 2, 3]), "decompress"),
          "both": (lambda: blosc2.blosc2_ext.vldecompress(5), "both"),
          "reads": (lambda: blosc2.blosc2_ext.SChunk.decompress_chunk(5), "decompress"),
          "writes": (lambda: blosc2.blosc2_ext.vlmeta.set_vlmeta(5, 10), "compress"),
          "parquet-zstd": (lambda: pyarrow._parquet.ParquetReader.read_all(), ""),
          "parquet-snappy": (lambda: pyarrow._parquet.ParquetReader.read_row_group(), "decompress"),
          "parquet-gzip": (lambda: pyarrow._parquet.ParquetReader.read_row_groups(), "decompress"),
          **{f"ipc-{name}": (lambda options=options: pyarrow.lib._RecordBatchStreamWriter._open({}, "to", options), unknown) for name, options, unknown in (
              ("none", None, ""), ("plain", Space(compression=None, use_threads=True), ""), ("zstd", Space(compression="zstd", use_threads=False), ""),
              ("threads", Space(compression="zstd", use_threads=True), "compress"), ("lz4", Space(compression="lz4", use_threads=False), "compress"))},
          "h5py-read": (lambda: h5py.h5d.DatasetID.read(h5py.h5d.Dataset({"gzip": 4}, 9), 0), "decompress"),
          "h5py-plain": (lambda: h5py.h5d.DatasetID.read(h5py.h5d.Dataset({"shuffle": 1}, 9), 0), ""),
          "h5py-write": (lambda: h5py.h5d.DatasetID.write(h5py.h5d.Dataset({"gzip": 4}, 0), 0), "compress"),
          "h5py-again": (lambda: h5py.h5d.DatasetID.write(h5py.h5d.Dataset({"gzip": 4}, 9), 0), "both")}


class Trace(ctypes.Structure):
    """What zstd reports for a frame."""
    _fields_ = [("version", ctypes.c_uint), ("streaming", ctypes.c_uint), ("dictionary", ctypes.c_uint), ("cold", ctypes.c_int),
                ("dictionary_bytes", ctypes.c_size_t), ("unpacked", ctypes.c_size_t), ("packed", ctypes.c_size_t), ("rest", ctypes.c_void_p * 8)]


asked_of_nobody, frames_unpacked = queue.SimpleQueue(), threading.Semaphore(0)


def unpack_for_nobody():
    """As libarrow's threads, which cannot be assigned to a task."""
    library = ctypes.CDLL(None)
    library.ZSTD_trace_decompress_begin.restype = ctypes.c_ulonglong
    while asked_of_nobody.get():
        name = ctypes.c_ulonglong(library.ZSTD_trace_decompress_begin(None))
        library.ZSTD_trace_decompress_end(name, ctypes.byref(Trace(version=10506, unpacked=7000, packed=500)))
        frames_unpacked.release()


def read_by_other_threads(whole):
    if whole:
        pyarrow._parquet.ParquetReader.read_all()
    asked_of_nobody.put(True)
    frames_unpacked.acquire()


def by_http2():
    """Bytes of its own connection, and of one that HTTP/2 shares."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for shared in (False, True):
            with socket.create_connection(server.getsockname()) as connection, server.accept()[0] as peer:
                if shared:
                    httpcore._sync.http2.HTTP2Connection(Space(get_extra_info=lambda name: connection if name == "socket" else None))
                connection.sendall(b"x" * 1000)
                peer.recv(1000, socket.MSG_WAITALL)
                peer.sendall(b"y" * 3000)
                connection.recv(3000, socket.MSG_WAITALL)


def by_asyncio():
    """A client and its server in the task's own event loop, which reports what its callbacks raise."""
    failed = told["by_asyncio"] = []

    async def answer(reader, writer):
        writer.write(3 * await reader.readexactly(1000))
        await writer.drain()
        writer.close()

    async def ask():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(repr(context)))
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x" * 1000)
        assert await reader.readexactly(3000) == b"x" * 3000
        writer.close()
        server.close()

    asyncio.run(ask())


def importing(directory):
    """Python modules that decompress during their import, one inside another, one that fails; and the task's own decompression."""
    packed = zlib.compress(b"t" * 1000)
    for name, text in MODULES.items():
        Path(directory, f"{name}.py").write_text(text.format(packed=packed))
    sys.path.insert(0, directory)
    import outer_text
    try:
        import failing_text  # noqa: F401
    except ValueError as e:
        told["lines"] = [frame.name for frame in traceback.extract_tb(e.__traceback__)]
    sys.path.remove(directory)
    assert outer_text.TEXT == zlib.decompress(packed)


def measured():
    before = clocks()
    spin(0.03)
    for _ in range(5):
        time.sleep(0.01)
    told["measured"] = [before, clocks()]


STAGED = {"first": [(1000, [300, 400, 300])], "next": [(2000, [300, 300])], "both": [(3000, [300]), (4000, [300])],
          "apart": [(5000, [300]), (6000, [400, 500, 400])], **{f"one-{i}": [(7000 + i, [300, 300])] for i in range(20)}}


def baskets(path):
    with open(path, "rb", 0) as file:
        file.read(10_000)
    basket = uproot.models.TBasket.Model_TBasket()
    basket._members, basket._file, basket._cursor = {"fNbytes": 5000, "fKeylen": 70, "fObjlen": 9000}, Space(file_path=path), Space(index=300)
    basket.read_members(None, None, {"read_basket": True})
    basket.read_members(None, None, {})
    basket.read_members(None, None, {"read_basket": False})
    basket._members = {"fNbytes": 70, "fKeylen": 70, "fObjlen": 0}
    basket.read_members(None, None, {})
    basket._members = {"fNbytes": 5000, "fKeylen": 70, "fObjlen": 9000}
    for name, end in (("told", {"_fEND": 123_456}), ("untold", {}), ("negative", {"_fEND": -1}), ("text", {"_fEND": "7"})):
        basket._file = Space(file_path=f"http://example.org/{name}.root", **end)
        basket.read_members(None, None, {})
    tuple_ = uproot.models.RNTuple.Model_ROOT_3a3a_RNTuple()
    tuple_._file = Space(file_path=path)
    tuple_.read_page(None, 7, Space(num_bytes=600, offset=10_000), 2500)
    tuple_.read_locator(Space(num_bytes=1, offset=1), 1, None)


def basket_far_behind(path):
    basket = uproot.models.TBasket.Model_TBasket()
    basket._members, basket._file = {"fNbytes": 5000, "fKeylen": 70, "fObjlen": 9000}, Space(file_path=path)
    basket._cursor = Space(index=1 << 48)
    basket.read_members(None, None, {})


def clusters(path):
    """Three clusters of one file, one of them with two pages, and one cluster of another file."""
    tuple_ = uproot.models.RNTuple.Model_ROOT_3a3a_RNTuple()
    for file, cluster in ((path, 7), (path, 7), (path, 8), (path, 8000), (path + "-2", 7)):
        tuple_._file = Space(file_path=file)
        tuple_.read_page(None, cluster, Space(num_bytes=1, offset=1), 1)


def cluster_without_number(path):
    tuple_ = uproot.models.RNTuple.Model_ROOT_3a3a_RNTuple()
    tuple_._file = Space(file_path=path)
    tuple_.read_page(None, "none", Space(num_bytes=1, offset=1), 1)


def staged(path, *inputs):
    """Copies inputs to one name, as scratch space has it, and uses places of each: (size, [places of baskets])."""
    basket = uproot.models.TBasket.Model_TBasket()
    tuple_ = uproot.models.RNTuple.Model_ROOT_3a3a_RNTuple()
    basket._members, basket._file = {"fNbytes": 500, "fKeylen": 70, "fObjlen": 900}, Space(file_path=path)
    tuple_._file = basket._file
    for size, places in inputs:
        with open(path, "wb", 0) as file:
            file.write(bytes(size))
        with open(path, "rb", 0) as file:
            file.read(100)
        for place in places:
            basket._cursor = Space(index=place)
            basket.read_members(None, None, {})
            tuple_.read_page(None, place, Space(num_bytes=1, offset=10**6 + place), 1)


class Stubborn(threading.Thread):
    def __delattr__(self, name):
        if name == "run":
            raise AttributeError(name)
        super().__delattr__(name)


def threads():
    """Threads whose run() is their class's, their own, and one that cannot be restored; records how each has it afterwards."""
    failed = []
    threading.excepthook = lambda args: failed.append(repr(args.exc_value))
    plain, own, stubborn = threading.Thread(target=spin, args=(0.01,)), threading.Thread(), Stubborn(target=spin, args=(0.01,))
    own.run = run = lambda: spin(0.01)
    for thread in (plain, own, stubborn):
        thread.start()
        thread.join()
        try:
            thread.start()
        except RuntimeError:
            pass
    threading.excepthook = threading.__excepthook__
    told["threads"] = ["run" in vars(plain), vars(own).get("run") is run, failed]


def contend():
    """Two threads that compute in Python take turns; starting and joining the other one is not GIL wait."""
    other = threading.Thread(target=spin, args=(0.1,))
    start = time.perf_counter_ns()
    other.start()
    started = time.perf_counter_ns()
    spin(0.1)
    done = time.perf_counter_ns()
    other.join()
    told["contend"] = started - start + time.perf_counter_ns() - done


def remote(local):
    """Requests with and without callback, one that fails, one that is refused, and one for a local file."""
    client = XRootD.client
    file, other, here = client.File(), client.File(), client.File()
    file.open("root://a.example:1094//store/x.root")
    other.open(url="root://b.example:1095//store/y.root?authz=secret")
    here.open(local)
    file.read(0, 1000)
    file.read(offset=-1, size=5)
    file.vector_read([(0, 10), (50, 30), (100, 60)])
    file.vector_read(chunks=[(0, 7)])
    here.read(0, 4000)
    file.stat()
    lock, answers, before = threading.Semaphore(0), [], time.perf_counter_ns()

    def arrived(status, response, *_):
        answers.append([status.ok, response and getattr(response, "size", None) or len(response)])
        lock.release()

    assert other.read(0, 2000, callback=arrived).ok and other.vector_read([(0, 300), (9, 5)], 0, arrived).ok
    assert not other.read(0, -1, 0, arrived).ok  # refused at once: there is no answer
    lock.acquire(), lock.acquire()
    waits = time.perf_counter_ns() - before
    time.sleep(0.01)
    told["remote"] = {"file": file.times, "other": other.times, "waits": waits, "answers": sorted(answers)}


def rpcs():
    """A call that this thread ends, a stream that another thread ends, one that fails, one that never ends, and a description of an error."""
    channel, ok = grpc._channel, grpc.StatusCode.OK
    before = time.perf_counter_ns()
    one = channel._RPCState({"status"})
    time.sleep(0.02)
    one.target = "dns:///a.example:8001"
    assert channel._handle_event(([b"x" * 1000], ok), one, len) == [1000]
    told["rpcs"], begins = {}, time.perf_counter_ns()
    stream, done = channel._RPCState({"status"}), threading.Semaphore(0)
    stream.target = "ipv4:10.0.0.1:8001"

    def receive():
        for event in ([b"x" * 30, b"x" * 4], None), ([b"x" * 500], None), ([], ok):
            time.sleep(0.01)
            channel._handle_event(event, stream, len)
        told["rpcs"]["ended"] = time.perf_counter_ns()
        time.sleep(0.01)
        channel._handle_event(([b"late"], ok), stream, len)
        done.release()

    threading.Thread(target=receive).start()
    done.acquire()
    told["rpcs"].update(waited=time.perf_counter_ns() - begins, late=time.perf_counter_ns() - told["rpcs"]["ended"])
    failed, lost = channel._RPCState({"status"}), channel._RPCState({"status"})
    failed.target = lost.target = "a.example:8001"
    channel._handle_event(([], grpc.StatusCode.NOT_FOUND), failed, len)
    channel._RPCState((), code=grpc.StatusCode.NOT_FOUND).target = "a.example:8001"
    del lost
    told["rpcs"]["all"] = time.perf_counter_ns() - before
    lock, after = threading.Lock(), time.perf_counter_ns()
    lock.acquire()
    lock.acquire(timeout=0.03)  # no call is under way
    told["rpcs"]["locked"] = time.perf_counter_ns() - after


def rpcs_of_a_loop():
    assert grpc.aio._call.Call("/sums").method == "/sums"


HDF5 = {"read": ("__getitem__", 0), "array": ("__array__",), "direct": ("read_direct", 0), "set": ("__setitem__", 0, 1),
        "write": ("write_direct", 0)}


def hdf5(method, filters):
    name, *args = HDF5[method]
    getattr(h5py._hl.dataset.Dataset(filters), name)(*args)


def read_tree(reader, start, stop, file="/data/t.root", tree="/dir;1/Events;23"):
    try:
        reader.read_tree(Space(object_path=tree, file=Space(file_path=file)), start, stop)
    except ValueError:
        pass


def instrumented():
    from crema import instrument

    with instrument.section("outer"):
        with instrument.section("inner"):
            spin(0.02)
    with instrument.memory("grown"):
        kept = bytearray(40 << 20)
        kept[::4096] = b"y" * len(kept[::4096])
        told["grown"] = len(kept)
    for v in (5.5, -2.0, 9.25):
        instrument.metric("jets", v)
    instrument.metric("bad", float("nan"))


FOUND = {"duration": 1.25, "mem_before_mb": 100.0, "mem_after_mb": 107.5, "timing": {"jets": 0.5}, "memory": {"jets": 3.0},
         "bytes": {"jets": 4321.0}, "custom_metrics": {"yield": 77.5},
         "sections": [{"section_name": "trig", "time_delta": 0.125}],
         "memory_sections": [{"section_name": "lep", "memory_start_gb": 1.0, "memory_end_gb": 1.5}]}


class Actor:
    def add(self, n):
        return n


def run_all(worker, directory):
    data = f"{directory}/a.root"
    Path(data).write_bytes(bytes(20_000))
    worker.run("plain-1", work)
    worker.run("old-1", work, old=True)
    worker.run("old-no-kind", work, old=True)
    worker.run("failing-1", fails)
    worker.run("failing-2", fails_because)
    worker.run("pooled", pooled, worker)
    worker.run("codecs", codecs, os.urandom(1 << 22))
    worker.run("codecs-shapes", codecs_of_other_shapes, span="codecs")
    for name, (call, _) in UNSEEN.items():
        worker.run(f"unseen-{name}", call, span="codecs")
    told["unseen"] = {name: unknown for name, (_, unknown) in UNSEEN.items()}
    worker.run("unpacked-elsewhere", read_by_other_threads, True)
    worker.run("unpacked-for-others", read_by_other_threads, False)
    asked_of_nobody.put(False)
    worker.run("http2", by_http2)
    worker.run("by-asyncio", by_asyncio)
    worker.run("importing", importing, directory, span="imports")
    worker.run("measured", measured)
    worker.run("around", lambda: [worker.run("within", spin, 0.01), spin(0.02)])
    worker.run("baskets", baskets, data)
    worker.run("basket-far-behind", basket_far_behind, data, span="clusters")
    worker.run("clusters", clusters, data, span="clusters")
    worker.run("cluster-unknown", cluster_without_number, data, span="clusters")
    for name, inputs in STAGED.items():
        worker.run(f"staged-{name}", staged, data + ".staged", *inputs, span="staged")
    worker.run("threads", threads)
    worker.run("contend", contend)
    worker.run("remote", remote, data, span="remote")
    worker.run("rpcs", rpcs, span="rpcs")
    worker.run("rpcs_of_a_loop", rpcs_of_a_loop)
    file = XRootD.client.File()
    worker.run("remote-line", lambda: [file.open("root://a.example:1094//store/x.root"), file.readline()], span="remote-unknown")
    worker.run("remote-copy", lambda: XRootD.client.FileSystem().copy("a", "b"), span="remote-unknown")
    worker.run("remote-copies", lambda: XRootD.client.CopyProcess().run(), span="remote-unknown")
    worker.run("remote-asked", lambda: XRootD.client.FileSystem().rm("/a"), span="remote-unknown")
    for method in HDF5:
        worker.run(f"hdf5-{method}", hdf5, method, {"gzip": 4})
    worker.run("hdf5-seen", lambda: [hdf5(m, {"shuffle": 1, "fletcher32": 1}) for m in ("read", "set")])
    reader = uproot._dask.UprootReadMixin()
    reader.form_mapping_info = Space(metadata={"dataset": "a-set"})
    worker.run("tree", lambda: [read_tree(reader, 100, 250), read_tree(reader, 100, 250)])
    worker.run("tree-differs", lambda: [read_tree(reader, 100, 250), read_tree(reader, 100, 251)])
    worker.run("tree-fails", lambda: read_tree(reader, -5, 250))
    worker.run("sections", instrumented)
    item = WorkItem("set-1", "/data/1.root", "Events", 1000, 2500)
    item.result = {"out": {"__roastcoffea_metrics__": [FOUND]},
                   "metrics": {"bytesread": 987654, "processtime": 2.75, "entries": 1500, "columns": {"b", "a"}}}
    worker.run("chunk-1", Runner._work_function, item, needs={"k-3": None, "k-1": None, "k-2": None})
    for name, value in (("bytesread", 11), ("processtime", 0.5), ("entries", 13)):
        only = WorkItem("set-1", "/data/1.root", "Events", 1000, 2500)
        only.result = {"out": {}, "metrics": {name: value}}
        worker.run(f"only-{name}", Runner._work_function, only)
    worker.run("chunk-2", work, node=Task(work, DataNode([1, item])))
    worker.run("meta-7", work, FileMeta("set-2", "/data/2.root", "Runs"))
    worker.run("merge", executor._reduce(), needs={"chunk-1": "the-span"})
    for span in ("first", "second"):  # calls in a loop have equal keys
        worker.run(("bag-1", 0), work, node=Task(work, DataNode([1, item])), span=span)
    worker.run("total-1", work, needs={("bag-1", 0): "first"}, span="first")
    worker.run("total-2", work, needs={("bag-1", 0): "second"}, span="first")
    worker.run("total-fetched", work, needs={("bag-1", 7): None}, span="first")
    worker.run("total-of-total", work, needs={("bag-1", 7): None, "total-1": "first"}, span="third")
    worker.run("total-of-nothing", work, needs={("bag-2", 0): None}, span="third")
    worker.run("spread", executor.scatter)
    worker.run("chunk-own", work, item, span="own-span", annotations={"span": 1})
    inside, outside = ({"span": {"name": ("crema",), "ids": ("block-1",)}, **more} for more in ({"crema_span": "block-1"}, {}))
    worker.run("chunk-block", work, item, span="block-1", annotations=inside)
    worker.run("chunk-moved", work, item, span="block-1", annotations={**inside, "crema_span": "block-2"})
    worker.run("chunk-alone", work, item, annotations={"crema_span": "block-2"})
    worker.run("chunk-outside", work, item, span="block-1", annotations=outside)
    worker.run("by-a-task", work, span="block-1", annotations=outside)
    own = {"processtime": 1.5, "entries": 77, "bytesread": 5, "columns": ["a"]}
    for name, result in (("report", {"report": own}), ("pair", ("out", own)), ("itself", own), ("half", {"processtime": 1.5}),
                         ("error", ValueError("no")), ("other", {"entries": 5})):
        worker.run(f"chunk-own-{name}", lambda item, result=result: result, item, span="own-span", annotations={"span": 1})
    worker.elsewhere("far-1", {"op": "task-finished", "start": 10.0, "stop": 12.5})
    worker.elsewhere("far-2", {"op": "task-erred"})
    dask._run_actor(Actor().add, (3,), {}, {"worker": worker}, "add")
    worker.run("x" * 200, work)


def run_without_dask():
    """As coffea's other executors do: the first chunk arms the process. Its isal has no known function."""
    threading.Thread(target=int).start()
    import isal.isal_zlib  # noqa: F401
    import pyarrow._s3fs  # noqa: F401

    pack = b"a pickle"
    for name in ("before", "after"):
        Runner.metadata_fetcher_root(FileMeta(f"set-{name}", "/data/2.root", "Runs"))
    for start, key in ((0, "first"), (100, "second"), (0, "again")):
        item = WorkItem("set-1", "/data/1.root", "Events", start, start + 100)
        item.result = {"out": {}, "metrics": {"bytesread": 11 + start, "entries": 100}}
        before = clocks()
        assert Runner._work_function(item, processor_instance=pack) is item.result
        told["tasks"][str(key)] = [before, clocks()]
    Runner.metadata_fetcher_root(FileMeta("set-2", "/data/2.root", "Runs"))
    print(json.dumps(told))


def main():
    threading.Thread(target=unpack_for_nobody, daemon=True).start()
    if sys.argv[2] == "executor":
        return run_without_dask()
    worker = Worker()
    told["armed"] = [clocks(), time.process_time_ns()]
    assert worker.start_unsafe() == "started"
    told["armed"].append(time.process_time_ns())
    told["first_child_ns"] = children_ns()
    if sys.argv[2] == "lacking":
        worker.run("plain-1", work)
        if "." in sys.argv[3]:
            importlib.import_module(sys.argv[3])
        else:
            uproot.models.RNTuple.Model_ROOT_3a3a_RNTuple().gpu_read_cluster_pages()
        worker.run("plain-2", work)
        return print(json.dumps(told))
    if sys.argv[2] == "io_uring":
        return io_uring(worker)
    if sys.argv[2] == "gpu":
        return gpu(worker)
    if sys.argv[2] == "killed":
        print(json.dumps(told), flush=True)
        worker.run("killed", lambda: [spin(0.1), time.sleep(float(sys.argv[3])), os.kill(os.getpid(), 9)])
    run_all(worker, sys.argv[1])
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"])
    told["children"] = children_ns() / 1e9
    told["snapshot"] = [time.clock_gettime_ns(time.CLOCK_BOOTTIME)]
    tornado.ioloop.made[0].function()
    told["snapshot"].append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    time.sleep(float(sys.argv[3]))
    told.update(end=clocks(), most=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, ended=time.process_time_ns())
    print(json.dumps(told))


main()
