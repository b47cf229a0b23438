"""10 million tasks of 20 runs as one Parquet data set, read by DuckDB and dask.dataframe. The truth is what tests/bench/make_journal counted
while it made the runs, and arithmetic on their sizes. Prints the times."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import cluster
import dask.dataframe
import duckdb
import pytest
from test_big_runs import FAIL_EVERY, maker  # noqa: F401 (fixture)

pytestmark = pytest.mark.matrix
RUNS, MEAN, MIB = 20, 500_000, 1 << 20
EVENTS, DATASETS = 50_000, 8  # of each chunk; chunk t belongs to dataset t % 8
LONGEST, RANGE = 0.5, 0.05  # seconds of a chunk: between LONGEST - RANGE and LONGEST, each equally likely
WRITE = "import sys, crema; run = crema.load(dir=sys.argv[1]); print(run.id, run.to_parquet(sys.argv[2])['tasks'])"


@dataclass
class Made:
    tasks: int
    workers: int
    sums: dict  # as make_journal printed them


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data set")


@contextmanager
def timed(what):
    begun = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - begun:.2f} s", flush=True)


def write(journal, folder):
    """In a process with limited memory: (id, rows of tasks)."""
    env = {**os.environ, "PYTHONPATH": str(cluster.ROOT / "python"), "CREMA_PROGRAM": str(cluster.BUILD / "crema")}
    done = subprocess.run(["prlimit", f"--data={600 * MIB}", sys.executable, "-c", WRITE, journal, folder], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run, rows = done.stdout.split()
    return run, int(rows)


def make(k, maker, journal, folder):
    """(id, Made). Every run has a different size, start, seed and number of workers."""
    tasks, workers = MEAN + 2000 * k - 1000 * (RUNS - 1), 20 + k
    made = subprocess.run([maker, journal, *map(str, (tasks, workers, 1, 1_790_000_000 + 86_400 * k, 1 + k))], check=True, capture_output=True)
    with timed(f"{tasks} tasks written"):
        run, rows = write(journal, folder)
    shutil.rmtree(journal)
    assert rows == tasks + tasks // FAIL_EVERY
    return run, Made(tasks, workers, json.loads(made.stdout))


@pytest.fixture(scope="module")
def runs(maker, tmp_path_factory, folder):  # noqa: F811
    """{id: Made}, two written at the same time."""
    state = tmp_path_factory.mktemp("state")
    with timed(f"{RUNS * MEAN} tasks of {RUNS} runs made and written"), ThreadPoolExecutor(2) as pool:
        found = dict(pool.map(lambda k: make(k, maker, state / str(k), folder), range(RUNS)))
    assert len(found) == RUNS and sum(made.tasks for made in found.values()) == RUNS * MEAN
    print(f"the data set: {sum(file.stat().st_size for file in folder.rglob('*.parquet')) / MIB:.0f} MiB")
    return found


def sums(runs):
    """{run: (attempts, failed, bytes read)}"""
    return {run: (made.sums["attempts"], made.sums["failed"], made.sums["read_bytes"]) for run, made in runs.items()}


def events(runs):
    return {f"sample{d}": sum(len(range(d, made.tasks, DATASETS)) for made in runs.values()) * EVENTS for d in range(DATASETS)}


def test_the_truth_agrees_with_itself(runs):
    """What make_journal counted is what its arguments ask for."""
    for made in runs.values():
        assert made.sums["events"] == made.tasks * EVENTS and made.sums["failed"] == made.tasks // FAIL_EVERY
        assert made.sums["attempts"] == made.tasks + made.sums["failed"]
    assert len({made.sums["read_bytes"] for made in runs.values()}) == RUNS


def test_duckdb(runs, folder):
    tasks, chunks = (f"read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning=true)" for table in ("tasks", "chunks"))
    with timed("DuckDB, sums by run"):
        found = duckdb.sql(f"""SELECT run, count(*), count(*) FILTER (status = 'erred'), sum(read_bytes), sum(cpu_seconds),
            count(storage_read_bytes) FROM {tasks} GROUP BY run""").fetchall()
    assert {run: tuple(numbers) for run, *numbers, _, _ in found} == sums(runs)
    for run, attempts, _, _, cpu, known in found:
        assert cpu == pytest.approx(runs[run].sums["cpu_ns"] / 1e9, rel=1e-9) and known == attempts
    with timed("DuckDB, events by dataset"):
        assert dict(duckdb.sql(f"SELECT dataset, sum(events) FROM {chunks} GROUP BY dataset").fetchall()) == events(runs)
    with timed("DuckDB, 99th percentile by run and worker"):
        found = duckdb.sql(f"SELECT run, worker, count(*), quantile_cont(wall_seconds, 0.99) FROM {tasks} GROUP BY run, worker").fetchall()
    assert len(found) == sum(made.workers for made in runs.values())
    for _, _, n, p99 in found:  # within six standard errors of that of the distribution
        assert p99 == pytest.approx(LONGEST - RANGE / 100, abs=6 * RANGE * (0.01 * 0.99 / n) ** 0.5)


def test_dask_dataframe(runs, folder):
    with timed("dask.dataframe, sums by run"):
        tasks = dask.dataframe.read_parquet(folder / "tasks", engine="pyarrow", columns=["run", "status", "read_bytes"])
        tasks["failed"] = tasks.status == "erred"
        found = tasks.groupby("run", observed=True).agg({"status": "count", "failed": "sum", "read_bytes": "sum"}).compute()
    assert {row.Index: (row.status, row.failed, row.read_bytes) for row in found.itertuples()} == sums(runs)
    with timed("dask.dataframe, events by dataset"):
        chunks = dask.dataframe.read_parquet(folder / "chunks", engine="pyarrow", columns=["dataset", "events"])
        found = chunks.groupby("dataset").events.sum().compute()
    assert dict(found) == events(runs)
