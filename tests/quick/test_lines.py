"""CPU and waits by line of Python: a job whose lines, proportions and clocks are known (lines_job.py), on every Python of this machine. The
agent's samples are compared with the job's own clocks, within the error that the report states."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pprof_file
import pytest
import spool
import test_agent_life
import test_live_numbers  # sets the path to the integration tests' modules
import test_worker

sys.path.insert(0, str(test_live_numbers.ROOT / "scripts"))
import browser
import tables
import venvs

HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
JOB = HERE / "lines_job.py"
CLASSES = ["cpu", "runqueue_wait", "gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep", "other"]
VERSIONS = ["own", *venvs.each()]
WITHOUT_GIL = venvs.debian_pythons.FREE_THREADED
UNIT = 0.25  # 50 samples, as a sample costs a third of a millisecond


def marked(job):
    """{NAME: the number of the line that ends in "# LINE NAME"}"""
    return {text.split("# LINE ")[1]: n for n, text in enumerate(job.read_text().splitlines(), 1) if "# LINE " in text}


def job(folder, python=sys.executable, unit=UNIT, program=JOB, arguments=(), returns=0, **environment):
    for name in ("out", "home"):
        (folder / name).mkdir(parents=True)
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"dir:{folder / 'out'}", "HOME": str(folder / "home"),
           "XDG_STATE_HOME": str(folder / "home"), **environment}
    done = subprocess.run([python, program, str(unit), *arguments], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == returns, done.stderr
    spool.wait(folder / "out")
    return json.loads(done.stdout)


def python_of(version):
    """One of VERSIONS; skips the test if this machine lacks it."""
    return sys.executable if version == "own" else venvs.interpreter(version) or pytest.skip("no such Python on this machine")


def report(folder, *options):
    done = subprocess.run([test_worker.BUILD / "crema", "report", "--dir", folder / "out", *options], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


LINES = marked(JOB)


def seconds_by_caller(stacks):
    """{function below work(): {class: seconds}}, samples of each"""
    seconds, samples = {}, {}
    for row in stacks["stacks"]:
        frames = [re.fullmatch(r"(.*):(\d+) (.*)", frame).groups() for frame in row["frames"]]
        names = [function.split(".")[-1] for _, _, function in frames]
        inner = names[names.index("work") + 1] if "work" in names[:-1] else None
        if inner:
            file, line, _ = frames[names.index("work") + 1]
            assert (file, int(line)) == (str(JOB), LINES[inner])
        mine = seconds.setdefault(inner, dict.fromkeys(CLASSES, 0))
        samples[inner] = samples.get(inner, 0) + row["samples"]
        for name in CLASSES:
            mine[name] += row[f"{name}_seconds"]
    return seconds, samples


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    told = job(folder, python_of(request.param))
    stacks = json.loads(report(folder, "--json", "-"))["stacks"]
    return {"folder": folder, "told": told, "stacks": stacks}


def test_the_sum_is_the_tasks_wall_time(run):
    stacks = run["stacks"]
    assert stacks["workers"] == {"on": 1, "unknown": 0}
    assert stacks["own"]["seconds"] == pytest.approx(sum(stacks["own"][f"{name}_seconds"] for name in CLASSES))
    assert stacks["remainder_seconds"] == pytest.approx(stacks["task_wall_seconds"] - stacks["own"]["seconds"])
    assert stacks["task_wall_seconds"] == pytest.approx(run["told"]["wall"], rel=0.02)
    assert abs(stacks["remainder_seconds"]) <= 0.05 * stacks["task_wall_seconds"] + 3 * stacks["interval_seconds"]
    assert stacks["own"]["samples"] >= 50 and stacks["pool"]["samples"] == 0
    assert sum(row["samples"] for row in stacks["lines"]) == stacks["own"]["samples"]
    assert stacks["torn_samples"] <= 0.05 * stacks["own"]["samples"]
    assert stacks["without_python_samples"] == stacks["beyond_the_table_samples"] == 0


def test_each_line_has_its_share(run):
    """The share of the wall time, against the job's own clock."""
    seconds, samples = seconds_by_caller(run["stacks"])
    total, wall = run["stacks"]["own"]["seconds"], sum(s for s, _ in run["told"]["spent"].values())
    n = run["stacks"]["own"]["samples"]
    for name, (spent, _) in run["told"]["spent"].items():
        share, truth = sum(seconds[name].values()) / total, spent / wall
        error = 2 * 1.96 * (truth * (1 - truth) / n) ** 0.5
        assert share == pytest.approx(truth, abs=error), (name, samples)


