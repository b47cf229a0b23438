"""Both ways to write the journal, by io_uring and by pwrite: each is used as requested, or as the kernel allows; a
collector that is killed under load, or asked to end, loses no acknowledged record."""

import errno
import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import cluster
import pytest
import swarms

SETUP, ENTER, REGISTER = 425, 426, 427  # io_uring_*, the same on all architectures


@pytest.fixture(scope="module", autouse=True)
def built():
    swarms.build()


@pytest.fixture(scope="module")
def refuse(tmp_path_factory):
    """The start of a command line whose program may not use these system calls."""
    program = tmp_path_factory.mktemp("refuse") / "refuse"
    subprocess.run(["gcc", "-O1", "-o", program, Path(__file__).with_name("refuse.c")], check=True)
    return lambda error, *numbers: [program, str(error), ",".join(map(str, numbers))]


def status(procs):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/status.json", timeout=60) as answer:
        return json.load(answer)


def has_ring(procs):
    return "anon_inode:[io_uring]" in [os.readlink(p) for p in Path(f"/proc/{procs.collector.pid}/fd").iterdir()]


def kernel_has_io_uring():
    """Whether this machine's kernel allows io_uring: tested without crema, by the error of the system call."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True).syscall(SETUP, 1, None) == -1 and ctypes.get_errno() == errno.EFAULT


def journals(procs, sent):
    """Everything that was sent is in the journal, each record once."""
    journal = swarms.journaled(procs.journal)
    assert all(swarms.is_whole(parts) for parts in journal.values())
    assert sum(count for parts in journal.values() for _, count in parts) == sent["messages"]


def test_status_lists_the_agents(new_cluster, tmp_path):
    """Each is listed once, and together they have sent what the collector reports as received."""
    procs = new_cluster()
    procs.start_collector()
    with swarms.Swarm(procs, tmp_path, workers=50, seconds=4, rate=500, frame=5) as swarm:
        def all_here():
            found = status(procs)
            return found if sum(agent["records"] > 0 for agent in found["agents"]) == 50 else None

        found = cluster.wait_until(all_here, "fifty agents", 60, [procs.collector])
        swarm.result()
    agents = found["agents"]
    assert len(agents) == found["workers_connected"] == len({agent["worker"] for agent in agents}) == 50
    assert all(agent["host"] == "node" and len(agent["worker"]) == 32 and agent["next"] == agent["records"] for agent in agents)
    assert sum(agent["records"] for agent in agents) == found["records"]
    assert sum(agent["bytes"] for agent in agents) == found["bytes"]


@pytest.mark.parametrize("way", ["on", "off", None], ids=str)
def test_the_way_that_was_asked_for(new_cluster, tmp_path, way):
    procs = new_cluster(env={"CREMA_IO_URING": way} if way else {})
    procs.start_collector()
    sent = swarms.Swarm(procs, tmp_path, workers=50, records=5000, frame=10).result()
    assert sent["records_acked"] == 5000
    journals(procs, sent)
    assert has_ring(procs) == (way != "off" and kernel_has_io_uring())
    assert status(procs)["journal"]["writes_by"] == ("io_uring" if has_ring(procs) else "pwrite")
    assert cluster.wait_until(lambda: status(procs)["journal"]["syncs"], "a sync", 60)
    assert procs.collector.stop() == 0


@pytest.mark.parametrize("error, numbers", [
    (errno.ENOSYS, [SETUP, ENTER, REGISTER]), (errno.EPERM, [SETUP, ENTER, REGISTER]), (errno.EPERM, [ENTER]),
    (errno.EACCES, [REGISTER])], ids=["no such call", "not allowed", "made but not used", "not asked"])
def test_refused_by_a_filter(new_cluster, refuse, tmp_path, error, numbers):
    """The records arrive, and status.json reports how they are written."""
    procs = new_cluster()
    procs.start_collector(prefix=refuse(error, *numbers))
    assert status(procs)["journal"]["writes_by"] == "pwrite" and not has_ring(procs)
    sent = swarms.Swarm(procs, tmp_path, workers=20, records=2000, frame=10).result()
    assert sent["records_acked"] == 2000
    journals(procs, sent)


@pytest.mark.parametrize("way, number", [
    ("off", signal.SIGKILL), ("on", signal.SIGKILL), ("on", signal.SIGTERM),
    pytest.param("off", signal.SIGTERM, marks=pytest.mark.matrix)], ids=str)
def test_ended_under_load(new_cluster, tmp_path, way, number):
    """The senders never repeat acknowledged records: a lost record would be a gap."""
    procs = new_cluster(env={"CREMA_IO_URING": way})
    procs.start_collector()
    swarm = swarms.Swarm(procs, tmp_path, workers=200, records=30_000, rate=15_000, frame=10)
    for _ in range(2):
        before = status(procs)["records"]
        cluster.wait_until(lambda: status(procs)["records"] > before + 2000, "records", 120, [procs.collector])
        procs.collector.send_signal(number)
        assert procs.collector.wait(timeout=60) == (0 if number == signal.SIGTERM else -number)
        procs.start_collector()
    sent = swarm.result()
    assert sent["records_acked"] == sent["records_sent"] == 30_000
    journals(procs, sent)
    assert status(procs)["missing_records"] == 0
