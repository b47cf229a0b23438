"""All exports of a run: CSV and SQLite contain exactly what the JSON report does."""

import json
import sqlite3

import pytest
from tables import TABLES, check, read_csv, read_sql, records, same

@pytest.fixture(scope="module")
def exported(shared, demo, tmp_path_factory):
    """One call writes all exports: (the JSON, the database, the folder of CSV files)."""
    directory = tmp_path_factory.mktemp("export")
    base, folder, text = directory / "run.sqlite", directory / "csv", directory / "run.json"
    done = shared.procs.report("--run", demo.json["run"], "--sqlite", base, "--csv", folder, "--json", text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in directory.iterdir()) == ["csv", "run.json", "run.sqlite"]
    with sqlite3.connect(base) as db:
        db.row_factory = sqlite3.Row
        yield json.loads(text.read_text()), db, folder


@pytest.mark.parametrize("table", TABLES)
def test_tables_equal_the_json(exported, table):
    report, db, folder = exported
    check(report, table, read_sql(db, table))
    check(report, table, read_csv(folder, table))


def test_run_row(exported):
    """All metrics that are single numbers, run_info, and their units."""
    report, db, folder = exported
    (row,), (cells,) = read_sql(db, "runs"), read_csv(folder, "runs")
    assert row == cells
    numbers = {k: v for k, v in {**report["metrics"], **report["run_info"]}.items() if not isinstance(v, (list, dict))}
    checked = 0
    for name, value in numbers.items():
        if name in row:
            assert same(value, row[name]) or value is bool(row[name]), name
            checked += 1
    assert checked > 100 and row["run"] == report["run"] and json.loads(row["spans"]) == report["run_info"]["spans"]
    units = dict(db.execute("SELECT column_name, unit FROM columns WHERE table_name = 'runs'"))
    assert units["wall_time"] == "s" and units["read_bytes"] == "bytes"


def test_sums_by_sql(exported):
    """Sums computed by the database equal the report's own, to the byte."""
    report, db, _ = exported
    metrics = report["metrics"]

    def one(query):
        return db.execute(query).fetchone()[0]

    assert one("SELECT SUM(read_bytes) FROM tasks WHERE counted") == metrics["read_bytes"] > 0
    assert one("SELECT SUM(storage_read_bytes) FROM tasks") == metrics["disk_read_bytes_all"] > 0
    assert one("SELECT SUM(events) FROM chunks WHERE counted") == metrics["total_events"] > 0
    assert one("SELECT SUM(decompress_out_bytes) FROM chunks") == metrics["bytes_read_uncompressed_all"] > 0
    assert one("SELECT SUM(out_bytes) FROM codecs") == one("SELECT SUM(decompress_out_bytes) FROM tasks")
    assert one("SELECT SUM(read_bytes) FROM files WHERE kind <> 'imports'") == metrics["read_bytes_all"] > 0
    assert one("SELECT COUNT(*) FROM tasks t JOIN workers w ON w.run = t.run AND w.id = t.worker_id") == len(report["tasks"])
    assert one("SELECT COUNT(DISTINCT value) FROM chunks, json_each(chunks.columns)") == metrics["num_columns"]


def test_samples(exported):
    """The process's samples are those of tracking_data; samples from other sources are in the same table."""
    report, db, folder = exported
    rows = read_sql(db, "samples")
    assert rows == read_csv(folder, "samples")
    assert {"process", "dask"} <= {row["source"] for row in rows} <= {"process", "dask", "host"}
    memory = report["tracking_data"]["worker_memory"]
    for worker, points in memory.items():
        mine = [row["rss_bytes"] for row in rows if row["worker"] == worker and row["source"] == "process"]
        assert mine == [p["memory_bytes"] for p in points] and mine


def test_timeline(exported):
    report, db, folder = exported
    rows, told = read_sql(db, "timeline"), report["timeline"]
    assert rows == read_csv(folder, "timeline") and len(rows) == len(told["workers"]) > 0
    for name, series in {**told["layers"], **told["classes"], "workers": told["workers"], "running": told["running"]}.items():
        assert [row[name] for row in rows] == series, name
    assert rows[0]["time"] == told["start"] and sum(row["bin_seconds"] for row in rows) == pytest.approx(told["stop"] - told["start"])


def test_tracking(exported):
    """Each point of tracking_data is a row."""
    report, db, folder = exported
    rows, told = read_sql(db, "tracking"), report["tracking_data"]
    assert rows == read_csv(folder, "tracking")
    assert [r["value"] for r in rows if r["series"] == "worker_counts"] == [p["worker_count"] for p in told["worker_counts"]]
    for name, workers in told.items():
        for worker, points in workers.items() if isinstance(workers, dict) and name != "worker_last_seen" else ():
            assert [r["value"] for r in rows if r["series"] == name and r["worker"] == worker] == [
                value for point in points for key, value in point.items() if key != "timestamp"], name
    assert any(r["series"] == "worker_last_seen" for r in rows)


def test_metrics_that_are_lists(exported):
    report, db, folder = exported
    rows = read_sql(db, "metric_lists")
    assert rows == read_csv(folder, "metric_lists")
    found = {row["metric"]: None if row["value"] is None else json.loads(row["value"]) for row in rows}
    assert found == {name: report["metrics"][name] for name in found} and len(found) > 10
    assert {n for n, v in report["metrics"].items() if isinstance(v, (list, dict))} - set(found) <= {"file_read_metrics"}


def test_meta(exported):
    _, db, folder = exported
    meta = dict(db.execute("SELECT name, value FROM meta"))
    assert meta["program"] == "crema" and meta["format"] == 1 and meta["integers_too_large"] == 0
    assert {r[0][0]: r[1][0] for r in records(folder / "meta.csv")}["version"] == meta["version"]
    keys = {name for (name,) in db.execute("SELECT name FROM pragma_table_info('tasks') WHERE pk")}
    assert keys == {"run", "worker_id", "attempt"}
    assert "tasks_key" in {row[1] for row in db.execute("PRAGMA index_list(tasks)")}
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
