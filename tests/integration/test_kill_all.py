"""Agents that die or freeze while tasks run, and a worker that dies together with its nanny and agent:
the client's own record of its tasks is compared with the report."""

import contextlib
import os
import shutil
import signal
import threading
import time

import cells
import cluster
import jobs
import pytest
from distributed import span

PATIENT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}


@contextlib.contextmanager
def measured(procs, workers=1, nthreads=1, **env):
    with jobs.measured(procs, workers, scheduler=PATIENT, nthreads=nthreads, env=env) as client:
        yield client


def run_many(client, name, n):
    """n tiny tasks; returns their keys."""
    with span(name):
        futures = client.map(lambda i: i + 1, range(n), key=[jobs.unique(name) for _ in range(n)])
        assert client.gather(futures) == list(range(1, n + 1))
    return sorted(f.key for f in futures)


def once_each(report, name, keys):
    """Every task of the client has exactly one attempt, which counts, and there are no others."""
    tasks = jobs.tasks_of(report, name)
    assert sorted(t["key"] for t in tasks) == keys
    assert all(t["counted"] and t["status"] == "ok" for t in tasks)
    done = report["completeness"]
    assert done["tasks_refused"] == done["records_refused"] == done["records_lost"] == 0


class Stopper(threading.Thread):
    """Stops the first agent of the target that it sees, or all of them, including later ones, if `all_of_them`."""

    def __init__(self, procs, all_of_them):
        super().__init__()
        self.procs, self.all, self.stopped, self.enough = procs, all_of_them, set(), threading.Event()

    def run(self):
        while not self.enough.is_set():
            for pid in set(self.procs.agents()) - self.stopped:
                if self.all or not self.stopped:
                    cluster.kill(pid, signal.SIGSTOP)
                    self.stopped.add(pid)
            time.sleep(0.1 if self.stopped else 0.005)

    def __enter__(self):
        self.start()
        cluster.wait_until(lambda: self.stopped, "an agent to stop")
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.join()
        for pid in self.stopped:
            cluster.kill(pid, signal.SIGCONT)


def test_agent_stands_still(new_cluster):
    """The shim considers it dead and starts another one; the first one wakes up and leaves."""
    procs = new_cluster()
    with measured(procs) as client:
        cluster.wait_until(procs.agents, "the agent")
        with Stopper(procs, all_of_them=False) as stopper:
            first, = stopper.stopped
            keys = run_many(client, "still", 1500)
            cluster.wait_until(lambda: set(procs.agents()) - {first}, "another agent", 60)
        cluster.wait_until(lambda: first not in procs.agents(), "the first agent to leave", 60)
        found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "still")) >= 1500)
    once_each(found, "still", keys)


def test_table_of_tasks_is_full(new_cluster, tmp_path):
    """The agent is frozen during 3,000 tasks, more than the table holds, and no other can be started:
    tasks beyond the table's size are refused and counted, those in the table arrive when the agent continues, and the
    sums are exact."""
    procs = new_cluster()
    agent = shutil.copy2(procs.build / "crema-agent", tmp_path / "crema-agent")
    with measured(procs, nthreads=2, CREMA_AGENT=str(agent)) as client:
        cluster.wait_until(procs.agents, "the agent")
        jobs.submit(procs, client, "first", abs, 1)
        os.unlink(agent)
        with Stopper(procs, all_of_them=True):
            keys = run_many(client, "full", 3000)
        found = jobs.settled(procs, lambda r: jobs.tasks_of(r, "full") and r["workers"][0]["tasks_done"] == 3001)
        # The refused tasks leave nothing behind: later tasks are complete again.
        later = run_many(client, "later", 100)
        after = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "later")) >= 100)
    worker, = found["workers"]
    tasks = jobs.tasks_of(found, "full")
    assert len({t["key"] for t in tasks}) == len(tasks)
    assert {t["key"] for t in tasks} < set(keys)
    assert len(tasks) > 2100
    assert worker["tasks_started"] == worker["tasks_done"] == 3001
    assert worker["tasks_refused"] == found["completeness"]["tasks_refused"] == 3000 - len(tasks) > 0
    assert all(t["counted"] for t in tasks)
    assert sorted(t["key"] for t in jobs.tasks_of(after, "later")) == later
    # The sums include the refused ones, too.
    assert worker["tasks"]["cpu_seconds"] > jobs.total(tasks, "cpu_seconds") * 3000 / len(tasks) / 2
    assert worker["tasks"]["cpu_seconds"] + worker["unattributed"]["cpu_seconds"] + worker["unseen"]["cpu_seconds"] == \
        pytest.approx(worker["rusage"]["cpu_seconds"], abs=1e-6)


