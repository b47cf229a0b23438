"""coffea's executors without Dask: each chunk is a task, in any process or thread."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cluster
import jobs
import parsl_env
import pytest
import taskvine
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
def plain(serial, data):
    """Results of the same analysis, run serially and unmeasured."""
    return {"output": jobs.output_of(serial, [data["zstd"]]), "codecs": serial["codecs"]}


def run(place, data, executor, *options, env=None, python=sys.executable):
    """One program under `crema run`; its records go to files in a separate folder."""
    job = Job()
    job.directory = place.directory / f"{executor}{len(list(place.directory.iterdir()))}"
    job.directory.mkdir()
    output = job.directory / "out.json"
    records = job.directory / "records"
    records.mkdir()
    command = [place.build / "crema", "run", "--", python, JOB, executor, "--files", data["zstd"],
               "--output", output, *options]
    done = subprocess.run([str(word) for word in command], cwd=job.directory, capture_output=True, text=True, timeout=300,
                          env={**place.env, "CREMA_COLLECTOR": f"dir:{records}", **(env or {})})
    assert done.returncode == 0, done.stderr[-4000:]
    job.__dict__.update(json.loads(output.read_text()))
    job.records = records
    job.json = settled(place, records)
    return job


def settled(place, records):
    """The report once every process has ended and sends nothing more."""
    def ended():
        try:
            report = place.report_json(directory=records)
        except cluster.StepFailed:  # no file yet
            return None
        return report if all(worker["goodbye"] for worker in report["workers"]) else None

    return cluster.wait_until(ended, "the processes' last words", 60)


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
    """No thread is ever started: the shim arms when coffea's modules are opened."""
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


@pytest.mark.parametrize("method", ["loky", pytest.param("fork", marks=pytest.mark.further), *(pytest.param(how, marks=pytest.mark.matrix) for how in ("forkserver", "spawn"))])
def test_processes(place, plain, data, cell, method):
    """The chunks run in processes other than the client's, and each of these is a worker."""
    job = run(place, data, method)
    check(job, plain, data, cell, f"futures, {method}")
    assert job.pid not in pids(job) | pids(job, chunks=False)
    workers = {(task["pid"], task["worker_id"]) for task in job.json["tasks"]}
    assert len(workers) == len({pid for pid, _ in workers}) == len({worker for _, worker in workers})


@pytest.mark.further
def test_repeated_in_one_process(place, plain, data, cell):
    """A notebook's second run of the same analysis is a separate run, exact to the byte."""
    job = run(place, data, "iterative", "--repeat", "2", "--handler", "MemmapSource")
    check(job, plain, data, cell, "iterative, run again")
    listed = place.report("--list", "--json", "-", directory=job.records)
    assert [row["num_chunks"] for row in json.loads(listed.stdout)["runs"]] == [4, 4]


def test_child_of_a_measured_process(place, plain, data, cell):
    """The parent is already measured when it forks: the child counts for itself, from 0."""
    job = run(place, data, "fork", "--first", "iterative")
    check(job, plain, data, cell, "futures, fork after iterative")
    assert job.pid not in pids(job)
    assert {chunk["attempt"] for chunk in job.json["chunks"]} <= {1, 2, 3, 4}


def test_chunk_that_fails_once(place, plain, data):
    """coffea retries it: an attempt that erred, with everything that is known at its start."""
    job = run(place, data, "threads", "--fail-at", "50000")
    assert job.output == plain["output"]
    erred, = [chunk for chunk in job.json["chunks"] if chunk["status"] == "erred"]
    assert (erred["entrystart"], erred["entrystop"], erred["waste_reason"]) == (50_000, 100_000, "retried")
    assert erred["events"] is None
    assert sum(chunk["counted"] for chunk in job.json["chunks"]) == 4


PICKLES = """
import pickle, sys
import cloudpickle
from coffea.processor import Runner
from functools import partial
for name in ("_work_function", "metadata_fetcher_root"):
    for module in (pickle, cloudpickle):
        function = getattr(Runner, name)
        assert module.loads(module.dumps(function)) is function
        assert module.loads(module.dumps(partial(function, 1))).func is function
sys.stdout.buffer.write(pickle.dumps(Runner._work_function))
"""


