# SPDX-License-Identifier: BSD-3-Clause
"""One job under roastcoffea's MetricsCollector and crema.measure at once; runs in the environment of test_roastcoffea.py.

    roastcoffea_job.py --scheduler ADDRESS --journal DIR --output FILE --save DIR FILE.root...

The results of both go to FILE, as JSON, and their measurements to DIR/theirs and DIR/crema.
"""

import argparse
import json
import time
from pathlib import Path

import awkward as ak
import crema
import numpy as np
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client
from roastcoffea import MetricsCollector, track_bytes, track_memory, track_metrics, track_time

FLAG = "_roastcoffea_collect_metrics"


class Jets(processor.ProcessorABC):
    """Sums of integers, with sections by all of roastcoffea's trackers."""

    @track_metrics
    def process(self, events):
        with track_bytes(self, events, "jet loading"), track_time(self, "jet selection"):
            jets = events.Jet[events.Jet.pt > 30]
        with track_memory(self, "sums"):
            found = {"events": len(events), "jets": int(ak.sum(ak.num(jets))),
                     "met": int((np.asarray(events.MET.pt, dtype=np.float64) * 256).astype(np.int64).sum())}
        return {events.metadata["dataset"]: found}

    def postprocess(self, accumulator):
        return accumulator


def runner(client, chunksize=50_000):
    NanoAODSchema.warn_missing_crossrefs = False
    return processor.Runner(executor=processor.DaskExecutor(client=client, status=False), schema=NanoAODSchema,
                            chunksize=chunksize, savemetrics=True)


def fileset(files):
    return {Path(path).stem: {"files": {str(path): "Events"}} for path in files}


def plain(value):
    """The value for JSON, with tuple keys as text and nothing left out."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else repr(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value if isinstance(value, (int, float, bool)) else \
        None if value is None else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--save", required=True)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--small", type=int, default=10_000, help="chunks of the second run")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    jets = Jets()
    found = {}
    with Client(args.scheduler) as client:
        client.wait_for_workers(2, timeout=120)
        # crema is the inner block and waits later, so both wall times end when the job does.
        with MetricsCollector(client, processor_instance=jets) as theirs:
            found["their_setup"] = time.perf_counter() - theirs.t_start
            with crema.measure(client, processor_instance=jets, dir=args.journal, wait_seconds=0) as ours:
                output, report = runner(client)(fileset(args.files), processor_instance=jets)
                ours.set_coffea_report((output, report))
                theirs.extract_metrics_from_output(output)
                theirs.set_coffea_report(report)
        theirs.save_measurement(args.save, "theirs")
        ours.save_measurement(args.save, "crema")
        found.update(theirs=theirs.get_metrics(), ours=ours.get_metrics(), report=report, output=output,
                     span_metrics=ours.span_metrics, run=ours.run.id, warning=ours.warning, tasks=ours._expected["tasks"])
        ours.print_summary()
        loaded = crema.load(ours.run.id, dir=args.journal)
        found["loaded"] = {"metrics": loaded.metrics, "tasks": len(loaded.tasks), "read_bytes": int(loaded.tasks["read_bytes"].sum()),
                           "first": str(loaded.tasks["start"].min()), "chunks": sorted(loaded.chunks["entrystart"].tolist())}
        # The same files in more chunks, with the old class name, called as roastcoffea is.
        with crema.MetricsCollector(client, processor_instance=jets, dir=args.journal) as small:
            small.set_coffea_report(runner(client, args.small)(fileset(args.files), processor_instance=jets))
        found.update(small=small.get_metrics(), small_warning=small.warning, flags=[FLAG in vars(o) for o in (jets, Jets)])
    Path(args.output).write_text(json.dumps(plain(found)))


if __name__ == "__main__":
    main()
