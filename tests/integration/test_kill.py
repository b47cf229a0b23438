"""Workers, nannies and agents that die: what was measured remains, and everything else is reported as what it is."""

import os
import random
import signal
import threading
import time

import cluster
import jobs
import strace_reads
from distributed import Client, span

STEP = 64 * 1024
KILLS, CODECS = (20, ("lz4", "lzma", "zlib", "zstd")) if os.environ.get("CREMA_ALL_CELLS") else (5, ("zstd",))
# Dask gives up on a task after this many of its workers died; here they die often.
PATIENT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}


def worker_pids(client):
    return client.run(os.getpid)


def attempts(report, name):
    return sorted(jobs.tasks_of(report, name), key=lambda t: t["start"])


def test_killed_task_has_what_strace_saw(new_cluster, data, tmp_path):
    procs = new_cluster()
    marker, path = tmp_path / "marker", data["zstd"]
    with jobs.measured(procs, prefix=strace_reads.prefix, scheduler=PATIENT) as client:
        pid, = worker_pids(client).values()
        with span("killed"):
            future = client.submit(jobs.read_slowly_once, path, STEP, str(marker), key=jobs.unique("killed"))
            cluster.wait_until(marker.exists, "the task to start")
            time.sleep(1.3)
            os.kill(pid, signal.SIGKILL)
            assert future.result(timeout=120) == 0
        found = jobs.settled(procs, lambda r: len(attempts(r, "killed")) >= 2)
    first, second = attempts(found, "killed")
    truth = strace_reads.count(procs.workers[0].log.with_suffix(".strace"))[path]
    assert first["status"] == "killed"
    assert not first["counted"]
    assert first["waste_reason"] == "killed"
    assert abs(first["read_bytes"] - truth["bytes"]) <= STEP
    assert abs(first["read_calls"] - truth["calls"]) <= 1
    assert first["pid"] == pid
    assert second["status"] == "ok" and second["counted"]


def kill_at_random(client, stop, rng, killed, limit):
    """Kills one worker at a time; the nanny restarts it."""
    while not stop.wait(rng.uniform(0.3, 1.5)) and len(killed) < limit:
        try:
            pids = list(worker_pids(client).values())
        except Exception:  # a worker died during the request
            continue
        if pids and not stop.is_set():
            pid = rng.choice(pids)
            cluster.kill(pid, signal.SIGKILL)
            killed.append(pid)


def test_sigkill_at_random_instants(new_cluster, data, serial):
    """coffea's sums stay equal; repeated work is waste and is not counted twice."""
    procs, rng, killed, rounds, files = new_cluster(), random.Random(3), [], 0, [data[codec] for codec in CODECS]
    assert jobs.output_of(serial, data.values()) == serial["output"]
    with jobs.measured(procs, 2, scheduler=PATIENT) as client, Client(procs.address) as killer:
        while len(killed) < KILLS and rounds < 3 * KILLS:
            rounds += 1
            stop = threading.Event()
            thread = threading.Thread(target=kill_at_random, args=(killer, stop, rng, killed, KILLS))
            client.wait_for_workers(2, timeout=120)
            thread.start()
            try:
                output, report = jobs.run_coffea(client, files, chunksize=12_500)
            finally:
                stop.set()
                thread.join()
            assert output == jobs.output_of(serial, files)
            found = jobs.settled(procs, lambda r: sum(c["counted"] for c in r["chunks"]) >= 16 * len(files))
            check_round(found, report, len(files))
    assert len(killed) == KILLS


def check_round(found, report, files):
    assert found["metrics"]["total_events"] == report["entries"] == 200_000 * files
    assert found["metrics"]["num_chunks"] == report["chunks"] == 16 * files
    assert found["metrics"]["total_bytes_read_coffea"] == report["bytesread"]
    counted = [(c["filename"], c["entrystart"]) for c in found["chunks"] if c["counted"]]
    assert len(counted) == len(set(counted)) == 16 * files
    for task in found["tasks"]:
        assert task["counted"] == (task["waste_reason"] is None), task
        assert task["status"] in ("ok", "erred", "killed", "lost"), task


def test_finished_results_lost_with_their_worker(new_cluster):
    procs = new_cluster()
    with jobs.measured(procs, 2, scheduler=PATIENT) as client:
        with span("held"):
            futures = client.map(lambda i: i * i, range(8), key=[jobs.unique("held") for _ in range(8)])
            client.gather(client.map(lambda i: i, futures, key=[jobs.unique("seen") for _ in range(8)]))
            address, keys = max(client.has_what().items(), key=lambda item: len(item[1]))
            lost = [k for k in keys if k.startswith("held")]
            os.kill(worker_pids(client)[address], signal.SIGKILL)
            assert client.gather(futures) == [i * i for i in range(8)]
        found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "held")) >= 8 + len(lost))
    assert lost
    for key in lost:
        first, *again = [t for t in attempts(found, "held") if t["key"] == key]
        assert again, key
        assert not first["counted"] and first["waste_reason"] in ("lost", "recomputed")
        assert again[-1]["counted"]


def test_worker_nanny_and_agent_killed_at_once(new_cluster, data, tmp_path):
    """No process is left to close the task: the collector does, with its last known state."""
    procs, marker = new_cluster(), tmp_path / "marker"
    with jobs.measured(procs, scheduler=PATIENT) as client:
        with span("gone"):
            future = client.submit(jobs.read_slowly_once, data["zlib"], STEP, str(marker), key=jobs.unique("gone"))
            cluster.wait_until(marker.exists, "the task to start")
            time.sleep(2)
            agents = procs.agents()
            assert agents
            group = [p for p, g, _ in cluster.processes() if g == procs.workers[0].pid]
            for pid in [*agents, *group]:
                cluster.kill(pid, signal.SIGKILL)
            procs.start_worker()
            assert future.result(timeout=120) == 0
        found = jobs.settled(procs, lambda r: len(attempts(r, "gone")) >= 2)
    first, second = attempts(found, "gone")
    assert first["status"] == "lost" and not first["counted"]
    assert first["read_bytes"] > 0
    assert second["counted"]


def test_agent_killed(new_cluster, data):
    """The shim starts another agent, which continues with the same counters."""
    procs = new_cluster()
    with jobs.measured(procs, scheduler=PATIENT) as client:
        jobs.submit(procs, client, "before", jobs.read_whole, data["zlib"])
        old = set(procs.agents())
        assert old
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        n, (task,) = jobs.submit(procs, client, "after", jobs.read_whole, data["zlib"])
        assert task["read_bytes"] == n
        assert task["status"] == "ok"
        assert set(procs.agents()) - old
