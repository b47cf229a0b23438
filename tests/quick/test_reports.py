"""Reports of a run made by hand in which every number is different: each number of the journal is in its place, and in
no other, in JSON, CSV, SQLite and the folder of `--measurement`. The truth is what this file wrote to the journal."""

import datetime
import json
import os
import re
import sqlite3
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import frames
import tables

SPAN, CHUNK, WORKERS = "span-1", 2, (b"a" * 16, b"b" * 16)
TEXT, ROWS = ((ROOT / "contract" / name).read_text() for name in ("counters.def", "rows.def"))
TIMES, COUNTS = (re.findall(rf"^{kind}\((\w+),", TEXT, re.M) for kind in ("TIME", "COUNT"))


def at(ms):
    return frames.BOOT_NS + ms * 10**6


def number(*of):
    """A different number for each, below a million."""
    return 1 + sum((i + 3) * 7919 * sum(map(ord, str(word))) for i, word in enumerate(of)) % 999_983


def worker_of(i):
    return 0 if i == 9 else i % 2


# As an agent writes them, and as a reader shows them: a name may contain anything.
SECTIONS = ["0", "0 t 3 1500000000 4 jets", "7 t 3 1500000000 8 jets/a b p 1 250000000 9  t 1 2 3 f 2 125000000 4 x\ny\u00e9"[:-1] + "z", None]
SHOWN = [[], [("jets", "task", "crema", 3, 1.5)],
         [("jets/a b", "task", "crema", 3, 1.5), (" t 1 2 3 ", "pool", "crema", 1, 0.25), ("x\nyz", "task", "roastcoffea", 2, 0.125)], None]


def task_values(i):
    found = {name: number("count", name, i) for name in COUNTS}
    found.update({f"{name}_ns": 1000 * number("own", name, i) for name in TIMES})
    found.update({f"pool_{name}_ns": 1000 * number("pool", name, i) for name in TIMES})
    return {**found, "rss_start_bytes": number("rss", i), "rss_stop_bytes": number("stop", i), "rss_peak_bytes": 10**6 + number("peak", i),
            "events": 100 + i, "entrystart": 1000 * i, "entrystop": 1000 * i + 100 + i, "dataset": f"set{i % 2}",
            "filename": "/data/a.root", "treename": "Events", "coffea_bytesread": number("requested", i),
            "coffea_processtime": 0.25 + i / 100, "columns": "x\ny", "sections": SECTIONS[i % 4], "function": "work", "thread_sequence": i + 1,
            "worker_address": f"tcp://w{worker_of(i)}:1"}


def row_numbers(kind, pattern):
    return re.findall(rf"^{kind}_NUMBER\({pattern},", ROWS, re.M)


FILE_CELLS = row_numbers("FILE", r'(\w+), (\w+), "[^"]*", (\w+)')
FILE = {name: number("file", name) for name, _, unit in FILE_CELLS if unit != "ns"}
FILE_TIMES = {name: 1000 * number("file", name) for name, _, unit in FILE_CELLS if unit == "ns"}
CODEC_CELLS, SERVER_CELLS = (row_numbers(kind, r'(\w+), (\w+), "[^"]*", (\w+)') for kind in ("CODEC", "SERVER"))
CODEC = {name: (1000 if unit == "ns" else 1) * number("codec", name) for name, _, unit in CODEC_CELLS}
SERVER = {**{name: (1000 if unit == "ns" else 1) * number("server", name) for name, _, unit in SERVER_CELLS}, "requests": 60,
          "failed": 7, "read_bytes": 12345, "latency_sum_ns": 8 * 10**9, "latency_max_ns": 3 * 10**9}
OF_TASKS = {name: of + ("_ns" if kind == "TIME" else "") for kind, name, of in
            re.findall(r'^COLUMN_(TIME|COUNT)\((\w+),\s*\w+,\s*"[^"]*",\s*(?:(?:calls|bytes|ns),\s*)?(\w+),', ROWS, re.M)}
COLUMN_CELLS = [(name, cell, unit or "ns") for name, cell, unit in
                re.findall(r'^COLUMN_(?:NUMBER|TIME|COUNT)\((\w+),\s*(\w+),\s*"[^"]*",\s*(?:(calls|bytes|ns),)?', ROWS, re.M)]
COLUMN = {name: (1000 if unit == "ns" else 1) * number("column", name) for name, _, unit in COLUMN_CELLS}
BUCKETS = [0] * 10 + [10, 20, 30] + [0] * 19
SECTION = {name: number("section", name) for name in COUNTS}
PARTS = {part: {name: number(part, name) for name in COUNTS} for part in ("tasks", "unattributed")}
TOTALS = {name: number("totals", name) for name, _ in row_numbers("TOTALS", r"(\w+), (\w+)")}
REFUSED = {name: value for name, value in TOTALS.items() if name.endswith("_refused")}
OF_WORKERS = [name for name, shown in row_numbers("TOTALS", r"(\w+), (\w+)") if shown == "WORKER"]


