"""Long waits by Python stack: a job that waits for known delays on known lines, in its own thread and in a pool (waits_job.py), on every Python of
this machine. The sums by line are compared with the exact numbers of long waits and with the tasks' own."""

import json
import os
import re

import pytest
import test_lines  # sets the path to the integration tests' modules
from test_lines import VERSIONS, WITHOUT_GIL, job, marked, python_of, report

JOB = test_lines.HERE / "waits_job.py"
LINES = marked(JOB)
NAMES = {number: name for name, number in LINES.items()}
UNIT, TIMES = 0.12, int(os.environ.get("TIMES", 1))
# line: class, number of waits, thread, the task that it is in
EXPECTED = {"silent": ("network", 3, "own", "receives"), "locked": ("lock", 2, "own", "locked"), "asleep": ("sleep", 4, "own", "asleep"),
            "piped": ("lock", 1, "own", "reads"), "library": ("lock", 1, "own", "in_library"), "result": ("lock", 1, "own", "pooled"),
            "submitted": ("sleep", 1, "pool", "pooled"), "wanted": ("gil", 1, "own", "wants_gil")}
CLASSES = {"gil": "gil_wait", "lock": "lock_wait", "network": "network_wait", "storage": "storage_wait", "sleep": "sleep"}


def made_by(folder, version="own", unit=UNIT, arguments=(), **environment):
    told = job(folder, python_of(version), unit, JOB, arguments, **environment)
    made = json.loads(report(folder, "--json", "-"))
    return {"folder": folder, "told": told, "made": made, "stacks": made["stacks"], "blocking": made["blocking"]}


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    expected = {line: of for line, of in EXPECTED.items() if of[0] != "gil" or request.param not in WITHOUT_GIL}
    for unit in (UNIT, UNIT, 3 * UNIT, 6 * UNIT):
        made = {**made_by(tmp_path_factory.mktemp("waits by stack"), request.param, unit), "unit": unit}
        waited = all(sum(made["told"][line]) >= 0.97 * unit * count for line, (_, count, _, _) in EXPECTED.items())  # by the job's clocks
        if waited and not has_spun(made, expected, request.param) and not made["stacks"]["long_waits_without_stack"]:
            break  # on a busy machine a thread comes late to its wait, or the agent, which reads its stack meanwhile
    return {**made, "expected": expected, "spins": request.param in WITHOUT_GIL}


def has_spun(made, expected, version):
    """Before it waits for a lock, a free-threaded Python gives its core away up to 40 times. On a busy machine it may get the lock meanwhile."""
    return version in WITHOUT_GIL and made["made"]["completeness"]["long_waits"]["waits"] < sum(count for _, count, _, _ in expected.values())


def name_of(text):
    """The mark of "FILE:LINE FUNCTION"."""
    file, line, _ = re.fullmatch(r"(.*):(\d+) (.*)", text).groups()
    return NAMES.get(int(line)) if file == str(JOB) else None


def waited(row):
    return sum(row[f"long_{name}_seconds"] for name in CLASSES.values())


@pytest.mark.parametrize("line", EXPECTED)
def test_each_wait_has_its_line(run, line):
    wait, count, thread, prefix = EXPECTED[line]
    if line not in run["expected"]:
        assert not [row for row in run["blocking"] if row["wait"] == "gil"]
        return
    rows = [row for row in run["blocking"] if row["line"] and name_of(row["line"]) == line and row["wait"] == wait]  # by native frames
    assert sum(row["count"] for row in rows) == count and len({str(row["python_frames"]) for row in rows}) == 1
    assert all(row["prefix"] == prefix == row["line"].rpartition(" ")[2] and row["python_frames_cut"] is False for row in rows)
    seconds = sum(row["waited_seconds"] for row in rows)
    shortened = wait == "gil" or (wait == "lock" and run["spins"])  # it sleeps or spins first, on a busy machine for longer
    least = run["unit"] * count * (0.25 if shortened else 0.8)
    assert least <= seconds <= sum(run["told"][line]) + (0.01 if line == "submitted" else 0)
    by_line, = [row for row in run["stacks"]["lines"] if (row["file"], row["line"]) == (str(JOB), LINES[line])]
    assert by_line[f"long_{CLASSES[wait]}_seconds"] == pytest.approx(seconds, rel=1e-9)
    stacks = [row for row in run["stacks"]["stacks"] if row[f"long_{CLASSES[wait]}_seconds"] and row["frames"] == rows[0]["python_frames"]]
    assert sum(row["long_waits"] for row in stacks) == count and {row["thread"] for row in stacks} == {thread}


