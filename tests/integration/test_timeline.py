"""Bytes and seconds over time, against a job that records when it read what."""

import bisect
import time

import cluster
import jobs
import pytest
from distributed import span
from timeline_job import PIECE, burst_pause_burst, compute, hold_the_loop

LAYERS = """read_bytes mapped_bytes storage_read_bytes storage_write_bytes network_read_bytes network_write_bytes
comm_read_bytes comm_write_bytes decompress_in_bytes decompress_out_bytes write_bytes""".split()
CLASSES = """cpu_seconds pool_cpu_seconds runqueue_wait_seconds gil_wait_seconds lock_wait_seconds
network_wait_seconds storage_wait_seconds sleep_seconds""".split()


@pytest.fixture(scope="module")
def burst(tmp_path_factory, homes, disk):
    path = disk / "burst.bin"
    path.write_bytes(bytes(range(256)) * (32 * PIECE // 256))
    with cluster.Cluster(tmp_path_factory.mktemp("timeline"), homes) as procs:
        with jobs.measured(procs) as client:
            result, _ = jobs.submit(procs, client, "burst_pause", burst_pause_burst, str(path), 4)
        yield (*result, jobs.settled(procs, lambda r: jobs.tasks_of(r, "burst_pause")))


def edges(timeline):
    """The right edge of each bin."""
    return [min(timeline["start"] + (i + 1) * timeline["bin_seconds"], timeline["stop"])
            for i in range(len(timeline["running"]))]


def test_shape(burst):
    timeline = burst[-1]["timeline"]
    bins = len(timeline["running"])
    assert sorted(timeline["layers"]) == sorted(LAYERS) and sorted(timeline["classes"]) == sorted(CLASSES)
    assert all(len(v) == bins for kind in ("layers", "classes") for v in timeline[kind].values())
    task, = jobs.tasks_of(burst[-1], "burst_pause")
    assert timeline["start"] == task["start"] and timeline["stop"] == task["stop"]
    assert edges(timeline)[-1] == timeline["stop"] > edges(timeline)[-1] - timeline["bin_seconds"]
    assert timeline["running"] == pytest.approx([1] * bins) and timeline["workers"] == pytest.approx([1] * bins)


def test_bytes_lie_where_they_were_read(burst):
    """At each edge the bins contain what had been read by then, to one period of the totals."""
    seen, *_, report = burst
    timeline = report["timeline"]
    period = timeline["resolution_seconds"]
    assert 1 <= period < 3
    times = [when for when, _ in seen]

    def read_until(when):
        i = bisect.bisect_right(times, when)
        return seen[i - 1][1] if i else 0

    total = 0
    for value, edge in zip(timeline["layers"]["read_bytes"], edges(timeline), strict=True):
        total += value
        assert read_until(edge - period) <= total <= read_until(edge + period), edge
    assert total == seen[-1][1] == 32 * PIECE


def test_a_pause_is_empty(burst):
    _, rest, work, _, report = burst
    timeline = report["timeline"]
    period = timeline["resolution_seconds"]
    inside = [i for i, edge in enumerate(edges(timeline)) if rest + period < edge - 1 and edge < work]
    assert inside
    assert [timeline["layers"]["read_bytes"][i] for i in inside] == [0] * len(inside)
    assert max(timeline["classes"]["cpu_seconds"][i] for i in inside) < 0.05


def test_seconds_by_class_are_those_of_the_task(burst):
    """The sums are the task's own, and a second of computing is a second of CPU in its bin."""
    _, _, work, done, report = burst
    timeline = report["timeline"]
    task, = jobs.tasks_of(report, "burst_pause")
    for name in CLASSES:
        assert sum(timeline["classes"][name]) == pytest.approx(task[name], abs=1e-6), name
    period = timeline["resolution_seconds"]
    inside = [i for i, edge in enumerate(edges(timeline)) if work + period < edge - 1 and edge < done - period]
    busy = sum(timeline["classes"]["cpu_seconds"][i] + timeline["classes"]["runqueue_wait_seconds"][i] for i in inside)
    assert busy == pytest.approx(len(inside), abs=period)


def test_a_held_event_loop_leaves_no_peak(new_cluster):
    """The worker takes no snapshot of its CPU in that time: its use is spread over it, not put at its end."""
    procs = new_cluster()
    with jobs.measured(procs, nthreads=2) as client:
        with span("held") as run:
            busy = client.submit(compute, 7, pure=False, key="compute-1")
            time.sleep(1)
            held = client.submit(hold_the_loop, 4, pure=False, key="hold-1")
            client.gather([busy, held])
    timeline = jobs.settled(procs, lambda r: len(r["tasks"]) == 2, run=run)["timeline"]
    cpu = [value / timeline["bin_seconds"] for value in timeline["classes"]["cpu_seconds"]]
    assert sum(cpu) > 0.5 and max(cpu[:-1]) < 1.5
