# SPDX-License-Identifier: BSD-3-Clause
"""Memory that malloc holds: a Dask task that leaves free blocks between small ones in use, the finding, and its advice, followed literally."""

import os

import cluster
import heap_jobs
import jobs
import pytest
from distributed import span

BLOCK, BLOCKS = 80_000, 1800
MB = 1 << 20


def report_of(procs, client, name, seconds):
    """The report of a run that does nothing for that time."""
    with span(name) as one:
        client.submit(heap_jobs.idle, seconds, key=jobs.unique(name), pure=False).result()
    return jobs.settled(procs, lambda r: r["worker_memory"][0]["readings"] >= 3, run=one, seconds=30)


@pytest.fixture(scope="module")
def found(tmp_path_factory, homes):
    made = {}
    env = {**homes, "CREMA_HEAP": "on", "PYTHONPATH": f"{os.path.dirname(__file__)}:{homes['PYTHONPATH']}"}
    with cluster.Cluster(tmp_path_factory.mktemp("held"), env) as procs:
        with jobs.measured(procs) as client:
            client.submit(heap_jobs.fragments, BLOCK, BLOCKS, pure=False).result()
            made["held"] = report_of(procs, client, "held", 25)
            finding = next((f for f in made["held"]["findings"] if f["id"] == "allocator_holds"), None)
            if finding:
                made["before"] = sum(client.run(heap_jobs.anonymous).values())
                eval(finding["advice"].split(": ", 1)[1].rstrip("."), {"client": client})
                made["after"] = sum(client.run(heap_jobs.anonymous).values())
            made["trimmed"] = report_of(procs, client, "trimmed", 25)
    return made


def test_held_blocks_are_found(found):
    (row,) = found["held"]["worker_memory"]
    assert BLOCK * BLOCKS * 0.85 < row["kept_bytes"] < BLOCK * BLOCKS * 1.3, row
    assert "allocator_holds" in {f["id"] for f in found["held"]["findings"]}


def test_the_advice_returns_them(found):
    (held,), (trimmed,) = found["held"]["worker_memory"], found["trimmed"]["worker_memory"]
    fell = found["before"] - found["after"]
    assert fell == pytest.approx(held["kept_bytes"], rel=0.02, abs=4 * MB)
    assert held["resident_bytes"] - trimmed["resident_bytes"] == pytest.approx(fell, rel=0.05, abs=8 * MB)
    assert trimmed["kept_bytes"] < 10 * MB
    assert "allocator_holds" not in {f["id"] for f in found["trimmed"]["findings"]}
