"""Small journals, in each of which a test checks one order, sum or note."""

import json
import re
import subprocess

import pytest
import test_reports  # sets the path to frames.py
import frames
from test_reports import WORKERS, at


def reported(tmp_path, fill, *options):
    made = test_reports.Made()
    journal = frames.Journal(tmp_path / "journal")
    for k, worker in enumerate(WORKERS):
        journal.worker(worker, pid=100 + k)
    journal.task(1, "work-1", 0, 1000, WORKERS[0], prefix="work", flags=test_reports.CHUNK, **test_reports.task_values(1))
    fill(journal)
    journal.write()
    made.journal, made.folder = tmp_path / "journal", tmp_path
    made.printed = test_reports.report(made, *options)
    test_reports.report(made, "--json", tmp_path / "run.json", "--measurement", tmp_path / "measurement")
    made.json = json.loads((tmp_path / "run.json").read_text())
    made.measurement = (tmp_path / "measurement" / "metrics.json").read_text()
    return made


def test_sections_by_their_time(tmp_path):
    def fill(journal):
        for n, (path, prefix, wall) in enumerate((("short", "work", 1), ("twice", "work", 3), ("long", "work", 5), ("twice", "other", 4), ("a-tie", "work", 5))):
            journal.message([17, {"number": n + 1, "path": path, "span": test_reports.SPAN, "prefix": prefix, "thread": "task", "source": "crema", "rev": 1, "begun": 1,
                                  "count": 1, "broken": 0, "wall_ns": wall * 10**9, "counters": {}}], WORKERS[0])

    made = reported(tmp_path, fill)
    assert [(s["section"], s["wall_seconds"]) for s in made.json["sections"]] == [("a-tie", 5), ("long", 5), ("twice", 4), ("twice", 3), ("short", 1)]
    pairs = []
    json.loads(made.measurement, object_pairs_hook=lambda found: pairs.append([name for name, _ in found]))
    names = next(found for found in pairs if {"short", "twice"} <= set(found))
    assert sorted(names) == ["a-tie", "long", "short", "twice"]


def test_files(tmp_path):
    """Files without an amplification are ordered by the bytes that were read; rows of a file add up, including those of its baskets."""
    def fill(journal):
        for path, read in (("/data/least.root", 5_000), ("/data/most.root", 7_000), ("/data/middle.root", 6_000)):
            journal.message([12, {"path": path, "span": test_reports.SPAN, "kind": "data", "read_calls": 1, "read_bytes": read}], WORKERS[0])
        for worker, raw in zip(WORKERS, (3000, 4500)):
            journal.message([12, {"path": "/data/a.root", "span": test_reports.SPAN, "kind": "data", "size_bytes": 9000, "read_calls": 1, "read_bytes": 1000, "basket_calls": 1,
                                  "basket_bytes": 1000, "basket_raw_bytes": raw, "basket_extent_bytes": 1000, "unique_basket_bytes": 1000, "basket_ranges": [0, 1000]}], worker)

    made = reported(tmp_path, fill)
    page = test_reports.data_of_page(made)
    assert [row["path"] for row in page["files"]["rows"] if row["path"] != "/data/a.root"] == ["/data/most.root", "/data/middle.root", "/data/least.root"]
    used = json.loads(made.measurement)["file_read_metrics"]
    row, = (row for name, row in used.items() if name.endswith("a.root") or name == "a")
    assert made.json["metrics"]["file_read_metrics"]["/data/a.root"]["compression_ratio"] == pytest.approx(7500 / 2000)
    assert row["file_bytes"] == 9000


