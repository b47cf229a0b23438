"""Memory by Python stack: a job that allocates, keeps and frees known amounts on known lines (memory_job.py), on every Python of this machine.
Numbers are exact."""

import json
import re
import signal

import pprof_file
import pytest
import test_lines
from test_lines import VERSIONS, WITHOUT_GIL, browser, job, marked, python_of, report

JOB = test_lines.HERE / "memory_job.py"
NAMES = {number: name for name, number in marked(JOB).items()}
NUMBERS = ["large_allocations", "allocated_bytes", "live_bytes", "kept_bytes", "peak_bytes"]
SMALL = "little"
MB, HEADER = 1 << 20, bytes().__sizeof__()
OBJECTS_UNSEEN = "this Python is free threaded, which allocates large objects of its own unseen: memory by line has those of arrays and libraries only"


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory by line")
    told = job(folder, python_of(request.param), unit="ends", program=JOB)
    made = json.loads(report(folder, "--json", "-"))
    tasks = BY_TASK
    if request.param in WITHOUT_GIL:  # it allocates its own objects without malloc
        assert any(note.endswith(OBJECTS_UNSEEN) for note in made["completeness"]["notes"])
        tasks = {**BY_TASK, "keeps": (0, 0), "temporary": (0, 0)}
        told = {line: numbers for line, numbers in told.items() if line not in ("cache", "temporary")}
    return {"folder": folder, "told": told, "tasks": tasks, "stacks": made["stacks"]}


# By task: bytes in large allocations, and what of them was freed while it ran. What frees_the_first() frees is another task's.
BY_TASK = {"keeps": (3 * MB + HEADER, 0), "temporary": (5 * (7 * MB + HEADER),) * 2, "every_way": (14 * MB,) * 2, "grows": (60 * MB, 54 * MB),
           "hands_over": (9 * MB,) * 2, "pooled": (8 * MB, 0), "little": (0, 0), "frees_the_first": (0, 0), "arrays": (32 * MB, 24 * MB)}


def by_task(folder):
    return {t["key"]: (t["large_allocated_bytes"], t["large_freed_bytes"]) for t in json.loads(report(folder, "--json", "-"))["tasks"]}


def line_of(frames):
    numbers = [int(re.fullmatch(r".*:(\d+) .*", frame).group(1)) for frame in frames if frame.startswith(str(JOB))]
    return next((NAMES[n] for n in numbers if n in NAMES), None)


def by_line(rows, frames="frames"):
    sums = {}
    for row in rows:
        if row["large_allocations"]:
            mine = sums.setdefault(line_of(row[frames]), [0] * len(NUMBERS))
            for i, name in enumerate(NUMBERS):
                mine[i] += row[name]
    return sums


def test_each_stack_has_its_bytes(run):
    assert by_line(run["stacks"]["stacks"]) == run["told"] and SMALL not in run["told"]


def test_lines_and_sums(run):
    stacks, told = run["stacks"], run["told"]
    lines = {NAMES[row["line"]]: [row[name] for name in NUMBERS] for row in stacks["lines"] if row["large_allocations"]}
    assert lines == told
    for i, name in enumerate(NUMBERS):
        assert stacks["own"][name] + stacks["pool"][name] == sum(numbers[i] for numbers in told.values())
    assert stacks["large_allocation_workers"] == 1 and stacks["large_allocation_least_bytes"] == 1 << 20
    assert {row["thread"] for row in stacks["stacks"] if line_of(row["frames"]) == "pooled" and row["large_allocations"]} == {"pool"}


def test_each_task_has_its_bytes(run):
    found = by_task(run["folder"])
    assert found == {key: run["tasks"][key.rpartition("-")[0]] for key in found} and len(found) >= 12


@pytest.mark.parametrize("table", ["lines", "memory"])
def test_the_table(run, table):
    text = report(run["folder"], "--show", table).split("Memory by line of your code")[1]
    first = text.splitlines()[2]
    most = max(run["told"], key=lambda name: run["told"][name][4])
    assert f"memory_job.py:{marked(JOB)[most]}" in first and "kept" in text.splitlines()[1]


SHOWN = {"allocated": "allocated_bytes", "kept": "kept_bytes", "in use at the peak": "peak_bytes"}


