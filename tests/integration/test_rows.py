"""Rows of tests/checklist.txt that are not metrics, each by its number; the others are in tests/unit/test_rows.c
and in the tests of their subjects. scripts/checklist-rows prints rows that are not covered."""

import datetime
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT


def series(demo, name, value):
    """The values of one series of every worker: there are two, and both have sent some."""
    found = demo.json["tracking_data"][name]
    assert len(found) == 2
    assert all(found.values())
    for points in found.values():
        times = [datetime.datetime.fromisoformat(point["timestamp"]) for point in points]
        assert times == sorted(times)
    return [point[value] for points in found.values() for point in points]


def test_row_032(demo):
    counts = demo.json["tracking_data"]["worker_counts"]
    assert {row["worker_count"] for row in counts} == {2}
    assert all(set(row) == {"timestamp", "worker_count"} for row in counts)


def test_row_033(demo):
    assert min(series(demo, "worker_memory", "memory_bytes")) > 10_000_000


def test_row_034(demo):
    limits = {worker["memory_limit_bytes"] for worker in demo.json["workers"]}
    assert set(series(demo, "worker_memory_limit", "memory_limit_bytes")) == limits


def test_row_035(demo):
    assert set(series(demo, "worker_cores", "cores")) == {1}


def test_active_are_those_that_execute_and_more(demo):
    active = demo.json["tracking_data"]["worker_active_tasks"]
    for worker, points in demo.json["tracking_data"]["worker_executing"].items():
        assert all(a["active_tasks"] >= e["executing"] for a, e in zip(active[worker], points, strict=True))
    assert "worker_active_tasks" in demo.json["tracking_data"]["estimated"]


def test_series_of_one_thread(demo):
    """With real coffea; test_rows_worker.py tests their values."""
    assert set(series(demo, "worker_executing", "executing")) <= {0, 1}
    assert min(series(demo, "worker_nbytes", "nbytes")) >= 0
    assert min(series(demo, "worker_occupancy", "occupancy")) >= 0
    assert "worker_occupancy" in demo.json["tracking_data"]["estimated"]
    for seen in series(demo, "worker_last_seen", "last_seen"):
        assert datetime.datetime.fromisoformat(seen).utcoffset() == datetime.timedelta(0)


def test_row_041(demo, shared):
    """Each series has the workers that the scheduler has."""
    workers = set(shared.client.scheduler_info()["workers"])
    assert demo.json["metrics"]["track_workers"] is True
    of_workers = [found for name, found in demo.json["tracking_data"].items() if name.startswith("worker_") and name != "worker_counts"]
    assert len(of_workers) >= 8
    for found in of_workers:
        assert set(found) == workers


def test_row_045(demo):
    info = demo.json["run_info"]
    for name in ("start", "stop"):
        told = datetime.datetime.fromisoformat(info[f"{name}_time"])
        assert told.utcoffset() == datetime.timedelta(0)
        assert told.timestamp() == pytest.approx(info[name], abs=1e-5)


def test_row_046(demo):
    assert [chunk["chunk_id"] for chunk in demo.json["chunks"]] == list(range(1, 17))


def test_row_047(demo):
    assert [chunk["events"] for chunk in demo.json["chunks"]] == [50_000] * 16


def test_row_048(demo):
    """The time of process() is part of its task's."""
    for chunk in demo.json["chunks"]:
        assert 0 < chunk["processing_time_seconds"] == chunk["coffea_processtime_seconds"] < chunk["wall_seconds"]


def test_memory_of_chunks_is_that_of_their_tasks(demo):
    """test_rows_worker.py tests their values."""
    for chunk in demo.json["chunks"]:
        assert chunk["memory_start_gb"] == chunk["rss_start_bytes"] / 1e9
        assert chunk["memory_end_gb"] == chunk["rss_stop_bytes"] / 1e9
        assert chunk["memory_delta_gb"] == pytest.approx(chunk["memory_end_gb"] - chunk["memory_start_gb"], abs=1e-12)


def test_row_052(demo):
    """The example names each dataset after its file."""
    assert all(chunk["dataset"] == Path(chunk["filename"]).stem for chunk in demo.json["chunks"])


def test_row_053(demo):
    assert {chunk["filename"] for chunk in demo.json["chunks"]} == set(demo.files)


def test_row_054(demo):
    """The chunks of a file cover its entries, each once."""
    for file in demo.files:
        ranges = sorted((chunk["entrystart"], chunk["entrystop"]) for chunk in demo.json["chunks"] if chunk["filename"] == file)
        assert ranges == [(start, start + 50_000) for start in range(0, 200_000, 50_000)]


def still(text):
    """Removes the time at which the run's state was determined."""
    return re.sub(r'("at": )[\d.]+', r"\1", text, count=1)


def test_row_120(demo, shared, tmp_path):
    """A saved report equals the printed one: of a copy, to which the workers add nothing in between."""
    copy = shutil.copytree(shared.procs.journal, tmp_path / "journal")
    printed = shared.procs.report("--run", demo.json["run"], "--json", "-", directory=copy)
    done = shared.procs.report("--run", demo.json["run"], "--json", tmp_path / "run.json", directory=copy)
    assert done.returncode == printed.returncode == 0, done.stderr
    assert still((tmp_path / "run.json").read_text()) == still(printed.stdout)
    assert json.loads(printed.stdout)["metrics"].keys() == demo.json["metrics"].keys()


@pytest.fixture(scope="module")
def page(demo, shared, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    done = shared.procs.report("--html", path, "--run", demo.json["run"])
    assert done.returncode == 0, done.stderr
    return path.read_text()


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def test_row_121(demo, page):
    """One file: it loads nothing from elsewhere, and has coffea's numbers."""
    found = {metric["id"]: metric.get("value") for metric in data_of(page)["metrics"]}
    assert (found["total_events"], found["num_chunks"]) == (demo.coffea["entries"], demo.coffea["chunks"])
    assert found["total_bytes_read_coffea"] == demo.coffea["bytesread"]
    assert page.startswith("<!doctype html>")
    assert re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=|<link[^>]*\shref=(?!.?data:)|@import|url\((?!.?data:)", page) == []


def test_row_134(demo, shared, page):
    """Dask's performance report has no workers; this one has a panel of them, with their shares of coffea's events."""
    rows = data_of(page)["balance"]["rows"]
    assert {row["worker"] for row in rows} == set(shared.client.scheduler_info()["workers"])
    assert sum(row["events"] for row in rows) == demo.coffea["entries"]
    for panel in ("balance", "stream", "memory", "levels"):
        assert f'id: "{panel}"' in page


def test_every_row_is_answered():
    done = subprocess.run([ROOT / "scripts" / "checklist-rows"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
