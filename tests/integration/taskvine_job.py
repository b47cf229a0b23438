"""The example's analysis on TaskVine, which starts a worker; the worker's command is an argument.

    taskvine_job.py --files F... --output OUT.json --port N -- WORKER...
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("worker", nargs="+", help="after --")
    args = parser.parse_args()

    import cloudpickle
    import ttbar
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    cloudpickle.register_pickle_by_value(ttbar)  # tasks run without our module path
    NanoAODSchema.warn_missing_crossrefs = False
    with tempfile.TemporaryDirectory() as space, open(args.output + ".worker", "w") as log:
        worker = subprocess.Popen([*args.worker, "-t", "120", "-s", space, "--cores", "2", "127.0.0.1", str(args.port)],
                                  stdout=log, stderr=subprocess.STDOUT)
        try:
            executor = processor.TaskVineExecutor(port=args.port, filepath=os.getcwd(), status=False, cores=1, retries=1)
            run = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=50_000, savemetrics=True,
                                   metadata_cache={})
            out, report = run(ttbar.fileset(args.files), processor_instance=ttbar.TTbarProcessor())
        finally:
            worker.terminate()
            worker.wait()
    report["columns"] = sorted(report["columns"])
    ttbar.write_json(args.output, {"output": ttbar.summary(out), "report": report, "pid": os.getpid()})


if __name__ == "__main__":
    main()
