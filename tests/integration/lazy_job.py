# SPDX-License-Identifier: BSD-3-Clause
"""Histograms by dask-awkward, as in coffea's dask mode; prints the numbers of Dask's workers.

    lazy_job.py SCHEDULER DATASET=FILE...       CREMA_TEST_GRAPHS=N: the same graph N times; CREMA_TEST_EQUAL: with equal keys
"""

import json
import os
import sys
import time

import awkward as ak
import dask
import hist
import hist.dask
import right_run
from coffea.dataset_tools import apply_to_fileset, preprocess
from coffea.nanoevents import NanoAODSchema

HISTOGRAMS = 6


def analysis(events):
    jets = events.Jet[events.Jet.pt > 30]
    out = {}
    for i in range(HISTOGRAMS):
        axes = hist.axis.Regular(50, 0, 200, name="pt"), hist.axis.Regular(50, -3, 3, name="eta")
        out[f"h{i}"] = hist.dask.Hist(*axes).fill(pt=ak.flatten(jets.pt * (1 + i / 100)), eta=ak.flatten(jets.eta))
    return out


def cpu_seconds(dask_worker):
    """(prefix, seconds of thread CPU) from Dask's fine metrics."""
    return [(k[2], v) for k, v in dask_worker.digests_total.items() if k[0] == "execute" and k[3] == "thread-cpu"]


def call(kind, items, events, function):
    """The function's result, and when it ran; the workers record what they ran in that time."""
    begin = time.time()
    result = function()
    return result, {"kind": kind, "begin": begin, "end": time.time(), "keys": [], "items": items, "events": events, "error": None}


def main():
    files = dict(word.split("=", 1) for word in sys.argv[2:])
    NanoAODSchema.warn_missing_crossrefs = False
    with right_run.open_client(sys.argv[1]) as client:
        client.wait_for_workers(1)
        plain = {name: {"files": {path: "Events"}} for name, path in files.items()}
        (steps, _), made = call("preprocessing", 0, 0, lambda: preprocess(plain, step_size=50_000, skip_bad_files=False))
        calls = [made]
        chunks = sum(len(file["steps"]) for dataset in steps.values() for file in dataset["files"].values())
        events = sum(file["num_entries"] for dataset in steps.values() for file in dataset["files"].values())
        graph, keys = None, []
        for _ in range(int(os.environ.get("CREMA_TEST_GRAPHS", 1))):
            if graph is None or "CREMA_TEST_EQUAL" not in os.environ:
                graph = apply_to_fileset(analysis, steps, schemaclass=NanoAODSchema)
            keys.append(sorted({str(key) for found in graph.values() for h in found.values() for key in h.dask}))
            (out,), made = call("coffea", chunks, events, lambda graph=graph: dask.compute(graph))
            calls.append(made)
        filled = {name: [float(h.sum(flow=True)) for h in found.values()] for name, found in out.items()}
        cpu = [row for rows in client.run(cpu_seconds).values() for row in rows]
        right_run.settle(client, calls)
    print(json.dumps({"filled": filled, "cpu": cpu, "calls": calls, "equal": [k == keys[0] for k in keys]}))


main()
