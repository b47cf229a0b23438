"""Sampled stacks by dataset and by worker, for a run made by hand: in JSON, SQLite, pprof and the page's flame graph."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pprof_file
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import browser
import frames

SPAN, WORKERS = "span-1", [bytes([65 + k]) * 16 for k in range(14)]
PLACES = [("process", "/home/an.py", 7, True), ("fill", "/home/an.py", 9, True), ("load", "/usr/lib/python3/dist-packages/up.py", 3, False)]


def rows(k):
    """(dataset, frames innermost first, ms of CPU, ms of storage wait) of worker k."""
    yield "ttbar", [1, 0], 1000 * (k + 1), 0
    yield "ttbar", [2, 0], 0, 100 * (k + 1)
    yield "qcd", [1, 0], 50, 10
    if k % 2:
        yield None, [2], 300, 0


def at(ms):
    return frames.BOOT_NS + ms * 10**6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks_by")
    journal = frames.Journal(folder / "journal")
    for k, worker in enumerate(WORKERS):
        journal.worker(worker, host="node", pid=100 + k, cores=2, stack=json.dumps({"nthreads": 1, "worker_address": f"tcp://w{k:02d}:1"}))
        journal.task(1, f"work-{k}", 100 * k, 100 * k + 20_000, worker, prefix="work", dataset="ttbar", wall_ns=2 * 10**10)
        found = [{"number": n, "prefix": "work", "pool": False, "why": None, "cut": 0, "clock_cpu_ns": cpu * 10**6, "clock_runqueue_ns": 0, "frames": at_places,
                  "samples": {name: ms // 10 for name, ms in (("cpu", cpu), ("storage_wait", wait)) if ms},
                  "ns": {name: ms * 10**6 for name, ms in (("cpu", cpu), ("storage_wait", wait)) if ms}, **({"dataset": dataset} if dataset else {})}
                 for n, (dataset, at_places, cpu, wait) in enumerate(rows(k))]
        journal.message([23, {"boot_ns": at(1000), "table": 5, "span": SPAN, "state": "on", "interval_ns": 10**7, "cpu_ns": 0, "clocks": True,
                              "places": [part for place in PLACES for part in place], "rows": found}], worker)
    journal.write()
    report(folder, "--json", folder / "run.json", "--sqlite", folder / "run.db", "--pprof", folder / "run.pb.gz", "--html", folder / "run.html")
    return folder, json.loads((folder / "run.json").read_text())


def report(folder, *options):
    done = subprocess.run([ROOT / "build" / "crema", "report", "--dir", folder, *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          env={**os.environ, "CREMA_QUIET": "on"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def truth(of, workers=range(len(WORKERS))):
    """{of(row): seconds of CPU and of waits for storage}"""
    found = {}
    for k in workers:
        for dataset, at_places, cpu, wait in rows(k):
            sums = found.setdefault(of(k, dataset, at_places), [0, 0])
            sums[0] += cpu / 1000
            sums[1] += wait / 1000
    return found


def test_by_dataset(made):
    folder, run = made
    expected = truth(lambda k, dataset, at_places: (dataset, tuple(at_places)))
    for told in (run["stacks"]["stacks"], [dict(zip(("dataset", "frames", "cpu_seconds", "storage_wait_seconds"), row)) | {"frames": json.loads(row[1])} for row in
                                           sqlite3.connect(folder / "run.db").execute("SELECT dataset, frames, cpu_seconds, storage_wait_seconds FROM stacks")]):
        by_text = {f"{file}:{line} {function}": n for n, (function, file, line, _) in enumerate(PLACES)}
        found = {(row["dataset"], tuple(by_text[f] for f in row["frames"][::-1])): [row["cpu_seconds"], row["storage_wait_seconds"]] for row in told}
        assert found.keys() == expected.keys() and len(found) == len(told)
        for key, sums in expected.items():
            assert found[key] == pytest.approx(sums), key


def test_labels_of_pprof(made):
    folder, run = made
    samples = pprof_file.read(folder / "run.pb.gz")["samples"]
    found = {}
    for sample in samples:
        sums = found.setdefault((sample["labels"]["worker"], sample["labels"].get("dataset")), [0, 0])
        sums[0] += sample["values"][1] / 1e9
        sums[1] += sample["values"][6] / 1e9
    for key, sums in truth(lambda k, dataset, _: (f"tcp://w{k:02d}:1", dataset)).items():
        assert found.pop(key) == pytest.approx(sums), key
    assert not found and all(s["labels"]["task"] == "work" for s in samples)


def test_flame_graph(made, tmp_path):
    folder, _ = made
    with browser.Browser(tmp_path / "home") as tab:
        tab.open((folder / "run.html").as_uri())
        tab.wait("""document.querySelectorAll("#chart-flame g.cell").length > 2""")

        def groups(by, time="all time"):
            """{name: seconds} of the second row."""
            for id, text in (("flame-by", by), ("flame-time", time)):
                tab.run(f"""(() => {{ const e = document.getElementById("{id}"); e.value = [...e.options].find((o) => o.text.includes("{text}")).value;
                    e.dispatchEvent(new Event("change")); }})()""")
            widths = tab.run("""[...document.querySelectorAll("#chart-flame g.cell")].map((g) => [g.getAttribute("transform").match(/,([0-9.]+)/)[1] / 18, g.dataset.name,
                parseFloat(g.querySelector("rect").getAttribute("width")) + 0.5])""")
            whole = next(w for depth, _, w in widths if depth == 0)
            return {name: w / whole for depth, name, w in widths if depth == 1}

        def shares(of, part=lambda sums: sum(sums)):
            whole = sum(part(sums) for sums in of.values())
            return {name: pytest.approx(part(sums) / whole, abs=0.002) for name, sums in of.items() if part(sums) / whole >= 0.01}

        options = tab.run("""[...document.getElementById("flame-by").options].map((o) => o.text)""")
        assert options == ["by kind of task", "by dataset", "by worker (the busiest 12 of 14)"]
        assert groups("by kind") == {"work": pytest.approx(1, abs=0.002)}
        assert groups("by dataset") == shares(truth(lambda k, dataset, _: dataset or "no dataset, or not known yet"))
        by_time = sorted(range(len(WORKERS)), key=lambda k: -sum(map(sum, truth(lambda *of: of[0], [k]).values())))
        names = {k: f"tcp://w{k:02d}:1" if n < 12 else "other workers" for n, k in enumerate(by_time)}
        assert groups("by worker") == shares(truth(lambda k, *_: names[k]))
        assert groups("by worker", "storage") == shares(truth(lambda k, *_: names[k]), lambda sums: sums[1])
        assert not tab.problems