@pytest.mark.skipif(not os.environ.get("CREMA_ALL_CELLS"), reason="25 s, and only with --all")
def test_pythons_own_sampler_agrees(tmp_path):
    """CPython 3.15's sampling profiler, on the same process at the same time: both within the error of their samples."""
    python, told = python_of("3.15"), {}
    runs = threading.Thread(target=lambda: told.update(job(tmp_path / "job", python, 2)))
    runs.start()
    pid = test_agent_life.until(lambda: next((p.name for p in Path("/proc").iterdir() if p.name.isdigit() and JOB.name.encode() in words_of(p)), None))
    sampled = subprocess.run([python, "-m", "profiling.sampling", "attach", "-d", "24", "-r", "100hz", "-a", "--mode", "wall", "--collapsed",
                              "-o", tmp_path / "sampled", pid], capture_output=True, text=True, timeout=60)
    runs.join()
    assert sampled.returncode == 0, sampled.stderr
    stacks = json.loads(report(tmp_path / "job", "--json", "-"))["stacks"]
    seconds, _ = seconds_by_caller(stacks)
    theirs = dict.fromkeys(told["spent"], 0)
    for line in (tmp_path / "sampled").read_text().splitlines():
        for name in theirs:
            theirs[name] += int(line.rsplit(" ", 1)[1]) if f"{JOB.name}:{name}:" in line else 0
    wall, all_of_them = sum(s for s, _ in told["spent"].values()), sum(theirs.values())
    assert all_of_them > 1500
    for name, (spent, _) in told["spent"].items():
        truth, share = spent / wall, sum(seconds[name].values()) / stacks["own"]["seconds"]
        assert theirs[name] / all_of_them == pytest.approx(truth, abs=0.01), (name, theirs)
        assert share == pytest.approx(truth, abs=0.01), (name, share)


def words_of(process):
    """The command line of an entry of /proc; b"" if it has ended."""
    try:
        return (process / "cmdline").read_bytes() if b"3.15" in (process / "cmdline").read_bytes().split(b"\0")[0] else b""
    except OSError:
        return b""


def test_computing_is_told_from_waiting(run):
    seconds, _ = seconds_by_caller(run["stacks"])
    cpu = {name: spent for name, (_, spent) in run["told"]["spent"].items()}
    assert run["stacks"]["own"]["cpu_seconds"] == pytest.approx(sum(cpu.values()), rel=0.2)
    for name in ("asleep", "locked"):
        other = sum(seconds[name].values()) - seconds[name]["sleep" if name == "asleep" else "lock_wait"]
        # Once it is free to go on, a thread waits for a core: ten samples of that on a busy machine.
        assert other <= 0.2 * sum(seconds[name].values()) + 0.1, seconds[name]
    for name in ("settle", "one", "two", "four"):
        assert seconds[name]["cpu"] + seconds[name]["runqueue_wait"] >= 0.9 * sum(seconds[name].values()), seconds[name]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_loop_over_generators_has_its_stack(version, tmp_path):
    """A suspended generator does not lead to another frame."""
    program = HERE / "generators_job.py"
    job(tmp_path, python_of(version), 1.5, program)
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    of_job = sum(row["samples"] for row in stacks["lines"] if row["file"] == str(program))
    assert of_job >= 0.95 * stacks["own"]["samples"] >= 45, (stacks["lines"], stacks["torn_samples"])
    below = sum(row["samples"] for row in stacks["stacks"] if any(frame.endswith(" loop") for frame in row["frames"]))
    assert below >= 0.95 * stacks["own"]["samples"], stacks["stacks"]


