# SPDX-License-Identifier: BSD-3-Clause
"""Versions that lack what crema looks for: the worker continues, what can no longer be known is unknown, and
one line explains it. The names are changed in the real packages' source as a worker imports them."""

import jobs
import venvs
from distributed import Client


def start(new_cluster, rename):
    procs = new_cluster()
    env = {"PYTHONPATH": f"{venvs.LISTS / 'rename'}:{procs.env['PYTHONPATH']}", "CREMA_TEST_RENAME": rename}
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(env=procs.worker_env(env=env))
    return procs, worker


def said(worker):
    return [line for line in worker.text().splitlines() if line.startswith("crema: ")]


def test_task_functions(new_cluster, data):
    """Tasks cannot be recognized: the worker reports that at once, and the report that there is no run."""
    procs, worker = start(new_cluster, "distributed.worker:_run_task:_run_it")
    with Client(procs.address) as client:
        assert client.submit(jobs.read_whole, data["zlib"]).result(timeout=120) > 0
    (line,) = said(worker)
    assert "distributed.worker has no task function that crema knows" in line
    assert "Traceback" not in worker.text()
    procs.stop_workers()
    done = procs.report()
    assert done.returncode == 1
    assert "distributed.worker has no task function that crema knows" in done.stderr


def test_uproot_pools(new_cluster, data):
    """Reads by uproot's threads cannot be assigned to a task: its counts are unknown, not too small."""
    procs, worker = start(new_cluster, "uproot:ResourceThreadPoolExecutor:ResourcePool")
    with Client(procs.address) as client:
        _, report = jobs.run_coffea(client, [data["zlib"]])
    found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
    assert [c["events"] for c in found["chunks"]] == [50_000] * 4
    assert found["metrics"]["total_bytes_read_coffea"] == report["bytesread"]
    for task in found["chunks"]:
        assert task["read_bytes"] is None and task["decompress_out_bytes"] is None
        assert task["storage_read_bytes"] is None and task["pool_cpu_seconds"] is None
        assert task["cpu_seconds"] > 0
    check_note(procs, found, "1 of 1 workers: uproot.source.futures lacks a pool that crema knows")
    assert said(worker) == [] and "Traceback" not in worker.text()


def check_note(procs, found, text):
    assert [n for n in found["completeness"]["notes"] if n.startswith(text)]
    assert found["completeness"]["workers_with_shim_notes"] == 1
    assert text in procs.report().stdout
