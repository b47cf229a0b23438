"""The trace for Perfetto and chrome://tracing: every attempt once, on its thread, at its time."""

import json
from collections import defaultdict

import jobs
import pytest
from distributed import span

PHASES = {"M", "X", "C", "b", "e"}
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name"}


def checked(events):
    """The events, checked against the Trace Event format."""
    ends, open_ids = defaultdict(float), {}
    for e in events:
        assert e["ph"] in PHASES and isinstance(e["pid"], int) and isinstance(e["name"], str), e
        if e["ph"] == "M":
            assert e["name"] in METADATA and "ts" not in e, e
            continue
        assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0, e
        if e["ph"] == "C":
            assert e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values()), e
        elif e["ph"] == "X":
            track = (e["pid"], e["tid"])
            assert e["dur"] >= 0 and e["ts"] >= ends[track] - 1e-3, ("overlaps", e)
            ends[track] = e["ts"] + e["dur"]
        elif e["ph"] == "b":
            assert e["id2"]["local"] not in open_ids, e
            open_ids[e["id2"]["local"]] = e
        else:
            begin = open_ids.pop(e["id2"]["local"])
            assert (begin["name"], begin["cat"], begin["pid"]) == (e["name"], e["cat"], e["pid"]) and begin["ts"] <= e["ts"]
    assert not open_ids
    return events


def trace_of(procs, run, path):
    """Trace and JSON from the same reading of the journal: each later measurement of a worker's clock shifts all
    times near it by the difference, a few microseconds."""
    done = procs.report("--run", run, "--perfetto", path, "--json", path.with_suffix(".json"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    trace = json.loads(path.read_text())
    checked(trace["traceEvents"])
    return trace, json.loads(path.with_suffix(".json").read_text())


def compare(trace, report):
    """Each attempt in the JSON is one slice of the right length, at the right time, on the right track."""
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    workers = {i + 1: w for i, w in enumerate(report["workers"])}
    assert names == {pid: w["name"] or w["worker"] for pid, w in workers.items()}
    begins = {(workers[e["pid"]]["id"], e["args"]["attempt"]): e for e in events if e["ph"] in "Xb"}
    lengths = {e["id2"]["local"]: e["ts"] for e in events if e["ph"] == "e"}
    assert len(begins) == sum(e["ph"] in "Xb" for e in events) == len(report["tasks"])
    first = min(t["start"] for t in report["tasks"])
    for task in report["tasks"]:
        e = begins[task["worker_id"], task["attempt"]]
        assert (e["tid"], e["name"]) == (task["thread"], task["prefix"] or task["function"])
        assert e["ts"] - 1e6 == pytest.approx((task["start"] - first) * 1e6, abs=1)
        length = e["dur"] if e["ph"] == "X" else lengths[e["id2"]["local"]] - e["ts"]
        assert length == pytest.approx((task["stop"] - task["start"]) * 1e6, abs=1)
        for name in ("key", "read_bytes", "gil_wait_seconds", "cpu_seconds", "storage_read_bytes", "counted"):
            assert e["args"][name] == ("unknown" if task[name] is None else task[name])
    return begins


@pytest.fixture(scope="module")
def trace(shared, demo, tmp_path_factory):
    return trace_of(shared.procs, demo.json["run"], tmp_path_factory.mktemp("trace") / "run.trace")


def test_every_attempt_is_a_slice(trace):
    events, report = trace
    begins = compare(events, report)
    chunks = {(c["worker_id"], c["attempt"]): c for c in report["chunks"]}
    assert len(chunks) == sum(e["cat"] == "chunk" for e in begins.values()) == 16
    for key, c in chunks.items():
        args = begins[key]["args"]
        assert (args["dataset"], args["filename"], args["entrystart"]) == (c["dataset"], c["filename"], c["entrystart"])


def test_counters(trace):
    """Memory is that of the samples; bytes over time add up to at least what the tasks read."""
    events, report = trace[0]["traceEvents"], trace[1]
    samples = report["tracking_data"]["worker_memory"]
    for pid, worker in enumerate(report["workers"], 1):
        seen = [e["args"]["resident"] for e in events if e["ph"] == "C" and e["pid"] == pid and e["name"] == "memory, bytes"]
        assert seen == [p["memory_bytes"] for p in samples[worker["worker"]]] and seen
    read = 0.0
    for pid in range(1, len(report["workers"]) + 1):
        points = [(e["ts"], e["args"]["rate"]) for e in events if e["pid"] == pid and e["name"] == "read from files, Gbit/s"]
        assert points == sorted(points, key=lambda p: p[0])
        read += sum(rate * 1e9 / 8 * (after - at) / 1e6 for (at, rate), (after, _) in zip(points, points[1:]))
    tasks = sum(t["read_bytes"] for t in report["tasks"])
    assert tasks <= read * 1.0001 and read < tasks * 1.2


async def nap(seconds):
    import asyncio

    await asyncio.sleep(seconds)


def test_overlapping_tasks_leave_the_tracks(shared, tmp_path):
    """Asynchronous tasks share the event loop's thread: they are drawn outside its track, in full."""
    with span("naps"):
        futures = [shared.client.submit(nap, 0.3, key=jobs.unique("nap"), pure=False) for _ in range(6)]
        shared.client.gather(futures)
    report = shared.settled(lambda r: len(jobs.tasks_of(r, "nap")) == 6)
    begins = compare(*trace_of(shared.procs, report["run"], tmp_path / "naps.trace"))
    assert {e["ph"] for e in begins.values()} == {"b"}