def readings(kind, p):
    """All numbers of a SAMPLE or a HOST."""
    return {name: number(kind, name, p) + (0.5 if typed == "REAL" else 0) for name, typed in row_numbers(kind, r"(\w+), (\w+)")}


SAMPLES = [{**readings("SAMPLE", p), "rss_bytes": 10**6 + 5000 * p, "cpu_percent": 50.5 + p} for p in range(3)]
PROBES = [{"nthreads": 2 + p, "executing": 1 + p, "ready": 10 + p, "in_flight_data": 20 + p, "long_running": 30 + p, "tasks": 40 + p,
           "executed": 50 + p, "nbytes_managed": 6000 + p, "spilled_bytes": 700 + p, "memory_bytes": 80000 + p,
           "memory_limit_bytes": 9 * 10**6 + p, "cpu_percent": 90.5 + p} for p in range(3)]


COLUMNS = [("Jet_pt", "set0", {}), ("Jet_pt", "set1", {}), (None, "set0", {"together": True}), (None, None, {"beyond": True})]


def fill(journal):
    for k, worker in enumerate(WORKERS):
        stack = json.dumps({"nthreads": 2, "worker_address": f"tcp://w{k}:1", "dask": "2026.1", "memory_limit_bytes": 9 * 10**6})
        journal.worker(worker, host="node", pid=100 + k, cores=8 + k, memory_bytes=16 * 10**9, cpu_model="a CPU", stack=stack)
        journal.message([15, {"boot_ns": at(0), "real_ns": frames.BASE_NS, "offset_ns": 0, "error_ns": 0}], worker)
    for i in range(4):
        journal.task(i // 2 + 1, f"work-{i}", 1000 * i, 1000 * i + 900, WORKERS[i % 2], prefix="work", flags=CHUNK, **task_values(i))
    journal.task(3, "work-9", 3900, 3950, WORKERS[0], prefix="work", flags=CHUNK, **{**task_values(9), "status": "erred"})
    for p, probe in enumerate(PROBES):
        journal.message([10, at(500 + 1000 * p), json.dumps(probe)], WORKERS[0])
        journal.message([8, {"boot_ns": at(600 + 1000 * p), **SAMPLES[p]}], WORKERS[0])
    for k, worker in enumerate(WORKERS):
        digests = [["execute", SPAN, "work", "thread-cpu", "seconds", 1.5 + k], ["get-data", None, None, "network", "bytes", 70 + k]]
        journal.message([10, at(3500 + k), json.dumps({"digests": digests})], worker)
    first = WORKERS[0]
    journal.message([12, {"path": "/data/a.root", "name": "a", "span": SPAN, "kind": "data", "storage": "exact", "filesystem": "ext4",
                          **FILE, **FILE_TIMES}], first)
    for direction in ("decompress", "compress"):
        more = direction == "compress"
        journal.message([13, {"function": f"zlib.{direction}", "codec": "zlib", "direction": direction, "span": SPAN,
                              **{k: v + more for k, v in CODEC.items()}}], first)
    journal.message([16, {"server": "files:1094", "scheme": "root", "span": SPAN, **SERVER, "latency": BUCKETS}], first)
    journal.message([17, {"number": 1, "path": "fill", "span": SPAN, "prefix": "work", "thread": "task", "source": "crema", "rev": 1,
                          "begun": 9, "count": 7, "broken": 1, "wall_ns": 6 * 10**8, "counters": SECTION}], first)
    for n, (column, dataset, flags) in enumerate(COLUMNS):
        journal.message([24, {"number": n, "column": column, "tree": "Events", "dataset": dataset, "span": SPAN, "rev": 2, **flags,
                              **({"lines": [f"/home/an.py:{line} f" for line in range(n, n + 4)], "more_lines": True} if n < 2 else {}),
                              **{name: value + n for name, value in COLUMN.items()}}], first)
    for n, kind in enumerate(("value", "memory")):
        journal.message([18, {"number": n, "path": "jets", "span": SPAN, "prefix": "work", "kind": kind, "source": "crema", "rev": 1,
                              "broken": 2, "stats": [[4, 12.0, 1.0, 7.0, 5.0]] * (1 + n)}], first)
    for k, worker in enumerate(WORKERS):
        journal.message([11, {"boot_ns": at(4000), **{name: value + k for name, value in TOTALS.items()},
                              **{part: {name: v + k for name, v in values.items()} for part, values in PARTS.items()}}], worker)
    journal.message([14, {"boot_ns": at(4500), "how": "exit", "evidence": ["ended by itself"], "cause": None, "tasks_in_flight": 3}], first)


class Made:
    """The run's report in all formats."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = Made()
    found.folder = tmp_path_factory.mktemp("reports")
    journal = frames.Journal(found.folder / "journal")
    fill(journal)
    journal.write()
    found.journal = found.folder / "journal"
    report(found, "--json", found.folder / "run.json", "--csv", found.folder / "csv", "--sqlite", found.folder / "run.db",
           "--measurement", found.folder / "measurement")
    found.json = json.loads((found.folder / "run.json").read_text())
    return found


def report(found, *options):
    done = subprocess.run([ROOT / "build" / "crema", "report", "--dir", found.journal.parent, *(options or ["--full"])], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "CREMA_QUIET": "on"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_tasks(made):
    assert len(made.json["tasks"]) == 5
    seen = set()
    for row in made.json["tasks"]:
        i = int(row["key"].rpartition("-")[2])
        given = task_values(i)
        for name in COUNTS:
            if name in row and row[name] is not None:
                assert row[name] == given[name], name
                seen.add(name)
        for name in TIMES:
            for prefix, of in (("", ""), ("pool_", "pool_")):
                if f"{prefix}{name}_seconds" in row:
                    assert row[f"{prefix}{name}_seconds"] == pytest.approx(given[f"{of}{name}_ns"] / 1e9, abs=1e-12), name
        for name in ("rss_start_bytes", "rss_stop_bytes", "rss_peak_bytes"):
            assert row[name] == given[name]
        assert (row["thread"], row["thread_sequence"], row["worker_address"]) == (7, i + 1, f"tcp://w{worker_of(i)}:1")
        assert (row["pid"], row["host"], row["function"], row["prefix"], row["span"]) == (100 + worker_of(i), "node", "work", "work", SPAN)
        assert (row["status"], row["counted"]) == (("erred", False) if i == 9 else ("ok", True))
    assert seen >= {"read_calls", "read_bytes", "decompress_in_bytes", "network_read_bytes", "basket_bytes"}


def test_chunks(made):
    chunks = [chunk for chunk in made.json["chunks"] if chunk["counted"]]
    assert [c["entrystart"] for c in chunks] == [0, 1000, 2000, 3000]
    for i, row in enumerate(chunks):
        given = task_values(i)
        for name in ("events", "entrystart", "entrystop", "dataset", "filename", "rss_start_bytes", "rss_stop_bytes"):
            assert row[name] == given[name]
        assert (row["chunk_id"], row["columns"]) == (i + 1, ["x", "y"])
        shown = row["sections"] and [tuple(s[name] for name in ("section_name", "thread", "source", "calls", "time_delta")) for s in row["sections"]]
        assert (shown, row["sections_refused"]) == (SHOWN[i % 4], (0, 0, 7, None)[i % 4])
        assert row["memory_start_gb"] == given["rss_start_bytes"] / 1e9
        assert row["memory_end_gb"] == given["rss_stop_bytes"] / 1e9
        assert row["memory_delta_gb"] == pytest.approx((given["rss_stop_bytes"] - given["rss_start_bytes"]) / 1e9, abs=1e-15)
        assert row["processing_time_seconds"] == pytest.approx(given["coffea_processtime"])
        assert row["wall_seconds"] == pytest.approx(0.9)
        assert (row["start"] - frames.BASE_NS / 1e9, row["stop"] - frames.BASE_NS / 1e9) == pytest.approx((i, i + 0.9), abs=1e-5)
        for name in COUNTS:
            if row.get(name) is not None:
                assert row[name] == given[name], name


def test_file_codec_server(made):
    (file,), (codec,), (server,) = made.json["files"], made.json["codecs"], made.json["servers"]
    for name, cell, unit in FILE_CELLS:
        assert file[cell] == (FILE_TIMES[name] / 1e9 if unit == "ns" else FILE[name]), name
    assert file["small_read_bytes"] == (FILE["read_bytes"] - FILE["large_read_bytes"] if FILE["read_bytes"] >= FILE["large_read_bytes"] else None)
    assert (file["path"], file["name"], file["filesystem"], file["storage"], file["chunks"]) == ("/data/a.root", "a", "ext4", "exact", 4)
    assert file["requested_bytes"] == sum(task_values(i)["coffea_bytesread"] for i in range(4))
    for name, cell, unit in CODEC_CELLS:
        of = 1e9 if unit == "ns" else 1
        assert (codec[cell], codec[f"compress_{cell}"]) == (CODEC[name] / of, (CODEC[name] + 1) / of)
    for name, cell, unit in SERVER_CELLS:
        assert server[cell] == SERVER[name] / (1e9 if unit == "ns" else 1), name
    assert [bucket["requests"] for bucket in server["latency_buckets"]] == [10, 20, 30]
    # the 30th of 60 is in the second bucket, the 60th in the last
    for quantile, bucket in (("p50", 1), ("p99", 2)):
        least, most = (server["latency_buckets"][bucket][end] for end in ("least_s", "most_s"))
        assert server[f"latency_{quantile}_s"] == [least, most]
    lows = [bucket["least_s"] for bucket in server["latency_buckets"]]
    assert lows == [lows[0] * 2**k for k in range(3)]


def test_read_columns(made):
    shown = {(row["kind"], row["dataset"]): row for row in made.json["read_columns"]}
    kinds = ["column", "column", "together", "beyond"]
    assert set(shown) == {*zip(kinds, [dataset for _, dataset, _ in COLUMNS]), ("rest", "set0"), ("rest", "set1")}
    for n, (column, dataset, _) in enumerate(COLUMNS):
        row = shown[kinds[n], dataset]
        assert (row["column"], row["tree"]) == (column, "Events")
        assert (row["lines"], row["more_lines"]) == ([f"/home/an.py:{line} f" for line in range(n, n + 4)] if n < 2 else [], n < 2)
        for name, cell, unit in COLUMN_CELLS:
            assert row[cell] == pytest.approx((COLUMN[name] + n) / (1e9 if unit == "ns" else 1), abs=1e-12), name
    same = {"baskets": "basket_calls", "basket_bytes": "basket_bytes", "basket_raw_bytes": "basket_raw_bytes", "requested_bytes": "coffea_bytesread"}
    known = 0
    for name, cell, unit in COLUMN_CELLS:
        of = OF_TASKS.get(name, same.get(name))
        whole = sum(task_values(i)[of] + (task_values(i)["pool_cpu_ns"] if of == "cpu_ns" else 0) for i in (0, 2)) if of else -1
        whole = 1800 * 10**6 if name == "wall_ns" else whole
        rest, found = whole - 2 * COLUMN[name] - 2, shown["rest", "set0"][cell]
        known += rest >= 0
        assert found == (None if rest < 0 else pytest.approx(rest / (1e9 if unit == "ns" else 1), abs=1e-12)), name
    assert known > 8


def test_sections(made):
    (section,), (memory,), (value,) = made.json["sections"], made.json["memory_sections"], made.json["custom_metrics"]
    for name in COUNTS:
        if section.get(name) is not None:
            assert section[name] == SECTION[name], name
    assert [section[k] for k in ("section", "prefix", "count", "broken", "unfinished", "wall_seconds")] == ["fill", "work", 7, 1, 1, 0.6]
    told = {"count": 4, "sum": 12, "min": 1, "max": 7, "last": 5}
    assert (value["value"], memory["start_bytes"], memory["end_bytes"]) == (told, told, told)
    assert memory["delta_bytes"]["count"] == 0 and memory["broken"] == 2


def test_workers(made):
    assert [row["pid"] for row in made.json["workers"]] == [100, 101]
    for k, row in enumerate(made.json["workers"]):
        assert {name: row[name] for name in TOTALS if name in row} == {name: TOTALS[name] + k for name in OF_WORKERS}
        for part, values in PARTS.items():
            for name, value in row[part].items():
                if name in values and value is not None:
                    assert value == values[name] + k, (part, name)
        assert (row["cores"], row["memory_bytes"]) == (8 + k, 16 * 10**9)
        assert (row["address"], row["cpu_model"], row["nthreads"], row["dask"]) == (f"tcp://w{k}:1", "a CPU", 2, "2026.1")
    gone = made.json["workers"][0]["goodbye"]
    assert (gone["how"], gone["tasks_in_flight"], gone["evidence"]) == ("exit", 3, ["ended by itself"])
    assert gone["time"] == pytest.approx(frames.BASE_NS / 1e9 + 4.5, abs=1e-5)


def test_completeness(made):
    """The sums in the table of completeness are those of both workers' messages."""
    whole = made.json["completeness"]
    assert (whole["workers_seen"], whole["records_bad"]) == (2, 0)
    assert {name for name in TOTALS if name not in OF_WORKERS} <= whole.keys()
    told = {"records_lost": 0, **{name: 2 * value + 1 for name, value in TOTALS.items() if name in whole}}
    assert len(told) >= 5
    for name, value in told.items():
        # The second worker went silent: its later losses and refusals are unknown, and the known number is a lower bound.
        doubtful = name in ("records_lost", "records_refused", "tasks_refused")
        assert (whole[name], whole.get(f"{name}_at_least")) == ((None, value) if doubtful else (value, None)), name
    assert [(w["silent"], w["records_lost"], w["records_lost_at_least"]) for w in made.json["workers"]] == [(False, 0, 0), (True, None, 0)]
    for part, values in PARTS.items():
        for name, value in whole[part].items():
            if name in values and value is not None:
                assert value == 2 * values[name] + 1, (part, name)


def test_sums_of_tasks(made):
    """A metric named after a counter is its sum over the counted tasks; a dataset's is the sum over its own tasks."""
    metrics, summed = made.json["metrics"], 0
    for name in COUNTS:
        if isinstance(metrics.get(name), int):
            assert metrics[name] == sum(task_values(i)[name] for i in range(4)), name
            summed += 1
    assert summed >= 10
    assert (metrics["total_events"], metrics["num_chunks"], metrics["num_tasks"]) == (406, 4, 4)
    assert metrics["total_bytes_read_coffea"] == sum(task_values(i)["coffea_bytesread"] for i in range(4))
    assert metrics["wall_time"] == pytest.approx(3.95, abs=1e-5)
    grown = [task_values(i)["rss_stop_bytes"] - task_values(i)["rss_start_bytes"] for i in range(4)]
    assert metrics["memory_per_event_bytes"] == pytest.approx(sum(g / task_values(i)["events"] for i, g in enumerate(grown)) / 4)
    assert metrics["waste"]["erred"] == pytest.approx(of_tasks([9], metrics["waste"]["erred"], attempts=1, wall_seconds=0.05))


ALSO = {"storage_read_bytes": "disk_read_bytes", "storage_read_bytes_all": "disk_read_bytes_all", "storage_write_bytes": "disk_write_bytes",
        "storage_write_bytes_all": "disk_write_bytes_all",
        "decompress_in_bytes_all": "bytes_read_compressed_all", "decompress_out_bytes_all": "bytes_read_uncompressed_all",
        "total_bytes_uncompressed": "bytes_read_uncompressed"}


def test_old_names(made):
    """A number with another name in other outputs has both names, and one value: that of the tasks."""
    metrics = made.json["metrics"]
    for name, old in ALSO.items():
        assert metrics[name] == metrics[old] is not None, name
        if name in COUNTS:
            assert metrics[name] == sum(task_values(i)[name] for i in range(4)), name
        if name.removesuffix("_all") in COUNTS and name.endswith("_all"):
            assert metrics[name] == sum(task_values(i)[name.removesuffix("_all")] for i in (*range(4), 9)), name


CALLED = {"coffea_bytesread": "coffea_bytesread", "requested_bytes": "coffea_bytesread", "events": "events"}


def of_tasks(which, row, **more):
    """A row of sums for these tasks, by the row's own names."""
    found = dict(row)
    for name, value in row.items():
        if name in COUNTS or name in CALLED:
            found[name] = sum(task_values(i)[CALLED.get(name, name)] for i in which) if value is not None else None
    found["cpu_seconds"] = sum(task_values(i)["cpu_ns"] + task_values(i)["pool_cpu_ns"] for i in which) / 1e9
    found["decompress_cpu_seconds"] = sum(task_values(i)["decompress_cpu_ns"] for i in which) / 1e9
    return {name: value for name, value in {**found, **more}.items() if name in row}


def test_groups_of_tasks(made):
    """Sums of datasets, workers and sets of columns are those of their own tasks."""
    groups = {"set0": (0, 2), "set1": (1, 3), "tcp://w0:1": (0, 2), "tcp://w1:1": (1, 3)}
    for table in ("per_dataset", "per_worker"):
        for name, row in made.json["metrics"][table].items():
            more = {"chunks": 2, "tasks": 2, "wall_seconds": 1.8, "max_chunk_wall_seconds": 0.9}
            numbers = {k: v for k, v in row.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
            expected = of_tasks(groups[name], numbers, **more)
            assert {k: numbers[k] for k in expected} == pytest.approx(expected), (table, name)
    for row in made.json["bytes"]["datasets"]:
        numbers = {k: v for k, v in row.items() if isinstance(v, int)}
        assert numbers == of_tasks(groups[row["dataset"]], numbers, chunks=2)
    row, = made.json["bytes"]["branch_sets"]
    numbers = {k: v for k, v in row.items() if isinstance(v, int)}
    assert numbers == of_tasks(range(4), numbers, chunks=4)


def test_tracking(made):
    found, (worker, *_) = made.json["tracking_data"], [w["address"] or w["worker"] for w in made.json["workers"]]
    column = {"worker_executing": ("executing", [1, 2, 3]), "worker_active_tasks": ("active_tasks", [11, 13, 15]),
              "worker_nbytes": ("nbytes", [6000, 6001, 6002]), "worker_memory": ("memory_bytes", [10**6, 1005000, 1010000]),
              "worker_memory_limit": ("memory_limit_bytes", [9000000, 9000001, 9000002]), "worker_cores": ("cores", [2, 3, 4])}
    for name, (value, expected) in column.items():
        points = next(points for points in found[name].values() if points)
        assert [point[value] for point in points] == expected, name
        offset = 0.6 if name == "worker_memory" else 0.5
        times = [datetime.datetime.fromisoformat(point["timestamp"]).timestamp() - frames.BASE_NS / 1e9 for point in points]
        assert times == pytest.approx([offset, 1 + offset, 2 + offset], abs=1e-5)
    seen = next(points for points in found["worker_last_seen"].values() if points)
    probes = [0.5, 1.5, 2.5, 3.5]
    for point in seen:
        at, last = (datetime.datetime.fromisoformat(point[name]).timestamp() - frames.BASE_NS / 1e9 for name in ("timestamp", "last_seen"))
        assert last == pytest.approx(max(probe for probe in probes if probe <= at + 1e-5), abs=1e-5)
    assert len(seen) >= 3


def test_trees_of_metrics(made):
    """Metrics that are not single numbers."""
    metrics, first = made.json["metrics"], [p["cpu_percent"] for p in made.json["metrics"]["worker_cpu_occupancy"]["tcp://w0:1"]]
    assert (metrics["columns"], metrics["processor_prefixes"]) == (["x", "y"], ["work"])
    assert first == [50.5, 51.5, 52.5]
    assert metrics["avg_worker_cpu_percent"] == pytest.approx(51.5)
    assert metrics["span_metrics"] == [["execute", "work", "thread-cpu", "seconds", 1.5 + 2.5]]
    assert metrics["per_task_metrics"] == {"work": {"thread-cpu": {"seconds": 1.5 + 2.5}}}
    lost = task_values(9)
    cpu = (lost["cpu_ns"] + lost["pool_cpu_ns"]) / 1e9
    assert metrics["overhead_classes"]["repeated_work"] == pytest.approx({"attempts": 1, "wall_seconds": 0.05, "cpu_seconds": cpu})
    # of the limit in the worker's latest message before it; the other worker has sent no memory
    percent = [100 * memory / limit for memory, limit in ((10**6, 9_000_000), (1_005_000, 9_000_001), (1_010_000, 9_000_002))]
    assert [p["percent"] for p in metrics["memory_utilization_percent"]][:3] == pytest.approx(percent)
    # two of the worker's threads had a task, of as many as it reported
    assert [p["percent"] for p in metrics["cpu_utilization_percent"]][:3] == pytest.approx([50, 200 / 3, 75])
    assert "around process()" in metrics["measurement_points"] and "from its start to its result" in metrics["measurement_points"]


@pytest.mark.parametrize("table", [t for t in tables.TABLES])
def test_tables_are_the_json(made, table):
    tables.check(made.json, table, tables.read_csv(made.folder / "csv", table))
    with sqlite3.connect(made.folder / "run.db") as db:
        tables.check(made.json, table, tables.read_sql(db, table))


def test_measurement_is_the_json(made):
    folder = next(path.parent for path in (made.folder / "measurement").rglob("metrics.json"))
    metrics = json.loads((folder / "metrics.json").read_text())
    shared = [k for k in metrics if k in made.json["metrics"] and isinstance(metrics[k], (int, float))]
    assert len(shared) > 50
    for name in shared:
        assert metrics[name] == pytest.approx(made.json["metrics"][name]), name
    start, stop = map(float, (folder / "start_end_time.txt").read_text().split(","))
    assert (start, stop) == pytest.approx((made.json["run_info"]["start"], made.json["run_info"]["stop"]), abs=1e-6)
    compared = 0
    for name, workers in made.json["tracking_data"].items():
        theirs = metrics["tracking_data"].get(name)
        for worker, points in workers.items() if isinstance(workers, dict) and isinstance(theirs, dict) else ():
            if not points:
                continue
            values = [next(v for k, v in p.items() if k != "timestamp") for p in points]
            if name == "worker_last_seen":
                values = [datetime.datetime.fromisoformat(v).timestamp() for v in values]
            assert sorted({p[1] for p in theirs[worker]}) == pytest.approx(values, abs=1e-5), name  # their points are on a grid
            compared += len(points)
    assert compared >= 24


def data_of_page(made):
    report(made, "--html", made.folder / "run.html")
    text = (made.folder / "run.html").read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))


