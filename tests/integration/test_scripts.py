"""scripts/demo ends without help, and leaves nothing behind when it is stopped."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import cluster
import pytest
from conftest import QUICK_START

DEMO = [sys.executable, cluster.ROOT / "scripts" / "run_demo.py"]


def of_this_demo(process, mark):
    """Processes that inherited the mark, and agents that send to this demo's collector."""
    marked = [pid for pid, _, state in cluster.processes() if state != "Z" and mark in cluster.strings_of(pid, "environ")]
    targets = re.findall(r"CREMA_COLLECTOR=(\S+)", process.text())
    return marked + [pid for target in targets for pid in cluster.agents_of(target)]


def start(tmp_path, homes, *args):
    mark = f"TEST_MARK={tmp_path}"
    env = {**os.environ, **homes, "TMPDIR": str(tmp_path), "TEST_MARK": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join(str(cluster.ROOT / folder) for folder in QUICK_START)
    process = cluster.Process("demo", [*DEMO, *args], tmp_path / "demo.log", env)
    return process, mark


@pytest.mark.parametrize("when,number", [
    *(("dask scheduler", signal.SIGINT), ("worker-1", signal.SIGTERM), ("examples/ttbar.py", signal.SIGINT)),
    *(pytest.param(*each, marks=pytest.mark.further) for each in [
        ("dask scheduler", signal.SIGTERM), ("worker-1", signal.SIGINT), ("examples/ttbar.py", signal.SIGTERM)])])
def test_stopped_demo_leaves_nothing(tmp_path, homes, data, when, number):
    process, mark = start(tmp_path, homes)
    cluster.wait_until(lambda: when in process.text(), when, 120, [process])
    time.sleep(1.0)
    process.send_signal(number)
    status = process.wait(timeout=60)
    try:
        assert of_this_demo(process, mark) == []
    finally:
        for pid in of_this_demo(process, mark):
            cluster.kill(pid, signal.SIGKILL)
    assert status == 128 + number
    assert [p.name for p in tmp_path.iterdir()] == ["demo.log"]


def test_demo_with_own_file(tmp_path, homes, data):
    process, mark = start(tmp_path, homes, "--keep", "--files", data["zstd"])
    assert process.wait(timeout=300) == 0, process.text()
    assert of_this_demo(process, mark) == []
    kept, = [p for p in tmp_path.iterdir() if p.is_dir()]
    assert cluster.read_json(kept / "coffea-report.json")["entries"] == 200_000
    assert process.text().strip().splitlines()[-1] == f"kept: {kept}"


def test_demo_says_what_failed(tmp_path, homes, data):
    broken = tmp_path / "broken.root"
    broken.write_bytes(Path(data["zlib"]).read_bytes()[:100])
    process, mark = start(tmp_path, homes, "--files", str(broken))
    assert process.wait(timeout=300) == 1
    assert process.text().strip().splitlines()[-1].startswith("crema: examples/ttbar.py")
    assert of_this_demo(process, mark) == []


def test_usage():
    done = subprocess.run([cluster.ROOT / "scripts" / "demo", "--no-such"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "usage:" in done.stderr
