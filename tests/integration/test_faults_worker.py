# SPDX-License-Identifier: BSD-3-Clause
"""Workers that end in every way known from batch nodes: their counts are exact, the tasks that
were running are closed as killed, the cause of the end is reported if there is evidence, and nothing else is lost."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import cgroups
import cluster
import faults
import jobs
import pytest
from distributed import Client, Future, span

WAYS = ("_exit", "abort", "segfault", "cpu limit", "SIGTERM", "SIGKILL")
LIMIT = 300 << 20  # of the memory charged after the move


class Place:
    """A collector, a scheduler, and one worker, which its nanny restarts each time."""

    def __init__(self, procs, client):
        self.procs, self.client = procs, client
        self.worker = self.start()

    def names(self):
        return self.client.run_on_scheduler(lambda dask_scheduler: [str(w.name) for w in dask_scheduler.workers.values()])

    def start(self, **options):
        worker = self.procs.start_worker(**options)
        cluster.wait_until(lambda: worker.name in self.names(), worker.name, 120, [worker])
        return worker

    def is_busy(self):
        return self.client.run_on_scheduler(lambda dask_scheduler: any(w.processing for w in dask_scheduler.workers.values()))

    def restore(self):
        """Makes sure that there is an idle worker, whatever a failed test has done to it or left running on it."""
        if self.is_busy():
            self.client.cancel([Future(key, self.client) for key in self.client.futures], force=True)
            self.worker.stop()
        if self.worker.poll() is not None:
            self.worker = self.start()

    @contextlib.contextmanager
    def another(self, **options):
        """One more worker, which is stopped afterwards in any case."""
        worker = self.start(**options)
        try:
            yield worker
        finally:
            worker.stop()
            cluster.wait_until(lambda: worker.name not in self.names(), f"{worker.name} to go")

    def run(self, name, function, *args, **options):
        return self.client.submit(function, *args, key=jobs.unique(name), **options).result(timeout=120)

    def processes(self):
        """The nanny, the worker and everything they started, including their agents."""
        group = [pid for pid, of, _ in cluster.processes() if of == self.worker.pid]
        return [*group, *self.procs.agents()]

    def agent_of(self, pid):
        for agent in self.procs.agents():
            words = cluster.strings_of(agent, "cmdline")
            if "--pid" in words and words[words.index("--pid") + 1] == str(pid):
                return agent
        return None


@pytest.fixture(scope="module")
def first_place(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("faults") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler(faults.PATIENT)
        with Client(procs.address) as client:
            yield Place(procs, client)


@pytest.fixture
def place(first_place):
    first_place.restore()
    return first_place


def died(found, name, marker):
    """The first attempt and its worker."""
    first, second = faults.attempts(found, name)
    assert first["pid"] == int(marker.read_text()) != second["pid"]
    assert second["status"] == "ok" and second["counted"]
    assert not first["counted"]
    return first, second, faults.by_pid(found)[first["pid"]]


def test_every_way_to_end(place, data, tmp_path):
    path, size = data["zlib"], os.path.getsize(data["zlib"])
    markers = {f"dies_{i}": tmp_path / str(i) for i in range(len(WAYS))}
    with span("dying"):
        for way, (name, marker) in zip(WAYS, markers.items()):
            assert place.run(name, faults.read_and_die, way, path, str(marker)) == size
    found = jobs.settled(place.procs, lambda r: all(len(faults.attempts(r, name)) == 2 for name in markers))
    for way, (name, marker) in zip(WAYS, markers.items()):
        first, second, gone = died(found, name, marker)
        assert first["status"] == "killed" and first["waste_reason"] == "killed", way
        assert first["read_bytes"] == second["read_bytes"] == size, way
        assert gone["goodbye"]["how"] == ("exit" if way == "_exit" else "killed"), way
        assert gone["goodbye"]["tasks_in_flight"] == 1, way
        assert gone["goodbye"]["cause"] is None, way  # only the parent learns the signal
        evidence = " ".join(gone["goodbye"]["evidence"])
        assert ("_exit was called with status 3" if way == "_exit" else "no exit handler ran") in evidence, way
        assert gone["tasks_started"] == gone["tasks_done"] + 1, way
    assert len(found["workers"]) == len(WAYS) + 1
    assert found["completeness"]["tasks"]["read_bytes"] == 2 * len(WAYS) * size
    faults.whole(found)
    assert faults.line_of(place.procs, run=found["run"]).startswith(f"{len(WAYS) + 1} workers seen, 0 records refused, 0 records lost")


def fill(place, group, name, with_agent, marker, path):
    """Runs a task that takes all memory of its worker's cgroup; True if the kernel killed only that worker.
    While much memory is being freed the kernel may kill any other process of the cgroup that needs some: the agent
    as well (tested in test_kill_all.py). So the nanny is not in it."""
    before = group.oom_kills()
    task = place.client.submit(faults.read_and_die, "memory", path, str(marker), key=jobs.unique(name), resources={"room": 1})
    pid = int(cluster.wait_until(lambda: marker.exists() and marker.read_text(), "the task to read"))
    mine = cluster.wait_until(lambda: place.agent_of(pid), "the agent")
    for each in [pid, mine] if with_agent else [pid]:
        group.put(each)
    assert (mine in group.pids()) == with_agent
    moved = time.time()

    def noticed():
        seen = faults.by_pid(place.procs.report_json()).get(pid)
        return seen and seen["last_seen"] > moved + 2  # it checks once per second

    cluster.wait_until(noticed, "the agent to look at its worker's group")
    Path(f"{marker}.go").touch()
    assert task.result(timeout=120) == os.path.getsize(path)
    assert group.oom_kills() > before
    return group.oom_kills() == before + 1


@pytest.mark.matrix
def test_out_of_memory(place, data, tmp_path):
    """The kernel kills the worker of a cgroup that is out of memory, and the report has the cgroup's count,
    whether the agent is in the cgroup or not."""
    size, done = os.path.getsize(data["zlib"]), []
    with cgroups.group("memory", "oom") as group:
        if group is None:
            pytest.skip("no memory groups of our own on this machine")
        group.limit_memory(LIMIT)
        with place.another(args=["--resources", "room=1"]), span("oom"):
            for agent in ("inside", "outside"):
                for attempt in range(5):
                    name, kills = f"hungry_{agent}_{chr(97 + attempt)}", group.oom_kills()
                    if fill(place, group, name, agent == "inside", tmp_path / name, data["zlib"]):
                        done.append((name, kills))
                        break
                    assert agent == "inside"
            found = jobs.settled(place.procs, lambda r: all(len(faults.attempts(r, name)) == 2 for name, _ in done))
    assert len(done) == 2, "the kernel killed the agent as well each time"
    for name, kills in done:
        first, _, gone = died(found, name, tmp_path / name)
        assert first["status"] == "killed" and first["read_bytes"] == size
        assert gone["goodbye"]["cause"] == "killed by the kernel: the cgroup was out of memory"
        assert any(f"oom_kill rose from {kills} to {kills + 1}" in e for e in gone["goodbye"]["evidence"]), gone["goodbye"]
    faults.whole(found)


def both_ways(pid):
    """Mappings that are both writable and executable."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if "w" in line.split()[1] and "x" in line.split()[1]]


