"""Reports of the run of test_reports.py with hosts, long waits, histories and overlapping tasks: the trace, the page, the
measurement, lists and the text tables, each against the contents of the journal."""

import datetime
import ast
import json
import re
import statistics
import subprocess
import sys
from itertools import takewhile

import pytest
import test_reports  # sets the path to frames.py
import frames
from test_reports import COUNTS, FILE, PARTS, PROBES, SHOWN, TIMES, WORKERS, as_bytes, as_seconds, at, number, task_values

sys.path.insert(0, str(test_reports.ROOT / "python"))
from crema import write_folder

CLASSES = ("gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep")
WAITS = [("lock_wait", "work", "/data/a.root", None, 30_000_000), ("lock_wait", "work", "/data/a.root", None, 51_000_000),
         ("network_wait", "work", None, "files:1094", 900_000_000), ("gil_wait", "other", None, None, 45_000_000)]
BLOCKED = {"threshold_ns": 25_000_000, "recorded": 4, "calls": {"lock_wait_ns": 3, "network_wait_ns": 2, "gil_wait_ns": 4},
           "ns": {"lock_wait_ns": 100_000_000, "network_wait_ns": 1_000_000_000, "gil_wait_ns": 300_000_000}}
HOSTS = [{**test_reports.readings("HOST", p), "cpu_percent": 20.5 + 30 * p, "memory_total_bytes": 64 * 10**9, "memory_available_bytes": (50 - 5 * p) * 10**9, "load1": 1.5 + p,
          "stolen_seconds": 10.25 + p * p, "nfs_set": 3, "lustre_set": 4, **{name: number("host", name) + (1 + p) * p * number("step", name) for name in (
              "net_read_bytes", "net_write_bytes", "disk_read_bytes", "disk_write_bytes", "nfs_read_bytes", "nfs_server_read_bytes",
              "lustre_read_bytes", "lustre_server_read_bytes")}} for p in range(3)]
USED = 200_000  # of the file's baskets, each counted once
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
    for k, worker in enumerate(WORKERS):
        stack = {"nthreads": 2, "worker_address": f"tcp://w{k}:1", "dask": "2026.1", "coffea": "2026.2", "uproot": f"5.{k}", "memory_limit_bytes": 9 * 10**6}
        journal.worker(worker, host="node", pid=100 + k, cores=8 + k, memory_bytes=16 * 10**9, cpu_model="a CPU", python=f"3.1{k}", boot_id="b", net_namespace=7, stack=json.dumps(stack))
    journal.message([12, {"path": "/data/a.root", "name": "a", "span": test_reports.SPAN, "kind": "data", "storage": "exact", "filesystem": "ext4", **FILE,
                          **test_reports.FILE_TIMES, "extent_bytes": FILE["read_bytes"], "unique_bytes": 300_000, "ranges": [0, 300_000],
                          "basket_extent_bytes": FILE["basket_bytes"], "unique_basket_bytes": USED, "basket_ranges": [0, USED]}], first)
    journal.message([20, {"id": 77, "path": "/lib/none.so", "build_id": "ab12"}], first)
    journal.message([18, {"number": 9, "path": "only", "span": test_reports.SPAN, "prefix": "work", "kind": "value", "source": "crema", "rev": 1, "broken": 0,
                          "stats": [[2, 5.0, 1.0, 4.0, 4.0]]}], first)
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
    journal.task(4, "work-5", 2500, 3100, first, prefix="work", flags=test_reports.CHUNK, **task_values(5))  # overlaps the one from 2000 to 2900


