"""crema.section, crema.memory and crema.metric on measured workers, against known work."""

import json
import os
import subprocess
import sys
import sqlite3
import statistics
import zlib
from pathlib import Path

import cold
import crema
import jobs
import pytest
import section_jobs
import tables
from baskets import Baskets
from crema import instrument
from distributed import Client, span

RAW = bytes(range(256)) * 8000
PACKED = zlib.compress(RAW)


SIZE = 3_000_000
BLOCK = 200_000_000
VALUES = [3, -1.5, 8, 0.25, True]
HOSTILE = ["<script>alert(1)", "</script>", "a\nb\x01\"'`;--", "\\", "é" * 400, "\udce9", "=1+1", "{{x}}", " ", ""]
DOWN = ["/".join(["down"] * n) for n in range(1, 17)]


class Ran:
    """Results of all jobs, each a task (or more) with a separate prefix, in one run."""

    def __init__(self, results, report):
        self.results, self.report = results, report

    def tasks(self, prefix):
        return jobs.tasks_of(self.report, prefix)

    def sections(self, prefix, thread="task"):
        return sections_of(self.report, prefix, thread)

    def counts(self, prefix, thread="task"):
        return counts_of(self.report, prefix, thread)

    def told(self, what, prefix):
        return {row["name"]: row for row in self.report[what] if row["prefix"] == prefix}


def sections_of(report, prefix, thread="task"):
    rows = [s for s in report["sections"] if s["prefix"] == prefix and s["thread"] == thread]
    found = {s["section"]: s for s in rows}
    assert len(found) == len(rows)
    return found


def counts_of(report, prefix, thread="task"):
    return {path: (s["count"], s["broken"], s["unfinished"])
            for path, s in sections_of(report, prefix, thread).items()}


def once(*paths):
    return dict.fromkeys(paths, (1, 0, 0))


@pytest.fixture(scope="module")
def procs(tmp_path_factory, homes):
    import cluster

    with cluster.Cluster(tmp_path_factory.mktemp("sections") / "cluster", homes) as made:
        made.start_collector()
        made.start_scheduler()
        made.start_worker(nthreads=2)
        yield made


@pytest.fixture(scope="module")
def client(procs):
    with Client(procs.address) as made:
        made.wait_for_workers(1, timeout=120)
        made.run(section_jobs.functions)  # so that no measured task imports
        yield made


@pytest.fixture(scope="module")
def file(disk):
    path = disk / "sections.bin"
    path.write_bytes(os.urandom(SIZE))
    return str(path)


def job_list(file):
    """(prefix, count, function, arguments)"""
    return [("cold", 1, section_jobs.known, file, PACKED), ("warm", 1, section_jobs.known, file, PACKED),
            ("catches", 1, section_jobs.catches, file), ("failed", 1, section_jobs.fail, file),
            ("recursion", 1, section_jobs.recurse, 20), ("suspended", 1, section_jobs.suspended),
            ("asynchronous", 1, section_jobs.asynchronous), ("pooled", 1, section_jobs.in_pool, file, 3),
            ("many", 8, section_jobs.many, file, 25), ("memory", 1, section_jobs.memory, BLOCK),
            ("metrics", 1, section_jobs.metrics, VALUES), ("hostile", 1, section_jobs.names, HOSTILE)]


def outcome(future):
    return future.exception(timeout=120) or future.result()


@pytest.fixture(scope="module")
def ran(procs, client, file):
    results, listed = {}, job_list(file)
    with span("sections"):
        for prefix, times, function, *args in listed:
            if prefix == "cold":
                cold.drop(file)
            futures = [client.submit(function, *args, pure=False, key=jobs.unique(prefix)) for _ in range(times)]
            results[prefix] = [outcome(future) for future in futures]
    report = jobs.settled(procs, lambda r: len(r["tasks"]) >= sum(j[1] for j in listed) and counts_of(r, "hostile"))
    return Ran(results, report)


