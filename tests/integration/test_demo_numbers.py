"""The demo job over all codecs, cold: every number equals its truth exactly."""

import json
import os

import jobs
import pytest
import waits
from accuracy import COFFEA, MINCORE, RUSAGE, STRACE, UPROOT

COUNTS = ("calls", "in_bytes", "out_bytes")


def name_of(path):
    """The codec of a generated file."""
    return os.path.basename(path).split(".")[0].removeprefix("nano_")


def test_result_is_the_serial_one(demo):
    assert demo.output == demo.serial["output"]


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd", "lzma"])
def test_decompressed_as_uproot_counts(demo, cell, codec):
    # coffea compresses its messages with lz4.frame; uproot's lz4 is cramjam's.
    rows = [r for r in demo.json["codecs"] if r["codec"] == codec and not r["library"].startswith("lz4.frame")]
    for name in COUNTS:
        cell(f"decompress_{name}", f"demo job, {codec}", UPROOT, demo.serial["codecs"][codec][name],
             jobs.total(rows, name))


def test_tasks_decompress_what_the_codecs_do(demo):
    for name in COUNTS:
        assert jobs.total(demo.json["tasks"], f"decompress_{name}") == jobs.total(demo.json["codecs"], name), name


def test_read_bytes_per_file_as_strace_counts(demo, cell):
    for unit in ("bytes", "calls"):
        seen = jobs.by_file(demo.json, f"read_{unit}")
        for path in demo.files:
            cell(f"read_{unit}", f"demo job, {name_of(path)}", STRACE, demo.reads[path][unit], seen.get(path))


def test_tasks_read_what_strace_counts(demo, cell):
    """The sum is complete, although threads that no task owns read nearly all of it."""
    cell("read_bytes", "demo job, sum of its tasks", STRACE, sum(r["bytes"] for r in demo.reads.values()),
         jobs.total(demo.json["tasks"], "read_bytes"))


def test_storage_is_what_came_into_the_page_cache(demo, cell):
    """A task read each page in the cache, and nothing was counted that the kernel did not charge.
    Both numbers are the same unless the kernel evicts pages in between."""
    seen = jobs.total(demo.json["tasks"], "storage_read_bytes")
    cell("storage_read_bytes", "demo job, sum of its tasks", f"{MINCORE} .. {RUSAGE}",
         (sum(demo.resident.values()), demo.charged), seen)


def test_storage_per_file(demo, cell):
    """A file can have at most the kernel's charge minus the other files' pages."""
    files = jobs.by_file(demo.json, "storage_read_bytes")
    for path in demo.files:
        others = sum(bytes for other, bytes in demo.resident.items() if other != path)
        cell("storage_read_bytes", f"demo job, {name_of(path)}", f"{MINCORE} .. {RUSAGE}, less the other files' pages",
             (demo.resident[path], demo.charged - others), files[path])


def test_coffea_numbers_equal_coffea_report(demo, cell):
    metrics, report = demo.json["metrics"], demo.coffea
    for name, word, tolerance in (("total_events", "entries", 0), ("total_bytes_read_coffea", "bytesread", 0),
                                  ("num_chunks", "chunks", 0), ("total_cpu_time", "processtime", 1e-9)):
        cell("coffea", f"demo job, {word}", COFFEA, report[word], metrics[name], tolerance * report[word])
    columns = {c for chunk in demo.json["chunks"] if chunk["counted"] for c in chunk["columns"]}
    assert columns == set(report["columns"])


def test_chunks_cover_each_file_once(demo):
    ranges = sorted((c["filename"], c["entrystart"], c["entrystop"], c["events"])
                    for c in demo.json["chunks"] if c["counted"])
    assert ranges == sorted((p, s, s + 50_000, 50_000) for p in demo.files for s in range(0, 200_000, 50_000))
    assert {c["dataset"] for c in demo.json["chunks"]} == set(demo.output["events"])
    assert {c["treename"] for c in demo.json["chunks"]} == {"Events"}


def test_everything_was_seen(demo, cell):
    rest = demo.json["completeness"]
    assert rest["workers_seen"] == 2
    assert rest["records_refused"] == 0
    assert rest["records_lost"] == 0
    cell("sums", "demo job, unseen storage bytes", "0: every thread of the worker is known to crema", 0,
         rest["unseen"]["storage_read_bytes"])


def test_sums_are_the_kernels(demo, cell):
    """The workers' bytes around the demo job, read in the workers by Python."""
    for i, (pid, truth) in enumerate(sorted(demo.kernel.items())):
        cell("sums", f"demo job, worker {i}, storage bytes", RUSAGE, truth, demo.sums[pid])


