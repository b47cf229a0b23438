"""A worker's process whose tasks open files on known lines, in every way that Python has. Prints {LINE: the bytes it moved}."""

import ctypes
import json
import os
import pathlib
import shutil
import sys
import threading

import small_worker

folder = pathlib.Path(sys.argv[1])
BLOCK = b"x" * 70_000
for name in "abcdefgh":
    (folder / name).write_bytes(BLOCK * 2)
early = open(folder / "e", "rb")  # outside tasks
libc = ctypes.CDLL(None)
moved = {}


def note(line, read=0, wrote=0, opens=1):
    was = moved.setdefault(line, [0, 0, 0])
    moved[line] = [was[0] + opens, was[1] + read, was[2] + wrote]


def reads():
    with open(folder / "a", "rb", buffering=0) as file:  # LINE builtin
        note("builtin", sum(len(file.read(50_000)) for _ in range(3)))
    note("pathlib", len((folder / "a").read_bytes()))  # LINE pathlib
    fd = os.open(str(folder / "b"), os.O_RDONLY)  # LINE os
    note("os", len(os.read(fd, 1234)) + len(os.pread(fd, 1000, 60_000)))
    copy = os.dup(fd)
    assert os.read(copy, 500)
    os.close(copy)
    os.close(fd)
    with open(os.fsencode(folder / "g"), "rb") as file:
        assert len(file.read()) == 140_000


def another_thread():
    file = open(folder / "c", "rb", buffering=0)  # LINE thread
    thread = threading.Thread(target=lambda: note("thread", len(file.read(99_000))))
    thread.start()
    thread.join()
    file.close()


def writes():
    with open(folder / "new", "wb", buffering=0) as file:  # LINE write
        note("write", wrote=file.write(BLOCK))
    shutil.copyfile(folder / "d", folder / "copy")  # LINE copy


def not_opened_here():
    assert len(early.read()) == len(between.read()) == 140_000
    try:
        open(folder / "missing")
    except OSError:
        pass
    fd = libc.open(str(folder / "f").encode(), os.O_RDONLY)
    assert len(os.read(fd, 3000)) == 3000
    os.close(fd)
    with open(folder / "a", "rb", buffering=0, opener=lambda path, flags: libc.open(str(folder / "f").encode(), flags)) as file:
        assert len(file.read(100)) == 100


def unread():
    open(folder / "a", "rb").close()
    open(folder / "f", "rb", buffering=0).close()
    fd = libc.open(str(folder / "f").encode(), os.O_RDONLY)
    assert len(os.read(fd, 3000)) == 3000
    os.close(fd)


def gone():
    file = open(folder / "c", "rb", buffering=0)  # LINE gone
    note("gone", len(file.read(77_000)))
    print(json.dumps(moved), flush=True)
    os._exit(0)


worker = small_worker.Worker()
worker.start_unsafe()
if "GONE" in os.environ:
    worker.run("gone-1", gone)
between = open(folder / "h", "rb")  # measured, and outside tasks
for n, task in enumerate((reads, reads, another_thread, writes, not_opened_here, unread)):
    worker.run(f"{task.__name__}-{n}", task)
print(json.dumps(moved))