class Made:
    """The run's report in all formats."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = Made()
    found.folder = tmp_path_factory.mktemp("exports")
    journal = frames.Journal(found.folder / "journal")
    fill(journal)
    journal.write()
    found.journal = found.folder / "journal"
    test_reports.report(found, "--json", found.folder / "run.json", "--perfetto", found.folder / "trace.json",
                                     "--measurement", found.folder / "measurement", "--html", found.folder / "run.html")
    found.printed = test_reports.report(found)
    found.json = json.loads((found.folder / "run.json").read_text())
    found.trace = json.loads((found.folder / "trace.json").read_text())
    found.page = test_reports.data_of_page(found)
    found.measurement = {p.name: json.loads(p.read_text()) for p in (found.folder / "measurement").glob("*.json")}
    return found


# The trace

def events(made, phase, **more):
    return [e for e in made.trace["traceEvents"] if e["ph"] == phase and all(e.get(name) == value for name, value in more.items())]


def since_origin(ms):
    """Microseconds: the trace starts a second before the first task."""
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
    """Differences of the totals (None: unknown) over their times, as for the first worker; then 0."""
    points = [(ms, value(p)) for p, ms in enumerate((*HISTORY_AT, ends))]
    found = [(a, (y - x) / (b - a) * 1000) for (a, x), (b, y) in zip(points, points[1:])]
    return [*found, (ends, 0)]


def test_trace_counters(made):
    samples = [(600 + 1000 * p, 10**6 + 5000 * p, 50.5 + p) for p in range(3)]
    expected = {"memory, bytes": ("resident", [(t, rss) for t, rss, _ in samples]), "CPU, %": ("process", [(t, cpu) for t, _, cpu in samples]),
                "tasks executing": ("executing", [(500 + 1000 * p, probe["executing"]) for p, probe in enumerate(PROBES)]),
                "tasks ready": ("ready", [(500 + 1000 * p, probe["ready"]) for p, probe in enumerate(PROBES)])}
    for title, name in (("read from files", "read_bytes"), ("mapped", "mapped_bytes"), ("from the network", "network_read_bytes"),
                        ("compressed input", "decompress_in_bytes"), ("decompressed", "decompress_out_bytes")):
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


# The measurement

COUNTED = (0, 1, 2, 5, 3)  # tasks, by their start


def begin(i):
    return frames.BASE_NS / 1e9 + ATTEMPTS[f"work-{i}"][0] / 1000


def wall(i):
    return ATTEMPTS[f"work-{i}"][1] / 1000


def near(value):
    return pytest.approx(value, rel=1e-12, abs=2e-6)


def test_measurement_chunks(made):
    found = made.measurement["metrics.json"]
    for row, i in zip(found["raw_chunk_metrics"], COUNTED, strict=True):
        given = task_values(i)
        mem = [given[f"rss_{end}_bytes"] / 2**20 for end in ("start", "stop")]
        assert row == {
            "t_start": near(begin(i)), "t_end": near(begin(i) + wall(i)), "timestamp": near(begin(i) + wall(i)), "duration": given["coffea_processtime"],
            "duration_of": "process()", "wall_seconds": wall(i), "mem_before_mb": near(mem[0]), "mem_after_mb": near(mem[1]),
            "mem_delta_mb": near(mem[1] - mem[0]), "bytes_read": given["coffea_bytesread"], "bytes_read_of": "requested", "num_events": 100 + i,
            "dataset": f"set{i % 2}", "file": "/data/a.root", "entry_start": 1000 * i, "entry_stop": 1000 * i + 100 + i,
            "accessed_bytes": given["basket_bytes"], "accessed_uncompressed_bytes": given["basket_raw_bytes"], "accessed_branches": ["x", "y"],
            "num_branches_accessed": 2, **({"sections": [
                {"section_name": name, "time_delta": seconds, "calls": calls, "thread": thread} for name, thread, _, calls, seconds in SHOWN[i % 4]]}
                if SHOWN[i % 4] else {}), **({"sections_refused": 7} if i % 4 == 2 else {})}
    assert found["chunk_info"] == {f"('/data/a.root', {1000 * i}, {1000 * i + 100 + i})": [
        near(begin(i)), near(begin(i) + wall(i)), task_values(i)["coffea_bytesread"]] for i in COUNTED}
    for k in range(2):
        given = [task_values(i) for i in COUNTED if i % 2 == k]
        row, n = found["per_dataset"][f"set{k}"], len(given)
        assert row == {
            "num_chunks": n, "total_duration": near(sum(g["coffea_processtime"] for g in given)),
            "mean_duration": near(sum(g["coffea_processtime"] for g in given) / n), "total_events": sum(g["events"] for g in given),
            "mean_events_per_chunk": near(sum(g["events"] for g in given) / n), "cpu_seconds": near(sum(g["cpu_ns"] + g["pool_cpu_ns"] for g in given) / 1e9),
            **{name: sum(g[name] for g in given) for name in ("coffea_bytesread", "read_bytes", "storage_read_bytes")}}
    assert list(found["per_dataset"]) == ["set0", "set1"]


def test_measurement_rest(made):
    found, config = made.measurement["metrics.json"], made.measurement["config.json"]
    ratio = FILE["basket_bytes"] / FILE["basket_raw_bytes"]
    assert found["file_metadata"] == {"a": {"filename": "a", "compression_ratio": near(ratio)}} and found["compression_ratios"] == [near(ratio)]
    assert found["file_read_metrics"] == {"a": {"file_bytes": FILE["size_bytes"], "bytes_read": USED, "bytes_read_percent": near(100 * USED / FILE["size_bytes"])}}
    assert found["bytes_read_percent_per_file"] == [near(100 * USED / FILE["size_bytes"])]
    assert found["sections"] == {"fill": {"type": "section", "count": 7, "total_duration": 0.6, "mean_duration": near(0.6 / 7)},
                                 "jets": {"type": "section", "count": 0, "total_duration": 0}}
    given = [task_values(i) for i in COUNTED]
    spans = {"compress": ("seconds", sum(g["compress_cpu_ns"] for g in given) / 1e9), "decompress": ("seconds", sum(g["decompress_cpu_ns"] for g in given) / 1e9),
             "disk-read": ("bytes", sum(g["storage_read_bytes"] for g in given)), "disk-write": ("bytes", sum(g["storage_write_bytes"] for g in given)),
             "thread-cpu": ("seconds", 1.5 + 2.5)}
    assert found["raw_span_metrics"] == {f"('execute', 'work', '{name}', '{unit}')": near(v) for name, (unit, v) in spans.items()}
    order = [ast.literal_eval(key) for key in found["raw_span_metrics"]]  # of one activity the plots keep the last entry: its bytes
    assert order == sorted(sorted(order, key=lambda names: names[3], reverse=True), key=lambda names: names[:3])
    assert (config["run"], config["spans"]) == (made.json["run"], [test_reports.SPAN])
    assert config["workers"] == [{"worker": f"tcp://w{k}:1", "host": "node", "nthreads": 2, "memory_limit_bytes": 9 * 10**6, "python": f"3.1{k}",
                                  "dask": "2026.1", "coffea": "2026.2", "uproot": f"5.{k}"} for k in range(2)]
    meta = made.measurement["metadata.json"]
    assert (meta["elapsed_time_seconds"], meta["format"]) == (near(3.95), "roastcoffea_measurement_v1") and meta["written_by"].startswith("crema ")
    assert abs(datetime.datetime.fromisoformat(meta["timestamp"]).timestamp() - datetime.datetime.now().timestamp()) < 60


def test_bytes_by_dataset_and_columns(made):
    names = ("read_bytes", "mapped_bytes", "network_read_bytes", "large_read_bytes", "cached_bytes", "readahead_bytes", "basket_calls", "page_calls", "clusters_used",
             "basket_bytes", "basket_raw_bytes", "storage_read_bytes")
    found = made.json["bytes"]
    rows = [*((row, [i for i in COUNTED if row["dataset"] == f"set{i % 2}"]) for row in found["datasets"]), *((row, COUNTED) for row in found["branch_sets"])]
    assert [row["dataset"] for row in found["datasets"]] == ["set0", "set1"] and [row["columns"] for row in found["branch_sets"]] == [["x", "y"]]
    for row, which in rows:
        given = [task_values(i) for i in which]
        assert row["chunks"] == len(which) and row["requested_bytes"] == sum(g["coffea_bytesread"] for g in given)
        assert {name: row[name] for name in names} == {name: sum(g[name] for g in given) for name in names}
        assert row["requested_amplification"] == near(row["requested_bytes"] / row["basket_bytes"])
        assert row["outside_basket_bytes"] is row["read_amplification"] is None  # they mapped some bytes


# The nearest of three samples 0.6, 1.6 and 2.6 s after the start, or of three messages of Dask a tenth earlier, to 0, 0.5 ... 3.5 and
# 3.95 s; if two are equally near, either.
NEAREST = {"sample": "000112222", "probe": ("0", "0", "01", "1", "12", "2", "2", "2", "2"), "seen": ("0", "0", "0", "01", "1", "12", "2", "3", "3")}


def test_measurement_tracking(made):
    found = made.measurement["metrics.json"]["tracking_data"]
    base = frames.BASE_NS / 1e9
    series = {"worker_memory": ("sample", [10**6, 1_005_000, 1_010_000]), "worker_cpu": ("sample", [50.5, 51.5, 52.5]),
              "worker_memory_limit": ("probe", [9_000_000, 9_000_001, 9_000_002]), "worker_cores": ("probe", [2, 3, 4]), "worker_nbytes": ("probe", [6000, 6001, 6002]),
              "worker_executing": ("probe", [1, 2, 3]), "worker_active_tasks": ("probe", [11, 13, 15]),
              "worker_occupancy": ("probe", [near(p["occupancy"]) for p in made.json["tracking_data"]["worker_occupancy"]["tcp://w0:1"]]),
              "worker_last_seen": ("seen", [base + 0.5 + p for p in range(4)])}
    moments = [*(0.5 * i for i in range(8)), 3.95]
    for name, (which, values) in series.items():
        told = found[name]["tcp://w0:1"]
        assert [datetime.datetime.fromisoformat(t).timestamp() - base for t, _ in told] == pytest.approx(moments, abs=2e-6), name
        for (_, value), of in zip(told, NEAREST[which], strict=True):
            assert value in [values[int(k)] for k in of], name
        assert all(isinstance(value, float if name in ("worker_cpu", "worker_occupancy", "worker_last_seen") else int) for _, value in told), name
        assert set(found[name]) == ({"tcp://w0:1", "tcp://w1:1"} if name == "worker_last_seen" else {"tcp://w0:1"})
    # the other worker was sampled once, at the end: it counts within a second and a half
    assert [(round(datetime.datetime.fromisoformat(t).timestamp() - base, 3), v) for t, v in found["worker_last_seen"]["tcp://w1:1"]] == [
        (t, pytest.approx(base + 3.501, abs=1e-5)) for t in (2.5, 3, 3.5, 3.95)]
    assert set(found) == {*series, "worker_counts", "estimated"} and found["estimated"] == ["worker_active_tasks", "worker_occupancy"]
    assert {round(datetime.datetime.fromisoformat(t).timestamp() - base, 3): n for t, n in found["worker_counts"].items()} == {0: 2, 1: 2, 2: 2, 3: 2, 3.95: 2}


def test_measurement_counts():
    """A step is two points, a microsecond apart; duplicates appear once."""
    def at_(second, n):
        return {"timestamp": f"2026-11-18T11:06:{second:02}.000000+00:00", "worker_count": n}

    assert write_folder.counts([at_(0, 1), at_(1, 1), at_(1, 2), at_(2, 2), at_(2, 2)]) == {
        "2026-11-18T11:06:00.000000+00:00": 1, "2026-11-18T11:06:00.999999+00:00": 1, "2026-11-18T11:06:01.000000+00:00": 2,
        "2026-11-18T11:06:02.000000+00:00": 2}
    assert write_folder.counts([]) == {}


# Long waits, hosts, and completeness

def test_long_waits(made):
    seconds = {"calls": sum(BLOCKED["calls"].values()), "ns": sum(BLOCKED["ns"].values())}
    assert made.json["completeness"]["long_waits"] == {
        "threshold_seconds": 0.025, "waits": seconds["calls"], "waited_seconds": near(seconds["ns"] / 1e9), "with_record": 4, "dropped": seconds["calls"] - 4,
        "beyond_the_table": 0, "rows_left_out": 0}
    expected = []
    for wait, prefix, file, peer, ns, place in (("network", "work", None, "files:1094", [900], 0x1002), ("lock", "work", "/data/a.root", None, [30, 51], 0x1000),
                                                ("gil", "other", None, None, [45], 0x1003)):
        expected.append({"wait": wait, "prefix": prefix, "file": file, "peer": peer, "line": None, "python_frames": None,
                         "python_frames_cut": None, "count": len(ns), "waited_seconds": near(sum(ns) / 1000),
                         "longest_seconds": near(max(ns) / 1000), "longest_holder": None, "longest_holder_samples": None, "longest_samples": None,
                         "longest_holder_frames": None, "frames": [f"none.so+{place:#x}", "0x2000"],
                         "stack": [{"function": None, "module": "/lib/none.so", "build_id": "ab12", "offset": hex(place)},
                                   {"function": None, "module": None, "build_id": None, "offset": "0x2000"}]})
    assert made.json["blocking"] == expected
    page = [{"wait": r["wait"], "prefix": r["prefix"], "object": r["file"] or r["peer"], "calls": r["count"], "seconds": r["waited_seconds"],
             "longest_seconds": r["longest_seconds"], "frames": r["frames"]} for r in expected]
    found = made.page["blocking"]
    assert (found["known"], found["threshold_seconds"], found["total"]) == (True, 0.025, 3)
    assert [{name: row[name] for name in page[0]} for row in found["rows"]] == page
    shown = [[{"gil": "GIL"}.get(r["wait"], r["wait"]), r["frames"][0], *([(r["file"] or r["peer"]).rpartition("/")[2]] if r["file"] or r["peer"] else []),
              r["prefix"], str(r["count"]), as_seconds(sum(ns) / 1000), as_seconds(max(ns) / 1000)] for r, ns in zip(expected, ([900], [30, 51], [45]))]
    table = tables_of(made)["Long waits (25 ms and more), most time first"]
    assert table == [["wait", "called from", "on", "task", "count", "total", "longest"], *shown, ["5 more such waits of these workers left no record"]]


def test_hosts(made):
    metrics = made.json["metrics"]
    for kind, name in (("net", "host_net_io"), ("disk", "host_disk_io")):
        (host,) = metrics[name]
        assert host["host"] == "node"
        for p, point in enumerate(host["points"], 1):
            rates = {way: (HOSTS[p][f"{kind}_{way}_bytes"] - HOSTS[p - 1][f"{kind}_{way}_bytes"]) / 1.5 for way in ("read", "write")}
            assert datetime.datetime.fromisoformat(point.pop("timestamp")).timestamp() == pytest.approx(frames.BASE_NS / 1e9 + 0.1 + 1.5 * p, abs=1e-5)
            assert point == {"seconds": near(1.5), **{f"{way}_bytes_per_second": pytest.approx(rates[way]) for way in rates}}
        assert len(host["points"]) == 2
        for way in ("read", "write"):
            assert metrics[f"host_{kind}_{way}_peak_mbs"] == pytest.approx(rates[way] / 1e6)
    sample = made.json["workers"][0]["host_sample"]
    for name, value in HOSTS[2].items():
        assert sample[name] == value, name
    assert made.json["workers"][1]["host_sample"] is None


def test_completeness(made):
    found = made.json["completeness"]
    both = {part: {name: sum(last(k)[part][name] for k in range(2)) for name in last(0)[part]} for part in PARTS}
    amounts = {part: {name: 2 * v for name, v in row.items()} for part, row in AMOUNTS.items()}

    def three(cpu_ns, read, write):
        return {"cpu_seconds": near(cpu_ns / 1e9), "storage_read_bytes": read, "storage_write_bytes": write}

    tasks, process, seen = both["tasks"], amounts["process"], amounts["seen"]
    cpu = tasks["cpu_ns"] + tasks["pool_cpu_ns"]
    ways = ("storage_read_bytes", "storage_write_bytes")
    assert {name: found["tasks"][name] for name in ("cpu_seconds", *ways)} == three(cpu, *(tasks[w] for w in ways))
    assert {name: found["unattributed"][name] for name in ("cpu_seconds", *ways)} == three(seen["cpu_ns"] - cpu, *(seen[w] - tasks[w] for w in ways))
    assert found["unseen"] == three(process["cpu_ns"] - seen["cpu_ns"], *(process[w] - seen[w] for w in ways))
    assert found["rusage"] == three(process["cpu_ns"], *(process[w] for w in ways))
    assert found["children"] == three(amounts["children"]["cpu_ns"], *(amounts["children"][w] for w in ways))
    assert (found["shared_network_read_bytes"], found["shared_network_write_bytes"]) == (6001, 1000)
    for part in PARTS:
        for name in COUNTS:
            if name in found[part] and name not in ways:
                assert found[part][name] == both[part][name], (part, name)
    table = {row[0]: row[1:] for title, rows in tables_of(made).items() if title.startswith("Completeness") for row in rows}
    for title, part in (("tasks", "tasks"), ("unattributed: other threads", "unattributed"), ("unseen: unknown threads", "unseen"),
                        ("worker processes (getrusage)", "rusage"), ("ended children (not included)", "children")):
        row = found[part]
        assert table[title] == [as_seconds(row["cpu_seconds"]), *(as_bytes(row[w]) for w in ways), *([as_bytes(row["read_bytes"])] if "read_bytes" in row else [])]
    assert table["Dask's own connections"] == [as_bytes(sum(found[part][f"comm_{w}_bytes"] for part in PARTS)) for w in ("read", "write")]
    page = made.page["completeness"]
    for part, name in (("tasks", "tasks"), ("unattributed", "unattributed"), ("unseen", "unseen"), ("process", "rusage")):
        assert (page[f"{part}_cpu_seconds"], page[f"{part}_storage_bytes"]) == (found[name]["cpu_seconds"], found[name]["storage_read_bytes"])
    assert (page["notes"], page["notes_total"], page["files_read"], page["files_torn"]) == (found["notes"], len(found["notes"]), 1, 0)


def test_activities(made):
    """Dask's own activities by worker."""
    found = {name: worker["activities"] for name, worker in made.json["metrics"]["per_worker"].items()}
    assert found == {f"tcp://w{k}:1": {"thread-cpu": {"seconds": 1.5 + k}} for k in range(2)}


