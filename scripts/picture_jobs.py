"""The runs in the pictures of docs/img: `crema run -- python scripts/picture_jobs.py NAME FILE...`."""

import sys

import awkward as ak
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client, LocalCluster


def work(n):
    """Arithmetic in Python, which holds the interpreter lock."""
    x = 1.0
    for i in range(n):
        x += i % 7
    return x


class Light(processor.ProcessorABC):
    loops = 0

    def process(self, events):
        work(self.loops)
        return {"events": len(events), "met": float(ak.sum(events.MET.pt)), "jets": float(ak.sum(events.Jet.pt))}

    def postprocess(self, accumulator):
        return accumulator


class OneSlow(Light):
    """One chunk of each run is far slower than the others."""

    loops = 2_000_000

    def process(self, events):
        if events.metadata["entrystart"] == 150_000:
            work(60_000_000)
        return super().process(events)


class PurePython(Light):
    loops = 8_000_000


class Columns(Light):
    """All of the jets."""

    def process(self, events):
        return {"events": len(events), **{name: float(ak.sum(events.Jet[name])) for name in ("pt", "eta", "phi", "mass")}}


# name: workers, threads of each, processor, events in a chunk
JOBS = {"straggler": (2, 1, OneSlow, 10_000), "gil": (1, 4, PurePython, 10_000), "baskets": (2, 1, Columns, 10_000),
        "lzma": (2, 1, Columns, 50_000), "server": (2, 1, Columns, 50_000)}


def main():
    name, *files = sys.argv[1:]
    workers, threads, kind, chunksize = JOBS[name]
    NanoAODSchema.warn_missing_crossrefs = False
    with LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        run = processor.Runner(processor.DaskExecutor(client=client, status=False), schema=NanoAODSchema, chunksize=chunksize,
                               savemetrics=True)
        run({"data": {"files": dict.fromkeys(files, "Events")}}, processor_instance=kind())


if __name__ == "__main__":
    main()
