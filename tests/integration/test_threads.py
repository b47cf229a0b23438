"""Ways to use threads and processes: which task the numbers belong to. One worker each with 1, 2 and 4 threads."""

import json
import os
import subprocess
import sys
import time
import zlib

import cluster
import cold
import jobs
import pytest
import thread_jobs
from distributed import Client, span

THREADS = (1, 2, 4)
SIZES = [(3 << 20) + 1, (5 << 20) + 2, (7 << 20) + 3, (11 << 20) + 4]


def long(*values):
    return [pytest.param(value, marks=pytest.mark.matrix) for value in values]


class Threaded:
    def __init__(self, procs, client):
        self.procs, self.client = procs, client

    def submit(self, name, function, *args, worker="worker-0", **options):
        return jobs.submit(self.procs, self.client, name, function, *args, workers=[worker], **options)

    def settled(self, enough):
        return jobs.settled(self.procs, enough)

    def process(self, part, name, worker="worker-0", settle=True):
        """A worker's total so far: part is tasks, unattributed, unseen or children. settle: wait for the numbers of work
        that was just done."""
        report = self.settled(lambda r: True) if settle else self.procs.report_json(jobs.newest(self.procs))
        return next(w[part][name] for w in report["workers"] if w["name"] == worker)


@pytest.fixture(scope="module")
def threaded(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("threaded") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler({"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"})
        for n in THREADS:
            procs.start_worker(nthreads=n, env={"DASK_DISTRIBUTED__WORKER__DAEMON": "False"})
        with Client(procs.address) as client:
            client.wait_for_workers(len(THREADS), timeout=120)
            made = Threaded(procs, client)
            for i in range(len(THREADS)):  # before its first task a worker is in no run, and a test would have no initial total
                made.submit(f"first_{i}", int, worker=f"worker-{i}")
            yield made


@pytest.fixture(scope="module")
def files(disk):
    """Files with different sizes, by which they can be told apart."""
    made = []
    for i, size in enumerate(SIZES):
        made.append(disk / f"part-{i}")
        made[-1].write_bytes(os.urandom(size))
    return [str(f) for f in made]


@pytest.mark.parametrize("n", [*long(1, 2), 4])
def test_tasks_at_once(threaded, files, tmp_path, cell, n):
    """Different files: each task has its own bytes. Then one cold file for all: which task reads a page first
    is a race, but the sum is not."""
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
    """The work of a thread that a task starts belongs to the task."""
    n, (task,) = threaded.submit(function.__name__, function, files[0])
    assert task["read_bytes"] == n == SIZES[0]
    assert task["late_bytes"] == 0


def test_pool_of_multiprocessing(threaded, files):
    n, (task,) = threaded.submit("thread_pool", thread_jobs.in_thread_pool, files[0], 4)
    assert task["read_bytes"] == n == 7 * SIZES[0]


@pytest.mark.parametrize("how", ["late_thread", "late_pool", *long("late_timer")])
def test_work_after_the_end(threaded, files, tmp_path, how):
    """It still belongs to the task, once, and is reported as late."""
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


@pytest.mark.parametrize("how", ["nested", *long("nested_get_client")])
def test_tasks_in_tasks(threaded, files, how):
    """A task that submits tasks and waits for them: their bytes are not its own, and it waits."""
    (outer, inner), (task,) = threaded.submit(how, getattr(thread_jobs, how), files[1], files[0], worker="worker-1")
    found = threaded.settled(lambda r: jobs.tasks_of(r, "inner"))
    (below,) = jobs.tasks_of(found, "inner")
    assert task["read_bytes"] == outer
    assert below["read_bytes"] == inner == SIZES[1]
    # Waiting for the inner task is lock wait; only the inner task sleeps.
    assert below["sleep_seconds"] >= 0.45
    assert task["lock_wait_seconds"] >= 0.4
    assert task["sleep_seconds"] < 0.1


def test_seceded(threaded, files, tmp_path):
    """The thread that takes a seceded task's place is started by that task, but does not belong to it."""
    go = tmp_path / "go"
    with span("seceded"):
        future = threaded.client.submit(thread_jobs.seceded, files[0], str(go), key=jobs.unique("seceded"),
                                        workers=["worker-0"])
        for _ in range(2):
            assert threaded.client.submit(jobs.read_whole, files[1], key=jobs.unique("instead"), pure=False,
                                          workers=["worker-0"]).result(timeout=60) == SIZES[1]
        go.touch()
        assert future.result(timeout=60) == SIZES[0]
    found = threaded.settled(lambda r: len(jobs.tasks_of(r, "instead")) == 2 and jobs.tasks_of(r, "seceded"))
    (task,) = jobs.tasks_of(found, "seceded")
    assert task["read_bytes"] == SIZES[0]
    assert [t["read_bytes"] for t in jobs.tasks_of(found, "instead")] == [SIZES[1]] * 2


UNMEASURED = ("read_bytes", "read_calls", "storage_read_bytes", "decompress_out_bytes", "network_read_bytes",
              "cpu_seconds", "pool_cpu_seconds", "lock_wait_seconds", "late_bytes")


def test_async_tasks(threaded, files):
    """Only their wall time: nothing else can be assigned to one of them."""
    before = threaded.process("unattributed", "read_bytes")
    n, (task,) = threaded.submit("async_read", thread_jobs.async_read, files[0])
    assert n == SIZES[0]
    assert task["async"] and task["wall_seconds"] >= 0.1
    assert {name: task[name] for name in UNMEASURED} == dict.fromkeys(UNMEASURED)
    assert threaded.process("unattributed", "read_bytes") - before == SIZES[0]


def test_actors(threaded, files):
    with span("actors"):
        actor = threaded.client.submit(thread_jobs.Counter, actor=True, key=jobs.unique("Counter"),
                                       workers=["worker-0"]).result(timeout=60)
        assert actor.read(files[0]).result() == SIZES[0]
        assert actor.read_async(files[1]).result() == SIZES[1]
        with pytest.raises(ValueError, match="^told so$"):
            actor.fail().result()
    # Their span is that of the task that created the actor.
    names = ("Counter.read", "Counter.read_async", "Counter.fail")
    found = threaded.settled(lambda r: {t["key"] for t in r["tasks"]} >= {*names})
    read, read_async, fail = (next(t for t in found["tasks"] if t["key"] == name) for name in names)
    assert read["actor"] and read_async["actor"] and fail["actor"]
    assert read["read_bytes"] == SIZES[0] and not read["async"]
    assert read_async["async"] and read_async["wall_seconds"] >= 0.1
    assert {name: read_async[name] for name in UNMEASURED} == dict.fromkeys(UNMEASURED)
    assert fail["status"] == "erred"
    assert {t["prefix"] for t in (read, read_async, fail)} == {"Counter"}


def test_forked_child(threaded, files, cell):
    """The shim is dormant in it: its bytes count for the children, not for the task."""
    before = threaded.process("children", "storage_read_bytes")
    others = threaded.process("unattributed", "read_bytes", settle=False)
    cold.drop(files[2])
    result, (task,) = threaded.submit("forked", thread_jobs.read_in_child, files[2], 7)
    assert result == [SIZES[2], 7] or result == (SIZES[2], 7)
    assert task["read_bytes"] == 0 and task["status"] == "ok"
    assert threaded.process("unattributed", "read_bytes", settle=False) == others
    cell("threads", "a forked child reads a cold file: bytes of the children", "pages of the file",
         cold.page_bytes(files[2]), threaded.process("children", "storage_read_bytes") - before)
    n, (task,) = threaded.submit("after_fork", jobs.read_whole, files[0])
    assert task["read_bytes"] == n


def test_cpu_of_children(threaded):
    before = threaded.process("children", "cpu_seconds")
    used, (task,) = threaded.submit("spin_in_child", thread_jobs.spin_in_child, 0.5)
    assert used <= threaded.process("children", "cpu_seconds") - before <= used + 0.2
    assert task["cpu_seconds"] < 0.3


@pytest.mark.parametrize("method", ["fork", *long("spawn", "forkserver")])
def test_process_pool_in_a_task(threaded, files, method):
    (early, late), (task,) = threaded.submit(
        f"pool_{method}", thread_jobs.read_with, method, files[0], files[1], 2)
    assert late == 2 * SIZES[1]
    assert task["read_bytes"] == early == SIZES[0]


def test_work_without_its_slot(threaded, files, tmp_path):
    """Work submitted after the task's record was acknowledged and its slot went to other tasks: unattributed."""
    go = tmp_path / "go"
    before = threaded.process("unattributed", "read_bytes")
    threaded.submit("slotless", thread_jobs.submit_late_from_loop, str(go), files[1])
    time.sleep(3)  # the agent frees the slot as soon as the record is acknowledged
    n, (task,) = threaded.submit("next", jobs.read_whole, files[0])
    go.touch()
    limit = time.monotonic() + 60
    while threaded.process("unattributed", "read_bytes", settle=False) - before < SIZES[1] and time.monotonic() < limit:
        time.sleep(0.2)
    assert threaded.process("unattributed", "read_bytes") - before == SIZES[1]
    (task,) = jobs.tasks_of(threaded.settled(lambda r: True), "next")
    assert task["read_bytes"] == n == SIZES[0]


@pytest.mark.matrix
def test_native_threads(threaded, cell):
    """Threads that no Python code starts belong to no task: measured, but not in the task."""
    before = threaded.process("unattributed", "cpu_seconds")
    (process, thread), (task,) = threaded.submit("native", thread_jobs.spin_threads, 2, 2.0)
    others = threaded.process("unattributed", "cpu_seconds") - before
    assert task["cpu_seconds"] >= thread
    assert process - thread <= task["pool_cpu_seconds"] + others
    assert abs(threaded.process("unseen", "cpu_seconds")) < 0.1


def test_several_workers_in_one_process(new_cluster, files, tmp_path):
    """Each task has its Worker's address; Dask's numbers are the sums over all Workers."""
    procs = new_cluster()
    procs.start_collector()
    program = jobs.ROOT / "tests" / "integration" / "many_workers.py"
    done = subprocess.run([sys.executable, program, *files[:2]], env={**procs.env, **procs.worker_env()},
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]
    truth = json.loads(done.stdout)
    found = jobs.settled(procs, lambda r: len(r["tasks"]) >= 7)
    tasks = {t["key"]: t for t in found["tasks"]}
    for key, known in truth["tasks"].items():
        assert tasks[key]["worker_address"] == known["worker"], key
        prefix = tasks[key]["prefix"]
        if prefix == "read":
            assert tasks[key]["read_bytes"] == known["result"] == SIZES[0]
        else:
            assert {name: tasks[key][name] for name in UNMEASURED} == dict.fromkeys(UNMEASURED)
            assert tasks[key]["async"] == (prefix == "read_async")
            assert tasks[key]["elsewhere"] == (prefix == "elsewhere")
            assert tasks[key]["wall_seconds"] > 0
            assert prefix != "elsewhere" or known["result"][1] != found["workers"][0]["pid"]
    # They kept a thread: neither idle nor without CPU, but not measured.
    away = [t["wall_seconds"] for t in found["tasks"] if t["async"] or t["elsewhere"]]
    assert found["metrics"]["budget"]["unmeasured"] == pytest.approx(sum(away), abs=1e-6) and len(away) >= 2
    assert (found["metrics"]["cpu_time_seconds_true"], found["metrics"]["gil_wait_seconds"]) == (None, None)
    assert found["completeness"]["workers_seen"] == 1
    (worker,) = found["workers"]
    assert worker["nthreads"] == truth["nthreads"] == 2
    assert sorted(worker["address"].split(", ")) == sorted(truth["addresses"])
    # Dask's digests of both, including the one that left first.
    told = {f"{row[1]} {row[2]}": row[4] for row in found["metrics"]["span_metrics"] if row[0] == "execute"}
    assert told == pytest.approx(truth["digests"], abs=1e-6)