def test_findings(made):
    """The evidence of each finding; a wait names its cause as far as it is known."""
    given = [task_values(i) for i in COUNTED]
    seconds = {t: sum(g[f"{t}_ns"] for g in given) / 1e9 for t in TIMES}
    cpu = seconds["cpu"] + sum(g["pool_cpu_ns"] for g in given) / 1e9
    codecs = sum(g["decompress_cpu_ns"] + g["compress_cpu_ns"] for g in given) / 1e9
    all_cpu = cpu + (task_values(9)["cpu_ns"] + task_values(9)["pool_cpu_ns"]) / 1e9
    calls, read = (sum(g[name] for g in given) for name in ("read_calls", "read_bytes"))
    writes, written, syncs = (sum(g[name] for g in given) for name in ("write_calls", "write_bytes", "sync_calls"))
    again, baskets = (sum(g[name] for g in given) for name in ("repeated_basket_bytes", "basket_bytes"))
    threads, idle = 6 * 3.95, 6 * 3.95 - 4.25

    def wait(name, **more):
        of = {"runqueue": "runqueue_wait_seconds"}.get(name, f"{name}_seconds")
        return {of: seconds[name], "task_wall_seconds": 4.2, "percent": 100 * seconds[name] / 4.2, **more}

    refused = {f"{name}_at_least": last_of(name) for name in ("tasks_refused", "records_refused")}
    expected = {
        "incomplete": refused, "silent_workers": {"silent_workers": 1, "workers": 2, "worker": "tcp://w1:1"},
        "failed_work": {"attempts": 1, "wall_seconds": 0.05, "read_bytes": task_values(9)["read_bytes"], "prefix": "work", "first_dataset": "set1", "first_file": "/data/a.root",
                        "first_entrystart": 9000, "first_entrystop": 9109},
        "python_heavy": {"total_cpu_time_true": cpu, "cpu_outside_codecs_seconds": cpu - codecs, "total_events": 511,
                         "microseconds_per_event": (cpu - codecs) / 511 * 1e6},
        "gil_wait": wait("gil_wait", cores_per_worker=3),
        "storage_wait": wait("storage_wait", write_calls=writes, write_bytes=written, sync_calls=syncs),
        "network_wait": wait("network_wait", server="files:1094", requests=60, mean_latency_seconds=8 / 60),
        "lock_wait": wait("lock_wait", longest_site="none.so+0x1000", longest_site_seconds=0.081), "sleeping": wait("sleep"),
        "run_queue": wait("runqueue", host="node", threads=6, cores=9),
        "reread_in_task": {"repeated_basket_bytes": again, "basket_bytes": baskets, "percent": 100 * again / baskets, "file": "/data/a.root"},
        "idle_threads": {"total_cores": 6, "wall_time": 3.95, "idle_thread_seconds": idle, "task_wall_seconds_all": 4.25, "percent": 100 * idle / threads,
                         "thread_seconds": threads},
        "low_cpu_efficiency": {"total_cpu_time_true_all": all_cpu, "thread_seconds": threads, "percent": 100 * all_cpu / threads, "most": "without a task",
                               "most_seconds": idle, "most_percent": 100 * idle / threads},
        "few_chunks": {"num_chunks": 5, "threads": 6, "wall_time": 3.95, "chunksize": 20},  # 511 events: 21 would give 4 chunks per thread
         "failed_requests": {"failed": 7, "requests": 60, "server": "files:1094", "server_failed": 7},
        "small_reads": {"read_calls": calls, "read_bytes": read, "mean_bytes": read / calls},
        "cpu_bound": {"cpu_and_runqueue_seconds": seconds["cpu"] + seconds["runqueue"], "task_wall_seconds": 4.2,
                      "percent": 100 * (seconds["cpu"] + seconds["runqueue"]) / 4.2, "task_cpu_seconds": seconds["cpu"], "runqueue_wait_seconds": seconds["runqueue"],
                      "cpu_outside_codecs_seconds": cpu - codecs},
        "small_writes": {"write_calls": writes, "write_bytes": written, "mean_bytes": written / writes, "task_cpu_seconds": cpu, "sync_calls": syncs}}
    spoken = {f["id"]: f for f in made.json["findings"]}
    found = spoken | {f["id"]: f for f in made.json["findings_left_out"]}
    assert set(found) == set(expected)
    for name, evidence in expected.items():
        told = {e["name"]: e["value"] for e in found[name]["evidence"]}
        assert set(told) == set(evidence), name
        for key, value in evidence.items():
            assert told[key] == value or told[key] == pytest.approx(value, rel=1e-9, abs=2e-6), (name, key)
    said = {"storage_wait": f"; {syncs:,} calls of fsync waited for the disk", "gil_wait": "; workers had 3 threads",
            "network_wait": "; 'files:1094' answered 60 requests in 133.3 ms on average", "lock_wait": "; 81.00 ms of long waits at 'none.so+0x1000'",
            "run_queue": "; 'node' has 6 worker threads on 9 cores, so other processes kept the cores busy", "failed_work": f", {as_bytes(task_values(9)['read_bytes'])} read",
            "low_cpu_efficiency": f"; threads were without a task for {100 * idle / threads:.0f} %"}
    for name, end in said.items():
        assert found[name]["sentence"].endswith(end), name
    rows = {f["id"]: f for f in made.page["findings"]["rows"]}
    assert rows == spoken and [f["id"] for f in made.page["findings"]["rows"]] == list(spoken)
    assert (made.page["findings"]["total"], made.page["findings"]["made"]) == (len(spoken), made.json["findings_checked"]["made"])
    printed = re.sub(r"\s+", " ", made.printed)
    for f in spoken.values():
        assert re.fullmatch(r"|costs (about|at least|less than) [0-9.]+ of [0-9.]+ s(; the advice saves .+)?", f["cost"] or ""), f["cost"]
        assert " ".join([f["severity"].upper(), f["sentence"], *([f["cost"]] if f["cost"] else []), f["advice"]]) in printed, f["id"]


