# SPDX-License-Identifier: BSD-3-Clause
"""Parquet through pyarrow: whose the reads are, and zstd's bytes against the file's page headers."""

import jobs
import parquet_pages
import pytest
from accuracy import MINCORE, RUSAGE, STRACE
from distributed import span

import cold

CODECS = ["zstd", "snappy", "lz4", "gzip", "none"]
PAGES = "page headers of the file"


def read(path, use_threads, api="file"):
    import pyarrow.dataset
    import pyarrow.parquet

    if api == "file":
        return pyarrow.parquet.ParquetFile(path).read(use_threads=use_threads).num_rows
    return pyarrow.dataset.dataset(path).to_table(use_threads=use_threads).num_rows


def write(path, codec, rows=300_000):
    """A table of 300,000 rows in three row groups; also a task."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    numbers = numpy.random.default_rng(1)
    table = pyarrow.table({"a": numbers.integers(0, 1 << 20, rows), "b": numbers.normal(size=rows).astype("f4"),
                           "c": numpy.repeat(numpy.arange(rows // 100), 100)})
    pyarrow.parquet.write_table(table, path, compression=codec, row_group_size=100_000)
    return rows


@pytest.fixture(scope="module")
def files(disk):
    made = {codec: str(disk / f"{codec}.parquet") for codec in CODECS}
    for codec, path in made.items():
        write(path, codec)
    return made


def truth_of(path):
    pages = parquet_pages.pages(path)
    return {"calls": len(pages), "in_bytes": sum(p[0] for p in pages), "out_bytes": sum(p[1] for p in pages)}


def unattributed(report, name):
    return {w["pid"]: w["unattributed"][name] for w in report["workers"]}


def run(shared, name, path, *how):
    """One task; what it counted, what strace saw of the file, and what stayed unattributed meanwhile."""
    names = [f"decompress_{unit}" for unit in ("calls", "in_bytes", "out_bytes")] + ["read_bytes"]
    before = shared.settled(lambda r: True)
    reads = shared.reads().get(path)
    rows, (task,) = jobs.submit(shared.procs, shared.client, name, read, path, *how)
    assert rows == 300_000
    after = shared.settled(lambda r: True)
    loose = {n: sum(unattributed(after, n).values()) - sum(unattributed(before, n).values()) for n in names}
    return task, jobs.difference(shared.reads().get(path), reads), loose, after


@pytest.fixture(scope="module")
def warmed(shared, files):
    """pyarrow is imported on both workers."""
    shared.client.run(read, files["none"], True)
    shared.client.run(read, files["none"], True, "dataset")


@pytest.mark.parametrize("codec", CODECS)
def test_codec(shared, files, warmed, cell, codec):
    """zstd is counted to the byte; the other codecs of libarrow cannot be seen, and the report says so."""
    path, name = files[codec], f"parquet_{codec}"
    task, _, _, report = run(shared, name, path, False)
    truth = truth_of(path)
    if codec == "zstd":
        for unit, value in truth.items():
            cell(f"decompress_{unit}", "Parquet, zstd, pyarrow", PAGES, value, task[f"decompress_{unit}"])
        assert 0 < task["decompress_cpu_seconds"] <= task["cpu_seconds"]
    else:
        assert task["decompress_calls"] == 0
    unseen = [n for n in report["completeness"]["notes"] if "codecs present but unseen: snappy, lz4" in n]
    assert len(unseen) == 1


@pytest.mark.parametrize("api", ["file", "dataset"])
@pytest.mark.parametrize("use_threads", [False, True])
def test_reads_and_threads(shared, files, warmed, cell, use_threads, api):
    path = files["zstd"]
    name = f"Parquet, pyarrow {api}, {'its threads' if use_threads else 'one thread'}"
    cold.drop(path)
    charged = shared.charged()
    task, reads, loose, _ = run(shared, f"parquet_{api}_{use_threads}".lower(), path, use_threads, api)
    cell("read_bytes", name, STRACE, reads["bytes"], task["read_bytes"])
    cell("read_calls", name, STRACE, reads["calls"], task["read_calls"])
    cell("storage_read_bytes", f"{name}, cold", f"{MINCORE} .. {RUSAGE}", (cold.resident_bytes(path), shared.charged() - charged),
         task["storage_read_bytes"])
    for unit, value in truth_of(path).items():
        cell(f"decompress_{unit}", f"{name}, task + unattributed", PAGES, value,
             task[f"decompress_{unit}"] + loose[f"decompress_{unit}"])