def test_every_wait_has_frames(run):
    assert all(row["line"] and any(frame.startswith(str(JOB)) for frame in row["python_frames"]) for row in run["blocking"])


def test_the_sums_are_the_exact_numbers(run):
    exact, stacks = run["made"]["completeness"]["long_waits"], run["stacks"]
    assert exact["waits"] >= sum(count for _, count, _, _ in run["expected"].values())
    for rows in (stacks["lines"], stacks["stacks"], [stacks["own"], stacks["pool"]]):
        assert sum(row["long_waits"] for row in rows) == exact["waits"]
        assert sum(waited(row) for row in rows) == pytest.approx(exact["waited_seconds"], rel=1e-9)
    assert stacks["not_long_waits"] == stacks["not_long_waits_seconds"] == 0
    assert stacks["long_waits_without_stack"] == stacks["long_waits_without_stack_seconds"] == 0


def test_the_sums_are_the_tasks_times(run):
    """Shorter waits of these tasks are few."""
    for line in ("silent", "locked", "asleep", "piped", "library"):
        wait, count, _, prefix = EXPECTED[line]
        task, = [task for task in run["made"]["tasks"] if task["prefix"] == prefix]
        by_stack = sum(row[f"long_{CLASSES[wait]}_seconds"] for row in run["stacks"]["stacks"] if row["prefix"] == prefix)
        assert 0 <= task[f"{CLASSES[wait]}_seconds"] - by_stack <= 0.001 * count * run["unit"] + 0.0005, line


def test_a_pools_stack_goes_on_where_work_was_submitted(run):
    row, = [row for row in run["blocking"] if row["line"] and name_of(row["line"]) == "submitted"]
    functions = [frame.rpartition(" ")[2].split(".")[-1] for frame in row["python_frames"]]
    assert functions.index("pooled") < functions.index("_worker") < len(functions) - 1
    assert functions[-1] == "run"


def test_the_table_and_the_page_name_the_line(run):
    text = report(run["folder"], "--show", "waits")
    assert f"{JOB.name}:{LINES['silent']}" in text
    report(run["folder"], "--html", run["folder"] / "report.html")
    assert f"{JOB.name}:{LINES['silent']} receives" in (run["folder"] / "report.html").read_text()


@pytest.mark.parametrize("version", [version for version in VERSIONS if version not in WITHOUT_GIL])
def test_who_held_the_interpreter_lock(tmp_path, version):
    """Of a long wait for it, in the samples taken during this wait; no other wait has a holder."""
    rows = made_by(tmp_path, version, 0.6, ["wants_gil"])["blocking"]
    row, = [row for row in rows if row["wait"] == "gil"]
    assert name_of(row["longest_holder"]) == "holds" and row["longest_holder"] == row["longest_holder_frames"][-1]
    assert row["longest_samples"] >= row["longest_holder_samples"] >= 3
    assert all(r["longest_holder"] is r["longest_holder_samples"] is r["longest_samples"] is r["longest_holder_frames"] is None for r in rows if r != row)


def made_with_holders(folder, version, unit, job, chosen, count):
    """The run, with the finding, and its rows. Made again if a wait is missing or too short, or its holder is not known: on a busy machine a thread
    spins instead, or the agent comes late."""
    for again in range(4):
        run = made_by(folder / str(again), version, unit, [job])
        rows = [row for row in run["blocking"] if row["wait"] == "lock" and chosen(row)]
        found = {finding["id"] for finding in run["made"]["findings"]}
        if len(rows) == count and all(row["longest_holder"] for row in rows) and "lock_wait" in found:
            break
    return run, rows


@pytest.mark.parametrize("version", VERSIONS)
def test_who_held_a_mutex(tmp_path, version):
    """In each of 12 waits, by as many tasks."""
    waits = 3 * int(os.environ.get("TIMES", 4))
    run, rows = made_with_holders(tmp_path, version, 0.3, "mutexes", lambda row: row["line"] and name_of(row["line"]) == "mutex", waits)
    assert [row["count"] for row in rows] == [1] * waits
    for row in rows:
        assert name_of(row["longest_holder"]) == "holding" and row["longest_holder"] == row["longest_holder_frames"][-1]
        assert row["longest_samples"] >= row["longest_holder_samples"] >= 0.5 * row["longest_samples"] > 0
    finding = next(f for f in run["made"]["findings"] if f["id"] == "lock_wait")
    evidence = {e["name"]: e["value"] for e in finding["evidence"]}
    assert f"held at '{JOB.name}:{LINES['holding']} " in finding["sentence"] and evidence["holder_line_file"] == str(JOB)