def test_functions_travel(place):
    """The functions can be pickled, also for a process without the shim."""
    made = subprocess.run([sys.executable, "-c", PICKLES], env={**place.env, **place.worker_env()}, capture_output=True)
    assert made.returncode == 0, made.stderr
    load = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f.__qualname__, f.__module__)"
    done = subprocess.run([sys.executable, "-c", load], env=place.env, input=made.stdout, capture_output=True)
    assert done.stdout.split() == [b"Runner._work_function", b"coffea.processor.executor"], done.stderr


def test_where_it_sends_to_without_being_told(place, data, tmp_path):
    """One line for each measured process; the result is right."""
    output = tmp_path / "out.json"
    done = subprocess.run([sys.executable, JOB, "iterative", "--files", data["zstd"], "--output", output], timeout=300,
                          env={**place.env, "LD_PRELOAD": str(place.build / "libcrema.so")}, capture_output=True, text=True)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("crema")] == [
        "crema: CREMA_COLLECTOR is not set: this process sends to 127.0.0.1:8990"]
    assert json.loads(output.read_text())["report"]["chunks"] == 4


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["parsl", "parsl-threads"])
def test_parsl(place, plain, data, cell, kind):
    """Its workers are killed at the end: they need not send a last record."""
    python = parsl_env.python()
    paths = {"PATH": os.pathsep.join([str(python.parent), place.env["PATH"]]),
             "PYTHONPATH": os.pathsep.join([str(cluster.ROOT / "examples"), place.env["PYTHONPATH"]])}
    job = run(place, data, kind, python=python, env=paths)
    check(job, plain, data, cell, {"parsl": "Parsl, HTEX", "parsl-threads": "Parsl, threads"}[kind])
    assert (pids(job) == {job.pid}) == (kind == "parsl-threads")


@pytest.fixture(scope="module")
def vine(place, data):
    """The example on TaskVine, with its transactions log."""
    if not taskvine.archive():
        pytest.skip("CREMA_TEST_TASKVINE is not set")
    job = Job()
    job.directory = place.directory / "taskvine"
    job.records = job.directory / "records"
    job.records.mkdir(parents=True)
    output = job.directory / "out.json"
    env = {**place.env, **taskvine.environment(taskvine.build())}
    worker = ["env", f"CREMA_COLLECTOR=dir:{job.records}", place.build / "crema", "run", "--", "vine_worker"]
    command = [sys.executable, JOB.with_name("taskvine_job.py"), "--files", data["zstd"], "--output", output,
               "--port", cluster.free_port(), "--", *worker]
    done = subprocess.run([str(word) for word in command], cwd=job.directory, env=env, capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr[-4000:]
    job.__dict__.update(json.loads(output.read_text()))
    job.log, = {log.resolve() for log in job.directory.glob("vine-run-info/*/vine-logs/transactions")}
    settled(place, job.records)
    done = place.report("--json", "-", "--taskvine-log", job.log, directory=job.records)
    job.json = json.loads(done.stdout)
    return job


@pytest.mark.matrix
def test_taskvine(vine, plain, data, cell):
    """One process per chunk, which then ends."""
    check(vine, plain, data, cell, "TaskVine")
    assert len({chunk["worker_id"] for chunk in vine.json["chunks"]}) == 4
    assert all(worker["goodbye"]["how"] == "exit" for worker in vine.json["workers"])


@pytest.mark.matrix
def test_taskvine_log(vine, cell):
    """Each process is matched with its task; its lifetime agrees with TaskVine's worker."""
    workers = {worker["id"]: worker for worker in vine.json["workers"]}
    rows = vine.json["taskvine"]["tasks"]
    assert [row["category"] for row in rows] == ["preprocessing"] + 4 * ["processing"] + ["accumulating"]
    measured = [row for row in rows if row["worker_id"]]
    assert len({row["worker_id"] for row in measured}) == len(measured) == 5
    for row in measured:
        worker = workers[row["worker_id"]]
        assert worker["cwd"].endswith(f"task.{row['task']}")
        cell("executors", f"TaskVine, life of task {row['task']}'s process", "wall_time of TaskVine's log; starts are known to 10 ms",
             row["wall_seconds"], worker["process_life_seconds"], 0.25)
        assert 0 < worker["startup_seconds"] < worker["process_life_seconds"] - worker["work_seconds"]
    sent = [line.split() for line in vine.log.read_text().splitlines() if " TRANSFER OUTPUT " in line]
    assert sum(int(words[7]) for words in sent) == sum(row["output_bytes"] for row in rows)