def test_no_writable_and_executable_memory(place, data):
    """Neither in the library's segments, nor in a worker whose patches are complete, nor in the agents."""
    procs = place.procs
    assert place.run("patched", faults.read_a_little, data["zlib"], 100) == 100
    for program in ("libcrema.so", "crema-agent", "crema"):
        headers = subprocess.run(["readelf", "-lW", procs.build / program], capture_output=True, text=True, check=True).stdout
        flags = [line.split()[-2] for line in headers.splitlines() if line.strip().startswith(("LOAD", "GNU_STACK"))]
        assert flags and not any("W" in f and "E" in f for f in flags), (program, flags)
        assert "TEXTREL" not in subprocess.run(["readelf", "-dW", procs.build / program], capture_output=True, text=True).stdout
    workers = list(place.client.run(os.getpid).values())
    for pid in workers:
        assert "libcrema.so" in Path(f"/proc/{pid}/maps").read_text()
    for pid in [*workers, *procs.agents(), procs.collector.pid]:
        assert both_ways(pid) == [], pid


@pytest.mark.matrix
def test_over_the_nannys_limit(place, data, tmp_path):
    marker, size, limit = tmp_path / "marker", os.path.getsize(data["zlib"]), 500 << 20
    # The agent checks once per second, and must have seen the worker's size.
    slow = {"DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False", "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "3s"}
    large = {"env": place.procs.worker_env(env=slow), "args": ["--memory-limit", str(limit), "--resources", "room=1"]}
    with place.another(**large), span("limit"):
        assert place.run("large", faults.hold_and_wait, data["zlib"], str(marker), limit, resources={"room": 1}) == size
        found = jobs.settled(place.procs, lambda r: len(faults.attempts(r, "large")) == 2)
    first, _, gone = died(found, "large", marker)
    assert first["status"] == "killed" and first["read_bytes"] == size
    assert gone["goodbye"]["cause"] == "killed by the nanny: over the memory limit"
    faults.whole(found)


@pytest.mark.matrix
def test_preempted(place, data, tmp_path):
    """As batch systems do it: SIGTERM to every process of the job, including the agent, and SIGKILL soon after.
    The running attempt is reported up to its progress, and finished ones are there. This must be the last test here."""
    marker = tmp_path / "marker"
    with span("preempted"):
        keys = [jobs.unique("done") for _ in range(40)]
        assert place.client.gather(place.client.map(faults.count_up, range(40), key=keys)) == list(range(1, 41))
        slow = place.client.submit(jobs.read_slowly_once, data["zlib"], 1 << 16, str(marker), key=jobs.unique("slow"))
        cluster.wait_until(marker.exists, "the task to start")
        processes = place.processes()
        for pid in processes:
            cluster.kill(pid, signal.SIGTERM)
        time.sleep(2)  # the grace period of a batch system
        for pid in processes:
            cluster.kill(pid, signal.SIGKILL)
        place.worker = place.start()
        assert slow.result(timeout=120) == 0
    found = jobs.settled(place.procs, lambda r: len(faults.attempts(r, "slow")) == 2)
    first, second = faults.attempts(found, "slow")
    assert first["status"] in ("killed", "lost") and not first["counted"]
    assert first["read_bytes"] > 0
    assert second["status"] == "ok" and second["counted"]
    assert sorted(t["key"] for t in jobs.tasks_of(found, "done") if t["counted"]) == sorted(keys)
    faults.whole(found)
