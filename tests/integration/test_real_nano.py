"""Real NanoAOD files, if CREMA_TEST_DATA names a directory that contains some."""

import os
from pathlib import Path

import awkward as ak
import jobs
import pytest

CHUNKS = {"nano_dy.root": 20, "nano_tt_v15.root": 100}  # events of two chunks: each opens a tree of some 2,000 columns


def count_jets(events):
    """Reads columns that every NanoAOD version has."""
    return {"events": len(events), "jets": int(ak.sum(ak.num(events.Jet.pt[events.Jet.pt > 20]))),
            "muon_pt": float(ak.sum(events.Muon.pt[events.Muon.pt > 10]))}


def count_muons(events):
    return {"events": len(events), "muon_pt": float(ak.sum(events.Muon.pt))}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.further if "v15" in name else []) for name in CHUNKS])
def test_real_file(shared, name):
    if "CREMA_TEST_DATA" not in os.environ:
        pytest.skip("CREMA_TEST_DATA is not set")
    path = str((Path(os.environ["CREMA_TEST_DATA"]) / name).resolve())
    before = shared.reads()
    out, report = jobs.run_coffea(shared.client, [path], chunksize=CHUNKS[name], processor_instance=count_jets)
    after = shared.reads()
    found = shared.settled(lambda r: len(r["chunks"]) >= report["chunks"])
    assert found["metrics"]["total_events"] == report["entries"] == out["events"]
    assert found["metrics"]["num_chunks"] == report["chunks"]
    assert found["metrics"]["total_bytes_read_coffea"] == report["bytesread"]
    read = jobs.difference(after.get(path), before.get(path))
    assert jobs.by_file(found, "read_bytes")[path] == read["bytes"] > 0
    assert jobs.by_file(found, "read_calls")[path] == read["calls"]
    assert jobs.total(found["tasks"], "decompress_out_bytes") > 0
