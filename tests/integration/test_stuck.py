"""`crema stuck` with real libraries: XRootD's and fsspec's clients, a file server that never answers, a child that hangs after a
fork, under Dask. Each is reported with its file, peer or process and with its line."""

import ctypes
import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import cluster
import pytest
import stuck_tasks
from distributed import Client

FILE = Path(__file__).with_name("stuck_tasks.py")
SOURCE = FILE.read_text().splitlines()


def line_of(words):
    return next(i for i, text in enumerate(SOURCE, 1) if words in text)


class FileServer:
    """A file system in user space whose server accepts no requests."""

    def __init__(self, folder):
        self.folder, self.libc = folder, ctypes.CDLL(None, use_errno=True)
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        if self.libc.mount(b"silent", str(folder).encode(), b"fuse", 0, f"fd={self.fd},rootmode=40000,user_id=0,group_id=0".encode()):
            raise OSError(ctypes.get_errno(), "mount")

    def end(self):
        self.libc.umount2(str(self.folder).encode(), 2)
        os.close(self.fd)  # waiting calls get an error


@pytest.fixture
def hanging(tmp_path, homes):
    (tmp_path / "mnt").mkdir()
    server = FileServer(tmp_path / "mnt")
    silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [s.getsockname()[1] for s in silent]
    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(nthreads=3)
        procs.start_worker(nthreads=1)  # XRootD's client would wait in the fork, with the GIL
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            one, three = sorted(client.nthreads(), key=client.nthreads().get)
            tasks = {"xrootd": client.submit(stuck_tasks.xrootd_open, ports[0], key="xrootd", workers=three), "fsspec": client.submit(stuck_tasks.fsspec_read, ports[1], key="fsspec", workers=three),
                     "server": client.submit(stuck_tasks.file_server, str(tmp_path / "mnt" / "a.root"), key="server", workers=three), "fork": client.submit(stuck_tasks.forked_with_a_lock, key="fork", workers=one)}
            try:
                yield procs, ports, tmp_path, tasks
            finally:
                server.end()
                procs.stop_workers()
    for s in silent:
        s.close()


def test_each_is_named(hanging):
    procs, ports, folder, tasks = hanging

    def rows():
        with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/live.json", timeout=10) as answer:
            found = {row["key"]: row for row in json.loads(answer.read())["doing"] if not row["pool"]}
        return found if set(found) == set(tasks) and all((r["place_seconds"] or 0) > 1 for r in found.values()) else None

    limit = time.monotonic() + 60  # imports of fsspec and XRootD on a busy machine
    while not (found := rows()) and time.monotonic() < limit:
        time.sleep(0.3)
    assert found, [task.status for task in tasks.values()]
    assert (found["xrootd"]["kind"], found["xrootd"]["object"]) == ("url", f"root://127.0.0.1:{ports[0]}//store/black.root")
    assert (found["server"]["kind"], found["server"]["object"]) == ("file", str(folder / "mnt" / "a.root"))
    assert found["fork"]["call"] in ("waitpid", "wait4") and found["fork"]["kind"] == "process"
    assert found["fsspec"]["kind"] == "lock"  # in its place fsspec's loop waits for the server
    for key, words, name in (("xrootd", "File().open(", "xrootd_open"), ("server", "os.stat(path)", "file_server"), ("fork", "os.waitpid(child", "forked_with_a_lock"),
                             ("fsspec", "with fsspec.open(", "fsspec_read")):
        assert found[key]["line"].rsplit(":", 1)[1].split()[1:] == [name], found[key]
        assert found[key]["line"].startswith(f"{FILE}:{line_of(words)} "), found[key]
    out = subprocess.run([cluster.ROOT / "build/crema", "stuck", "--longer", "1", "--http", f"127.0.0.1:{procs.http_port}"], env={**os.environ, **procs.env}, capture_output=True, text=True)
    assert out.returncode == 0 and "secret" not in out.stdout and all(f"  {key}\n" in out.stdout for key in tasks), out
