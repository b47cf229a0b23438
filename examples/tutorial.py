#!/usr/bin/env python3
"""The analysis of docs/tutorial.md: the mean mass of the two leading jets, slow at first and faster with each step.

    crema run -- python examples/tutorial.py --step 0
"""

import argparse
import math
from pathlib import Path

import awkward as ak
import numpy as np
from coffea import processor
from coffea.nanoevents import NanoAODSchema

DATA = Path(__file__).resolve().parent.parent / "data"


class LoopedMass(processor.ProcessorABC):
    """Loops over the selected events in Python."""

    def process(self, events):
        events = events[(ak.num(events.Jet) >= 4) & (events.MET.pt > 40)]
        total = 0.0
        for pt, eta, phi in zip(events.Jet.pt, events.Jet.eta, events.Jet.phi):
            total += math.sqrt(2 * pt[0] * pt[1] * (math.cosh(eta[0] - eta[1]) - math.cos(phi[0] - phi[1])))
        return {"selected": len(events), "mass": total}

    def postprocess(self, accumulator):
        return accumulator


class ArrayMass(LoopedMass):
    """The same on whole arrays."""

    def process(self, events):
        events = events[(ak.num(events.Jet) >= 4) & (events.MET.pt > 40)]
        a, b = events.Jet[:, 0], events.Jet[:, 1]
        mass = np.sqrt(2 * a.pt * b.pt * (np.cosh(a.eta - b.eta) - np.cos(a.phi - b.phi)))
        return {"selected": len(events), "mass": float(np.sum(ak.to_numpy(mass), dtype=np.float64))}


# Each step changes one line of the previous one.
SLOW = {"workers": 1, "threads": 4, "chunksize": 5_000, "processor": LoopedMass, "codec": "lzma"}
STEPS = [SLOW]
for change in ({"workers": 2, "threads": 1}, {"processor": ArrayMass}, {"chunksize": 50_000}, {"codec": "zstd"}):
    STEPS.append({**STEPS[-1], **change})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=0, choices=range(len(STEPS)))
    step = STEPS[parser.parse_args().step]

    from distributed import Client, LocalCluster

    NanoAODSchema.warn_missing_crossrefs = False
    files = {"jets": {"files": {str(DATA / f"nano_{step['codec']}.v1.root"): "Events"}}}
    with LocalCluster(n_workers=step["workers"], threads_per_worker=step["threads"], dashboard_address=None) as cluster, \
            Client(cluster) as client:
        client.wait_for_workers(step["workers"])
        run = processor.Runner(processor.DaskExecutor(client=client, status=False), schema=NanoAODSchema,
                               chunksize=step["chunksize"], savemetrics=True)
        out, _ = run(files, processor_instance=step["processor"]())
    print(f"{out['selected']} events, mean mass {out['mass'] / out['selected']:.2f} GeV")


if __name__ == "__main__":
    main()
