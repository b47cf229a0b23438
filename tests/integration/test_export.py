"""The ways out of a run: CSV and SQLite hold exactly what the JSON report says."""

import json
import sqlite3

import pytest

TABLES = ("workers", "tasks", "chunks", "files", "codecs", "servers", "findings")


def flat(row):
    """A row of the JSON as the tables have it: members of objects joined to their name by '_'."""
    found = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({f"{name}_{inner}": v for inner, v in value.items()})
        else:
            found[name] = value
    return found


def same(value, cell):
    """Exactly: whole numbers as whole numbers, real ones to the last bit, lists as JSON."""
    if isinstance(value, list):
        return json.loads(cell) == value
    if isinstance(value, str) or value is None:
        return cell == value
    return isinstance(cell, (int, float)) and cell == value


def json_rows(report, table):
    if table != "files":
        return [flat(row) for row in report[table]]
    rows = [{"kind": "data", **row} for row in report["files"]]
    return rows + [{"kind": "imports", **report["imports"]}, {"kind": "rest", **report["files_rest"]}]


@pytest.fixture(scope="module")
def exported(shared, demo, tmp_path_factory):
    """One call, all ways out at once: (the JSON, the database, the folder of CSV files)."""
    directory = tmp_path_factory.mktemp("export")
    base, folder, text = directory / "run.sqlite", directory / "csv", directory / "run.json"
    done = shared.procs.report("--run", demo.json["run"], "--sqlite", base, "--csv", folder, "--json", text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in directory.iterdir()) == ["csv", "run.json", "run.sqlite"]
    with sqlite3.connect(base) as db:
        db.row_factory = sqlite3.Row
        yield json.loads(text.read_text()), db, folder


def records(path):
    """RFC 4180, strictly: CRLF, quotes doubled inside quotes, no quote outside. A cell without quotes is
    (text, False), one with them (text, True)."""
    text, at, row = path.read_bytes().decode("utf-8"), 0, []
    while at < len(text):
        quoted = text[at] == '"'
        if quoted:
            end = at + 1
            while text[end] != '"' or text[end + 1] == '"':
                end += 2 if text[end] == '"' else 1
            row.append((text[at + 1:end].replace('""', '"'), True))
            at = end + 1
        else:
            end = min(i for i in (text.find(",", at), text.find("\r\n", at)) if i >= 0)
            assert '"' not in text[at:end] and "\n" not in text[at:end], text[at:end]
            row.append((text[at:end], False))
            at = end
        if text[at] == ",":
            at += 1
            continue
        assert text[at:at + 2] == "\r\n", text[at:at + 20]
        at += 2
        yield row
        row = []
    assert not row


def typed(cell, quoted, kind):
    if quoted:
        assert kind in ("TEXT", "")
        return cell[1:] if cell.startswith("'") else cell  # a ' keeps a spreadsheet from running it
    if cell == "":
        return None
    assert kind != "TEXT"
    if cell in ("true", "false"):
        assert kind in ("BOOLEAN", "")
        return int(cell == "true")
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def read_csv(folder, table):
    """Rows by the types that columns.csv tells."""
    _, *columns = records(folder / "columns.csv")
    types = {c[1][0]: c[2][0] for c in columns if c[0][0] == table}
    header, *rows = records(folder / f"{table}.csv")
    assert [name for name, _ in header] == list(types)
    return [{name: typed(*cell, kind) for (name, kind), cell in zip(types.items(), row, strict=True)} for row in rows]


def read_sql(db, table):
    return [dict(row) for row in db.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize("table", TABLES)
def test_tables_equal_the_json(exported, table):
    """Every number and name of the JSON in its column, and no column that the JSON does not have."""
    report, db, folder = exported
    wanted = json_rows(report, table)
    for rows in (read_sql(db, table), read_csv(folder, table)):
        assert len(rows) == len(wanted)
        for row, want in zip(rows, wanted):
            assert row.pop("run") == report["run"]
            # of an object that is null, and of what a row of imports does not say
            absent = set(row) - set(want)
            assert not any(row[name] is not None for name in absent)
            assert table == "files" or all(name.startswith(("goodbye_", "host_sample_")) for name in absent), absent
            for name, value in want.items():
                if name in row or value is not None:
                    assert same(value, row[name]), (name, value, row[name])


def test_run_row(exported):
    """All metrics that are one number, run_info, and their units."""
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
    """Added up by the database: the report's own sums, to the byte."""
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
    """The process's samples are those of tracking_data; the others stand beside them."""
    report, db, folder = exported
    rows = read_sql(db, "samples")
    assert rows == read_csv(folder, "samples")
    assert {"process", "dask"} <= {row["source"] for row in rows} <= {"process", "dask", "host"}
    memory = report["tracking_data"]["worker_memory"]
    for worker, points in memory.items():
        mine = [row["rss_bytes"] for row in rows if row["worker"] == worker and row["source"] == "process"]
        assert mine == [p["memory_bytes"] for p in points] and mine


def test_meta(exported):
    _, db, folder = exported
    meta = dict(db.execute("SELECT name, value FROM meta"))
    assert meta["program"] == "crema" and meta["format"] == 1 and meta["integers_too_large"] == 0
    assert {r[0][0]: r[1][0] for r in records(folder / "meta.csv")}["version"] == meta["version"]
    keys = {name for (name,) in db.execute("SELECT name FROM pragma_table_info('tasks') WHERE pk")}
    assert keys == {"run", "worker_id", "attempt"}
    assert "tasks_key" in {row[1] for row in db.execute("PRAGMA index_list(tasks)")}
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
