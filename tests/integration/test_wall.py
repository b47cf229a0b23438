# SPDX-License-Identifier: BSD-3-Clause
"""The client's wall time in parts: an analysis with known seconds in each part, compared with its own clock, which
is read around each statement, and with the times that the tasks themselves return."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import cluster
import crema
import jobs
import pytest
import venvs

JOB = Path(__file__).with_name("wall_job.py")
CLOSE = 0.01  # share of the wall time
NEAR = 0.02   # share of the wall time: a task's own clock is read after its start and before its end


def run_job(procs, kind, *files, python=sys.executable, command=(), late=0.0, **env):
    """The job's output. A second worker starts `late` seconds after the first."""
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker()
    second = threading.Timer(late, procs.start_worker) if late else None
    if second:
        second.start()
    done = subprocess.run([*command, python, JOB, procs.address, kind, *files], capture_output=True, text=True, timeout=300,
                          env={**procs.env, "CREMA_PROGRAM": str(procs.build / "crema"), **env})
    if second:
        second.join()
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def measured(procs, kind, *files, **options):
    return run_job(procs, kind, *files, **options, CREMA_TEST_MEASURE=str(procs.journal))


def closes(wall, all_seconds):
    """All parts are known, and their sum agrees with the analysis' own clock."""
    parts = {name: v for name, v in wall.items() if name not in ("all", "rest")}
    assert None not in parts.values() and min(parts.values()) >= 0
    assert abs(wall["rest"]) <= CLOSE * wall["all"]
    assert sum(parts.values()) == pytest.approx(all_seconds, rel=CLOSE)


WAITS = ("workers", "schedule", "ramp", "steady", "tail", "merge", "gather", "other")


def near(wall, truth):
    return pytest.approx(truth, abs=NEAR * wall["all"])


def is_own_map(wall, truth):
    """Compares with the time of each statement, and with the tasks' own times."""
    tasks = sorted(truth["tasks"])
    assert wall["own"] >= truth["own"] >= 0.7
    assert wall["graph"] + wall["send"] == near(wall, truth["map"])
    assert wall["graph"] >= truth["graph"] >= 4 * 0.4 and wall["send"] >= truth["send"] >= 4 * 0.2
    assert sum(wall[name] for name in WAITS) == near(wall, truth["wait"])
    ends = sorted(e for _, e in tasks)
    two = next(b for b, _ in tasks[1:] if any(x < b < e for x, e in tasks))  # start of the time with two tasks running
    assert wall["ramp"] == near(wall, two - tasks[0][0])
    assert wall["steady"] == near(wall, ends[-2] - two)
    assert wall["tail"] == near(wall, ends[-1] - ends[-2])
    assert wall["gather"] == near(wall, truth["waited"] - ends[-1]) and wall["gather"] >= 0.5
    assert wall["other"] == wall["merge"] == wall["preprocess"] == 0


def test_own_map(new_cluster):
    truth = measured(new_cluster(), "map", late=4.0)
    wall = truth["wall"]
    closes(wall, truth["all"])
    assert wall["imports"] == near(wall, truth["imports"]) and truth["imports"] >= 1.5
    assert wall["own"] == near(wall, truth["own"])
    is_own_map(wall, truth)
    assert "client_part" not in truth["findings"]


def first_screen(procs):
    done = subprocess.run([procs.build / "crema", "report", "--dir", procs.journal], capture_output=True, text=True, timeout=60, env=procs.env)
    assert done.returncode == 0 and len(done.stdout.splitlines()) <= 30
    return done.stdout


def test_crema_run(new_cluster):
    """The client's code needs no change: recording starts with the command, and the client is found by a key that it sent."""
    procs = new_cluster()
    begin = time.perf_counter()
    truth = run_job(procs, "map", late=4.0, command=[procs.build / "crema", "run", "--quiet", "--dir", procs.journal, "--"], CREMA_TEST_GRAPH_SECONDS="2")
    outside = time.perf_counter() - begin
    report = jobs.settled(procs, lambda r: len(r["tasks"]) == 4)
    wall = crema.Run(report).wall
    closes(wall, wall["all"])
    assert truth["all"] < wall["all"] < outside
    assert wall["start"] > 0 and wall["imports"] == near(wall, truth["first_imports"] + truth["imports"])
    assert wall["start"] + truth["all"] == near(wall, wall["all"])
    text = procs.report("--show", "wall").stdout
    (found,) = [f for f in crema.Run(report).findings if f.id == "client_part"]
    assert found.evidence["part"] == "graph" and found.text.startswith("building the graph took ") and "partitions" in found.advice
    (shown,) = re.findall(r"client: ([\d.]+) s in all", first_screen(procs))
    assert float(shown) == pytest.approx(wall["all"], rel=1e-3)
    assert "building the graph" in text and "starting Python" in text
    is_own_map({**wall, "workers": 0}, truth)


OWN_CLUSTER = """
import json, time
from distributed import Client, LocalCluster
if __name__ == "__main__":
    begin = time.perf_counter()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        started = time.perf_counter()
        client.gather(client.map(time.sleep, [0.2] * 4, pure=False))
        done = time.perf_counter()
    print(json.dumps({"workers": started - begin, "close": time.perf_counter() - done}))
"""


def test_a_cluster_of_its_own(new_cluster, tmp_path):
    """Its workers start while the client waits in its constructor."""
    procs = new_cluster()
    script = tmp_path / "own_cluster.py"
    script.write_text(OWN_CLUSTER)
    slow = tmp_path / "slow.py"
    slow.write_text("import time; time.sleep(0.5)")
    env = {**procs.env, "XDG_STATE_HOME": str(tmp_path), "CREMA_COLLECTOR": "", "DASK_DISTRIBUTED__WORKER__PRELOAD": str(slow)}
    done = subprocess.run([procs.build / "crema", "run", "--quiet", "--", sys.executable, script], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)

    def report():  # the workers' agents end after them
        done = subprocess.run([procs.build / "crema", "report", "--json", "-"], env=env, capture_output=True, text=True, timeout=60)
        return None if done.returncode else json.loads(done.stdout)

    wall = crema.Run(cluster.wait_until(report, "a report", 30)).wall
    assert wall["workers"] == near(wall, truth["workers"]) and truth["workers"] > 0.5
    assert wall["close"] == near(wall, truth["close"]) and wall["other"] <= NEAR * wall["all"]


def test_coffea(new_cluster, data):
    truth = measured(new_cluster(), "coffea", data["lz4"])
    wall = truth["wall"]
    closes(wall, truth["all"])
    assert wall["preprocess"] == near(wall, truth["preprocess"])
    assert wall["imports"] >= truth["imports"] >= 1.5
    last, merged = max(e for _, e in truth["tasks"]), max(e for _, e in truth["merges"])
    assert wall["merge"] >= 0.5 and wall["gather"] < wall["all"] / 2
    assert wall["merge"] + wall["gather"] == near(wall, truth["waited"] - last)
    assert merged > last


def test_dask_awkward(new_cluster, data):
    bin_dir = venvs.environment("coffea-2026.9-dask-awkward")
    procs = new_cluster()
    procs.dask = lambda *args: [bin_dir / "dask", *args]
    truth = measured(procs, "lazy", data["lz4"], python=bin_dir / "python")
    wall = truth["wall"]
    closes(wall, truth["all"])
    assert truth["sum"] > 0 and truth["graph"] >= 0.5
    inside = wall["graph"] + wall["send"] + sum(wall[name] for name in WAITS)
    assert wall["graph"] >= 0.5 and inside + wall["imports"] >= truth["graph"] + truth["compute"] - NEAR * wall["all"]
