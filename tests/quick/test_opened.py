"""Bytes by the line of the user's own code that opened the file: a job that counts what it reads and writes (opened_job.py), on
every Python of this machine."""

import contextlib
import json
import os
import re
import sqlite3

import pytest
import test_lines  # sets the path to the integration tests' modules
import frames
from test_lines import VERSIONS, job, marked, python_of, report

JOB = test_lines.HERE / "opened_job.py"
LINES = marked(JOB)


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("opened by a line")
    (folder / "data").mkdir()
    told = job(folder, python_of(request.param), unit=folder / "data", program=JOB)
    found = json.loads(report(folder, "--json", "-"))
    files = {os.path.basename(f["path"]): f for f in found["files"] if f["path"].startswith(str(folder / "data"))}
    return {"folder": folder, "told": told, "files": files}


def by_line(run):
    """{(file, LINE): row}"""
    names = {f"{JOB}:{number}": name for name, number in LINES.items()}
    return {(file, names[row["line"].rsplit(" ", 1)[0]]): row for file, f in run["files"].items() for row in f["opened_by"]}


def test_each_line_has_what_its_descriptors_moved(run):
    rows = by_line(run)
    told = run["told"]
    assert set(rows) == {("a", "builtin"), ("a", "pathlib"), ("b", "os"), ("c", "thread"), ("new", "write"), ("d", "copy"), ("copy", "copy")}
    for (file, line), row in rows.items():
        if line != "copy":
            opens, read, wrote = told[line]
            assert (row["descriptors"], row["read_bytes"], row["write_bytes"]) == (opens, read, wrote), line
    assert rows["a", "builtin"]["read_calls"] == 6
    # shutil copies with sendfile(), or by reading and writing
    assert rows["d", "copy"]["read_bytes"] == 140_000 and rows["copy", "copy"]["write_bytes"] == 140_000
    assert all(row["storage_wait_seconds"] >= 0 for row in rows.values())


def test_the_functions_name_is_there(run):
    assert run["files"]["c"]["opened_by"][0]["line"] == f"{JOB}:{LINES['thread']} another_thread"
    assert run["files"]["a"]["opened_at"] == run["files"]["a"]["opened_by"][0]["line"]


def test_sums_close_with_the_file(run):
    """Bytes without a line came through other descriptors: a copy, a name of type bytes, a C function, one opened before the first task."""
    rest = {name: f["read_bytes"] - sum(row["read_bytes"] for row in f["opened_by"]) for name, f in run["files"].items()}
    assert rest == {"a": 0, "b": 1000, "c": 0, "d": 0, "e": 140_000, "f": 6100, "g": 280_000, "h": 140_000, "new": 0, "copy": 0}
    assert all(f["read_calls"] >= sum(row["read_calls"] for row in f["opened_by"]) for f in run["files"].values())


def test_the_table_of_files_names_it(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "130")
    text = report(run["folder"], "--show", "files")
    line = next(line for line in text.splitlines() if line.strip().startswith("a "))
    assert f"opened_job.py:{LINES['pathlib']} reads (+1)" in line or f"opened_job.py:{LINES['builtin']} reads (+1)" in line, text


def test_the_code_has_it_beside(run):
    """Each line once over all files, in the JSON's read_lines and next to the code."""
    rows = {(r["line"], r["function"]): r for r in json.loads(report(run["folder"], "--json", "-"))["read_lines"] if r["kind"] == "line"}
    told = {**run["told"], "copy": [2, 140_000, 140_000]}
    assert {LINES[name]: [told[name][0], told[name][1], told[name][2]] for name in told} == {
        line: [r["opened_descriptors"], r["opened_read_bytes"], r["opened_write_bytes"]] for (line, _), r in rows.items()}
    assert all(r["columns"] == [] and r["basket_bytes"] == 0 for r in rows.values())
    text = report(run["folder"], "--show", "source")
    assert re.search(rf"^ +{LINES['builtin']} .* 280\.0 kB +with open\(", text, re.M), text
    assert "opened: bytes read through the descriptors" in text


