# SPDX-License-Identifier: BSD-3-Clause
"""Budgets of `make bench`: results are compared in units measured in the same run, so that a slower machine does not miss them."""

import os
import resource
import time
import timeit


def null_call_ns():
    """One system call that does nothing, without Python's own part: the unit of kernel work."""
    call, other = (min(timeit.repeat(work, number=20_000, repeat=25, timer=time.thread_time)) for work in (os.getppid, int))
    return (call - other) / 20_000 * 1e9


def sort_seconds():
    """User time of sorting 1,000,000 numbers in Python: the unit of work on much memory."""
    numbers, best = [(i * 2654435761) % 2**32 / 7 for i in range(1_000_000)], []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        sorted(numbers)
        best.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
    return min(best)


def judge(what, figure, goal, unit, read, error=0.0):
    """Prints a line if the goal is not reached; bench.py repeats it at the end. A miss within twice the error is undecided."""
    if figure <= goal:
        return
    decided, said = ("missed", "") if figure - 2 * error > goal else ("undecided", f" +- {error:.3g}")
    print(f"budget {decided}: {what}: {figure:.3g}{said} {unit}, goal {goal:.3g}; read {read}", flush=True)
