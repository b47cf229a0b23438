"""A worker's process, with the library preloaded, whose tasks run code in other interpreters of the process. With the argument "early" the first
interpreter and the first thread start before the library has found Python. Prints what the tasks read and received."""

import ctypes
import json
import os
import sys

try:
    import _interpreters as interpreters  # since 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

folder, early = sys.argv[1], "early" in sys.argv


def run(interpreter, source):
    """Runs the source; depending on the version, an error there is raised or returned."""
    how = getattr(interpreters, "run_string", None) or interpreters.exec
    raised = how(interpreter, source)
    assert raised is None, raised


def thread_without_the_gil():
    """Starts a thread as a C library does, before any Python thread was started."""
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.sched_yield.argtypes = libc.sched_yield.restype = None
    assert libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.sched_yield, ctypes.c_void_p), None) == 0
    libc.pthread_join(thread, None)


if early:
    run(interpreters.create(), "import zlib")
    thread_without_the_gil()
    options = {"isolated": False} if sys.version_info < (3, 12) else {}  # in which they may start threads
    run(interpreters.create(**options), "import threading\nthread = threading.Thread(target=int)\nthread.start()\nthread.join()")

import small_worker


def file_of(name, size):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(os.urandom(size))
    return path


READ = """
def read(path):
    import os
    fd, n = os.open(path, os.O_RDONLY), 0
    while block := os.read(fd, 7000):
        n += len(block)
    os.close(fd)
    return n
"""
exec(READ)


def plain():
    import zlib
    return read(files["plain"]) + len(zlib.decompress(zlib.compress(bytes(1000))))


def inside():
    """Runs in the task's own thread. The library must later find in the main interpreter what is first imported here."""
    mine = interpreters.create()
    run(mine, f"{READ}\nassert read({files['inside']!r}) == 50_000\nimport zlib, multiprocessing.pool\nzlib.decompress(zlib.compress(bytes(1000)))")
    interpreters.destroy(mine)
    return 50_000


def threads():
    from multiprocessing.pool import ThreadPool
    with ThreadPool(2) as pool:
        return sum(pool.map(read, [files["threads"]] * 3))


def pool():
    """Its functions and their arguments are pickled."""
    from concurrent.futures import InterpreterPoolExecutor
    with InterpreterPoolExecutor(2) as executor:
        done = [executor.submit(subinterpreters_work.read, files["pool"]) for _ in range(3)]
        refused = executor.submit(subinterpreters_work.fails)
        assert isinstance(refused.exception(), ValueError)
        return sum(future.result() for future in done)


files = {name: file_of(name, size) for name, size in (("plain", 30_000), ("inside", 50_000), ("threads", 20_000), ("pool", 40_000))}
sys.path.insert(0, folder)
with open(os.path.join(folder, "subinterpreters_work.py"), "w") as module:
    module.write(READ + "\ndef fails():\n    raise ValueError('on purpose')\n")
import subinterpreters_work

worker = small_worker.Worker()
worker.start_unsafe()
tasks = {"plain-1": plain, "inside-1": inside, "threads-1": threads, **({"pool-1": pool} if sys.version_info >= (3, 14) else {}), "plain-2": plain}
print(json.dumps({key: worker.run(key, function) for key, function in tasks.items()}), flush=True)
