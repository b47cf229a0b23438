"""Tasks that run code in other interpreters of the process: nothing changes for the program, reads are counted, and what cannot be
seen is unknown (subinterpreters_job.py)."""

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

JOB = test_worker.HERE / "subinterpreters_job.py"
READ = {"plain-1": 30_000, "inside-1": 50_000, "threads-1": 60_000, "pool-1": 120_000, "plain-2": 30_000}
TOLD = {**READ, "plain-1": 31_000, "plain-2": 31_000}
NOTE = "this process has more than one Python interpreter: (de)compressed bytes of tasks are unknown"


@pytest.mark.parametrize("early", ["", "early"])
@pytest.mark.parametrize("version", venvs.each())
def test_subinterpreters(tmp_path, version, early):
    python = venvs.interpreter(version)
    if not python:
        pytest.skip("no such Python on this machine")
    for name in ("data", "out", "home"):
        (tmp_path / name).mkdir()
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"dir:{tmp_path / 'out'}",
           "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "home")}
    done = subprocess.run([python, JOB, tmp_path / "data", early], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    tasks = READ if "pool-1" in told else {key: n for key, n in READ.items() if key != "pool-1"}
    assert {key: told[key] for key in tasks} == {key: TOLD[key] for key in tasks}
    assert ("pool-1" in tasks) == version.startswith(("3.14", "3.15"))
    found, _ = spool.wait(tmp_path / "out")
    ended = {task["key"]: task for task in found["end"]}
    assert {key: task["read_bytes"] for key, task in ended.items()} == tasks
    counted = {key for key, task in ended.items() if task["decompress_calls"] is not None}
    assert counted <= {"plain-1"} and (early or counted == {"plain-1"})
    assert all(ended[key]["decompress_calls"] == 1 for key in counted)
    assert found["totals"][-1]["notes"].count(NOTE) == 1