def test_a_worker_that_goes_within_a_task(tmp_path):
    """Its thread has not added anything to the line's row yet."""
    (tmp_path / "data").mkdir()
    told = job(tmp_path, unit=tmp_path / "data", program=JOB, GONE="1")
    (row,) = next(f["opened_by"] for f in json.loads(report(tmp_path, "--json", "-"))["files"] if f["path"].endswith("/c"))
    assert [row["descriptors"], row["read_bytes"], row["write_bytes"]] == told["gone"] and row["read_calls"] == 1


SPAN, CHUNK, WORKERS = "span-1", 2, (b"a" * 16, b"b" * 16)


def by_hand(folder, files, messages=(), **task):
    """The report of a run with one chunk on each of two workers, and FILE messages: (worker, {name: value})."""
    journal = frames.Journal(folder / "out")
    for k, worker in enumerate(WORKERS):
        journal.worker(worker, host="node", pid=100 + k, cores=8)
        journal.task(1, f"work-{k}", 1000 * k, 1000 * k + 900, worker, prefix="work", flags=CHUNK, dataset="set", events=10, wall_ns=9 * 10**8, **task)
    for worker, row in files:
        journal.message([12, {"span": SPAN, "kind": "data", "filesystem": "ext4", "storage": "exact", **row}], WORKERS[worker])
    for message in messages:
        journal.message(message, WORKERS[0])
    journal.write()
    return json.loads(report(folder, "--json", "-"))


def opened(line, opens, calls, size, wrote=0, wait=0):
    return [line, opens, calls, size, wrote, wait]


