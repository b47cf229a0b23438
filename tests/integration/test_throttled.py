"""Storage wait on a disk of known slowness, against the kernel's own count of the threads' waits."""

import os
import random

import cold
import host
import jobs
import pytest
import slow_disk
import throttle

MB = 1 << 20
RATE = 16 * MB
SIZE = 8 * MB
BLOCKED = "the thread's elapsed time less CPU and run delay, taken inside the task"
DEVICE = "delay accounting of the thread (taskstats): waited for the block device"
OTHERS = ("gil_wait_seconds", "lock_wait_seconds", "network_wait_seconds", "sleep_seconds")


@pytest.fixture(scope="module")
def slow_worker(tmp_path_factory, homes, disk):
    import cluster

    with throttle.slow_disk(disk, RATE) as put, throttle.delay_accounting():
        if put is None:
            pytest.skip("the disk of data/ cannot be throttled here")
        with cluster.Cluster(tmp_path_factory.mktemp("throttled"), homes) as procs:
            with jobs.measured(procs) as client:
                client.run(__import__, "slow_disk")
                for pid in client.run(os.getpid).values():
                    put(pid)
                yield procs, client


@pytest.mark.parametrize("how", ["by_large_reads", "by_small_reads", "by_mapping", "by_the_loader", "by_a_pool_thread"])
def test_waiting_for_a_slow_disk_is_storage(slow_worker, disk, how, cell):
    procs, client = slow_worker
    path = disk / f"throttled_{how}"
    path.write_bytes(random.Random(how).randbytes(SIZE))
    before = host.stolen()
    try:
        cold.drop(str(path))
        truth, (task,) = jobs.submit(procs, client, f"throttled_{how}", getattr(slow_disk, how), str(path))
    finally:
        path.unlink()
    known = truth["blocked"]
    assert known > 0.5 * SIZE / RATE, "the disk was not slow"
    cell("throttled", f"{how}: storage_wait_seconds", BLOCKED, known, task["storage_wait_seconds"], known * 0.05)
    # One kernel sometimes adds the machine's whole uptime: a value above the wall time is not a truth.
    if truth["device"] is not None and 0 < truth["device"] <= truth["wall"]:
        cell("throttled", f"{how}: storage_wait_seconds, cross-check", DEVICE, truth["device"],
             task["storage_wait_seconds"], known * 0.05)
    for name in OTHERS:
        if (how, name) == ("by_a_pool_thread", "lock_wait_seconds"):
            cell("throttled", f"{how}: {name}", "what its pool thread was on a core or waited for one",
                 task["wall_seconds"] - known, task[name], known * 0.05)
        else:
            cell("throttled", f"{how}: {name}", "nothing else was waited for", 0, task[name], known * 0.02)
    cell("throttled", f"{how}: unclassified_seconds", "at most 1 % of the wall and what the hypervisor stole", 0, task["unclassified_seconds"],
         task["wall_seconds"] * 0.01 + host.stolen() - before)
