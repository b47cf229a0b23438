"""Reports of runs with very many tasks: the right sums in bounded memory. The journal is made by
tests/bench/make_journal, which says how many tasks there are and what fails."""

import json
import os
import subprocess
import tempfile

import cluster
import pytest

MIB = 1 << 20
FAIL_EVERY = 1000  # make_journal's


@pytest.fixture(scope="module")
def maker():
    target = cluster.BUILD / "tests" / "bench" / "make_journal"
    subprocess.run(["make", "-C", str(cluster.ROOT), f"{target.relative_to(cluster.ROOT)}"], check=True, capture_output=True)
    return target


def report(journal, *options):
    """(standard output, peak resident set) of one report."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([cluster.BUILD / "crema", "report", "--dir", journal, *options], stdout=out,
                                   stderr=subprocess.PIPE, text=True)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, process.stderr.read()
        out.seek(0)
        return out.read().decode(), used.ru_maxrss * 1024


def check_text(text, tasks):
    """Each 1,000th attempt fails and is tried again."""
    failed = tasks // FAIL_EVERY
    assert f"{tasks} of {tasks + failed} attempts at tasks counted, {failed} wasted" in text


def make(maker, directory, *args):
    subprocess.run([maker, directory, *map(str, args)], check=True)
    return directory


@pytest.fixture(scope="module")
def journal(maker, tmp_path_factory):
    return make(maker, tmp_path_factory.mktemp("big") / "journal", 50_000, 10)


def test_text_in_bounded_memory(journal):
    """What 1,000,000 may need, for 50,000: and what the program itself takes."""
    text, peak = report(journal)
    check_text(text, 50_000)
    assert peak < 12 * MIB + 500 * MIB / 20


def test_json_in_bounded_memory(journal):
    """Written as a stream: it is far larger than the memory it needs, and its sums are those of its rows."""
    text, peak = report(journal, "--json", "-")
    assert len(text) > 4 * peak
    assert peak < 12 * MIB + 500 * MIB / 20
    found = json.loads(text)
    assert len(found["tasks"]) == 50_050 and sum(t["counted"] for t in found["tasks"]) == 50_000
    read = sum(t["read_bytes"] for t in found["tasks"])
    assert read == sum(w["tasks"]["read_bytes"] for w in found["workers"])
    assert read == sum(found["timeline"]["layers"]["read_bytes"])
    assert found["metrics"]["total_events"] == 50_000 * 50_000


def test_many_runs_are_listed(maker, tmp_path):
    """Twenty spans, each with an equal part of the tasks."""
    text, _ = report(make(maker, tmp_path / "journal", 2000, 2, 20), "--list", "--json", "-")
    runs = json.loads(text)["runs"]
    assert [r["num_tasks"] for r in runs] == [100] * 20


@pytest.mark.matrix
@pytest.mark.parametrize("options", [(), ("--json", "-"), ("--list",)], ids=["text", "json", "list"])
def test_a_million_tasks(maker, million, options):
    text, peak = report(million, *options)
    assert peak < 500 * MIB
    if not options:
        check_text(text, 1_000_000)


@pytest.fixture(scope="module")
def million(maker, tmp_path_factory):
    return make(maker, tmp_path_factory.mktemp("million") / "journal", 1_000_000, 100)
