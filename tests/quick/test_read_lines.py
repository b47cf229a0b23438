"""What lines of the user's code read, from a run made by hand: columns on two workers, requested by one line, by two, by none."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import browser
import frames
import terminal

SPAN, CHUNK, WORKERS = "span-1", 2, (b"a" * 16, b"b" * 16)
CELLS = [(name, cell, name.endswith("_ns")) for name, cell in
         re.findall(r"^COLUMN_(?:NUMBER|TIME|COUNT)\((\w+), +(\w+),", (ROOT / "contract" / "rows.def").read_text(), re.M) if name != "wait_min_ns"]
CODE = "def process(events):\n    jets = events.Jet[events.Jet.pt > 30]\n    return jets, events.MET\n"


def rows(path):
    """(worker, column, lines, more, number), as sent by agents."""
    one, two, odd = (f"{path}:{line} {name}" for line, name in ((2, "process"), (3, "process"), (4, "<lambda>")))
    return [(0, "Jet_pt", [one], False, 1000), (1, "Jet_pt", [two], False, 300), (0, "Jet_eta", [one], False, 20), (0, "MET_pt", [one, two], False, 7),
            (1, "MET_pt", [two], False, 50), (0, "Muon_pt", [odd], True, 4), (1, "nJet", [], False, 600), (1, "nMuon", ["no line"], False, 5),
            (1, None, [one], False, 9000), (1, "Jet_eta", [one], False, 80)]


def number(i, value):
    """The i-th cell's number: different for each."""
    return value * (i + 1) * (1000 if CELLS[i][2] else 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read lines")
    code = folder / "my analysis.py"
    code.write_text(CODE)
    os.utime(code, (1, 1))
    journal = frames.Journal(folder / "journal")
    for k, worker in enumerate(WORKERS):
        journal.worker(worker, host="node", pid=100 + k, cores=8, stack=json.dumps({"nthreads": 1, "worker_address": f"tcp://w{k}:1"}))
        journal.task(1, f"work-{k}", 1000 * k, 1000 * k + 900, worker, prefix="work", flags=CHUNK, dataset="set", events=10, wall_ns=9 * 10**8,
                     basket_bytes=10**6, decompress_cpu_ns=10**9, coffea_bytesread=10**6)
    for n, (k, column, lines, more, value) in enumerate(rows(code)):
        journal.message([24, {"number": n, "column": column, "tree": "Events", "dataset": "set", "span": SPAN, "rev": 1, **({"together": True} if not column else {}),
                              **({"lines": lines} if lines else {}), **({"more_lines": True} if more else {}),
                              **{name: number(i, value) for i, (name, _, _) in enumerate(CELLS)}}], WORKERS[k])
    journal.write()
    report(folder, "--json", folder / "run.json", "--sqlite", folder / "run.db")
    return folder, json.loads((folder / "run.json").read_text()), code


def report(folder, *options):
    done = subprocess.run([ROOT / "build" / "crema", "report", "--dir", folder, *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          env={**os.environ, "CREMA_QUIET": "on", "COLUMNS": "120"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_each_number_once(made):
    """For a line: its own columns. Columns of several lines, of no line, and reads outside columns are separate; together they are the chunks' numbers."""
    _, found, code = made
    shown = {(r["kind"], r["line"]): r for r in found["read_lines"]}
    path = str(code)
    truth = {("line", 2): (10100, ["Jet_eta", "Jet_pt"], ["MET_pt"]), ("line", 3): (350, ["Jet_pt", "MET_pt"], ["MET_pt"]),
             ("line", 4): (None, [], ["Muon_pt"]), ("several", None): (11, ["MET_pt", "Muon_pt"], []), ("unknown", None): (605, ["nJet", "nMuon"], [])}
    assert set(shown) == {*truth, ("rest", None)}
    for key, (value, columns, shared) in truth.items():
        row = shown[key]
        assert (sorted(row["columns"]), row["shared_columns"]) == (columns, shared), key
        assert row["file"] == (path if key[0] == "line" else None)
        for i, (_, cell, time) in enumerate(CELLS):
            assert row[cell] == pytest.approx(number(i, value or 0) / (1e9 if time else 1), abs=1e-12), (key, cell)
    assert [shown["line", n]["function"] for n in (2, 3, 4)] == ["process", "process", "<lambda>"]
    assert sum(r["basket_bytes"] for r in found["read_lines"]) == 2 * 10**6
    assert shown["rest", None]["requests"] is None
    assert [r["kind"] for r in found["read_lines"]] == ["line"] * 3 + ["several", "unknown", "rest"]


def test_order(tmp_path):
    """Most bytes first; equal ones by file and line, whatever the order of arrival."""
    journal = frames.Journal(tmp_path / "journal")
    journal.worker(WORKERS[0], host="node", pid=1, cores=1)
    journal.task(1, "work-0", 0, 900, WORKERS[0], prefix="work", flags=CHUNK, dataset="set", events=10)
    for n, (line, size) in enumerate([("/b.py:1", 5), ("/a.py:9", 5), ("/a.py:7", 5), ("/c.py:3", 6)]):
        journal.message([24, {"number": n, "column": f"c{n}", "tree": "Events", "dataset": "set", "span": SPAN, "rev": 1, "lines": [f"{line} f"], "basket_bytes": size}], WORKERS[0])
    journal.write()
    report(tmp_path, "--json", tmp_path / "run.json")
    rows = [r for r in json.loads((tmp_path / "run.json").read_text())["read_lines"] if r["kind"] == "line"]
    assert [f"{r['file']}:{r['line']}" for r in rows] == ["/c.py:3", "/a.py:7", "/a.py:9", "/b.py:1"]


def test_unknown_is_not_nothing(tmp_path):
    journal = frames.Journal(tmp_path / "journal")
    journal.worker(WORKERS[0], host="node", pid=1, cores=1)
    journal.task(1, "work-0", 0, 900, WORKERS[0], prefix="work", flags=CHUNK, dataset="set", events=10)
    for n, value in enumerate((5, None)):
        journal.message([24, {"number": n, "column": f"c{n}", "tree": "Events", "dataset": "set", "span": SPAN, "rev": 1, "lines": ["/a.py:1 f"],
                              "read_bytes": value, "basket_bytes": 3}], WORKERS[0])
    journal.write()
    report(tmp_path, "--json", tmp_path / "run.json")
    (row,) = [r for r in json.loads((tmp_path / "run.json").read_text())["read_lines"] if r["kind"] == "line"]
    assert (row["read_bytes"], row["basket_bytes"], row["columns"]) == (None, 6, ["c0", "c1"])


@pytest.mark.parametrize("of_line", [1.25, 0.3])
def test_findings_name_the_line(tmp_path, of_line):
    """2 of 4 s of CPU are decompression; a line is named if it requested columns that took a fifth of that, and so for 60 columns."""
    journal, names = frames.Journal(tmp_path / "journal"), [f"c{n}" for n in range(60)]
    journal.worker(WORKERS[0], host="node", pid=1, cores=1, stack=json.dumps({"nthreads": 1}))
    journal.task(1, "work-0", 0, 9000, WORKERS[0], prefix="work", flags=CHUNK, dataset="set", filename="/a.root", events=10, cpu_ns=4 * 10**9, pool_cpu_ns=0,
                 columns="\n".join(names), entrystart=0, entrystop=10, treename="Events")
    journal.message([13, {"function": "zlib.decompress", "codec": "zlib", "direction": "decompress", "span": SPAN, "calls": 9, "in_bytes": 10**6, "out_bytes": 10**7,
                          "cpu_ns": 2 * 10**9, "wall_ns": 2 * 10**9, "errors": 0}], WORKERS[0])
    journal.message([12, {"path": "/a.root", "name": "a.root", "span": SPAN, "kind": "data", "storage": "exact", "filesystem": "ext4", "size_bytes": 10**6,
                          **{name: 10**6 for name in ("read_bytes", "basket_bytes", "extent_bytes", "unique_bytes", "basket_extent_bytes", "unique_basket_bytes")}, "read_calls": 1,
                          "mapped_bytes": 0, "basket_calls": 60, "ranges": [0, 10**6], "basket_ranges": [0, 10**6]}], WORKERS[0])
    for n, name in enumerate(names):
        line, took, size = (7, of_line / 40, of_line * 10**4) if n < 40 else (9, 0.01, 1000)
        journal.message([24, {"number": n, "column": name, "tree": "Events", "dataset": "set", "span": SPAN, "rev": 1, "lines": [f"/home/me/an.py:{line} process"],
                              "decompress_cpu_ns": round(took * 1e9), "basket_bytes": round(size)}], WORKERS[0])
    journal.write()
    report(tmp_path, "--json", tmp_path / "run.json")
    run = json.loads((tmp_path / "run.json").read_text())
    found = {f["id"]: f for f in run["findings"] + run["findings_left_out"]}
    named = "; columns that 'an.py:7 process' asked for took 1.250 s of decompression"
    assert (named in found["decompression"]["sentence"]) == (of_line == 1.25) and "an.py:9" not in found["decompression"]["sentence"]
    evidence = {e["name"]: e["value"] for e in found["decompression"]["evidence"]}
    assert evidence.get("read_line_decompress_cpu_seconds") == (pytest.approx(1.25) if of_line == 1.25 else None)
    assert evidence.get("read_line_columns") == (40 if of_line == 1.25 else None)
    assert f"; 'an.py:7 process' asked for 40 of them ({of_line * 400:#.4g} kB)" in found["wide_read"]["sentence"] or of_line < 1
    assert ("an.py" in found["wide_read"]["sentence"]) == (of_line > 1)


def test_other_forms(made):
    """SQLite equals the JSON; the code shows the numbers next to its lines, which were not sampled."""
    folder, found, code = made
    base = sqlite3.connect(folder / "run.db")
    base.row_factory = sqlite3.Row
    for row, told in zip(base.execute("SELECT * FROM read_lines ORDER BY rowid"), found["read_lines"], strict=True):
        assert {name: json.loads(row[name]) if name.endswith("columns") else row[name] for name in told} == told
    by_name = [name for name, _, _ in CELLS]
    size, spent = (number(by_name.index(name), 10100) for name in ("basket_bytes", "decompress_cpu_ns"))
    for width, cells in ((80, [f"{size / 1000:#.4g} kB"]), (130, [f"{size / 1000:#.4g} kB", f"{spent / 1e6:#.4g} ms"])):
        text = on_terminal(folder, width)
        lines = {int(n): re.split(" {2,}", rest.strip()) for n, rest in re.findall(r"^ +(\d)\b(.*)$", text, re.M)}
        assert lines[1] == ["def process(events):"] and lines[2][:-1] == cells and lines[2][-1].startswith("jets = events.Jet[events.")
        assert lines[3][0] == f"{size / 1010 * 35 / 1000:#.4g} kB" and all(len(line) <= width for line in text.splitlines() if code.name not in line)
        told = " ".join(text.split())
        whole, several, nobody = (f"{size / 10100 * of / 1000:#.4g}" for of in (10450, 11, 605))
        assert f"{whole} kB in all; {float(several) * 1000:.0f} B more are of columns that several lines asked for, and {nobody}" in told
        assert ("decompressing" in told) == (width > 80)
    assert code.name in text


def on_terminal(folder, columns):
    argv = [ROOT / "build" / "crema", "report", "--dir", folder, "--show", "source"]
    with terminal.Terminal(argv, lines=50, columns=columns, env={"CREMA_QUIET": "on", "NO_COLOR": "1", "PAGER": "cat"}) as tty:
        assert tty.end() == 0
        return tty.bytes.decode().replace("\r", "")


def test_page(made, tmp_path):
    folder, found, code = made
    report(folder, "--html", folder / "run.html")
    told = {str(r["line"]): (r["basket_bytes"], r["decompress_cpu_seconds"]) for r in found["read_lines"] if r["kind"] == "line"}
    with browser.Browser(tmp_path / "home") as tab:
        tab.open((folder / "run.html").as_uri())
        tab.wait("""document.querySelector(".source tr[data-line]") !== null""")
        drawn = tab.run("""[...document.querySelectorAll(".source tr[data-line]")].map((e) => [e.dataset.line, [...e.children].map((c) => c.textContent)])""")
        lines = {line: cells for line, cells in drawn}
        assert all(cells[:3] == ["", "", ""] for cells in lines.values()) and lines["1"][3:5] == ["", ""]
        for line in "23":
            assert lines[line][3:] == [f"{told[line][0] / 1000:#.4g} kB", f"{told[line][1] * 1000:#.4g} ms", line, CODE.splitlines()[int(line) - 1]]
        assert not tab.problems
