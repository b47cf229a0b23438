"""Each way in which uproot reads a local file, cold and warm. With CREMA_ALL_CELLS=1 (make accuracy)
each one runs with every codec."""

import contextlib
import os

import cold
import jobs
import pytest
from accuracy import COFFEA, LOCKED, MINCORE, RUSAGE, STRACE, UPROOT
from distributed import span

SOURCES = ["FSSpecSource", "MultithreadedFileSource", "MemmapSource"]
CODECS = ["zlib", "lz4", "zstd", "lzma"]
ALL = [(source, codec) for source in SOURCES for codec in CODECS]
FEW = [(source, codec) for source, codec in zip(SOURCES, ["zstd", "lzma", "lz4"])]


@pytest.mark.parametrize("state", ["cold", "warm"])
@pytest.mark.parametrize("source,codec", ALL if os.environ.get("CREMA_ALL_CELLS") else FEW)
def test_source(shared, data, serial, cell, source, codec, state):
    path, name = data[codec], f"{source}, {codec}, {state}"
    if state == "cold":
        cold.drop(path)
    with cold.kept_warm(path) if state == "warm" else contextlib.nullcontext():
        before, charged = shared.reads(), shared.charged()
        with span(name):
            _, report = jobs.run_coffea(shared.client, [path], handler=source)
        after, charged = shared.reads(), shared.charged() - charged
    resident = cold.resident_bytes(path)
    found = shared.settled(lambda r: len(r["chunks"]) == 4)

    # Equal unless the kernel evicts pages: see cold.kept_warm.
    storage = jobs.total(found["tasks"], "storage_read_bytes")
    truth = (f"{MINCORE} .. {RUSAGE}", (resident, charged)) if state == "cold" else (LOCKED, 0)
    # A task may fault in a page of a library.
    cell("storage_read_bytes", name, *truth, storage, 0 if state == "cold" else charged)
    if source != "MemmapSource":
        cell("storage_read_bytes", f"{name}, by file", *truth, jobs.by_file(found, "storage_read_bytes")[path])
    read = jobs.difference(after.get(path), before.get(path))
    for unit in ("bytes", "calls"):
        cell(f"read_{unit}", name, STRACE, read[unit], jobs.by_file(found, f"read_{unit}").get(path, 0))
    rows = [r for r in found["codecs"] if r["codec"] == codec and not r["library"].startswith("lz4.frame")]
    for unit in ("calls", "in_bytes", "out_bytes"):
        cell(f"decompress_{unit}", name, UPROOT, serial["codecs"][codec][unit], jobs.total(rows, unit))
    cell("coffea", f"{name}, bytesread", COFFEA, report["bytesread"], found["metrics"]["total_bytes_read_coffea"])
    cell("coffea", f"{name}, events", COFFEA, report["entries"], found["metrics"]["total_events"])
    if source == "MemmapSource":
        assert jobs.by_file(found, "mapped_bytes")[path] >= os.path.getsize(path)
