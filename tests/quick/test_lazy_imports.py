"""Lazy imports (PEP 810): a module is patched when it is first used, in a task or before."""

import json
import os
import subprocess
import sys

import pytest
import spool
import test_live_numbers  # sets the path to the integration tests' modules
import test_worker

sys.path.insert(0, str(test_live_numbers.ROOT / "scripts"))
import venvs

JOB = """
import json, os, sys
import stack
stack.SOURCES  # used: from here on its modules are found
import small_worker
lazy import bz2
lazy from lzma import compress, decompress
lazy import multiprocessing.pool

with open("file", "wb") as file:
    file.write(bytes(50_000))

def read(path):
    with open(path, "rb", buffering=0) as file:
        return len(file.read(60_000))

def unpack():
    return len(bz2.decompress(bz2.compress(bytes(7000)))) + len(decompress(compress(bytes(5000))))

def pool():
    with multiprocessing.pool.ThreadPool(2) as threads:
        return sum(threads.map(read, ["file"] * 3))

worker = small_worker.Worker()
worker.start_unsafe()
before = "multiprocessing.pool" in sys.modules
print(json.dumps({"unpack-1": worker.run("unpack-1", unpack), "pool-1": worker.run("pool-1", pool), "before": before}))
"""


@pytest.mark.parametrize("everywhere", ["normal", "all"])
def test_lazy_imports(tmp_path, everywhere):
    python = venvs.interpreter("3.15")
    if not python:
        pytest.skip("no such Python on this machine")
    for name in ("out", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "job.py").write_text(JOB)
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"dir:{tmp_path / 'out'}", "HOME": str(tmp_path / "home"),
           "XDG_STATE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(test_worker.HERE), "PYTHON_LAZY_IMPORTS": everywhere}
    done = subprocess.run([python, "job.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {"unpack-1": 12_000, "pool-1": 150_000, "before": False}
    found, _ = spool.wait(tmp_path / "out")
    tasks = {task["key"]: task for task in found["end"]}
    assert (tasks["unpack-1"]["decompress_calls"], tasks["unpack-1"]["decompress_out_bytes"]) == (2, 12_000)
    assert tasks["pool-1"]["read_bytes"] == 150_000
