"""crema run -- COMMAND, from the build directory and installed."""

import os
import subprocess
import sys

import cluster
import jobs
import pytest
from distributed import Client

STATUS = {
    "ok": (["true"], 0),
    "own": (["sh", "-c", "exit 5"], 5),
    "signal": (["sh", "-c", "kill -KILL $$"], 137),
    "missing": (["/nonexistent/program"], 127),
    "no-program": (["/etc/passwd"], 126),
}
SHOW = [sys.executable, "-c", "import os; print(os.environ.get('LD_PRELOAD'))"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    place = tmp_path_factory.mktemp("installed")
    subprocess.run(["make", "-C", cluster.ROOT, "install", f"DESTDIR={place}", "PREFIX=/usr"],
                   check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    return place / "usr" / "bin" / "crema"


def crema_run(program, command, env):
    return subprocess.run([program, "run", "--", *command], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", STATUS)
def test_status_is_the_commands(new_cluster, name):
    procs = new_cluster()
    command, status = STATUS[name]
    # As a shell reports it: a signal is 128 + its number.
    shell = ["sh", "-c", '"$@"; exit $?', "sh", procs.build / "crema", "run", "--", *command]
    assert subprocess.run(shell, env=procs.env, capture_output=True, timeout=120).returncode == status


def test_existing_preload_is_kept(new_cluster):
    procs = new_cluster()
    libc = next(line.split()[-1] for line in open("/proc/self/maps") if "libm.so.6" in line or "libm-" in line)
    done = crema_run(procs.build / "crema", SHOW, {**procs.env, "LD_PRELOAD": libc})
    names = [os.path.basename(name) for name in done.stdout.strip().replace(" ", ":").split(":")]
    assert sorted(names) == sorted(["libcrema.so", os.path.basename(libc)])


def test_installed_program_finds_its_library(new_cluster, installed):
    procs = new_cluster()
    done = crema_run(installed, SHOW, procs.env)
    assert done.stdout.strip().endswith("/usr/lib/crema/libcrema.so")


def test_library_that_does_not_load(new_cluster, installed):
    """The command runs unmeasured, with one line about it."""
    procs = new_cluster()
    library = installed.parent.parent / "lib" / "crema" / "libcrema.so"
    good = library.read_bytes()
    library.write_bytes(good[:1000])
    try:
        done = crema_run(installed, SHOW, procs.env)
    finally:
        library.write_bytes(good)
    assert (done.returncode, done.stdout) == (0, "None\n")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("where", ["build", "installed"])
def test_worker(new_cluster, installed, data, where):
    procs = new_cluster()
    program = installed if where == "installed" else procs.build / "crema"
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(env={"CREMA_COLLECTOR": procs.target}, prefix=lambda output, env: [
        "env", f"CREMA_COLLECTOR={procs.target}", program, "run", "--"], shim=False)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "under-run", jobs.read_whole, data["zstd"])
    assert task["read_bytes"] == n
