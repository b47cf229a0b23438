"""Twenty small programs whose lines and seconds are known (programs_job.py), on this Python and the newest; in CI also on the oldest and a free-threaded one;
CREMA_ALL_CELLS=1: on each."""

import json

import pytest
from test_lines import HERE, VERSIONS, job, marked, python_of, report

JOB = HERE / "programs_job.py"
LINES = marked(JOB)
WAITS = {"asleep": "sleep", "locked": "lock_wait", "event": "lock_wait", "answer": "network_wait", "file_lock": "lock_wait"}
UNIT = 0.5


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    told = job(folder, python_of(request.param), UNIT, JOB)
    return told["spent"], json.loads(report(folder, "--json", "-"))["stacks"]


def test_each_program_is_in_its_line(run):
    """By the line of the program alone: 0.5 s are about fifty samples. A waiting thread also waits for a core, on the same line."""
    spent, stacks = run
    found = {row["line"]: row for row in stacks["lines"] if row["file"] == str(JOB)}
    assert len(spent) == len(LINES) == 20
    wrong, missed = {}, 0
    for name, seconds in spent.items():
        row = found.get(LINES[name], {"seconds": 0})
        of = {key: row.get(f"{key}_seconds") or 0 for key in ("cpu", "runqueue_wait", WAITS.get(name))}
        margin, there = 0.15 * seconds + 0.06, sum(of.values())
        if there > seconds + margin or (name in WAITS and of[WAITS[name]] < 0.85 * UNIT - 0.06):
            wrong[name] = (there, seconds, {k: v for k, v in row.items() if k.endswith("seconds") and v})
        missed += max(0, seconds - margin - there)
    assert not wrong
    assert missed <= unseen(stacks), {name: (found.get(LINES[name]), seconds) for name, seconds in spent.items()}


def test_nothing_else_has_their_time(run):
    spent, stacks = run
    of_programs = sum(row["seconds"] for row in stacks["lines"] if row["file"] == str(JOB) and row["line"] in LINES.values())
    total = sum(spent.values())
    assert total * 0.95 - unseen(stacks) < of_programs < total * 1.05
    assert stacks["own"]["seconds"] + unseen(stacks) == pytest.approx(stacks["task_wall_seconds"], rel=0.03)


def unseen(stacks):
    """Seconds without a sample, of which the report tells: the sampler waits for a core as the program does."""
    seconds = max(0, stacks["remainder_seconds"])
    assert seconds < 0.2 * stacks["task_wall_seconds"]
    return seconds
