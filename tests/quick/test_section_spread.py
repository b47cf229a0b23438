"""Sections by dataset and their spread: the time of each execution is known here, and so are minimum, median and maximum."""

import json
import math
import random
import statistics

import pytest
import test_reports  # sets the path to frames.py and tables.py
import frames
import tables
from test_reports import COUNTS, SPAN, WORKERS, as_seconds, number
from test_small_runs import reported

SPREAD = ("wall_min_seconds", "wall_median_seconds", "wall_max_seconds")
WITHIN = 2 ** (1 / 8) - 1  # half of a bucket, which is a quarter of an octave
MS = 10**6
MANY = random.Random(7)
LONG = [round(math.exp(MANY.uniform(math.log(2 * MS), math.log(40_000 * MS)))) for _ in range(501)]

# worker, path, dataset, beyond, nanoseconds of each execution, whether the agent reports spreads
ROWS = [(0, "jets", "ttbar", False, [10 * MS, 21 * MS, 33 * MS, 900 * MS], True),
        (1, "jets", "ttbar", False, [15 * MS], True),
        (0, "jets", "wjets", False, [100 * MS, 301 * MS], True),
        (1, "jets", None, True, [5 * MS, 6 * MS, 7 * MS], True),
        (0, "jets", None, False, [8 * MS], True),
        (0, "many", "ttbar", False, LONG[:100], True), (1, "many", "ttbar", False, LONG[100:], True),
        (0, "old", None, False, [3 * MS, 4 * MS], False),
        (0, "mixed", None, False, [3 * MS, 4 * MS], False), (1, "mixed", "ttbar", False, [5 * MS], True),
        (0, "open", "ttbar", False, [], True),
        (0, "tiny", "ttbar", False, [0, 100, 900], True),
        (0, "ages", "ttbar", False, [4 * 3600 * 10**9, 5 * 3600 * 10**9, 6 * 3600 * 10**9], True)]


def buckets(walls):
    found = [0] * 130
    for wall in walls:
        found[0 if wall < 1024 else min(129, 1 + math.floor(4 * math.log2(wall / 1024)))] += 1
    first = next((i for i, n in enumerate(found) if n), 0)
    return [first, *found[first:]]


def counters(n):
    return {name: number("spread", name, n) for name in COUNTS}


def fill(journal):
    for n, (worker, path, dataset, beyond, walls, knows) in enumerate(ROWS):
        new = {"dataset": dataset, **({"beyond": True} if beyond else {}), "wall_min_ns": min(walls, default=None), "wall_max_ns": max(walls, default=None),
               "wall_buckets": buckets(walls)}
        journal.message([17, {"number": n, "path": path, "span": SPAN, "prefix": "work", "thread": "task", "source": "crema", "rev": 2 * n + 2, "begun": len(walls) + 1,
                              "count": len(walls), "broken": 0, "wall_ns": sum(walls), "counters": counters(n), **(new if knows else {})}], WORKERS[worker])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = reported(tmp_path_factory.mktemp("spread"), fill)
    found.page = test_reports.data_of_page(found)
    return found


def walls_of(path, *which):
    """For all datasets, or for one: (dataset, beyond)."""
    return sorted(ns for _, p, dataset, beyond, walls, _ in ROWS if p == path and (not which or which == (dataset, beyond)) for ns in walls)


def is_spread(row, walls):
    least, median, most = (row[name] for name in SPREAD)
    assert (row["count"], least, most) == (len(walls), min(walls) / 1e9, max(walls) / 1e9)
    assert least <= median <= most and abs(median * 1e9 - statistics.median(walls)) <= max(WITHIN * statistics.median(walls), 513)


