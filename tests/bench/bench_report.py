# SPDX-License-Identifier: BSD-3-Clause
"""The cost of reports: user time and memory of `crema report` for 1,000,000 tasks in each output format, and the ratio between a run and
one a quarter its size, with budgets. The two runs are measured back to back, the lower of three each.

    bench_report.py
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from budgets import judge, sort_seconds

BUILD = Path(os.environ.get("BUILD", "build")).resolve()
BUDGET = 5  # 4 is linear; comparing each with each would take 16
WAYS = {"tables": [], "--html": ["--html", "/dev/null"], "--json": ["--json", "/dev/null"], "--list": ["--list"]}
GROWTHS = {
    "4 x the workers (2,000 and 8,000), 40,000 tasks": ((40_000, 2000), (40_000, 8000)),
    "4 x the tasks (30,000 and 120,000), 50 workers": ((30_000, 50), (120_000, 50)),
}


def user_seconds(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"{argv}: {run.stderr}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


# In sorts of 1,000,000 numbers, which take SORT s on the machine for which the goals are 10, 10 and 15 s.
SORT = 0.11
MILLION = {"tables": 10 / SORT, "--html": 10 / SORT, "--json": 15 / SORT}
MOST_MIB = 500


def million(directory):
    """1,000,000 tasks on 200 workers. Read as a whole: a collector writes footers, so only make_journal's journals must be surveyed."""
    journal = Path(directory) / "million"
    subprocess.run([BUILD / "tests" / "bench" / "make_journal", journal, "1000000", "200"], check=True)
    print(f"{'1,000,000 tasks, 200 workers':52} {'way':8} {'user s':>8} {'sorts':>8} {'goal':>6}")
    for way, goal in MILLION.items():
        units = [sort_seconds()]
        took = user_seconds([BUILD / "crema", "report", "--dir", journal, "--read-whole", "1Gi", *WAYS[way]])
        units.append(sort_seconds())
        unit = min(units)
        print(f"{'':52} {way:8} {took:8.2f} {took / unit:8.1f} {goal:6.1f}", flush=True)
        judge(f"report of 1,000,000 tasks, {way} ({took:.1f} s)", took / unit, goal, "sorts", "docs/scale.md, docs/cost.md",
              took / unit * (max(units) / unit - 1))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{'the largest of their memories':52} {most:.0f} MiB, goal {MOST_MIB}")
    judge("memory of a report of 1,000,000 tasks", most, MOST_MIB, "MiB", "docs/scale.md")


def main():
    with tempfile.TemporaryDirectory(prefix="crema-report-", dir=os.environ.get("CREMA_BENCH_DIR")) as name:
        million(name)
    print(f"{'user time of crema report':52} {'way':8} {'small s':>8} {'large s':>8} {'ratio':>6} {'budget':>6}")
    with tempfile.TemporaryDirectory(prefix="crema-report-", dir=os.environ.get("CREMA_BENCH_DIR")) as name:
        for n, (growth, sizes) in enumerate(GROWTHS.items()):
            journals = [Path(name) / f"{n}-{tasks}-{workers}" for tasks, workers in sizes]
            for journal, size in zip(journals, sizes):
                subprocess.run([BUILD / "tests" / "bench" / "make_journal", journal, *map(str, size)], check=True)
            for way, options in WAYS.items():
                each = [[user_seconds([BUILD / "crema", "report", "--dir", j, *options]) for j in journals] for _ in range(3)]
                small, large = (min(times) for times in zip(*each))
                print(f"{growth:52} {way:8} {small:8.2f} {large:8.2f} {large / small:6.2f} {BUDGET:6}", flush=True)
                judge(f"report {way}, {growth}", large / small, BUDGET, "x the time", "docs/scale.md")


if __name__ == "__main__":
    main()
