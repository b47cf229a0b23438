"""A task that records when it read what. Workers import this file."""

import time

PIECE = 1 << 18


def burst_pause_burst(path, pause):
    """One task: reads 8 pieces in small steps, pauses, computes as long, reads 24 pieces. Returns
    [(UTC, bytes read so far)], and the start and end of the pause and of the computation."""
    seen, total = [], 0

    def read(file, pieces):
        nonlocal total
        for _ in range(pieces):
            total += len(file.read(PIECE))
            seen.append((time.time(), total))
            time.sleep(0.05)

    with open(path, "rb", buffering=0) as file:
        read(file, 8)
        rest = time.time()
        time.sleep(pause)
        work = time.time()
        while time.time() < work + pause:
            sum(range(1000))
        done = time.time()
        read(file, 24)
    return seen, rest, work, done


async def hold_the_loop(seconds):
    """Blocks the worker's event loop."""
    time.sleep(seconds)


def compute(seconds):
    until = time.time() + seconds
    while time.time() < until:
        sum(range(1000))
