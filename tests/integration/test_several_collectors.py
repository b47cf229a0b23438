"""Collectors behind HAProxy as configured in docs/admin.md: one is killed, one is drained, and the reports and the live page over all
their directories have the sums of what was sent, as the swarm or the tasks themselves counted it."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time
import urllib.request
from collections import Counter

import cluster
import haproxy
import prometheus_server
import pytest
import swarms
import test_live
from distributed import Client, as_completed, span
from one_page import Page
from relay import Relay
from test_tls import certificates  # noqa: F401 (fixture)

SWARMS = [pytest.param(400, False, id="400"), pytest.param(400, True, id="400-TLS", marks=pytest.mark.further),
          pytest.param(10_000, False, id="10000", marks=pytest.mark.matrix), pytest.param(5000, True, id="5000-TLS", marks=pytest.mark.matrix)]


class Collectors:
    """n collectors with the same token, each with a separate directory."""

    def __init__(self, directory, env, n):
        env = {"CREMA_TOKEN_FILE": str(directory / "token"), **env}
        self.each = {f"front-{k}": cluster.Cluster(directory / f"front-{k}", env) for k in range(1, n + 1)}
        for one in self.each.values():
            one.start_collector()
        self.env = next(iter(self.each.values())).env

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.each.values():
            one.stop(0)

    def ports(self):
        return {name: one.port for name, one in self.each.items()}

    def kill(self, name):
        """Kills it after it was stopped for a second, so that its agents have sent records that it never accepts."""
        self.each[name].collector.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.each[name].collector.kill()
        self.each[name].collector.wait()

    def report(self, *names):
        """One report over the directories of these collectors, or of all."""
        dirs = [word for name in names or self.each for word in ("--dir", self.each[name].journal)]
        done = subprocess.run([cluster.BUILD / "crema", "report", *dirs, "--json", "-"], env=self.env, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


    def page(self, directory):
        """The live page over all directories."""
        return Page(directory, [one.journal for one in self.each.values()], self.env)


def same_sums(live, report):
    """The page's sums are those of the report's workers, to the byte. On a machine that 10,000 workers keep busy, some end before
    their first totals, and without a task."""
    told = [worker for worker in report["workers"] if worker["tasks_started"] is not None]
    assert not {task["worker"] for task in report["tasks"]} - {worker["worker"] for worker in told}
    for name in test_live.COUNTERS:
        layer = name.removesuffix("_bytes")
        if layer in live["totals"]:
            parts = [worker[part][name] for worker in told for part in test_live.PARTS.values()]
            assert live["totals"][layer] == (None if None in parts else sum(parts)), name
    assert live["tasks"]["done"] == sum(worker["tasks_done"] for worker in told)
    for how in ("ok", "erred", "killed"):
        assert live["tasks"][how] == sum(task["status"] == how for task in report["tasks"]), how
    assert live["tasks"]["events"] == (report["metrics"]["total_events"] or 0)


def ended(page, workers):
    """Its live.json when it has read the goodbyes of all workers."""
    page.wait(lambda: test_live.gone(page.live()["workers"]) and page.live()["workers"]["seen"] == workers, "all goodbyes")
    return page.caught_up()


def status(one):
    with urllib.request.urlopen(f"http://127.0.0.1:{one.http_port}/status.json", timeout=60) as answer:
        return json.load(answer)


def test_real_workers_move(tmp_path, certificates, homes):  # noqa: F811
    """Dask workers with TLS on four nodes. One collector is killed while tasks run and restarted, then the other is drained and
    stopped: each task is there once, with its bytes, and the live page counts it once."""
    sizes = [100_000 + 1000 * i for i in range(20)]
    paths = [tmp_path / f"file-{i}" for i in range(20)]
    for path, size in zip(paths, sizes):
        path.write_bytes(os.urandom(size))
    env = {**homes, "DASK_CONFIG": str(certificates / "dask")}
    with Collectors(tmp_path, env, 2) as fronts, haproxy.HAProxy(tmp_path, fronts.ports()) as proxy, fronts.page(tmp_path) as page:
        procs = cluster.Cluster(tmp_path / "dask", fronts.env)
        nodes = [Relay(proxy.port, source=f"127.0.0.{2 + k}") for k in range(4)]
        try:
            procs.start_scheduler()
            for node in nodes:
                procs.start_worker(env={"CREMA_COLLECTOR": f"127.0.0.1:{node.port}"})
            from distributed.security import Security
            security = Security(tls_ca_file=str(certificates / "ca.pem"), tls_client_cert=str(certificates / "both.pem"), require_encryption=True)
            with Client(procs.address, security=security) as client:
                client.wait_for_workers(4, timeout=120)
                assert all("(TLS)" in one.collector.text() for one in fronts.each.values())
                cluster.wait_until(lambda: all(proxy.connections(name) for name in fronts.each), "agents at both collectors", 60)
                truth = work(client, fronts, proxy, paths)
                page.wait(lambda: page.live()["workers"]["connected"] == 4, "the page to show all workers")
            procs.stop()
            live = ended(page, 4)
            assert json.loads(page.get("report.json"))["metrics"]["num_tasks"] == len(truth)
            seen = {name: fronts.report(name)["metrics"]["num_tasks"] for name in fronts.each}
            report = fronts.report()
        finally:
            procs.stop(0)
            for node in nodes:
                node.close()
    rows = [task for task in report["tasks"] if task["prefix"] == "moves"]
    assert Counter(task["key"] for task in rows) == Counter(truth.keys())  # none lost, none duplicated
    assert {task["key"]: task["read_bytes"] for task in rows} == truth
    assert report["metrics"]["num_tasks"] == len(truth) and report["completeness"]["records_lost"] == 0
    assert report["completeness"]["workers_seen"] == 4
    assert all(0 < n < len(truth) for n in seen.values())  # neither has all
    same_sums(live, report)
    assert live["completeness"]["records_lost"] == 0 and live["journals_trouble"] is None


def work(client, fronts, proxy, paths):
    """Two seconds of tasks before, between and after; returns what each task read."""
    truth = {}

    def read_whole(path):  # pickled by value: the workers cannot import this file
        time.sleep(0.05)
        with open(path, "rb", buffering=0) as file:
            return len(file.read())

    def tasks(round):
        futures = [client.submit(read_whole, str(path), key=f"moves-{round:04x}{i:028x}") for i, path in enumerate(paths * 4)]
        for future, size in as_completed(futures, with_results=True):
            truth[future.key] = size

    with span("moves"):
        tasks(0)
        killed = threading.Timer(0.5, fronts.kill, ["front-1"])
        killed.start()
        tasks(1)
        killed.join()
        tasks(2)
        cluster.wait_until(lambda: proxy.connections("front-2") == 4, "all agents at the one that is left", 60)
        fronts.each["front-1"].start_collector()
        cluster.wait_until(lambda: proxy.state("front-1").startswith("UP"), "the killed one to be back", 60)
        drained = threading.Timer(0.5, proxy.drain, ["front-2"])
        drained.start()
        tasks(3)
        drained.join()
        cluster.wait_until(lambda: proxy.connections("front-1") == 4, "all agents at the other one", 60)
        assert fronts.each["front-2"].collector.stop() == 0
        tasks(4)
    return truth


def pieces(fronts):
    """{worker: {(first number, count)}} of all journals, and the number of frames that are in two of them."""
    found, again = {}, 0
    for one in fronts.each.values():
        for worker, parts in swarms.journaled(one.journal).items():
            again += len(found.setdefault(worker, set()) & set(parts))
            found[worker] |= set(parts)
    return found, again


@pytest.mark.parametrize("workers,with_tls", SWARMS)
def test_a_swarm_moves(tmp_path, certificates, homes, workers, with_tls):  # noqa: F811
    """Of four collectors one is killed and one is drained while all workers send: every acknowledged record is in one of the journals,
    and the sums are those of the tasks that were sent. Two swarms through two balancers, as one has too few descriptors for 10,000."""
    swarms.build()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seconds, rate = (12, 5 * workers) if workers == 400 else (20, workers)
    env = {**homes, "DASK_CONFIG": str(certificates / "dask")} if with_tls else homes
    with Collectors(tmp_path, env, 4) as fronts, contextlib.ExitStack() as stack:
        page = stack.enter_context(fronts.page(tmp_path))
        assert all(("(TLS)" in one.collector.text()) == with_tls for one in fronts.each.values())
        proxies, halves = [], []
        for k in range(2):
            (tmp_path / f"half-{k}").mkdir()
            # Each connection has a separate address, as nodes do.
            proxies.append(stack.enter_context(haproxy.HAProxy(tmp_path / f"half-{k}", fronts.ports(), ["tcp-request connection set-src src_port"])))
            first = fronts.each["front-1"]
            first.target = f"127.0.0.1:{proxies[k].port}"
            halves.append(swarms.Swarm(first, tmp_path / f"half-{k}", workers=workers // 2, first=k * workers // 2, rate=rate // 2,
                                       seconds=seconds, frame=10, starts=True))

        def connections(name):
            return sum(proxy.connections(name) for proxy in proxies)

        cluster.wait_until(lambda: sum(map(connections, fronts.each)) == workers, "the workers to connect", 60 if workers == 400 else 300)
        shares = {name: connections(name) for name in fronts.each}
        assert min(shares.values()) > workers / 8, shares
        time.sleep(seconds / 4)
        fronts.kill("front-2")
        time.sleep(seconds / 4)
        for proxy in proxies:
            proxy.drain("front-3")
        cluster.wait_until(lambda: connections("front-3") == 0, "the drained one to be empty", 120)
        assert fronts.each["front-3"].collector.stop() == 0
        sent = Counter()
        for half in halves:
            sent.update({name: n for name, n in half.result().items() if isinstance(n, (int, float))})
        found, again = pieces(fronts)
        report, live, counters = fronts.report(), ended(page, workers), page.counters()
    assert sent["records_sent"] == sent["records_acked"] and sent["records_sent"] > 0.5 * seconds * rate
    assert len(found) == workers and all(swarms.is_whole(parts) for parts in found.values())
    assert sum(count for parts in found.values() for _, count in parts) == sent["messages"]
    assert report["metrics"]["num_tasks"] == report["metrics"]["num_chunks"] == sent["tasks"]
    assert report["metrics"]["total_events"] == sent["tasks"] * 50_000
    assert sum(task["read_bytes"] for task in report["tasks"]) == sent["read_bytes"]
    assert report["completeness"]["records_lost"] == 0 and report["completeness"]["workers_seen"] == workers
    same_sums(live, report)
    assert live["completeness"]["records_lost"] == 0 and live["journals_trouble"] is None
    assert sum(n for name, n in counters.items() if name.startswith("crema_tasks_total")) == sent["tasks"]
    print(f"{workers} workers{' with TLS' * with_tls}, {shares}: {sent['records_sent']} task records in {sent['seconds'] / 2:.0f} s, {sent['tasks']} tasks, "
          f"{again} frames in two journals; acknowledged after {sent['ack_p50_ms'] / 2:.0f}, {sent['ack_p99_ms'] / 2:.0f} ms (p50, p99)")


def test_prometheus_adds_them_up(tmp_path, homes):
    """The queries of docs/prometheus.md over two collectors give the sums of both swarms."""
    swarms.build()
    text = (cluster.ROOT / "docs" / "prometheus.md").read_text()
    queries = dict(re.findall(r"^\| ([a-z, ]+) \| `(sum\(.*\))` \|$", text.partition("## Several collectors")[2], re.M))
    with Collectors(tmp_path, homes, 2) as fronts:
        ports = [one.http_port for one in fronts.each.values()]
        with prometheus_server.Prometheus(tmp_path / "prometheus", *ports) as prometheus:
            sent = Counter()
            running = []
            for k, one in enumerate(fronts.each.values()):
                (tmp_path / str(k)).mkdir()
                running.append(swarms.Swarm(one, tmp_path / str(k), workers=20 + 10 * k, first=100 * k, rate=100, seconds=20, frame=10, starts=True))
            cluster.wait_until(lambda: prometheus.value(queries["workers"]) == 50, "all workers to be seen", 60)
            for swarm in running:
                sent.update({name: n for name, n in swarm.result().items() if isinstance(n, int)})
            ended = time.time() + 1
            cluster.wait_until(lambda: all(float(row[1][1]) > ended for row in prometheus.query("timestamp(crema_build_info)")), "a scrape", 60)
            found = {name: prometheus.value(query) for name, query in queries.items()}
    assert found == {"ended tasks": sent["tasks"], "events": 50_000 * sent["tasks"], "workers": 0, "workers that ended": 50}