def test_times_and_waits(ran):
    found = ran.sections("cold")
    assert ran.counts("cold") == once("all", "all/a", "all/b", "all/c", "all/c/d")
    a, b = found["all/a"], found["all/b"]
    assert 0.3 <= a["cpu_seconds"] <= 0.35
    assert a["sleep_seconds"] == 0
    assert 0.19 <= b["sleep_seconds"] <= b["wall_seconds"]
    assert b["cpu_seconds"] < 0.1
    for row in found.values():
        assert -1e-4 - 0.001 * row["wall_seconds"] <= row["unclassified_seconds"] <= 0.02 + 0.05 * row["wall_seconds"]


def test_bytes(ran):
    found = ran.sections("cold")
    assert ran.results["cold"] == [SIZE]
    for name, row in found.items():
        reads, unpacks = name in ("all", "all/c"), name in ("all", "all/c", "all/c/d")
        assert row["read_bytes"] == (SIZE if reads else 0), name
        assert row["decompress_out_bytes"] == (len(RAW) if unpacks else 0), name
        assert row["decompress_in_bytes"] == (len(PACKED) if unpacks else 0), name
    storage = found["all/c"]["storage_read_bytes"]
    assert SIZE <= storage <= SIZE + (1 << 20)
    assert found["all"]["storage_read_bytes"] == storage
    assert found["all/a"]["storage_read_bytes"] == found["all/b"]["storage_read_bytes"] == 0
    warm = ran.sections("warm")["all/c"]
    assert warm["read_bytes"] == SIZE
    assert warm["storage_read_bytes"] < SIZE // 4  # some kernels evict pages that were just read


@pytest.mark.parametrize("prefix", ["cold", "warm"])
def test_sums_close_with_the_task(ran, prefix):
    (task,), found = ran.tasks(prefix), ran.sections(prefix)
    whole = found["all"]
    for name in ("read_calls", "read_bytes", "decompress_calls", "decompress_out_bytes", "network_read_bytes",
                 "mapped_bytes"):
        assert whole[name] == task[name], name
        assert sum(row["self"][name] for row in found.values()) == task[name], name
    for name in ("wall_seconds", "cpu_seconds", "sleep_seconds", "storage_wait_seconds", "gil_wait_seconds"):
        assert sum(row["self"][name] for row in found.values()) == pytest.approx(whole[name], abs=1e-6), name
        assert -1e-6 <= task[name] - whole[name] < 0.1, name
    assert sum(found[f"all/{x}"]["wall_seconds"] for x in "abc") <= whole["wall_seconds"]


def test_exceptions(ran):
    assert ran.results["catches"] == ["on purpose"] and ran.tasks("catches")[0]["status"] == "ok"
    assert ran.counts("catches") == once("fails", "fails/inside", "after")
    assert ran.sections("catches")["fails"]["read_bytes"] == SIZE
    assert str(ran.results["failed"][0]) == "on purpose" and ran.tasks("failed")[0]["status"] == "erred"
    assert ran.counts("failed") == once("fails", "fails/inside")


def test_recursion_is_bounded(ran):
    assert ran.results["recursion"] == [20]
    assert ran.counts("recursion") == once(*DOWN)


def test_what_is_suspended_is_not_measured(ran):
    assert ran.results["suspended"] == ["closed"]
    assert ran.counts("suspended") == {"consumer": (1, 0, 0), "consumer/generator": (0, 1, 0)}
    assert ran.sections("suspended")["consumer/generator"]["wall_seconds"] == 0
    assert ran.sections("suspended")["consumer"]["cpu_seconds"] >= 0.05
    assert ran.sections("asynchronous") == ran.told("custom_metrics", "asynchronous") == {}


def test_what_was_not_measured_is_counted(ran):
    """20 - 16 levels of the recursion, a text that is not UTF-8, and an empty one; a section and a value of
    asynchronous code; a text and an infinity as values."""
    assert ran.report["sections_unmeasured"] == {"outside_tasks": 2, "too_deep": 4 + 2, "values_refused": 2, "without_dataset": 0}


