#!/usr/bin/env python3
"""Top-quark pairs with one lepton: an ordinary coffea analysis on a Dask cluster.

    python examples/ttbar.py --scheduler tcp://127.0.0.1:8786 --files data/*.root
"""

import argparse
import json
from pathlib import Path

import awkward as ak
import hist
import numpy as np
from coffea import processor
from coffea.nanoevents import NanoAODSchema


class TTbarProcessor(processor.ProcessorABC):
    """One isolated lepton, four jets, two of them b-tagged; the top candidate is the three jets
    with the highest summed pt."""

    btag_cut = 0.3

    def histograms(self):
        dataset = hist.axis.StrCategory([], growth=True, name="dataset")
        region = hist.axis.StrCategory(["4j1b", "4j2b"], name="region")
        return {
            "lepton_pt": hist.Hist(dataset, hist.axis.Regular(40, 25, 225, name="pt"), storage="weight"),
            "jet_ht": hist.Hist(dataset, region, hist.axis.Regular(50, 100, 1100, name="ht"), storage="weight"),
            "top_mass": hist.Hist(dataset, region, hist.axis.Regular(50, 50, 550, name="mass"), storage="weight"),
            "met": hist.Hist(dataset, hist.axis.Regular(40, 0, 200, name="met"), storage="weight"),
            "n_jets": hist.Hist(dataset, hist.axis.Integer(4, 14, name="n"), storage="weight"),
        }

    def process(self, events):
        dataset = events.metadata["dataset"]
        found = self.histograms()
        muons = events.Muon[(events.Muon.pt > 25) & (abs(events.Muon.eta) < 2.1)]
        electrons = events.Electron[(events.Electron.pt > 30) & (abs(events.Electron.eta) < 2.1)]
        jets = events.Jet[(events.Jet.pt > 25) & (abs(events.Jet.eta) < 2.4)]
        tagged = ak.sum(jets.btagDeepFlavB > self.btag_cut, axis=1)

        leptons = ak.num(muons) + ak.num(electrons)
        selected = (leptons == 1) & (ak.num(jets) >= 4) & (tagged >= 1)
        weight = np.sign(ak.to_numpy(events.genWeight))[ak.to_numpy(selected)]
        lepton_pt = ak.flatten(ak.concatenate([muons[selected].pt, electrons[selected].pt], axis=1))
        jets, tagged = jets[selected], tagged[selected]

        found["lepton_pt"].fill(dataset=dataset, pt=lepton_pt, weight=weight)
        found["met"].fill(dataset=dataset, met=events.MET.pt[selected], weight=weight)
        found["n_jets"].fill(dataset=dataset, n=ak.num(jets), weight=weight)
        mass = self.top_mass(jets)
        for region, mask in (("4j1b", tagged == 1), ("4j2b", tagged >= 2)):
            found["jet_ht"].fill(dataset=dataset, region=region, ht=ak.sum(jets.pt, axis=1)[mask], weight=weight[mask])
            found["top_mass"].fill(dataset=dataset, region=region, mass=mass[mask], weight=weight[mask])
        return {
            "events": {dataset: len(events)},
            "selected": {dataset: int(ak.sum(selected))},
            "sum_weights": {dataset: float(np.sum(weight, dtype=np.float64))},
            "histograms": found,
        }

    def top_mass(self, jets):
        trios = ak.combinations(jets[:, :6], 3, fields=["a", "b", "c"])
        px, py, pz, energy = 0.0, 0.0, 0.0, 0.0
        for jet in (trios.a, trios.b, trios.c):
            px = px + jet.pt * np.cos(jet.phi)
            py = py + jet.pt * np.sin(jet.phi)
            pz = pz + jet.pt * np.sinh(jet.eta)
            energy = energy + np.sqrt((jet.pt * np.cosh(jet.eta)) ** 2 + jet.mass**2)
        pt = np.hypot(px, py)
        mass = np.sqrt(np.maximum(energy**2 - pt**2 - pz**2, 0))
        return ak.flatten(mass[ak.argmax(pt, axis=1, keepdims=True)])

    def postprocess(self, accumulator):
        return accumulator


def fileset(paths):
    """Each file is a dataset, named after the file."""
    return {Path(path).stem: {"files": {str(path): "Events"}} for path in paths}


def summary(out):
    """The accumulator as plain numbers."""
    sums = {name: out[name] for name in ("events", "selected", "sum_weights")}
    sums["histograms"] = {
        name: [float(h.sum(flow=True).value), float(h.sum(flow=True).variance)]
        for name, h in out["histograms"].items()
    }
    return sums


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1, sort_keys=True, default=list)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", required=True, help="address of the Dask scheduler")
    parser.add_argument("--files", nargs="+", required=True, help="NanoAOD files")
    parser.add_argument("--chunksize", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=1, help="wait for this many workers first")
    parser.add_argument("--output", help="write the sums here, as JSON")
    parser.add_argument("--report", help="write coffea's report here, as JSON")
    parser.add_argument("--no-savemetrics", dest="savemetrics", action="store_false")
    args = parser.parse_args()

    # Imported here: the serial executors need no Dask.
    from distributed import Client

    NanoAODSchema.warn_missing_crossrefs = False
    with Client(args.scheduler) as client:
        client.wait_for_workers(args.workers, timeout=120)
        run = processor.Runner(
            executor=processor.DaskExecutor(client=client, status=False),
            schema=NanoAODSchema,
            chunksize=args.chunksize,
            savemetrics=args.savemetrics,
        )
        out = run(fileset(args.files), processor_instance=TTbarProcessor())
    report = None
    if args.savemetrics:
        out, report = out
        report["columns"] = sorted(report["columns"])
    if args.output:
        write_json(args.output, summary(out))
    if args.report and report:
        write_json(args.report, report)
    for dataset, events in sorted(out["events"].items()):
        print(f"{dataset}: {events} events, {out['selected'][dataset]} selected")


if __name__ == "__main__":
    main()
