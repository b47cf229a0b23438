# SPDX-License-Identifier: BSD-3-Clause
"""One job under roastcoffea's MetricsCollector; runs in the environment of test_roastcoffea.py.

    roastcoffea_job.py --scheduler ADDRESS --output FILE --save DIR FILE.root...

What roastcoffea says goes to FILE, as JSON, and its own measurement to DIR/theirs.
"""

import argparse
import json
from pathlib import Path

import awkward as ak
import numpy as np
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client
from roastcoffea import MetricsCollector, track_bytes, track_memory, track_metrics, track_time


class Jets(processor.ProcessorABC):
    """Sums of whole numbers, with sections by all of roastcoffea's trackers."""

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
    """JSON that keeps tuple keys as text and forgets nothing."""
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
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    jets = Jets()
    with Client(args.scheduler) as client:
        client.wait_for_workers(2, timeout=120)
        with MetricsCollector(client, processor_instance=jets) as theirs:
            output, report = runner(client)(fileset(args.files), processor_instance=jets)
            theirs.extract_metrics_from_output(output)
            theirs.set_coffea_report(report)
        theirs.save_measurement(args.save, "theirs")
    found = {"theirs": theirs.get_metrics(), "report": report, "output": output}
    Path(args.output).write_text(json.dumps(plain(found)))


if __name__ == "__main__":
    main()
