"""Rows of tests/checklist.txt about workers and memory, against Dask's own worker and /proc at the same time: tasks that
wait for an Event, results of known size, and tasks that take and free known memory. Needs no fixture of conftest.py."""

import datetime
import os
import re
import resource
import sys
import time
import zlib

import cluster
import jobs
import pytest
from distributed import Client, Event, span, wait

MB = 1 << 20
HELD_SECONDS = 3  # there are two probes per second
STILL_SECONDS = 2.5
FOLDERS = [os.path.dirname(__file__), os.path.dirname(cluster.__file__)]  # where workers find this file and what it imports


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def dask_says(dask_worker):
    """Values of this worker's own objects at this moment."""
    state = dask_worker.state
    return {"executing": state.executing_count, "ready": len(state.ready), "nbytes": state.nbytes, "nthreads": state.nthreads,
            "limit": dask_worker.memory_manager.memory_limit, "pid": os.getpid(), "fast": dask_worker.data.fast.total_weight}


def wait_for(name):
    begun = time.time()
    Event(name).wait()
    return begun, time.time()


def stand_still():
    """Blocks the worker's event loop, which runs the probes; returns when it started and ended."""
    begun = time.time()
    time.sleep(STILL_SECONDS)
    return begun, time.time()


def result_of(n):
    return bytes(n)


def take(n, peak):
    """Keeps n more bytes, takes and frees `peak` more; returns resident memory before and after, the kernel's
    high-water mark, and that of getrusage, which includes the time before the worker's exec()."""
    before = resident()
    sys.kept = bytearray(b"x") * n
    more = bytearray(b"x") * peak
    del more
    with open("/proc/self/status") as file:
        highest = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) * 1024
    return before, resident(), highest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(path, packed):
    """Reads and decompresses known bytes."""
    with open(path, "rb", buffering=0) as file:
        n = sum(len(part) for part in iter(lambda: file.read(65536), b""))
    return n, len(zlib.decompress(packed))


def from_large_process(_, env):
    """A prefix for a worker's command and environment: it starts in a process that had 768 MiB."""
    return [sys.executable, "-c", "import os, sys; x = bytearray(b'x') * (768 << 20); os.execvp(sys.argv[1], sys.argv[1:])",
            "env", *(f"{name}={value}" for name, value in env.items())]


class Seen:
    """Dask's own values and crema's reports."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    found, folder = Seen(), tmp_path_factory.mktemp("rows")
    home = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state"),
            "CREMA_TOKEN_FILE": str(folder / "config" / "crema" / "token"), "PYTHONPATH": os.pathsep.join(FOLDERS)}
    found.file, found.packed = folder / "data", zlib.compress(os.urandom(MB) * 3)
    found.file.write_bytes(os.urandom(5 * MB + 17))
    with cluster.Cluster(folder / "cluster", home) as procs:  # with Dask's profiler, as users have it
        procs.start_collector()
        procs.start_scheduler({"DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "inf"})  # all tasks go to the worker
        procs.start_worker(nthreads=2, args=("--no-nanny", "--memory-limit", "3 GiB"), prefix=from_large_process)
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            hold_results_and_threads(found, client)
            found.tasks = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "wait_for")) >= 5)
            with span("memory"):
                found.memory = client.submit(take, 64 * MB, 128 * MB, key=jobs.unique("take"), pure=False).result(timeout=120)
            found.taken = jobs.settled(procs, lambda r: jobs.tasks_of(r, "take"))
            with span("work"):
                found.worked = client.submit(work, str(found.file), found.packed, key=jobs.unique("work"), pure=False).result(timeout=120)
            found.counted = jobs.settled(procs, lambda r: jobs.tasks_of(r, "work"))
            yield found


def hold_results_and_threads(found, client):
    """Two tasks wait in the worker's two threads, three are queued behind them, and 20 MB are held as results."""
    with span("held"):
        results = [client.submit(result_of, 10 * MB + i, key=jobs.unique("result"), pure=False) for i in range(2)]
        wait(results, timeout=120)
        waiting = [client.submit(wait_for, "go", key=jobs.unique("wait_for"), pure=False) for _ in range(5)]
        cluster.wait_until(lambda: [(d["executing"], d["ready"]) for d in client.run(dask_says).values()] == [(2, 3)], "five tasks", 60)
        found.begin, (found.dask,) = time.time(), client.run(dask_says).values()
        time.sleep(HELD_SECONDS)
        (after,) = client.run(dask_says).values()
        assert after == found.dask
        found.end = time.time()
        (found.still,) = client.run(stand_still).values()
        Event("go", client=client).set()
        found.walls = [stop - start for start, stop in client.gather(waiting)]
        client.cancel(results)


def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def while_held(seen, name, value):
    points = next(iter(seen.tasks["tracking_data"][name].values()))
    inside = [p[value] for p in points if seen.begin + 0.6 < seconds(p["timestamp"]) < seen.end - 0.1]
    assert inside, points
    return set(inside)


