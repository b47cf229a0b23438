"""live.json, /metrics and crema top over a real run: they say what the report says, and dead workers' bytes stay."""

import json
import urllib.request

import cluster
import jobs
import pytest
from distributed import Client

LAYERS = ("read", "mapped", "network_read", "network_write", "comm_read", "comm_write", "decompress_in", "decompress_out")


def get(procs, path, headers=None):
    request = urllib.request.Request(f"http://127.0.0.1:{procs.http_port}/{path}", headers=headers or {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read(), answer.headers


def live(procs):
    return json.loads(get(procs, "live.json")[0])


def busy(procs):
    found = live(procs)
    return found["activity"]["since"] and found["memory"]["limit_bytes"] and found


def sums(report, name):
    """Of tasks and of no task, over all workers of the last run."""
    return sum(report["completeness"][part][name] for part in ("tasks", "unattributed"))


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes, data):
    """A run of coffea over two workers that have ended since: all numbers stand still."""
    with cluster.Cluster(tmp_path_factory.mktemp("live") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        for _ in range(2):
            procs.start_worker()
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            cluster.wait_until(lambda: live(procs)["workers"]["connected"] == 2, "the workers' agents")
            jobs.run_coffea(client, data.values())
            procs.running = cluster.wait_until(lambda: busy(procs), "numbers of the run")
        procs.stop_workers()
        cluster.wait_until(lambda: live(procs)["workers"]["ended"] == 2, "the workers' goodbyes")
        yield procs


def test_live_json_says_what_the_report_says(site):
    found, report = live(site), site.report_json()
    for layer in LAYERS:
        assert found["totals"][layer] == sums(report, f"{layer}_bytes"), layer
    assert found["totals"]["read"] > 60e6 and found["totals"]["decompress_out"] > 100e6
    assert found["totals"]["storage_read"] == report["completeness"]["rusage"]["storage_read_bytes"]
    assert found["tasks"]["events"] == report["metrics"]["total_events"] == 800_000
    assert found["tasks"]["chunks"] == report["metrics"]["num_chunks"] == 16
    assert found["tasks"]["done"] == found["tasks"]["started"] == sum(w["tasks_done"] for w in report["workers"])
    assert sum(found["tasks"][state] for state in ("ok", "erred", "killed", "other")) == found["tasks"]["done"]
    assert found["workers"] == {"connected": 0, "silent": 0, "lost": 0, "ended": 2, "killed": 0, "seen": 2, "threads": 0}
    processed = {p["prefix"]: p for p in found["prefixes"]}["TTbarProcessor"]
    assert processed["ok"] == 16


def test_live_json_while_it_runs(site):
    found = site.running
    assert [row["state"] for row in found["worker_rows"]] == ["connected"] * 2
    assert found["activity"]["done"] > 16 and found["activity"]["read_bytes"] > 60e6
    assert found["memory"]["rss_bytes"] > 50e6
    assert found["workers"]["threads"] == 2
