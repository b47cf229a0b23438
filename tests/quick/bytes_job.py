"""A worker's process whose tasks read files and receive from a socket on known lines, in calls of a byte to megabytes, some in pool threads.
Prints {LINE: its bytes}."""

import asyncio
import concurrent.futures
import json
import os
import pathlib
import socket
import sys
import threading
import time

import small_worker

MB = 1 << 20
data = pathlib.Path(sys.argv[1]) / "data"
data.write_bytes(os.urandom(8 * MB))
fd = os.open(data, os.O_RDONLY)
moved = {}


def note(line, n):
    moved[line] = moved.get(line, 0) + n


def in_calls_of(size, total, pause=0):
    n = 0
    while n < total:
        n += len(os.pread(fd, size, n % (8 * MB - size)))  # LINE pread
        if pause:
            time.sleep(pause)
    return n


def deep(depth, size, total):
    return deep(depth - 1, size, total) if depth else in_calls_of(size, total)


def reads():
    note("megabytes", in_calls_of(3 * MB, 192 * MB, pause=0.002))  # LINE megabytes
    for _ in range(4):
        note("baskets", in_calls_of(20_000, 24 * MB))  # LINE baskets
        note("small", in_calls_of(1000, 8 * MB))  # LINE small
        note("deep", deep(40, 50_000, 16 * MB))  # LINE deep


def buffered():
    with open(data, "rb") as file:
        note("buffered", sum(len(file.read(128)) for _ in range(65_536)))  # LINE buffered


def pooled():
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        parts = [pool.submit(in_calls_of, 100_000, 8 * MB) for _ in range(4)]  # LINE first
        parts += [pool.submit(in_calls_of, 100_000, 16 * MB) for _ in range(4)]  # LINE second
        sizes = [part.result() for part in parts]
    note("first", sum(sizes[:4]))
    note("second", sum(sizes[4:]))


def receive(total):
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(total.to_bytes(8, "big"))
        n = 0
        while n < total:
            n += len(client.recv(30_000))
    return n


def receives():
    note("little", receive(8 * MB))  # LINE little
    note("much", receive(24 * MB))  # LINE much


async def receive_in_loop(total):
    reader, writer = await asyncio.open_connection(*server.getsockname())
    writer.write(total.to_bytes(8, "big"))
    n = 0
    while n < total:
        n += len(await reader.read(1 << 20))
    writer.close()
    return n


def looped():
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    three = [asyncio.run_coroutine_threadsafe(receive_in_loop(4 * MB), loop) for _ in range(3)]  # LINE three
    note("three", sum(future.result() for future in three))
    note("one", asyncio.run_coroutine_threadsafe(receive_in_loop(20 * MB), loop).result())  # LINE one
    loop.call_soon_threadsafe(loop.stop)


def serve_one(client):
    with client:
        client.sendall(bytes(int.from_bytes(client.recv(8), "big")))


def serve():
    while True:
        threading.Thread(target=serve_one, args=server.accept()[:1], daemon=True).start()


server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, daemon=True).start()
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
os.pread(fd, 3 * MB, 0)  # outside tasks
for n, task in enumerate((reads, buffered, pooled, receives, looped)):
    worker.run(f"{task.__name__}-{n}", task)
time.sleep(0.5)
print(json.dumps(moved), flush=True)
