"""Bytes per file, layer by layer: what coffea requested, what was read, what was read
again, what came from the page cache, and the size of the baskets that uproot used."""

import os
from pathlib import Path

import cells
import cold
import jobs
import pytest
import read_patterns
from accuracy import COFFEA, MINCORE, RUSAGE
from baskets import Baskets
from distributed import span
from test_real_nano import count_jets, count_muons

BRANCHES = "fBasketBytes of the columns' baskets (uproot without crema)"
PATTERN = "the reads' own offsets and results"
# Each opens a tree of some 2,000 columns, which takes a third of the CPU with the second file.
NANO, COUNT = ("nano_tt_v15.root", count_jets) if cells.FURTHER else ("nano_dy.root", count_muons)


def nano():
    if "CREMA_TEST_DATA" not in os.environ:
        pytest.skip("CREMA_TEST_DATA is not set")
    return str((Path(os.environ["CREMA_TEST_DATA"]) / NANO).resolve())


def row_of(report, path):
    return next(r for r in report["files"] if r["path"] == os.path.realpath(path))


def known(report, paths):
    """Whether the lists of byte ranges have arrived: they do once a file was not used for a second."""
    rows = {r["path"]: r for r in report["files"]}
    return all(os.path.realpath(p) in rows and rows[os.path.realpath(p)]["reread_bytes"] is not None for p in paths)


def check_sums(row):
    assert row["read_bytes"] == row["unique_bytes"] + row["reread_bytes"]
    assert row["unique_bytes"] == row["read_basket_bytes"] + row["outside_basket_bytes"]
    assert row["read_bytes"] == row["large_read_bytes"] + row["small_read_bytes"]
    assert row["unique_bytes"] <= row["size_bytes"]


def chunks_of(report):
    return [c for c in report["chunks"] if c["counted"]]


def check_baskets(cell, name, report, path):
    """The baskets of the chunks and of the file are those that the file itself lists."""
    truth = [Baskets(path).of_chunk(chunk) for chunk in chunks_of(report)]
    each = [basket for chunk in truth for basket in chunk]
    row = row_of(report, path)
    numbers = {"basket_calls": len(each), "basket_bytes": sum(b[1] for b in each),
               "basket_raw_bytes": sum(b[2] for b in each)}
    for number, value in numbers.items():
        cell("basket_bytes", f"{name}, {number}", BRANCHES, value, row[number])
        assert jobs.total(report["tasks"], number) == row[number]
    for chunk, baskets in zip(chunks_of(report), truth):
        assert chunk["basket_bytes"] == sum(b[1] for b in baskets), chunk["columns"]


