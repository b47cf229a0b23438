"""Reports and pages of very many files, prefixes or datasets: their cost grows in proportion to the number."""

import os
import subprocess

import cluster
import pytest
from frames import FILE, Journal
from stores import CHUNK

FEW, TIMES = 15_000, 4


def files(journal, n):
    for i in range(n):
        path = f"/data/store/file-{i}.root"
        journal.task(i, f"chunk-{i}", i, i + 1, prefix="chunk", flags=CHUNK, filename=path, dataset="d", entrystart=0,
                     entrystop=10)
        journal.message([FILE, {"span": "span-1", "path": path, "kind": "data", "read_calls": 1, "read_bytes": 1000 + i}])


def prefixes(journal, n):
    for i in range(n):
        journal.task(i, f"own:{i}:key", i, i + 1)


def datasets(journal, n):
    for i in range(n):
        journal.task(i, f"chunk-{i}", i, i + 1, prefix="chunk", flags=CHUNK, filename="f.root", dataset=f"d{i}", entrystart=0,
                     entrystop=10)


MAKERS = {"datasets": datasets, "files": files, "prefixes": prefixes}


def cpu_seconds(state, output):
    """CPU time of a report with these options, and its text."""
    before = os.times()
    done = subprocess.run([cluster.BUILD / "crema", "report", "--dir", state, *output], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, done.stdout


@pytest.mark.parametrize("kind", MAKERS)
def test_cost_grows_as_the_number(tmp_path, kind):
    cost = {"text": [], "page": []}
    for n in (FEW, FEW * TIMES):
        journal = Journal(tmp_path / str(n) / "journal")
        journal.worker()
        MAKERS[kind](journal, n)
        journal.write()
        seconds, text = cpu_seconds(tmp_path / str(n), ["--full"])
        assert f"and {n - 8} more" in text
        cost["text"].append(seconds)
        cost["page"].append(cpu_seconds(tmp_path / str(n), ["--html", tmp_path / f"{n}.html"])[0])
    for few, many in cost.values():
        assert many / few < 2 * TIMES, cost
