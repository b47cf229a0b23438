"""Evicts files from the page cache and reports which of their pages are in it."""

import contextlib
import ctypes
import mmap
import os
import sys
import time

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def page_bytes(path):
    """The file's size in whole pages: what the disk delivers when all of it is read."""
    return -(-os.path.getsize(path) // PAGE) * PAGE


class Mapped:
    """A file mapped to inspect its pages; mapping reads nothing."""

    def __init__(self, path):
        self.path, self.size = path, os.path.getsize(path)

    def __enter__(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.address = libc.mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        if self.address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap", self.path)
        return self

    def __exit__(self, *_):
        libc.munmap(self.address, self.size)

    def pages(self):
        found = ctypes.create_string_buffer(-(-self.size // PAGE))
        if libc.mincore(self.address, self.size, found) != 0:
            raise OSError(ctypes.get_errno(), "mincore", self.path)
        return bytes(b & 1 for b in found.raw)

    def lock(self):
        """Locks the pages in memory; False if the limit on locked memory does not allow it."""
        return libc.mlock(self.address, self.size) == 0


def resident_pages(path):
    """One byte per page: 1 if it is in the page cache."""
    with Mapped(path) as file:
        return file.pages()


@contextlib.contextmanager
def kept_warm(*paths):
    """Keeps the files in the page cache: kernels that reclaim memory proactively
    (DAMON) evict pages within seconds."""
    warm(*paths)
    with contextlib.ExitStack() as stack:
        for path in paths:
            stack.enter_context(Mapped(path)).lock()
        yield


def resident_bytes(*paths):
    return sum(sum(resident_pages(path)) for path in paths) * PAGE


def drop(*paths):
    """Evicts the files from the page cache; dirty pages cannot be evicted, so they are written first."""
    for path in paths:
        for _ in range(50):
            fd = os.open(path, os.O_RDONLY)
            try:
                with contextlib.suppress(OSError):  # read-only file systems have nothing to write
                    os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
            if resident_bytes(path) == 0:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"{resident_bytes(path)} bytes of {path} stay in the page cache")


def warm(*paths):
    for path in paths:
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass


if __name__ == "__main__":
    drop(*sys.argv[1:])
