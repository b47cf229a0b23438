"""A worker's process whose tasks allocate known amounts on known lines, keep some of them and free the others: in their own thread, in a pool,
freed by another thread, grown by realloc(). Prints {LINE: [allocations, bytes, live, kept, at the peak]}, with bytes as requested from malloc()."""

import concurrent.futures
import ctypes
import json
import os
import signal
import sys
import threading
import time

import small_worker

try:
    import numpy
except ImportError:
    numpy = None

MB, HEADER = 1 << 20, bytes().__sizeof__()
libc = ctypes.CDLL(None)
for name, restype, argtypes in [("malloc", ctypes.c_void_p, [ctypes.c_size_t]), ("calloc", ctypes.c_void_p, [ctypes.c_size_t] * 2), ("free", None, [ctypes.c_void_p]),
                                ("realloc", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]), ("aligned_alloc", ctypes.c_void_p, [ctypes.c_size_t] * 2),
                                ("posix_memalign", ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t]),
                                ("reallocarray", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t])]:
    getattr(libc, name).restype, getattr(libc, name).argtypes = restype, argtypes
kept, told, now = [], {}, {}


class Live:
    """The same sums by hand: what is live on each line, and was when all together were at their maximum."""
    bytes, peak, at_peak = 0, 0, {}


def note(line, size, times=1):
    """`times` allocations of this size, of which one is live after each other"""
    mine = told.setdefault(line, [0, 0])
    mine[0] += times
    mine[1] += size * times
    change(line, size)


def change(line, size):
    now[line] = now.get(line, 0) + size
    Live.bytes += size
    if Live.bytes > Live.peak:
        Live.peak, Live.at_peak = Live.bytes, dict(now)


def keeps():
    kept.append(bytes(3 * MB))  # LINE cache
    note("cache", 3 * MB + HEADER)


def temporary():
    for _ in range(5):
        bytes(7 * MB)  # LINE temporary
    note("temporary", 7 * MB + HEADER, 5)
    change("temporary", -now["temporary"])


def little():
    for _ in range(1000):
        kept.append(bytes(MB // 2))  # LINE little


def every_way():
    p = ctypes.c_void_p()
    libc.posix_memalign(ctypes.byref(p), 64, 2 * MB)  # LINE aligned
    note("aligned", 2 * MB)
    q = libc.calloc(3, MB)  # LINE zeros
    note("zeros", 3 * MB)
    r = libc.aligned_alloc(4096, 4 * MB)  # LINE pages
    note("pages", 4 * MB)
    s = libc.reallocarray(None, 5, MB)  # LINE array
    note("array", 5 * MB)
    libc.calloc(1 << 40, 1 << 40)  # fails
    libc.malloc(1 << 60)
    time.sleep(0.05)  # while the agent reads
    for line, address in (("aligned", p), ("zeros", q), ("pages", r), ("array", s)):
        libc.free(address)
        change(line, -now[line])


def grows():
    p = libc.malloc(2 * MB)  # LINE begins
    note("begins", 2 * MB)
    for n in (4, 40, 8):
        p = libc.realloc(p, n * MB)  # LINE grows
        change(*(("begins", -2 * MB) if n == 4 else ("grows", -now["grows"])))
        note("grows", n * MB)
    assert libc.realloc(p, 1 << 60) is None  # fails: the block stays
    p = libc.realloc(p, 100)
    change("grows", -now["grows"])
    p = libc.realloc(p, 6 * MB)  # LINE again
    note("again", 6 * MB)
    kept.append(p)


handed = []


def hands_over():
    handed.append(libc.malloc(9 * MB))  # LINE handed
    note("handed", 9 * MB)
    thread = threading.Thread(target=lambda: libc.free(handed.pop()))
    thread.start()
    thread.join()
    change("handed", -now["handed"])


def pooled():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(libc.malloc, 2 * MB) for _ in range(4)]  # LINE pooled
        kept.extend(part.result() for part in parts)
    for _ in range(4):
        note("pooled", 2 * MB)


def arrays():
    a = numpy.ones(3 * MB)  # LINE ones
    note("ones", a.nbytes)
    kept.append(numpy.zeros((MB, 2), numpy.float32))  # LINE numpy
    note("numpy", kept[-1].nbytes)
    del a
    change("ones", -now["ones"])


def frees_the_first():
    change("cache", -len(kept.pop(0)) - HEADER)


def outside():
    kept.append(bytearray(16 * MB))


worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)
outside()  # no task's
outer, kept = kept, []
tasks = [keeps, temporary, keeps, every_way, grows, hands_over, pooled, little, keeps, frees_the_first, temporary] + ([arrays] if numpy else [])
for n, task in enumerate(tasks + [keeps]):
    if n == len(tasks):
        time.sleep(0.5)
    worker.run(f"{task.__name__}-{n}", task)
if sys.argv[1] != "killed":
    time.sleep(0.5)
rows = {line: [*sums, now[line], now[line], Live.at_peak.get(line, 0)] for line, sums in told.items()}
print(json.dumps(rows), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
