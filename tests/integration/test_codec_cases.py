# SPDX-License-Identifier: BSD-3-Clause
"""Every codec that a worker may use, compressing and decompressing in a separate task: calls and bytes of
both directions, against the sizes of the data."""

import os
import subprocess
from pathlib import Path

import cluster
import codec_cases
import codec_packages
import jobs
import pytest
from distributed import span

TRUTH = "sizes of the data, in the task's own Python"


# Options of an h5py dataset, and how it is read.
HDF5 = {"hdf5_gzip": ({"compression": "gzip"},), "hdf5_lzf": ({"compression": "lzf"},),
        "hdf5_gzip_array": ({"compression": "gzip"}, "array"), "hdf5_gzip_direct": ({"compression": "gzip"}, "direct"),
        "hdf5_gzip_virtual": ({"compression": "gzip"}, "virtual"),
        "hdf5_shuffle": ({"shuffle": True, "fletcher32": True},), "hdf5_plain": ({},)}


def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "packed_strings.so",
                    Path(__file__).with_name("packed_strings.c")], check=True)
    return str(folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory, homes):
    """{case: truth}, the report, the worker before codecs were hidden."""
    path = os.pathsep.join([homes["PYTHONPATH"], str(codec_packages.folder())])
    with cluster.Cluster(tmp_path_factory.mktemp("codecs") / "cluster", {**homes, "PYTHONPATH": path}) as procs:
        with jobs.measured(procs) as client:
            with span("cases"):
                futures = {c: client.submit(codec_cases.run, c, key=jobs.unique(c), pure=False)
                           for c in codec_cases.CASES if c != "zstandard_stream"}
                truth = {case: future.result(timeout=300) for case, future in futures.items()}
                (seen,) = jobs.settled(procs, lambda r: {t["prefix"] for t in r["tasks"]} >= set(truth))["workers"]
                # The next cases hide codecs: from here on the process's sums are unknown.
                truth["zstandard_stream"] = client.submit(codec_cases.run, "zstandard_stream", key=jobs.unique("zstandard_stream"),
                                                          pure=False).result(timeout=300)
                strings = client.submit(codec_cases.module_with_packed_strings, built(tmp_path_factory),
                                        key=jobs.unique("strings"), pure=False)
                truth["strings"] = strings.result(timeout=300)
                for name in ("pyarrow._parquet", "pyarrow._feather"):
                    client.submit(codec_cases.imported, name).result(timeout=120)
                for case, how in HDF5.items():
                    future = client.submit(codec_cases.hdf5, str(tmp_path_factory.mktemp(case)), *how,
                                           key=jobs.unique(case), pure=False)
                    truth[case] = future.result(timeout=300)
            report = jobs.settled(procs, lambda r: {t["prefix"] for t in r["tasks"]} >= set(truth))
    return truth, report, seen


@pytest.mark.parametrize("case", codec_cases.CASES)
def test_case(found, cell, case):
    truth, (task,) = found[0][case], jobs.tasks_of(found[1], case)
    for direction, values in truth.items():
        for unit, value in zip(("calls", "in_bytes", "out_bytes"), values or 3 * [None]):
            cell(f"{direction}_{unit}", f"codec {case}", TRUTH, value, task[f"{direction}_{unit}"],
                 unknown=None if values else "a library of its own packs and unpacks in streams")
    assert (task["decompress_cpu_seconds"] or 0) <= task["cpu_seconds"] + task["pool_cpu_seconds"]


def test_strings_of_imported_modules(found, cell):
    """What a module decompresses during its import belongs to the import; the task's own decompression to the task."""
    imported, own = found[0]["strings"]
    (task,) = jobs.tasks_of(found[1], "strings")
    for name, value in (("import_decompress_calls", 3), ("import_decompress_out_bytes", 3 * imported),
                        ("decompress_calls", 1), ("decompress_out_bytes", own)):
        cell("decompress_calls", f"a task that imports an extension module with packed strings, {name}", TRUTH, value,
             task[name])


@pytest.mark.parametrize("case", HDF5)
def test_filters_of_hdf5(found, cell, case):
    """libhdf5 decompresses internally: unknown if a filter that cannot be seen was used, and only then."""
    assert found[0][case]
    (task,) = jobs.tasks_of(found[1], case)
    packed = "compression" in HDF5[case][0]
    for unit in ("calls", "in_bytes", "out_bytes"):
        cell(f"decompress_{unit}", f"codec {case}", "the dataset's filters", None if packed else 0,
             task[f"decompress_{unit}"], unknown="libhdf5 unpacks by itself" if packed else None)
        cell(f"compress_{unit}", f"codec {case}", "the dataset's filters", None if packed else 0,
             task[f"compress_{unit}"], unknown="libhdf5 packs by itself" if packed else None)
    assert task["decompress_cpu_seconds"] == (None if packed else 0)


def test_nothing_is_counted_beside_the_tasks(found):
    """A codec's own threads, and a codec that calls another one, add nothing."""
    assert found[2]["unattributed"]["decompress_calls"] == 0


def test_unseen_codecs_are_named(found):
    notes = " ".join(found[1]["completeness"]["notes"])
    assert notes.count("of libarrow (pyarrow)") == notes.count("of HDF5 (h5py") == 1
