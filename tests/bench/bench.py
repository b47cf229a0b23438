# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: runs each benchmark, then prints the budgets that were missed, or that all were met.

    bench.py [NAME...]    any of shim, job, restart, journal, report; without names all of them
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("BUILD", "build")).resolve()
DASK = HERE.parents[1] / ".venv" / "bin" / "python"
BENCHES = {
    "shim": [BUILD / "tests" / "bench" / "bench_shim"],
    "job": [DASK, HERE / "bench_job.py"],
    "restart": [DASK, HERE / "bench_restart.py"],
    "journal": [sys.executable, HERE / "bench_journal.py", "--rounds", "1"],
    "report": [sys.executable, HERE / "bench_report.py"],
}


def run(argv):
    """The lines about budgets in its output, which is passed on."""
    said = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "BUILD": str(BUILD)}) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("budget "):
                said.append(line.rstrip())
    return said + ([f"failed: {argv[-1]} exited with {process.returncode}"] if process.returncode else [])


def main(names):
    said = []
    for name in names or BENCHES:
        print(f"\n== {name}", flush=True)
        if not Path(BENCHES[name][0]).exists():
            said.append(f"left out: {name} needs the .venv that scripts/demo makes")
        else:
            said += run(BENCHES[name])
    print("\n== budgets")
    print("\n".join(said) or "all budgets held")
    return any(line.startswith("failed") for line in said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
