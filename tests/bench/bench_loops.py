# SPDX-License-Identifier: BSD-3-Clause
"""epoll beside io_uring: the same load (tests/bench/swarm) on the same collector, in turn, each some times; the
medians and their ratio. Each pair runs back to back, so what else the machine does falls on both.

    bench_loops.py [--rounds N] [the swarm's options]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_swarm import BUILD, Collector

LOOPS = ("epoll", "io_uring")
LOADS = {
    "200 workers, 50,000 task records/s": "--workers 200 --rate 50000 --seconds 3 --shared",
    "200 workers, as many as are taken": "--workers 200 --records 400000 --shared",
    "2,000 workers, as many as are taken": "--workers 2000 --records 400000 --shared",
}


def run(loop, options):
    with tempfile.TemporaryDirectory(prefix="crema-loops-", dir=os.environ.get("CREMA_BENCH_DIR")) as directory:
        collector = Collector(directory, "--loop", loop)
        try:
            if collector.status()["loop"] != loop:
                print(f"bench_loops: there is no {loop} on this machine, nothing to compare")
                sys.exit(0)
            result = Path(directory) / "result.json"
            done = subprocess.run([BUILD / "tests" / "bench" / "swarm" / "swarm", "--to", collector.target, "--pid",
                                   str(collector.process.pid), "--json", result, *options], env=collector.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                sys.exit(f"bench_loops: the swarm failed on {loop}\n{done.stdout}")
            return json.loads(result.read_text())
        finally:
            collector.stop()


def numbers(result):
    return {"records/s per core": 1e9 / result["cpu_ns_per_record"],
            "records/s": result["records_acked"] / result["seconds"],
            "ack p50 ms": result["ack_p50_ms"], "ack p99 ms": result["ack_p99_ms"],
            "most MiB": result["rss_most_bytes"] / 2**20}


def compare(name, options, rounds):
    found = {loop: [] for loop in LOOPS}
    for i in range(rounds):
        for loop in LOOPS if i % 2 == 0 else LOOPS[::-1]:
            found[loop].append(numbers(run(loop, options)))
    print(f"\n{name}: medians of {rounds} runs, each with its least and most")
    print(f"{'':20} {'epoll':>28} {'io_uring':>28} {'io_uring/epoll':>15}")
    for key in found["epoll"][0]:
        middle = {loop: statistics.median(r[key] for r in found[loop]) for loop in LOOPS}
        cells = [f"{middle[loop]:,.1f} ({min(r[key] for r in found[loop]):,.1f}-{max(r[key] for r in found[loop]):,.1f})"
                 for loop in LOOPS]
        print(f"{key:20} {cells[0]:>28} {cells[1]:>28} {middle['io_uring'] / middle['epoll']:>15.2f}", flush=True)


def main():
    words = sys.argv[1:]
    rounds = 3
    if words[:1] == ["--rounds"]:
        rounds, words = int(words[1]), words[2:]
    for name, options in ({" ".join(words): " ".join(words)} if words else LOADS).items():
        compare(name, options.split(), rounds)


if __name__ == "__main__":
    main()
