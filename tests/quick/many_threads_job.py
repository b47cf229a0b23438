"""A worker's process in which many threads run tasks at the same time, each with sections, values, a codec and work in a pool. Every number is known."""

import concurrent.futures
import os
import sys
import threading
import zlib
from pathlib import Path

import small_worker

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import crema

THREADS, TASKS = 8, int(sys.argv[2])
packed = zlib.compress(bytes(5000))
Path(sys.argv[3]).write_bytes(bytes(1000))
file = os.open(sys.argv[3], os.O_RDONLY)


def read(size):
    return len(os.pread(file, size, 0))


def work(number):
    def run():
        with crema.section("outer"):
            with crema.section(f"inner {number % 5}"):
                read(100 + number % 7)
            zlib.decompress(packed)
        crema.metric("number", number)
        pool.submit(read, 50).result()
        other = threading.Thread(target=read, args=(10,))
        other.start()
        other.join()

    return run


def tasks_of(thread, worker):
    start.wait()
    for i in range(TASKS):
        worker.run(f"kind{i % 3}-{thread}-{i}", work(i))


worker = small_worker.Worker()
worker.start_unsafe()
start = threading.Barrier(THREADS)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    threads = [threading.Thread(target=tasks_of, args=(i, worker)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("{}")
