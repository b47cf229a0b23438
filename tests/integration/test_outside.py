"""What a worker does outside tasks and Dask assigns to no span: arguments that arrive, and garbage collections."""

import os
import time

import jobs
import pytest
from distributed import span


def watch_collections():
    import gc

    seen = gc.crema_test_seen = {"seconds": 0.0, "began": None}

    def full(phase, info):
        if info["generation"] == 2:
            now = time.thread_time()
            if phase == "start":
                seen["began"] = now
            else:
                seen["seconds"] += now - seen["began"]

    gc.callbacks.append(full)


def collected():
    import gc

    return gc.crema_test_seen["seconds"]


def collect(times):
    import gc

    for _ in range(times):
        gc.collect()


def size(argument):
    return len(argument)


def nothing(i):
    return i


def apart(client, key):
    """A task, and time for a probe on both sides."""
    time.sleep(1.2)
    client.submit(nothing, 0, key=jobs.unique(key), pure=False).result()
    time.sleep(1.2)


def test_arguments_and_collections(new_cluster):
    procs = new_cluster()
    with jobs.measured(procs) as client:
        client.submit(size, os.urandom(3_000_000), key=jobs.unique("before"), pure=False).result()
        client.run(watch_collections)
        with span("arguments") as own:
            apart(client, "first")
            sizes = [client.submit(size, os.urandom(4_000_000), key=jobs.unique("size"), pure=False).result() for _ in range(5)]
            apart(client, "middle")
            client.submit(collect, 10, key=jobs.unique("collect"), pure=False).result()
            apart(client, "last")
        (truth,) = client.run(collected).values()
        report = jobs.settled(procs, lambda r: len(r["tasks"]) == 9, run=own)
    metrics = report["metrics"]
    assert metrics["task_message_bytes"] == pytest.approx(sum(sizes), rel=0.001, abs=40_000)
    assert 0.5 * truth < metrics["gc_seconds"] < 1.05 * truth + 0.01
    found = next(f for f in report["findings"] if f["id"] == "large_arguments")
    arrived = next(e["value"] for e in found["evidence"] if e["name"] == "arrived_bytes")
    assert arrived == pytest.approx(sum(sizes), rel=0.001, abs=40_000)
