# SPDX-License-Identifier: BSD-3-Clause
"""Libraries whose codecs run below Python (HDF5 by h5py's low level, PyTables and netCDF4; blosc2; libarrow): a number is the
library's own, or unknown; never 0 if something was compressed or decompressed."""

import os

import cluster
import codec_packages
import jobs
import library_cases
import pyarrow.ipc
import pytest
from distributed import Client, span
from library_cases import CASES, CHUNKS, LATER, SAID


@pytest.fixture(scope="module")
def found(tmp_path_factory, homes):
    """{(case, step): what it returned}, {case: its chunks}, the report."""
    path, folder = os.pathsep.join([str(codec_packages.folder()), homes["PYTHONPATH"]]), tmp_path_factory.mktemp("files")
    said, chunks = {}, {}
    with cluster.Cluster(tmp_path_factory.mktemp("libraries") / "cluster", {**homes, "PYTHONPATH": path}) as procs:
        with jobs.measured(procs) as client, span("libraries"):
            for name, case in CASES.items():
                file = f"{folder / name}{case['end']}"
                for step in ("write", "read"):
                    if case[step]:
                        said[name, step] = client.submit(library_cases.run, name, step, file, pure=False,
                                                         key=jobs.unique(f"{step}_{name}")).result(timeout=120)
                if CHUNKS in case.values():
                    chunks[name] = client.submit(library_cases.chunks_of, file).result(timeout=120)
            for name in LATER:
                for step in ("keep", "settle"):
                    said[name, step] = client.submit(library_cases.run_later, name, step, f"{folder / name}.late", pure=False,
                                                     key=jobs.unique(f"{step}_{name}")).result(timeout=120)
            report = jobs.settled(procs, lambda r: {t["prefix"] for t in r["tasks"]} >= {f"{s}_{n}" for n, s in said})
    return said, chunks, report


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("step", ["write", "read"])
def test_case(found, cell, name, step):
    said, chunks, report = found
    if (name, step) not in said:
        return
    (task,) = jobs.tasks_of(report, f"{step}_{name}")
    due = CASES[name]["compress" if step == "write" else "decompress"]
    truth = {SAID: said[name, step], CHUNKS: chunks.get(name)}.get(due, due)
    if due == CHUNKS and step == "write":
        truth = truth[0], truth[2], truth[1]
    of = "compress" if step == "write" else "decompress"
    for unit, value in zip(("calls", "in_bytes", "out_bytes"), truth or 3 * [None]):
        cell(f"{of}_{unit}", f"{name}, {step}", due if isinstance(due, str) else "what the library was asked for", value,
             task[f"{of}_{unit}"], unknown=None if truth else "the library does it by itself")
    assert (task[f"{of}_cpu_seconds"] is None) == (truth is None)
    # The other direction: the libraries of these cases read what they change, or do not show how they were opened.
    if step == "read" and not name.startswith(("h5py_changed", "blosc2_schunk", "blosc2_array")):
        assert task["compress_calls"] == task["compress_out_bytes"] == 0
    if step == "write" and not name.startswith(("tables_index", "blosc2_schunk", "blosc2_array", "netcdf", "arrow_dataset")):
        assert task["decompress_calls"] == task["decompress_out_bytes"] == 0


@pytest.mark.parametrize("name", LATER)
def test_packed_by_a_later_task(found, name):
    """A task that flushes, closes or drops what another one wrote makes HDF5 compress it: the file grows in that time, by
    all that was written, or by less if it was compressed."""
    said, _, report = found
    written, packed = 4 * library_cases.ROWS, LATER[name][2]
    grown = said[name, "settle"]
    assert 1000 < grown < written if packed else grown >= written
    (task,) = jobs.tasks_of(report, f"settle_{name}")
    assert task["write_bytes"] >= grown
    assert task["compress_calls"] == task["compress_out_bytes"] == (None if packed else 0)
    assert task["decompress_calls"] == 0


def test_sums_are_unknown_too(found):
    (worker,) = found[2]["workers"]
    for name in ("decompress_calls", "decompress_out_bytes", "compress_calls", "compress_out_bytes"):
        assert worker["tasks"][name] is None and worker["unattributed"][name] is None


@pytest.mark.parametrize("codec", ["lz4", None])
def test_a_writer_of_another_task(new_cluster, tmp_path, codec):
    """Writing through a compressing writer compresses, whichever task opened it: unknown. Through another writer: nothing,
    even if it has the address of an earlier one."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker()
    path = str(tmp_path / "a.arrow")
    with Client(procs.address) as client, span("writers"):
        client.wait_for_workers(1, timeout=120)
        for i in range(3):
            client.submit(library_cases.ipc_open, path, codec, key=jobs.unique("open")).result(timeout=120)
            client.submit(library_cases.ipc_go_on, path, key=jobs.unique("write")).result(timeout=120)
        report = jobs.settled(procs, lambda r: len(r["tasks"]) == 6)
    assert pyarrow.ipc.open_file(path).read_all().num_rows == 3 * library_cases.ROWS
    found = [task["compress_out_bytes"] for task in jobs.tasks_of(report, "write")]
    assert found == [None if codec else 0] * 3
