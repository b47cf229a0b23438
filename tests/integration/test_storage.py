"""Bytes from storage of single tasks, against the page cache."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import bindfs
import cold
import direct
import jobs
import pytest
import strace_reads
from accuracy import LOCKED, RUSAGE, STRACE, not_tried
from distributed import Client, span

MB = 1 << 20
DATA = Path(__file__).resolve().parents[2] / "data"
PAGES = "the file's size in whole pages; all of them were cold"
SIZE = "the file's size"
CHARGED = ("ext4", "xfs", "btrfs", "overlay")  # the kernel's charges are proven there


def file_system(path):
    """The type of the file system with the longest mount point above path."""
    path, found = str(path.resolve()) + "/", []
    for line in open("/proc/self/mounts"):
        where, kind = line.split()[1:3]
        if path.startswith(where.rstrip("/") + "/"):
            found.append((len(where), kind))
    return max(found)[1]


@pytest.fixture
def cold_file(disk):
    if file_system(disk) not in CHARGED:
        pytest.skip("data/ lies on a file system whose storage charges are unknown")
    made = []

    def make(name, size=8 * MB + 123):
        path = disk / name
        path.write_bytes(random.Random(name).randbytes(size))
        cold.drop(str(path))
        made.append(path)
        return str(path)

    yield make
    for path in made:
        path.unlink()


def test_whole_cold_file_then_warm(shared, cold_file, cell):
    path = cold_file("whole")
    size, (task,) = jobs.submit(shared.procs, shared.client, "whole-cold", jobs.read_whole, path)
    cell("storage_read_bytes", "one task reads a whole cold file", PAGES, cold.page_bytes(path),
         task["storage_read_bytes"])
    cell("read_bytes", "one task reads a whole cold file", SIZE, size, task["read_bytes"])
    with cold.kept_warm(path):
        _, (task,) = jobs.submit(shared.procs, shared.client, "whole-warm", jobs.read_whole, path)
    cell("storage_read_bytes", "one task reads it warm", LOCKED, 0, task["storage_read_bytes"])
    cell("read_bytes", "one task reads it warm", SIZE, size, task["read_bytes"])


def test_a_look_at_a_cgroup_is_no_data(shared, cold_file, cell):
    path = cold_file("cgroup")
    (size, other, controls), (task,) = jobs.submit(shared.procs, shared.client, "cgroup", jobs.read_whole_and_cgroup, path)
    if not controls:
        not_tried("storage_read_bytes", "a cold file, and files of /sys/fs/cgroup", "there are no cgroups here")
    else:
        cell("storage_read_bytes", "a cold file, and files of /sys/fs/cgroup", PAGES, cold.page_bytes(path),
             task["storage_read_bytes"])
    assert (task["read_bytes"], task["import_read_bytes"]) == (size, 0)
    assert task["other_read_bytes"] >= other


def test_mapped_cold_file(shared, cold_file, cell):
    path = cold_file("mapped")
    _, (task,) = jobs.submit(shared.procs, shared.client, "mapped-cold", jobs.read_mapped, path)
    cell("storage_read_bytes", "one task maps a whole cold file", PAGES, cold.page_bytes(path),
         task["storage_read_bytes"])
    cell("mapped_bytes", "one task maps a whole cold file", "length of the task's one mmap", os.path.getsize(path),
         task["mapped_bytes"])


def test_two_tasks_beside_each_other(new_cluster, cold_file, tmp_path, cell):
    """Two threads of one worker, each with a separate cold file."""
    ready = tmp_path / "ready"
    ready.mkdir()
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(nthreads=2)
    paths = [cold_file("one"), cold_file("two", 5 * MB + 1)]
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        with span("beside"):
            done = [client.submit(jobs.read_whole_in_turn, p, str(ready), 2, key=jobs.unique(f"beside{i}"))
                    for i, p in enumerate(paths)]
            client.gather(done)
        found = jobs.settled(procs, lambda r: len(r["tasks"]) >= 2)
    for i, path in enumerate(paths):
        (task,) = jobs.tasks_of(found, f"beside{i}")
        cell("storage_read_bytes", f"two tasks at once, a cold file each: task {i}", PAGES, cold.page_bytes(path),
             task["storage_read_bytes"])
    assert jobs.total(found["tasks"], "storage_read_bytes") == sum(cold.page_bytes(p) for p in paths)


def test_partial_reader(shared, cold_file, cell):
    """At least the pages of its ranges; at most the kernel's charge, which includes read-ahead."""
    path = cold_file("partial", 32 * MB)
    ranges = [(10_000, 5_000), (9 * MB + 7, 300_000), (20 * MB, 4096)]
    pages = {p for start, length in ranges for p in range(start // cold.PAGE, (start + length - 1) // cold.PAGE + 1)}
    charged = shared.charged()
    with span("partial"):
        future = shared.client.submit(jobs.read_ranges, path, ranges, key=jobs.unique("partial"))
        assert future.result(timeout=60) == sum(length for _, length in ranges)
    charged = shared.charged() - charged
    found = shared.settled(lambda r: jobs.tasks_of(r, "partial"))
    (task,) = jobs.tasks_of(found, "partial")
    cell("storage_read_bytes", "partial reader", f"pages of its ranges .. {RUSAGE}",
         (len(pages) * cold.PAGE, charged), task["storage_read_bytes"])
    cell("read_bytes", "partial reader", "sum of its ranges", sum(length for _, length in ranges), task["read_bytes"])


def test_direct_reader(shared, cold_file, cell):
    """O_DIRECT bypasses the page cache."""
    path = cold_file("direct", 8 * MB)
    size, (task,) = jobs.submit(shared.procs, shared.client, "direct", direct.read_whole, path)
    assert cold.resident_bytes(path) == 0
    cell("storage_read_bytes", "one task reads with O_DIRECT", f"{SIZE}; none of it is in the page cache", size,
         task["storage_read_bytes"])
    cell("read_bytes", "one task reads with O_DIRECT", SIZE, size, task["read_bytes"])


def charged_to(pid):
    """Bytes from storage that the kernel has charged to a process, which may be about to die."""
    return int(re.search(r"^read_bytes: (\d+)", Path(f"/proc/{pid}/io").read_text(), re.M).group(1))


def test_killed_cold_reader(new_cluster, cold_file, tmp_path, cell):
    """The counts up to SIGKILL remain: reads to one call, storage to the last sample."""
    procs, path, marker, step = new_cluster(), cold_file("killed", 192 * MB), tmp_path / "marker", 64 * 1024
    with jobs.measured(procs, prefix=strace_reads.prefix) as client:
        (pid,) = client.run(os.getpid).values()
        before = charged_to(pid)
        with span("killed-cold"):
            future = client.submit(jobs.read_slowly_once, path, step, str(marker), key=jobs.unique("killed-cold"))
            while not marker.exists():
                time.sleep(0.01)
            time.sleep(0.5)
            sampled = cold.resident_bytes(path)
            time.sleep(2)
            os.kill(pid, signal.SIGSTOP)
            charged = charged_to(pid) - before
            os.kill(pid, signal.SIGKILL)
            assert future.result(timeout=120) == 0
        found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "killed-cold")) >= 2)
    task = min(jobs.tasks_of(found, "killed-cold"), key=lambda t: t["start"])
    assert task["status"] == "killed"
    truth = strace_reads.count(procs.workers[0].log.with_suffix(".strace"))[path]
    assert 0 < truth["bytes"] < 192 * MB
    how = f"{STRACE} until the kill; one call of {step:,} bytes may be between both"
    cell("killed", "read_bytes", how, truth["bytes"], task["read_bytes"], step)
    cell("killed", "read_calls", how, truth["calls"], task["read_calls"], 1)
    # The kernel's charge within a task is sampled: a lower bound, and the exact sum is unknown.
    assert task["storage_read_bytes"] is None
    cell("killed", "storage_known_bytes", "pages in the page cache 2 s before the kill (mincore) .. read_bytes in /proc/PID/io at the kill",
         (sampled, charged), task["storage_known_bytes"])


