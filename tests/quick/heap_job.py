"""A worker's process whose task leaves every other block of its heap free for some seconds, and then has malloc_trim(0) return them.
Prints what the kernel said of its memory before and after."""

import ctypes
import json
import time

import small_worker

BLOCK, BLOCKS = 60_000, 1600


def anonymous():
    with open("/proc/self/smaps_rollup") as text:
        return next(int(line.split()[1]) * 1024 for line in text if line.startswith("Anonymous:"))


def work():
    blocks = [b"x" * BLOCK for _ in range(BLOCKS)]
    kept = blocks[::2]
    del blocks
    told["held"] = [time.clock_gettime_ns(time.CLOCK_BOOTTIME)]
    time.sleep(4)
    told["held"].append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    before = anonymous()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    told["fell"] = before - anonymous()
    told["trimmed"] = [time.clock_gettime_ns(time.CLOCK_BOOTTIME)]
    time.sleep(4)
    told["trimmed"].append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    return len(kept)


told = {}
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process then
worker.run("work-1", work)
time.sleep(0.5)
print(json.dumps(told), flush=True)
