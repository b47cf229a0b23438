"""Makes NanoAOD-like ROOT files, one per codec, under data/. Existing files are kept.

The contents are random but fixed by a seed. Floats are quantised as in NanoAOD, so that the
codecs have about as much work as with real files.
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

import awkward as ak
import numpy as np
import uproot

EVENTS = 200_000
STEP = 25_000  # one basket per branch and step
# Increase it when the contents change: old files are then made again.
VERSION = 1
CODECS = {
    "zlib": lambda: uproot.ZLIB(1),
    "lz4": lambda: uproot.LZ4(1),
    "zstd": lambda: uproot.ZSTD(3),
    "lzma": lambda: uproot.LZMA(1),
}
# name: (mean number per event, extra float fields, integer fields with their upper limits)
OBJECTS = {
    "Jet": (4.5, ["mass", "area", "btagDeepFlavB", "chHEF", "neHEF"], {"jetId": 7, "nConstituents": 60, "hadronFlavour": 6}),
    "Muon": (0.7, ["mass", "pfRelIso04_all", "dxy", "dz"], {"charge": 2, "tightId": 2, "looseId": 2}),
    "Electron": (0.6, ["mass", "pfRelIso03_all", "dxy", "dz"], {"charge": 2, "cutBased": 5}),
    "Photon": (0.4, ["r9", "hoe"], {"cutBased": 4}),
    "Tau": (0.4, ["mass", "dz"], {"charge": 2, "decayMode": 12}),
    "FatJet": (0.3, ["mass", "msoftdrop", "tau1", "tau2"], {"jetId": 7}),
    "GenPart": (8.0, ["mass"], {"pdgId": 25, "status": 63}),
}
TRIGGERS = ["IsoMu24", "IsoMu27", "Ele32_WPTight_Gsf", "Ele35_WPTight_Gsf", "PFHT1050", "PFJet500", "PFMET120_PFMHT120_IDTight"]
FILTERS = ["goodVertices", "HBHENoiseFilter", "BadPFMuonFilter", "ecalBadCalibFilter"]


def quantise(values, bits=10):
    """Keeps `bits` of the mantissa."""
    mask = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)
    return (values.astype(np.float32).view(np.uint32) & mask).view(np.float32)


def collection(rng, events, mean, floats, integers):
    counts = rng.poisson(mean, events)
    n = int(counts.sum())
    fields = {
        "pt": quantise(15 + rng.exponential(35, n)),
        "eta": quantise(np.clip(rng.normal(0, 1.4, n), -2.5, 2.5)),
        "phi": quantise(rng.uniform(-np.pi, np.pi, n)),
    }
    for name in floats:
        fields[name] = quantise(np.abs(rng.normal(0, 0.3, n)), bits=8)
    for name, limit in integers.items():
        fields[name] = rng.integers(0, limit, n).astype(np.int32)
    if "charge" in fields:
        fields["charge"] = 2 * fields["charge"] - 1
    if "tightId" in fields:
        fields["tightId"] = fields["tightId"].astype(bool)
        fields["looseId"] = fields["looseId"].astype(bool) | fields["tightId"]
    if "btagDeepFlavB" in fields:
        fields["btagDeepFlavB"] = quantise(rng.beta(0.5, 1.5, n), bits=10)
    return ak.zip({name: ak.unflatten(data, counts) for name, data in fields.items()})


def step(rng, first, events):
    number = np.arange(first, first + events)
    data = {
        "run": np.full(events, 1, np.uint32),
        "luminosityBlock": (number // 1000 + 1).astype(np.uint32),
        "event": number.astype(np.uint64),
        "genWeight": np.where(rng.random(events) < 0.05, -1, 1).astype(np.float32) * np.float32(72.5),
        "MET_pt": quantise(rng.exponential(40, events)),
        "MET_phi": quantise(rng.uniform(-np.pi, np.pi, events)),
        "MET_sumEt": quantise(rng.gamma(4, 300, events)),
        "PV_npvs": rng.poisson(35, events).astype(np.int32),
        "PV_z": quantise(rng.normal(0, 4, events)),
        "Pileup_nTrueInt": quantise(rng.normal(35, 8, events)),
        "fixedGridRhoFastjetAll": quantise(rng.gamma(20, 1, events)),
        "Generator_x1": quantise(rng.beta(0.6, 4, events)),
        "Generator_x2": quantise(rng.beta(0.6, 4, events)),
    }
    for i, name in enumerate(TRIGGERS):
        data[f"HLT_{name}"] = rng.random(events) < 0.6 / (i + 1)
    for name in FILTERS:
        data[f"Flag_{name}"] = rng.random(events) < 0.99
    for name, (mean, floats, integers) in OBJECTS.items():
        data[name] = collection(rng, events, mean, floats, integers)
    return data


def make_file(job):
    codec, path, events = job
    rng = np.random.default_rng([VERSION, list(CODECS).index(codec)])
    part = path.with_name(path.name + ".part")
    with uproot.recreate(part, compression=CODECS[codec]()) as file:
        tree = None
        for first in range(0, events, STEP):
            data = step(rng, first, min(STEP, events - first))
            if tree is None:
                tree = file.mktree("Events", {
                    name: values.type.content if isinstance(values, ak.Array) else values.dtype
                    for name, values in data.items()
                })
            tree.extend(data)
        branches = len(tree._cascading._branch_lookup) if events else 0
    part.rename(path)  # a file with its final name is complete
    return path, branches


def files(directory):
    return {codec: directory / f"nano_{codec}.v{VERSION}.root" for codec in CODECS}


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=root / "data")
    parser.add_argument("--events", type=int, default=EVENTS)
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    # The slowest codec first, so that two processes end at about the same time.
    jobs = [(c, p, args.events) for c, p in reversed(files(args.dir).items()) if not p.exists()]
    begin = time.monotonic()
    with multiprocessing.Pool(2) as pool:
        for path, branches in pool.imap_unordered(make_file, jobs):
            print(f"[{time.monotonic() - begin:4.0f} s] made {path.name}: {args.events} events, "
                  f"{branches} branches, {path.stat().st_size / 1e6:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
