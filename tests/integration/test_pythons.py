# SPDX-License-Identifier: BSD-3-Clause
"""One library for every CPython: the same job under each of them that this machine has."""

import json
import os
import subprocess

import cluster
import jobs
import pytest
import venvs

VERSIONS = ["3.10", "3.12", "3.13"]  # the environment's own is under all the other tests
# The distributed of before and after its task function was renamed.
DISTRIBUTED = {"3.10": "2024.8.2"}
NEWEST = "2026.8.0"

JOB = """
import json, sys, time, zlib
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
        out = {"read": run(read, path).result(), "unpack": run(unpack, packed).result(), "packed": len(packed)}
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
    wanted = DISTRIBUTED.get(version, NEWEST)
    return venvs.make(venvs.VENVS / f"{version}-{wanted}", version, [f"distributed=={wanted}", f"dask=={wanted}"])


@pytest.mark.parametrize("version,env", [
    ("3.10", {}), ("3.12", {}), ("3.13", {}),
    ("3.12", {"PYTHONMALLOC": "debug"}), ("3.13", {"PYTHONDEVMODE": "1"})])
def test_same_numbers(new_cluster, data, tmp_path, version, env):
    procs = new_cluster()
    bin_dir = environment(version)
    procs.dask = lambda *args: [bin_dir / "dask", *args]
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(env={**procs.worker_env(), **env})
    script = tmp_path / "job.py"
    script.write_text(JOB)
    done = subprocess.run([bin_dir / "python", script, procs.address, data["zstd"]], env=procs.env,
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:] + "\n".join(cluster.tail(worker.log))
    truth = json.loads(done.stdout)
    found = procs_report(procs)
    tasks = {t["prefix"]: t for t in found["tasks"]}
    assert truth["error"] == "on purpose"
    assert tasks["read"]["read_bytes"] == truth["read"] == os.path.getsize(data["zstd"])
    assert tasks["unpack"]["decompress_out_bytes"] == truth["unpack"]
    assert tasks["unpack"]["decompress_in_bytes"] == truth["packed"]
    assert tasks["unpack"]["decompress_calls"] == 1
    assert tasks["pool"]["read_bytes"] == truth["pool"] == 3 * truth["read"]
    assert tasks["spin"]["cpu_seconds"] >= 0.2
    assert tasks["fail"]["status"] == "erred"
    assert tasks["nap"]["async"] and tasks["nap"]["wall_seconds"] >= 0.05 and tasks["nap"]["cpu_seconds"] is None
    assert found["completeness"]["unseen"]["storage_read_bytes"] == 0
    sections = {s["section"]: s for s in found["sections"]}
    assert {path: (s["count"], s["broken"], s["read_bytes"]) for path, s in sections.items()} == {
        "outer": (1, 0, 3 * truth["read"]), "outer/read": (3, 0, 3 * truth["read"]), "outer/fails": (1, 0, 0)}
    assert [(m["name"], m["value"]["sum"]) for m in found["custom_metrics"]] == [("caught", 2)]
    assert [(m["name"], m["delta_bytes"]["count"]) for m in found["memory_sections"]] == [("read", 3)]


def procs_report(procs):
    return jobs.settled(procs, lambda r: {"fail", "pool", "nap"} <= {t["prefix"] for t in r["tasks"]})
