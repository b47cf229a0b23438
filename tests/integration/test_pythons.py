# SPDX-License-Identifier: BSD-3-Clause
"""One library for every CPython: the same job under each one that this machine has or can have (debian_pythons.py)."""

import json
import os
import re
import subprocess

import cluster
import debian_pythons
import jobs
import pytest
import venvs

# distributed before and after its task function was renamed.
DISTRIBUTED = {"3.10": "2024.8.2"}
PINS = jobs.ROOT / "tests" / "pythons-requirements.txt"  # with uproot and awkward
NEWEST = re.search(r"^distributed==(\S+)", PINS.read_text(), re.M)[1]
BLOCK = 70_000

JOB = """
import importlib.util, json, sys, time, zlib
from distributed import Client, span

path, packed = sys.argv[2], zlib.compress(bytes(range(256)) * 4000)

def read(path):
    import os
    fd = os.open(path, os.O_RDONLY)
    n = 0
    while block := os.read(fd, 70000):
        n += len(block)
    os.close(fd)
    return n

def unpack(packed):
    import zlib
    return len(zlib.decompress(packed))

def zstd():
    from compression import zstd
    packed = zstd.compress(bytes(range(256)) * 4000)
    return len(packed), len(zstd.decompress(packed))

def tree(path):
    import uproot
    with uproot.open(path) as file:
        branches = [file["Events"][name] for name in sorted(file["Events"].keys())[:3]]
        n = sum(len(branch.array()) for branch in branches)
        return n, sum(branch.num_baskets for branch in branches), sum(branch.compressed_bytes for branch in branches)

def killed(path, marker):
    import os, signal
    fd = os.open(path, os.O_RDONLY)
    if os.path.exists(marker):
        return 0
    open(marker, "w").close()
    for _ in range(5):
        os.read(fd, 70000)
    os.kill(os.getpid(), signal.SIGKILL)

def locked():
    import threading
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.3)

def asleep():
    import time
    time.sleep(0.3)

def both_spin():
    import threading, time
    def spin(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(100))
    other = threading.Thread(target=spin, args=(1,))
    other.start()
    spin(0.8)
    other.join()

def jit():
    import sys
    return hasattr(sys, "_jit") and sys._jit.is_enabled()

def fail():
    raise ValueError("on purpose")

def spin():
    import time
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass

async def nap():
    import asyncio
    await asyncio.sleep(0.05)

def pool():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(read, [sys_path] * 3))

def sections():
    import asyncio, crema
    @crema.section("outer")
    def work():
        for _ in range(3):
            with crema.section("read"), crema.memory("read"):
                read(sys_path)
        try:
            with crema.section("fails"):
                raise KeyError("x")
        except KeyError:
            crema.metric("caught", 2)
    work()

def main():
    with Client(sys.argv[1]) as client, span("pythons"):
        run = lambda f, *a: client.submit(f, *a, key=f.__name__ + "-" + "0" * 32, pure=False)
        out = {"read": run(read, path).result(), "unpack": run(unpack, packed).result(), "packed": len(packed), "jit": run(jit).result()}
        out["gil"] = getattr(sys, "_is_gil_enabled", lambda: True)()
        if sys.version_info >= (3, 14):
            out["zstd"] = run(zstd).result() if importlib.util.find_spec("_zstd") else None
            out["tree"] = run(tree, path).result()
        run(killed, path, sys.argv[3]).result()
        for function in (locked, asleep, both_spin):
            run(function).result()
        run(spin).result()
        run(nap).result()
        pool.__globals__["sys_path"] = path
        out["pool"] = run(pool).result()
        sections.__globals__["sys_path"] = path
        run(sections).result()
        try:
            run(fail).result()
        except ValueError as error:
            out["error"] = str(error)
        print(json.dumps(out))

main()
"""


def environment(version):
    """A venv of that Python with distributed, made once."""
    if version in debian_pythons.VERSIONS + debian_pythons.FREE_THREADED:
        return venvs.make(venvs.VENVS / version, version, ["--no-deps", "-r", PINS], PINS.read_text())
    wanted = DISTRIBUTED.get(version, NEWEST)
    return venvs.make(venvs.VENVS / f"{version}-{wanted}", version, [f"distributed=={wanted}", f"dask=={wanted}"])


CELLS = [(version, {}) for version in venvs.each()]
if not os.environ.get("CREMA_ALL_CELLS"):
    CELLS += [("3.14", {})]  # what most new environments have
else:
    CELLS += [("3.12", {"PYTHONMALLOC": "debug"}), ("3.13", {"PYTHONDEVMODE": "1"}), ("3.15", {"PYTHONDEVMODE": "1", "PYTHON_JIT": "1"}),
              *((version, {"PYTHON_JIT": "1"}) for version in debian_pythons.VERSIONS)]


