"""Runner calls with their own record of what they were: the tasks that they submitted, when Dask ran them, chunks and events.

    python right_run.py CALLS SCHEDULER FILE [SCHEDULER FILE ...]     prints a JSON list for each scheduler: one object for each call

Each scheduler and file is a user with a process of its own, forked once coffea has been imported.
"""

import json
import multiprocessing
import sys
import threading
import time
from pathlib import Path

import cloudpickle
from coffea import processor
from coffea.nanoevents import BaseSchema
from distributed import Client
from distributed.diagnostics.plugin import WorkerPlugin

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Executions(WorkerPlugin):
    """The workers' own list of what ran: [key, start, stop, whether it succeeded], by the clock that Dask reads in the
    task's thread, for all clients. Workers add an estimate of the scheduler's clock offset: here it is 0."""

    name = "executions"

    def setup(self, worker):
        type(worker).scheduler_delay = property(lambda self: 0.0, lambda self, guess: None)
        self.worker, self.ran = worker, []

    def transition(self, key, start, finish, **kwargs):
        ts = self.worker.state.tasks.get(key)
        times = [x for x in ts.startstops if x["action"] == "compute"] if ts and finish in ("memory", "error") else []
        if times and (row := [str(key), times[-1]["start"], times[-1]["stop"], finish == "memory"]) not in self.ran[-100:]:
            self.ran.append(row)


def executions(client):
    found = client.run(lambda dask_worker: dask_worker.plugins["executions"].ran)
    return [row for rows in found.values() for row in rows]


def nap(i):
    time.sleep(0.05)
    return i


class Count(processor.ProcessorABC):
    """Counts events. A different `user` makes a different processor."""

    def __init__(self, user="", fail=False, seconds=0.2):
        self.user, self.fail, self.seconds = user, fail, seconds

    def process(self, events):
        if self.fail:
            raise ValueError("as asked")
        time.sleep(self.seconds)
        return {"events": len(events)}

    def postprocess(self, accumulator):
        return accumulator


class Other(Count):
    """Another class, for another prefix."""


class Meets(Count):
    """Each chunk ends only when all of `others` have started one."""

    def __init__(self, mark, others):
        super().__init__(mark)
        self.mark, self.others = mark, others

    def process(self, events):
        Path(self.mark).touch()
        limit = time.monotonic() + 60
        while not all(Path(other).exists() for other in self.others) and time.monotonic() < limit:
            time.sleep(0.01)
        return super().process(events)


class Watched:
    """A client that records the keys that each of its threads submits."""

    def __init__(self, client, before_merge=lambda: None):
        self.client, self.local = client, threading.local()
        self._map, self._submit = client.map, client.submit
        client.map, client.submit = self.map, self.submit
        self.before_merge = before_merge

    def note(self, futures):
        if hasattr(self.local, "keys"):
            self.local.keys += [str(f.key) for f in futures]

    def map(self, function, *args, **kwargs):
        if type(function).__name__ == "_reduce":
            self.before_merge()
        futures = self._map(function, *args, **kwargs)
        self.note(futures)
        return futures

    def submit(self, *args, **kwargs):
        future = self._submit(*args, **kwargs)
        self.note([future])
        return future

    def call(self, files, instance, chunksize=1000, **options):
        """One Runner call as the client sees it."""
        self.local.keys = []
        runner = processor.Runner(executor=processor.DaskExecutor(client=self.client, status=False, retries=0, **options),
                                  schema=BaseSchema, chunksize=chunksize, savemetrics=True, metadata_cache={})
        begin, error, out = time.time(), None, {"events": 0}
        try:
            out, _ = runner({"d": {"files": {str(f): "Events" for f in files}}}, processor_instance=instance)
        except Exception as raised:
            error = raised
        return {"begin": begin, "end": time.time(), "keys": self.local.keys, "events": out["events"], "error": error,
                "processor": type(instance).__name__}


def settle(client, calls):
    """Adds to each call the executions of its keys in its time: tasks, chunks, and the time from the first to the last."""
    ran = executions(client)
    for call in calls:
        keys = set(call.pop("keys")) or {r[0] for r in ran}  # the keys of a graph are unknown: use everything that ran in the meantime
        # what a failed call left in the scheduler still runs
        end = call["end"] + (5 if call["error"] else 0)
        mine = [r for r in ran if r[0] in keys and call["begin"] < r[1] < end]
        assert mine, (call, sorted(keys)[:9], [r for r in ran if r[0] in keys], ran[-9:])
        good = [r[0] for r in mine if r[3]]
        chunks = call["items"] if "items" in call else sum(key.startswith(call["processor"]) for key in good)
        call.update(tasks=len(good), chunks=chunks,
                    start=min(r[1] for r in mine), stop=max(r[2] for r in mine), busy=sum(r[2] - r[1] for r in mine),
                    error=str(call["error"]) if call["error"] else None)
    return calls


def warm_up():
    import coffea.processor
    import uproot  # noqa: F401


def open_client(address):
    """The first client of a scheduler registers the plugin."""
    client = Client(address)
    if not any(client.run(lambda dask_worker: "executions" in dask_worker.plugins).values()):
        client.register_plugin(Executions())
    return client


def use(address, file, user, calls):
    client = open_client(address)
    watched = Watched(client)
    found = [watched.call([file], Count(user)) for _ in range(calls)]
    settled = settle(client, found)
    client.close()
    return settled


def main(calls, *users):
    work = [(address, file, str(user), int(calls)) for user, (address, file) in enumerate(zip(users[::2], users[1::2]))]
    with multiprocessing.get_context("fork").Pool(len(work), maxtasksperchild=1) as pool:
        print(json.dumps(pool.starmap(use, work, chunksize=1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
