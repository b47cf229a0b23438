# SPDX-License-Identifier: BSD-3-Clause
"""The journal by io_uring compared with pwrite: the same load (tests/bench/swarm) on the same collector, alternating, several
times each; the medians and their ratio. Each pair runs back to back, so that other load affects both.

The disk that stalls is a FUSE file system (bindfs) whose program is stopped for 100 ms once per second.

    bench_journal.py [--rounds N]
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from bench_swarm import BUILD, Collector

sys.path[:0] = [str(Path(__file__).resolve().parents[n] / name) for n, name in ((1, "integration"), (2, "scripts"))]
import bindfs
from budgets import judge, null_call_ns

# CPU time of a record in null calls: 1 us on a machine on which one takes 175 ns.
RECORD_GOAL = 5.7
WAYS = {"pwrite": "off", "io_uring": "on"}
LOADS = {
    "200 workers, 200,000 task records/s, a disk that stalls 100 ms once a second": (True, "--workers 200 --rate 200000 --seconds 5 --shared"),
    "200 workers, 200,000 task records/s": (False, "--workers 200 --rate 200000 --seconds 3 --shared"),
    "2,000 workers, as many as are taken": (False, "--workers 2000 --records 400000 --shared"),
}


def programs_of(mount):
    """The pids of the program that serves a FUSE mount."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(mount).encode() in each.read_bytes().split(b"\0") and b"bindfs" in each.read_bytes():
                yield int(each.parent.name)


@contextlib.contextmanager
def stalling(journal, lower):
    """A file system at `journal` that does not respond for 100 ms of each second."""
    journal.mkdir()
    lower.mkdir()
    over = threading.Event()
    with bindfs.mounted(lower, journal):
        pids = list(programs_of(journal))

        def stall():
            while not over.wait(0.9):
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    for pid in pids:
                        os.kill(pid, number)
                    over.wait(0.1 if number == signal.SIGSTOP else 0)

        thread = threading.Thread(target=stall)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def run(way, stalls, options):
    with tempfile.TemporaryDirectory(prefix="crema-journal-", dir=os.environ.get("CREMA_BENCH_DIR")) as name:
        directory = Path(name)
        with stalling(directory / "journal", directory / "lower") if stalls else contextlib.nullcontext():
            collector = Collector(directory, "--io-uring", WAYS[way])
            try:
                if collector.status()["journal"]["writes_by"] != way:
                    sys.exit(f"bench_journal: there is no {way} on this machine, nothing to compare")
                result = directory / "result.json"
                done = subprocess.run([BUILD / "tests" / "bench" / "swarm" / "swarm", "--to", collector.target, "--pid",
                                       str(collector.process.pid), "--json", result, *options], env=collector.env,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    sys.exit(f"bench_journal: the swarm failed with {way}\n{done.stdout}")
                return json.loads(result.read_text())
            finally:
                collector.stop()


def numbers(result):
    return {"records/s per core": 1e9 / result["cpu_ns_per_record"],
            "records/s": result["records_acked"] / result["seconds"],
            "ack p50 ms": result["ack_p50_ms"], "ack p99 ms": result["ack_p99_ms"],
            "most MiB": result["rss_most_bytes"] / 2**20}


def compare(name, stalls, options, rounds):
    found = {way: [] for way in WAYS}
    for i in range(rounds):
        for way in list(WAYS)[:: 1 if i % 2 == 0 else -1]:
            try:
                found[way].append(numbers(run(way, stalls, options)))
            except OSError as why:
                print(f"\n{name}: left out, {why}")
                return
    print(f"\n{name}: medians of {rounds} runs, each with its least and most")
    print(f"{'':20} {'pwrite':>28} {'io_uring':>28} {'io_uring/pwrite':>15}")
    for key in found["pwrite"][0]:
        middle = {way: statistics.median(r[key] for r in found[way]) for way in WAYS}
        cells = [f"{middle[way]:,.1f} ({min(r[key] for r in found[way]):,.1f}-{max(r[key] for r in found[way]):,.1f})"
                 for way in WAYS]
        if key == "records/s per core" and not stalls:
            calls = 1e9 / max(middle.values()) / null_call_ns()
            judge(f"collector, CPU of a record, {name} ({1e9 / max(middle.values()):.0f} ns)", calls, RECORD_GOAL, "null calls", "docs/scale.md")
        print(f"{key:20} {cells[0]:>28} {cells[1]:>28} {middle['io_uring'] / middle['pwrite']:>15.2f}", flush=True)


def main():
    rounds = int(sys.argv[2]) if sys.argv[1:2] == ["--rounds"] else 3
    for name, (stalls, options) in LOADS.items():
        compare(name, stalls, options.split(), rounds)


if __name__ == "__main__":
    main()
