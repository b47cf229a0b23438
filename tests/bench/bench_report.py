# SPDX-License-Identifier: BSD-3-Clause
"""What reports cost as runs grow: user time of `crema report` for each way to write it, as the ratio of a run to one a
quarter its size, beside a budget. Both are measured back to back, the least of three each.

    bench_report.py
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("BUILD", "build")).resolve()
BUDGET = 5  # 4 is linear; what compares each with each takes 16
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


def main():
    over = 0
    print(f"{'user time of crema report':52} {'way':8} {'small s':>8} {'large s':>8} {'ratio':>6} {'budget':>6}")
    with tempfile.TemporaryDirectory(prefix="crema-report-", dir=os.environ.get("CREMA_BENCH_DIR")) as name:
        for n, (growth, sizes) in enumerate(GROWTHS.items()):
            journals = [Path(name) / f"{n}-{tasks}-{workers}" for tasks, workers in sizes]
            for journal, size in zip(journals, sizes):
                subprocess.run([BUILD / "tests" / "bench" / "make_journal", journal, *map(str, size)], check=True)
            for way, options in WAYS.items():
                each = [[user_seconds([BUILD / "crema", "report", "--dir", j, *options]) for j in journals] for _ in range(3)]
                small, large = (min(times) for times in zip(*each))
                over += large > BUDGET * small
                print(f"{growth:52} {way:8} {small:8.2f} {large:8.2f} {large / small:6.2f} {BUDGET:6}", flush=True)
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
