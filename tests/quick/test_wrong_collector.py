"""CREMA_COLLECTOR with a user's mistake in it: the worker works, it is not measured, and one line reports that. Two of these cases run under
a real Dask, in tests/integration/test_limits.py."""

import json
import os
import subprocess
import sys

import pytest
import test_worker

JOB = """
import json, os, pathlib, time
import small_worker

def agents():
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            home = b"HOME=" + os.environb[b"HOME"] in (entry / "environ").read_bytes().split(b"\\0")
            found += [entry.name] if home and (entry / "cmdline").read_bytes().split(b"\\0")[0].endswith(b"crema-agent") else []
        except OSError:
            pass
    return len(found)

worker = small_worker.Worker()
worker.start_unsafe()
out = [worker.run(f"work-{i}", lambda: sum(range(1000))) for i in range(3)]
print(json.dumps({"out": out, "agents": agents(), "shm": [line for line in open("/proc/self/maps") if "/crema-" in line]}))
"""
WRONG = ["http://localhost:8990", "localhost", "localhost:0", "local host:8990", ":8990", "localhost:8990x", "nonsense", "host:port",
         "127.0.0.1:99999", "dir:", "dir:~/frames", "dir:relative", "x" * 600 + ":8990"]


def run(folder, value):
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": value, "HOME": str(folder),
           "XDG_STATE_HOME": str(folder), "PYTHONPATH": str(test_worker.HERE)}
    done = subprocess.run([sys.executable, "-c", JOB], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["out"] == [499500] * 3
    return told, [line for line in done.stderr.splitlines() if line.startswith("crema")]


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_one_line_and_no_agent(tmp_path, value):
    told, lines = run(tmp_path, value)
    line, = lines
    assert "unmeasured" in line and "CREMA_COLLECTOR" in line
    assert told["agents"] == 0 and told["shm"] == []


def test_a_right_one_has_an_agent(tmp_path):
    (tmp_path / "out").mkdir()
    told, lines = run(tmp_path, f"dir:{tmp_path / 'out'}")
    assert lines == [] and told["agents"] == 1 and told["shm"] != []
