"""Reports of the run of test_reports.py with hosts, long waits, histories and overlapping tasks: the trace, the page, the
measurement, lists and the tables of text, each against what was put into the journal."""

import datetime
import json
import re
import subprocess
from itertools import takewhile

import pytest
import test_reports  # knows where frames.py is
import frames
from test_reports import COUNTS, FILE, PARTS, PROBES, TIMES, WORKERS, as_bytes, as_seconds, at, number, task_values

CLASSES = ("gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep")
WAITS = [("lock_wait", "work", "/data/a.root", None, 30_000_000), ("lock_wait", "work", "/data/a.root", None, 51_000_000),
         ("network_wait", "work", None, "files:1094", 900_000_000), ("gil_wait", "other", None, None, 45_000_000)]
BLOCKED = {"threshold_ns": 25_000_000, "recorded": 4, "calls": {"lock_wait_ns": 3, "network_wait_ns": 2, "gil_wait_ns": 4},
           "ns": {"lock_wait_ns": 100_000_000, "network_wait_ns": 1_000_000_000, "gil_wait_ns": 300_000_000}}
HOSTS = [{"cpu_percent": 20.5 + 30 * p, "memory_total_bytes": 64 * 10**9, "memory_available_bytes": (50 - 5 * p) * 10**9, "load1": 1.5 + p,
          "stolen_seconds": 10.25 + p * p, **{name: number("host", name) + (1 + p) * p * number("step", name) for name in (
              "net_read_bytes", "net_write_bytes", "disk_read_bytes", "disk_write_bytes")}} for p in range(3)]
HISTORY_AT = (500, 1500, 3000)
AMOUNTS = {part: {**{f"storage_{way}_bytes": 10**7 * k + number(part, way) for way in ("read", "write")}, "cpu_ns": 10**10 * k + 1000 * number(part, "cpu")}
           for k, part in enumerate(("children", "seen", "process"))}


