"""Dask's own compression, of data that it spills and of data that it sends. No task requests it, so it belongs to no
task, but the process's numbers include it to the byte."""

import jobs
import pytest

SIDES = ("compress", "decompress")
ARRAY = 4_000_000


def watch():
    """Counts the calls of Dask's zlib in the worker."""
    import threading

    from distributed.protocol import compression

    seen = {side: [0, 0, 0] for side in SIDES}
    lock = threading.Lock()

    def counted(side, function):
        def call(data):
            result = function(data)
            with lock:
                for i, n in enumerate((1, memoryview(data).nbytes, len(result))):
                    seen[side][i] += n
            return result
        return call

    zlib = compression.compressions["zlib"]
    compression.compressions["zlib"] = zlib._replace(
        compress=counted("compress", zlib.compress), decompress=counted("decompress", zlib.decompress))
    compression.crema_test_seen = seen


def looked():
    from distributed.protocol import compression

    return compression.crema_test_seen


def compressible(i):
    import numpy

    return numpy.arange(i, i + ARRAY // 8, dtype="i8")


def total(array):
    return int(array.sum())


@pytest.fixture(scope="module")
def spilling(tmp_path_factory, homes):
    import cluster  # here, as the worker imports this module, too

    env = {"DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "0.02", "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
           "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False", "DASK_DISTRIBUTED__COMM__COMPRESSION": "zlib",
           "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL_COMPRESSION": "zlib"}
    with cluster.Cluster(tmp_path_factory.mktemp("spilling") / "cluster", homes) as procs:
        with jobs.measured(procs, env=env, args=("--memory-limit", "1GB", "--no-nanny")) as client:
            client.run(watch)
            yield procs, client


def test_spilling_and_sending(spilling, cell):
    """Twelve arrays, of which a few fit; each is read back; some are sent to the client. The worker has no nanny."""
    procs, client = spilling
    arrays = [client.submit(compressible, i, key=f"spilled-{i:032x}") for i in range(12)]
    sums = client.gather([client.submit(total, a, key=f"total-{i:032x}") for i, a in enumerate(arrays)])
    assert sums == [total(compressible(i)) for i in range(12)]
    client.gather(arrays[:3])
    (seen,) = client.run(looked).values()
    assert all(calls >= 3 for calls, _, _ in seen.values()), seen
    report = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "total")) == 12)
    (worker,) = report["workers"]
    tasks, rest = worker["tasks"], worker["unattributed"]
    for side, numbers in seen.items():
        for what, truth in zip(("calls", "in_bytes", "out_bytes"), numbers):
            name = f"{side}_{what}"
            cell(name, "Dask's spilling and sending by zlib, the whole process", "counters around Dask's functions",
                 truth, tasks[name] + rest[name])
            assert tasks[name] == 0
    assert report["metrics"]["dask_spill_write_bytes"] > 0
