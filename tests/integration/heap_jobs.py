"""What test_heap_held.py runs on a worker."""

import time

kept = []


def fragments(block, blocks):
    """As a processor whose temporary arrays alternate with small objects that it keeps; at the end no large array is in use."""
    temporary = []
    for _ in range(blocks):
        temporary.append(b"x" * block)
        kept.append(b"k" * 700)
    return len(kept)


def idle(seconds):
    time.sleep(seconds)


def anonymous():
    with open("/proc/self/smaps_rollup") as text:
        return next(int(line.split()[1]) * 1024 for line in text if line.startswith("Anonymous:"))