def test_agent_killed_while_tasks_run(new_cluster):
    """Repeatedly, in less than a minute: another agent takes over, nothing is lost and nothing counts twice."""
    procs, times = new_cluster(), 6
    killed, enough = [], threading.Event()

    def kill_agents():
        while len(killed) < times and not enough.is_set():
            for pid in set(procs.agents()) - set(killed):
                cluster.kill(pid, signal.SIGKILL)
                killed.append(pid)
            enough.wait(0.7)

    with measured(procs) as client:
        cluster.wait_until(procs.agents, "the agent")
        thread, keys = threading.Thread(target=kill_agents), []
        thread.start()
        try:
            with span("mortal"):
                while (len(killed) < times or len(keys) < 1500) and len(keys) < 20_000:
                    # thousands of short tasks in .ci/run, otherwise 1,500 and then one of 20 ms at a time
                    n, pause = (250, 0) if cells.FURTHER or len(keys) < 1500 else (25, 0.02)
                    new = [jobs.unique("mortal") for _ in range(n)]
                    assert client.gather(client.map(lambda i, pause=pause: time.sleep(pause) or i + 1, range(n), key=new)) == list(range(1, n + 1))
                    keys += new
                    time.sleep(0.3 if cells.FURTHER and len(keys) >= 1500 else 0)
        finally:
            enough.set()
            thread.join()
        assert len(killed) == times
        cluster.wait_until(lambda: set(procs.agents()) - set(killed), "the last agent", 60)
        found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "mortal")) >= len(keys))
    once_each(found, "mortal", sorted(keys))


def test_one_of_two_workers_goes_with_all_around_it(new_cluster, data, tmp_path):
    """Worker, nanny and agent die at once in the middle of a job: the job ends on the other worker and
    a new one, the other worker's records are complete, and the loss is reported."""
    procs, marker = new_cluster(), tmp_path / "marker"
    with measured(procs, workers=2) as client:
        gone, = [w for w in procs.workers if w.name == "worker-0"]
        before = set(procs.agents())
        pids = {name: pid for name, pid in by_name(client).items()}
        mine = [a for a in before if str(pids["worker-0"]) in cluster.strings_of(a, "cmdline")]
        assert len(mine) == 1 and len(before) == 2
        with span("gone"):
            slow = client.submit(jobs.read_slowly_once, data["zlib"], 1 << 16, str(marker), key=jobs.unique("gone"),
                                 workers=["worker-0"], allow_other_workers=True)
            cluster.wait_until(marker.exists, "the task to start")
            others = [client.submit(jobs.read_whole, data["zlib"], key=jobs.unique("gone"), workers=["worker-1"]) for _ in range(8)]
            time.sleep(2)  # some of its progress must have been sent
            group = [p for p, g, _ in cluster.processes() if g == gone.pid]
            assert pids["worker-0"] in group
            for pid in [*mine, *group]:
                cluster.kill(pid, signal.SIGKILL)
            procs.start_worker()
            size = os.path.getsize(data["zlib"])
            assert client.gather(others) == 8 * [size]
            assert slow.result(timeout=120) == 0
        # The collector considers a worker gone after ten seconds of silence if others are not silent.
        found = jobs.settled(procs, lambda r: any(w["silent"] for w in r["workers"]))
    lost, = [t for t in jobs.tasks_of(found, "gone") if t["key"] == slow.key and t["status"] == "lost"]
    assert not lost["counted"] and lost["waste_reason"] == "lost"
    assert lost["pid"] == pids["worker-0"]
    assert lost["read_bytes"] > 0
    again = [t for t in jobs.tasks_of(found, "gone") if t["key"] == slow.key and t["counted"]]
    assert [t["status"] for t in again] == ["ok"]
    whole = [t for t in jobs.tasks_of(found, "gone") if t["key"] in {f.key for f in others}]
    assert len(whole) == 8
    assert all(t["counted"] and t["read_bytes"] == size and t["pid"] == pids["worker-1"] for t in whole)
    done = found["completeness"]  # the silent worker's values are known up to its last record
    assert (done["records_lost"], done["records_lost_at_least"]) == (None, 0) and [w["records_lost"] for w in found["workers"] if w["silent"]] == [None]
    notes = found["completeness"]["notes"]
    assert any("1 attempts are lost" in note for note in notes), notes
    assert any("1 worker went silent" in note and "UTC is unknown" in note for note in notes), notes


def by_name(client):
    names = client.run_on_scheduler(lambda dask_scheduler: {w.address: str(w.name) for w in dask_scheduler.workers.values()})
    return {names[address]: pid for address, pid in client.run(os.getpid).items()}