@pytest.mark.further
@pytest.mark.parametrize("version,env", CELLS)
def test_same_numbers(cell, new_cluster, data, tmp_path, version, env):
    procs = new_cluster()
    bin_dir = environment(version)
    procs.dask = lambda *args: [bin_dir / "dask", *args]
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(env={**procs.worker_env(), **env})
    script = tmp_path / "job.py"
    script.write_text(JOB)
    done = subprocess.run([bin_dir / "python", script, procs.address, data["zstd"], tmp_path / "marker"], env=procs.env,
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:] + "\n".join(cluster.tail(worker.log))
    truth = json.loads(done.stdout)
    found = jobs.settled(procs, lambda r: {"fail", "pool", "nap"} <= {t["prefix"] for t in r["tasks"]})
    tasks = {t["prefix"]: t for t in found["tasks"]}
    assert truth["jit"] == ("PYTHON_JIT" in env)
    name = ", ".join([f"CPython {version}", *(f"{name}={value}" for name, value in env.items())])
    assert truth["read"] == os.path.getsize(data["zstd"]) and truth["pool"] == 3 * truth["read"]
    check_counts(cell, name, tasks, truth)
    check_waits(tasks, free=version in debian_pythons.FREE_THREADED)
    assert truth["error"] == "on purpose"
    assert tasks["fail"]["status"] == "erred"
    first, second = jobs.tasks_of(found, "killed")
    cell("versions", f"{name}, read_bytes of a task that was killed", "it killed itself after five reads", 5 * BLOCK, first["read_bytes"])
    assert (first["status"], first["counted"]) == ("killed", False)
    assert (second["status"], second["counted"], second["read_bytes"]) == ("ok", True, 0)
    assert found["completeness"]["unseen"]["storage_read_bytes"] == 0
    assert not any("not tested" in note for note in found["completeness"]["notes"])
    check_sections(found, truth)


def check_counts(cell, name, tasks, truth):
    """Each count against what the task itself received."""
    def check(number, how, value, task, column):
        cell("versions", f"{name}, {number}", how, value, tasks[task][column])

    check("read_bytes", "os.read's results", truth["read"], "read", "read_bytes")
    check("read_bytes in a ThreadPoolExecutor", "os.read's results", truth["pool"], "pool", "read_bytes")
    calls = {"unpack": {"decompress": (truth["packed"], truth["unpack"])}}
    if truth.get("zstd"):
        packed, size = truth["zstd"]
        calls["zstd"] = {"compress": (size, packed), "decompress": (packed, size)}
    if "tree" in truth:
        entries, baskets, packed = truth["tree"]
        assert entries == 600_000
        check("basket_calls", "baskets of three branches in uproot's metadata", baskets, "tree", "basket_calls")
        check("basket_bytes", "compressed bytes of three branches in uproot's metadata", packed, "tree", "basket_bytes")
        check("decompress_calls of three branches", "their baskets", baskets, "tree", "decompress_calls")
    for task, directions in calls.items():
        for direction, (before, after) in directions.items():
            module = "compression.zstd" if task == "zstd" else "zlib"
            for unit, value in (("calls", 1), ("in_bytes", before), ("out_bytes", after)):
                check(f"{direction}_{unit} by {module}", "lengths of what it got and gave", value, task, f"{direction}_{unit}")


def check_waits(tasks, free):
    """Each wait in its own class; if two threads compute, one waits for the interpreter lock, which a free-threaded
    Python does not have, or for a core."""
    spun = tasks["locked"]["runqueue_wait_seconds"] if free else 0  # it gives its core away before it waits
    assert tasks["locked"]["lock_wait_seconds"] + spun >= 0.29 and tasks["asleep"]["sleep_seconds"] >= 0.29
    assert tasks["locked"]["sleep_seconds"] == tasks["asleep"]["lock_wait_seconds"] == 0
    spin = tasks["both_spin"]
    if free:
        assert spin["gil_wait_seconds"] == 0
    else:
        assert spin["gil_wait_seconds"] > 0 and spin["gil_wait_seconds"] + spin["runqueue_wait_seconds"] >= 0.2 * spin["wall_seconds"]
    assert spin["cpu_seconds"] + spin["gil_wait_seconds"] + spin["runqueue_wait_seconds"] + spin["lock_wait_seconds"] >= 0.9 * spin["wall_seconds"]
    assert tasks["spin"]["cpu_seconds"] >= 0.2
    assert tasks["nap"]["async"] and tasks["nap"]["wall_seconds"] >= 0.05 and tasks["nap"]["cpu_seconds"] is None


def check_sections(found, truth):
    sections = {s["section"]: s for s in found["sections"]}
    assert {path: (s["count"], s["broken"], s["read_bytes"]) for path, s in sections.items()} == {
        "outer": (1, 0, 3 * truth["read"]), "outer/read": (3, 0, 3 * truth["read"]), "outer/fails": (1, 0, 0)}
    assert [(m["name"], m["value"]["sum"]) for m in found["custom_metrics"]] == [("caught", 2)]
    assert [(m["name"], m["delta_bytes"]["count"]) for m in found["memory_sections"]] == [("read", 3)]
