"""Tasks that read cold files from a throttled disk, and the kernel's word on how long they waited for it."""

import contextlib
import mmap
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import taskstats


def run_delay():
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1])


def blkio():
    with contextlib.suppress(OSError):
        return taskstats.blkio_ns(threading.get_native_id())


def looked_at(read, *args):
    """Seconds that this thread was off its core and not waiting for one, and what delay accounting says."""
    before = time.perf_counter(), time.thread_time(), run_delay(), blkio()
    read(*args)
    delay, device = run_delay(), blkio()
    wall = time.perf_counter() - before[0]
    return {"wall": wall, "blocked": wall - (time.thread_time() - before[1]) - (delay - before[2]) / 1e9,
            "device": None if device is None else (device - before[3]) / 1e9}


def whole(path, step):
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, step):
        pass
    os.close(fd)


def touched(path):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        for at in range(0, len(m), mmap.PAGESIZE):
            m[at]


def by_large_reads(path):
    return looked_at(whole, path, 1 << 20)


def by_small_reads(path):
    return looked_at(whole, path, 4096)


def by_mapping(path):
    return looked_at(touched, path)


def by_a_pool_thread(path):
    """The pool thread's numbers: that is what the task's own thread really waited for."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(looked_at, whole, path, 1 << 20).result()
