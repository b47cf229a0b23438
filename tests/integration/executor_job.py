"""The example's analysis on an executor of coffea that is not Dask's, as a separate program.

    executor_job.py EXECUTOR --files F... --output OUT.json

OUT.json: {"output": the accumulator's sums, "report": coffea's report, "pid": this process, "threads":
how many it has at the end}. "alone" is the iterative executor without its progress bar, which
would start a thread; with OPENBLAS_NUM_THREADS=1 and MemmapSource nothing else does.
"""

import argparse
import atexit
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))


def pool_of(method, workers):
    return partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context(method))


def parsl_kernel(name):
    """Loaded before the run: this version of Parsl cannot be configured through the executor."""
    import parsl
    from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
    from parsl.providers import LocalProvider

    if name == "parsl-threads":
        executor = ThreadPoolExecutor(max_threads=2)
    else:
        executor = HighThroughputExecutor(max_workers_per_node=2, address="127.0.0.1",
                                          provider=LocalProvider(init_blocks=1, max_blocks=1))
    return parsl.load(parsl.Config(executors=[executor], run_dir="parsl"))


def executor_of(name, workers):
    from coffea import processor

    class Alone(processor.IterativeExecutor):
        def __call__(self, items, function, accumulator):
            return processor.accumulate(map(function, items), accumulator), 0

    if name == "iterative":
        return processor.IterativeExecutor(status=False)
    if name == "alone":
        return Alone(status=False)
    if name == "loky":
        return processor.FuturesExecutor(workers=workers, status=False)
    if name == "threads":
        return processor.FuturesExecutor(pool=ThreadPoolExecutor, workers=workers, status=False)
    if name.startswith("parsl"):
        return processor.ParslExecutor(status=False)
    return processor.FuturesExecutor(pool=pool_of(name, workers), workers=workers, status=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executor")
    parser.add_argument("--files", nargs="+", required=True)
    parser.add_argument("--chunksize", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--first", help="run it on this executor before")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--fail-at", type=int, help="process() raises for the chunk that begins here, once")
    parser.add_argument("--handler", help="class in uproot that reads, as MemmapSource")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()

    import ttbar
    import uproot
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    class Failing(ttbar.TTbarProcessor):
        def process(self, events):
            marker = Path(args.output + ".failed")
            if events.metadata["entrystart"] == args.fail_at and not marker.exists():
                marker.touch()
                raise ValueError("told so")
            return super().process(events)

    NanoAODSchema.warn_missing_crossrefs = False
    options = {"handler": getattr(uproot, args.handler)} if args.handler else {}
    instance = ttbar.TTbarProcessor() if args.fail_at is None else Failing()
    if args.executor.startswith("parsl"):
        atexit.register(parsl_kernel(args.executor).cleanup)
    for executor in [args.first] * bool(args.first) + [args.executor] * args.repeat:
        run = processor.Runner(executor=executor_of(executor, args.workers), schema=NanoAODSchema,
                               chunksize=args.chunksize, savemetrics=True, metadata_cache={})
        out, report = run(ttbar.fileset(args.files), processor_instance=instance, uproot_options=options)
    report["columns"] = sorted(report["columns"])
    ttbar.write_json(args.output, {"output": ttbar.summary(out), "report": report, "pid": os.getpid(),
                                   "threads": len(os.listdir("/proc/self/task"))})


if __name__ == "__main__":
    main()
