"""A Python that crema was not tested with, and one without the GIL: a test library in this process answers for the interpreter."""

import json
import os
import subprocess
import sys

import pytest
import spool
import test_worker

ANSWERS = """
const char *Py_GetVersion(void) { return VERSION; }
"""


def run(folder, version, job, *arguments):
    """A worker's process whose Python answers that way."""
    for name in ("data", "out", "home"):
        (folder / name).mkdir()
    (folder / "answers.c").write_text(ANSWERS)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DVERSION={json.dumps(version)}", "-o", folder / "answers.so", folder / "answers.c"], check=True)
    env = {**os.environ, "LD_PRELOAD": f"{folder / 'answers.so'} {test_worker.BUILD / 'libcrema.so'}", "CREMA_COLLECTOR": f"dir:{folder / 'out'}",
           "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "home")}
    seen = subprocess.run([sys.executable, "-c", "import sys; print(sys.version)"], env=env, capture_output=True, text=True, check=True)
    if seen.stdout.strip() != version:
        pytest.skip("this Python's own functions cannot be replaced")
    return subprocess.run([sys.executable, test_worker.HERE / job, *arguments], env=env, capture_output=True, text=True, timeout=60)


def test_not_tested(tmp_path):
    """One line reports it. Lock waits cannot be known; what was read, compressed and computed is."""
    done = run(tmp_path, "3.16.0a1 (main, Oct 20 2026, 12:00:00) [GCC 14.2.0]", "worker_job.py", tmp_path / "data", "alive", "0.8")
    assert done.returncode == 0, done.stderr
    found, _ = spool.wait(tmp_path / "out")
    note = "crema was not tested with Python 3.16: waits for the interpreter lock and for other locks are unknown, and no lines of Python are sampled"
    assert found["totals"][-1]["notes"].count(note) == 1
    tasks = [task for task in found["end"] if task["cpu_ns"] is not None]
    assert len(tasks) > 20
    for task in tasks:
        assert {name for name in test_worker.TIMES if task[f"{name}_ns"] is None} == {"gil_wait", "lock_wait"}, task["key"]
    packed = json.loads(done.stdout)["codecs"]["packed"]
    *_, row = [row for row in found["codec"] if row["function"] == "zlib.decompress" and row["span"] == "the-span"]
    assert (row["calls"], row["in_bytes"], row["out_bytes"]) == (1, packed, 100_000)


def test_without_the_gil(tmp_path):
    """Of a version that lacks what crema needs there. One line on standard error; no agent, nothing is written, and the job completes."""
    done = run(tmp_path, "3.15.2 free-threading build (main, Oct 20 2026, 12:00:00) [GCC 14.2.0]", "lines_job.py", "0.01")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "crema: this process runs unmeasured: this free-threaded Python is not supported; use 3.14 or newer, or a build with the GIL\n"
    assert list((tmp_path / "out").iterdir()) == []
