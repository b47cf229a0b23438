"""Processes that are not workers: with the preload they behave as without it."""

import contextlib
import os
import re
import subprocess
import sys
import time

import cluster
import jobs
import pytest
from distributed import Client

OPEN = (
    "import os; print(sorted(os.readlink(f'/proc/self/fd/{f}').split(':')[0] for f in os.listdir('/proc/self/fd') if f in '012'), "
    "len(os.listdir('/proc/self/fd')))")
COMMANDS = {
    "ls": ["ls", "-l", "/proc/self/fd/"],
    "true": ["true"],
    "cat": ["cat", "/etc/passwd"],
    "sh": ["sh", "-c", "echo out; echo err >&2; exit 3"],
    "python": [sys.executable, "-c", "print('hello'); raise SystemExit(4)"],
    "python-dev": [sys.executable, "-X", "dev", "-c", "import threading; t = threading.Thread(target=print, args=('x',)); t.start(); t.join()"],
    "python-fds": [sys.executable, "-c", "import threading; t = threading.Thread(target=len, args=('x',)); t.start(); t.join(); " + OPEN],
    "python-fail": [sys.executable, "-c", "1/0"],
    "python-modules": [sys.executable, "-c", "import sys, threading; print(sorted(sys.modules))"],
    "subprocess": [sys.executable, "-c", "import subprocess; print(subprocess.run(['sh', '-c', 'echo $0 $$ >/dev/null; exit 5'], close_fds=True).returncode)"],
    "fork": [sys.executable, "-c", "import os; p = os.fork(); p or os._exit(7); print(os.waitpid(p, 0)[1])"],
    "client-imports": [sys.executable, "-c", "import coffea.processor, distributed, uproot; print('imported')"],
}


def run(command, env):
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def preloaded(tmp_path, homes):
    procs = cluster.Cluster(tmp_path / "silent", homes)
    return procs, {**procs.env, **procs.worker_env()}


@pytest.mark.parametrize("name", COMMANDS)
def test_same_output_and_status(preloaded, name):
    procs, env = preloaded
    without, with_it = run(COMMANDS[name], procs.env), run(COMMANDS[name], env)
    if name == "ls":  # lists descriptors: compare their number, not their times
        without, with_it = [(s, out.count(b"\n"), err) for s, out, err in (without, with_it)]
    assert with_it == without
    assert procs.agents() == []


def strip(text):
    """Removes what differs between runs: numbers, addresses, random names."""
    text = re.sub(r"(scheduler|nanny|worker)-\w{8}\b", r"\1-x", text)
    return re.sub(r"[0-9]+", "0", re.sub(r"\b[0-9a-f]{8,}(-[0-9a-f]+)*", "0", text))


def descriptors(procs, pid):
    """Open descriptors without sockets, whose number changes, and without those open only for a moment (psutil's files of /proc)."""
    def look():
        return {(fd, os.readlink(f"/proc/{pid}/fd/{fd}")) for fd in os.listdir(f"/proc/{pid}/fd")}

    def looks():
        for _ in range(5):
            with contextlib.suppress(FileNotFoundError):  # closed between the list and the link
                yield look()
            time.sleep(0.1)

    names = (name for _, name in set.intersection(*looks()) if not name.startswith("socket:"))
    return sorted(strip(name.replace(str(procs.directory), "")) for name in names)


# Dask's messages about a busy machine, ports in use and the end of connections: unrelated to the preload.
OF_THE_MACHINE = ("unresponsive", "already", "warnings.warn", "Hosting the", "close-stream", "closing", "http server")


def lines(text):
    return sorted({line for line in text.splitlines() if not any(words in line for words in OF_THE_MACHINE)})


def scheduler_and_nanny(procs, env, data):
    """Runs a job; returns what the scheduler printed and which descriptors scheduler and nanny had."""
    procs.start_collector()
    procs.start_scheduler(env)
    nanny = procs.start_worker(env=env)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        client.gather(client.map(jobs.read_whole, [data["zstd"]] * 4, pure=False))
        worker, = client.run(os.getpid).values()
    measured = len(procs.agents())
    found = (descriptors(procs, procs.scheduler.pid), descriptors(procs, nanny.pid))
    assert worker != nanny.pid
    procs.stop_workers()
    procs.scheduler.stop()
    return found, strip(procs.scheduler.text().replace(str(procs.directory), "")), measured


def test_scheduler_and_nanny(new_cluster, data):
    """Both under the preload: no agent for them, no additional line, no additional descriptor."""
    plain, measured = new_cluster("plain"), new_cluster("measured")
    off = scheduler_and_nanny(plain, {"CREMA": "off", "LD_PRELOAD": ""}, data)
    on = scheduler_and_nanny(measured, measured.worker_env(), data)
    assert off[2] == 0
    assert on[2] == 1  # the worker's
    assert on[0] == off[0]
    assert lines(on[1]) == lines(off[1])
    assert re.findall(r"^crema(?:-agent)?: .*", on[1], re.M) == []  # crema's own lines: others may contain its folder's name


def test_client_is_not_measured(new_cluster, data, tmp_path):
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(shim=False)
    plain = jobs.run_example(procs, [data["zstd"]], tmp_path / "plain.json", workers=1)
    procs.env.update(procs.worker_env())
    done = jobs.run_example(procs, [data["zstd"]], tmp_path / "preloaded.json", workers=1)
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    assert (tmp_path / "plain.json").read_text() == (tmp_path / "preloaded.json").read_text()
    assert procs.agents() == []