def test_page_has_the_json(made):
    """The page's tables equal the JSON."""
    page, metrics = data_of_page(made), made.json["metrics"]
    assert {m["id"]: m["value"] for m in page["metrics"] if not isinstance(m.get("value", []), (list, dict))}.items() <= metrics.items()
    tasks = {row["key"]: row for row in made.json["tasks"]}
    per_dataset = {name: {**row, "dataset": name} for name, row in metrics["per_dataset"].items()}
    for table, key, ours in (("files", "path", {f["path"]: f for f in made.json["files"]}), ("codecs", "codec", {c["codec"]: c for c in made.json["codecs"]}),
                             ("servers", "server", {x["server"]: x for x in made.json["servers"]}), ("slowest", "key", tasks),
                             ("datasets", "dataset", per_dataset)):
        assert page[table]["total"] == len(ours) == len(page[table]["rows"])
        for row in page[table]["rows"]:
            other = ours[row[key]]
            for name in set(row) & set(other):
                assert row[name] == other[name] or row[name] == pytest.approx(other[name]), (table, name)
            for name, value in row.get("classes", {}).items():
                if name not in ("cpu", "unclassified") and f"{name}_wait_seconds" in other:
                    assert value == pytest.approx(other[f"{name}_wait_seconds"])
    assert page["servers"]["rows"][0]["failed_requests"] == 7
    for table, kind in (("files", "FILE"), ("codecs", "CODEC"), ("servers", "SERVER"), ("columns", "COLUMN"), ("sections", "SECTION")):
        titled = dict(re.findall(rf'^{kind}_(?:NUMBER|TIME|COUNT)\(\w+,\s*"?(\w*)"?,\s*"([^"]+)"', ROWS, re.M))
        shown = {column["name"]: column["title"] for column in page[table]["columns"]}
        assert titled and titled.items() <= shown.items() and all(shown.keys() <= row.keys() for row in page[table]["rows"]), table
    for k, row in enumerate(page["balance"]["rows"]):
        of = {"tcp://w0:1": (0, 2, 9), "tcp://w1:1": (1, 3)}[row["worker"]]
        numbers = {n: v for n, v in row.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        expected = of_tasks(of, numbers, tasks=len(of), threads=2, wall_seconds=0.9 * 2 + 0.05 * (len(of) == 3))
        assert numbers == pytest.approx(expected)
    assert sorted(page["scatter"]["points"]) == [[100 + i, 900_000, i % 2, pytest.approx(1e6 * i, abs=1)] for i in range(4)]
    bars = {bar[0]: bar for bar in page["stream"]["bars"]}
    for key, row in tasks.items():
        _, lane, start, wall, status, counted, *_ = bars[key]
        assert (page["stream"]["lanes"][lane], status, bool(counted)) == (row["worker_address"], row["status"], row["counted"])
        assert (start, wall) == pytest.approx(((row["start"] - frames.BASE_NS / 1e9) * 1e6, row["wall_seconds"] * 1e6), abs=2)
    worker = page["memory"]["workers"][0]
    assert worker["points"] == [[600_000 + p * 1_000_000, 10**6 + 5000 * p] for p in range(3)]
    assert (worker["limit_bytes"], worker["peak_bytes"]) == (9_000_002, max(task_values(i)["rss_peak_bytes"] for i in (0, 2, 9)))
    levels, width = page["levels"], page["levels"]["bin"] / 1e6
    assert sum(levels["tasks"]) / 1000 * width == pytest.approx(4 * 0.9 + 0.05, rel=1e-3)
    assert sum(levels["workers"]) / 1000 * width == pytest.approx(2 * 3.95, rel=1e-3)
    assert sum(levels["threads"]) / 1000 * width == pytest.approx(4 * 3.95, rel=1e-3)
    losses = ("tasks_refused", "records_refused", "records_lost")
    for name in (*losses, *(f"{name}_at_least" for name in losses), "workers_seen", "records_bad"):
        assert page["completeness"][name] == made.json["completeness"][name], name


def short(value, unit):
    size = abs(value)
    decimals = 0 if size >= 999.95 else 1 if size >= 99.995 else 2 if size >= 9.9995 else 3
    return f"{value:.{decimals}f} {unit}"


def as_bytes(value):
    units = ["B", "kB", "MB", "GB"]
    while value >= 999.95:
        value, units = value / 1000, units[1:]
    return short(value, units[0]) if units[0] != "B" else f"{value:.0f} B"


def as_seconds(value):
    return short(value, "s") if value >= 0.9995 else short(value * 1e3, "ms") if value >= 0.9995e-3 else short(value * 1e6, "us")


def test_text_has_the_json(made):
    """The printed tables: each row by its first cell, with the numbers formatted here."""
    lines = report(made).splitlines()
    titles = {line.strip(): [re.split(r" {2,}", row.strip()) for row in takewhile(str.strip, lines[i + 1:])]
              for i, line in enumerate(lines) if line and not line.startswith(" ")}
    rows = {title: {row[0]: row[1:] for row in table} for title, table in titles.items()}
    metrics, count = made.json["metrics"], "{:,}".format
    (file,), (codec,), section = made.json["files"], made.json["codecs"], made.json["sections"][0]
    assert rows["Data files of all attempts, most read first"]["a.root"] == [
        as_bytes(file["size_bytes"]), count(file["read_calls"]), *(as_bytes(file[k]) for k in ("read_bytes", "mapped_bytes", "storage_read_bytes"))]
    assert rows["Codecs: decompression of all attempts"]["zlib"][:6] == [
        "zlib", count(codec["calls"]), as_bytes(codec["in_bytes"]), as_bytes(codec["out_bytes"]),
        f"{codec['out_bytes'] / codec['in_bytes']:.2f}x", as_seconds(codec["cpu_seconds"])]
    assert rows["Files on servers, longest wait first"]["/data/a.root"] == [
        count(FILE["requests"]), as_bytes(FILE["network_read_bytes"]), as_seconds(file["latency_sum_s"]),
        as_seconds(file["latency_sum_s"] / FILE["requests"]), as_seconds(file["latency_max_s"])]
    server, = (row for row in titles["Servers: requests of all attempts (half and 99 % took at most ...)"] if row[0].startswith("root:"))
    assert server == ["root://files:1094", "60, 7 failed", "12.35 kB", as_seconds(made.json["servers"][0]["latency_p50_s"][1]),
                      as_seconds(made.json["servers"][0]["latency_p99_s"][1]), "3.000 s"]
    for name, row in metrics["per_dataset"].items():
        assert rows["Datasets"][name] == [
            str(row["chunks"]), as_seconds(row["wall_seconds"]), as_seconds(row["cpu_seconds"]), as_bytes(row["read_bytes"]),
            as_bytes(row["decompress_out_bytes"]), count(row["events"])]
    assert rows["Task prefixes"]["work"] == [
        "4", as_seconds(3.6), as_seconds(metrics["total_cpu_time_true"]), as_bytes(metrics["read_bytes"]),
        as_bytes(sum(task_values(i)["decompress_out_bytes"] for i in range(4))), as_bytes(sum(task_values(i)["storage_read_bytes"] for i in range(4)))]
    layers = rows["Data volume by layer"]
    for title, name in (("read from files", "read_bytes"), ("mapped (mmap)", "mapped_bytes"), ("from storage", "storage_read_bytes"),
                        ("from the network", "network_read_bytes"), ("sent to the network", "network_write_bytes"),
                        ("compressed input", "decompress_in_bytes"), ("decompressed", "decompress_out_bytes"),
                        ("written to storage", "storage_write_bytes"), ("after the task's end", "late_bytes")):
        numbers = [as_bytes(sum(task_values(i)[name] for i in which)) for which in (range(4), (0, 1, 2, 3, 9))]
        assert layers[title][:len(numbers)] in (numbers, numbers[:1]), title
    assert layers["read from files"][2] == count(sum(task_values(i)["read_calls"] for i in range(4)))
    classes = {"CPU, own thread": "cpu", "waiting for a core": "runqueue", "waiting for the interpreter lock": "gil_wait",
               "waiting for other locks": "lock_wait", "waiting for the network": "network_wait", "waiting for storage": "storage_wait", "asleep": "sleep"}
    for title, name in classes.items():
        own = sum(task_values(i)[f"{name}_ns"] for i in range(4)) / 1e9
        assert rows["Timing: where the time of counted tasks went"][title][:2] == [as_seconds(own), f"{100 * own / 3.6:.1f} %"]
    for k, which in ((0, (0, 2, 9)), (1, (1, 3))):
        cpu = sum(task_values(i)["cpu_ns"] + task_values(i)["pool_cpu_ns"] for i in which) / 1e9
        assert rows["Workers"][f"tcp://w{k}:1"] == [
            str(len(which)), as_seconds(cpu), *(as_bytes(sum(task_values(i)[n] for i in which)) for n in ("read_bytes", "storage_read_bytes")),
            as_bytes(max(task_values(i)["rss_peak_bytes"] for i in which)), ("ended", "silent")[k]]
    lost = task_values(9)
    assert rows["Wasted work"]["erred"] == ["1", "50.00 ms", as_seconds((lost["cpu_ns"] + lost["pool_cpu_ns"]) / 1e9),
                                            as_bytes(lost["read_bytes"]), as_bytes(lost["storage_read_bytes"])]
    assert rows["Sections of all attempts, most time first"]["fill"][:3] == ["7", as_seconds(section["wall_seconds"]), "600.0 ms"]
    assert rows["Sections of all attempts, most time first"]["fill"][-2:] == [
            as_bytes(SECTION["read_bytes"]), as_bytes(SECTION["large_allocated_bytes"] - SECTION["large_freed_bytes"])]
    assert rows["Values recorded by tasks"]["jets"] == ["4", "12", "1", "7"]
    whole = made.json["completeness"]
    assert f"2 workers seen, at least {2 * TOTALS['records_refused'] + 1:,} records refused, at least 0 records lost" in " ".join(" ".join(lines).split())
    table = titles[next(t for t in titles if t.startswith("Completeness"))]
    assert ["tasks", "unknown", *(as_bytes(whole["tasks"][k]) for k in ("storage_read_bytes", "storage_write_bytes", "read_bytes"))] in table
    for name, part in (("tasks", "tasks"), ("unattributed", "unattributed")):
        assert [f"network: {name}", *(as_bytes(whole[part][f"network_{k}_bytes"]) for k in ("read", "write"))] in table
    chunks = rows["Chunks"]
    assert chunks["time in process() (coffea)"][:3] == ["250.0 ms", "265.0 ms", "280.0 ms"]
    assert chunks["wall time of the whole task"] == ["900.0 ms"] * 3 + ["0 s"]
    assert chunks["events"][:1] + chunks["events"][2:3] == ["100", "103"]
    first = next(row for row in titles["Slowest tasks"] if row[:2] == ["a.root", "0-100"])
    assert first[2:5] == ["w0:1", "900.0 ms", as_seconds((task_values(0)["cpu_ns"] + task_values(0)["pool_cpu_ns"]) / 1e9)]