def test_the_line_is_the_innermost_of_the_user(run):
    found = {row["line"]: row for row in run["stacks"]["lines"] if row["file"] == str(JOB)}
    spin = {LINES["spin"], LINES["spin"] - 1}
    assert spin & found.keys() and {LINES["asleep"], LINES["locked"]} <= found.keys()
    assert found[LINES["asleep"]]["function"] == "asleep"
    assert max(found.values(), key=lambda row: row["seconds"])["line"] in spin
    for row in run["stacks"]["lines"]:
        assert row["share"] == pytest.approx(row["seconds"] / run["stacks"]["own"]["seconds"])
        assert row["share_error"] == pytest.approx(1.96 * (row["share"] * (1 - row["share"]) / run["stacks"]["own"]["samples"]) ** 0.5)


def test_outputs_agree(run):
    text = report(run["folder"], "--collapsed", "-")
    weights = [re.fullmatch(r"work;.*;\[(\w+)\] (\d+)", line) for line in text.splitlines()]
    assert all(weights)
    assert sum(int(match[2]) for match in weights) / 1e6 == pytest.approx(run["stacks"]["own"]["seconds"], rel=0.001)
    assert f";four ({JOB}:{LINES['four']});spin ({JOB}:" in text
    table = report(run["folder"], "--show", "lines")
    assert f"  lines_job.py:{LINES['asleep']} " in table and f"{run['stacks']['own']['samples']} samples" in table


@pytest.mark.parametrize("run", ["own"], indirect=True)
def test_profile_for_pprof(run, tmp_path):
    """Its samples are the stacks of the JSON, to the nanosecond."""
    report(run["folder"], "--pprof", tmp_path / "run.pb.gz")
    profile = pprof_file.read(tmp_path / "run.pb.gz")
    worker = profile["samples"][0]["labels"]["worker"]
    assert profile["types"] == [("samples", "count"), *[(name.replace("runqueue_wait", "runqueue"), "nanoseconds") for name in [*CLASSES, "held_gil"]], ("read_bytes", "bytes"), ("network_read_bytes", "bytes"),
                                *[(name, "bytes") for name in ("allocated_bytes", "kept_bytes", "peak_bytes")]] and profile["default"] == "cpu"
    assert profile["duration_ns"] == pytest.approx(run["stacks"]["task_wall_seconds"] * 1e9, rel=0.1)
    assert profile["period"] == pytest.approx(run["stacks"]["interval_seconds"] * 1e9, abs=1)
    for sample, row in zip(profile["samples"], run["stacks"]["stacks"], strict=True):
        assert [f"{file}:{line} {function}" for function, file, line in sample["frames"][-2::-1]] == row["frames"]
        assert sample["frames"][-1] == (row["prefix"], "", 0) and sample["labels"] == {"task": row["prefix"], "thread": row["thread"], "worker": worker}
        assert sample["values"] == [row["samples"], *[round(row[f"{name}_seconds"] * 1e9) for name in [*CLASSES, "held_gil"]], row["sampled_read_bytes"],
                                    row["sampled_network_read_bytes"], row["allocated_bytes"], row["kept_bytes"], row["peak_bytes"]]


def test_off(tmp_path):
    job(tmp_path, unit=0.05, CREMA_SAMPLE_HZ="0")
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert stacks["workers"] == {"off": 1, "unknown": 0} and stacks["own"]["samples"] == 0
    assert stacks["remainder_seconds"] is None and stacks["lines"] == []
    assert "Lines of your code" not in report(tmp_path, "--full")


def test_names_are_hidden(tmp_path):
    job(tmp_path, unit=0.1, CREMA_REDACT_KEYS="on")
    text = report(tmp_path, "--json", "-")
    assert str(JOB) not in text
    lines = [row for row in json.loads(text)["stacks"]["lines"] if row["file"]]
    assert {row["line"] for row in lines} >= {LINES["asleep"]} and all(row["file"].startswith("file-") for row in lines)


def source_rows(folder, file):
    """{line: (seconds or None, code)} of `--show source`, and the text below it."""
    text = report(folder, "--show", "source").partition(f"{file}, time of each line with what it calls\n")[2].partition("\n\n")[0]
    rows = {int(m[1]): (m[2] or "", m[3] or "") for m in re.finditer(r"^ +(\d+)(?: (.{27})  (.*))?$", text, re.MULTILINE)}
    return {line: (seconds_of(times[:9]), code) for line, (times, code) in rows.items()}, text.rpartition("\n  ")[2]


def seconds_of(text):
    number, unit = (text.split() or [None, None])
    return number and float(number) * {"s": 1, "ms": 1e-3}[unit]


