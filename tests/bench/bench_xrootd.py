# SPDX-License-Identifier: BSD-3-Clause
"""The cost of the hooks of XRootD's Python client: a client that answers at once, in a task of a worker with
and without the library. The result is the difference per call; a real read takes 100 us or more."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

FAKE = """
class Status:
    ok = True

class Info:
    size, chunks = 1000, ()

status, data, info = Status(), b"x" * 1000, Info()

class File:
    def get_property(self, name):
        return {"LastURL": "root://host:1094//f", "DataServer": "host:1094"}[name]

    def read(self, offset=0, size=0, timeout=0, callback=None):
        if callback:
            callback(status, data, None)
            return status
        return status, data

    def vector_read(self, chunks, timeout=0, callback=None):
        return status, info

class FileSystem:
    pass
"""


def measure(rounds=9, calls=20_000):
    """The lowest ns per call of each kind: a machine is sometimes too slow, but never too fast."""
    import time

    from XRootD import client

    file, chunks = client.File(), [(i, 10) for i in range(100)]
    kinds = {"read": lambda: file.read(0, 1000),
             "read with a callback": lambda: file.read(0, 1000, 0, measure_nothing),
             "vector_read of 100 chunks": lambda: file.vector_read(chunks)}
    least = {}
    for _ in range(rounds):
        for name, call in kinds.items():
            start = time.perf_counter_ns()
            for _ in range(calls):
                call()
            least[name] = min(least.get(name, 1e9), (time.perf_counter_ns() - start) / calls)
    return least


def measure_nothing(*args):
    pass


def main():
    import cluster
    from distributed import Client

    found = {}
    with tempfile.TemporaryDirectory() as home:
        package = Path(home) / "fake" / "XRootD" / "client"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "__init__.py").write_text(FAKE)
        env = {"PYTHONPATH": f"{package.parents[1]}:{Path(__file__).parent}", "CREMA_TOKEN_FILE": f"{home}/token"}
        for shim in (False, True):
            with cluster.Cluster(Path(home) / f"shim-{shim}", env) as procs:
                procs.start_collector()
                procs.start_scheduler()
                procs.start_worker(shim=shim)
                with Client(procs.address) as client:
                    import bench_xrootd

                    found[shim] = client.submit(bench_xrootd.measure).result(timeout=300)
    print("XRootD client that answers at once: ns per call without and with the library")
    for name, without in found[False].items():
        print(f"  {name:26} {without:8.0f} {found[True][name]:8.0f}   added {found[True][name] - without:6.0f}")


if __name__ == "__main__":
    main()