def test_the_profile_and_the_collapsed_stacks(run, tmp_path):
    report(run["folder"], "--pprof", tmp_path / "run.pb.gz")
    profile = pprof_file.read(tmp_path / "run.pb.gz")
    collapsed = report(run["folder"], "--collapsed-bytes", "-").splitlines()
    for name in SHOWN.values():
        at, of = profile["types"].index((name, "bytes")), NUMBERS.index(name)
        truth = {line: numbers[of] for line, numbers in run["told"].items() if numbers[of]}
        found = {}
        for sample in profile["samples"]:
            if sample["values"][at]:
                line = line_of([f"{file}:{number} {function}" for function, file, number in sample["frames"]])
                found[line] = found.get(line, 0) + sample["values"][at]
        assert found == truth
        ends = [line.rpartition(" ") for line in collapsed if f";[{name}] " in line]
        assert sum(int(end) for _, _, end in ends) == sum(truth.values())


def test_the_flame_graph(run, tmp_path):
    """Cells of memory are as wide as their bytes; your code has the same numbers."""
    report(run["folder"], "--html", tmp_path / "run.html")
    marks = {f"memory_job.py:{number}": name for number, name in NAMES.items()}
    with browser.Browser(tmp_path / "home") as tab:
        tab.open((tmp_path / "run.html").as_uri())
        tab.wait("""document.querySelectorAll("#chart-flame g.cell").length > 0""")
        for shown, name in SHOWN.items():
            tab.run(f"""(() => {{ const e = document.getElementById("flame-time"); e.value = [...e.options].find((o) => o.text === "memory {shown}").value;
                e.dispatchEvent(new Event("change")); }})()""")
            truth = {line: numbers[NUMBERS.index(name)] for line, numbers in run["told"].items()}
            cells = tab.run("""[...document.querySelectorAll("#chart-flame g.cell")].map((g) => [g.dataset.name, g.querySelector("title").textContent,
                parseFloat(g.querySelector("rect").getAttribute("width")) + 0.5, g.getAttribute("transform").match(/[0-9.]+/)[0]])""")
            whole, seen = cells[0][2], set()
            assert cells[0][1].startswith("all tasks: " + tab.run(f"as.bytes({sum(truth.values())})") + ", 100.0 %") and "samples" not in cells[0][1]
            drawn = {}
            for text, _, width, at in cells:
                line = marks.get(text.rpartition("(")[2].rstrip(")"))
                drawn[line] = drawn.get(line, 0) + (0 if (line, at) in seen else width / whole * sum(truth.values()))
                seen.add((line, at))  # a pool thread's stack has the line that submitted its work, too
            big = {line: n for line, n in truth.items() if n > 0.05 * sum(truth.values())}
            assert big and {line: drawn.get(line) for line in big} == pytest.approx(big, rel=0.02)
        note = "Memory: allocations of " + tab.run("as.bytes(1048576)") + " or more by tasks, exact."
        assert note in tab.run("""[...document.querySelectorAll("#panel-flame p.shown, p.shown")].map((p) => p.textContent).join(" ")""")
        heads = tab.run("""[...document.querySelector("details.source thead tr").children].map((e) => e.textContent)""")
        assert {"kept", "allocated"} <= set(heads)
        kept = heads.index("kept")
        rows = tab.run("""[...document.querySelectorAll("details.source tr[data-line]")].map((r) => [+r.dataset.line, [...r.children].map((c) => c.textContent)])""")
        source = {NAMES[line]: cells[kept] for line, cells in rows if line in NAMES and cells[kept]}
        own = {line: numbers[NUMBERS.index("kept_bytes")] for line, numbers in run["told"].items() if numbers[NUMBERS.index("kept_bytes")]}
        assert source and all(source[line] == tab.run(f"as.bytes({own[line]})") for line in source)


def test_a_killed_worker(tmp_path):
    """Numbers are in shared memory: the last task's are there, although it ended at the same moment."""
    told = job(tmp_path, unit="killed", program=JOB, returns=-signal.SIGKILL)
    assert by_line(json.loads(report(tmp_path, "--json", "-"))["stacks"]["stacks"]) == told
    found = by_task(tmp_path)
    assert found == {key: BY_TASK[key.rpartition("-")[0]] for key in found}


@pytest.mark.parametrize("environment", [{"CREMA_LARGE_BYTES": "0"}, {"CREMA_SAMPLE_HZ": "0"}])
def test_off(tmp_path, environment):
    """Unknown, not 0"""
    job(tmp_path, unit="ends", program=JOB, **environment)
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert set(by_task(tmp_path).values()) == {(None, None)}
    assert {stacks["own"][name] for name in NUMBERS} == {None}
    assert {row[name] for row in stacks["stacks"] for name in NUMBERS} <= {None}
    assert stacks["large_allocation_workers"] == 0 and stacks["large_allocation_least_bytes"] is None


def test_another_size(tmp_path):
    job(tmp_path, unit="ends", program=JOB, CREMA_LARGE_BYTES="512k")
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert by_line(stacks["stacks"])[SMALL] == [1000] + [1000 * ((1 << 19) + bytes().__sizeof__())] * 4