@pytest.mark.parametrize("run", ["own"], indirect=True)
def test_code_with_the_time_of_each_line(run):
    """A line has all samples whose stacks contain it, against the job's clocks; its text is the file's."""
    rows, _ = source_rows(run["folder"], JOB)
    spent, n, total = run["told"]["spent"], run["stacks"]["own"]["samples"], run["stacks"]["own"]["seconds"]
    wall = sum(s for s, _ in spent.values())
    truth = {name: spent[name][0] / wall for name in ("one", "two", "four", "asleep")}
    truth["called"] = 1
    for name, part in truth.items():
        error = 2 * 1.96 * (part * (1 - part) / n) ** 0.5
        assert rows[LINES[name] if name != "called" else LINES["work"]][0] / total == pytest.approx(part, abs=error + 0.002), name
    spin = sum(rows[LINES["spin"] - back][0] or 0 for back in (0, 1))
    assert spin / total == pytest.approx(sum(spent[name][0] for name in ("settle", "one", "two", "four")) / wall, abs=0.1)
    text = JOB.read_text().splitlines()
    assert len(rows) < len(text) and all(text[line - 1].startswith(code.removesuffix("..")) and len(code) >= min(40, len(text[line - 1])) for line, (_, code) in rows.items())


@pytest.mark.parametrize("run", ["own"], indirect=True)
def test_functions_of_two_runs(run, tmp_path):
    """An edit that moves all lines and makes one function slower, against the clocks of both jobs."""
    program = tmp_path / JOB.name
    program.write_text("\n" + JOB.read_text().replace("time.sleep(2 * unit)", "time.sleep(6 * unit)"))
    told = job(tmp_path, program=program, PYTHONPATH=str(HERE))
    command = [test_worker.BUILD / "crema", "compare", f"{run['folder'] / 'out'}:last", f"{tmp_path / 'out'}:last"]
    compared = json.loads(subprocess.run([*command, "--json", "-"], capture_output=True, text=True, timeout=30, check=True).stdout)
    found = {row["function"]: row["runs"] for row in compared["functions"]}
    assert {row["file"] for row in compared["functions"]} <= {JOB.name, "small_worker.py", "distributed.worker"}
    for name in ("asleep", "locked"):
        for spent, row in zip((run["told"]["spent"], told["spent"]), found[name], strict=True):
            assert row["seconds"] == pytest.approx(spent[name][0], abs=0.05 + row["error_seconds"]), name
    mine = [row["seconds"] for row in json.loads(report(tmp_path, "--json", "-"))["stacks"]["lines"] if row["function"] == "asleep"]
    assert sum(mine) == pytest.approx(found["asleep"][1]["seconds"])
    text = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    rows = [re.split(r"  +", line.strip()) for line in text.partition("(sampled)\n")[2].splitlines()[1:] if line.startswith("  lines_job.py")]
    before, after, change, error = next(cells[1:] for cells in rows if cells[0] == "lines_job.py asleep")
    assert change[0] == "+" and seconds_of(change[1:]) == pytest.approx(seconds_of(after) - seconds_of(before), abs=0.002)
    assert 0 < seconds_of(error) < seconds_of(change[1:])
    assert seconds_of(after) == pytest.approx(found["asleep"][1]["seconds"], rel=0.001)


def test_code_that_is_not_what_ran(tmp_path):
    program = tmp_path / "moved.py"
    program.write_text(JOB.read_text())
    job(tmp_path, unit=0.05, program=program, PYTHONPATH=str(HERE))
    rows, said = source_rows(tmp_path, program)
    assert any(code.strip().startswith("def ") for _, code in rows.values())
    os.utime(program)
    assert source_rows(tmp_path, program)[1].startswith("the file was changed after the run began")
    program.rename(tmp_path / "other.py")
    program.symlink_to(tmp_path / "other.py")
    rows, said = source_rows(tmp_path, program)
    assert said.startswith("no code: the file is not on this machine") and LINES["work"] in rows
    assert all(re.fullmatch(r"\([\w.<>]+\)", code) for _, code in rows.values())


