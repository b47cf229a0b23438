#!/usr/bin/env python3
"""Writes journal-1.crema next to this file: format 1 with every frame and message that a journal may hold, one worker,
numbers chosen by hand. It is kept as it is: a new collector must read it. A new format gets a file of its own."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "integration"))

import frames

WORKER, CHUNK, SPAN = b"golden-worker-01", 2, "span-1"


def at(ms):
    return frames.BOOT_NS + ms * 10**6


def fill(journal):
    journal.worker(WORKER, host="node-1", pid=4711, agent_version="0.1.0", python="3.12.1", cores=4)

    def say(message, /, **values):
        journal.message([message, values], WORKER)

    for i in range(3):
        journal.task(i + 1, f"analyse-{i}", 1000 * i, 1000 * i + 900, WORKER, prefix="analyse", flags=CHUNK, events=100,
                     dataset="data", filename="/data/a.root", entrystart=100 * i, entrystop=100 * i + 100,
                     read_bytes=1000 + i, cpu_ns=5 * 10**8)
    say(15, boot_ns=at(0), real_ns=frames.BASE_NS, offset_ns=0, error_ns=0)
    say(8, boot_ns=at(500), rss_bytes=5 * 10**7, cpu_percent=50.0, threads=9, tasks_running=1)
    say(9, boot_ns=at(500), cpu_percent=10.0, memory_total_bytes=10**10, load1=1.5)
    journal.message([10, at(600), '{"nthreads": 2}'], WORKER)
    say(11, boot_ns=at(3000), tasks_started=3, tasks_done=3, tasks={"read_bytes": 3003}, unattributed={"read_bytes": 7})
    say(12, path="/data/a.root", span=SPAN, kind="data", storage="exact", filesystem="ext4", size_bytes=9000,
        read_calls=3, read_bytes=3003, storage_read_bytes=4096)
    say(13, function="zlib.decompress", codec="zlib", direction="decompress", span=SPAN, calls=6, in_bytes=2000,
        out_bytes=8000, cpu_ns=10**6, wall_ns=10**6)
    say(16, server="files:1094", scheme="root", span=SPAN, requests=5, failed=1, read_bytes=3003, latency_sum_ns=10**7,
        latency_max_ns=4 * 10**6, latency=[0] * 12 + [5] + [0] * 19)
    say(17, number=1, path="fill", span=SPAN, prefix="analyse", thread="task", source="crema", rev=1, begun=3, count=3,
        broken=0, wall_ns=6 * 10**8, counters={"read_bytes": 300})
    say(18, number=1, path="jets", span=SPAN, prefix="analyse", kind="value", source="crema", rev=1, broken=0,
        stats=[[3, 12.0, 1.0, 7.0, 4.0]])
    say(20, id=1, path="/usr/lib/libc.so.6", build_id="00ff")
    say(21, number=0, attempt=1, tid=7, end_boot_ns=at(800), wait="lock_wait_ns", waited_ns=3 * 10**7, on=None, file=None,
        peer=None, prefix="analyse", span=SPAN, frames=[1, 4096])
    say(14, boot_ns=at(4000), how="exit", evidence=["ended by itself"], cause=None, tasks_in_flight=0)
    journal.frames.append(frames.frame(10, {"time_ns": frames.BASE_NS + 5 * 10**9, "event": "stop", "text": "golden"}))


if __name__ == "__main__":
    made = frames.Journal(HERE)
    made.path = HERE / "journal-1.crema"
    fill(made)
    made.write()