@pytest.mark.parametrize("steps", [(0, 3_500_000_000), (0, 500_000_000, -3_500_000_000)])
def test_a_clock_that_was_set(tmp_path, steps):
    def fill(journal):
        for n, step in enumerate(steps):
            journal.message([15, {"boot_ns": at(1000 * n), "real_ns": frames.BASE_NS + 10**9 * n, "offset_ns": step, "error_ns": 1000}], WORKERS[0])

    made = reported(tmp_path, fill)
    notes = [note for note in made.json["completeness"]["notes"] if "clock was set" in note]
    assert [re.search(r"set by (\S+) s", note)[1] for note in notes] == ["+3.5" if len(steps) == 2 else "-4.0"]


def test_a_list_of_runs_without_chunks(tmp_path):
    """Their events are unknown; those of the other run are its chunks'."""
    def fill(journal):
        journal.task(2, "plain-1", 5000, 6500, WORKERS[1], prefix="plain", span="plain-span")
        journal.task(3, "plain-2", 5500, 7000, WORKERS[1], prefix="plain", span="plain-span")

    made = reported(tmp_path, fill, "--list")
    lines = [line.split() for line in made.printed.splitlines() if " s " in line]
    assert [line[1:6] for line in lines] == [["1.000", "s", "1", "1", str(made.json["metrics"]["total_events"])], ["2.000", "s", "2", "0", "-"]]


def test_threads_with_the_longest_tasks(tmp_path):
    """More threads than fit; their longest tasks differ by a few nanoseconds."""
    longer = {n: 1 + n * 37 % 66 for n in range(66)}

    def fill(journal):
        for n, ns in longer.items():
            journal.task(100 + n, f"lane-{n}", 2000 + n, 3000 + n, WORKERS[1], prefix="lane", thread=1000 + n, span=test_reports.SPAN, stop_boot_ns=at(3000 + n) + ns)
            journal.task(500 + n, f"short-{n}", 5000, 5001, WORKERS[1], prefix="lane", thread=1000 + n, span=test_reports.SPAN)

    stream = test_reports.data_of_page(reported(tmp_path, fill))["stream"]
    shown = {bar[0] for bar in stream["bars"] if bar[0].startswith("lane")}
    assert stream["lanes_total"] == len(longer) + 1 and len(stream["lanes"]) == 64
    assert shown == {f"lane-{n}" for n, ns in longer.items() if ns > 2}


def test_taskvines_own_times(tmp_path):
    """By execution and by category, from a log of three: one that was retrieved, one that is running, and one that is still waiting."""
    log = tmp_path / "transactions"
    facts = {"time_worker_start": [1800000002.25, "s"], "time_worker_end": [1800000003.5, "s"], "wall_time": [1.25, "s"], "time_input_mgr": [0.5, "s"],
             "size_input_mgr": [2, "MB"], "time_output_mgr": [0.125, "s"], "size_output_mgr": [0.5, "MB"]}
    log.write_text("1800000001000000 7 TASK 2 READY processing FIRST_RESOURCES 1 {}\n1800000002000000 7 TASK 2 RUNNING worker-a FIRST_RESOURCES {}\n"
                   f"1800000004000000 7 TASK 2 RETRIEVED SUCCESS 0 {{}} {json.dumps(facts, separators=(',', ':'))}\n"
                   "1800000003000000 7 TASK 3 READY processing FIRST_RESOURCES 1 {}\n1800000005500000 7 TASK 3 RUNNING worker-a FIRST_RESOURCES {}\n"
                   "no line\n1800000003000000 7 TASK 4 READY merging FIRST_RESOURCES 1 {}\n")
    made = reported(tmp_path, lambda journal: None, "--full", "--taskvine-log", log)
    found = json.loads(test_reports.report(made, "--taskvine-log", log, "--json", "-"))["taskvine"]
    assert (found["problem"], found["lines_bad"], len(found["tasks"])) == (None, 1, 3)
    first, second, third = found["tasks"]
    assert first == {"task": 2, "category": "processing", "result": "SUCCESS", "worker_id": None, "ready": 1800000001, "running": 1800000002,
                     "worker_start": 1800000002.25, "worker_end": 1800000003.5, "retrieved": 1800000004, "waited_seconds": 1, "wall_seconds": 1.25,
                     "input_seconds": 0.5, "input_bytes": 2 * 2**20, "output_seconds": 0.125, "output_bytes": 2**19}
    assert [second[name] for name in ("task", "ready", "running", "waited_seconds", "retrieved", "wall_seconds")] == [3, 1800000003, 1800000005.5, 2.5, None, None]
    assert [third[name] for name in ("task", "category", "running", "waited_seconds")] == [4, "merging", None, None]
    lines = [re.split(r" {2,}", line.strip()) for line in made.printed.split("TaskVine's tasks, from its log\n")[1].splitlines()[:3]]
    assert lines == [["category", "tasks", "measured", "waited", "wall", "work in it", "sent", "returned"],
                     ["processing", "2", "0", "3.500 s", "unknown", "unknown", "unknown", "unknown"], ["merging", "1", "0", *["unknown"] * 5]]
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines() if " 3 " not in line and " 4 " not in line))
    row = re.split(r" {2,}", test_reports.report(made, "--full", "--taskvine-log", log).split("TaskVine's tasks, from its log\n")[1].splitlines()[1].strip())
    assert row == ["processing", "1", "0", "1.000 s", "1.250 s", "unknown", "2.097 MB", "524.3 kB"]


