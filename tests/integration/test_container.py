"""A worker in a real container: own processes, files, home and shared memory, and `crema run` as process 1. It has the
token and the collector's address, nothing else of the cluster's."""

import os

import cluster
import containers
import jobs
import pytest
from distributed import Client

pytestmark = pytest.mark.matrix


def container(root, procs, *command):
    token = procs.env["CREMA_TOKEN_FILE"]
    return containers.command(root, f"--machine=crema-{os.getpid()}", containers.bind(cluster.ROOT), containers.bind(token, "/run/token"),
                              "--setenv=CREMA_TOKEN_FILE=/run/token", f"--setenv=CREMA_COLLECTOR={procs.target}",
                              f"--setenv=PYTHONPATH={procs.env['PYTHONPATH']}", *command)


def test_worker_without_a_shared_home(new_cluster, data, tmp_path):
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.dask("worker", procs.address, "--name", "inside", "--nthreads", "1", "--no-dashboard")
    with containers.image(tmp_path / "root") as root:
        one = cluster.Process("nspawn", container(root, procs, procs.build / "crema", "run", "--quiet", "--", *worker), tmp_path / "nspawn.log")
        try:
            with Client(procs.address) as client:
                client.wait_for_workers(1, timeout=120)
                ((pid, sees),) = client.run(lambda path: (os.getpid(), os.path.exists(path)), str(tmp_path)).values()
                n, (task,) = jobs.submit(procs, client, "inside", jobs.read_whole, data["zstd"])
                assert pid < 100 and not sees  # of its own processes, without the machine's /tmp
                one.terminate()  # as an orchestrator ends a pod: SIGTERM to process 1
                assert one.wait(60) == 0, one.text()
        finally:
            one.stop()
    assert task["read_bytes"] == n == os.path.getsize(data["zstd"])
    (told,) = procs.report_json()["workers"]
    assert told["goodbye"]["how"] == "exit" and told["host"] == f"crema-{os.getpid()}"
