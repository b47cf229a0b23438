"""A worker's process with twenty small programs, each a task that computes or waits in a known line. Prints the seconds of each by its own clock."""

import asyncio
import fcntl
import functools
import hashlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
import zlib

import small_worker

unit = float(sys.argv[1])
number, data = range(20_000), os.urandom(100_000)  # long beside the question for more
held, server = threading.Lock(), socket.create_server(("127.0.0.1", 0))
held.acquire()


def until():
    """True for the unit. By a clock that does not enter the kernel: where others compete for the cores, it takes the core away from a thread that
    asks for its own CPU, and all of the wait would be in this line."""
    end = time.perf_counter() + unit
    return lambda: time.perf_counter() < end


def loop():
    more = until()
    while more():
        sum(number)  # LINE loop


def comprehension():
    more = until()
    while more():
        [n * n for n in number]  # LINE comprehension


def generator():
    more = until()
    while more():
        sum(n * n for n in number)  # LINE generator


def nested():
    more = until()

    def inner():
        sum(number)  # LINE nested

    while more():
        inner()


class Histogram:
    def fill(self, more):
        while more():
            sum(number)  # LINE method

    @property
    def edges(self):
        return sorted(sum(number) for _ in range(5))  # LINE attribute


def method():
    Histogram().fill(until())


def attribute():
    more, histogram = until(), Histogram()
    while more():
        histogram.edges


def function_as_value():
    more = until()
    compute = lambda: [sum(number) for _ in range(5)]  # noqa: E731 # LINE function_as_value
    while more():
        compute()


def recursion(depth=40, more=None):
    more = more or until()
    if depth:
        return recursion(depth - 1, more)
    while more():
        sum(number)  # LINE recursion


def after_an_error():
    more = until()
    try:
        raise ValueError
    except ValueError:
        pass
    finally:
        while more():
            sum(number)  # LINE after_an_error


class Block:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        more = until()
        while more():
            sum(number)  # LINE end_of_a_block


def end_of_a_block():
    with Block():
        pass


def wrapped(function):
    @functools.wraps(function)
    def call():
        return function()
    return call


@wrapped
def decorated():
    more = until()
    while more():
        sum(number)  # LINE decorated


async def once():
    """Without a turn of the loop, which enters the kernel."""


async def compute():
    more = until()
    while more():
        await once()
        [sum(number) for _ in range(5)]  # LINE coroutine


def coroutine():
    asyncio.run(compute())


def key_of_a_sort():
    more = until()
    while more():
        sorted(number[:500], key=lambda n: sum(range(n)))  # LINE key_of_a_sort


def compression():
    more = until()
    while more():
        zlib.compress(data)  # LINE compression


def hashing():
    more = until()
    while more():
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10_000)  # LINE hashing


def asleep():
    time.sleep(unit)  # LINE asleep


def locked():
    held.acquire(timeout=unit)  # LINE locked


def event():
    threading.Event().wait(unit)  # LINE event


def answer():
    with socket.create_connection(server.getsockname()) as mine, server.accept()[0] as theirs:
        threading.Timer(unit, theirs.sendall, [b"x"]).start()
        began = time.monotonic()
        mine.recv(1)  # LINE answer
        return time.monotonic() - began


def file_lock():
    with tempfile.NamedTemporaryFile() as mine, open(mine.name) as theirs:
        fcntl.flock(mine, fcntl.LOCK_EX)
        threading.Timer(unit, fcntl.flock, [mine, fcntl.LOCK_UN]).start()
        began = time.monotonic()
        fcntl.flock(theirs, fcntl.LOCK_EX)  # LINE file_lock
        return time.monotonic() - began


PROGRAMS = [loop, comprehension, generator, nested, method, attribute, function_as_value, recursion, after_an_error, end_of_a_block, decorated, coroutine,
            key_of_a_sort, compression, hashing, asleep, locked, event, answer, file_lock]
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
spent = {}
worker.run("settle-0", lambda: [sum(number) for _ in range(2000)])  # samples after a pause are far apart
for program in PROGRAMS:
    began = time.monotonic()
    alone = worker.run(f"{program.__name__}-0", program)  # what prepares a wait may have to wait for a core
    spent[program.__name__] = alone or time.monotonic() - began
time.sleep(1)
print(json.dumps({"spent": spent}), flush=True)
os._exit(0)
