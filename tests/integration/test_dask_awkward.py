# SPDX-License-Identifier: BSD-3-Clause
"""coffea's dask mode with dask-histogram: everything between reading and the merge is the user's work.

The first run installs its environment (a minute); the truth is what Dask's workers count.
"""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

import jobs
import pytest
import test_columns
import test_right_run
import venvs

JOB = Path(__file__).with_name("lazy_job.py")
HISTOGRAMS = 6


def run_job(new_cluster, data, graphs, **env):
    """The cluster, and the job's output."""
    bin_dir = venvs.environment("coffea-2026.9-dask-awkward")
    procs = new_cluster()
    procs.dask = lambda *args: [bin_dir / "dask", *args]
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(nthreads=2)
    done = subprocess.run([bin_dir / "python", JOB, procs.address, f"ttbar={data['zlib']}", f"wjets={data['zstd']}"],
                          env={**procs.env, **env, "CREMA_TEST_GRAPHS": str(graphs)}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return procs, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def lazy_run(new_cluster, data):
    """The report of the histograms' graph, that of coffea's preprocessing, and the job's output."""
    procs, printed = run_job(new_cluster, data, 1)
    tasks = 8 * (3 + HISTOGRAMS) + 2 * HISTOGRAMS
    report = jobs.settled(procs, lambda r: len(r["tasks"]) >= tasks)
    listed = procs.report("--list").stdout.splitlines()[1:]
    steps = procs.report_json(next(line.split()[0] for line in listed if line.endswith("  preprocess finished")))
    return report, steps, printed


def check_columns(report, data):
    """Those that the graph needs, by dataset, and no others."""
    columns = {(row["dataset"], row["column"]): row["basket_bytes"] for row in report["read_columns"] if row["kind"] == "column"}
    for dataset, codec in (("ttbar", "zlib"), ("wjets", "zstd")):
        baskets = test_columns.Baskets(data[codec])
        for column in ("nJet", "Jet_pt", "Jet_eta"):
            assert columns.pop((dataset, column)) == sum(basket[1] for basket in baskets.of(column, 0, 200_000))
    assert not columns


def by_class(rows):
    """Dask's CPU seconds of preprocessing, merging and the rest."""
    sums = defaultdict(float)
    for prefix, seconds in rows:
        kind = "preprocessing" if prefix == "get-steps" or prefix.startswith("preprocess-") else "merging"
        sums[kind if kind == "preprocessing" or prefix == "histreduce-agg" else "work"] += seconds
    return sums


def test_filling_histograms_is_the_users_work(lazy_run, data):
    report, steps, theirs = lazy_run
    check_columns(report, data)
    metrics, dask = report["metrics"], by_class(theirs["cpu"])
    assert all(sum(values) > 0 for values in theirs["filled"].values())
    assert metrics["num_chunks"] == 8 and metrics["total_events"] == 400_000
    # Both count the CPU of the same calls; Dask's window is shorter, as it excludes the fetching of inputs.
    assert metrics["processor_cpu_time_seconds"] == pytest.approx(dask["work"], rel=1e-6)
    assert metrics["processor_cpu_time_seconds_true"] == pytest.approx(dask["work"], rel=0.1)
    assert metrics["total_cpu_time_true"] == metrics["processor_cpu_time_seconds_true"]
    assert metrics["overhead_cpu_time_seconds"] == pytest.approx(dask["merging"], rel=1e-6)
    assert metrics["overhead_cpu_time_seconds_true"] < 0.1 * metrics["total_cpu_time_true"]
    assert metrics["overhead_classes"]["merging"]["attempts"] == 2 * HISTOGRAMS
    assert metrics["overhead_classes"]["other_tasks"]["attempts"] == 0
    assert "dask_overhead" not in [f["id"] for f in report["findings"]]
    # A histogram is filled from both datasets' tasks by name only.
    assert [d["cpu_seconds"] for d in metrics["per_dataset"].values()] == [None, None]
    assert {name: d["events"] for name, d in metrics["per_dataset"].items()} == {"ttbar": 200_000, "wjets": 200_000}
    cpu = steps["metrics"]["overhead_cpu_time_seconds_true"]
    assert cpu == pytest.approx(dask["preprocessing"], rel=0.1)
    assert steps["metrics"]["preprocessing_elapsed_seconds"] > 0
    assert steps["metrics"]["preprocessing_task_seconds"] >= cpu


@pytest.mark.parametrize("equal", [pytest.param(False, marks=pytest.mark.matrix, id="alike"), pytest.param(True, marks=pytest.mark.further, id="equal_keys")])
def test_each_graph_is_a_run(new_cluster, data, equal):
    """Two graphs and coffea's preprocessing: tasks, chunks, events and wall time against the workers' plugin and the client."""
    procs, printed = run_job(new_cluster, data, 2, **({"CREMA_TEST_EQUAL": "1"} if equal else {}))
    kinds = [call.pop("kind") for call in printed["calls"]]
    assert kinds == ["preprocessing", "coffea", "coffea"]
    assert not equal or printed["equal"] == [True, True]
    for kind in set(kinds):
        test_right_run.check(procs, [c for c, k in zip(printed["calls"], kinds) if k == kind], 0, kind)
