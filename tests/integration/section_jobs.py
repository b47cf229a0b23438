"""What test_sections.py runs on workers: parts of known cost, in sections."""

import os
import time
import zlib


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def read_file(path, size=1 << 17):
    n = 0
    fd = os.open(path, os.O_RDONLY)
    while block := os.read(fd, size):
        n += len(block)
    os.close(fd)
    return n


def known(path, packed):
    """0.3 s of CPU in a, 0.2 s of sleep in b, a file in c, known bytes unpacked in d within c's sibling."""
    import crema

    with crema.section("all"):
        with crema.section("a"):
            spin(0.3)
        with crema.section("b"):
            time.sleep(0.2)
        with crema.section("c"):
            n = read_file(path)
            with crema.section("d"):
                zlib.decompress(packed)
    return n


def warm():
    import crema

    crema.metric("warm", 1)
