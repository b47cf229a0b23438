"""XRootD by task: bytes to the byte of what the server's trace says that it sent, waits behind a relay
that holds answers back."""

import os
import time

import jobs
import pytest
from distributed import Client, span

SIZES = {"a.bin": 3_000_000, "b.bin": 5_000_001, "c.bin": 4_000_003}
MS = 1e-3


# --- on a worker

def wait_for(others, folder, name):
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < others:
        time.sleep(0.005)


def read_sync(url, ranges):
    from XRootD import client

    with client.File() as file:
        assert file.open(url)[0].ok
        return sum(len(file.read(offset, size)[1]) for offset, size in ranges)


def read_callback(url, ranges):
    import threading

    from XRootD import client

    got, done = [], threading.Semaphore(0)

    def answer(status, response, hosts):
        got.append(len(response))
        done.release()

    with client.File() as file:
        assert file.open(url)[0].ok
        for offset, size in ranges:
            assert file.read(offset, size, callback=answer).ok
        for _ in ranges:
            done.acquire()
    return sum(got)


def vector_sync(url, ranges):
    from XRootD import client

    with client.File() as file:
        assert file.open(url)[0].ok
        return file.vector_read(ranges)[1].size


def vector_callback(url, ranges):
    import threading

    from XRootD import client

    got, done = [], threading.Event()

    def answer(status, response, hosts):
        got.append(sum(chunk.length for chunk in response.chunks))
        done.set()

    with client.File() as file:
        assert file.open(url)[0].ok
        assert file.vector_read(chunks=ranges, callback=answer).ok
        done.wait()
    return got[0]


def fsspec_get(url, count=1):
    import fsspec

    files, path = fsspec.core.url_to_fs(url)
    return sum(len(files.cat_file(path)) for _ in range(count))


def uproot_read(url, handler, folder=None, name=None, others=1, columns=("MET_pt", "Muon_pt", "Jet_eta")):
    import uproot

    options = {"handler": getattr(uproot, handler)} if handler else {}
    with uproot.open({url: "Events"}, **options) as tree:
        if folder:
            wait_for(others, folder, name)
        return sum(len(tree[column].array()) for column in columns)


# --- the tests

@pytest.fixture(scope="module")
def net(tmp_path_factory, homes, data):
    import cluster
    from xrootd import XRootD  # here: the workers import this module, too

    home = tmp_path_factory.mktemp("xrootd")
    files = home / "files"
    files.mkdir()
    for name, size in SIZES.items():
        (files / name).write_bytes(os.urandom(size))
    for i, codec in enumerate(("zlib", "zstd")):
        os.link(data[codec], files / f"nano{i}.root")
    for each in files.iterdir():
        each.chmod(0o644)
    with XRootD(home / "server", files) as server, cluster.Cluster(home / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(nthreads=6)
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            yield server, procs, client


def run(net, name, calls, in_turn=False):
    """Runs (function, args) each as a task of a prefix of its own; returns their rows in order, what
    they returned, and the report."""
    _, procs, client = net
    prefixes = [f"{name}{i}" for i in range(len(calls))]
    with span(name):
        futures = []
        for prefix, (function, *args) in zip(prefixes, calls):
            futures.append(client.submit(function, *args, pure=False, key=jobs.unique(prefix)))
            if in_turn:
                futures[-1].result(timeout=120)
        results = client.gather(futures)
    report = jobs.settled(procs, lambda r: all(jobs.tasks_of(r, p) for p in prefixes))
    rows = [jobs.tasks_of(report, p) for p in prefixes]
    assert all(len(r) == 1 for r in rows)
    return [r[0] for r in rows], results, report


RANGES = [(0, 1000), (70_000, 200_000), (1_000_000, 1)]


@pytest.mark.parametrize("function", [read_sync, read_callback, vector_sync, vector_callback])
def test_reads_of_every_kind(net, function):
    server, since = net[0], net[0].mark()
    (row,), (got,), _ = run(net, function.__name__, [(function, server.url("/a.bin"), RANGES)])
    server.mark()
    sent = server.sent("/a.bin", since)
    assert got == sent.data == sum(size for _, size in RANGES)
    assert (sent.requests, sent.parts) == (1 if "vector" in function.__name__ else 3, 0)
    assert row["network_read_bytes"] == sent.wire


@pytest.mark.parametrize("handler", [None, "XRootDSource"])
def test_two_files_at_once(net, tmp_path, handler):
    server, since = net[0], net[0].mark()
    calls = [(uproot_read, server.url(f"/nano{i}.root"), handler, str(tmp_path), str(i), 2) for i in range(2)]
    rows, _, _ = run(net, f"two{handler}", calls)
    server.mark()
    for i, row in enumerate(rows):
        sent = server.sent(f"/nano{i}.root", since)
        assert sent.requests > 3 and sent.data > 100_000
        assert row["network_read_bytes"] == sent.told
