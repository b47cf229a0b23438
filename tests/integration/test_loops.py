"""Both event loops of the collector: each is what was asked for, or says why it is not; a collector killed under
load, or asked to end, has lost nothing that it acknowledged."""

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

SETUP, ENTER, REGISTER = 425, 426, 427  # io_uring_*, the same on all machines
LOOPS = ["epoll", "io_uring"]


@pytest.fixture(scope="module", autouse=True)
def built():
    swarms.build()


@pytest.fixture(scope="module")
def refuse(tmp_path_factory):
    """The beginning of a command whose program is refused these system calls."""
    program = tmp_path_factory.mktemp("refuse") / "refuse"
    subprocess.run(["gcc", "-O1", "-o", program, Path(__file__).with_name("refuse.c")], check=True)
    return lambda error, *numbers: [program, str(error), ",".join(map(str, numbers))]


def status(procs):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/status.json", timeout=60) as answer:
        return json.load(answer)


def lines(procs):
    return [line for line in procs.collector.text().splitlines() if "io_uring" in line]


def has_ring(procs):
    """Whether this machine's kernel lets us have one."""
    return not lines(procs)


def journals(procs, sent):
    """What was sent is in the journal, each record once."""
    journal = swarms.journaled(procs.journal)
    assert all(swarms.is_whole(parts) for parts in journal.values())
    assert sum(count for parts in journal.values() for _, count in parts) == sent["messages"]


@pytest.mark.parametrize("loop", ["auto", *LOOPS])
def test_the_loop_that_was_asked_for(new_cluster, tmp_path, loop):
    procs = new_cluster(env={"CREMA_LOOP": loop})
    procs.start_collector()
    sent = swarms.Swarm(procs, tmp_path, workers=50, records=5000, frame=10).result()
    assert sent["records_acked"] == 5000
    journals(procs, sent)
    if loop == "epoll":
        assert status(procs)["loop"] == "epoll" and has_ring(procs)
    elif has_ring(procs) and loop == "io_uring":
        assert status(procs)["loop"] == "io_uring"
        assert cluster.wait_until(lambda: status(procs)["journal"]["syncs"], "a sync by the ring", 60)
    descriptors = [os.readlink(p) for p in Path(f"/proc/{procs.collector.pid}/fd").iterdir()]
    assert ("anon_inode:[io_uring]" in descriptors) == (status(procs)["loop"] == "io_uring")
    assert procs.collector.stop() == 0


def test_no_such_loop(homes, tmp_path):
    done = subprocess.run([cluster.BUILD / "crema", "collect", "--loop", "kqueue", "--dir", tmp_path, "--listen", "127.0.0.1:0",
                           "--http", "127.0.0.1:0"], env={**os.environ, **homes}, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr == "crema: collect: --loop 'kqueue' is none of auto, epoll, io_uring\n"


@pytest.mark.parametrize("error, numbers", [
    (errno.ENOSYS, [SETUP, ENTER, REGISTER]), (errno.EPERM, [SETUP, ENTER, REGISTER]), (errno.EPERM, [ENTER]),
    (errno.EACCES, [REGISTER])], ids=["no such call", "not allowed", "made but not used", "no buffers"])
def test_refused_by_a_filter(new_cluster, refuse, tmp_path, error, numbers):
    """One line, and the records come by epoll."""
    procs = new_cluster(env={"CREMA_LOOP": "io_uring"})
    procs.start_collector(prefix=refuse(error, *numbers))
    line, = lines(procs)
    assert line.startswith("crema: collect: io_uring cannot be used here (") and line.endswith("): epoll is used instead")
    assert status(procs)["loop"] == "epoll"
    sent = swarms.Swarm(procs, tmp_path, workers=20, records=2000, frame=10).result()
    assert sent["records_acked"] == 2000
    journals(procs, sent)


@pytest.mark.parametrize("loop, number", [
    ("epoll", signal.SIGKILL), ("io_uring", signal.SIGKILL), ("io_uring", signal.SIGTERM),
    pytest.param("epoll", signal.SIGTERM, marks=pytest.mark.matrix)], ids=str)
def test_ended_under_load(new_cluster, tmp_path, loop, number):
    """The senders never send again what was acknowledged: a record lost would be a gap."""
    procs = new_cluster(env={"CREMA_LOOP": loop})
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
