# SPDX-License-Identifier: BSD-3-Clause
"""An analysis with known seconds in each part of its wall time; prints the times of its own clock.

    wall_job.py SCHEDULER map|coffea|lazy FILE...       CREMA_TEST_MEASURE: in a block of crema.measure; CREMA_TEST_GRAPH_SECONDS: for each
    item that a graph is made of
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

BEGUN = time.perf_counter()
TRUTH = {}


@contextlib.contextmanager
def clocked(part):
    begin = time.perf_counter()
    yield
    TRUTH[part] = TRUTH.get(part, 0.0) + time.perf_counter() - begin


class Item:
    """Takes time when a graph is made of it, and when that is pickled."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __dask_tokenize__(self):
        with clocked("graph"):
            time.sleep(float(os.environ.get("CREMA_TEST_GRAPH_SECONDS", 0.4)))
        return f"item-{self.seconds}"

    def __reduce__(self):
        with clocked("send"):
            time.sleep(0.2)
        return Item, (self.seconds,)


class Result:
    """Takes time when it is unpickled."""

    def __init__(self, times):
        self.times = times

    def __setstate__(self, state):
        time.sleep(0.5)
        self.__dict__.update(state)


def work(item):
    begin = time.time()
    time.sleep(item.seconds)
    return Result((begin, time.time()))


def own_map(client):
    """Four tasks on the first worker; the second one starts during the first task; the last task is a straggler."""
    from distributed import wait

    with clocked("map"):
        futures = client.map(work, [Item(s) for s in (2.0, 2.2, 2.4, 4.5)])
    with clocked("wait"):
        wait(futures[:1])
        results = client.gather(futures)
    TRUTH["tasks"] = [r.times for r in results]
    TRUTH["waited"] = time.time()


def coffea(client, files):
    import wall_processor
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    NanoAODSchema.warn_missing_crossrefs = False
    run = processor.Runner(processor.DaskExecutor(client=client, status=False, compression=1), schema=NanoAODSchema, chunksize=50_000,
                           metadata_cache={})
    with clocked("preprocess"):
        chunks = list(run.preprocess({"data": {"files": dict.fromkeys(files, "Events")}}))
    with clocked("run"):
        out = run(chunks, processor_instance=wall_processor.Slow())
    TRUTH["tasks"], TRUTH["merges"], TRUTH["waited"] = out["times"].tasks, out["times"].merges, time.time()


def lazy(client, files):
    import awkward as ak
    import dask
    from coffea.dataset_tools import apply_to_fileset
    from coffea.nanoevents import NanoAODSchema

    NanoAODSchema.warn_missing_crossrefs = False
    steps = [[i * 50_000, (i + 1) * 50_000] for i in range(2)]
    fileset = {"data": {"files": {f: {"object_path": "Events", "steps": steps, "num_entries": 100_000, "uuid": None} for f in files}}}

    def analysis(events):
        time.sleep(0.5)
        return ak.sum(events.Jet.pt[events.Jet.pt > 30])

    with clocked("graph"):
        graph = apply_to_fileset(analysis, fileset, schemaclass=NanoAODSchema)
    with clocked("compute"):
        (out,) = dask.compute(graph)
    TRUTH["sum"] = float(out["data"])


def analyse(client, kind, files):
    with clocked("imports"):
        import wall_slow_module  # noqa: F401
    begin = time.perf_counter()
    time.sleep(0.7)
    TRUTH["own"] = time.perf_counter() - begin
    {"map": own_map, "coffea": coffea, "lazy": lazy}[kind](client, *([files] if kind != "map" else []))


def main(address, kind, *files):
    with clocked("first_imports"):
        import crema
        from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(1)
        if "CREMA_TEST_MEASURE" in os.environ:
            with crema.measure(client, dir=os.environ["CREMA_TEST_MEASURE"]) as m:
                begin = time.perf_counter()
                analyse(client, kind, files)
                TRUTH["all"] = time.perf_counter() - begin
            TRUTH["wall"], TRUTH["findings"] = m.run.wall, {f.id: f.evidence for f in m.findings}
        else:
            analyse(client, kind, files)
            TRUTH["all"] = time.perf_counter() - BEGUN
    print(json.dumps(TRUTH))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(*sys.argv[1:])