@pytest.mark.parametrize("name", ["storage_read_bytes", "cpu_seconds"])
def test_tasks_unattributed_and_unseen_are_the_process(shared, demo, cell, name):
    """The sums cover the workers' whole lifetime, so the whole lifetime is compared."""
    for i, worker in enumerate(shared.procs.report_json()["workers"]):
        parts = sum(worker[part][name] for part in ("tasks", "unattributed", "unseen"))
        cell("sums", f"worker {i}'s life, {name}", "RUSAGE_SELF as the worker's agent read it; unseen is what is left", worker["rusage"][name],
             parts, 0 if name.endswith("bytes") else 1e-6)


def test_rusage_is_the_kernels(shared, demo):
    before = {w["pid"]: w["rusage"]["cpu_seconds"] for w in shared.procs.report_json()["workers"]}
    kernel = {row["pid"]: row["cpu_seconds"] for row in shared.client.run(jobs.rusage).values()}
    after = {w["pid"]: w["rusage"]["cpu_seconds"] for w in shared.settled(lambda r: True)["workers"]}
    assert set(kernel) == set(before)
    for pid, truth in kernel.items():
        assert before[pid] <= truth
        # The shim starts to count a little after the process starts.
        assert truth - 2 <= after[pid] <= truth + 5


def test_time_classes_sum_to_wall(demo):
    classes = ("cpu_seconds", "runqueue_wait_seconds", "gil_wait_seconds", "lock_wait_seconds",
               "network_wait_seconds", "storage_wait_seconds", "sleep_seconds")
    for task in demo.json["tasks"]:
        parts = sum(task[c] or 0 for c in classes)
        if task["unclassified_seconds"] is not None:
            assert parts + task["unclassified_seconds"] == pytest.approx(task["wall_seconds"], abs=1e-6)


def test_counted_attempts(demo):
    counted = [t for t in demo.json["tasks"] if t["counted"]]
    assert len({t["key"] for t in counted}) == len(counted)
    for task in demo.json["tasks"]:
        assert task["counted"] == (task["waste_reason"] is None), task


def test_report_merges_coffea_report(shared, demo, tmp_path):
    done = shared.procs.report("--run", demo.json["run"], "--coffea-report", demo.coffea_file)
    assert done.returncode == 0, done.stderr
    assert "disagree" not in (done.stdout + done.stderr).lower()
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({**demo.coffea, "entries": demo.coffea["entries"] + 1}))
    done = shared.procs.report("--coffea-report", changed)
    assert "disagree" in (done.stdout + done.stderr).lower()


def test_journal_can_be_reported_as_text(shared, demo):
    done = shared.procs.report()
    assert done.returncode == 0, done.stderr
    assert "800" in done.stdout  # 800,000 events, with any digit grouping
    assert shared.procs.report("--list").stdout.strip()


def test_without_savemetrics(shared, data, tmp_path):
    """Values that only coffea knows are unknown, not 0; crema's own measurements are there."""
    output = tmp_path / "output.json"
    jobs.run_example(shared.procs, [data["zlib"]], output, extra=["--no-savemetrics"])
    found = shared.settled(lambda r: len(r["chunks"]) == 4)
    for name in ("total_bytes_read_coffea", "total_cpu_time", "avg_cpu_time_per_chunk", "core_efficiency"):
        assert found["metrics"][name] is None, name
    for chunk in found["chunks"]:
        assert chunk["coffea_bytesread"] is None
        assert chunk["coffea_processtime_seconds"] is None
        assert chunk["columns"] is None
    assert found["metrics"]["total_events"] == 200_000
    assert found["metrics"]["num_chunks"] == 4
    assert jobs.total(found["tasks"], "read_bytes") > 0


@pytest.mark.parametrize("name,function,how", [
    ("sleep_seconds", waits.sleeps, "the task's own clock around time.sleep"),
    ("lock_wait_seconds", waits.waits_for_lock, "the task's own clock around a lock that another thread holds"),
    ("network_wait_seconds", waits.waits_for_peer, "the task's own clock around recv from a slow peer"),
    ("network_read_bytes", waits.receives, "bytes that recv returned to the task and to the peer, a thread of the task's"),
])
def test_wait(shared, cell, name, function, how):
    """The known time within 5 %, plus the task's wait for a CPU; the peer or the lock's holder is a
    thread that the task started."""
    truth, (task,) = jobs.submit(shared.procs, shared.client, name, function)
    tolerance = 0 if name.endswith("bytes") else truth / 20 + task["runqueue_wait_seconds"]
    cell("waits", name, how, truth, task[name], tolerance)
    if name == "network_read_bytes":
        cell("waits", "network_write_bytes", "its request, and what its peer sent", len(waits.REQUEST) + waits.BYTES, task["network_write_bytes"])


def test_waits_of_asynchronous_task(shared, cell):
    _, (task,) = jobs.submit(shared.procs, shared.client, "async", waits.sleeps_in_loop)
    for name in ("cpu_seconds", "sleep_seconds", "lock_wait_seconds", "network_wait_seconds", "storage_wait_seconds"):
        cell("waits", f"asynchronous task, {name}", "its own time is not apart from the loop's", None, task[name],
             unknown="thread clocks were tried: asynchronous tasks share the event loop's thread")
