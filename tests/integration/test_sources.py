"""Each way in which uproot reads a local file, cold and warm. CREMA_ALL_CELLS=1 (make accuracy)
runs each with every codec."""

import contextlib
import os

import cold
import jobs
import pytest

SOURCES = ["FSSpecSource", "MultithreadedFileSource", "MemmapSource"]
CODECS = ["zlib", "lz4", "zstd", "lzma"]
ALL = [(source, codec) for source in SOURCES for codec in CODECS]
FEW = [(source, codec) for source, codec in zip(SOURCES, ["zstd", "lzma", "lz4"])]


@pytest.mark.parametrize("state", ["cold", "warm"])
@pytest.mark.parametrize("source,codec", ALL if os.environ.get("CREMA_ALL_CELLS") else FEW)
def test_source(shared, data, serial, source, codec, state):
    path = data[codec]
    if state == "cold":
        cold.drop(path)
    with cold.kept_warm(path) if state == "warm" else contextlib.nullcontext():
        before, charged = shared.reads(), shared.charged()
        _, report = jobs.run_coffea(shared.client, [path], handler=source)
        after, charged = shared.reads(), shared.charged() - charged
    resident = cold.resident_bytes(path)
    found = shared.settled(lambda r: len(r["chunks"]) == 4)

    # Equal, unless the kernel throws pages out by itself: see cold.kept_warm.
    storage = jobs.total(found["tasks"], "storage_read_bytes")
    assert (resident if state == "cold" else 0) <= storage <= charged
    if state == "warm" and source != "MemmapSource":
        assert jobs.by_file(found, "storage_read_bytes")[path] == 0
    read = jobs.difference(after.get(path), before.get(path))["bytes"]
    assert jobs.by_file(found, "read_bytes").get(path, 0) == read
    rows = [r for r in found["codecs"] if r["codec"] == codec and not r["library"].startswith("lz4.frame")]
    for name in ("calls", "in_bytes", "out_bytes"):
        assert jobs.total(rows, name) == serial["codecs"][codec][name], name
    assert found["metrics"]["total_bytes_read_coffea"] == report["bytesread"]
    assert found["metrics"]["total_events"] == report["entries"]
    if source == "MemmapSource":
        assert jobs.by_file(found, "mapped_bytes")[path] >= os.path.getsize(path)
