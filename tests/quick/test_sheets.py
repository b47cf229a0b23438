"""The sheets of CSV and SQLite against the JSON's own tables, and runs with much that is unknown, shared or outside Dask."""

import json
import re
import sqlite3

import pytest
import test_reports  # sets the path to frames.py and tables.py
import frames
import tables
import test_exports
from test_exports import HOSTS, Made, human, near, row, tables_of
from test_reports import PROBES, TIMES, WORKERS, as_bytes, at, number

SAMPLES = [{"rss_bytes": 10**6 + 5000 * p, "cpu_percent": 50.5 + p, "threads": 9 + p, "tasks_running": 1 + p, "rss_anon_bytes": 7000 + p, "rss_file_bytes": 600 + p, "rss_shmem_bytes": 50 + p, "heap_bytes": 5000 + p,
            "heap_free_bytes": 4000 + p, "heap_returnable_bytes": 3000 + p, "cpu_seconds": 2.5 * p}
           for p in range(3)]
SECTION = {**{f"{p}{t}_ns": 1000 * number("sub", p, t) for t in TIMES for p in ("", "pool_")}, "decompress_cpu_ns": 1000 * number("sub", "codec"),
           **{name: number("sub", name) for name in ("read_calls", "read_bytes", "decompress_calls", "basket_bytes", "mapped_bytes", "network_read_bytes")}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = Made()
    found.folder = tmp_path_factory.mktemp("sheets")
    journal = frames.Journal(found.folder / "journal")
    test_exports.fill(journal)
    for p, sample in enumerate(SAMPLES):
        journal.message([8, {"boot_ns": at(700 + 1000 * p), **sample}], WORKERS[1])
    journal.message([17, {"number": 2, "path": "fill/sub", "span": test_reports.SPAN, "prefix": "work", "thread": "task", "source": "crema", "rev": 1, "begun": 3,
                          "count": 3, "broken": 0, "wall_ns": 2 * 10**8, "counters": SECTION}], WORKERS[1])
    journal.write()
    found.journal = found.folder / "journal"
    test_reports.report(found, "--json", found.folder / "run.json", "--csv", found.folder / "csv", "--sqlite", found.folder / "run.db")
    found.json = json.loads((found.folder / "run.json").read_text())
    return found


def sheet(made, name):
    """The CSV sheet; SQLite has the same."""
    rows = tables.read_csv(made.folder / "csv", name)
    with sqlite3.connect(made.folder / "run.db") as db:
        assert tables.read_sql(db, name) == rows
    return rows


@pytest.mark.parametrize("table", tables.TABLES)
def test_tables_are_the_json(made, table):
    tables.check(made.json, table, sheet(made, table))


def test_samples(made):
    """Each sample of a process, of Dask and of a host, and nothing else in its row."""
    rows = sheet(made, "samples")
    expected = {("process", WORKERS[0]): [(600 + 1000 * p, sample) for p, sample in enumerate(test_reports.SAMPLES)],
                ("process", WORKERS[1]): [(700 + 1000 * p, sample) for p, sample in enumerate(SAMPLES)],
                ("dask", WORKERS[0]): [(500 + 1000 * p, probe) for p, probe in enumerate(PROBES)],
                ("host", WORKERS[0]): [(100 + 1500 * p, host) for p, host in enumerate(HOSTS)]}
    for (source, worker), points in expected.items():
        found = [row for row in rows if (row["source"], row["worker_id"]) == (source, worker.hex())][:len(points)]
        assert len(found) == len(points), (source, worker)
        for point, (ms, values) in zip(found, points):
            told = {name: v for name, v in point.items() if v is not None and name not in ("run", "worker_id", "worker", "source", "time")}
            assert (point["time"], told) == (pytest.approx(frames.BASE_NS / 1e9 + ms / 1000, abs=1e-5), values)


def test_runs_and_lists(made):
    (run,) = sheet(made, "runs")
    info, metrics = made.json["run_info"], made.json["metrics"]
    assert (run["run"], run["kind"], json.loads(run["spans"])) == (made.json["run"], "coffea", info["spans"])
    for name in ("start", "stop", "start_time", "stop_time", "averaged_from", "averaged_to", "running_attempts"):
        assert run[name] == info[name], name
    compared = [name for name in run if name in metrics]
    assert len(compared) > 100
    for name in compared:
        assert tables.same(metrics[name], run[name]), name
    lists = {row["metric"]: json.loads(row["value"]) for row in sheet(made, "metric_lists")}
    assert len(lists) > 12 and all(value == metrics[name] for name, value in lists.items())
    assert {name for name, value in metrics.items() if isinstance(value, (list, dict))} - set(lists) <= {"per_file", "file_read_metrics", "tracking_data"}


def test_tracking_and_meta(made):
    rows = sheet(made, "tracking")
    tracked, workers = made.json["tracking_data"], {w["address"] or w["worker"]: w["id"] for w in made.json["workers"]}
    assert tracked["estimated"] == ["worker_active_tasks", "worker_occupancy"]
    compared = 0
    for series, of in tracked.items():
        for worker, points in of.items() if isinstance(of, dict) else ():
            found = [row["value"] for row in rows if (row["series"], row["worker_id"]) == (series, workers[worker])]
            values = [next(v for k, v in p.items() if k != "timestamp") for p in points]
            if series != "worker_last_seen":
                assert found == values, (series, worker)
            assert len(found) == len(values)
            compared += len(found)
    counts = [row["value"] for row in rows if row["series"] == "worker_counts"]
    assert counts == [p["worker_count"] for p in tracked["worker_counts"]] and compared > 30
    with sqlite3.connect(made.folder / "run.db") as db:
        meta = dict(db.execute("SELECT * FROM meta"))
    assert str(meta.pop("integers_too_large")) == "0"  # SQLite's own count
    assert [[cell for cell, _ in line] for line in tables.records(made.folder / "csv" / "meta.csv")] == [["name", "value"], *([k, str(v)] for k, v in meta.items())]
    assert (meta["program"], meta["run"], str(meta["attempts"]), str(meta["format"])) == ("crema", made.json["run"], "6", "1")
    assert meta["unknown"] == "an empty cell or NULL: it could not be measured" and "tasks.counted is true for" in meta["counted"]


def test_section(made):
    """A section within another one: its own times, and the outer section's without it."""
    inner, = (s for s in made.json["sections"] if s["section"].endswith("sub"))
    outer, = (s for s in made.json["sections"] if s["section"] == "fill")
    times = {"runqueue": "runqueue_wait", "cpu": "cpu", "sleep": "sleep"}
    for t in TIMES:
        assert inner[f"{times.get(t, t)}_seconds"] == near(SECTION[f"{t}_ns"] / 1e9), t
    assert (inner["pool_cpu_seconds"], inner["decompress_cpu_seconds"]) == (near(SECTION["pool_cpu_ns"] / 1e9), near(SECTION["decompress_cpu_ns"] / 1e9))
    for name in ("read_calls", "read_bytes", "decompress_calls", "basket_bytes", "mapped_bytes", "network_read_bytes"):
        assert inner[name] == SECTION[name]
    assert (inner["wall_seconds"], inner["count"], outer["self"]["wall_seconds"]) == (0.2, 3, near(0.6 - 0.2))


# Unknown values

def odd(folder, fill):
    found = Made()
    found.folder = folder
    journal = frames.Journal(folder / "journal")
    fill(journal)
    journal.write()
    found.journal = folder / "journal"
    found.printed = test_reports.report(found, "--json", folder / "run.json") or test_reports.report(found)
    found.json = json.loads((folder / "run.json").read_text())
    found.page = test_reports.data_of_page(found)
    return found


def classes(**more):
    return {**{f"{t}_ns": 10**7 * (i + 1) for i, t in enumerate(TIMES)}, **more}


def test_unknown_classes_and_threads(tmp_path):
    """A class that is not known is part of the unclassified time; unknown threads have no line."""
    def fill(journal):
        journal.worker(WORKERS[0])
        journal.task(1, "a", 0, 1000, WORKERS[0], prefix="one", **classes(lock_wait_ns=None, gil_wait_ns=None))
        journal.task(2, "b", 2000, 2100, WORKERS[0], prefix="two", flags=1, thread=8)
        journal.message([21, {"number": 0, "wait": "sleep_ns", "waited_ns": 10**9, "span": "span-1", "end_boot_ns": at(9000), "frames": []}], WORKERS[0])
        journal.message([11, {"boot_ns": at(2000), "shared_network_read_bytes": 3000, "shared_network_write_bytes": 40}], WORKERS[0])

    made = odd(tmp_path, fill)
    timing = tables_of(made)["Timing: where the time of counted tasks went"]
    assert timing[-1] == ["not classified includes unknown: gil, lock"] or timing[-1] == ["not classified includes unknown: GIL, lock"], timing[-1]
    assert next(line for line in timing if line[0] == "waiting for other locks") == ["waiting for other locks", "unknown"]
    slowest = {line[0]: line[-1] for line in tables_of(made)["Slowest tasks"]}
    assert slowest["b"] == "unknown" and slowest["a"].startswith("not classified")
    assert made.json["workers"][0]["last_seen"] == near(frames.BASE_NS / 1e9 + 9)
    assert made.page["levels"]["threads"] == [] and made.json["metrics"]["total_cores"] is None
    text = "connections that serve several tasks at once: 3.000 kB received and 40 B sent on them are unattributed"
    assert text in made.json["completeness"]["notes"] and text in re.sub(r"\s+", " ", made.printed)


def test_what_clocks_differ_by(tmp_path):
    """Below 1 % of the time the text and the page show 0 without a sign; the JSON keeps the value."""
    def fill(journal):
        journal.worker(WORKERS[0])
        journal.task(1, "a", 0, 1000, WORKERS[0], prefix="one", flags=2, dataset="set", **classes(cpu_ns=1_000_077_000 - sum(classes().values()) + 10**7))
        journal.task(2, "b", 2000, 3000, WORKERS[0], prefix="one", **classes(cpu_ns=950_000_000 - sum(classes().values()) + 10**7))

    made = odd(tmp_path, fill)
    assert [task["unclassified_seconds"] for task in made.json["tasks"]] == pytest.approx([-77e-6, 0.05])
    assert next(line for line in tables_of(made)["Timing: where the time of counted tasks went"] if line[0] == "not classified") == ["not classified", "49.92 ms", "2.5 %"]
    assert made.page["datasets"]["rows"][0]["classes"]["unclassified"] == 0
    rows = {row["key"]: row["classes"]["unclassified"] for row in made.page["slowest"]["rows"]}
    assert rows == {"a": 0, "b": pytest.approx(0.05)}
    assert [bar[-1] for bar in made.page["stream"]["bars"]] == [0, 50_000]


def test_most_was_lost(tmp_path):
    """If most of the time is wasted, the report shows all attempts and states that."""
    def fill(journal):
        journal.worker(WORKERS[0], stack=json.dumps({"nthreads": 2}))
        journal.message([10, at(50), json.dumps({"nthreads": 2, "spilled_bytes": 5})], WORKERS[0])
        journal.task(1, "a", 0, 100, WORKERS[0], prefix="one", **classes())
        journal.task(2, "b", 1000, 1900, WORKERS[0], prefix="two", status="erred", flags=2, dataset="lost", filename="/f", treename="t",
                     entrystart=0, entrystop=10, events=10, columns="pt", coffea_bytesread=7, basket_bytes=5, **classes(cpu_ns=5 * 10**8))

    made = odd(tmp_path, fill)
    found = tables_of(made)
    assert "only 10.0 % of the tasks' time belongs to attempts that count: timing, tables of tasks and findings cover all attempts" in re.sub(r"\s+", " ", made.printed)
    assert row("CPU, own thread", (0.51, "s"), (51, "%"), "#" * 10) in found["Timing: where the time of all attempts went"]
    assert [line[:3] for line in found["Task prefixes"][1:]] == [["two", "1", "900.0 ms"], ["one", "1", "100.0 ms"]]
    assert [line[:3] for line in found["Datasets"][1:]] == [["lost", "1", "900.0 ms"]]
    assert [line[0] for line in found["Slowest tasks"][1:]] == ["f", "a"]
    assert "Requested, read and used bytes of all attempts at chunks" in found
    assert made.json["bytes"]["datasets"] == [] and made.json["metrics"]["num_chunks"] == 0
    page = made.page["datasets"]
    assert (page["total"], page["rows"][0]["dataset"], made.page["scatter"]["total"]) == (1, "lost", 1)
    assert made.json["metrics"]["spilled_bytes"] == 5
    assert made.page["time"]["all_attempts"] is True and made.page["time"]["wall_seconds"] == near(1)


def test_many_rows(tmp_path):
    """The longest first, with the number of rows left out."""
    def fill(journal):
        for i in range(20):
            worker = bytes([i]) * 16
            journal.worker(worker, pid=i, stack=json.dumps({"nthreads": 1, "worker_address": f"tcp://w{i}:1"}))
            journal.task(1, f"k{i}", 0, 100 + 10 * i, worker, prefix=f"p{i}", flags=2, dataset=f"d{i}", filename=f"/f{i}", treename="t", entrystart=0, entrystop=10,
                         events=10 + i, coffea_bytesread=1000 + i, columns="x", read_bytes=10**6 + i, basket_bytes=500 + i, **classes())
            journal.message([12, {"path": f"/f{i}", "name": f"f{i}", "span": "span-1", "kind": "data", "read_calls": 1, "read_bytes": 10**6 * (i + 1), "mapped_bytes": 0,
                                  "extent_bytes": 10**6 * (i + 1), "unique_bytes": 1000 + i, "ranges": [0, 1000 + i]}], worker)

    made = odd(tmp_path, fill)
    found = tables_of(made)
    for title, mark, top in (("Datasets", "d", 8), ("Task prefixes", "p", 8), ("Data files of all attempts, most read first", "/f", 8)):
        names = [line[0] for line in found[title][1:]]
        assert [name.lstrip("/") for name in names[:top]] == [f"{mark.lstrip('/')}{i}" for i in range(19, 11, -1)], title
        assert f"and {20 - top} more" in names
    assert found["Datasets"][1][:3] == ["d19", "1", "290.0 ms"] and found["Data files of all attempts, most read first"][1][3] == as_bytes(20 * 10**6)
    assert found["Workers"][-1] == ["and 4 more"] and len(found["Workers"]) == 18
    reread = {row["dataset"]: row["files_reread_bytes"] for row in made.json["bytes"]["datasets"]}
    assert reread == {f"d{i}": 10**6 * (i + 1) - 1000 - i for i in range(20)}
    slow = [line[2] for line in found["Slowest tasks"][1:]]
    assert slow[:3] == ["w19:1", "w18:1", "w17:1"]
    assert made.page["files"]["total"] == 20 and made.page["datasets"]["total"] == 20
    assert [len(line) for line in found["Requested, read and used bytes of counted chunks"]][0] == 7
    assert human(20, "n") == str(made.json["metrics"]["num_chunks"])


def test_processes_without_dask(tmp_path):
    """The shares of the processes' lifetimes that were their start and work."""
    def fill(journal):
        for k, worker in enumerate(WORKERS):
            journal.worker(worker, pid=k + 1, start_ticks=frames.BOOT_NS // 10**7)
            journal.task(1, f"k{k}", 1000, 3000, worker, prefix="work", span="coffea-ab.1", flags=2, dataset="d", filename="/a", treename="t", entrystart=k, entrystop=k + 1,
                         events=1, function="work")
            journal.message([14, {"boot_ns": at(5000 - 1000 * k), "how": "exit"}], worker)

    made = odd(tmp_path, fill)
    assert "process start and imports: 2.000 s of 2 processes' 9.000 s (22 %); 44 % was work" in re.sub(r"\s+", " ", made.printed)


DROPPED = [{"run": "20260101-000000-ab12", "kind": "coffea", "why": "--keep", "plain": 0, "start_ns": 1_790_000_000_000_000_000, "stop_ns": 1_790_000_002_500_000_000,
            "dropped_ns": 1_795_000_000_000_000_000, "spans": ["old"], "metrics": {"wall_time": 2.5, "num_tasks": 12, "num_attempts": 13, "num_chunks": 11,
                                                                                 "total_events": 1234}},
           {"run": "20260102-000000-cd34", "kind": "dask", "why": "--max-bytes", "plain": 0, "start_ns": 0, "stop_ns": 1_790_000_003_000_000_000,
            "dropped_ns": 1_795_000_001_000_000_000, "spans": ["older"], "metrics": {"wall_time": 0.25, "num_tasks": 7, "num_chunks": 0}}]


def test_dropped_runs(tmp_path):
    """They are listed with their remaining totals; a time that was not recorded is unknown."""
    journal = frames.Journal(tmp_path / "journal")
    journal.worker(WORKERS[0])
    journal.task(1, "a", 0, 1000, WORKERS[0])
    journal.task(2, "b", 0, 1000, WORKERS[0], span="old")
    journal.write()
    whole = [frames.frame(1, {"format": 1, "kind": "dropped", "created_ns": 0}), frames.frame(11, {"below_ns": 5}), *(frames.frame(12, run) for run in DROPPED)]
    (tmp_path / "journal" / f"{0:020}-dropped.crema").write_bytes(b"".join(whole))
    made = Made()
    made.journal = tmp_path / "journal"
    found = json.loads(test_reports.report(made, "--list", "--json", "-"))
    assert [(run["num_tasks"], run["num_attempts"]) for run in found["runs"]] == [(1, 1)]
    times = ("2026-11-18T11:06:40.000000+00:00", "2026-11-18T11:06:41.000000+00:00")
    assert found["dropped_runs"] == [
        {"run": run["run"], "kind": run["kind"], "start": run["start_ns"] / 1e9 or None, "stop": run["stop_ns"] / 1e9, "dropped": {"at": at, "option": run["why"]},
         **{name: run["metrics"].get(name) for name in ("wall_time", "num_tasks", "num_attempts", "num_chunks", "total_events")}} for run, at in zip(DROPPED, times)]
    lines = [re.split(r" {2,}", line.strip()) for line in test_reports.report(made, "--list").splitlines()]
    assert ["20260101-000000-ab12", "2.500 s", "12", "11", "1,234", "dropped, totals only"] in lines
    assert ["20260102-000000-cd34", "250.0 ms", "7", "0", "-", "dropped, totals only"] in lines
