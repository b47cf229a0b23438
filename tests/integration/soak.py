#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills workers, agents and the collector at random while tasks run, and compares the report with the client's
own record. `scripts/soak` runs it.

    soak.py [--minutes N] [--seed N] [--calm]   --calm: kills nothing, and checks for growth only
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import cluster
import faults
import jobs
from distributed import Client, span

STEP, SIZE = 100, 1000  # tasks at once, bytes that each reads


def sizes(pid):
    """(resident bytes without shared memory, descriptors) of a process; None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        anonymous = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))
        return {"rss_anon_bytes": anonymous, "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
    except (OSError, StopIteration):
        return None


class Killer(threading.Thread):
    """Kills one process at a time; a killed collector is restarted here, a worker by its nanny."""

    def __init__(self, procs, rng):
        super().__init__()
        self.procs, self.rng, self.killed, self.enough = procs, rng, {"worker": 0, "agent": 0, "collector": 0}, threading.Event()

    def run(self):
        while not self.enough.wait(self.rng.uniform(0.5, 3)):
            kind = self.rng.choice(["worker", "worker", "agent", "agent", "collector"])
            if kind == "collector":
                self.procs.collector.kill()
                self.procs.collector.wait(60)
                self.enough.wait(self.rng.uniform(0, 3))
                self.procs.start_collector()
            else:
                # An agent's command line has its worker's pid.
                agents = self.procs.agents()
                pid = self.rng.choice(agents) if agents else None
                if pid and kind == "worker":
                    words = cluster.strings_of(pid, "cmdline")
                    pid = int(words[words.index("--pid") + 1]) if "--pid" in words else None
                if not pid:
                    continue
                cluster.kill(pid, signal.SIGKILL)
            self.killed[kind] += 1

    def __exit__(self, *_):
        self.enough.set()
        self.join()

    def __enter__(self):
        self.start()
        return self


def flood(client, name, path, seconds):
    """Runs tiny tasks for that many seconds; returns their keys."""
    keys, end = [], time.monotonic() + seconds
    with span(name):
        while time.monotonic() < end:
            new = [jobs.unique(name) for _ in range(STEP)]
            futures = [client.submit(faults.read_a_little, path, SIZE, key=key, pure=False) for key in new]
            assert client.gather(futures) == [SIZE] * STEP
            keys += new
    return keys


def check(found, name, keys):
    """A list of errors as text, empty if there are none."""
    tasks = jobs.tasks_of(found, name)
    counted = [t for t in tasks if t["counted"]]
    done, wrong = found["completeness"], []
    if sorted(t["key"] for t in counted) != sorted(keys):
        missing = set(keys) - {t["key"] for t in counted}
        wrong.append(f"{len(counted)} attempts count for {len(keys)} tasks, {len(missing)} are missing")
    if any(t["read_bytes"] != SIZE for t in counted):
        wrong.append("an attempt that counts has not the bytes that were read")
    if {t["status"] for t in tasks} - {"ok", "killed", "lost"}:
        wrong.append(f"states {sorted({t['status'] for t in tasks})}")
    for what in ("records_lost_at_least", "records_refused_at_least", "tasks_refused_at_least", "records_bad"):
        if done[what]:
            wrong.append(f"{what}: {done[what]}")
    if done["torn_files"] and not all(t["truncated"] for t in done["torn_files"]):
        wrong.append(f"torn: {done['torn_files']}")
    return wrong


def soak(procs, client, path, seconds, seed=1, calm=False):
    """The summary as a dictionary; "wrong" is empty if there are no errors."""
    name, before = "soak", {}
    # Warm up first: later growth then depends on the work.
    flood(client, "warm", path, min(10, seconds / 4))
    watched = {"collector": procs.collector.pid, **{f"agent {i}": pid for i, pid in enumerate(sorted(procs.agents()))},
               **{f"worker {i}": pid for i, pid in enumerate(sorted(client.run(os.getpid).values()))}}
    before = {who: sizes(pid) for who, pid in watched.items()}
    killer = Killer(procs, random.Random(seed))
    if calm:
        keys = flood(client, name, path, seconds)
    else:
        with killer:
            keys = flood(client, name, path, seconds)
    after = {who: sizes(pid) for who, pid in watched.items()}
    found = jobs.settled(procs, lambda r: sum(t["counted"] for t in jobs.tasks_of(r, name)) >= len(keys))
    growth = {who: {what: after[who][what] - before[who][what] for what in before[who]}
              for who in watched if before[who] and after[who]}
    return {"seconds": round(seconds), "tasks": len(keys), "attempts": len(jobs.tasks_of(found, name)), "killed": killer.killed,
            "workers_seen": len(found["workers"]), "growth": growth, "wrong": check(found, name, keys)}


@contextlib.contextmanager
def site(directory, env):
    """(processes, client, file to read): two workers with two threads each."""
    path = directory / "data"
    path.write_bytes(bytes(SIZE))
    with cluster.Cluster(directory / "cluster", env) as procs:
        procs.start_collector()
        procs.start_scheduler(faults.PATIENT)
        for _ in range(2):
            procs.start_worker(nthreads=2)
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            yield procs, client, str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calm", action="store_true", help="kill nothing: only look for growth")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crema-soak-") as home:
        here = os.pathsep.join(str(ROOT / p) for p in ("tests/integration", "scripts"))
        env = {"PYTHONPATH": here, "XDG_CONFIG_HOME": f"{home}/config", "XDG_STATE_HOME": f"{home}/state",
               "CREMA_TOKEN_FILE": f"{home}/config/crema/token"}
        with site(Path(home), env) as (procs, client, path):
            summary = soak(procs, client, path, options.minutes * 60, options.seed, options.calm)
    print(json.dumps(summary, indent=1))
    return 1 if summary["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
