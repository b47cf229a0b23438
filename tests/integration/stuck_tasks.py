"""Tasks that hang, for test_stuck.py."""

import os
import threading


def xrootd_open(port):
    from XRootD.client import File

    return str(File().open(f"root://127.0.0.1:{port}//store/black.root?authz=secret"))


def fsspec_read(port):
    import fsspec

    with fsspec.open(f"http://127.0.0.1:{port}/silent.root") as file:
        return file.read(10)


def file_server(path):
    return os.stat(path).st_size


def forked_with_a_lock():
    lock = threading.Lock()
    lock.acquire()
    child = os.fork()
    if not child:
        lock.acquire()  # the thread that could release it is not in this process
    return os.waitpid(child, 0)
