"""Tasks that read cold files from a throttled disk, and the kernel's own count of how long they waited for it."""

import contextlib
import ctypes
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
    """Seconds that this thread was off its core without waiting for one, and the delay accounting's value."""
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


def mapped_unseen(path):
    """Maps as the loader maps libraries: through no call that can be intercepted."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_void_p
    fd, size = os.open(path, os.O_RDONLY), os.path.getsize(path)
    private, read = mmap.MAP_PRIVATE, mmap.PROT_READ
    at = libc.syscall(9, None, ctypes.c_size_t(size), read, private, fd, ctypes.c_size_t(0))
    memory = (ctypes.c_char * size).from_address(at)
    for i in range(0, size, mmap.PAGESIZE):
        memory[i]
    libc.syscall(11, ctypes.c_void_p(at), ctypes.c_size_t(size))
    os.close(fd)


def by_the_loader(path):
    return looked_at(mapped_unseen, path)


def by_a_pool_thread(path):
    """The pool thread's numbers: they are what the task's own thread really waited for."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(looked_at, whole, path, 1 << 20).result()
