# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that lack system calls, and containers that forbid them: worker, agent and collector work without them. A filter
makes pidfd_open, close_range, memfd_create, openat2, clone3, io_uring and cachestat fail with ENOSYS, or with
EPERM as containers do, and PIDFD_GET_INFO with ENOTTY."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import cluster
import faults
import jobs
import pytest
import refuse
from distributed import Client, span

# If clone3 fails with EPERM, no program can start a thread through glibc (test_clone3_with_eperm): here it fails with ENOSYS.
NAMES = {"ENOSYS": refuse.ALL, "EPERM": refuse.ALL.replace("clone3", "clone3=ENOSYS")}


def words(error, names=None):
    return [sys.executable, Path(refuse.__file__), error, names or NAMES[error], "--"]


def run(error, names, code):
    return subprocess.run([*words(error, names), sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_the_filter_refuses():
    """Without the filter these tests would prove nothing."""
    code = f"""import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print([libc.syscall(n, -1, 0, 0, 0, 0) and ctypes.get_errno() for n in {list(refuse.CALLS.values())}],
      libc.ioctl(0, 0xC040FF0B, 0) and ctypes.get_errno())"""
    assert run("ENOSYS", refuse.ALL, code).stdout.strip() == f"{[38] * len(refuse.CALLS)} 25"
    assert run("EPERM", refuse.ALL, code).stdout.strip() == f"{[1] * len(refuse.CALLS)} 25"


def test_clone3_with_eperm(new_cluster):
    """Not even Python can start a thread; the collector needs one only without io_uring, and reports that in one line."""
    procs = new_cluster()
    done = run("EPERM", "clone3", "import threading\nthreading.Thread(target=print).start()")
    if done.returncode == 0:
        return  # a libc that does not use clone3
    done = subprocess.run([*words("EPERM", "clone3"), procs.build / "crema", "collect", "--listen", procs.target, "--http",
                           f"127.0.0.1:{procs.http_port}", "--dir", procs.journal], env={**procs.env, "CREMA_IO_URING": "off"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr


def filtered(pid):
    return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()


def agent_of(procs, pid):
    agents = cluster.wait_until(lambda: [a for a in procs.agents() if str(pid) in cluster.strings_of(a, "cmdline")], "the agent", 60)
    return agents[0]


@pytest.mark.parametrize("collector", ["EPERM", pytest.param("ENOSYS", marks=pytest.mark.matrix)])
def test_refused_calls(new_cluster, data, tmp_path, collector):
    """One worker whose kernel lacks them, another one that may not use them."""
    procs = new_cluster()
    procs.start_collector(prefix=words(collector))
    procs.start_scheduler(faults.PATIENT)
    workers = [procs.start_worker(prefix=lambda _, env, e=error: [*words(e), "env", *(f"{n}={v}" for n, v in env.items())],
                                  args=["--resources", f"worker-{i}=1"]) for i, error in enumerate(NAMES)]
    size, prefixes = os.path.getsize(data["zlib"]), [f"refused_{error}" for error in NAMES]
    assert filtered(procs.collector.pid)
    with Client(procs.address) as client:
        client.wait_for_workers(2, timeout=120)
        with span("refused"):
            futures = []
            for worker, prefix in zip(workers, prefixes):
                pid = client.submit(os.getpid, pure=False, resources={worker.name: 1}).result(timeout=120)
                assert filtered(pid) and filtered(agent_of(procs, pid))
                # The agent notices its worker's end without a pidfd.
                futures.append(client.submit(faults.read_and_die, "SIGKILL", data["zlib"], str(tmp_path / prefix),
                                             resources={worker.name: 1}, key=jobs.unique(prefix)))
            assert client.gather(futures) == [size, size]
        found = jobs.settled(procs, lambda r: all(len(faults.attempts(r, p)) == 2 for p in prefixes))
    for prefix in prefixes:
        first, second = faults.attempts(found, prefix)
        assert (first["status"], second["status"]) == ("killed", "ok")
        assert first["read_bytes"] == second["read_bytes"] == size
        assert second["storage_read_bytes"] is not None and second["runqueue_wait_seconds"] is not None
    faults.whole(found)
    # A child makes the page's report, and closes the descriptors that it inherited.
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/report.json?run=last", timeout=60) as answer:
        assert json.load(answer)["completeness"]["records_lost"] == 0
    for worker in workers:
        assert [line for line in worker.text().splitlines() if line.startswith("crema")] == []
