"""Other preloaded libraries before and after ours: same results, same bytes, once.

jemalloc replaces malloc, XRootD's preload wraps the same file calls as we do, and wrapping.c counts
them through dlsym(RTLD_NEXT), as I/O profilers do: its counts are an independent check."""

import json
import os
import subprocess
import zlib
from pathlib import Path

import cold
import jobs
import pytest
from distributed import Client, span

SOURCE = Path(__file__).with_name("wrapping.c")
RANGES = [(i * 65_536, 10_000) for i in range(40)]
SIZE = 8 << 20
PACKAGES = ("libjemalloc2", "libxrdposix3", "libxrdcl3", "libxrdutils3", "libxrdxml3",
            "libtinyxml2.6.2v5")


# --- on a worker

def work(path):
    """Reads by read, pread and mmap, and decompresses: the same calls as in an analysis, and no others."""
    whole = jobs.read_whole(path)
    some = jobs.read_ranges(path, RANGES)
    pages = jobs.read_mapped(path)
    packed = zlib.compress(b"crema" * 100_000, 1)
    out = zlib.decompress(packed)
    return (whole, some, pages, len(packed), len(out)), loaded()


def loaded():
    """Names of the LD_PRELOAD libraries that are really loaded in this process."""
    names = [os.path.basename(os.path.realpath(p)) for p in os.environ["LD_PRELOAD"].split(":")]
    maps = open("/proc/self/maps").read()
    return [name for name in names if name in maps]


# --- the tests

def orders(build, other):
    ours = str(build / "libcrema.so")
    return {"before": f"{other}:{ours}", "after": f"{ours}:{other}"}


@pytest.fixture(scope="module")
def preloads(tmp_path_factory, homes, disk):
    """{(library, order): (result, the task's row, its worker's row, what wrapping.c counted)}"""
    import cluster  # here, as the workers, which import this file, do not have it
    import packages

    home = tmp_path_factory.mktemp("preloads")
    wrapping = home / "libwrapping.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-pthread", "-o", wrapping, SOURCE], check=True)
    libraries = packages.unpacked("preloads", *PACKAGES) / "usr/lib/x86_64-linux-gnu"
    names = {"alone": {"only": ""}}
    build = cluster.preloadable(cluster.BUILD, home)
    names["alone"] = {"only": str(build / "libcrema.so")}
    names["wrapping"] = orders(build, wrapping)
    names["jemalloc"] = orders(build, libraries / "libjemalloc.so.2")
    names["xrootd"] = orders(build, libraries / "libXrdPosixPreload.so")
    results, kept = {}, {}
    with cluster.Cluster(home / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        for library, found in names.items():
            for order, preload in found.items():
                env = {"CREMA_HEAP": "on", "LD_PRELOAD": preload, "WRAPPING_OUT": str(home / f"{library}_{order}")}
                if library == "xrootd":
                    env["LD_LIBRARY_PATH"] = str(libraries)
                kept[library, order] = procs.start_worker(env=env, args=("--no-nanny",))
        with Client(procs.address) as client:
            client.wait_for_workers(len(kept), timeout=120)
            with span("preloads"):
                for i, key in enumerate(kept):
                    path = disk / f"{key[0]}_{key[1]}.bin"
                    path.write_bytes(bytes(range(256)) * (SIZE // 256))
                    cold.drop(path)
                    results[key] = list(client.submit(work, str(path), workers=[f"worker-{i}"], pure=False,
                                                      key=jobs.unique("_".join(key))).result(timeout=120))
            report = jobs.settled(procs, lambda r: len(r["tasks"]) >= len(kept))
        procs.stop_workers()
    for key, result in results.items():
        task, = jobs.tasks_of(report, "_".join(key))
        worker, = [w for w in report["workers"] if w["id"] == task["worker_id"]]
        counted = [json.loads(p.read_text()) for p in home.glob("_".join(key) + ".*")]
        result += [task, worker, counted]
    return results


CASES = [(library, order) for library in ("wrapping", "jemalloc", "xrootd") for order in ("before", "after")]
SAME = ("read_calls", "read_bytes", "mapped_bytes", "storage_read_bytes", "decompress_calls",
        "decompress_in_bytes", "decompress_out_bytes", "write_bytes", "network_read_bytes")


@pytest.mark.parametrize("library, order", CASES)
def test_with_another_preload_the_numbers_are_the_same(preloads, cell, library, order):
    result, loaded_there, task, worker, _ = preloads[library, order]
    alone = preloads["alone", "only"]
    assert len(loaded_there) == 2
    assert result == alone[0]
    for name in SAME:
        cell("preloads", f"{library} {order}: {name}", "the same job with ours alone", alone[2][name], task[name])
    assert task["status"] == "ok"
    other = ["what malloc holds is unknown: malloc is jemalloc's"] if library == "jemalloc" else []
    if (library, order) == ("jemalloc", "before"):
        other.append("another allocator is preloaded before libcrema.so: which lines hold memory is unknown")
    assert sorted(worker["notes"]) == sorted(alone[3]["notes"] + other)


@pytest.mark.parametrize("library, order", CASES)
def test_with_another_preload_the_sums_close(preloads, library, order):
    _, _, task, worker, _ = preloads[library, order]
    assert worker["unseen"]["storage_read_bytes"] == 0
    assert abs(worker["unseen"]["cpu_seconds"]) < 0.05


def test_alone_the_bytes_are_those_of_the_file(preloads):
    result, _, task, _, _ = preloads["alone", "only"]
    asked = SIZE + sum(n for _, n in RANGES)
    assert task["read_bytes"] == asked
    assert task["mapped_bytes"] == SIZE
    assert task["storage_read_bytes"] == SIZE
    assert task["decompress_out_bytes"] == 500_000


@pytest.mark.parametrize("order", ("before", "after"))
def test_the_other_library_counts_the_same(preloads, cell, order):
    """It writes its numbers when the process ends, after the worker was stopped."""
    _, _, task, _, counted = preloads["wrapping", order]
    assert len(counted) == 1
    assert counted[0]["opens"] == 3
    for theirs, name in (("bytes", "read_bytes"), ("calls", "read_calls"), ("mapped", "mapped_bytes")):
        cell("preloads", f"counted by the other library, {order}: {name}", "its own count", counted[0][theirs], task[name])
