# SPDX-License-Identifier: BSD-3-Clause
"""Networks that are slow, break, are cut in the middle of a frame or let nothing pass, and a collector that
accepts nothing: agents keep their records, up to their limit, and the workers do not notice."""

import os
import random
import statistics
import subprocess
import time

import cluster
import faults
import jobs
import pytest
import relay
from distributed import Client, span

BOUND = 24 << 10  # of the spool


class Site:
    """A collector, a scheduler, and workers that each reach the collector in a different way."""

    def __init__(self, procs, client, state):
        self.procs, self.client, self.state = procs, client, state

    def worker(self, target, prefix=None, **env):
        """A worker whose agent sends to target; its spool is a separate folder."""
        extra = {**self.procs.worker_env(), "CREMA_COLLECTOR": target, **env,
                 "XDG_STATE_HOME": str(self.state / target.replace(":", "-"))}
        worker = self.procs.start_worker(env=extra, prefix=prefix or (), args=["--resources", f"{target}=1"], nthreads=2)
        cluster.wait_until(lambda: worker.name in self.client.run_on_scheduler(
            lambda dask_scheduler: [str(w.name) for w in dask_scheduler.workers.values()]), worker.name, 120, [worker])
        worker.target, worker.spool = target, self.state / target.replace(":", "-") / "crema" / "spool"
        cluster.wait_until(lambda: cluster.agents_of(target), "the agent", 60)
        return worker

    def submit(self, worker, name, n, function=faults.count_up, *args):
        keys = [jobs.unique(name) for _ in range(n)]
        futures = [self.client.submit(function, *(args or (i,)), key=key, pure=False, resources={worker.target: 1})
                   for i, key in enumerate(keys)]
        return keys, futures

    def run(self, worker, name, n):
        keys, futures = self.submit(worker, name, n)
        assert self.client.gather(futures) == list(range(1, n + 1))
        return keys

    def once_each(self, name, keys):
        found = jobs.settled(self.procs, lambda r: len(jobs.tasks_of(r, name)) >= len(keys))
        tasks = jobs.tasks_of(found, name)
        assert sorted(t["key"] for t in tasks) == sorted(keys)
        assert all(t["counted"] and t["status"] == "ok" for t in tasks)
        faults.whole(found)
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("network") / "cluster", homes) as procs:
        procs.target = procs.target.replace("127.0.0.1", "0.0.0.0")
        procs.start_collector()
        procs.start_scheduler()
        with Client(procs.address) as client:
            yield Site(procs, client, tmp_path_factory.mktemp("state"))


def spooled_bytes(worker):
    return sum(p.stat().st_size for p in worker.spool.glob("*.crema")) if worker.spool.exists() else 0


def test_delays_resets_and_cuts(site):
    """200 ms each way; then, while tasks run, connections that end with RST, and ones that break at any point."""
    rng = random.Random(6)
    with relay.Relay(site.procs.port) as between:
        worker = site.worker(f"127.0.0.1:{between.port}")
        with span("rough"):
            between.up_delay_s = between.delay_s = 0.2
            keys = site.run(worker, "rough", 100)
            between.up_delay_s = between.delay_s = 0.0
            before = between.connections
            for _ in range(4):
                more, futures = site.submit(worker, "rough", 100)
                time.sleep(rng.uniform(0.1, 0.5))
                between.reset()
                site.client.gather(futures)
                keys += more
            cluster.wait_until(lambda: between.connections > before, "a new connection", 60)
            for _ in range(3):
                before, between.up_limit = between.connections, rng.randrange(1000, 20_000)
                keys += site.run(worker, "rough", 50)
                between.reset()
                cluster.wait_until(lambda: between.connections > before, "a new connection", 60)
            between.up_limit = None
        found = site.once_each("rough", keys)
        assert sum(w["tasks_done"] for w in found["workers"]) == len(keys)
        assert "1 workers seen, 0 records refused, 0 records lost" in faults.line_of(site.procs)