@pytest.mark.parametrize("run", ["own"], indirect=True)
def test_tables(run, tmp_path):
    """CSV and SQLite equal the JSON."""
    made = json.loads(report(run["folder"], "--json", "-"))
    report(run["folder"], "--csv", tmp_path / "csv", "--sqlite", tmp_path / "run.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as db:
        for name in ("lines", "stacks"):
            assert 4 <= len(made["stacks"][name]) < 100
            tables.check(made, name, tables.read_csv(tmp_path / "csv", name))
            tables.check(made, name, tables.read_sql(db, name))


@pytest.mark.parametrize("run", ["own"], indirect=True)
def test_the_page_draws_them(run, tmp_path):
    """Cells are as wide as their time; a click enlarges one, a search marks cells and adds them up."""
    html = tmp_path / "page.html"
    report(run["folder"], "--html", html)
    seconds, _ = seconds_by_caller(run["stacks"])
    share = {name: sum(v.values()) / run["stacks"]["own"]["seconds"] for name, v in seconds.items()}
    widths = """Object.fromEntries([...document.querySelectorAll("#chart-flame g.cell")].map((g) =>
        [g.dataset.name, +g.querySelector("rect").getAttribute("width") / +document.getElementById("chart-flame").getAttribute("width")]))"""
    cell = f"four (lines_job.py:{LINES['four']})"
    with browser.Browser(tmp_path) as tab:
        tab.look()
        tab.open(html.as_uri())
        tab.wait("document.querySelectorAll(\"#chart-flame g.cell\").length > 4")
        drawn = tab.run(widths)
        assert drawn[cell] == pytest.approx(share["four"], abs=0.002)
        assert drawn[f"asleep (lines_job.py:{LINES['asleep']})"] == pytest.approx(share["asleep"], abs=0.002)
        assert drawn["work"] == pytest.approx(1, abs=0.002)
        tab.run("""document.getElementById("table-flame").open = true""")
        tab.wait("""document.querySelector("#table-flame tbody tr") !== null""")
        cells = tab.run("""[...document.querySelectorAll("#table-flame tbody tr")].map((e) => [...e.children].slice(0, 2).map((c) => c.textContent))""")
        told = {f"{row['function']} (lines_job.py:{row['line']})": f"{row['samples']:,}" for row in run["stacks"]["lines"]}
        assert dict(cells) == told and len(cells) == len(told)
        tab.run(f"""[...document.querySelectorAll("#chart-flame g.cell")].find((g) => g.dataset.name === {json.dumps(cell)}).dispatchEvent(new Event("click"))""")
        drawn = tab.run(widths)
        assert drawn[cell] == pytest.approx(1, abs=0.002) and not any(name.startswith("asleep") for name in drawn)
        tab.run("""document.getElementById("flame-all").click()""")
        tab.run("""(() => { const e = document.getElementById("flame-search"); e.value = "ASLEEP"; e.dispatchEvent(new Event("input")); })()""")
        assert tab.run(widths).keys() >= {cell}
        assert tab.run("""document.getElementById("flame-found").textContent""") == f"{100 * share['asleep']:.1f} % of the time"
        plain = tab.run("""[...document.querySelectorAll("#chart-flame g.cell:not(.faint)")].map((g) => g.dataset.name)""")
        assert plain == [f"asleep (lines_job.py:{LINES['asleep']})"]
        cpu = {name: v["cpu"] for name, v in seconds.items()}
        tab.run("""(() => { const e = document.getElementById("flame-time"); e.value = [...e.options].find((o) => o.text === "only CPU").value;
            e.dispatchEvent(new Event("change")); })()""")
        assert tab.run(widths)[cell] == pytest.approx(cpu["four"] / sum(cpu.values()), abs=0.002)
        drawn = tab.run("""Object.fromEntries([...document.querySelectorAll(".source:first-of-type tr[data-line]")].map((e) => [e.dataset.line,
            [e.querySelector("code").textContent, [...e.querySelectorAll(".sourcebar span")].map((p) => parseFloat(p.style.width)).reduce((a, b) => a + b, 0)]]))""")
        rows, _ = source_rows(run["folder"], JOB)
        assert drawn.keys() >= {str(line) for line in rows} and drawn[str(LINES["four"])][0] == JOB.read_text().splitlines()[LINES["four"] - 1]
        assert drawn[str(LINES["four"])][1] == pytest.approx(100 * share["four"], abs=0.2)
        assert not tab.problems
