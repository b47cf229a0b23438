# SPDX-License-Identifier: BSD-3-Clause
"""A collector whose folder is a separate file system, for tests with disks that are full, read-only or gone."""

import contextlib
import json
import os
import subprocess
import urllib.request

import cluster
import faults
import host
import jobs
from distributed import Client, span

SMALL = 'mount -t tmpfs -o size=8m,mode=700 none "{0}"'


def tiny_tasks(client, name, n, step=200):
    """Runs n tiny tasks; returns their keys."""
    keys = []
    while len(keys) < n:
        new = [jobs.unique(name) for _ in range(step)]
        assert client.gather(client.map(faults.count_up, range(step), key=new)) == list(range(1, step + 1))
        keys += new
    return sorted(keys)


def run_tasks(client, name, n, step=200):
    """As tiny_tasks(), in a span of that name."""
    with span(name):
        return tiny_tasks(client, name, n, step)


class SmallDisk(cluster.Cluster):
    """The collector's folder is a small file system, mounted only for the collector and the programs that read it."""

    def __init__(self, directory, env, mount=SMALL):
        super().__init__(directory, env)
        self.journal.mkdir()
        self.holder = subprocess.Popen([*host.namespaces("-m"), "sh", "-ec", mount.format(self.journal) +
                                        "; echo ready; exec sleep 100000"], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"
        self.inside = ["nsenter", "-t", str(self.holder.pid), *([] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]), "-m"]

    def stop(self, agent_seconds=10.0):
        super().stop(agent_seconds)
        self.holder.kill()
        self.holder.wait()

    def shell(self, script):
        return subprocess.run([*self.inside, "sh", "-c", script], cwd="/", capture_output=True, text=True, timeout=60)

    def fill(self):
        self.shell(f'dd if=/dev/zero of="{self.journal}/filler" bs=4k 2>/dev/null')
        free = os.statvfs(f"/proc/{self.holder.pid}/root{self.journal}")
        assert free.f_bavail == 0

    def report(self, *args, directory=None, env=None, full=True):
        return subprocess.run([*self.inside, self.build / "crema", "report", "--dir", directory or self.journal, *cluster.with_tables(args, full)],
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


@contextlib.contextmanager
def site(tmp_path_factory, homes, disk=SmallDisk):
    """A collector on a separate disk, and two workers that spool in procs.spool; procs.client."""
    state = tmp_path_factory.mktemp("state")
    with disk(tmp_path_factory.mktemp("small") / "cluster", {**homes, "XDG_STATE_HOME": str(state)}) as procs:
        procs.spool = state / "crema" / "spool"
        procs.start_collector(prefix=procs.inside)
        procs.start_scheduler()
        for _ in range(2):
            procs.start_worker(nthreads=2)
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            procs.client = client
            yield procs


def status(procs, name="status.json"):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/{name}", timeout=60) as answer:
        return json.load(answer)


def spooled(procs):
    return [p for p in procs.spool.glob("*.crema")] if procs.spool.exists() else []


def stuck(procs, why):
    """The collector's page reports the error, and it accepts no records."""
    cluster.wait_until(lambda: status(procs)["journal"]["state"] == "stuck", "the journal to be stuck", 60)
    assert status(procs)["journal"]["error"] == status(procs, "live.json")["journal_error"] == why
    top = subprocess.run([procs.build / "crema", "top", "--once", "--http", f"127.0.0.1:{procs.http_port}"],
                         env=procs.env, capture_output=True, text=True, timeout=60)
    assert f"the journal cannot be written: {why}" in top.stdout
    before = status(procs)["records"]
    cluster.wait_until(lambda: spooled(procs), "the agent to spool", 60)
    assert status(procs)["records"] == before
    assert procs.collector.poll() is None


def flows(procs):
    cluster.wait_until(lambda: status(procs)["journal"]["state"] == "ok", "the journal to be written again", 60)


def recovered(procs, name, keys):
    """Every task is in the report once, and the agents' spools are empty."""
    flows(procs)
    found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, name)) >= len(keys))
    tasks = jobs.tasks_of(found, name)
    assert sorted(t["key"] for t in tasks) == keys
    assert all(t["counted"] for t in tasks)
    faults.whole(found)
    assert status(procs, "live.json")["journal_error"] is None
    cluster.wait_until(lambda: not spooled(procs), "the spool to be sent", 60)
    return found
