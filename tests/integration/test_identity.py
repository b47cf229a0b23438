"""wall = CPU + run queue + GIL + lock + network + storage + sleep + unclassified, and unclassified
is next to nothing: for the tasks' own threads and for the pool threads that worked for them. Not under
strace, which stops threads in unusual ways."""

import cold
import jobs
import pytest
from distributed import span
from host import stolen

CLASSES = ("cpu_seconds", "runqueue_wait_seconds", "gil_wait_seconds", "lock_wait_seconds", "network_wait_seconds",
           "storage_wait_seconds", "sleep_seconds")
LONG = 0.05


@pytest.fixture(scope="module")
def untraced(tmp_path_factory, homes):
    import cluster

    at_first = stolen()
    with cluster.Cluster(tmp_path_factory.mktemp("identity"), homes) as procs:
        with jobs.measured(procs, 2, nthreads=2) as client:
            yield procs, client, at_first


@pytest.mark.parametrize("source", ["FSSpecSource", "MultithreadedFileSource", pytest.param("MemmapSource", marks=pytest.mark.further)])
def test_next_to_nothing_is_unclassified(untraced, data, source, cell):
    """Two threads per worker compete for the GIL; the first file is cold."""
    procs, client, at_first = untraced
    cold.drop(data["zlib"])
    before = stolen()
    with span(f"identity-{source}"):
        at_start = client.submit(stolen, pure=False, key=f"first_{source}").result()
        jobs.run_coffea(client, [data["zlib"], data["lzma"]], handler=source)
        at_stop = client.submit(stolen, pure=False, key=f"last_{source}").result()
    taken = stolen() - before
    found = jobs.settled(procs, lambda r: len(r["chunks"]) >= 8)
    for pool in ("", "pool_"):
        for task in found["tasks"]:
            parts = sum(task[pool + c] or 0 for c in CLASSES)
            assert parts + task[pool + "unclassified_seconds"] == pytest.approx(task[pool + "wall_seconds"], abs=1e-6)
    long = [t for t in found["tasks"] if t["wall_seconds"] > LONG]
    assert long
    wall, rest = (sum(abs(t[name]) for t in long) for name in ("wall_seconds", "unclassified_seconds"))
    cell("identity", f"{source}, wall_seconds of tasks over 50 ms less unclassified_seconds", "their wall time", wall,
         wall - rest, wall * 0.01 + taken)
    if source != "MemmapSource":  # it needs no pool
        wall, rest = (sum(abs(t[name]) for t in found["tasks"]) for name in ("pool_wall_seconds", "pool_unclassified_seconds"))
        # Intervals of a few ms each: there the wait of a page fault in fresh memory has more weight.
        cell("identity", f"{source}, pool_wall_seconds of all tasks less pool_unclassified_seconds", "their wall time",
             wall, wall - rest, wall * 0.1 + taken)
    told = found["metrics"]["stolen_cpu_seconds"]
    assert told is None or at_stop - at_start - 0.01 <= told <= stolen() - at_first
