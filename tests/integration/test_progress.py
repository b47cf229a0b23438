"""How much of a coffea job is done and when it ends, as shown in live.json, crema top and /metrics during the run, against its
real chunks and its real end. The arithmetic is tested in tests/unit/test_live_progress.c."""

import concurrent.futures
import json
import re
import subprocess
import time
import urllib.request

import cluster
import jobs
import pytest
import state_processor
from distributed import Client

CHUNK = 4_000


@pytest.fixture(scope="module")
def procs(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("progress") / "cluster", homes) as made:
        made.start_collector()
        made.start_scheduler()
        for _ in range(2):
            made.start_worker()
        yield made


def get(procs, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/{path}", timeout=60) as answer:
        return answer.read().decode()


def watch(procs, run):
    """[(time, progress)] until the job has ended, and the output of top and /metrics in the middle of its chunks."""
    seen, middle = [], None
    while not run.done():
        progress = json.loads(get(procs, "live.json"))["progress"]
        seen.append((time.time(), progress or {}))
        if middle is None and progress and progress["of"] == "chunks" and progress["done"] >= 0.3 * (progress["total"] or 1e9):
            top = subprocess.run([procs.build / "crema", "top", "--once", "--http", f"127.0.0.1:{procs.http_port}"], env=procs.env,
                                 capture_output=True, text=True, timeout=60).stdout
            middle = top, get(procs, "metrics")
        time.sleep(0.2)
    return seen, middle


def job(procs, file):
    with Client(procs.address) as client, concurrent.futures.ThreadPoolExecutor(1) as other:
        client.wait_for_workers(2, timeout=120)
        # finished earlier work must not count in the total
        cluster.wait_until(lambda: client.run_on_scheduler(lambda dask_scheduler: "crema_count_2" in dask_scheduler.handlers), "the counter of the scheduler")
        run = other.submit(jobs.run_coffea, client, [file], CHUNK, processor_instance=state_processor.Steady())
        seen, middle = watch(procs, run)
        out, _ = run.result(timeout=300)
    return out["n"], seen, middle, time.time()


def error(seen, ended):
    """The error of the estimate at 30 %, as a share of the job's time; None if there was no estimate."""
    chunks = [(at, p) for at, p in seen if p.get("of") == "chunks" and p["total"]]
    at, first = next((at, p) for at, p in chunks if p["done"] >= 0.3 * p["total"])
    return first["seconds_left"] and abs(at + first["seconds_left"] - ended) / (ended - chunks[0][0])


def test_the_end_is_estimated(procs, data):
    """Other load in the second part of a job makes it longer: one of three estimates must be right."""
    errors = []
    while len(errors) < 3 and not (errors and errors[-1] is not None and errors[-1] < 0.25):
        events, seen, middle, ended = job(procs, data["zlib"])
        chunks = -(-events // CHUNK)
        assert {p["total"] for _, p in seen if p.get("of") == "chunks" and p["total"]} == {chunks}
        assert middle, [p for _, p in seen][-5:]
        errors.append(error(seen, ended))
    assert errors[-1] is not None and errors[-1] < 0.25, errors
    bar, done, total = re.search(r"^progress \[(#+)-+\] (\d+) of (\d+) chunks, [\d.]+/s, about \d+ s left$", middle[0], re.M).groups()
    assert int(total) == chunks and len(bar) == int(20 * int(done) / int(total)) and 0.3 * chunks <= int(done) <= chunks
    assert re.search(rf"^crema_progress_expected {chunks}$", middle[1], re.M)
    assert re.search(r"^crema_progress_done \d+$", middle[1], re.M) and re.search(r"^crema_progress_seconds_left \d", middle[1], re.M)


def test_nothing_to_do(procs):
    limit = time.monotonic() + 60
    while (live := json.loads(get(procs, "live.json")))["progress"] is not None and time.monotonic() < limit:
        time.sleep(0.5)
    assert live["progress"] is None