def history(p):
    return {part: {**{name: (p + 1) * v // 10 for name, v in values.items()},
                   **{f"{t}_ns": 10**6 * (p + 1) ** 2 * (i + 1) + 10**5 for i, t in enumerate(TIMES)},
                   **{f"pool_{t}_ns": 10**6 * (p + 1) * (i + 9) for i, t in enumerate(TIMES)}} for part, values in PARTS.items()}


def last(k):
    """The parts of worker k's last totals."""
    return {part: {**{name: v + k for name, v in PARTS[part].items()}, **{f"{p}{t}_ns": 10**9 + 1000 * number(part, p, t) for t in TIMES for p in (
        "", "pool_")}} for part in PARTS}


def fill(journal):
    test_reports.fill(journal)
    first = WORKERS[0]
    journal.message([20, {"id": 77, "path": "/lib/none.so", "build_id": "ab12"}], first)
    for n, (wait, prefix, file, peer, ns) in enumerate(WAITS):
        journal.message([21, {"number": n, "wait": f"{wait}_ns", "waited_ns": ns, "span": test_reports.SPAN, "prefix": prefix, "file": file, "peer": peer,
                              "end_boot_ns": at(1000), "frames": [77, 4096 + (n > 1) * n, 0, 8192]}], first)
    for p, host in enumerate(HOSTS):
        journal.message([9, {"boot_ns": at(100 + 1500 * p), **host}], first)
    for p, ms in enumerate(HISTORY_AT):
        journal.message([11, {"boot_ns": at(ms), **history(p)}], first)
    for k, worker in enumerate(WORKERS):
        journal.message([11, {"boot_ns": at(4001), "tasks_started": 4, "tasks_done": 3, "blocked": BLOCKED if not k else None, **AMOUNTS,
                              "notes": [] if k else ["no perf events"], "shared_network_read_bytes": 3000 + k, "shared_network_write_bytes": 500,
                              **test_reports.REFUSED, **last(k)}], worker)
    journal.task(4, "work-5", 2500, 3100, first, prefix="work", flags=test_reports.CHUNK, **task_values(5))  # beside the one of 2000 to 2900


class Made:
    """The run's report in all forms."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = Made()
    found.folder = tmp_path_factory.mktemp("exports")
    journal = frames.Journal(found.folder / "journal")
    fill(journal)
    journal.write()
    found.journal = found.folder / "journal"
    found.text = test_reports.report(found, "--json", found.folder / "run.json", "--perfetto", found.folder / "trace.json",
                                     "--measurement", found.folder / "measurement", "--html", found.folder / "run.html")
    found.json = json.loads((found.folder / "run.json").read_text())
    found.trace = json.loads((found.folder / "trace.json").read_text())
    found.page = test_reports.data_of_page(found)
    found.measurement = {p.name: json.loads(p.read_text()) for p in (found.folder / "measurement").glob("*.json")}
    return found


# The trace

def events(made, phase, **more):
    return [e for e in made.trace["traceEvents"] if e["ph"] == phase and all(e.get(name) == value for name, value in more.items())]


def since_origin(ms):
    """Microseconds: the trace begins a second before the first task."""
    return pytest.approx(10**6 + 1000 * ms, abs=1)


ATTEMPTS = {"work-0": (0, 900), "work-1": (1000, 900), "work-2": (2000, 900), "work-3": (3000, 900), "work-5": (2500, 600), "work-9": (3900, 50)}


def test_trace_attempts(made):
    assert made.trace["attempts_without_clock"] == 0 and made.trace["displayTimeUnit"] == "ms"
    head = made.trace["otherData"]
    assert head["run"] == made.json["run"] and head["program"].startswith("crema ")
    assert datetime.datetime.fromisoformat(head["origin_utc"]).timestamp() == pytest.approx(frames.BASE_NS / 1e9 - 1, abs=1e-5)
    rows = {row["key"]: row for row in made.json["tasks"]}
    chunks = {row["entrystart"]: row for row in made.json["chunks"]}
    found = {e["args"]["key"]: e for e in events(made, "X") + events(made, "b")}
    assert set(found) == set(rows) == set(ATTEMPTS) and len(events(made, "X")) == 5
    for key, event in found.items():
        start, wall = ATTEMPTS[key]
        beside = key == "work-5"
        i = int(key[-1])
        assert (event["ts"], event["tid"], event["name"], event["ph"]) == (since_origin(start), 7, "work", "b" if beside else "X")
        assert event["pid"] == 1 + (i in (1, 3)) and event.get("dur") == (None if beside else pytest.approx(1000 * wall))
        assert (event["cat"], event.get("cname")) == (("chunk,wasted", "terrible") if i == 9 else ("chunk", None))
        told = {**rows[key], **{name: v for name, v in chunks[1000 * i].items() if name not in rows[key]}}
        for name, value in event["args"].items():
            assert value == ("unknown" if told[name] is None else told[name]), name
        assert {"attempt", "status", "read_calls", "cpu_seconds", "gil_wait_seconds", "events", "entrystop", "filename", "coffea_bytesread"} <= set(event["args"])
    (end,), begin = events(made, "e"), found["work-5"]
    assert end["ts"] == since_origin(3100) and {k: end[k] for k in ("pid", "tid", "cat", "id2")} == {k: begin[k] for k in ("pid", "tid", "cat", "id2")}
    for pid in (1, 2):
        label = f"tcp://w{pid - 1}:1"
        told = {e["name"]: e["args"] for e in events(made, "M", pid=pid)}
        assert told == {"process_name": {"name": label}, "process_labels": {"labels": f"{label}, host node"}, "process_sort_index": {"sort_index": pid},
                        "thread_name": {"name": "thread 7"}}


def rates_of(value, ends):
    """Differences of the totals (None: not known) over their times, as of the first worker; then 0."""
    points = [(ms, value(p)) for p, ms in enumerate((*HISTORY_AT, ends))]
    found = [(a, (y - x) / (b - a) * 1000) for (a, x), (b, y) in zip(points, points[1:])]
    return [*found, (ends, 0)]


def test_trace_counters(made):
    samples = [(600 + 1000 * p, 10**6 + 5000 * p, 50.5 + p) for p in range(3)]
    expected = {"memory, bytes": ("resident", [(t, rss) for t, rss, _ in samples]), "CPU, %": ("process", [(t, cpu) for t, _, cpu in samples]),
                "tasks executing": ("executing", [(500 + 1000 * p, probe["executing"]) for p, probe in enumerate(PROBES)]),
                "tasks ready": ("ready", [(500 + 1000 * p, probe["ready"]) for p, probe in enumerate(PROBES)])}
    for title, name in (("read calls", "read_bytes"), ("from the network", "network_read_bytes"), ("out of codecs", "decompress_out_bytes")):
        def total(p, name=name):
            return sum(part[name] for part in (history(p) if p < 3 else PARTS).values())

        expected[f"{title}, Gbit/s"] = ("rate", [(t, v * 8 / 1e9) for t, v in rates_of(total, 4001)])
    for title, (member, points) in expected.items():
        found = events(made, "C", name=title, pid=1)
        assert [(e["ts"], e["args"]) for e in found] == [(since_origin(t), {member: pytest.approx(v, rel=1e-4)}) for t, v in points], title
    told = events(made, "C", name="tasks' time, s/s", pid=1)
    names = {f"{t}_seconds" if t in ("cpu", "sleep") else f"{t}_wait_seconds" if t == "runqueue" else f"{t}_seconds": i for i, t in enumerate(TIMES)}
    assert len(told) == 4
    for name, i in names.items():
        def own(p, i=i):
            return (history(p) if p < 3 else last(0))["tasks"][f"{TIMES[i]}_ns"]

        assert [(e["ts"], e["args"][name]) for e in told] == [(since_origin(t), pytest.approx(v / 1e9, rel=1e-4)) for t, v in rates_of(own, 4001)]
    assert all(set(e["args"]) == set(names) for e in told)
