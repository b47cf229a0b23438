# SPDX-License-Identifier: BSD-3-Clause
"""Ways to read a local file other than plain read(): C streams, maps, copies, caches of fsspec,
files passed to uproot as objects. Each in a separate task."""

import os
import random

import cold
import jobs
import pytest
from accuracy import MINCORE, RUSAGE, STRACE

SIZE = 3_000_000


def numpy_fromfile(path, _):
    import numpy

    return numpy.fromfile(path, dtype="u1").nbytes


def numpy_fromfile_offsets(path, _):
    import numpy

    with open(path, "rb") as file:
        for at in range(100):
            file.seek(at * 20011)
            assert numpy.fromfile(file, "u1", 100).nbytes == 100
    return sum(numpy.fromfile(path, "u1", 1000, offset=at * 50021).nbytes for at in range(50))


def numpy_load(path, _):
    import numpy

    return numpy.load(path).nbytes


def numpy_memmap(path, _):
    import numpy

    return int(numpy.memmap(path, dtype="u1", mode="r").sum(dtype="u8"))


def python_lines(path, _):
    with open(path, "rb") as file:
        return sum(map(len, file))


def copyfile(path, folder):
    """Through sendfile or copy_file_range."""
    import shutil

    return os.path.getsize(shutil.copyfile(path, os.path.join(folder, "copy")))


def cached(kind):
    def read(path, folder):
        """fsspec copies the file and reads the copy."""
        import fsspec

        options = {kind: {"cache_storage": os.path.join(folder, kind)}}
        with fsspec.open(f"{kind}::file://{path}", "rb", **options) as file:
            return len(file.read())
    return read


def arrow_map(path, _):
    import pyarrow

    return len(pyarrow.memory_map(path).read())


def numpy_save(_, folder):
    """Through a C stream."""
    import numpy

    numpy.save(os.path.join(folder, "saved.npy"), numpy.ones(SIZE - 128, "u1"))  # with a header of 128 bytes


def numpy_tofile(_, folder):
    import numpy

    numpy.ones(SIZE // 2, "u1").tofile(os.path.join(folder, "straight"))
    numpy.ones(SIZE, "u1")[::2].tofile(os.path.join(folder, "strided"))  # element by element


# name: (function, bytes that read calls return (None: by strace), bytes mapped, bytes written)
WAYS = {
    "numpy_fromfile": (numpy_fromfile, None, 0, 0),  # glibc reads when it seeks
    "numpy_fromfile_offsets": (numpy_fromfile_offsets, None, 0, 0),
    "numpy_load": (numpy_load, None, 0, 0),
    "numpy_memmap": (numpy_memmap, 0, SIZE, 0),
    "python_lines": (python_lines, SIZE, 0, 0),
    "copyfile": (copyfile, SIZE, 0, SIZE),
    "simplecache": (cached("simplecache"), 2 * SIZE, 0, SIZE),
    "filecache": (cached("filecache"), 2 * SIZE, 0, SIZE),
    "arrow_map": (arrow_map, 0, SIZE, 0),
    "numpy_save": (numpy_save, 0, 0, SIZE),
    "numpy_tofile": (numpy_tofile, 0, 0, SIZE),
}


def run(way, path, folder):
    os.makedirs(folder, exist_ok=True)
    return WAYS[way][0](path, folder)


@pytest.fixture
def file(disk):
    import numpy

    path = disk / "ways"
    with open(path, "wb") as array:
        numpy.save(array, numpy.frombuffer(random.Random(1).randbytes(SIZE - 128), "u1"))  # with a header of 128 bytes
    assert path.stat().st_size == SIZE
    yield str(path)
    path.unlink()


@pytest.mark.parametrize("way", WAYS)
def test_way(shared, file, disk, cell, way):
    _, read, mapped, written = WAYS[way]
    shared.client.run(run, way, file, str(disk / "warm" / way))  # imports what it needs
    cold.drop(file)
    reads = shared.reads().get(file)
    charged = shared.charged()
    _, (task,) = jobs.submit(shared.procs, shared.client, f"way_{way}", run, way, file, str(disk / "cold" / way))
    if read is None:
        reads = jobs.difference(shared.reads()[file], reads)
        assert reads["bytes"] > SIZE or way == "numpy_fromfile_offsets"
        cell("read_bytes", f"local file by {way}", STRACE, reads["bytes"], task["read_bytes"])
    how = "size of the file" + (", twice: it and its copy" if read == 2 * SIZE else "")
    if way == "filecache":  # it keeps a small file with metadata of its files
        assert read <= task["read_bytes"] <= read + 4096 and written <= task["write_bytes"] <= written + 4096
    elif read is not None:
        cell("read_bytes", f"local file by {way}", how, read, task["read_bytes"])
    assert way == "filecache" or task["write_bytes"] == written
    cell("mapped_bytes", f"local file by {way}", "size of the file" if mapped else "0", mapped, task["mapped_bytes"])
    # Creating a file may read the file system's own blocks, which the kernel's charge includes.
    truth = (cold.resident_bytes(file), shared.charged() - charged)
    cell("storage_read_bytes", f"local file by {way}, cold", f"{MINCORE} .. {RUSAGE}", truth, task["storage_read_bytes"])


def read_object(path):
    import uproot

    with open(path, "rb") as file, uproot.open(file) as root:
        return sum(root["Events"][name].array(library="np").nbytes for name in ("Muon_pt", "Jet_pt")
                   if name in root["Events"])


def test_uproot_reads_an_object(shared, data, cell):
    """uproot's source for objects with read() and seek()."""
    path = data["zstd"]
    cold.drop(path)
    reads, charged = shared.reads().get(path), shared.charged()
    size, (task,) = jobs.submit(shared.procs, shared.client, "object", read_object, path)
    reads = jobs.difference(shared.reads().get(path), reads)
    assert size > 0
    for unit in ("bytes", "calls"):
        cell(f"read_{unit}", "uproot, a file object", STRACE, reads[unit], task[f"read_{unit}"])
    cell("storage_read_bytes", "uproot, a file object, cold", f"{MINCORE} .. {RUSAGE}",
         (cold.resident_bytes(path), shared.charged() - charged), task["storage_read_bytes"])