def test_long_waits_from_one_place(tmp_path):
    """One line if the innermost frame, the file's name, the wait and the prefix are the same; the JSON has each."""
    def fill(journal):
        for n, (ms, path, frame, prefix) in enumerate(((500, "/a/x.root", 1, "work"), (400, "/b/x.root", 2, "work"), (250, "/b/x.root", 2, "work"), (300, "/b/y.root", 2, "work"),
                                                       (60, "/c/y.root", 2, "work"), (70, "/a/x.root", 1, "other"))):
            journal.message([21, {"number": n, "wait": "storage_wait_ns", "waited_ns": ms * 10**6, "span": test_reports.SPAN, "prefix": prefix, "file": path,
                                  "frames": [0, 4096, 0, 4096 * (frame + 1)], "end_boot_ns": at(900)}], WORKERS[0])

    made = reported(tmp_path, fill, "--full")
    assert sorted((row["count"], round(row["waited_seconds"], 9), row["longest_seconds"]) for row in made.json["blocking"]) == [
        (1, 0.06, 0.06), (1, 0.07, 0.07), (1, 0.3, 0.3), (1, 0.5, 0.5), (2, 0.65, 0.4)]
    lines = [re.split(r" {2,}", line.strip()) for line in made.printed.split("Long waits")[1].splitlines()[2:5]]
    assert lines == [["storage", "0x1000", "x.root", "work", "3", "1.150 s", "500.0 ms"], ["storage", "0x1000", "y.root", "work", "2", "360.0 ms", "300.0 ms"],
                     ["storage", "0x1000", "x.root", "other", "1", "70.00 ms", "70.00 ms"]]


def test_runs_at_once(tmp_path):
    def fill(journal):
        journal.task(2, "plain-1", 200, 700, WORKERS[0], prefix="plain", span="plain-span")

    made = reported(tmp_path, fill)
    assert "1 other run on its workers meanwhile: numbers of whole workers and hosts" in " ".join(made.printed.split())
    short = subprocess.run([test_reports.ROOT / "build/crema", "report", "--dir", tmp_path], capture_output=True, text=True, check=True).stdout
    assert re.search(r"\b1 other run .*workers meanwhile: ", " ".join(short.split()))


@pytest.mark.parametrize("more, shown", [((), "send processor"), ((("lambda-1", 40, 60),), "send processor"), ((("lambda-2", 40, 60),), "lambda"),
                                         ((("lambda-1", 1500, 1600),), "lambda")])
