"""The rest of what test_cause_first.py runs on workers, written as physicists write it."""

import contextlib
import gc
import importlib
import os
import sys
import time

import numpy as np
from cause_jobs import Base, Sum, compute
from distributed import Lock

BASKET = 25_000  # entries of each basket of the generated files: ranges with other limits decompress baskets twice


def length(table):
    return len(table)


def large_arguments(lab, each=True):
    """Sends 24 MB with each call, or once. Long enough for many probes, as a worker that is receiving runs them late."""
    table = np.random.default_rng(1).random(3 << 20)
    if each:
        for first in range(0, 120, 10):
            lab.map(length, [table + i for i in range(first, first + 10)])
    else:
        lab.map(length, [lab.client.scatter(table, broadcast=True)] * 120)


def closures(lab):
    """Functions that carry all results so far; the work after them takes longer than a probe's interval of half a second."""
    seen = []
    for i in range(16):
        def work(i, kept=tuple(seen)):
            compute(0.05)
            return np.full(1 << 17, float(i + len(kept)))

        seen += lab.map(work, [i])
    lab.map(compute, [0.4] * 4)


class Scratch(Sum):
    """Passes columns through temporary files."""

    def __init__(self, folder, times):
        self.folder, self.times = folder, times

    def process(self, events):
        met = np.resize(events.MET.pt.to_numpy(), 1 << 21)
        path = os.path.join(self.folder, f"scratch-{events.metadata['entrystart']}.npy")
        for i in range(self.times):
            np.save(path, met)
            met[i] += np.load(path)[i]
        if self.times:
            os.unlink(path)
        return super().process(events)


class Collects(Sum):
    """Calls gc.collect() to limit memory."""

    def __init__(self, times):
        self.times = times

    def process(self, events):
        for _ in range(self.times):
            gc.collect()
        return super().process(events)


class Lists(Base):
    """Python objects, or the same cut with arrays."""

    def __init__(self, lists):
        self.lists = lists

    def process(self, events):
        import awkward as ak

        pt = events.GenPart.pt
        if self.lists:
            return {"sum": sum(x for _ in range(3) for one in ak.to_list(pt) for x in one if x > 30)}
        return {"sum": float(ak.sum(pt[pt > 30]))}


class Histogram(Base):
    """Histograms with that many bins for the events of a chunk, merged."""

    def __init__(self, bins):
        self.bins = bins

    def process(self, events):
        import hist

        h = hist.Hist.new.Reg(self.bins, 0, 300).Reg(100, -4, 4).Double()
        h.fill(events.MET.pt.to_numpy(), events.MET.phi.to_numpy())
        return {"h": h}


class ImportsAgain(Sum):
    """Loads modules again in each chunk."""

    def __init__(self, again):
        self.again = again

    def process(self, events):
        for name in [n for n in sys.modules if n.startswith("scipy.stats")] if self.again else []:
            del sys.modules[name]
        importlib.import_module("scipy.stats")
        return super().process(events)


class Locks(Sum):
    """Only one chunk at a time on all workers."""

    def __init__(self, seconds, lock=True):
        self.seconds, self.lock = seconds, lock

    def process(self, events):
        with Lock("output") if self.lock else contextlib.nullcontext():
            time.sleep(self.seconds)
        return super().process(events)


def entries(path, first, last, all_of_them):
    """A range of events; uproot.iterate() has no entry_start, so it reads all entries and the others are discarded."""
    import uproot

    columns, total, at = ["GenPart_pt", "GenPart_eta"], 0.0, 0
    if not all_of_them:
        with uproot.open(path) as file:
            return len(file["Events"].arrays(columns, entry_start=first, entry_stop=last, library="np")["GenPart_pt"])
    for chunk in uproot.iterate({path: "Events"}, columns, step_size=BASKET, library="np"):
        total += len(chunk["GenPart_pt"]) if first <= at < last else 0
        at += len(chunk["GenPart_pt"])
    return total


def iterated(lab, all_of_them):
    starts = range(0, 200_000, BASKET)
    lab.map(entries, [lab.data["zlib"]] * len(starts), starts, [s + BASKET for s in starts], [all_of_them] * len(starts))


class Corrections(Base):
    """A scale factor by correctionlib, for all events of a chunk at once."""

    def __init__(self, path):
        self.path = path

    def process(self, events):
        import correctionlib

        factor = correctionlib.CorrectionSet.from_file(self.path)["factor"]
        return {"sum": float(factor.evaluate(events.MET.pt.to_numpy().astype("float64")).sum())}


def correction_file(lab):
    from correctionlib import schemav2 as cs

    path = os.path.join(lab.folder, "factor.json")
    binning = cs.Binning(nodetype="binning", input="pt", edges=[float(i) for i in range(501)], content=[1 + i / 500 for i in range(500)], flow="clamp")
    one = cs.Correction(name="factor", version=1, inputs=[cs.Variable(name="pt", type="real")], output=cs.Variable(name="w", type="real"), data=binning)
    with open(path, "w") as file:
        file.write(cs.CorrectionSet(schema_version=2, corrections=[one]).model_dump_json(exclude_unset=True))
    return path


def writes_parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"met": np.zeros(1)}), pa.BufferOutputStream())


class Parquet(Sum):
    """A skim: writes one file for each chunk."""

    def __init__(self, folder):
        self.folder = folder

    def process(self, events):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"met": events.MET.pt.to_numpy(), "phi": events.MET.phi.to_numpy()})
        pq.write_table(table, os.path.join(self.folder, f"skim-{events.metadata['entrystart']}.parquet"))
        return super().process(events)


def skim(lab):
    lab.client.run(writes_parquet)  # before the run
    lab.coffea(Parquet(lab.folder), 50_000)