def last_of(name):
    """Both workers' last totals."""
    return 2 * test_reports.REFUSED[name]


# The page

def test_page(made):
    page = made.page
    given = {i: task_values(i) for i in (*COUNTED, 9)}
    classes = {"gil": "gil_wait", "lock": "lock_wait", "network": "network_wait", "storage": "storage_wait", "cpu": "cpu", "runqueue": "runqueue", "sleep": "sleep"}

    def of(which):
        found = {shown: sum(given[i][f"{name}_ns"] for i in which) / 1e9 for shown, name in classes.items()}
        return {name: near(v) for name, v in {**found, "unclassified": sum(map(wall, which)) - sum(found.values()), "unmeasured": 0}.items()}

    assert page["time"] == {"all_attempts": False, "wall_seconds": near(4.2), "pool_cpu_seconds": near(sum(given[i]["pool_cpu_ns"] for i in COUNTED) / 1e9), "classes": of(COUNTED),
                            "budget": {"wall_seconds": near(3.95), "threads": 6, "thread_seconds": near(6 * 3.95), **of((*COUNTED, 9)), "idle": near(6 * 3.95 - sum(map(wall, given)))}}
    for row, (k, which) in zip(page["balance"]["rows"], enumerate(((0, 2, 5, 9), (1, 3)))):
        cpu = sum(given[i]["cpu_ns"] + given[i]["pool_cpu_ns"] for i in which) / 1e9
        assert row == {"worker": f"tcp://w{k}:1", "host": "node", "threads": 2, "tasks": len(which), "events": sum(given[i]["events"] for i in which if i != 9) + (
            109 if k == 0 else 0), "wall_seconds": near(sum(map(wall, which))), "cpu_seconds": near(cpu), "classes": of(which), "silent": k == 1,
            "end": None if k else "exit", **{name: sum(given[i][name] for i in which) for name in ("read_bytes", "storage_read_bytes")}}
    rows = {row["key"]: row for row in page["slowest"]["rows"]}
    assert page["slowest"]["total"] == len(rows) == 6
    for i in given:
        assert rows[f"work-{i}"] == {"key": f"work-{i}", "prefix": "work", "worker": f"tcp://w{int(i in (1, 3))}:1", "status": "erred" if i == 9 else "ok",
                                     "waste_reason": "erred" if i == 9 else None, "wall_seconds": wall(i), "events": given[i]["events"],
                                     "read_bytes": given[i]["read_bytes"], "classes": {k: v for k, v in of((i,)).items() if k != "unmeasured"}}
    stream = page["stream"]
    assert {name: stream[name] for name in ("lanes_total", "total", "in_lanes", "lanes")} == {
        "lanes_total": 2, "total": 6, "in_lanes": 6, "lanes": ["tcp://w0:1", "tcp://w1:1"]}
    order = ("cpu", "runqueue", "gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep")
    for bar in stream["bars"]:
        i = int(bar[0][-1])
        start, seconds = ATTEMPTS[f"work-{i}"]
        times = [given[i][f"{name}_ns"] // 1000 for name in order]
        assert bar[1:] == [int(i in (1, 3)), pytest.approx(1000 * start, abs=1), pytest.approx(1000 * seconds, abs=1), "erred" if i == 9 else "ok", i != 9, 0,
                           *times, pytest.approx(1000 * seconds - sum(times), abs=2)]
    assert sorted(page["scatter"]["points"]) == sorted([100 + i, 1000 * ATTEMPTS[f"work-{i}"][1], i % 2, pytest.approx(1000 * ATTEMPTS[f"work-{i}"][0], abs=1)] for i in COUNTED)
    assert (page["scatter"]["total"], page["scatter"]["datasets"]) == (5, [
        [f"set{k}", len(walls), pytest.approx(1e6 * statistics.median(walls), abs=1)] for k in range(2) for walls in [[wall(i) for i in COUNTED if i % 2 == k]]])
    levels, width = page["levels"], page["levels"]["bin"] / 1e6
    for name, values in levels["classes"].items():
        whole = sum(given[i][f"{classes[name]}_ns"] for i in given) / 1e9 if name in classes else None
        if whole is not None:
            assert sum(values) / 1000 * width == pytest.approx(whole, rel=2e-3), name
    assert set(classes) <= set(levels["classes"])
    at = {name: [levels["classes"][name][int(t / width)] for t in (0.3, 1.3, 2.2, 3.3)] for name in classes}
    for name, values in at.items():
        assert values == [pytest.approx(given[i][f"{classes[name]}_ns"] / 1e6 / wall(i), abs=1.5) for i in range(4)], name
    assert page["run"] == {"id": made.json["run"], "name": None, "kind": "coffea", "start": frames.BASE_NS / 1e9, "stop": near(frames.BASE_NS / 1e9 + 3.95), "running": 0, "company": [],
                           "state": "failed", "state_text": made.json["state"]["text"], "start_time": made.json["run_info"]["start_time"], "python": "3.10", "dask": "2026.1",
                           "coffea": "2026.2", "uproot": "5.0"}
    for row in page["datasets"]["rows"]:
        which = [i for i in COUNTED if f"set{i % 2}" == row["dataset"]]
        cpu, events = sum(given[i]["cpu_ns"] + given[i]["pool_cpu_ns"] for i in which) / 1e9, sum(given[i]["events"] for i in which)
        sums = {name: sum(given[i][of] for i in which) for name, of in (("requested_bytes", "coffea_bytesread"), *((n, n) for n in (
            "read_bytes", "storage_read_bytes", "basket_bytes")))}
        assert row == {"dataset": row["dataset"], "chunks": len(which), "events": events, "wall_seconds": near(sum(map(wall, which))), "cpu_seconds": near(cpu),
                       "cpu_seconds_per_event": near(cpu / events), "read_amplification": None, "classes": of(which), **sums}


# Text tables

def tables_of(made):
    """{title: rows of cells}; two spaces end a cell."""
    lines = made.printed.splitlines()
    return {line.strip(): [re.split(r" {2,}", row.strip()) for row in takewhile(str.strip, lines[i + 1:])]
            for i, line in enumerate(lines) if line and not line.startswith(" ")}


def test_list(made):
    runs = json.loads(test_reports.report(made, "--list", "--json", "-"))
    assert runs == {"runs": [{"run": made.json["run"], "name": None, "kind": "coffea", "start": frames.BASE_NS / 1e9, "wall_time": near(3.95), "num_tasks": 5, "num_attempts": 6,
                              "num_chunks": 5, "total_events": 511, "state": "failed", "running_attempts": 0}], "dropped_runs": []}
    head, row = (re.split(r" {2,}", line.strip()) for line in test_reports.report(made, "--list").splitlines())
    assert (head, row) == (["run (start, UTC)", "wall", "tasks", "chunks", "events", "state"], [made.json["run"], "3.950 s", "5", "5", "511", "failed"])


def human(value, kind):
    if value is None:
        return "unknown"
    sign, value = ("-" if value < 0 else ""), abs(value)
    if kind == "s":
        return sign + as_seconds(value) if value else "0 s"
    if kind == "B":
        return sign + as_bytes(value)
    if kind == "n":
        return f"{sign}{value:,.0f}"
    if kind == "x":
        return f"{sign}{value:.2f}x"
    if kind == "%":
        return f"{sign}{value:.1f} %"
    if 0 < value < 0.0995:
        return f"{sign}{value:.2g} {kind}"
    return sign + test_reports.short(value, kind)


def row(label, *cells):
    """A label, then (value, kind) or a text for each cell; an empty text is not a cell."""
    return [label, *(cell if isinstance(cell, str) else human(*cell) for cell in cells)]


def test_tables_of_metrics(made):
    m, tables = made.json["metrics"], tables_of(made)
    rates = [("requested, as coffea counts", "total_bytes_read_coffea"), ("read from files", "read_bytes"), ("from storage", "disk_read_bytes"),
             ("from the network", "network_read_bytes"), ("decompressed", "bytes_read_uncompressed")]
    assert tables["Throughput"] == [row(label, (m[name] / 3.95 / 1e6, "MB/s"), *([(m[name] * 8 / 3.95 / 1e9, "Gbit/s")] * (label == rates[0][0])))
                                    for label, name in rates]
    assert tables["Events"] == [
        row("events, chunks", (511, "n"), "5"), ["attempts at chunks that failed", "1"], ["columns read", "2"], row("event rate, by wall time", (511 / 3.95 / 1e3, "kHz")),
        row("event rate, per core", (511 / 3.95 / m["total_cores"], "Hz"))]
    processing, cores = sum(task_values(i)["coffea_processtime"] for i in COUNTED), m["total_cores"]
    cpu = sum(task_values(i)["cpu_ns"] + task_values(i)["pool_cpu_ns"] for i in COUNTED) / 1e9
    idle = cores * 3.95 - 4.25
    assert (cores, m["idle_thread_seconds"]) == (6, near(idle))
    assert tables["Phases"] == [
        ["first start to last end", "summed over threads"], ["preprocessing", "unknown", "0 s"], row("processing", (3.9, "s"), (4.2, "s")), ["merging", "0 s"],
        row("threads without a task", (idle, "s"))]
    assert tables["Efficiency"] == [
        ["coffea: wall", "true: CPU"], row("time in process() / CPU of chunks", (processing, "s"), (cpu, "s")), row("per chunk", (processing / 5, "s"), (cpu / 5, "s")),
        row("per event", (processing / 511, "s"), (cpu / 511, "s")),
        row("event rate, aggregated", (511 / processing / 1e3, "kHz"), (511 / cpu / 1e3, "kHz")),
        row("core efficiency", (100 * processing / cores / 3.95, "%"), (100 * cpu / cores / 3.95, "%")), row("speedup", (processing / 3.95, "x"), (cpu / 3.95, "x")),
        row("efficiency ratio", (100 * processing / 3.95, "%"), (100 * cpu / 3.95, "%"))]
    peak = max(task_values(i)["rss_peak_bytes"] for i in (*COUNTED, 9))

    def grown(name):
        return HOSTS[2][name] - HOSTS[0][name]

    used = [100 * memory / limit for memory, limit in ((10**6, 9_000_000), (1_005_000, 9_000_001), (1_010_000, 9_000_002))]
    assert tables["Resources"] == [
        ["workers: average, peak", "2", "2"], ["threads: per worker, all", "3", "6"], row("memory of a worker: average, peak", (1_005_000, "B"), (peak, "B")),
        row("of its limit: average, peak", (m["avg_memory_utilization_percent"], "%"), (used[-1], "%")), ["pressure (above 80 %)", "no"],
        row("threads with a task", (m["avg_cpu_utilization_percent"], "%")), row("CPU of a worker (100 % = a core)", (51.5, "%")),
        row("busiest worker / mean", (m["worker_imbalance"], "x")), ["spilled by Dask, peak", "702 B"],
        *(line for kind, title, sides in (("net", "network of the hosts: in, out", "rw"), ("disk", "disks of the hosts: read, written", "rw")) for line in (
            row(title, *((m[f"host_{kind}_{way}_bytes"], "B") for way in ("read", "write"))),
            row("busiest second of a host", *(((HOSTS[2][f"{kind}_{way}_bytes"] - HOSTS[1][f"{kind}_{way}_bytes"]) / 1.5e6, "MB/s") for way in ("read", "write"))))),
        *([f"{name}: the server sent {human(grown(f'{kind}_server_read_bytes'), 'B')} for {human(grown(f'{kind}_read_bytes'), 'B')} "
           "read (all processes)"] for kind, name in (("nfs", "NFS"), ("lustre", "Lustre")))]
    assert tables["Fine metrics"][:3] == [
        ["Dask reports", "crema measured"], row("CPU of tasks", (4, "s"), (cpu, "s")),
        row("not CPU / storage and network", "0 s", (sum(task_values(i)[f"{c}_wait_ns"] for i in COUNTED for c in ("storage", "network")) / 1e9, "s"))]
    fine = {line[0]: line[1:] for line in tables["Fine metrics"]}
    for way in ("compress", "decompress"):
        title = next(title for title in fine if title.startswith(f"{way}: Dask"))
        assert fine[title] == row("", "0 s", (sum(task_values(i)[f"{way}_cpu_ns"] for i in COUNTED) / 1e9, "s"))[1:]
    assert (fine["processor: CPU"], fine["processor: CPU share"]) == ([*row("", (4, "s"))[1:], *row("", (cpu, "s"))[1:]], ["100.0 %"])


def spread(values):
    mean = sum(values) / len(values)
    return min(values), mean, max(values), (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5


def test_tables_of_tasks(made):
    tables, given = tables_of(made), [task_values(i) for i in COUNTED]
    grown = [g["rss_stop_bytes"] - g["rss_start_bytes"] for g in given]
    spreads = [("time in process() (coffea)", [g["coffea_processtime"] for g in given], "s"), ("wall time of the whole task", [wall(i) for i in COUNTED], "s"),
               ("time in process() per event", [g["coffea_processtime"] / g["events"] for g in given], "s"), ("events", [g["events"] for g in given], "n"),
               ("memory growth", grown, "B"), ("memory growth per event", [v / g["events"] for v, g in zip(grown, given)], "B")]
    assert tables["Chunks"] == [["least", "mean", "most", "std"], *(row(title, *((v, kind) for v in spread(values))) for title, values, kind in spreads)]
    each = [("set1", [g for g in given if g["dataset"] == "set1"], 2.4), ("set0", [g for g in given if g["dataset"] == "set0"], 1.8)]

    def sums(group, *names):
        return [(sum(g[name] for g in group), "B") for name in names]

    def cpu(group):
        return sum(g["cpu_ns"] + g["pool_cpu_ns"] for g in group) / 1e9, "s"

    assert tables["Datasets"] == [["dataset", "chunks", "wall", "CPU", "read", "unpacked", "events"], *(
        row(name, (len(group), "n"), (seconds, "s"), cpu(group), *sums(group, "read_bytes", "decompress_out_bytes"), (sum(g["events"] for g in group), "n"))
        for name, group, seconds in each)]
    assert tables["Task prefixes"] == [["prefix", "tasks", "wall", "CPU", "read", "unpacked", "storage"],
                                       row("work", "5", (4.2, "s"), cpu(given), *sums(given, "read_bytes", "decompress_out_bytes", "storage_read_bytes"))]
    requested = tables["Requested, read and used bytes of counted chunks"]
    assert requested[0] == ["dataset", "chunks", "requested", "read", "baskets", "req./bask.", "read/bask."]

    def used(label, group):
        bytes_of = {name: sum(g[name] for g in group) for name in ("coffea_bytesread", "read_bytes", "basket_bytes")}
        return row(label, str(len(group)), *((v, "B") for v in bytes_of.values()), (bytes_of["coffea_bytesread"] / bytes_of["basket_bytes"], "x"), "unknown")

    assert requested[1:5] == [used("set0", each[1][1]), used("set1", each[0][1]), ["columns", *requested[0][1:]], used("2 columns", given)]
    assert requested[5] == ["2 columns: x, y"]
    files = tables["Files of chunks, all attempts: each basket once"]
    assert files[0] == ["file", "chunks", "read", "again", "baskets", "outside them", "cached"]
    assert files[1] == row("a.root", "5", (FILE["read_bytes"], "B"), (FILE["read_bytes"] - 300_000, "B"), *row_of_file(made))
    out = sum(g["coffea_bytesread"] - g["basket_bytes"] for g in given)
    text = " ".join(" ".join(line) for line in requested[6:])
    assert text == (f"coffea's bytesread, {human(sum(g['coffea_bytesread'] for g in given), 'B')}, is {requested[4][5]} the {requested[4][4]} of baskets used: "
                    f"each of the 5 chunks opens its file and requests {human(out / 5, 'B')} of metadata (and gaps) again.")
    classes = [("CPU, own thread", "cpu"), ("waiting for a core", "runqueue"), ("waiting for the interpreter lock", "gil_wait"), ("waiting for other locks", "lock_wait"),
               ("waiting for the network", "network_wait"), ("waiting for storage", "storage_wait"), ("asleep", "sleep")]
    shown, rest = [], 4.2
    for title, name in classes:
        own = sum(g[f"{name}_ns"] for g in given) / 1e9
        rest -= own
        shown.append(row(title, (own, "s"), (100 * own / 4.2, "%"), "#" * round(100 * own / 4.2 / 5)))
    pool = sum(g["pool_cpu_ns"] for g in given) / 1e9
    timing = tables["Timing: where the time of counted tasks went"]
    assert timing[:-2] == [
        ["of wall"], *shown, row("not classified", (rest, "s"), (100 * rest / 4.2, "%")), row("wall time of tasks", (4.2, "s"), "100.0 %"),
        row("CPU of pool threads (not included)", (pool, "s"), (100 * pool / 4.2, "%"))]
    assert " ".join(timing[-2] + timing[-1]) == ("other virtual machines took 4.000 s of CPU from these hosts: the tasks' share of it is not classified")
    codec = made.json["codecs"][0]
    assert tables["Codecs: decompression of all attempts"][1][-1] == human(codec["out_bytes"] / codec["cpu_seconds"] / 1e6, "MB/s")
    assert made.printed.splitlines()[:6] == [
        f"run {made.json['run']}   began 2026-11-18 11:06:40 UTC",
        "  failed: 1 task failed, first work-9, dataset set1, file /data/a.root, entries", "  9000 to 9109", "  wall time 3.950 s (first to last task on the workers)",
        "  5 of 6 attempts at tasks counted, 1 wasted, 2 workers", "  Python 3.10, coffea 2026.2, uproot 5.0"]


def row_of_file(made):
    file, = made.json["files"]
    return (file["read_basket_bytes"], "B"), (file["outside_basket_bytes"], "B"), (file["cached_bytes"], "B")
