"""`crema compare --html`: the flame graph of the difference between two runs made by hand, and their numbers."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import browser
import frames

SPAN, WORKER = "span-1", b"w" * 16
USER, LIBRARY = "/home/me/an.py", "/usr/lib/python3/dist-packages/up.py"
# The first line of process() moved between the runs: (frames innermost first, ms of CPU, ms of waits for storage) of each run.
RUNS = [[([("fill", USER, 9), ("process", USER, 7)], 6000, 0), ([("load", LIBRARY, 3), ("process", USER, 8)], 0, 3000), ([("old", USER, 30)], 1000, 0)],
        [([("fill", USER, 19), ("process", USER, 17)], 6010, 0), ([("load", LIBRARY, 3), ("process", USER, 18)], 0, 9000), ([("new", USER, 40)], 1500, 500)]]


def shown(seconds):
    """A time as the page formats it."""
    return f"{seconds:#.4g} s" if seconds >= 1 else f"{seconds * 1000:#.4g} ms" if seconds else "0 s"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, runs = tmp_path_factory.mktemp("two"), []
    for k, stacks in enumerate(RUNS):
        runs.append(folder / f"run {k + 1}")
        journal = frames.Journal(runs[-1] / "journal")
        journal.worker(WORKER, host="node", pid=100, cores=2, stack=json.dumps({"nthreads": 1, "worker_address": "tcp://w:1"}))
        journal.task(1, "work-1", 0, 20_000 + 1000 * k, WORKER, prefix="work")
        places = sorted({place for at, *_ in stacks for place in at})
        rows = [{"number": n, "prefix": "work", "pool": False, "why": None, "cut": 0, "clock_cpu_ns": cpu * 10**6, "clock_runqueue_ns": 0,
                 "frames": [places.index(place) for place in at], "samples": {c: ms // 10 for c, ms in (("cpu", cpu), ("storage_wait", wait)) if ms},
                 "ns": {c: ms * 10**6 for c, ms in (("cpu", cpu), ("storage_wait", wait)) if ms}} for n, (at, cpu, wait) in enumerate(stacks)]
        journal.message([23, {"boot_ns": frames.BOOT_NS + 10**9, "table": 5, "span": SPAN, "state": "on", "interval_ns": 10**7, "cpu_ns": 0, "clocks": True,
                              "places": [part for name, file, line in places for part in (name, file, line, file == USER)], "rows": rows}], WORKER)
        journal.write()
    return folder, runs


def compare(folder, *options, quiet="on"):
    return subprocess.run([ROOT / "build" / "crema", "compare", *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, cwd=folder,
                          env={**os.environ, "CREMA_QUIET": quiet})


def truth(run, name, classes=(0, 1)):
    """Seconds and samples of the stacks that contain a function; None: of all stacks."""
    ms = [sum(of[1 + c] for c in classes) for of in RUNS[run] if name is None or name in [place[0] for place in of[0]]]
    return sum(ms) / 1000, sum(ms) // 10


def change(name, classes=(0, 1)):
    errors = []
    for run in (0, 1):
        (part, _), (whole, samples) = truth(run, name, classes), truth(run, None, classes)
        errors.append(whole * 1.96 * math.sqrt(part / whole * (1 - part / whole) / samples))
    return truth(1, name, classes)[0] - truth(0, name, classes)[0], math.hypot(*errors)


def test_the_difference(made, tmp_path):
    folder, runs = made
    for option, name in (("--json", "two.json"), ("--html", "two.html")):
        for quiet in ("on", "off"):
            done = compare(folder, option, folder / name, *runs, quiet=quiet)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", f"crema: wrote '{folder / name}'\n" * (quiet == "off"))
    with browser.Browser(tmp_path / "home") as tab:
        tab.open((folder / "two.html").as_uri())
        tab.wait("""document.querySelectorAll("#chart-flame g.cell").length > 2""")

        def cells():
            """{function: (share of the width, colour, text)}"""
            drawn = tab.run("""[...document.querySelectorAll("#chart-flame g.cell")].map((g) => [g.dataset.name.split(" ")[0], parseFloat(g.querySelector("rect").getAttribute("width")) + 0.5,
                g.querySelector("rect").getAttribute("fill"), g.querySelector("title").textContent])""")
            whole = max(width for _, width, _, _ in drawn)
            return {name: (width / whole, fill, text) for name, width, fill, text in drawn}

        def choose(id, text):
            tab.run(f"""(() => {{ const e = document.getElementById("{id}"); e.value = [...e.options].find((o) => o.text.includes("{text}")).value;
                e.dispatchEvent(new Event("change")); }})()""")

        two = cells()
        assert set(two) == {"all", "work", "process", "fill", "load", "new"}
        for name in ("process", "fill", "load", "new"):
            (seconds, samples), (difference, error) = zip(truth(0, name), truth(1, name)), change(name)
            assert two[name][0] == pytest.approx(seconds[1] / truth(1, None)[0], abs=0.002)
            sign = "-" if difference < 0 else "+"
            assert two[name][2].partition(": ")[2] == (f"{shown(seconds[0])} and {shown(seconds[1])}, {sign}{shown(round(abs(difference), 9))} +- {shown(error)} "
                                                       f"({samples[0]:,} and {samples[1]:,} samples)")
        assert two["load"][1] == two["new"][1] != two["fill"][1] and abs(change("fill")[0]) < change("fill")[1]  # 10 ms more are not a significant difference
        choose("flame-widths", "run 1")
        one = cells()
        assert set(one) == {"all", "work", "process", "fill", "load", "old"}
        assert one["old"][0] == pytest.approx(0.1, abs=0.002) and one["old"][1] not in (two["load"][1], two["fill"][1])
        choose("flame-time", "storage")
        assert set(cells()) == {"all", "work", "process", "load"} and cells()["load"][0] == pytest.approx(1)
        told = json.loads(compare(folder, "--json", "-", *runs).stdout)["runs"]
        numbers = {cell[0]: cell[1:] for cell in tab.run("""[...document.querySelectorAll("#panel-numbers tbody tr")].map((e) => [...e.children].map((c) => c.textContent))""")}
        assert numbers["wall_time"] == ["20.00", "21.00", "1.05x"] and told[1]["wall_time"] == pytest.approx(21)
        assert numbers["total_events"] == ["unknown", "unknown", "unknown"] and told[0]["total_events"] is None
        functions = tab.run("""[...document.querySelectorAll("#panel-functions tbody tr")].map((e) => [...e.children].slice(0, 5).map((c) => c.textContent))""")
        # the innermost frame of the user's own code: for load() it is process()
        assert functions[0] == ["an.py", "process", "3.000 s", "9.000 s", "+6.000 s"]
        assert tab.run("""document.getElementById("run").textContent""") == f"run 2 ({told[1]['run']}) beside run 1 ({told[0]['run']})"
        assert not tab.problems


def test_refusals(made, tmp_path):
    folder, runs = made
    done = compare(folder, "--html", tmp_path / "x.html", *runs, runs[0])
    assert done.returncode == 2 and done.stderr.startswith("crema: compare --html takes two runs\n") and not list(tmp_path.iterdir())
    done = compare(tmp_path, "--html", "no folder/x.html", *runs)
    assert done.returncode == 1 and "cannot write 'no folder/x.html'" in done.stderr
    assert compare(tmp_path, *runs, "--html").returncode == 0 and [p.name for p in tmp_path.iterdir()] == [f"compare-{name}-{name}.html" for name in ["20261118-110640-dd63"]]
    done = compare(tmp_path, "--html=-", "--json", tmp_path / "x.json", *runs)
    assert done.returncode == 0 and done.stdout.startswith("<!doctype html>") and len(json.loads((tmp_path / "x.json").read_text())["runs"]) == 2


def test_a_run_without_samples(made, tmp_path):
    folder, runs = made
    journal = frames.Journal(tmp_path / "none" / "journal")
    journal.worker(WORKER, host="node", pid=100, cores=2, stack="{}")
    journal.task(1, "work-1", 0, 1000, WORKER, prefix="work")
    journal.write()
    assert compare(folder, "--html", tmp_path / "none.html", runs[0], tmp_path / "none").returncode == 0
    with browser.Browser(tmp_path / "home") as tab:
        tab.open((tmp_path / "none.html").as_uri())
        tab.wait("""document.querySelector("#panel-numbers tbody tr") !== null""")
        assert tab.run("""document.querySelector("#panel-difference .shown").textContent""") == "No samples of run 2: nothing to compare."
        assert not tab.problems