def test_pool_threads(ran):
    """Their work is in the section that waits for them; their own sections are separate."""
    (task,), whole, piece = ran.tasks("pooled"), ran.sections("pooled")["pool"], ran.sections("pooled", "pool")["piece"]
    assert ran.results["pooled"] == [8 * SIZE]
    assert ran.counts("pooled") == once("pool")
    assert ran.counts("pooled", "pool") == {"piece": (8, 0, 0)}
    assert task["read_bytes"] == whole["read_bytes"] == piece["read_bytes"] == 8 * SIZE
    assert 0 < piece["cpu_seconds"] <= whole["pool_cpu_seconds"] <= task["pool_cpu_seconds"]


def test_tasks_at_the_same_time(ran):
    """Two threads of a worker count into the same rows; an instance may be open twice."""
    assert ran.counts("many") == {"again": (200, 0, 0), "again/again": (200, 0, 0)}
    row = ran.sections("many")["again"]
    assert row["read_bytes"] == jobs.total(ran.tasks("many"), "read_bytes") == 200 * SIZE
    assert row["self"]["read_bytes"] == row["read_bytes"]


def test_memory(ran):
    found = ran.told("memory_sections", "memory")
    block = found["block"]
    assert set(found) == {"block", "nothing"}
    assert {block[part]["count"] for part in ("start_bytes", "end_bytes", "delta_bytes", "peak_bytes")} == {1}
    assert block["delta_bytes"]["last"] == block["end_bytes"]["last"] - block["start_bytes"]["last"]
    assert 0.95 * BLOCK <= block["delta_bytes"]["last"] <= 1.1 * BLOCK
    assert block["peak_bytes"]["last"] >= block["end_bytes"]["last"] - 2_000_000
    assert found["nothing"]["peak_bytes"] == {"count": 0, "sum": None, "min": None, "max": None, "last": None}


def test_large_allocations(ran):
    """What each section allocated in blocks of a MiB or more, and what it freed, whichever section had allocated that."""
    found, header = ran.sections("memory"), bytes().__sizeof__()
    four, two = (4 << 20) + header, (2 << 20) + header
    assert {name: (s["large_allocated_bytes"], s["large_freed_bytes"]) for name, s in found.items()} == {
        "keeps": (3 * four, 0), "frees": (0, four), "temporary": (two, two)}


def test_metrics(ran):
    assert {name: row["value"] for name, row in ran.told("custom_metrics", "metrics").items()} == {
        "jets": {"count": 5, "sum": 10.75, "min": -1.5, "max": 8, "last": 1},
        "numpy": {"count": 1, "sum": 1.5, "min": 1.5, "max": 1.5, "last": 1.5}}


def test_hostile_names(ran, procs):
    assert ran.tasks("hostile")[0]["status"] == "ok"
    assert ran.counts("hostile") == once("<script>alert(1)", "<\\/script>", HOSTILE[2], "\\\\", "é" * 64, "=1+1", "{{x}}",
                                         " ")
    assert "\x01" not in procs.report("--run", ran.report["run"]).stdout


def test_decorators_refuse_what_they_cannot_measure():
    def generator():
        yield 1

    for kind in (crema.section, crema.memory):
        for function in (section_jobs.asynchronous, generator):
            with pytest.raises(TypeError, match="with statement"):
                kind("x")(function)
        with pytest.raises(TypeError, match="is a str"):
            kind(7)


def test_elsewhere_nothing_happens(ran, client, homes):
    """This process is not preloaded; the worker has the shim's functions and no additional module."""
    assert {getattr(instrument, n) for n in ("_begin", "_begin_memory", "_end", "_value")} == {None}
    assert section_jobs.recurse(30) == 30
    crema.metric("x", "anything")
    types, modules = next(iter(client.run(section_jobs.functions).values()))
    assert types == ["builtin_function_or_method"] * 4
    plain = subprocess.run([sys.executable, "-c", "import json, section_jobs; print(json.dumps(section_jobs.functions()[1]))"],
                           env={**os.environ, "PYTHONPATH": homes["PYTHONPATH"]}, capture_output=True, text=True, check=True)
    assert modules == json.loads(plain.stdout)