def test_workers_add_up_and_numbers_only_grow(tmp_path):
    """Two workers' lines are joined by their text; a late message; a value that is not a list of lines is left out."""
    one, two = "/a/x.py:1 f", "/b/x.py:1 f"
    found = by_hand(tmp_path, [
        (0, {"path": "/data/a", "read_calls": 9, "read_bytes": 900, "opened_by": [opened(one, 2, 5, 500), opened(two, 1, 4, 400)]}),
        (0, {"path": "/data/a", "read_calls": 2, "read_bytes": 200, "opened_by": [opened(one, 1, 2, 200)]}),
        (1, {"path": "/data/a", "read_calls": 8, "read_bytes": 80, "opened_by": [opened(two, 1, 8, 80, 7, 2 * 10**9)]}),
        (1, {"path": "/data/b", "read_calls": 1, "read_bytes": 1, "opened_by": [7, [], [one], [3, 1, 1, 1, 1, 1], opened(one, -1, "x", 1, None, 5)]}),
        (1, {"path": "/data/c", "read_calls": 1, "read_bytes": 1, "opened_by": {"a": 1}}),
        (1, {"path": "/data/d", "read_calls": None, "read_bytes": None, "write_bytes": 5, "opened_by": [opened(one, 1, 1, 1)]})])
    rows = {f["path"]: f["opened_by"] for f in found["files"]}
    names = ("line", "descriptors", "read_calls", "read_bytes", "write_bytes", "storage_wait_seconds")
    report(tmp_path, "--sqlite", tmp_path / "run.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as db:
        kept = dict(db.execute("SELECT path, opened_by FROM files WHERE kind = 'data'"))
        assert {path: json.loads(text) for path, text in kept.items()} == rows
        assert db.execute("SELECT opened_by FROM files WHERE kind != 'data'").fetchall() == [(None,), (None,)]
    assert rows["/data/a"] == [dict(zip(names, r)) for r in [(one, 2, 5, 500, 0, 0), (two, 2, 12, 480, 7, 2)]]
    assert rows["/data/b"] == [dict(zip(names, (one, None, None, 1, None, 5e-9)))] and rows["/data/c"] == []
    assert rows["/data/d"] == [dict.fromkeys(names, None) | {"line": one}]


@pytest.mark.parametrize("function, opener, first", [
    ("P.process", "process", "not_by_coffea"), ("P.process.<locals>.<genexpr>", "process", "not_by_coffea"), ("<genexpr>", "process", "not_by_coffea"),
    ("P.process", None, "not_by_coffea"), ("P.select", "process", "hot_line"), ("P.processed", "process", "hot_line")])
def test_what_computes_elsewhere_is_no_part_of_reading(tmp_path, function, opener, first):
    """2 of 3 s of CPU on a line: of the function that opened files that coffea does not know, or of another function."""
    by = [opened(f"/a/x.py:1 {opener}", 2, 2, 6 * 10**7)] if opener else []
    row = {"number": 0, "prefix": "work", "pool": False, "why": None, "cut": 0, "clock_cpu_ns": 10**9, "clock_runqueue_ns": 0, "frames": [0],
           "samples": {"cpu": 100}, "ns": {"cpu": 10**9}}
    lines = [[23, {"boot_ns": frames.BOOT_NS + 10**9, "table": 5, "span": SPAN, "state": "on", "interval_ns": 10**7, "cpu_ns": 0, "clocks": True,
                   "places": [function, "/a/x.py", 9, True], "rows": [row]}]]
    found = by_hand(tmp_path, [(0, {"path": "/data/a", "read_calls": 4, "read_bytes": 10**8, "opened_by": by})], lines, read_bytes=50_000_000,
                    coffea_bytesread=10**6, mapped_bytes=0, network_read_bytes=0, basket_bytes=0, cpu_ns=8 * 10**8)
    shown, left = [f["id"] for f in found["findings"]], [f["id"] for f in found["findings_left_out"]]
    assert ("hot_line" in shown) == (first == "hot_line") and ("hot_line" in left) == (first != "hot_line"), (shown, left)


@pytest.mark.parametrize("name, says, evidence, task, row", [
    ("not_by_coffea", "; 60.00 MB came from files opened at 'x.py:1 f'", ("opened_read_bytes", 6 * 10**7, "bytes"), {"read_bytes": 50_000_000, "coffea_bytesread": 10**6, "mapped_bytes": 0, "network_read_bytes": 0, "basket_bytes": 0},
     {"read_calls": 4, "read_bytes": 10**8, "opened_by": [opened("/a/x.py:1 f", 2, 2, 6 * 10**7), opened("/a/x.py:2 f", 2, 2, 3 * 10**7)]}),
    ("reread_in_task", "; 'x.py:1 f' opened files 3 times", ("opened_descriptors", 3, "calls"), {"basket_bytes": 10**9, "repeated_basket_bytes": 8 * 10**8, "read_bytes": 10**9},
     {"read_calls": 4, "read_bytes": 10**9, "opened_by": [opened("/a/x.py:1 f", 3, 2, 600)]}),
    ("small_reads", "; 190,000 of them read what was opened at 'x.py:1 f'", ("opened_read_calls", 190_000, "calls"), {"read_bytes": 10**6, "read_calls": 10**5},
     {"read_calls": 2 * 10**5, "read_bytes": 2 * 10**6, "opened_by": [opened("/a/x.py:1 f", 3, 190_000, 600)]})])
def test_findings_name_the_line(tmp_path, name, says, evidence, task, row):
    """No line is named that has less than half, or that opens only once in each task."""
    found = next(f for f in by_hand(tmp_path / "one", [(0, {"path": "/data/a", **row})], **task)["findings"] if f["id"] == name)
    assert says in found["sentence"]
    assert {e["name"]: e["value"] for e in found["evidence"]}["opened_at"] == "/a/x.py:1 f"
    number = next(e for e in found["evidence"] if e["name"].startswith("opened_") and e["name"] != "opened_at")
    assert (number["name"], number["value"], number["unit"]) == evidence
    fewer = [opened(line, opens - 1, calls // 3, size // 2) for line, opens, calls, size, *_ in row["opened_by"]]
    found = next(f for f in by_hand(tmp_path / "two", [(0, {"path": "/data/a", **row, "opened_by": fewer})], **task)["findings"] if f["id"] == name)
    assert "x.py" not in found["sentence"]
