# SPDX-License-Identifier: BSD-3-Clause
"""The worker is safe: nothing grows with the work, no worker is
slower because its agent holds data, and random kills of all processes lose nothing."""

import os
import signal
import statistics
import time

import cluster
import faults
import jobs
import pytest
import soak
from distributed import Client

# MINUTES=60 is the long run of docs/reliability.md
MINUTES = float(os.environ.get("CREMA_SOAK_MINUTES", "3"))
HANG_SECONDS = 400

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes):
    with soak.site(tmp_path_factory.mktemp("safety"), homes) as place:
        yield place


@pytest.mark.parametrize("seconds", [10, 60 * MINUTES])
def test_random_kills(site, seconds):
    procs, client, path = site
    signal.alarm(int(seconds) + HANG_SECONDS)  # instead of the usual hang limit
    summary = soak.soak(procs, client, path, seconds, seed=6)
    assert summary["wrong"] == [], summary
    assert sum(summary["killed"].values()) >= seconds / 10
    print(summary)


def start(procs, client, name, **options):
    """A worker that gets only the tasks that request its name."""
    worker = procs.start_worker(args=["--resources", f"{name}=1"], **options)
    cluster.wait_until(lambda: worker.name in client.run_on_scheduler(
        lambda dask_scheduler: [str(w.name) for w in dask_scheduler.workers.values()]), worker.name, 120, [worker])
    return worker, client.submit(os.getpid, pure=False, resources={name: 1}).result(timeout=120)


def turns_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield None


def both_run(client, names, path, turns):
    """50 tasks on each worker in each turn; {name: wall seconds of each task, measured by the task}."""
    walls = {name: [] for name in names}
    for _ in turns:
        for name in names:
            futures = [client.submit(faults.timed_read, path, soak.SIZE, pure=False, resources={name: 1}) for _ in range(50)]
            walls[name] += client.gather(futures)
    return walls


@pytest.mark.parametrize("seconds", [30, 60 * MINUTES])
def test_nothing_grows(new_cluster, site, seconds):
    """A measured worker and one without crema run the same tiny tasks: their memory and descriptors grow alike."""
    signal.alarm(int(seconds) + HANG_SECONDS)  # instead of the usual hang limit
    _, _, path = site
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    with Client(procs.address) as client:
        pids = {name: start(procs, client, name, shim=name == "measured")[1] for name in ("measured", "plain")}
        agent, = cluster.wait_until(procs.agents, "the agent", 60)
        pids |= {"agent": agent, "collector": procs.collector.pid}
        both_run(client, ("measured", "plain"), path, range(10))
        before = {name: soak.sizes(pid) for name, pid in pids.items()}
        walls = both_run(client, ("measured", "plain"), path, turns_for(seconds))
        after = {name: soak.sizes(pid) for name, pid in pids.items()}
    grown = {name: {what: after[name][what] - before[name][what] for what in after[name]} for name in pids}
    print(seconds, "seconds,", len(walls["measured"]), "tasks on each:", grown)
    assert grown["measured"]["rss_anon_bytes"] - max(0, grown["plain"]["rss_anon_bytes"]) < 6 << 20, grown
    assert abs(grown["measured"]["descriptors"] - grown["plain"]["descriptors"]) <= 4, grown
    for name in ("agent", "collector"):
        assert grown[name]["rss_anon_bytes"] < 3 << 20 and grown[name]["descriptors"] <= 2, grown


def test_500_MB_spooled(new_cluster, site, tmp_path):
    """Two workers whose collector cannot be reached; the agent of one finds 500 MB of a dead agent's samples in its
    spool. Its tasks take no longer than the other worker's, neither then nor while the samples are sent."""
    _, _, path = site
    procs = new_cluster()
    procs.start_scheduler()
    with Client(procs.address) as client:
        spools = {}
        for name in ("full", "none"):
            state = tmp_path / name
            spools[name] = state / "crema" / "spool"
            spools[name].mkdir(parents=True, mode=0o700)
            if name == "full":
                written = fill(spools[name], 500_000_000)
                assert written >= 500_000_000
            start(procs, client, name, env=procs.worker_env(env={"XDG_STATE_HOME": str(state)}))
        both_run(client, ("full", "none"), path, range(4))
        away = both_run(client, ("full", "none"), path, range(20))
        procs.start_collector()
        sent = both_run(client, ("full", "none"), path, range(40))
        cluster.wait_until(lambda: sum(p.stat().st_size for p in spools["full"].glob("*.crema")) < 1_000_000, "all to be sent", 300)
    for when, walls in (("away", away), ("sent", sent)):
        medians = {name: statistics.median(values) for name, values in walls.items()}
        print(when, medians)
        assert medians["full"] < 2 * medians["none"] + 2e-4, (when, medians)


def fill(directory, size):
    """Spool files of a dead agent, full of samples."""
    from frames import DATA, FILE_HEADER, HELLO, frame

    worker, written, seq = b"d" * 16, 0, 0
    sample = {"boot_ns": 1, "cpu_percent": 1.5, "rss_bytes": 10**9, **{f"value_{i}": 10**15 + i for i in range(60)}}
    while written < size:
        number = 1_700_000_000_000_000_000 + seq
        file = directory / f"{number:020}-{worker.hex()}.crema"
        with open(file, "wb") as out:
            out.write(frame(FILE_HEADER, {"format": 1, "kind": "spool", "created_ns": number}, worker))
            out.write(frame(HELLO, {"facts": {"host": "gone", "pid": 1}, "task_fields": []}, worker))
            while out.tell() < 250_000_000:
                messages = [[8, {**sample, "boot_ns": seq + i}] for i in range(200)]
                out.write(frame(DATA, messages, worker, seq, len(messages)))
                seq += len(messages)
            written += out.tell()
        os.chmod(file, 0o600)
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return written
