"""A collector that starts late, stops and restarts, or is not a collector at all."""

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


@pytest.fixture(scope="module")
def lasting(tmp_path_factory, homes):
    """A worker whose collector stops and restarts, each time in another way."""
    with cluster.Cluster(tmp_path_factory.mktemp("lasting") / "cluster", homes) as procs, jobs.measured(procs) as client:
        yield procs, client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_collector_goes_and_comes_back(lasting, data, serial, number):
    procs, client = lasting
    jobs.submit(procs, client, "first", jobs.read_whole, data["lz4"])
    procs.collector.send_signal(number)
    status = procs.collector.wait(timeout=60)
    assert status == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    _, report = jobs.run_coffea(client, [data["zstd"]])
    procs.start_collector()
    found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)  # "first" was newer than the last analysis
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
