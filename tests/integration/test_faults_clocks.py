# SPDX-License-Identifier: BSD-3-Clause
"""Clocks that differ by minutes between nodes, that are set while tasks run, nodes that were booted at other
times, and nodes that freeze for a while: all times in the report are by the collector's clock."""

import os
import stat
import struct
import subprocess
import time
from pathlib import Path

import cgroups
import cluster
import faults
import host
import jobs
import pytest
from distributed import Client, span

HERE = Path(__file__).parent
pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def skew(tmp_path_factory):
    """The library that shifts a program's clock."""
    library = tmp_path_factory.mktemp("skew") / "skewed_clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "skewed_clock.c"], check=True)
    return library


class Clock:
    """A node's clock, `ahead` seconds ahead of ours."""

    def __init__(self, directory, library, ahead):
        directory.mkdir(parents=True)
        self.file, self.agent, self.library = directory / "clock", directory / "crema-agent", library
        self.set(ahead)

    def set(self, ahead):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("d", ahead))

    def env(self, procs):
        """The environment of a worker on that node: it sets the worker's clock and its agent's."""
        shim = procs.worker_env()
        self.agent.write_text(f'#!/bin/sh\nLD_PRELOAD="{self.library}" exec "{procs.build}/crema-agent" "$@"\n')
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)
        return {**shim, "LD_PRELOAD": f"{shim['LD_PRELOAD']} {self.library}", "CREMA_AGENT": str(self.agent),
                "CREMA_TEST_CLOCK": str(self.file)}

    def variables(self):
        return {"LD_PRELOAD": str(self.library), "CREMA_TEST_CLOCK": str(self.file)}

    def prefix(self):
        return ["env", *(f"{name}={value}" for name, value in self.variables().items())]


class Site:
    def __init__(self, procs, client):
        self.procs, self.client = procs, client

    def worker(self, env=None, prefix=(), **options):
        worker = self.procs.start_worker(env=env, prefix=prefix, **options)
        cluster.wait_until(lambda: worker.name in self.names(), worker.name, 120, [worker])
        return worker

    def names(self):
        return {str(name): address for address, name in self.client.run_on_scheduler(
            lambda dask_scheduler: {w.address: str(w.name) for w in dask_scheduler.workers.values()}).items()}

    def run(self, name, n, ahead=0.0):
        """n tasks, each on any worker; their times must be between ours (by a clock that is `ahead` seconds ahead)."""
        keys = [jobs.unique(name) for _ in range(n)]
        with span(name):
            began = time.time() + ahead
            futures = self.client.map(faults.count_up, range(n), key=keys)
            assert self.client.gather(futures) == list(range(1, n + 1))
            ended = time.time() + ahead
        found = jobs.settled(self.procs, lambda r: len(jobs.tasks_of(r, name)) >= n)
        tasks = jobs.tasks_of(found, name)
        assert sorted(t["key"] for t in tasks) == sorted(keys)
        assert all(t["counted"] and t["status"] == "ok" for t in tasks)
        for task in tasks:
            assert began - 0.05 <= task["start"] <= task["stop"] <= ended + 0.05, (began, task, ended)
        assert not any(w["silent"] for w in found["workers"])
        faults.whole(found)
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes, skew):
    directory = tmp_path_factory.mktemp("clocks")
    with cluster.Cluster(directory / "cluster", homes) as procs:
        clock = Clock(directory / "collector", skew, 0.0)
        procs.start_collector(prefix=clock.prefix())
        procs.start_scheduler()
        with Client(procs.address) as client:
            site = Site(procs, client)
            site.clock, site.clocks = clock, []
            # The report runs on the collector's machine.
            procs.report = lambda *args, **options: cluster.Cluster.report(procs, *args, **{**options, "env": clock.variables()})
            for i, ahead in enumerate((7 * 60.0, -5 * 60.0)):
                site.clocks.append(Clock(directory / str(i), skew, ahead))
                site.worker(env=site.clocks[-1].env(procs))
            yield site