@pytest.mark.parametrize("chunks", [pytest.param(1, marks=pytest.mark.further), 2, *(pytest.param(n, marks=pytest.mark.matrix) for n in (5, 10))])
def test_small_chunks_request_the_metadata_again(shared, cell, chunks):
    path, name = nano(), f"NanoAOD in {chunks} chunks"
    entries = Baskets(path).tree.num_entries
    with span(name) as own:
        _, report = jobs.run_coffea(shared.client, [path], chunksize=-(-entries // chunks), processor_instance=COUNT)
    found = shared.settled(lambda r: len(r["chunks"]) >= chunks and known(r, [path]), run=own)
    assert len(chunks_of(found)) == report["chunks"] == chunks
    check_baskets(cell, name, found, path)
    row = row_of(found, path)
    cell("basket_bytes", f"{name}, each basket once", BRANCHES, baskets_once(found, path), row["unique_basket_bytes"])
    cell("coffea", f"{name}, bytesread", COFFEA, report["bytesread"], row["requested_bytes"])
    check_sums(row)
    # Every basket that was used is in what was read; the rest is metadata, the same for all chunks.
    assert row["read_basket_bytes"] == row["unique_basket_bytes"]
    assert row["chunks"] == chunks and row["outside_basket_bytes"] > 100 * row["read_basket_bytes"]
    assert found["metrics"]["requested_amplification"] == report["bytesread"] / found["metrics"]["basket_bytes"]
    (group,) = found["bytes"]["branch_sets"]
    assert (group["chunks"], group["requested_bytes"]) == (chunks, report["bytesread"])
    assert set(group["columns"]) == set(report["columns"])
    assert found["bytes"]["datasets"][0]["files_reread_bytes"] == row["reread_bytes"]


def baskets_once(report, path):
    """Bytes of all baskets that any chunk used, counting each once."""
    used = {basket for chunk in chunks_of(report) for basket in Baskets(path).of_chunk(chunk)}
    return sum(size for _, size, _ in used)


def copies(disk, names, size=400_000):
    made = {}
    for name in names:
        path = disk / f"pattern_{name}"
        path.write_bytes(bytes(range(256)) * (size // 256))
        made[name] = str(path)
    return made


def test_what_was_read_twice(shared, disk, cell):
    """Known ways to read, each on a separate file."""
    names = [f.__name__ for f in read_patterns.EXACT]
    files = copies(disk, [*names, "duplicated"])
    with span("patterns") as own:
        tasks = {name: shared.client.submit(read_patterns.run, name, path, pure=False, key=jobs.unique(name))
                 for name, path in files.items()}
        truth = {name: task.result(timeout=120) for name, task in tasks.items()}
    found = shared.settled(lambda r: known(r, [files[name] for name in names]), run=own)
    for name in names:
        row, ranges = row_of(found, files[name]), truth[name]
        total, once = sum(length for _, length in ranges), read_patterns.distinct(ranges)
        cell("reread_bytes", f"{name}, read", PATTERN, total, row["read_bytes"])
        cell("reread_bytes", f"{name}, distinct", PATTERN, once, row["unique_bytes"])
        cell("reread_bytes", f"{name}, again", PATTERN, total - once, row["reread_bytes"])
    row = row_of(found, files["duplicated"])
    assert row["read_bytes"] == 2000
    cell("reread_bytes", "descriptors that share a position", PATTERN, None, row["reread_bytes"],
         unknown="its position is not followed")


def test_again_by_another_worker(shared, disk, cell):
    path = copies(disk, ["workers"])["workers"]
    ranges = [[(0, 1000), (500, 1000)], [(1200, 1000), (5000, 10)]]
    workers = sorted(shared.client.scheduler_info()["workers"])
    with span("workers") as own:
        for worker, some in zip(workers, ranges):
            shared.client.submit(jobs.read_ranges, path, some, workers=[worker], pure=False,
                                 key=jobs.unique("by_worker")).result(timeout=120)
    found = shared.settled(lambda r: known(r, [path]), run=own)
    row = row_of(found, path)
    cell("reread_bytes", "two workers, within each", PATTERN, 500, row["worker_reread_bytes"])
    cell("reread_bytes", "two workers, over both", PATTERN, 800, row["reread_bytes"])


@pytest.mark.parametrize("replaced", [False, True])
def test_inputs_that_are_copied_to_one_name(shared, disk, cell, replaced):
    """Scratch space: the second input's bytes are not those of the first read again. In place, and by another file."""
    def use(size, path):
        with open(f"{path}.part" if replaced else path, "wb") as file:
            file.write(bytes(size))
        if replaced:
            os.rename(f"{path}.part", path)
        with open(path, "rb", buffering=0) as file:
            return len(file.read(1000))

    path, other = str(disk / f"staged_{replaced}"), str(disk / f"written_{replaced}")
    worker = next(iter(shared.client.scheduler_info()["workers"]))
    with span("staged") as own:
        for size, name in ((3000, path), (5000, path), (3000, other)):
            assert shared.client.submit(use, size, name, workers=[worker], pure=False, key=jobs.unique("staged")).result(timeout=120) == 1000
    found = shared.settled(lambda r: known(r, [other]) and row_of(r, path)["read_bytes"] == 2000, run=own)
    cell("reread_bytes", f"two inputs under one name, {'replaced' if replaced else 'in place'}", PATTERN, None, row_of(found, path)["reread_bytes"],
         unknown="the file changed between its reads")
    assert row_of(found, other)["reread_bytes"] == 0


@pytest.mark.parametrize("state", ["cold", "warm"])
def test_page_cache(shared, data, cell, state):
    """Large reads: bytes that storage did not deliver came from the page cache."""
    path, name = data["zstd"], f"large reads, {state}"
    if state == "cold":
        cold.drop(path)
    else:
        cold.warm(path)
    with span(name) as own:
        task = shared.client.submit(jobs.read_whole, path, pure=False, key=jobs.unique("read_whole"))
        size = task.result(timeout=120)
    resident = cold.resident_bytes(path)
    row = row_of(shared.settled(lambda r: known(r, [path]), run=own), path)
    charged = row["large_read_bytes"] + row["readahead_bytes"] - row["cached_bytes"]
    assert (row["large_read_bytes"], row["reread_bytes"]) == (size, 0)
    if state == "warm":
        cell("cached_bytes", name, "the file is in the page cache", size, row["cached_bytes"])
        assert charged == row["storage_read_bytes"] == 0
    else:
        cell("cached_bytes", f"{name}: read + read-ahead - cached", f"{MINCORE} .. {RUSAGE}",
             (resident, row["storage_read_bytes"]), charged)


@pytest.mark.parametrize("source", ["MultithreadedFileSource", "MemmapSource"])
def test_other_sources_use_the_same_baskets(shared, data, cell, source):
    path, name = data["lz4"], f"generated file, {source}"
    with span(name) as own:
        jobs.run_coffea(shared.client, [path], chunksize=100_000, handler=source, processor_instance=count_jets)
    mapped = source == "MemmapSource"
    found = shared.settled(lambda r: len(r["chunks"]) >= 2 and (mapped or known(r, [path])), run=own)
    check_baskets(cell, name, found, path)
    row = row_of(found, path)
    if mapped:  # it is unknown which of its bytes were accessed
        assert row["read_amplification"] is None and row["mapped_bytes"] >= row["size_bytes"]
    else:
        check_sums(row)
        assert row["read_basket_bytes"] == row["unique_basket_bytes"] == baskets_once(found, path)
