"""A worker's agent as a process with a real collector: it sleeps between its rounds, receives answers at once, and forwards what a
dead agent has left in the spool."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spool
import test_live_numbers
import test_worker

HERE = Path(__file__).resolve().parent
FAR_AGE = 1000


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The file written by the agent of an earlier worker."""
    folder = tmp_path_factory.mktemp("earlier")
    return test_worker.start(folder, "alive", "0"), folder / "out"


def agent_of(pid):
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--pid" in words and words[words.index(b"--pid") + 1] == str(pid).encode():
            return int(path.parent.name)
    return None


def until(what, seconds=15):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(what)


def wanted_ns(pid):
    """Nanoseconds on a core, or waiting for a core."""
    return sum(map(int, Path(f"/proc/{pid}/schedstat").read_text().split()[:2]))


@pytest.fixture(scope="module")
def life(left, tmp_path_factory):
    run, out = left
    folder = tmp_path_factory.mktemp("life")
    for name in ("data", "home/crema/spool"):
        (folder / name).mkdir(parents=True)
    (folder / "home/crema/spool").chmod(0o700)
    (folder / "home/crema").chmod(0o700)
    for file in out.glob("*.crema"):
        shutil.copy2(file, folder / "home/crema/spool" / file.name)
        os.utime(folder / "home/crema/spool" / file.name, (time.time() - FAR_AGE,) * 2)
    process, port, http = test_live_numbers.collector(folder / "collected")
    found = {"folder": folder, "earlier": run}
    try:
        env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"127.0.0.1:{port}", "CREMA_INSECURE": "on",
               "CREMA_TLS": "off", "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "home")}
        with subprocess.Popen([sys.executable, HERE / "worker_job.py", folder / "data", "alive", "4"], env=env, stdout=subprocess.PIPE) as worker:
            agent = until(lambda: agent_of(worker.pid))
            time.sleep(1.5)
            found["spool"] = lambda: list((folder / "home/crema/spool").glob("*.crema"))
            began, before = time.monotonic(), wanted_ns(agent)
            time.sleep(1.5)
            found["share"] = (wanted_ns(agent) - before) / 1e9 / (time.monotonic() - began)
            found["left"] = len(found["spool"]())
            worker.stdout.read()
        until(lambda: agent_of(worker.pid) is None)
        with test_live_numbers.urllib.request.urlopen(f"http://127.0.0.1:{http}/status.json", timeout=5) as answer:
            found["status"] = json.loads(answer.read())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
    found["frames"] = [frame for file in sorted((folder / "collected/journal").glob("*-journal.crema")) for frame in spool.frames(file.read_bytes())]
    return found


def test_it_sleeps(life):
    assert life["share"] < 0.3


def test_one_connection_each(life):
    """One for itself, one for the file; both sent a goodbye, and nothing arrived twice."""
    status = life["status"]
    assert status["connections"] == 2 and status["workers_seen"] == 2 and status["duplicate_records"] == status["missing_records"] == 0
    assert status["refused_total"] == 0


def test_what_was_left_is_there(life):
    ends = [record for kind, _, payload in life["frames"] if kind == spool.DATA for record in payload if record[0] == 3]
    assert life["left"] == 0
    assert len(ends) == 2 * len(life["earlier"]["found"]["end"])
    goodbyes = [record for kind, _, payload in life["frames"] if kind == spool.DATA for record in payload if record[0] == 14]
    assert len(goodbyes) == 2


def test_answers_are_heard_at_once(life):
    """The clock error is half of the round trip, not half of the interval between the agent's rounds (250 ms)."""
    clocks = [record[1] for kind, _, payload in life["frames"] if kind == spool.DATA for record in payload if record[0] == 15 and record[1].get("error_ns") is not None]
    assert clocks and min(c["error_ns"] for c in clocks) < 20_000_000