def test_names_of_coffeas_own_tasks(tmp_path, more, shown):
    """coffea's lambda is sent once before the first chunk, and again if it is lost; any other lambda is the user's."""
    def fill(journal):
        journal.task(20, "automatic_retries-1", -300, -200, WORKERS[0], prefix="automatic_retries", flags=1 << 9)
        for n, (key, start, stop) in enumerate((("lambda-1", -100, -50), *((key, start - (1000 if start < 1000 else 0), stop - (1000 if start < 1000 else 0)) for key, start, stop in more))):
            journal.task(21 + n, key, start, stop, WORKERS[0], prefix="lambda")

    made = reported(tmp_path, fill, "--full")
    assert "preprocess" in made.printed and "automatic_retries" not in made.printed
    assert ("send processor" if shown == "lambda" else "lambda") not in made.printed and shown in made.printed


def alone(tmp_path, fill, *options, also=b""):
    """(JSON or None, text, standard error) of a journal that only `fill` makes."""
    journal = frames.Journal(tmp_path / "journal")
    journal.worker()
    fill(journal)
    journal.write()
    journal.path.write_bytes(journal.path.read_bytes() + also)
    done, text = (subprocess.run([test_reports.ROOT / "build/crema", "report", "--dir", tmp_path, *more], capture_output=True, text=True)
                  for more in (["--json", "-"], options))
    return json.loads(done.stdout) if done.returncode == 0 else None, " ".join(text.stdout.split()), text.stderr


def test_what_has_no_span(tmp_path):
    data, text, _ = alone(tmp_path, lambda journal: journal.task(1, "k", span=None), "--full")
    assert "the tasks have no spans (older Dask): grouped by time" in text and data["metrics"]["num_tasks"] == 1


def test_time_that_nobody_knows(tmp_path):
    """A coroutine has kept a thread from other tasks, but an actor's has not."""
    _, text, _ = alone(tmp_path / "coroutine", lambda journal: journal.task(1, "k", flags=1, prefix="loop"))
    assert "u not measured 100 % (100.0 ms)" in text
    _, text, _ = alone(tmp_path / "actor", lambda journal: journal.task(1, "k", flags=1 | 1 << 4, prefix="loop"))
    assert "What held it back unknown: the time of no task is known" in text


def test_a_torn_file(tmp_path):
    data, *_ = alone(tmp_path, lambda journal: journal.task(1, "k"), also=b"x" * 4321)
    torn, = data["completeness"]["torn_files"]
    assert torn["bytes_skipped"] == 4321 and torn["file"] == f"journal/{frames.BASE_NS:020}-journal.crema"


def test_a_file_of_a_server(tmp_path):
    """Without the bytes of read calls: bytes from the network divided by those used, unless fewer bytes arrived than were used."""
    def fill(journal):
        journal.task(1, "k")
        for path, came in (("root://s//a", 3_000_000), ("root://s//b", 900_000)):
            journal.message([12, {"path": path, "span": "span-1", "kind": "remote", "network_read_bytes": came, "basket_calls": 1, "basket_bytes": 1_000_000}])

    data, *_ = alone(tmp_path, fill)
    assert {row["path"][-1]: row["read_amplification"] for row in data["files"]} == {"a": 3, "b": None}


def test_imports(tmp_path):
    """Rows of all workers add up, and the sum is unknown if one of them is."""
    def fill(journal):
        journal.task(1, "k")
        for read in ({"read_calls": 2, "read_bytes": 3000}, {"read_calls": 5, "read_bytes": 40_000}, {"read_calls": 7}):
            journal.message([12, {"span": "span-1", "kind": "import", "path": f"/lib/{len(read)}{read['read_calls']}.py", **read}])

    rest = alone(tmp_path, fill)[0]["imports"]
    assert (rest["read_calls"], rest["read_bytes"]) == (14, None)


def test_no_run_but_a_reason(tmp_path):
    data, _, why = alone(tmp_path, lambda journal: journal.message([11, {"boot_ns": frames.BOOT_NS, "notes": ["the patch of uproot failed"]}]))
    assert data is None and "contain no tasks (a worker reports: the patch of uproot failed)" in why


