"""A worker's process whose task keeps every other block of its heap free for some seconds ("both", "held"), and makes malloc_trim(0) return
them, after that ("both") or at once ("trimmed"). Prints how much of its anonymous memory was returned, and when."""

import ctypes
import json
import sys
import time

import small_worker

BLOCK, BLOCKS = 120_000, 2200


def anonymous():
    with open("/proc/self/smaps_rollup") as text:
        return next(int(line.split()[1]) * 1024 for line in text if line.startswith("Anonymous:"))


def stay(name):
    told[name] = [time.clock_gettime_ns(time.CLOCK_BOOTTIME)]
    time.sleep(20 if way == "held" else 12)
    told[name].append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def work():
    blocks = [b"x" * BLOCK for _ in range(BLOCKS)]
    kept = blocks[::2]
    del blocks
    if way != "trimmed":
        stay("held")
    before = anonymous()
    if way != "held":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        told["fell"] = before - anonymous()
        stay("trimmed")
    return len(kept)


told, way = {}, sys.argv[1]
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
worker.run("work-1", work)
time.sleep(0.5)
print(json.dumps(told), flush=True)
