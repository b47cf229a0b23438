"""crema.section, crema.memory and crema.metric on measured workers, against known work."""

import os
import zlib
from pathlib import Path

import cold
import jobs
import pytest
import section_jobs
from distributed import Client, span

ROOT = Path(__file__).resolve().parents[2]
RAW = bytes(range(256)) * 8000
PACKED = zlib.compress(RAW)


class Bench:
    """One measured worker that can import crema, and runs of named tasks in spans of their own."""

    def __init__(self, procs, client):
        self.procs, self.client = procs, client

    def run(self, name, function, *args, times=1, enough=lambda report: True):
        """The result of the last one, its rows, and the report."""
        with span(name):
            for _ in range(times):
                result = self.client.submit(function, *args, pure=False, key=jobs.unique(name)).result(timeout=120)
        report = jobs.settled(self.procs, lambda r: len(jobs.tasks_of(r, name)) == times and enough(r))
        rows = jobs.tasks_of(report, name)
        assert len(rows) == times
        return result, rows, report


@pytest.fixture(scope="module")
def bench(tmp_path_factory, homes):
    import cluster

    env = {**homes, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), homes["PYTHONPATH"]])}
    with cluster.Cluster(tmp_path_factory.mktemp("sections") / "cluster", env) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(nthreads=2)
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            client.run(section_jobs.warm)
            yield Bench(procs, client)


@pytest.fixture(scope="module")
def file(disk):
    path = disk / "sections.bin"
    path.write_bytes(os.urandom(3_000_000))
    return str(path)


def by_path(report, thread="task"):
    return {s["section"]: s for s in report["sections"] if s["thread"] == thread}


def have(*paths):
    return lambda report: set(paths) <= set(by_path(report))


@pytest.fixture(scope="module")
def known(bench, file):
    cold.drop(file)
    return bench.run("known", section_jobs.known, file, PACKED, enough=have("all", "all/c/d"))


def test_times_and_waits(known):
    found = by_path(known[2])
    assert set(found) == {"all", "all/a", "all/b", "all/c", "all/c/d"}
    for name, row in found.items():
        assert (row["count"], row["broken"], row["unfinished"], row["prefix"]) == (1, 0, 0, "known"), name
    a, b = found["all/a"], found["all/b"]
    assert 0.3 <= a["cpu_seconds"] <= 0.32
    assert a["sleep_seconds"] == 0
    assert 0.195 <= b["sleep_seconds"] <= b["wall_seconds"] <= 2
    assert b["cpu_seconds"] < 0.05


def test_bytes(known, file):
    found = by_path(known[2])
    size = os.path.getsize(file)
    assert known[0] == size
    for name, row in found.items():
        assert row["read_bytes"] == (size if name in ("all", "all/c") else 0), name
        assert row["decompress_out_bytes"] == (len(RAW) if name in ("all", "all/c", "all/c/d") else 0), name
        assert row["decompress_in_bytes"] == (len(PACKED) if name in ("all", "all/c", "all/c/d") else 0), name
    storage = found["all/c"]["storage_read_bytes"]
    assert size <= storage <= size + (1 << 20)
    assert found["all"]["storage_read_bytes"] == storage
    assert found["all/a"]["storage_read_bytes"] == found["all/b"]["storage_read_bytes"] == 0