def test_amplification(tmp_path):
    """For chunks that mapped nothing: by dataset, by set of columns and by file. Bytes from the network count only for files on servers."""
    def fill(journal):
        for n, (name, asked, read, sent, used) in enumerate((("pure", 3000, 5000, 0, 2000), ("pure", 1500, 1000, 500, 1000), ("other", 700, 77, 4000, 1600))):
            journal.task(10 + n, f"chunk-{n}", 2000 + 1000 * n, 2900 + 1000 * n, WORKERS[1], prefix="work", span=test_reports.SPAN, flags=2, dataset=name,
                         filename="/data/pure.root" if name == "pure" else "root://s//other.root", treename="t", entrystart=10 * n, entrystop=10 * n + 10, events=10, coffea_bytesread=asked, columns="a\nb\nc",
                         **{**dict.fromkeys(test_reports.COUNTS, 0), "read_bytes": read, "network_read_bytes": sent, "basket_bytes": used})
        journal.message([12, {"path": "/data/pure.root", "span": test_reports.SPAN, "kind": "data", "storage": "exact", "read_calls": 1, "read_bytes": 6000, "mapped_bytes": 0,
                              "extent_bytes": 6000, "unique_bytes": 4500, "ranges": [0, 4500], "basket_calls": 2, "basket_bytes": 3000, "basket_raw_bytes": 6000,
                              "basket_extent_bytes": 3000, "unique_basket_bytes": 2900, "basket_ranges": [0, 2900]}], WORKERS[1])

    data = reported(tmp_path, fill).json
    names = ("chunks", "requested_bytes", "basket_bytes", "outside_basket_bytes", "read_amplification", "requested_amplification")
    rows = {row["dataset"]: row for row in data["bytes"]["datasets"]}
    assert [rows["pure"][name] for name in names] == [2, 4500, 3000, 3000, 2, 1.5]
    assert [rows["other"][name] for name in names] == [1, 700, 1600, 2400, 2.5, 0.4375]
    assert [rows[name]["files_reread_bytes"] for name in ("pure", "other")] == [1500, None]
    row, = (row for row in data["bytes"]["branch_sets"] if row["columns"] == ["a", "b", "c"])
    assert [row[name] for name in names] == [3, 5200, 4600, 5400, pytest.approx(10_000 / 4600), pytest.approx(5200 / 4600)]
    row, = (row for row in data["files"] if row["path"] == "/data/pure.root")
    told = {"requested_bytes": 4500, "unique_bytes": 4500, "reread_bytes": 1500, "unique_basket_bytes": 2900, "outside_basket_bytes": 1600, "read_amplification": 2,
            "requested_amplification": 1.5}
    assert {name: row[name] for name in told} == told


@pytest.mark.parametrize("cut, span, seconds, note", [
    (0, "span-2", 9, None), (3, "span-2", 9, "Dask's fine metrics: 0 workers sent none, 1 only a part"), (3, test_reports.SPAN, 9, None),
    (3, test_reports.SPAN, 0.5, "Dask's fine metrics: 0 workers sent none, 1 only a part"), (None, None, 0, "Dask's fine metrics: 2 workers sent none, 0 only a part")])
def test_digests_of_which_some_are_cut(tmp_path, cut, span, seconds, note):
    """A worker that could not send all digests is reported, unless it sent those of this run after the run's last task."""
    def fill(journal):
        for worker in WORKERS if cut is not None else ():
            digests = [["execute", span, "work", "thread-cpu", "seconds", 1.5]]
            journal.message([10, at(1000 * seconds), json.dumps({"nthreads": 1, "digests": digests, "digests_cut": cut if worker == WORKERS[0] else 0, "digests_whole": True})], worker)

    notes = reported(tmp_path, fill).json["completeness"]["notes"]
    assert [text for text in notes if "fine metrics" in text] == [note] * (note is not None)
