"""Who holds the interpreter lock while others wait for it: a job that holds it on known lines, for times measured by its own clock
(holder_job.py), with CREMA_ALL_CELLS=1 on every Python of this machine."""

import json
import os
from pathlib import Path

import pytest
import test_lines

JOB = Path(__file__).resolve().parent / "holder_job.py"
LINES = test_lines.marked(JOB)
WITH_GIL = [version for version in test_lines.VERSIONS if version not in test_lines.WITHOUT_GIL]


@pytest.fixture(scope="module", params=WITH_GIL if os.environ.get("CREMA_ALL_CELLS") else ["own", "3.13"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("holder")
    spent = test_lines.job(folder, test_lines.python_of(request.param), unit=0.3, program=JOB)
    made = json.loads(test_lines.report(folder, "--json", "-"))
    return {"spent": {LINES[name]: seconds for name, seconds in spent.items()}, "made": made, "stacks": made["stacks"]}


def test_each_line_has_what_it_held(run):
    stacks, spent = run["stacks"], run["spent"]
    held = {row["line"]: row["held_gil_seconds"] for row in stacks["lines"] if row["held_gil_seconds"]}
    wrong = sum(seconds for line, seconds in held.items() if line not in spent)
    assert wrong <= 0.01 * stacks["held_gil_seconds"], held
    looks = sum(row["samples"] for row in stacks["stacks"] if row["gil_wait_seconds"]) / 2  # two tasks wait at a time
    for line, seconds in spent.items():
        truth = seconds / sum(spent.values())
        assert held[line] / stacks["held_gil_seconds"] == pytest.approx(truth, abs=2 * 1.96 * (truth * (1 - truth) / looks) ** 0.5), (line, held, spent)


def test_the_sum_is_what_was_waited(run):
    stacks = run["stacks"]
    exact = run["made"]["metrics"]["gil_wait_seconds"]
    assert stacks["held_gil_seconds"] + stacks["gil_holder_unknown_seconds"] == pytest.approx(exact, rel=0.2)
    assert 0 <= stacks["gil_holder_unknown_seconds"] <= 0.1 * exact


def test_a_thread_without_a_task_is_named(run):
    outside = [row for row in run["stacks"]["stacks"] if row["thread"] == "outside"]
    assert [row["frames"][-1] for row in outside if row["held_gil_seconds"] > 0.1] == [f"{JOB}:{LINES['hold']} hold"]
    assert all(row["samples"] == row["seconds"] == 0 for row in outside)


def test_the_finding_names_it(run):
    finding = next(f for f in run["made"]["findings"] if f["id"] == "gil_wait")
    assert " held it for " in finding["sentence"] and f"'{JOB.name}:{LINES['7']} " in finding["sentence"]
    evidence = {e["name"]: e["value"] for e in finding["evidence"]}
    assert evidence["line_file"] == str(JOB) and evidence["line_samples"] >= 30
