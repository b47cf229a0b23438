"""Small journals in which only the order, the sum or the note that a test asks for can be right."""

import json
import re

import pytest
import test_reports  # knows where frames.py is
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
    """Without an amplification by the bytes that were read; rows of a file add up, also those of its baskets."""
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
