# SPDX-License-Identifier: BSD-3-Clause
"""What crema costs a real job: wall and worker CPU with and without it, interleaved in one run.

    python tests/bench/bench_job.py [--pairs N] [--rounds N] [--tasks N]

Two clusters run side by side, one preloaded and one not; each round runs the job on both, in alternating
order, so that a slow minute of the machine affects both. Two clusters that were started alike differ by
more than crema adds, for as long as they live, so there are several pairs, and the result is the
mean of their ratios with its error. For trivial tasks each pair contributes the median of its rounds.
"""

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples")]

import cluster  # noqa: E402
import make_data  # noqa: E402
from budgets import judge, null_call_ns  # noqa: E402

NULL_NS = 83  # time of a null call on the machine for which the budgets below were set


def cpu_seconds(pids):
    """CPU time in ns from the processes' CPU clocks (man clock_getcpuclockid); /proc has only ticks."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def judge_ns(what, ns, goal, error=0.0):
    unit = null_call_ns()
    judge(f"{what} ({ns:.0f} ns)", ns / unit, goal / NULL_NS, "null calls", "docs/cost.md", error / unit)


class Side:
    """A scheduler and two workers, with or without the shim."""

    def __init__(self, directory, shim, collector):
        from distributed import Client

        self.procs = cluster.Cluster(directory, {"PYTHONPATH": str(ROOT / "python")})
        if collector:
            self.procs.target = collector
        self.procs.start_scheduler()
        for _ in range(2):
            self.procs.start_worker(shim=shim)
        self.client = Client(self.procs.address)
        self.client.wait_for_workers(2, timeout=120)
        self.pids = list(self.client.run(os.getpid).values())

    def measure(self, work):
        cpu, start = cpu_seconds(self.pids), time.perf_counter()
        work(self.client)
        wall = time.perf_counter() - start
        return wall, cpu_seconds(self.pids) - cpu

    def close(self):
        self.client.close()
        self.procs.stop()


def job(files):
    import cloudpickle
    import ttbar
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    cloudpickle.register_pickle_by_value(ttbar)  # the workers cannot import it

    def work(client):
        run = processor.Runner(executor=processor.DaskExecutor(client=client, status=False),
                               schema=NanoAODSchema, chunksize=50_000, savemetrics=True)
        run(ttbar.fileset(files), processor_instance=ttbar.TTbarProcessor())

    return work


def trivial(count):
    def work(client):
        client.gather(client.map(abs, range(count), pure=False))

    return work


def codec_ns(calls=20_000):
    """ns of one zlib.decompress of a tiny text, in a task."""
    import time
    import zlib

    packed = zlib.compress(b"tiny")
    best = []
    for _ in range(9):
        start = time.perf_counter_ns()
        for _ in range(calls):
            zlib.decompress(packed)
        best.append((time.perf_counter_ns() - start) / calls)
    return min(best)


def compare_codec(sides):
    ns = {shim: min(side.client.submit(codec_ns, pure=False).result() for _ in range(3)) for shim, side in sides.items()}
    print(f"{'codec call':<28} {'elapsed':<10}  without {ns[False]:8.1f} ns  added {ns[True] - ns[False]:.0f} ns   "
          "budget 600 ns", flush=True)
    judge_ns("codec call", ns[True] - ns[False], 600)


def section_ns(calls=500):
    """ns of an empty section, of a value, and of an iteration of an empty loop, in a task. Blocks are
    short, so that some of them are not disturbed even on a busy machine."""
    import time

    import crema

    def nothing():
        pass

    def section():
        with crema.section("jet_selection"):
            pass

    def metric():
        crema.metric("jets", 3)

    found = {}
    for function in (nothing, section, metric):
        best = []
        for _ in range(300):
            start = time.perf_counter_ns()
            for _ in range(calls):
                function()
            best.append((time.perf_counter_ns() - start) / calls)
        found[function.__name__] = min(best)
    return found


def compare_sections(sides):
    """Unmeasured: the cost without crema. 10,000 sections per second cost 10,000 times as much as one."""
    runs = {shim: [side.client.submit(section_ns, pure=False).result() for _ in range(3)] for shim, side in sides.items()}
    for name, budgets in (("section", (500, 3000)), ("metric", (500, 500))):
        for shim, budget in zip((False, True), budgets):
            ns = min(run[name] - run["nothing"] for run in runs[shim])
            each = f"   10,000 a second: {ns / 1e3:.2f} % of a core" if name == "section" else ""
            print(f"{'crema.' + name:<28} {'measured' if shim else 'elsewhere':<10}  costs {ns:8.1f} ns   budget {budget} ns   "
                  f"ratio {ns / budget:.2f}{each}", flush=True)
            judge_ns(f"crema.{name}, {'measured' if shim else 'elsewhere'}", ns, budget)


def rounds_of(sides, work, rounds):
    """{shim: [(wall, worker CPU) of each round]} of one pair."""
    found = {shim: [] for shim in sides}
    for side in sides.values():
        side.measure(work)  # fills imports and caches
    for i in range(rounds):
        for shim in sorted(sides, reverse=i % 2):
            found[shim].append(sides[shim].measure(work))
    return found


def mean_and_error(values):
    return statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def typical(pair, shim, at):
    return statistics.median(each[at] for each in pair[shim])


def tell(what, pairs, rounds):
    for at, name in enumerate(("wall", "worker CPU")):
        mean, error = mean_and_error([typical(pair, True, at) / typical(pair, False, at) for pair in pairs])
        base = statistics.mean(typical(pair, False, at) for pair in pairs)
        print(f"{what:<28} {name:<10}  without {base:8.3f} s   with / without {mean:.3f} +- {error:.3f}   "
              f"{len(pairs)} pairs of {rounds} rounds", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=1000)
    args = parser.parse_args()
    files = [str(p) for p in make_data.files(ROOT / "data").values()]
    kinds = {"real job (16 chunks)": job(files), f"{args.tasks} trivial tasks": trivial(args.tasks)}
    found = {what: [] for what in kinds}
    for pair in range(args.pairs):
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
            collector = cluster.Cluster(Path(name) / "collect")
            stack.callback(collector.stop)
            collector.start_collector()
            sides = {}
            for shim in (False, True) if pair % 2 else (True, False):
                sides[shim] = Side(Path(name) / str(shim), shim, collector.target)
                stack.callback(sides[shim].close)
            if not pair:
                compare_codec(sides)
                compare_sections(sides)
            for what, work in kinds.items():
                found[what].append(rounds_of(sides, work, args.rounds))
    for what, pairs in found.items():
        tell(what, pairs, args.rounds)
    added, error = mean_and_error([(typical(pair, True, 1) - typical(pair, False, 1)) / args.tasks * 1e6 for pair in pairs])
    print(f"{'per trivial task':<28} worker CPU  added {added:+.0f} +- {error:.0f} us   budget 15 us", flush=True)
    judge_ns("trivial task, worker CPU", added * 1e3, 15e3, error * 1e3)


if __name__ == "__main__":
    main()
