"""Bytes from storage of single tasks, against the page cache."""

import random

import cold
import jobs
import pytest
from distributed import span

MB = 1 << 20
CHARGED = ("ext4", "xfs", "btrfs", "overlay")  # where the kernel's charges are proven


def file_system(path):
    """The type of the longest mount point above path."""
    path, found = str(path.resolve()) + "/", []
    for line in open("/proc/self/mounts"):
        where, kind = line.split()[1:3]
        if path.startswith(where.rstrip("/") + "/"):
            found.append((len(where), kind))
    return max(found)[1]


@pytest.fixture
def cold_file(disk):
    if file_system(disk) not in CHARGED:
        pytest.skip("data/ lies on a file system whose storage charges are unknown")
    made = []

    def make(name, size=8 * MB + 123):
        path = disk / name
        path.write_bytes(random.Random(name).randbytes(size))
        cold.drop(str(path))
        made.append(path)
        return str(path)

    yield make
    for path in made:
        path.unlink()


def test_whole_cold_file_then_warm(shared, cold_file):
    path = cold_file("whole")
    size, (task,) = jobs.submit(shared.procs, shared.client, "whole-cold", jobs.read_whole, path)
    assert task["storage_read_bytes"] == cold.page_bytes(path)
    assert task["read_bytes"] == size
    with cold.kept_warm(path):
        _, (task,) = jobs.submit(shared.procs, shared.client, "whole-warm", jobs.read_whole, path)
    assert task["storage_read_bytes"] == 0
    assert task["read_bytes"] == size


def test_mapped_cold_file(shared, cold_file):
    path = cold_file("mapped")
    _, (task,) = jobs.submit(shared.procs, shared.client, "mapped-cold", jobs.read_mapped, path)
    assert task["storage_read_bytes"] == cold.page_bytes(path)
    assert task["mapped_bytes"] >= 8 * MB


def test_two_tasks_beside_each_other(new_cluster, cold_file, tmp_path):
    """Two threads of one worker, each with a cold file of its own."""
    from distributed import Client

    ready = tmp_path / "ready"
    ready.mkdir()
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(nthreads=2)
    paths = [cold_file("one"), cold_file("two", 5 * MB + 1)]
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        with span("beside"):
            done = [client.submit(jobs.read_whole_in_turn, p, str(ready), 2, key=jobs.unique(f"beside{i}"))
                    for i, p in enumerate(paths)]
            client.gather(done)
        found = jobs.settled(procs, lambda r: len(r["tasks"]) >= 2)
    for i, path in enumerate(paths):
        (task,) = jobs.tasks_of(found, f"beside{i}")
        assert task["storage_read_bytes"] == cold.page_bytes(path)
    assert jobs.total(found["tasks"], "storage_read_bytes") == sum(cold.page_bytes(p) for p in paths)


def test_partial_reader(shared, cold_file):
    """At least the pages of its ranges; at most those that the kernel's read-ahead added."""
    path = cold_file("partial", 32 * MB)
    ranges = [(10_000, 5_000), (9 * MB + 7, 300_000), (20 * MB, 4096)]
    pages = {p for start, length in ranges for p in range(start // cold.PAGE, (start + length - 1) // cold.PAGE + 1)}
    with span("partial"):
        future = shared.client.submit(jobs.read_ranges, path, ranges, key=jobs.unique("partial"))
        assert future.result(timeout=60) == sum(length for _, length in ranges)
    in_cache = cold.resident_bytes(path)
    found = shared.settled(lambda r: jobs.tasks_of(r, "partial"))
    (task,) = jobs.tasks_of(found, "partial")
    assert len(pages) * cold.PAGE <= task["storage_read_bytes"] <= in_cache
    assert task["read_bytes"] == sum(length for _, length in ranges)