def test_by_dataset(made):
    found = {(row["section"], row["dataset"], row["beyond_table"]): row for row in made.json["sections_by_dataset"]}
    assert len(found) == len(made.json["sections_by_dataset"]) == 11
    for key in [("jets", "ttbar", False), ("jets", "wjets", False), ("jets", None, True), ("jets", None, False), ("many", "ttbar", False), ("tiny", "ttbar", False)]:
        is_spread(found[key], walls_of(key[0], *key[1:]))
    # with two executions, or one, the values are exact
    assert found["jets", "wjets", False]["wall_median_seconds"] == pytest.approx(0.2005, abs=1e-12)
    assert [found["jets", None, False][name] for name in SPREAD] == [0.008] * 3
    for name in ("read_bytes", "decompress_calls"):
        assert found["jets", "ttbar", False][name] == counters(0)[name] + counters(1)[name]
    assert made.json["sections_unmeasured"]["without_dataset"] == 3
    walls = [row["wall_seconds"] for row in made.json["sections_by_dataset"]]
    assert walls == sorted(walls, reverse=True)


def test_sums_over_datasets(made):
    """The list without datasets equals the sums of the datasets' rows, to the last digit."""
    rows = made.json["sections"]
    assert sorted(row["section"] for row in rows) == sorted({path for _, path, *_ in ROWS})
    for row in rows:
        parts = [part for part in made.json["sections_by_dataset"] if part["section"] == row["section"]]
        for name in ("count", "broken", "unfinished", *COUNTS):
            if name in row and row[name] is not None:
                assert row[name] == sum(part[name] for part in parts), name
        assert round(row["wall_seconds"] * 1e9) == sum(round(part["wall_seconds"] * 1e9) for part in parts) == sum(walls_of(row["section"]))
    by_name = {row["section"]: row for row in rows}
    for path in ("jets", "many", "tiny"):
        is_spread(by_name[path], walls_of(path))


def test_unknown_spreads(made):
    """Agents without spreads: unknown, also together with an agent that sends them. No execution ended: unknown. Longer than the last bucket: the median."""
    rows = {row["section"]: [row[name] for name in SPREAD] for row in made.json["sections"]}
    assert rows["old"] == rows["mixed"] == rows["open"] == [None] * 3
    assert rows["ages"] == [4 * 3600, None, 6 * 3600]
    mixed = [[row[name] for name in SPREAD] for row in made.json["sections_by_dataset"] if row["section"] == "mixed"]
    assert sorted(mixed, key=str) == [[0.005] * 3, [None] * 3]


def test_terminal(made):
    lines = made.printed.splitlines()
    at = lines.index("Sections by dataset, most time first")
    assert lines[at + 1].split() == ["section", "dataset", "times", "wall", "least", "median", "most"]
    row, = (line.split() for line in lines[at:] if line.split()[:2] == ["jets", "wjets"])
    assert row[2] == "2" and " ".join(row[3:]) == " ".join(map(as_seconds, (0.401, 0.1, 0.2005, 0.301)))
    assert any(line.split()[:4] == ["jets", "(beyond", "the", "table)"] for line in lines) and any(line.split()[:2] == ["jets", "(unknown)"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_sheets_and_page(made, tmp_path):
    test_reports.report(made, "--csv", tmp_path / "csv", "--sqlite", tmp_path / "run.db")
    for name in ("sections", "sections_by_dataset"):
        tables.check(made.json, name, tables.read_csv(tmp_path / "csv", name))
    for name, rows in (("sections", made.json["sections"]), ("sections_by_dataset", made.json["sections_by_dataset"])):
        shown = made.page[name]
        assert shown["total"] == len(shown["rows"]) == len(rows)
        for cell, row in zip(shown["rows"], rows):
            for column in ("section", "count", "wall_seconds", "cpu_seconds", *SPREAD):
                assert cell[column] == row[column], column
            assert (cell["dataset"], cell["beyond"]) == (row.get("dataset"), row.get("beyond_table", False))


def test_measurement(made):
    found = json.loads(made.measurement)
    jets = found["sections"]["jets"]
    is_spread({"count": jets["count"], **{name: jets[f"{part}_duration"] for name, part in zip(SPREAD, ("min", "median", "max"))}}, walls_of("jets"))
    assert "median_duration" not in found["sections"]["old"]
    ttbar = found["sections_by_dataset"]["ttbar"]["jets"]
    assert (ttbar["count"], ttbar["total_duration"]) == (5, pytest.approx(0.979)) and set(found["sections_by_dataset"]) == {"ttbar", "wjets"}
