"""Bytes per file, layer by layer: what coffea says was requested, what was read, what of it was read
again, and what the baskets that uproot used hold."""

import os
from pathlib import Path

import jobs
import pytest
from accuracy import COFFEA
from baskets import Baskets
from distributed import span
from test_real_nano import count_jets

BRANCHES = "fBasketBytes of the columns' baskets (uproot without crema)"
NANO = "nano_tt_v15.root"


def nano():
    if "CREMA_TEST_DATA" not in os.environ:
        pytest.skip("CREMA_TEST_DATA is not set")
    return str((Path(os.environ["CREMA_TEST_DATA"]) / NANO).resolve())


def chunks_of(report):
    return [c for c in report["chunks"] if c["counted"]]


def check_baskets(cell, name, report, path):
    """The chunks' baskets and the file's are those that the file itself names."""
    truth = [Baskets(path).of_chunk(chunk) for chunk in chunks_of(report)]
    each = [basket for chunk in truth for basket in chunk]
    row = next(r for r in report["files"] if r["path"] == os.path.realpath(path))
    numbers = {"basket_calls": len(each), "basket_bytes": sum(b[1] for b in each),
               "basket_raw_bytes": sum(b[2] for b in each)}
    for number, value in numbers.items():
        cell("basket_bytes", f"{name}, {number}", BRANCHES, value, row[number])
        assert jobs.total(report["tasks"], number) == row[number]
    for chunk, baskets in zip(chunks_of(report), truth):
        assert chunk["basket_bytes"] == sum(b[1] for b in baskets), chunk["columns"]


@pytest.mark.parametrize("chunks", [1, 2, 5, 10])
def test_small_chunks_request_the_metadata_again(shared, cell, chunks):
    path, name = nano(), f"NanoAOD in {chunks} chunks"
    entries = Baskets(path).tree.num_entries
    with span(name):
        _, report = jobs.run_coffea(shared.client, [path], chunksize=-(-entries // chunks), processor_instance=count_jets)
    found = shared.settled(lambda r: len(r["chunks"]) >= chunks)
    assert len(chunks_of(found)) == report["chunks"] == chunks
    check_baskets(cell, name, found, path)
    cell("coffea", f"{name}, bytesread", COFFEA, report["bytesread"], found["metrics"]["total_bytes_read_coffea"])