def test_a_collector_that_takes_nothing(site, data):
    """Connections are accepted, and nothing passes. The spool grows to its limit; beyond it the details of tasks are dropped
    and counted; the totals are exact once data passes again, and no task was slower meanwhile."""
    size, n = 1000, 1500
    with relay.Relay(site.procs.port) as between:
        worker = site.worker(f"127.0.0.1:{between.port}", CREMA_SPOOL_BYTES="24k")
        with span("free"):
            _, futures = site.submit(worker, "free", 300, faults.read_a_little, data["zlib"], size)
            site.client.gather(futures)
        free = jobs.settled(site.procs, lambda r: len(jobs.tasks_of(r, "free")) >= 300)
        with span("held"):
            between.stop()
            between.reset()
            keys, futures = site.submit(worker, "held", n, faults.read_a_little, data["zlib"], size)
            assert site.client.gather(futures) == [size] * n
            cluster.wait_until(lambda: spooled_bytes(worker) > BOUND * 3 // 4, "the spool to fill", 60)
            time.sleep(3)
            assert spooled_bytes(worker) <= BOUND
            between.go()
        found = jobs.settled(site.procs, lambda r: r["workers"][0]["tasks_done"] == n + 300 and jobs.tasks_of(r, "held"))
        cluster.wait_until(lambda: spooled_bytes(worker) == 0, "the spool to be sent", 60)
    tasks = jobs.tasks_of(found, "held")
    done, (one,) = found["completeness"], found["workers"]
    assert 0 < len(tasks) < n and {t["key"] for t in tasks} < set(keys)
    assert done["records_refused"] >= n - len(tasks)
    assert done["records_lost"] == done["tasks_refused"] == done["records_bad"] == 0
    assert one["tasks_done"] == one["tasks_started"] == n + 300
    assert one["tasks"]["read_bytes"] == (n + 300) * size
    assert sum(f["read_bytes"] for f in found["files"] if f["path"] == data["zlib"]) == n * size
    line = faults.line_of(site.procs)
    assert line.startswith("1 workers seen, ") and " 0 records refused" not in line and " 0 records lost" in line, line
    # the end records of some were dropped
    slow, fast = (statistics.median(t["wall_seconds"] for t in rows if t["wall_seconds"] is not None)
                  for rows in (tasks, jobs.tasks_of(free, "free")))
    assert slow < 4 * fast + 1e-3  # a worker that waited for its agent would take seconds


def link(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=60)


class Node:
    """A network namespace with two links to this one: Dask's, and the one to the collector."""

    def __init__(self):
        words = ["unshare", "-n"]
        if os.geteuid() or subprocess.run([*words, "true"], capture_output=True).returncode:
            pytest.skip("no namespaces of our own on this machine")
        self.holder = subprocess.Popen([*words, "sh", "-c", "echo ready; exec sleep 100000"], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"
        self.inside = ["nsenter", "-t", str(self.holder.pid), "-n"]
        self.net = f"10.{200 + os.getpid() % 50}"
        subprocess.run([*self.inside, "ip", "link", "set", "lo", "up"], check=True)
        for i in (1, 2):
            ours, theirs = f"cr{os.getpid() % 100000}o{i}", f"cr{os.getpid() % 100000}t{i}"
            link("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", str(self.holder.pid))
            link("addr", "add", f"{self.net}.{i}.1/24", "dev", ours)
            link("link", "set", ours, "up")
            subprocess.run([*self.inside, "ip", "addr", "add", f"{self.net}.{i}.2/24", "dev", theirs], check=True)
            subprocess.run([*self.inside, "ip", "link", "set", theirs, "up"], check=True)
        self.cable = f"cr{os.getpid() % 100000}o2"

    def close(self):
        self.holder.kill()
        self.holder.wait()


@pytest.mark.matrix
@pytest.mark.parametrize("seconds", [4, 45])
def test_partition(tmp_path_factory, homes, seconds):
    """The link between a worker's node and the collector is down for a while; Dask's own is not."""
    node = Node()
    try:
        with cluster.Cluster(tmp_path_factory.mktemp("partition") / "cluster", homes) as procs:
            target = f"{node.net}.2.1:{procs.port}"
            procs.target = f"0.0.0.0:{procs.port}"
            procs.start_collector()
            procs.target = target
            procs.host = f"{node.net}.1.1"
            procs.start_scheduler()
            worker = procs.start_worker(prefix=lambda _, env: [*node.inside, "env", *(f"{k}={v}" for k, v in env.items())],
                                        args=["--host", f"{node.net}.1.2"], nthreads=2)
            with Client(procs.address) as client:
                client.wait_for_workers(1, timeout=120)
                keys = []
                with span("apart"):
                    for round_ in range(3):
                        if round_ == 1:
                            link("link", "set", node.cable, "down")
                            began = time.monotonic()
                        new = [jobs.unique("apart") for _ in range(200)]
                        assert client.gather(client.map(faults.count_up, range(200), key=new)) == list(range(1, 201))
                        keys += new
                        if round_ == 1:
                            time.sleep(max(0, began + seconds - time.monotonic()))
                            assert len(jobs.tasks_of(procs.report_json(), "apart")) <= 200
                            link("link", "set", node.cable, "up")
                found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "apart")) >= 600)
                assert sorted(t["key"] for t in jobs.tasks_of(found, "apart")) == sorted(keys)
                assert all(t["counted"] for t in jobs.tasks_of(found, "apart"))
                faults.whole(found)
                assert worker.poll() is None
    finally:
        node.close()