def test_coffea(procs, client, data):
    """In the processor of coffea's Runner: each section has the baskets of the columns that it uses."""
    from section_processor import Sectioned

    path = data["zstd"]
    with span("sectioned"):
        _, coffea = jobs.run_coffea(client, [path], chunksize=50_000, processor_instance=Sectioned())
    report = jobs.settled(procs, lambda r: len(r["chunks"]) >= coffea["chunks"] and sections_of(r, "Sectioned"))
    found = sections_of(report, "Sectioned")
    assert counts_of(report, "Sectioned") == dict.fromkeys(("process", "process/muons", "process/jets"),
                                                           (coffea["chunks"], 0, 0))
    truth = Baskets(path)
    for part, columns in (("muons", ("nMuon", "Muon_pt")), ("jets", ("nJet", "Jet_pt"))):
        assert found[f"process/{part}"]["basket_bytes"] == sum(
            basket[1] for chunk in report["chunks"] for column in columns
            for basket in truth.of(column, chunk["entrystart"], chunk["entrystop"])), part
    chunks = [c for c in report["chunks"] if c["counted"]]
    assert found["process"]["basket_bytes"] == jobs.total(chunks, "basket_bytes")
    for name in ("wall_seconds", "cpu_seconds", "read_bytes", "decompress_out_bytes"):
        assert 0 < found["process"][name] <= jobs.total(chunks, name), name
    (events,), (jets,) = report["custom_metrics"], report["memory_sections"]
    assert (events["name"], events["value"]["count"], events["value"]["sum"]) == (
        "events", coffea["chunks"], coffea["entries"])
    assert (jets["name"], jets["delta_bytes"]["count"]) == ("jets", coffea["chunks"])


def test_datasets(procs, client, data):
    """Each dataset's sections have their own spread: between the sleep in each and the time that the processor measured around it."""
    from section_processor import Timed

    sleeps = {Path(data["zstd"]).stem: 0.02, Path(data["lz4"]).stem: 0.11}
    with span("timed"):
        seen, coffea = jobs.run_coffea(client, [data["zstd"], data["lz4"]], chunksize=30_000, processor_instance=Timed(sleeps))
    report = jobs.settled(procs, lambda r: len(r["chunks"]) >= coffea["chunks"] and sections_of(r, "Timed"))
    rows = {row["dataset"]: row for row in report["sections_by_dataset"] if row["prefix"] == "Timed"}
    own = {name: [chunk["sections"] for chunk in report["chunks"] if chunk["counted"] and chunk["dataset"] == name] for name in sleeps}
    for name, chunks in own.items():
        assert all([(s["section_name"], s["thread"], s["source"], s["calls"]) for s in chunk] == [("nap", "task", "crema", 1)] for chunk in chunks)
        naps = sorted(chunk[0]["time_delta"] for chunk in chunks)
        assert len(naps) == len(seen[name]) and all(sleeps[name] <= nap <= around for nap, around in zip(naps, sorted(seen[name])))
        assert sum(naps) == pytest.approx(rows[name]["wall_seconds"], rel=1e-9)
    assert set(rows) == set(seen) == set(sleeps)
    both = {"both": sections_of(report, "Timed")["nap"]}
    for name, row in {**rows, **both}.items():
        around = sorted(t for dataset in seen for t in seen[dataset] if name in (dataset, "both"))
        least, median, most = (row[f"wall_{which}_seconds"] for which in ("min", "median", "max"))
        inside = sorted(sleeps[dataset] for dataset in seen for _ in seen[dataset] if name in (dataset, "both"))
        assert row["count"] == len(around) and inside[0] <= least <= around[0] and inside[-1] <= most <= around[-1]
        assert statistics.median(inside) / 1.091 <= median <= statistics.median(around) * 1.091
        assert sum(inside) <= row["wall_seconds"] <= sum(around)
    for name in ("count", "wall_seconds", "sleep_seconds", "read_bytes"):
        assert both["both"][name] == pytest.approx(sum(row[name] for row in rows.values()), rel=1e-9), name


MIB = 1 << 20
TRACKED = {
    "duration": 1.5, "mem_before_mb": 100, "mem_after_mb": 164.5,
    "timing": {"jets": 0.25, "a/b": 1, "negative": -1, "text": "no", 7: 1.0, "none": None, "infinite": float("inf")},
    "memory": {"fill": -2.5}, "bytes": {"load": 12345},
    "sections": [{"section_name": "old", "time_delta": 0.5}, {"section_name": "old", "time_delta": 0.25}, {}, 3],
    "memory_sections": [{"section_name": "older", "memory_start_gb": 1.0, "memory_end_gb": 1.25}],
    "custom_metrics": {"weight": 2.5}}


