"""What malloc holds of a worker's memory (heap_job.py), as read by its agent, against what malloc_trim(0) returns."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spool
import test_lines

HERE = Path(__file__).resolve().parent
MB = 1 << 20


def run(folder, way="both", **environment):
    told = test_lines.job(folder, program=HERE / "heap_job.py", unit=way, **environment)
    found, _ = spool.read(folder / "out")
    return told, found


def seen(found, window):
    """Samples in the window whose heaps were read; a reading starts within its second."""
    return [s for s in found["sample"] if s["heap_bytes"] is not None and window[0] + 10**9 <= s["boot_ns"] <= window[1]]


def jemalloc(folder):
    """A library with jemalloc's name is mapped."""
    library = folder / "libjemalloc.so.2"
    subprocess.run(["cc", "-shared", "-o", library, "-x", "c", os.devnull], check=True)
    return run(folder, "trimmed", LD_PRELOAD=f"{test_lines.test_worker.BUILD / 'libcrema.so'}:{library}")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{name: (the job's output, its records, its folder)}, all at the same time: they mostly sleep."""
    ways = {"both": run, "held": lambda folder: run(folder, "held"), "trimmed": lambda folder: run(folder, "trimmed"),
            "off": lambda folder: run(folder, "trimmed", CREMA_HEAP="off"), "jemalloc": jemalloc}
    folders = {name: tmp_path_factory.mktemp(name) for name in ways}
    with ThreadPoolExecutor(len(ways)) as pool:
        made = {name: pool.submit(way, folders[name]) for name, way in ways.items()}
    return {name: (*one.result(), folders[name]) for name, one in made.items()}


@pytest.fixture
def measured(runs):
    return runs["both"]


def test_what_would_come_back(measured):
    told, found, _ = measured
    held, trimmed = seen(found, told["held"]), seen(found, told["trimmed"])
    assert held and trimmed, found["sample"]
    assert told["fell"] > 100 * MB
    for sample in held:
        assert sample["heap_returnable_bytes"] == pytest.approx(told["fell"], rel=0.01, abs=MB)
    for sample in trimmed:
        assert sample["heap_returnable_bytes"] < MB
        assert held[-1]["heap_free_bytes"] - sample["heap_free_bytes"] == pytest.approx(told["fell"], rel=0.01, abs=MB)


def test_the_parts_are_the_resident_set(measured):
    """The parts are from one reading of status; the resident set is from another moment."""
    told, found, _ = measured
    for sample in seen(found, told["held"]):
        parts = sample["rss_anon_bytes"] + sample["rss_file_bytes"] + sample["rss_shmem_bytes"]
        assert parts == pytest.approx(sample["rss_bytes"], abs=2 * MB)
        assert sample["heap_returnable_bytes"] <= sample["heap_free_bytes"] <= sample["heap_bytes"] <= sample["rss_anon_bytes"] + MB


def test_the_report(measured):
    """The parts when the resident set was largest, and what was kept: nothing, as the task trimmed its heap half way."""
    told, found, folder = measured
    report = json.loads(test_lines.report(folder, "--json", "-"))
    (row,) = report["worker_memory"]
    assert row["readings"] >= 3
    assert row["in_use_bytes"] + row["held_bytes"] + row["file_bytes"] + row["shared_bytes"] == row["resident_bytes"]
    assert row["returnable_bytes"] == pytest.approx(told["fell"], rel=0.01, abs=MB)
    assert row["kept_bytes"] < MB
    assert "allocator_holds" not in {f["id"] for f in report["findings"]}
    assert "free in malloc" in test_lines.report(folder, "--show", "memory")


def test_the_advice(runs):
    """Memory that is held all the time is a finding, and is none after malloc_trim(0) as advised."""
    found = {way: json.loads(test_lines.report(runs[way][2], "--json", "-")) for way in ("held", "trimmed")}
    (finding,) = [f for f in found["held"]["findings"] if f["id"] == "allocator_holds"]
    kept = next(e["value"] for e in finding["evidence"] if e["name"] == "kept_bytes")
    assert kept > 100 * MB and "malloc_trim(0)" in finding["advice"]
    assert "allocator_holds" not in {f["id"] for f in found["trimmed"]["findings"]}
    held, trimmed = (found[way]["worker_memory"][0] for way in ("held", "trimmed"))
    assert trimmed["kept_bytes"] < MB < held["kept_bytes"]


def test_off(runs):
    _, found, _ = runs["off"]
    assert found["sample"] and all(s["heap_bytes"] is s["heap_free_bytes"] is s["heap_returnable_bytes"] is None for s in found["sample"])
    assert any(s["rss_file_bytes"] for s in found["sample"])  # the last sample may be from a process that has just ended


def test_another_allocator_is_unknown(runs):
    """Nothing is known about the heaps, and the report gives the reason."""
    _, found, _ = runs["jemalloc"]
    assert found["sample"] and all(s["heap_bytes"] is None for s in found["sample"])
    assert "what malloc holds is unknown: malloc is jemalloc's" in found["totals"][-1]["notes"]
