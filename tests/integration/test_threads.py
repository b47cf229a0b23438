"""Models of threads and processes: whose numbers are whose. One worker each with 1, 2 and 4 threads."""

import os
import zlib

import cluster
import cold
import jobs
import pytest
import thread_jobs
from distributed import Client, span

THREADS = (1, 2, 4)
SIZES = [(3 << 20) + 1, (5 << 20) + 2, (7 << 20) + 3, (11 << 20) + 4]


class Threaded:
    def __init__(self, procs, client):
        self.procs, self.client = procs, client

    def submit(self, name, function, *args, worker="worker-0", **options):
        return jobs.submit(self.procs, self.client, name, function, *args, workers=[worker], **options)

    def settled(self, enough):
        return jobs.settled(self.procs, enough)

    def process(self, part, name, worker="worker-0"):
        """A worker's total so far: part is tasks, unattributed or unseen."""
        workers = self.settled(lambda r: True)["workers"]
        return next(w[part][name] for w in workers if w["name"] == worker)


@pytest.fixture(scope="module")
def threaded(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("threaded") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler({"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"})
        for n in THREADS:
            procs.start_worker(nthreads=n)
        with Client(procs.address) as client:
            client.wait_for_workers(len(THREADS), timeout=120)
            yield Threaded(procs, client)


@pytest.fixture(scope="module")
def files(disk):
    """Files of sizes that tell them apart."""
    made = []
    for i, size in enumerate(SIZES):
        made.append(disk / f"part-{i}")
        made[-1].write_bytes(os.urandom(size))
    return [str(f) for f in made]


@pytest.mark.parametrize("n", THREADS)
def test_tasks_at_once(threaded, files, tmp_path, cell, n):
    """Different files: each task has its own bytes. Then one cold file for all: who reads a page first
    is a race, the sum is not."""
    worker = f"worker-{THREADS.index(n)}"
    sizes = [1000 + i for i in range(n)]
    cold.drop(*files)
    for name, paths in (("different", files[:n]), ("same", [files[3]] * n)):
        directory = tmp_path / name
        directory.mkdir()
        with span(name):
            futures = [threaded.client.submit(
                thread_jobs.read_and_unpack, path, zlib.compress(bytes(size)), str(directory), n,
                key=f"{name}-{i:032x}", pure=False, workers=[worker]) for i, (path, size) in enumerate(zip(paths, sizes))]
            threaded.client.gather(futures)
        found = threaded.settled(lambda r: len(jobs.tasks_of(r, name)) == n)
        tasks = {t["key"]: t for t in jobs.tasks_of(found, name)}
        assert len(tasks) == n
        for future, path, size in zip(futures, paths, sizes):
            task = tasks[future.key]
            if name == "different":
                cell("threads", f"{n} threads, different files, one task", "known size", os.path.getsize(path), task["read_bytes"])
                cell("threads", f"{n} threads, different files, one task: from storage", "pages of the file",
                     cold.page_bytes(path), task["storage_read_bytes"])
            assert task["read_bytes"] == os.path.getsize(path)
            assert (task["decompress_calls"], task["decompress_out_bytes"]) == (1, size)
        cell("threads", f"{n} threads, {name} file: storage bytes of all", "pages of the files",
             sum(cold.page_bytes(p) for p in {*paths}), jobs.total(tasks.values(), "storage_read_bytes"))
        cold.drop(*files)


@pytest.mark.parametrize("function", [thread_jobs.in_own_class, thread_jobs.in_nested_threads])
def test_threads_of_a_task(threaded, files, function):
    """A thread that a task starts is the task's."""
    n, (task,) = threaded.submit(function.__name__, function, files[0])
    assert task["read_bytes"] == n == SIZES[0]
    assert task["late_bytes"] == 0


def test_pool_of_multiprocessing(threaded, files):
    n, (task,) = threaded.submit("thread_pool", thread_jobs.in_thread_pool, files[0], 4)
    assert task["read_bytes"] == n == 7 * SIZES[0]


@pytest.mark.parametrize("how", ["late_thread", "late_pool", "late_timer"])
def test_work_after_the_end(threaded, files, tmp_path, how):
    """It still is the task's, once, and is called late."""
    go = tmp_path / "go"
    n, (task,) = threaded.submit(how, getattr(thread_jobs, how), files[0], files[1], str(go))
    assert task["read_bytes"] == n == SIZES[0]
    assert task["late_bytes"] == 0
    go.touch()
    found = threaded.settled(lambda r: jobs.tasks_of(r, how)[0]["late_bytes"])
    (task,) = jobs.tasks_of(found, how)
    assert (task["read_bytes"], task["late_bytes"]) == (SIZES[0] + SIZES[1], SIZES[1])
    assert found["metrics"]["late_bytes"] == SIZES[1]


def test_thread_that_serves_others(threaded, files):
    """The task that starts it has its own bytes, and never another task's."""
    before = threaded.process("unattributed", "read_bytes")
    n, (first,) = threaded.submit("service_first", thread_jobs.ask_service, files[0])
    assert first["read_bytes"] == n == SIZES[0]
    n, (second,) = threaded.submit("service_second", thread_jobs.ask_service, files[1])
    assert n == SIZES[1] and second["read_bytes"] == 0
    assert threaded.process("unattributed", "read_bytes") - before == SIZES[1]
