"""A worker's process that ends while tasks in daemon threads read: the interpreter frees their states during the calls. Its last task runs in an
exit handler. Prints how many bytes that read."""

import atexit
import os
import pathlib
import sys
import threading
import time

import small_worker

data = pathlib.Path(sys.argv[1]) / "data"
data.write_bytes(bytes(8 << 20))
fd = os.open(data, os.O_RDONLY)


def deep(depth):
    if depth:
        deep(depth - 1)
    buffer = bytearray(8 << 20)
    while True:
        os.preadv(fd, [buffer], 0)


def last():
    print(sum(len(os.pread(fd, 1 << 20, 0)) for _ in range(20)), flush=True)


atexit.register(lambda: worker.run("last-1", last))  # before the first task: it runs after crema's handler
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
for n in range(6):
    threading.Thread(target=worker.run, args=(f"read-{n}", lambda: deep(20)), daemon=True).start()
time.sleep(0.5)
