"""A worker in a real container (systemd-nspawn): own processes, files, home and shared memory, and `crema run` as process 1. It has the
token and the collector's address, nothing else of the cluster's."""

import os
import subprocess

import cluster
import jobs
import packages
import pytest
from distributed import Client

pytestmark = pytest.mark.matrix


@pytest.fixture
def root(tmp_path):
    """This machine's files without other mounts; what a container writes there is gone at its end."""
    if os.geteuid():
        pytest.skip("a throw-away system needs root")
    place = tmp_path / "root"
    place.mkdir()
    subprocess.run(["mount", "--bind", "/", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def container(root, procs, *command):
    """Uses the machine's own network. It ends as its first process does."""
    nspawn = packages.unpacked("nspawn", "systemd-container") / "usr/bin/systemd-nspawn"
    token = procs.env["CREMA_TOKEN_FILE"]
    return [nspawn, "--quiet", "--register=no", "--keep-unit", "--console=pipe", f"--directory={root}", "--volatile=overlay",
            f"--machine=crema-{os.getpid()}", "--kill-signal=SIGTERM", "--tmpfs=/tmp", "--tmpfs=/root/.config", f"--bind-ro={cluster.ROOT}",
            f"--bind-ro={token}:/run/token", "--setenv=CREMA_TOKEN_FILE=/run/token", f"--setenv=CREMA_COLLECTOR={procs.target}",
            f"--setenv=PYTHONPATH={procs.env['PYTHONPATH']}", *command]


def test_worker_without_a_shared_home(root, new_cluster, data, tmp_path):
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.dask("worker", procs.address, "--name", "inside", "--nthreads", "1", "--no-dashboard")
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