def test_row_036(seen):
    assert while_held(seen, "worker_active_tasks", "active_tasks") == {seen.dask["executing"] + seen.dask["ready"]} == {5}


def test_row_037(seen):
    assert while_held(seen, "worker_executing", "executing") == {seen.dask["executing"]} == {2}


def test_row_038(seen):
    assert while_held(seen, "worker_nbytes", "nbytes") == {seen.dask["nbytes"]}
    assert seen.dask["nbytes"] >= 20 * MB


def test_row_035_of_two_threads(seen):
    assert while_held(seen, "worker_cores", "cores") == {seen.dask["nthreads"]} == {2}


def test_row_034_of_this_worker(seen):
    assert while_held(seen, "worker_memory_limit", "memory_limit_bytes") == {seen.dask["limit"]} == {3 << 30}


def test_row_039(seen):
    """Tasks times their mean duration, as measured by the tasks: the longest are those that waited."""
    occupancy, = while_held(seen, "worker_occupancy", "occupancy")
    walls = [t["wall_seconds"] for t in seen.tasks["tasks"] if t["counted"]]
    assert occupancy == pytest.approx(5 * sum(walls) / len(walls), rel=1e-6)
    by_crema = sorted(t["wall_seconds"] for t in jobs.tasks_of(seen.tasks, "wait_for"))
    for mine, own in zip(by_crema, sorted(seen.walls), strict=True):
        assert own <= mine + 0.005


def test_row_040(seen):
    """The newest probe at each moment, to the microsecond in which both are written; none while the event loop was blocked."""
    points = next(iter(seen.tasks["tracking_data"]["worker_last_seen"].values()))
    probes = [seconds(p["timestamp"]) for p in next(iter(seen.tasks["tracking_data"]["worker_executing"].values()))]
    for point in points:
        at, last_seen = seconds(point["timestamp"]), seconds(point["last_seen"])
        known = [probe for probe in probes if probe < at + 2e-6]
        assert last_seen == pytest.approx(known[-1], abs=2e-6) if known else last_seen < probes[0]
        assert point["seconds"] == pytest.approx(at - last_seen, abs=2e-6)
    begun, ended = seen.still
    inside = [seconds(p["last_seen"]) for p in points if begun < seconds(p["timestamp"]) < ended]
    assert len(inside) >= 2
    assert max(inside) < begun + 0.005  # by the test's clock
    held = [p for p in points if seen.begin < seconds(p["last_seen"]) < seen.end]
    assert len({p["last_seen"] for p in held}) >= 2


def test_row_033_of_this_worker(seen):
    """The kernel's resident memory, with 64 MiB more that stay."""
    points = next(iter(seen.taken["tracking_data"]["worker_memory"].values()))
    before, after, *_ = seen.memory
    for point in points:
        assert before - 8 * MB < point["memory_bytes"] < after + 160 * MB


def test_row_049(seen):
    task, = jobs.tasks_of(seen.taken, "take")
    assert task["rss_start_bytes"] == pytest.approx(seen.memory[0], abs=8 * MB)


def test_row_050(seen):
    task, = jobs.tasks_of(seen.taken, "take")
    assert task["rss_stop_bytes"] == pytest.approx(seen.memory[1], abs=8 * MB)


def test_row_051(seen):
    """64 MiB stayed."""
    task, = jobs.tasks_of(seen.taken, "take")
    assert task["rss_stop_bytes"] - task["rss_start_bytes"] == pytest.approx(64 * MB, abs=8 * MB)
    assert seen.memory[1] - seen.memory[0] == pytest.approx(64 * MB, abs=8 * MB)


def test_row_030(seen):
    """Threads with a task while both tasks were held."""
    points = [p for p in seen.tasks["metrics"]["cpu_utilization_percent"] if seen.begin + 1.2 < seconds(p["timestamp"]) < seen.end - 0.1]
    assert {p["percent"] for p in points} == {100 * seen.dask["executing"] / seen.dask["nthreads"]}


def test_highest_memory(seen):
    """128 MiB more were taken and freed: the kernel's high-water mark, though the process that started the worker had a higher one."""
    task, = jobs.tasks_of(seen.taken, "take")
    highest, usage = seen.memory[2:]
    assert usage > highest + 64 * MB
    assert task["rss_peak_bytes"] == pytest.approx(highest, abs=8 * MB)
    assert task["rss_peak_bytes"] - task["rss_start_bytes"] >= 184 * MB


def test_a_task_counts_what_it_did(seen):
    task, = jobs.tasks_of(seen.counted, "work")
    size, unpacked = seen.worked
    assert size == seen.file.stat().st_size
    assert task["read_bytes"] == size
    assert task["read_calls"] == -(-size // 65536) + 1
    assert (task["decompress_calls"], task["decompress_in_bytes"], task["decompress_out_bytes"]) == (1, len(seen.packed), unpacked)