def test_what_roastcoffea_found(procs, client, data):
    """Data of its decorators in the chunks' outputs, in the format of 0.1.2 and in that of its documents."""
    from section_processor import Tracked

    with span("tracked"):
        out, coffea = jobs.run_coffea(client, [data["zlib"]], processor_instance=Tracked(TRACKED))
    n = coffea["chunks"]
    assert out["__roastcoffea_metrics__"] == [TRACKED, "no chunk", None] * n  # unchanged
    report = jobs.settled(procs, lambda r: len(r["chunks"]) >= n and r["sections"])
    assert {s["section"]: (s["count"], s["wall_seconds"], s["source"]) for s in report["sections"]} == {
        "@track_metrics": (n, 1.5 * n, "roastcoffea"), "jets": (n, 0.25 * n, "roastcoffea"),
        "a\\/b": (n, n, "roastcoffea"), "old": (2 * n, 0.75 * n, "roastcoffea")}
    assert {s["cpu_seconds"] for s in report["sections"]} == {None}  # roastcoffea does not measure it
    memory = {m["name"]: m for m in report["memory_sections"]}
    assert {name: (m["delta_bytes"]["count"], m["delta_bytes"]["sum"], m["end_bytes"]["sum"])
            for name, m in memory.items()} == {
        "@track_metrics": (n, 64.5 * MIB * n, None), "fill": (n, -2.5 * MIB * n, None),
        "older": (n, pytest.approx(0.25e9 * n), None)}
    assert {(m["name"], m["kind"], m["value"]["sum"], m["source"]) for m in report["custom_metrics"]} == {
        ("load", "bytes", 12345 * n, "roastcoffea"), ("weight", "value", 2.5 * n, "roastcoffea")}


def run(procs, client, prefix, function, *args, attempts=1):
    with span(prefix):
        result = client.submit(function, *args, pure=False, key=jobs.unique(prefix), retries=2).result(timeout=120)
    return result, jobs.settled(procs, lambda r: len(jobs.tasks_of(r, prefix)) == attempts and r["sections"])


def test_a_killed_worker_keeps_what_had_ended(procs, client, file, tmp_path):
    result, report = run(procs, client, "killed", section_jobs.killed_once, str(tmp_path / "once"), file, attempts=2)
    assert result == "survived"
    assert sorted(t["status"] for t in jobs.tasks_of(report, "killed")) == ["killed", "ok"]
    assert counts_of(report, "killed") == {"ended": (2, 0, 0), "open": (1, 0, 1)}
    assert sections_of(report, "killed")["ended"]["read_bytes"] == 2 * SIZE


def test_names_without_end(procs, client):
    """The table is full: further names are only counted. Later tasks get rows that were freed once the agent had sent them."""
    _, report = run(procs, client, "endless", section_jobs.names, [f"made up {n}" for n in range(5000)])
    paths = [s["section"] for s in report["sections"]]
    assert sum(s["count"] for s in report["sections"]) == 5000
    assert None in paths and len(paths) < 128
    found = {}
    for attempt in range(10):
        if found != once("still"):
            _, report = run(procs, client, f"later{attempt}", section_jobs.names, ["still"])
            found = counts_of(report, f"later{attempt}")
    assert found == once("still")


def test_sections_in_tables(ran, procs, tmp_path):
    """CSV and SQLite have the same sections, memory sections and custom metrics as the JSON."""
    base, folder = tmp_path / "run.sqlite", tmp_path / "csv"
    done = procs.report("--run", ran.report["run"], "--sqlite", base, "--csv", folder)
    assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(base) as db:
        for table in ("sections", "memory_sections", "custom_metrics", "blocking"):
            rows = tables.read_sql(db, table)
            assert rows or table == "blocking"
            tables.check(ran.report, table, [dict(row) for row in rows])
            tables.check(ran.report, table, tables.read_csv(folder, table))