def test_nodes_differ_by_minutes(site):
    """One is 7 minutes ahead, the other one 5 minutes behind."""
    found = site.run("apart", 200)
    assert len({t["pid"] for t in jobs.tasks_of(found, "apart")}) == 2
    first = {w["pid"]: w["first_seen"] for w in found["workers"]}
    assert max(first.values()) - min(first.values()) < 60


def test_a_nodes_clock_is_set(site):
    """One back by an hour, one forward by a day, while worker and agent live."""
    site.clocks[0].set(-3600.0)
    site.clocks[1].set(86400.0)
    site.run("set", 200)


def test_the_collectors_clock_is_set(site):
    """It is set back by an hour and the collector is restarted: the new journal's segment is older by its name than the
    first. All times are by its new clock, and earlier tasks keep their lengths."""
    site.procs.collector.kill()
    site.procs.collector.wait(60)
    site.clock.set(-3600.0)
    site.procs.start_collector(prefix=site.clock.prefix())
    site.run("back", 200, ahead=-3600.0)
    earlier = [r for r in site.procs.report("--list").stdout.splitlines() if r.strip()]
    assert len(earlier) >= 3


def test_a_task_across_the_change(site):
    """It started by the old clock and ended by the new one: its length is what its worker measured."""
    name = "across"
    with span(name):
        future = site.client.submit(time.sleep, 4, key=jobs.unique(name))
        cluster.wait_until(lambda: site.client.processing() and any(site.client.processing().values()), "the task")
        time.sleep(1.5)
        site.procs.collector.kill()
        site.procs.collector.wait(60)
        site.clock.set(1800.0)
        site.procs.start_collector(prefix=site.clock.prefix())
        assert future.result(timeout=60) is None
        ended = time.time() + 1800.0
    found = jobs.settled(site.procs, lambda r: jobs.tasks_of(r, name))
    task, = jobs.tasks_of(found, name)
    assert task["stop"] - task["start"] == pytest.approx(task["wall_seconds"], abs=0.01)
    assert task["stop"] == pytest.approx(ended, abs=5)
    assert found["metrics"]["wall_time"] < 60
    assert any("clock was set" in note for note in found["completeness"]["notes"]), found["completeness"]["notes"]
    faults.whole(found)


def test_other_boot_times(new_cluster):
    """A node that was booted 40 days before ours: it has other boottime and monotonic clocks."""
    words = host.namespaces("-T", "--boottime", str(40 * 86400), "--monotonic", str(35 * 86400), "-f")
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    with Client(procs.address) as client:
        site = Site(procs, client)
        worker = site.worker(prefix=lambda _, env: [*words, "env", *(f"{k}={v}" for k, v in env.items())])
        worker.prefixed = True
        site.run("booted", 50)


@pytest.mark.parametrize("seconds", [5, 25])
def test_a_node_stands_still(site, data, tmp_path, seconds):
    """Nanny, worker and agent are frozen in the middle of a task, as on a suspended machine, and continue."""
    marker = tmp_path / "marker"
    with cgroups.group("freezer", f"still{seconds}") as group:
        if group is None:
            pytest.skip("no freezer groups of our own on this machine")
        worker = site.procs.workers[0]
        pid = site.client.run(os.getpid, workers=[site.names()[worker.name]]).popitem()[1]
        agent, = [a for a in site.procs.agents() if str(pid) in cluster.strings_of(a, "cmdline")]
        name = f"still_{seconds}"
        with span(name):
            future = site.client.submit(faults.read_for, data["zlib"], 3.0, str(marker), key=jobs.unique(name),
                                        workers=[worker.name])
            cluster.wait_until(marker.exists, "the task to start")
            for each in [agent, *[p for p, g, _ in cluster.processes() if g == worker.pid]]:
                group.put(each)
            group.freeze(True)
            time.sleep(seconds)
            group.freeze(False)
            read = future.result(timeout=60)
        found = jobs.settled(site.procs, lambda r: [t for t in jobs.tasks_of(r, name) if t["status"] == "ok"])
        for each in group.pids():
            group.put_out(each)
    task, = jobs.tasks_of(found, name)
    assert task["status"] == "ok" and task["counted"]
    assert task["read_bytes"] == read
    assert task["wall_seconds"] >= seconds
    assert not any(w["silent"] for w in found["workers"])
    faults.whole(found)
