"""A collector that comes late, goes and comes back, or is no collector at all."""

import signal
import time

import cluster
import jobs
import pytest
from distributed import Client


def ran_whole(found, codec_truth, report):
    assert found["metrics"]["total_events"] == report["entries"]
    assert found["metrics"]["num_chunks"] == report["chunks"]
    assert found["completeness"]["records_lost"] == 0
    rows = [r for r in found["codecs"] if r["codec"] == "zstd"]
    for name in ("calls", "in_bytes", "out_bytes"):
        assert jobs.total(rows, name) == codec_truth[name], name


def test_collector_starts_late(new_cluster, data, serial):
    procs = new_cluster()
    procs.start_scheduler()
    procs.start_worker()
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        _, report = jobs.run_coffea(client, [data["zstd"]])
        time.sleep(2)
        procs.start_collector()
        found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
    ran_whole(found, serial["codecs"]["zstd"], report)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_collector_goes_and_comes_back(new_cluster, data, serial, number):
    procs = new_cluster()
    with jobs.measured(procs) as client:
        jobs.submit(procs, client, "first", jobs.read_whole, data["lz4"])
        procs.collector.send_signal(number)
        status = procs.collector.wait(timeout=60)
        assert status == (0 if number != signal.SIGKILL else -signal.SIGKILL)
        _, report = jobs.run_coffea(client, [data["zstd"]])
        procs.start_collector()
        found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
        ran_whole(found, serial["codecs"]["zstd"], report)


def test_worker_ends_before_the_collector_comes(new_cluster, data, serial):
    """The agent outlives its worker until what it holds is acknowledged."""
    procs = new_cluster()
    procs.start_scheduler()
    procs.start_worker()
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        _, report = jobs.run_coffea(client, [data["zstd"]])
    procs.stop_workers()
    procs.start_collector()
    found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
    ran_whole(found, serial["codecs"]["zstd"], report)
    cluster.wait_until(lambda: not procs.agents(), "the agents to end", 60)


def test_frames_in_a_directory(new_cluster, data, serial, tmp_path):
    """dir: needs no port; report reads the files."""
    procs, shared = new_cluster(), tmp_path / "frames"
    shared.mkdir()
    procs.start_scheduler()
    procs.target = f"dir:{shared}"
    for _ in range(2):
        procs.start_worker()
    with Client(procs.address) as client:
        client.wait_for_workers(2, timeout=120)
        _, report = jobs.run_coffea(client, [data["zstd"]])
        during = jobs.settled(procs, lambda r: len(r["chunks"]) == 4, directory=shared)
        ran_whole(during, serial["codecs"]["zstd"], report)
    procs.stop_workers()
    after = jobs.settled(procs, lambda r: len(r["chunks"]) == 4, directory=shared)
    ran_whole(after, serial["codecs"]["zstd"], report)


def run_unmeasured(procs, data, env):
    """Runs the job on one worker with this environment; returns what the worker printed."""
    procs.start_scheduler()
    worker = procs.start_worker(env=env)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        output, _ = jobs.run_coffea(client, [data["zstd"]])
        assert output["events"] == {"nano_zstd.v1": 200_000}
    assert not procs.agents()
    return [line for line in worker.text().splitlines() if line.startswith("crema")]


def test_crema_off(new_cluster, data):
    procs = new_cluster(env={"CREMA": "off"})
    procs.start_collector()
    assert run_unmeasured(procs, data, {"CREMA": "off"}) == []


@pytest.mark.parametrize("value", ["nonsense", "host:port", "127.0.0.1:99999", "dir:", "dir:relative", ""])
def test_wrong_collector_value(new_cluster, data, value):
    """One line that names the variable, and the worker runs on."""
    procs = new_cluster()
    lines = run_unmeasured(procs, data, {"CREMA_COLLECTOR": value})
    if value == "":
        assert lines == [] or "CREMA_COLLECTOR" in lines[0]
    else:
        assert len(lines) == 1, lines
        assert "CREMA_COLLECTOR" in lines[0]


def test_missing_agent_program(new_cluster, data):
    procs = new_cluster()
    procs.start_collector()
    lines = run_unmeasured(procs, data, {"CREMA_AGENT": "/nonexistent/crema-agent"})
    assert len(lines) == 1, lines