@pytest.mark.parametrize("version", VERSIONS)
def test_who_held_a_lock_of_pythons(tmp_path, version):
    """Who is in a `with` of it, and who owns an RLock."""
    run, rows = made_with_holders(tmp_path, version, 0.4, "python_locks", lambda row: row["prefix"].startswith("wanting_"), 5 * TIMES)
    kinds = ["wanting_condition", "wanting_recursive", "wanting_recursive", "wanting_with", "wanting_with"]
    assert sorted((row["prefix"].rstrip("0123456789"), row["count"]) for row in rows) == [(kind, 1) for kind in sorted(kinds * TIMES)]
    for row in rows:
        assert name_of(row["longest_holder"]) == "in_with" and row["longest_holder"] in row["longest_holder_frames"], row
        assert row["longest_samples"] >= row["longest_holder_samples"] >= 0.5 * row["longest_samples"] > 0, row
    finding = next(f for f in run["made"]["findings"] if f["id"] == "lock_wait")
    assert f"held at '{JOB.name}:{LINES['in_with']} " in finding["sentence"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("job", ["unnamed", "notified"])
def test_a_lock_of_pythons_that_anybody_may_hold(tmp_path, version, job):
    """Its holder only called acquire(), and a thread that waits for a condition in its `with` has released it."""
    row, = [row for row in made_by(tmp_path, version, 0.4, [job])["blocking"] if row["wait"] == "lock" and row["prefix"].startswith("wanting")]
    assert row["longest_holder"] is row["longest_holder_samples"] is row["longest_holder_frames"] is None


def test_a_mutex_whose_holder_moves(tmp_path):
    row, = [row for row in made_by(tmp_path, "own", 0.6, ["moving"])["blocking"] if row["wait"] == "lock" and name_of(row["line"]) == "mutex"]
    assert name_of(row["longest_holder"]) == "moved" and row["longest_samples"] >= row["longest_holder_samples"] > row["longest_samples"] / 2


def test_a_mutex_whose_holder_has_ended(tmp_path):
    row, = [row for row in made_by(tmp_path, "own", 0.3, ["orphaned"])["blocking"] if row["wait"] == "lock"]
    assert name_of(row["line"]) == "mutex"
    assert row["longest_holder"] is row["longest_holder_samples"] is row["longest_samples"] is row["longest_holder_frames"] is None


def test_a_deep_stack_is_cut(tmp_path):
    row, = [row for row in made_by(tmp_path, arguments=["deep"])["blocking"] if row["wait"] == "sleep"]
    assert row["python_frames_cut"] is True and len(row["python_frames"]) == 96 and name_of(row["line"]) == "branch"


def test_more_stacks_than_rows(tmp_path):
    """The rest has no stack, but its number, time and class."""
    run = made_by(tmp_path, unit=0.0025, arguments=["many"], CREMA_BLOCKED_MS="2")
    exact, stacks = run["made"]["completeness"]["long_waits"], run["stacks"]
    assert exact["dropped"] > 0 and stacks["not_long_waits"] == 0
    rows = {row["line"]: row for row in stacks["lines"] if row["long_waits"]}
    assert rows[LINES["branch"]]["long_waits"] + rows[None]["long_waits"] == exact["waits"] >= 250  # of 256: some are short on a busy machine
    assert rows[LINES["branch"]]["long_waits"] >= 112 and rows[None]["long_waits"] == stacks["long_waits_without_stack"] > 0
    assert waited(rows[LINES["branch"]]) + waited(rows[None]) == pytest.approx(exact["waited_seconds"], rel=1e-9)
    assert {row["without"] for row in stacks["stacks"] if row["long_waits"] and not row["frames"]} == {"full"}


def test_without_samples(tmp_path):
    run = made_by(tmp_path, arguments=["asleep"], CREMA_SAMPLE_HZ="0")
    row, = [row for row in run["blocking"] if row["wait"] == "sleep"]
    assert row["count"] == 4 and row["line"] is row["python_frames"] is row["python_frames_cut"] is None
    assert run["stacks"]["not_long_waits"] == run["made"]["completeness"]["long_waits"]["waits"] >= 4
