"""An analysis with coffea's WorkItems, but without its Runner, as iris-hep's integration-challenge does.

    python own_map.py SCHEDULER FILE...     prints a JSON list: one object, as right_run.py does
"""

import functools
import json
import sys
import time

import cloudpickle
import dask.bag
import right_run
import uproot
from coffea.nanoevents import BaseSchema, NanoEventsFactory
from coffea.nanoevents.util import key_to_tuple
from coffea.processor import accumulate
from coffea.processor.executor import WorkItem
from distributed import as_completed

cloudpickle.register_pickle_by_value(sys.modules[__name__])
merge = functools.partial(accumulate, accum=None)


def items(files, chunksize=1000, dataset="own"):
    found = []
    for path in files:
        with uproot.open(path) as file:
            entries, uuid = file["Events"].num_entries, file.file.uuid.bytes
        found += [WorkItem(dataset, str(path), "Events", start, min(start + chunksize, entries), uuid, {"dataset": dataset})
                  for start in range(0, entries, chunksize)]
    return found


def process(item, seconds=0.1, fails=-1):
    """The counts of what was read are part of the result; an error is returned as the result."""
    begin, log = time.time(), []
    file = uproot.open(item.filename)
    events = NanoEventsFactory.from_root(file, treepath=item.treename, mode="virtual", access_log=log, schemaclass=BaseSchema,
                                         entry_start=item.entrystart, entry_stop=item.entrystop).events()
    try:
        if item.entrystart == fails:
            raise ValueError("as asked")
        total = float(sum(events.x.to_numpy()))
        time.sleep(seconds)
    except Exception as error:
        return error
    return {"out": {"sum": total},
            "report": {"bytesread": file.file.source.num_requested_bytes, "entries": item.entrystop - item.entrystart,
                       "processtime": time.time() - begin, "chunks": 1, "columns": log}}


def of_bag(item):
    """The other shape used there: a pair."""
    found = process(item)
    return found["out"], found["report"]


def add_pairs(a, b):
    return {"sum": a[0]["sum"] + b[0]["sum"]}, accumulate([a[1], b[1]])


def truth(report):
    """The client's own numbers under crema's names; columns as coffea's Runner writes them."""
    return {"events": report["entries"], "bytesread": report["bytesread"], "processtime": report["processtime"],
            "good": report["chunks"], "columns": sorted({f"{c.branch}-{key_to_tuple(c.buffer_key)[3]}" for c in report["columns"]})}


def by_map(watched, todo, fails=-1, kept=None, pure=True):
    """client.map(), then merges results in groups of four as they arrive."""
    chunks = watched.client.map(functools.partial(process, fails=fails), todo, pure=pure, key="process")
    if kept is not None:
        kept.append(chunks)
    waiting, held = as_completed(chunks), []
    del chunks
    for future in waiting:
        if future.status == "error" or issubclass(future.type, BaseException):
            continue
        held.append(future)
        if len(held) == 4 or (waiting.is_empty() and len(held) > 1):
            merged = watched.client.submit(merge, held, key=f"accumulate-{time.time()}", priority=1)
            held = []
            waiting.add(merged)
    return held[0].result()["report"]


def by_bag(watched, todo, kept=None):
    bag = dask.bag.from_sequence(todo, partition_size=1).map(of_bag)
    future = watched.client.compute(bag.fold(add_pairs))
    if kept is not None:
        kept.append(future)
    return future.result()[1]


def call(watched, how, todo, **options):
    watched.local.keys = []
    begin = time.time()
    report = how(watched, todo, **options)
    return {"begin": begin, "end": time.time(), "keys": watched.local.keys, "error": None, "items": len(todo), **truth(report)}


def main(address, *files):
    client = right_run.open_client(address)
    watched = right_run.Watched(client)
    print(json.dumps(right_run.settle(client, [call(watched, by_map, items(files))])))
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
