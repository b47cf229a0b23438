# SPDX-License-Identifier: BSD-3-Clause
"""The capacity of one collector: a real `crema collect` with journal, status page and /metrics in a separate
directory, under the load of tests/bench/swarm. `make bench-swarm`, or with the swarm's own options:

    bench_swarm.py --workers 2000 --rate 500000 --seconds 20 --shared
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
RUNS = {
    "2,000 workers, 200,000 task records/s": "--workers 2000 --rate 200000 --seconds 15 --shared",
    "2,000 workers, as many task records as are taken": "--workers 2000 --records 5000000 --shared",
    "the same in pairs of a start and an end": "--workers 2000 --records 5000000 --shared --starts",
    "10,000 workers without tasks": "--workers 10000 --frame 0 --seconds 15",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Collector:
    def __init__(self, directory, *args):
        self.directory = Path(directory)
        self.target, self.http = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.env = {**os.environ, "CREMA_TOKEN_FILE": str(self.directory / "token")}
        self.process = subprocess.Popen(
            [BUILD / "crema", "collect", "--listen", self.target, "--http", self.http,
             "--dir", self.directory / "journal", *args],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench_swarm: crema collect did not start")

    def status(self):
        with urllib.request.urlopen(f"http://{self.http}/status.json", timeout=120) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=120)


def run(options):
    """Runs the swarm and prints the collector's numbers; returns the swarm's exit status."""
    directory = tempfile.mkdtemp(prefix="crema-swarm-", dir=os.environ.get("CREMA_BENCH_DIR"))
    try:
        collector = Collector(directory)
        done = subprocess.run([BUILD / "tests" / "bench" / "swarm" / "swarm", "--to", collector.target, "--http", collector.http,
                               "--pid", str(collector.process.pid), *options], env=collector.env)
        said = collector.status()
        print(f"the collector has journaled {said['records']} messages in {said['journal']['segments']} files of "
              f"{said['journal']['bytes'] / 2**20:.0f} MiB together, {said['missing_records']} missing; slowest fdatasync "
              f"{said['journal']['slowest_sync_seconds']:.3f} s")
        collector.stop()
        return done.returncode
    finally:
        shutil.rmtree(directory)


def main():
    if sys.argv[1:]:
        return run(sys.argv[1:])
    worst = 0
    for name, options in RUNS.items():
        print(f"\n== {name} ({options})", flush=True)
        worst = max(worst, run(options.split()))
        time.sleep(1)
    return worst


if __name__ == "__main__":
    sys.exit(main())
