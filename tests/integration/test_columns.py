# SPDX-License-Identifier: BSD-3-Clause
"""What each column cost: requests, bytes and time of coffea's virtual arrays, of what is read ahead, and of uproot's own
arrays, by the sizes of their baskets that the file states."""

import jobs
import pytest
from baskets import Baskets
from distributed import span

FILE = "fBasketBytes of each branch (uproot without crema)"
COFFEA = "coffea's bytesread"
ADDED = ["requested_bytes", "basket_bytes", "basket_raw_bytes", "read_bytes", "read_calls", "decompress_calls", "decompress_out_bytes"]


def some_columns(events):
    """Jagged columns, a flat one, and one twice."""
    import awkward as ak

    jets = events.Jet[events.Jet.pt > 30]
    return {"muons": int(ak.sum(events.Muon.pt > 20)), "eta": float(ak.sum(jets.eta)), "met": float(ak.sum(events.MET.pt)),
            "again": float(ak.sum(events.Jet.pt))}


USED = {"nJet", "Jet_pt", "Jet_eta", "nMuon", "Muon_pt", "MET_pt"}


def by_name(report, dataset=None):
    return {c["column"]: c for c in report["read_columns"] if c["kind"] == "column" and dataset in (None, c["dataset"])}


def rest_of(report, dataset):
    return next(c for c in report["read_columns"] if c["kind"] == "rest" and c["dataset"] == dataset)


def columns_arrived(report, requests):
    return sum(c["calls"] for c in report["read_columns"] if c["calls"]) >= requests


@pytest.mark.parametrize("handler", ["FSSpecSource", "MultithreadedFileSource", "MemmapSource"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_virtual_arrays(shared, data, cell, handler, chunks):
    path, name = data["zlib"], f"columns, {handler}, {chunks} chunks"
    entries = Baskets(path).tree.num_entries
    with span(name):
        _, coffea = jobs.run_coffea(shared.client, [path], chunksize=-(-entries // chunks), handler=handler, processor_instance=some_columns)
    found = shared.settled(lambda r: len(r["chunks"]) == chunks and columns_arrived(r, chunks * len(USED)))
    named = by_name(found)
    used = {c.rpartition("-")[0] for chunk in found["chunks"] for c in chunk["columns"]}
    assert set(named) == used and used >= USED
    for column, row in named.items():
        truth = [b for c in found["chunks"] for b in Baskets(path).of(column, c["entrystart"], c["entrystop"])]
        cell("columns", f"{name}, {column}, basket_bytes", FILE, sum(b[1] for b in truth), row["basket_bytes"])
        cell("columns", f"{name}, {column}, requested_bytes", FILE, sum(b[1] for b in truth), row["requested_bytes"])
        assert (row["baskets"], row["requested_ranges"], row["basket_raw_bytes"]) == (len(truth), len(truth), sum(b[2] for b in truth))
        assert row["requests"] == row["tasks"] == chunks and row["calls"] >= chunks  # uproot keeps what it has read
        assert row["tree"] == "Events" and row["dataset"] == "nano_zlib.v1" and row["preload_tasks"] == 0
        assert row["decompress_calls"] >= len(truth) and row["decompress_out_bytes"] > 0
        assert 0 < row["cpu_seconds"] <= row["wall_seconds"] * 1.2
    rest = rest_of(found, "nano_zlib.v1")
    for number in ADDED:
        whole = sum(c["coffea_bytesread" if number == "requested_bytes" else number] for c in found["chunks"])
        assert sum(c[number] for c in named.values()) + rest[number] == whole, number
    assert sum(c["requested_bytes"] for c in found["read_columns"]) == coffea["bytesread"]
    assert rest["basket_bytes"] == 0 and rest["decompress_calls"] > 0
    serial = Baskets(path).tree.file.source  # what it takes to open the tree
    assert rest["requested_bytes"] % chunks == 0 and rest["requested_bytes"] // chunks <= 2 * serial.num_requested_bytes
