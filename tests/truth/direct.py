"""A task that reads a file with O_DIRECT."""

import mmap
import os


def read_whole(path, size=1 << 20):
    n = 0
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, size) as buffer:  # page-aligned, as O_DIRECT requires
            while got := os.readv(fd, [buffer]):
                n += got
    finally:
        os.close(fd)
    return n
