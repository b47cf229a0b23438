"""A worker in a real container: own processes, files, home and shared memory, and `crema run` as process 1. It has the
token and the collector's address, nothing else of the cluster's. And the recipe for Apptainer, which shares the home."""

import os
import shlex
import shutil
import subprocess

import cluster
import containers
import jobs
import pytest
import recipes
from distributed import Client

pytestmark = pytest.mark.matrix
PROGRAMS = "/opt/crema"  # LD_PRELOAD cannot contain a path with a space


def container(root, procs, *command):
    token = procs.env["CREMA_TOKEN_FILE"]
    return containers.command(root, f"--machine=crema-{os.getpid()}", containers.bind(cluster.ROOT), containers.bind(cluster.BUILD, PROGRAMS), containers.bind(token, "/run/token"),
                              "--setenv=CREMA_TOKEN_FILE=/run/token", f"--setenv=CREMA_COLLECTOR={procs.target}",
                              f"--setenv=PYTHONPATH={procs.env['PYTHONPATH']}", *command)


def test_worker_without_a_shared_home(new_cluster, data, tmp_path):
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.dask("worker", procs.address, "--name", "inside", "--nthreads", "1", "--no-dashboard")
    with containers.image(tmp_path / "root") as root:
        one = cluster.Process("nspawn", container(root, procs, f"{PROGRAMS}/crema", "run", "--quiet", "--", *worker), tmp_path / "nspawn.log")
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


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A user's home with an installed tree."""
    home = tmp_path_factory.mktemp("home")
    subprocess.run(["make", "-C", cluster.ROOT, "install", f"PREFIX={home / 'crema'}"], check=True, capture_output=True)
    return home


@pytest.mark.parametrize("which", [0, 1], ids=["wheel", "bound"])
def test_apptainer(new_cluster, tree, data, tmp_path, which):
    """The image is a folder with this machine's files. Ending the worker ends what it runs in."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    (tree / ".config/crema").mkdir(parents=True, exist_ok=True)
    shutil.copy2(procs.env["CREMA_TOKEN_FILE"], tree / ".config/crema/token")
    dask = " ".join(shlex.quote(str(word)) for word in procs.dask("worker", procs.address, "--nthreads", "1", "--no-dashboard"))
    with containers.image(tmp_path / "root") as root:
        command = recipes.blocks("Apptainer")[which].strip().replace("dask worker tcp://scheduler:8786", dask)
        # as root it wants all capabilities of a real root
        command = command.replace("apptainer exec", f"exec {shlex.quote(str(containers.apptainer()))} exec --no-privs --writable-tmpfs "
                                  f"--home {shlex.quote(str(tree))}").replace("image.sif", shlex.quote(str(root)))
        env = {name: value for name, value in procs.env.items() if not name.startswith(("CREMA", "XDG"))}
        env |= {"HOME": str(tree), "CREMA_COLLECTOR": procs.target, "CREMA_QUIET": "on"}
        if which == 0:
            env["APPTAINERENV_PREPEND_PATH"] = str(tree / "crema/bin")
        one = cluster.Process("apptainer", ["sh", "-c", command], tmp_path / "apptainer.log", env=env, cwd=tree)
        try:
            cluster.wait_until(procs.agents, "the agent", 120, [one])
            with Client(procs.address) as client:
                client.wait_for_workers(1, timeout=120)
                ((image, home),) = client.run(lambda: (os.environ["APPTAINER_CONTAINER"], os.environ["HOME"])).values()
                n, (task,) = jobs.submit(procs, client, "inside", jobs.read_whole, data["zstd"])
                assert image == str(root) and home == str(tree)
                one.terminate()
                one.wait(60)
        finally:
            one.stop()
    assert task["read_bytes"] == n == os.path.getsize(data["zstd"])
    (told,) = procs.report_json()["workers"]
    assert told["goodbye"]["how"] == "exit"
