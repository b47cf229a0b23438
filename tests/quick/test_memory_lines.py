"""Memory by Python stack: a job that allocates, keeps and frees known amounts on known lines (memory_job.py), on every Python of this machine.
Numbers are exact."""

import json
import re
import signal

import pytest
import test_lines
from test_lines import VERSIONS, job, marked, python_of, report

JOB = test_lines.HERE / "memory_job.py"
NAMES = {number: name for name, number in marked(JOB).items()}
NUMBERS = ["large_allocations", "allocated_bytes", "live_bytes", "kept_bytes", "peak_bytes"]
SMALL = "little"


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory by line")
    told = job(folder, python_of(request.param), unit="ends", program=JOB)
    return {"folder": folder, "told": told, "stacks": json.loads(report(folder, "--json", "-"))["stacks"]}


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


@pytest.mark.parametrize("table", ["lines", "memory"])
def test_the_table(run, table):
    text = report(run["folder"], "--show", table).split("Memory by line of your code")[1]
    first = text.splitlines()[2]
    most = max(run["told"], key=lambda name: run["told"][name][4])
    assert f"memory_job.py:{marked(JOB)[most]}" in first and "kept" in text.splitlines()[1]


def test_a_killed_worker(tmp_path):
    """Numbers are in shared memory: the last task's are there, although it ended at the same moment."""
    told = job(tmp_path, unit="killed", program=JOB, returns=-signal.SIGKILL)
    assert by_line(json.loads(report(tmp_path, "--json", "-"))["stacks"]["stacks"]) == told


@pytest.mark.parametrize("environment", [{"CREMA_LARGE_BYTES": "0"}, {"CREMA_SAMPLE_HZ": "0"}])
def test_off(tmp_path, environment):
    """Unknown, not 0"""
    job(tmp_path, unit="ends", program=JOB, **environment)
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert {stacks["own"][name] for name in NUMBERS} == {None}
    assert {row[name] for row in stacks["stacks"] for name in NUMBERS} <= {None}
    assert stacks["large_allocation_workers"] == 0 and stacks["large_allocation_least_bytes"] is None


def test_another_size(tmp_path):
    job(tmp_path, unit="ends", program=JOB, CREMA_LARGE_BYTES="512k")
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert by_line(stacks["stacks"])[SMALL] == [1000] + [1000 * ((1 << 19) + bytes().__sizeof__())] * 4
