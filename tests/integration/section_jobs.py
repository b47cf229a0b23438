"""What test_sections.py runs on workers: work of known cost, in sections."""

import asyncio
import os
import signal
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import crema
from jobs import read_whole


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def known(path, packed):
    """0.3 s of CPU in a, 0.2 s of sleep in b, a file in c, and known bytes decompressed in d inside it."""
    with crema.section("all"):
        with crema.section("a"):
            spin(0.3)
        with crema.section("b"):
            time.sleep(0.2)
        with crema.section("c"):
            n = read_whole(path, 1 << 17)
            with crema.section("d"):
                zlib.decompress(packed)
    return n


@crema.section("fails")
def fail(path):
    read_whole(path)
    with crema.section("inside"):
        raise ValueError("on purpose")


def catches(path):
    try:
        fail(path)
    except ValueError as error:
        with crema.section("after"):
            return str(error)


@crema.section("down")
def recurse(depth):
    return 1 + recurse(depth - 1) if depth > 1 else 1


def suspended():
    """A generator that is suspended inside its section, in the middle of another section."""
    def parts():
        with crema.section("generator"):
            yield 1
            yield 2

    left = parts()
    with crema.section("consumer"):
        next(left)
        spin(0.05)
    next(left)
    left.close()
    return "closed"


async def asynchronous():
    with crema.section("never"):
        await asyncio.sleep(0.01)
    crema.metric("never", 1)


def in_pool(path, threads):
    def piece(_):
        with crema.section("piece"):
            return read_whole(path)

    with crema.section("pool"), ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(piece, range(8)))


def many(path, count):
    again = crema.section("again")
    for _ in range(count):
        with again:
            read_whole(path)
            with again:
                pass


def memory(nbytes):
    with crema.memory("block"):
        block = b"x" * nbytes
    with crema.memory("nothing"):
        pass
    with crema.section("keeps"):
        large = [b"x" * (4 << 20) for _ in range(3)]
    with crema.section("frees"):
        del large[0]
    with crema.section("temporary"):
        b"x" * (2 << 20)
    return len(block)


def metrics(values):
    for value in values:
        crema.metric("jets", value)
    crema.metric("text", "no number")
    crema.metric("endless", float("inf"))
    crema.metric("numpy", __import__("numpy").float32(1.5))


def killed_once(marker, path):
    """The first attempt is killed inside a section."""
    with crema.section("ended"):
        read_whole(path)
    with crema.section("open"):
        if not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def names(texts):
    for text in texts:
        with crema.section(text):
            pass


def functions():
    import sys

    import crema.instrument as instrument

    return [type(getattr(instrument, n)).__name__ for n in ("_begin", "_begin_memory", "_end", "_value")], sorted(
        m for m in sys.modules if m.split(".")[0] == "crema")
