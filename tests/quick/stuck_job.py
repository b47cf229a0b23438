"""A worker's process, with the library preloaded, whose tasks hang, each in another way. Prints where, and waits to be killed."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import small_worker
import XRootD.client

folder, port = Path(sys.argv[1]), int(sys.argv[2])
os.mkfifo(folder / "opened.fifo")
os.mkfifo(folder / "read.fifo")
writer = os.open(folder / "read.fifo", os.O_RDWR)  # keeps it open, so that a read of it waits
locks = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def silent_server():
    urllib.request.urlopen(f"http://127.0.0.1:{port}/a.root")


def silent_server_with_timeout():
    urllib.request.urlopen(f"http://127.0.0.1:{port}/b.root", timeout=3600)


def fifo_open():
    open(folder / "opened.fifo", "rb")


def fifo_read():
    os.read(os.open(folder / "read.fifo", os.O_RDONLY), 10)


def semaphore():
    libc, never = ctypes.CDLL(None), ctypes.create_string_buffer(32)
    libc.sem_init(never, 0, 0)
    libc.sem_wait(never)


def futex():
    """As locks of Rust wait; FUTEX_WAIT_PRIVATE."""
    word = ctypes.c_int(0)
    ctypes.CDLL(None).syscall(202 if os.uname().machine == "x86_64" else 98, ctypes.byref(word), 128, 0, None, None, 0)


def lock_one():
    cycle(*locks)


def lock_two():
    cycle(*reversed(locks))


def cycle(first, second):
    first.acquire()
    both.wait()
    second.acquire()


def endless():
    while True:
        pass


def child():
    subprocess.Popen(["sleep", "100"]).wait()


def not_intercepted():
    """A call that the library does not intercept: the kernel's own read."""
    libc = ctypes.CDLL(None)
    libc.syscall(0 if os.uname().machine == "x86_64" else 63, writer, ctypes.create_string_buffer(10), 10)


def imports():
    import hangs_while_imported  # noqa: F401


def xrootd():
    XRootD.client.File().open("root://black-hole:1094//store/a.root?authz=secret")


def short():
    time.sleep(0.01)


sys.path.insert(0, str(folder))
(folder / "hangs_while_imported.py").write_text("import threading\nthreading.Event().wait()\n")
worker = small_worker.Worker()
worker.start_unsafe()
tasks = {name: globals()[name] for name in sys.argv[3].split(",")}
for name, function in tasks.items():
    threading.Thread(target=worker.run, args=(name, function), daemon=True).start()
print(json.dumps({"pid": os.getpid()}), flush=True)
sys.stdin.read()
os._exit(0)
