"""Bytes by Python stack: a job that reads and receives known amounts on known lines, in calls of every size, in its own thread, in pools and
through an event loop (bytes_job.py), on every Python of this machine. Estimates are compared within their stated errors."""

import contextlib
import json
import re

import pytest
import test_lines  # sets the path to the integration tests' modules
import browser
from test_lines import VERSIONS, job, marked, python_of, report

JOB = test_lines.HERE / "bytes_job.py"
LINES = marked(JOB)
NAMES = {number: name for name, number in LINES.items()}
KINDS = {"read": "sampled_read_bytes", "received": "sampled_network_read_bytes"}
RECEIVED = {"little", "much", "three", "one"}
ELSEWHERE = {"first", "second", "three", "one"}  # other threads do it


@pytest.fixture(scope="module", params=VERSIONS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes by stack")
    (folder / "data").mkdir()
    told = job(folder, python_of(request.param), unit=folder / "data", program=JOB)
    return {"folder": folder, "told": told, "stacks": json.loads(report(folder, "--json", "-"))["stacks"]}


def line_of(frames):
    """The job's outermost marked line."""
    numbers = [int(re.fullmatch(r".*:(\d+) .*", frame).group(1)) for frame in frames if frame.startswith(str(JOB))]
    return next((NAMES[n] for n in numbers if n in NAMES and NAMES[n] != "pread"), None)


def by_line(run, kind):
    """{LINE: (bytes, error, threads)}; errors of stacks add up as squares"""
    sums = {}
    for row in run["stacks"]["stacks"]:
        if row[KINDS[kind]]:
            n, error, threads = sums.get(line_of(row["frames"]), (0, 0, set()))
            sums[line_of(row["frames"])] = (n + row[KINDS[kind]], (error ** 2 + row[f"{KINDS[kind]}_error"] ** 2) ** 0.5, threads | {row["thread"]})
    return sums


@pytest.mark.parametrize("kind", KINDS)
def test_each_stack_has_its_bytes(run, kind):
    sums = by_line(run, kind)
    told = {name: n for name, n in run["told"].items() if (name in RECEIVED) == (kind == "received")}
    assert set(sums) == set(told)
    for name, n in told.items():
        found, error, threads = sums[name]
        assert found == pytest.approx(n, abs=1.5 * error), (name, error)
        assert threads == {"pool" if name in ELSEWHERE else "own"}, name
    assert sum(error ** 2 for _, error, _ in sums.values()) ** 0.5 < 0.4 * sum(told.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_stated(run, kind):
    """Sampled and unsampled bytes are the exact number; little is left, although nothing follows a task's last sample."""
    stacks, exact = run["stacks"], sum(n for name, n in run["told"].items() if (name in RECEIVED) == (kind == "received"))
    sampled = sum(stacks[part][KINDS[kind]] for part in ("own", "pool"))
    assert sum(row[KINDS[kind]] for row in stacks["stacks"]) == sampled
    assert sampled + stacks[f"not_{KINDS[kind]}"] == exact
    assert abs(stacks[f"not_{KINDS[kind]}"]) < 0.1 * exact
    assert sum(row[KINDS[kind]] for row in stacks["lines"]) == sampled


def test_calls_of_megabytes_are_nearly_exact(run):
    """Where they are not so frequent that samples are taken further apart."""
    found, error, _ = by_line(run, "read")["megabytes"]
    assert error < 0.1 * found and found == pytest.approx(run["told"]["megabytes"], rel=0.03)


def test_the_stack_is_whole(run):
    frames = [row["frames"] for row in run["stacks"]["stacks"] if row["sampled_read_bytes"] and line_of(row["frames"]) == "deep"]
    assert frames and all(sum(frame.endswith(" deep") or frame.endswith(".deep") for frame in f) == 41 for f in frames)
    assert all("<module>" in f[0] and "in_calls_of" in f[-1] for f in frames)


def test_stacks_in_other_formats(run):
    """Collapsed, in bytes: the same sums. The code as text and on the page has what each line read, with what it calls."""
    folder, sums = run["folder"], {}
    for row in report(folder, "--collapsed-bytes", "-").splitlines():
        stack, n = row.rsplit(" ", 1)
        kind = stack.rsplit(";", 1)[1].strip("[]")
        sums[kind] = sums.get(kind, 0) + int(n)
    kinds = {**KINDS, **{name: name for name in ("allocated_bytes", "kept_bytes", "peak_bytes")}}
    expected = {kind: sum(run["stacks"][part][name] for part in ("own", "pool")) for kind, name in kinds.items()}
    assert sums == {kind: n for kind, n in expected.items() if n}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_interpreter_ends_while_threads_read(tmp_path, version):
    """From its exit handlers on no stack is taken; the bytes are still sampled, and the process ends well."""
    (tmp_path / "data").mkdir()
    read = job(tmp_path, python_of(version), unit=tmp_path / "data", program=test_lines.HERE / "exit_job.py")
    rows = [row for row in json.loads(report(tmp_path, "--json", "-"))["stacks"]["stacks"] if row["sampled_read_bytes"]]
    assert any(row["prefix"] == "read" and not row["without"] and len(row["frames"]) > 20 for row in rows)
    ended = [row for row in rows if row["prefix"] == "last"]
    assert [row["without"] for row in ended] == ["none"] and not ended[0]["frames"]
    assert ended[0]["sampled_read_bytes"] == pytest.approx(read, abs=2 * ended[0]["sampled_read_bytes_error"])


def test_without_samples(tmp_path):
    (tmp_path / "data").mkdir()
    job(tmp_path, unit=tmp_path / "data", program=JOB, CREMA_SAMPLE_HZ="0")
    stacks = json.loads(report(tmp_path, "--json", "-"))["stacks"]
    assert stacks["workers"] == {"off": 1, "unknown": 0} and not stacks["stacks"]
    assert stacks["not_sampled_read_bytes"] is None
