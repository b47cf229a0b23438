"""coffea's executors without Dask: each chunk is a task, in whatever process or thread it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cluster
import jobs
import pytest
from accuracy import COFFEA, UPROOT

JOB = Path(__file__).with_name("executor_job.py")
COUNTS = ("calls", "in_bytes", "out_bytes")
THREADLESS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


class Job:
    pass


@pytest.fixture(scope="module")
def place(tmp_path_factory, homes):
    return cluster.Cluster(tmp_path_factory.mktemp("executors") / "place", homes)


@pytest.fixture(scope="module")
def plain(place, data):
    """The same analysis, serially and unmeasured."""
    return jobs.serial_truth(place.directory, [data["zstd"]])


def run(place, data, executor, *options, env=None, run="last"):
    """One program under `crema run`; its records go to files in a folder of its own."""
    job = Job()
    job.directory = place.directory / f"{executor}{len(list(place.directory.iterdir()))}"
    job.directory.mkdir()
    output = job.directory / "out.json"
    records = job.directory / "records"
    records.mkdir()
    command = [place.build / "crema", "run", "--", sys.executable, JOB, executor, "--files", data["zstd"],
               "--output", output, *options]
    done = subprocess.run([str(word) for word in command], cwd=job.directory, capture_output=True, text=True, timeout=300,
                          env={**place.env, "CREMA_COLLECTOR": f"dir:{records}", **(env or {})})
    assert done.returncode == 0, done.stderr[-4000:]
    job.stderr = done.stderr
    job.__dict__.update(json.loads(output.read_text()))
    job.json = jobs.settled(place, lambda r: all(w["goodbye"] for w in r["workers"]), directory=records)
    return job


def check(job, plain, data, cell, name):
    """Against coffea's report of the same run, and against the serial run's decompressors."""
    assert job.output == plain["output"]
    metrics, report = job.json["metrics"], job.report
    for metric, word in (("total_events", "entries"), ("total_bytes_read_coffea", "bytesread"), ("num_chunks", "chunks")):
        cell("executors", f"{name}, {word}", COFFEA, report[word], metrics[metric])
    zstd = [row for row in job.json["codecs"] if row["codec"] == "zstd"]
    for count in COUNTS:
        cell("executors", f"{name}, zstd {count}", UPROOT, plain["codecs"]["zstd"][count], jobs.total(zstd, count))
    ranges = sorted((c["filename"], c["entrystart"], c["entrystop"], c["events"]) for c in job.json["chunks"] if c["counted"])
    assert ranges == [(data["zstd"], s, s + 50_000, 50_000) for s in range(0, 200_000, 50_000)]
    rest = job.json["completeness"]
    assert (rest["records_lost"], rest["records_refused"]) == (0, 0)
    for worker in job.json["workers"]:
        for amount in ("cpu_seconds", "storage_read_bytes"):
            parts = sum(worker[part][amount] for part in ("tasks", "unattributed", "unseen"))
            assert parts == pytest.approx(worker["rusage"][amount], abs=1e-6), (amount, worker)
        assert worker["unseen"]["storage_read_bytes"] == 0


def pids(job, chunks=True):
    return {task["pid"] for task in job.json["tasks"] if bool(task["preprocessing"]) != chunks}


def test_process_without_threads(place, plain, data, cell):
    """No thread is ever started: the opening of coffea's modules is what leads into the process."""
    job = run(place, data, "alone", "--handler", "MemmapSource", env=THREADLESS)
    assert job.threads == 1
    check(job, plain, data, cell, "iterative, no threads")
    assert pids(job) == pids(job, chunks=False) == {job.pid}
    assert {t["prefix"] for t in job.json["chunks"]} == {"TTbarProcessor"}


def test_iterative(place, plain, data, cell):
    job = run(place, data, "iterative")
    check(job, plain, data, cell, "iterative")
    assert pids(job) == {job.pid}
    dataset, path = Path(data["zstd"]).stem, data["zstd"]
    keys = {chunk["key"] for chunk in job.json["chunks"]}
    assert keys == {f"{dataset}:{path}:Events:{s}-{s + 50_000}"[:95] for s in range(0, 200_000, 50_000)}


def test_threads(place, plain, data, cell):
    """Two chunks at once in the client's process."""
    job = run(place, data, "threads")
    check(job, plain, data, cell, "futures, threads")
    assert pids(job) == {job.pid}
    assert len({chunk["thread"] for chunk in job.json["chunks"]}) == 2


@pytest.mark.parametrize("method", ["loky", "fork", "spawn", "forkserver"])
def test_processes(place, plain, data, cell, method):
    """The chunks' processes are not the client's, and each is a worker of its own."""
    job = run(place, data, method)
    check(job, plain, data, cell, f"futures, {method}")
    assert job.pid not in pids(job) | pids(job, chunks=False)
    workers = {(task["pid"], task["worker_id"]) for task in job.json["tasks"]}
    assert len(workers) == len({pid for pid, _ in workers}) == len({worker for _, worker in workers})
