# SPDX-License-Identifier: BSD-3-Clause
"""Parquet through pyarrow: which task the reads belong to, and zstd's bytes against the file's page headers."""

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


def write_other(path, kind):
    import pyarrow
    import pyarrow.feather
    import pyarrow.orc

    table = pyarrow.table({"a": list(range(100_000)) * 3})
    (pyarrow.feather.write_feather if kind == "feather" else lambda t, p: pyarrow.orc.write_table(t, p, compression="zlib"))(table, path)


def read_other(path, kind):
    import pyarrow.dataset
    import pyarrow.feather
    import pyarrow.orc

    if kind == "dataset":
        return pyarrow.dataset.dataset(path).to_table().num_rows
    return pyarrow.feather.read_table(path).num_rows if kind == "feather" else pyarrow.orc.read_table(path).num_rows


@pytest.fixture(scope="module")
def files(disk):
    made = {codec: str(disk / f"{codec}.parquet") for codec in CODECS}
    for codec, path in made.items():
        write(path, codec)
    return made


def truth_of(path):
    pages = parquet_pages.pages(path)
    return {"calls": len(pages), "in_bytes": sum(p[0] for p in pages), "out_bytes": sum(p[1] for p in pages)}


def counted(report, name):
    """The sum over all tasks and the unattributed part: it is known even if a task's own part is not."""
    parts = [w[part][name] for w in report["workers"] for part in ("tasks", "unattributed")]
    return None if None in parts else sum(parts)


def run(shared, name, path, *how):
    """Runs one task: its counts, strace's counts for the file, and the counts of all tasks and unattributed in that time."""
    names = [f"decompress_{unit}" for unit in ("calls", "in_bytes", "out_bytes")] + ["read_bytes"]
    before = shared.settled(lambda r: True)
    reads = shared.reads().get(path)
    rows, (task,) = jobs.submit(shared.procs, shared.client, name, read, path, *how)
    assert rows == 300_000
    after = shared.settled(lambda r: True)
    loose = {n: None if counted(after, n) is None else counted(after, n) - counted(before, n) for n in names}
    return task, jobs.difference(shared.reads().get(path), reads), loose, after


@pytest.fixture(scope="module")
def warmed(shared, files):
    """pyarrow is imported on both workers."""
    shared.client.run(read, files["none"], True)
    shared.client.run(read, files["none"], True, "dataset")


@pytest.mark.parametrize("use_threads", [False, True])
@pytest.mark.parametrize("api", ["file", "dataset"])
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
        cell(f"decompress_{unit}", f"{name}, all tasks + unattributed", PAGES, value if api == "file" else None, loose[f"decompress_{unit}"],
             unknown="a dataset does not say which codecs its files have" if api == "dataset" else None)
    if use_threads or api == "dataset":  # not in the task's own thread: the work of each task is unknown
        assert task["decompress_calls"] is None and task["decompress_out_bytes"] is None


@pytest.mark.parametrize("codec", CODECS)
def test_codec(shared, files, warmed, cell, codec):
    """zstd is exact to the byte, no codec is 0; libarrow's other codecs cannot be seen: unknown, and the report says which."""
    path, name = files[codec], f"parquet_{codec}"
    task, _, _, report = run(shared, name, path, False)
    truth = truth_of(path)
    if codec == "zstd":
        for unit, value in truth.items():
            cell(f"decompress_{unit}", "Parquet, zstd, pyarrow", PAGES, value, task[f"decompress_{unit}"])
        assert 0 < task["decompress_cpu_seconds"] <= task["cpu_seconds"]
    for unit in ("calls", "in_bytes", "out_bytes", "cpu_seconds"):
        known = {"zstd": task[f"decompress_{unit}"], "none": 0}.get(codec)
        assert task[f"decompress_{unit}"] == known, unit
    assert task["read_bytes"] > 0 and task["compress_calls"] == 0
    unseen = [n for n in report["completeness"]["notes"] if "codecs present but unseen: snappy, lz4" in n]
    assert len(unseen) == 1


@pytest.mark.parametrize("kind", ["feather", "orc", "dataset"])
def test_other_readers_of_libarrow(shared, files, warmed, disk, kind):
    """An unknown count of one task does not affect the next one."""
    path = files["snappy"] if kind == "dataset" else str(disk / f"other.{kind}")
    if kind != "dataset":
        shared.client.submit(write_other, path, kind, pure=False).result(120)
    _, (task,) = jobs.submit(shared.procs, shared.client, f"other_{kind}", read_other, path, kind)
    assert task["read_bytes"] > 0
    assert task["decompress_calls"] is None and task["decompress_in_bytes"] is None
    _, (after,) = jobs.submit(shared.procs, shared.client, f"after_{kind}", sum, [1, 2])
    assert after["decompress_calls"] == 0 and after["decompress_out_bytes"] == 0


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_writers(shared, warmed, disk, cell, codec):
    path = str(disk / f"written-{codec}.parquet")
    _, (task,) = jobs.submit(shared.procs, shared.client, f"write_{codec}", write, path, codec)
    if codec == "zstd":
        cell("compress_out_bytes", "Parquet, zstd, pyarrow, written", PAGES, truth_of(path)["in_bytes"], task["compress_out_bytes"])
    else:
        assert task["compress_calls"] is None and task["compress_out_bytes"] is None
    assert task["decompress_calls"] == 0