# --- other file systems. Only that of /dev/shm exists without mounting.

def command(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{words[0]}: {done.stderr.strip().splitlines()[-1:]}")


@contextlib.contextmanager
def mounted(kind, lower, mount):
    """lower seen through another file system at mount."""
    if kind == "FUSE":
        with bindfs.mounted(lower, mount):
            yield
        return
    if kind == "NFS":
        raise OSError("its server is a service of the whole machine, which tests do not start")
    for name in ("upper", "work"):
        (lower.parent / name).mkdir()
    command("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={lower},upperdir={lower.parent / 'upper'},workdir={lower.parent / 'work'}", mount)
    try:
        yield
    finally:
        command("umount", mount)


def read_on(new_cluster, path):
    """The only task of a separate worker, so that an unknown value there does not affect other sums."""
    procs = new_cluster()
    with jobs.measured(procs) as client:
        _, (task,) = jobs.submit(procs, client, "elsewhere", jobs.read_whole, path)
    return task


def test_tmpfs(new_cluster, cell):
    path = Path(f"/dev/shm/crema-test-{os.getpid()}")
    try:
        path.write_bytes(bytes(8 * MB))
        task = read_on(new_cluster, str(path))
    finally:
        path.unlink(missing_ok=True)
    cell("storage_read_bytes", "a file on tmpfs", "0, it is memory", 0, task["storage_read_bytes"])
    cell("read_bytes", "a file on tmpfs", SIZE, 8 * MB, task["read_bytes"])


@pytest.mark.parametrize("kind", ["overlay", "FUSE", "NFS"] if os.environ.get("CREMA_ALL_CELLS") else [])
def test_mounted(new_cluster, disk, cold_file, cell, kind):
    lower, mount = disk / kind / "lower", disk / kind / "mount"
    lower.mkdir(parents=True)
    mount.mkdir()
    name = f"a cold file on {kind}" + (" (bindfs)" if kind == "FUSE" else f" over {file_system(disk)}")
    path = cold_file(f"{kind}/lower/file")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(mounted(kind, lower, mount))
        except OSError as why:
            not_tried("storage_read_bytes", name, why)
            return
        cold.drop(path)
        task = read_on(new_cluster, str(mount / "file"))
        in_cache = cold.resident_bytes(path)
    if kind == "FUSE":
        assert in_cache > 0
        cell("storage_read_bytes", name, "the disk is read by bindfs for the task", None, task["storage_read_bytes"],
             unknown="ru_inblock was tried: the kernel charges the FUSE server, another process; "
                     "the reading thread is charged nothing, and 0 would be wrong")
    else:
        cell("storage_read_bytes", name, PAGES, cold.page_bytes(path), task["storage_read_bytes"])
    cell("read_bytes", name, SIZE, os.path.getsize(path), task["read_bytes"])
