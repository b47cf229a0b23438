"""The demo job itself; scripts/demo prepares everything and then executes this program."""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cluster
import make_data

BEGIN = time.monotonic()
WORKERS = 2


def say(text):
    print(f"[{time.monotonic() - BEGIN:4.0f} s] {text}", file=sys.stderr, flush=True)


def stop_on_signals():
    def leave(number, _frame):
        if not cluster.stop_signal:
            say("stopping")
        cluster.stop_signal = cluster.stop_signal or number

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def run_analysis(procs, files, report):
    argv = [sys.executable, cluster.ROOT / "examples" / "ttbar.py", "--scheduler", procs.address,
            "--workers", str(WORKERS), "--files", *files, "--report", report]
    analysis = procs.start("ttbar", argv)
    try:
        last = time.monotonic()
        while analysis.poll() is None:
            cluster.check_stop()
            for process in (procs.collector, procs.scheduler, *procs.workers):
                if process.poll() is not None:
                    raise cluster.StepFailed(f"{process.name} ended with status {process.returncode}", process.log)
            if time.monotonic() - last > 10:
                last = time.monotonic()
                say("the analysis runs ...")
            time.sleep(0.1)
    finally:
        analysis.stop()
    if analysis.returncode != 0:
        raise cluster.StepFailed(f"examples/ttbar.py: status {analysis.returncode}", analysis.log)
    print(analysis.text(), end="", flush=True)


def run(directory, files):
    report = directory / "coffea-report.json"
    with cluster.Cluster(directory, say=say) as procs:
        procs.start_collector()
        procs.start_scheduler()
        say("the workers run with LD_PRELOAD=libcrema.so and CREMA_COLLECTOR=" + procs.target)
        for _ in range(WORKERS):
            procs.start_worker()
        run_analysis(procs, files, report)
        say("stopping the cluster")
        procs.stop_workers()
    say("crema report")
    page = cluster.BUILD / "demo.html"
    done = procs.report("--html", page)
    if done.returncode == 0:
        done = procs.report("--coffea-report", report, full=False)
    if done.returncode != 0:
        raise cluster.StepFailed(f"crema report: status {done.returncode}: {done.stderr.strip()}")
    sys.stderr.write(done.stderr)
    print(done.stdout, end="", flush=True)
    say(f"the same as a page with charts: {page}")


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--files", nargs="+", type=Path)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    files = args.files or list(make_data.files(cluster.ROOT / "data").values())
    files = [path.resolve() for path in files]
    for path in files:
        if not path.is_file():
            sys.exit(f"crema: cannot open '{path}'")
    stop_on_signals()
    directory = Path(tempfile.mkdtemp(prefix="crema-demo-"))
    try:
        run(directory, files)
    except (cluster.StepFailed, OSError, subprocess.SubprocessError) as error:
        for line in cluster.tail(getattr(error, "log", None)):
            print(line, file=sys.stderr)
        sys.exit(f"crema: {error}")
    finally:
        if args.keep:
            print(f"kept: {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
