"""The analysis of test_versions.py: runs under every Python and every coffea of tests/versions/*.txt.

    job.py HOW CODEC=FILE... --output out.json [--scheduler ADDRESS]

HOW: runner = coffea's Runner; fileset = apply_to_fileset; opened, closed, steps = uproot.dask.
Without a scheduler it runs serially in this process, and counts the work of uproot's decompressors. The
sums are integers, so that the order of addition does not matter.
"""

import argparse
import json
import sys
from collections import defaultdict

import numpy as np

EVENTS, CHUNK = 200_000, 50_000
KINDS = {"zlib": "_DecompressZLIB", "lzma": "_DecompressLZMA", "lz4": "_DecompressLZ4", "zstd": "_DecompressZSTD"}


def whole(values):
    return (np.asarray(values, dtype=np.float64) * 256).astype(np.int64)


def runner(files, client):
    import awkward as ak
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    class Sums(processor.ProcessorABC):
        def process(self, events):
            found = {"events": len(events), "jet_pt": int(whole(ak.flatten(events.Jet.pt)).sum()),
                     "met_pt": int(whole(events.MET.pt).sum())}
            return {events.metadata["dataset"]: found}

        def postprocess(self, accumulator):
            return accumulator

    NanoAODSchema.warn_missing_crossrefs = False
    executor = processor.DaskExecutor(client=client, status=False) if client else processor.IterativeExecutor(status=False)
    run = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=CHUNK, savemetrics=True)
    out, report = run({name: [path] for name, path in files.items()}, treename="Events", processor_instance=Sums())
    return out, {name: report[name] for name in ("bytesread", "entries", "processtime", "chunks")}


def lazy_sums(events, met, jet):
    import awkward as ak

    return {"events": ak.count(events[met]), "jet_pt": ak.sum(whole_lazy(events[jet])), "met_pt": ak.sum(whole_lazy(events[met]))}


def whole_lazy(values):
    import awkward as ak

    return ak.values_astype(ak.values_astype(values, np.float64) * 256, np.int64)


def opened(path):
    import uproot

    return uproot.dask({path: "Events"}, open_files=True, step_size=CHUNK)


def closed(path):
    import uproot

    steps = [[start, start + CHUNK] for start in range(0, EVENTS, CHUNK)]
    return uproot.dask({path: {"object_path": "Events", "steps": steps}}, open_files=False)


def steps(path):
    import uproot

    return uproot.dask({path: "Events"}, open_files=False, steps_per_file=EVENTS // CHUNK)


def by_uproot(make):
    return lambda files: {name: lazy_sums(make(path), "MET_pt", "Jet_pt") for name, path in files.items()}


def fileset(files):
    from coffea import processor
    from coffea.dataset_tools import apply_to_fileset
    from coffea.nanoevents import NanoAODSchema

    class Sums(processor.ProcessorABC):
        def process(self, events):
            import awkward as ak

            return {"events": ak.count(events.MET.pt), "jet_pt": ak.sum(whole_lazy(events.Jet.pt)),
                    "met_pt": ak.sum(whole_lazy(events.MET.pt))}

        def postprocess(self, accumulator):
            return accumulator

    NanoAODSchema.warn_missing_crossrefs = False
    steps = [[start, start + CHUNK] for start in range(0, EVENTS, CHUNK)]
    sets = {name: {"files": {path: {"object_path": "Events", "steps": steps}}} for name, path in files.items()}
    return apply_to_fileset(Sums(), sets, schemaclass=NanoAODSchema)


LAZY = {"opened": by_uproot(opened), "closed": by_uproot(closed), "steps": by_uproot(steps), "fileset": fileset}


def lazy(how, files, client):
    import dask

    wanted = LAZY[how](files)
    counted.clear()  # reads while the graph was built do not belong to the workers
    (out,) = dask.compute(wanted) if client else dask.compute(wanted, scheduler="synchronous")
    return {name: {key: int(value) for key, value in row.items()} for name, row in out.items()}, None


counted = defaultdict(lambda: {"calls": 0, "in_bytes": 0, "out_bytes": 0})


def count_decompress():
    import uproot.compression

    def counting(codec, original):
        def decompress(self, data, *args, **kwargs):
            result = original(self, data, *args, **kwargs)
            row = counted[codec]
            row["calls"] += 1
            row["in_bytes"] += len(data)
            row["out_bytes"] += len(result)
            return result

        return decompress

    for codec, name in KINDS.items():
        kind = getattr(uproot.compression, name)
        kind.decompress = counting(codec, kind.decompress)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["runner", *LAZY])
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--output", required=True)
    parser.add_argument("--scheduler")
    args = parser.parse_args()
    files = dict(word.split("=", 1) for word in args.files)
    client = None
    if args.scheduler:
        from distributed import Client

        client = Client(args.scheduler)
        client.wait_for_workers(1)
    else:
        count_decompress()
    out, report = runner(files, client) if args.how == "runner" else lazy(args.how, files, client)
    with open(args.output, "w") as file:
        json.dump({"python": sys.version.split()[0], "out": out, "report": report, "codecs": counted}, file, indent=1)
    if client:
        client.close()


main()
