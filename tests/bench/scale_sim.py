# SPDX-License-Identifier: BSD-3-Clause
"""The capacity of more than one collector: a simulation of docs/scale.md's design, based on two runs of the swarm.

    bench_swarm.py --workers 2000 --rate 200000 --seconds 10 --shared --json build/busy.json
    bench_swarm.py --workers 10000 --frame 0 --seconds 10 --shared --json build/idle.json
    scale_sim.py build/busy.json build/idle.json --workers 100000 --tasks 1

They give the CPU that an idle worker costs per second (samples, totals, Dask's numbers),
and the additional CPU of a task's record. Each front collector is one server with a queue: frames of its workers
arrive every half second, each worker at its own phase, and each frame takes its share of one core. A frame's wait is from
its arrival to the end of its processing, when it is acknowledged; the network is not included. The root gets a
sample and totals from each front collector, and no records.
"""

import argparse
import json
import random

FRAME_S, SECONDS = 0.5, 20.0
RECORDS_OF_A_TASK = 2  # its start and its end


def costs(busy, idle):
    """(CPU seconds per worker and second, CPU seconds per task record)"""
    second = idle["cpu_seconds"] / (idle["workers"] * idle["seconds"])
    rest = busy["cpu_seconds"] - second * busy["workers"] * busy["seconds"]
    return second, rest / busy["records_acked"]


def frames(workers, cost, begin, end, rng):
    """(arrival, work) of all frames of these workers, in order."""
    found = []
    for _ in range(workers):
        at = begin + rng.random() * FRAME_S
        while at < end:
            found.append((at, cost))
            at += FRAME_S
    found.sort()
    return found


def served(arrivals):
    """The wait of each frame, and the time when the last one was done."""
    free, waits = 0.0, []
    for at, cost in arrivals:
        free = max(free, at) + cost
        waits.append(free - at)
    return waits, free


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def fails(workers, fronts, cost, away, rng):
    """The longest wait on a front collector that takes over its share of a failed one's workers, which arrive after
    `away` seconds with everything that they kept in that time; and the seconds until its queue is back to normal."""
    if fronts == 1:
        return None, None
    own, share = workers // fronts, workers // fronts // (fronts - 1)
    begin = SECONDS / 4
    late = frames(share, cost, begin, SECONDS, rng)
    back = begin + away
    # Kept frames arrive at once, when a worker has found its new collector within a second.
    moved = sorted((back + rng.random() if at < back else at, c) for at, c in late)
    arrivals = sorted(frames(own, cost, 0, SECONDS, rng) + moved)
    waits, _ = served(arrivals)
    usual = 10 * quantile([w for (at, _), w in zip(arrivals, waits) if at < begin], 0.99)
    slow = [at for (at, _), w in zip(arrivals, waits) if at >= back and w > usual]
    return max(waits), (max(slow) - back if slow else 0.0)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("busy")
    options.add_argument("idle")
    options.add_argument("--workers", type=int, default=100_000)
    options.add_argument("--tasks", type=float, default=1.0, help="of each worker and second")
    options.add_argument("--away", type=float, default=5.0, help="seconds until agents of a dead collector find another")
    options = options.parse_args()
    busy, idle = (json.load(open(path)) for path in (options.busy, options.idle))
    second, record = costs(busy, idle)
    records = options.tasks * RECORDS_OF_A_TASK
    print(f"measured: {second * 1e6:.1f} us for each worker and second, {record * 1e9:.0f} ns for each task record")
    print(f"{options.workers} workers, {options.tasks:g} tasks per second each: {options.workers * records:.0f} records/s\n")
    print("| front collectors | workers of each | cores of each | p50 ms | p99 ms | one dies: longest wait s | "
          "until as before s |\n|---|---|---|---|---|---|---|")
    for fronts in (1, 5, 10, 20, 40):
        own = options.workers // fronts
        cost = FRAME_S * (second + records * record)
        load = own * cost / FRAME_S
        if load >= 1:
            print(f"| {fronts} | {own} | {load:.2f} | does not keep up | | | |")
            continue
        waits, _ = served(frames(own, cost, 0, SECONDS, random.Random(1)))
        longest, until = fails(options.workers, fronts, cost, options.away, random.Random(2))
        with_more = load * (1 + 1 / (fronts - 1))
        tail = f"{longest:.2f} | {until:.1f}" if with_more < 1 else "does not keep up | "
        print(f"| {fronts} | {own} | {load:.2f} | {1e3 * quantile(waits, 0.5):.2f} | {1e3 * quantile(waits, 0.99):.2f} "
              f"| {tail} |")
    print(f"\nthe root: {20 * second * 1e3:.2f} ms of CPU per second for the totals of 20 front collectors")


if __name__ == "__main__":
    main()
