# SPDX-License-Identifier: BSD-3-Clause
"""Waits until the collector has a run's records: the workers' agents send them within a second."""

import os
import socket
import time

from crema.program import CremaError, report_json

POLL_SECONDS = 0.3
NOTHING_SECONDS = 6.0  # for a first record, which comes within one second if anything is measured
SIGN_SECONDS = 1.2     # a worker's totals come each second, after the records that they count
ASK_SECONDS = 5.0      # for workers to report whether they have the library
STRAY_SECONDS = 3.0    # for a task that the scheduler counts but no record names

NOTHING_TOLD = {"tasks": None, "least": 0, "all_ran": True, "workers": [], "idle": False}


def told_by_scheduler(client, span):
    """How many tasks of the span have run, and the workers' addresses; None if Dask does not report it.

    The scheduler also counts tasks as ended that were cancelled, or could not begin because an earlier one failed. Its
    log distinguishes them; if the log has no room for all, all_ran is False, and at least `least` have run. `idle`: there
    is no task in the span.
    """

    def ask(dask_scheduler, span):  # defined here, so that it is pickled by value
        from distributed.utils import key_split_group

        spans = dask_scheduler.extensions.get("spans")
        found = spans.spans.get(span) if spans else None
        told = {"tasks": None, "least": 0, "all_ran": True, "idle": spans is not None and found is None,
                "workers": [worker.address for worker in dask_scheduler.workers.values()]}

        def block_of(key):  # a task of another measured block may be in this one's span (contract/ids.h)
            ts = dask_scheduler.tasks.get(key)
            return ts.annotations.get("crema_span") if ts and ts.annotations else None

        if found:
            states = dict(found.states)
            log = list(dask_scheduler.transition_log)
            groups = {group.name for group in found.groups}
            ran = {entry[0] for entry in log if entry[1] == "processing" and entry[2] in ("memory", "erred")
                   and key_split_group(entry[0]) in groups and block_of(entry[0]) in (None, span)}
            told["tasks"] = sum(states.get(s, 0) for s in ("memory", "erred", "released", "forgotten"))
            told["all_ran"] = not any(states.get(s) for s in ("erred", "released", "forgotten"))
            if len(log) < (dask_scheduler.transition_log.maxlen or len(log) + 1):
                told["tasks"], told["all_ran"] = min(told["tasks"], len(ran)), True
            told["least"] = min(told["tasks"], len(ran))
        return told

    if client is None or span is None:
        return NOTHING_TOLD
    return client.run_on_scheduler(ask, span=span)


def preloaded(client):
    """{worker's address: (whether it has the library, whether it is in this process)} of those that respond; {} if none does."""

    def look():  # defined here, so that it is pickled by value
        import os
        import socket

        with open("/proc/self/maps") as maps:
            return "libcrema.so" in maps.read(), (socket.gethostname(), os.getpid())

    here = socket.gethostname(), os.getpid()
    try:
        found = client.sync(client._run, look, on_error="return", callback_timeout=ASK_SECONDS)
    except Exception:  # no client, a closed client, or workers that do not respond
        return {}
    return {address: (told[0], told[1] == here) for address, told in found.items() if isinstance(told, tuple)}


def ended(data):
    return len({t["key"] for t in data["tasks"] if t["status"] not in (None, "running")})


def enough(data, expected):
    """If some of the tasks may not have run, a failed task shows that they did not."""
    return (not expected["tasks"] or ended(data) >= expected["tasks"]
            or (not expected["all_ran"] and any(t["status"] == "erred" for t in data["tasks"])))


def signs_of_life(data, moment):
    """Whether each worker that had not ended has sent a message after the moment."""
    return all(w["goodbye"] or w["silent"] or (w["last_seen"] or 0) >= moment for w in data["workers"])


def complete(data, end):
    return bool(data["tasks"]) and not data["run_info"]["running_attempts"] and signs_of_life(data, end + SIGN_SECONDS)


def wait(run, end, expected, limit_seconds, directory=None, begun=0.0, client=None):
    """(the run's JSON or None, a warning or None). `run`: id or span; `end`: when its last task had ended, UTC."""
    limit = time.monotonic() + limit_seconds
    nothing = time.monotonic() + min(NOTHING_SECONDS, limit_seconds)
    stray = None
    data, why = None, None
    while True:
        try:
            data = report_json("--run", run, directory=directory)
            if data["run_info"]["start"] is not None and data["run_info"]["start"] < begun:
                data, why = None, CremaError("no task of this run was recorded")
        except CremaError as error:
            data, why = None, error
        now = time.monotonic()
        if data and complete(data, end):
            stray = stray or now + STRAY_SECONDS
            if enough(data, expected):
                return data, None
            if now > stray:
                return data, missing(data, expected) if is_missing(data, expected) else None
        if not data and now > nothing:
            return None, nothing_there(why, expected, preloaded(client))
        if now > limit:
            return data, (f"the records of this run have not all arrived after {limit_seconds:g} s, so its numbers may still grow; is 'crema collect' running?" if data else nothing_there(why, expected, preloaded(client)))
        time.sleep(POLL_SECONDS)


def unmeasured(data, expected):
    known = {w["address"] for w in data["workers"]}
    return [address for address in expected["workers"] if address not in known]


def is_missing(data, expected):
    """Tasks that the scheduler counts may have been cancelled if all_ran is False; on measured workers they were."""
    return bool(expected["all_ran"] or ended(data) < expected["least"] or unmeasured(data, expected))


def missing(data, expected):
    others = unmeasured(data, expected)
    line = f"{ended(data)} of {expected['tasks']} tasks of this run were measured"
    if others:
        line += f"; workers without crema: {', '.join(others[:5])}{' ...' if len(others) > 5 else ''}"
    return line


START = ("In a notebook, call crema.preload() before you create the cluster; elsewhere start the workers with 'crema run -- dask worker ...'")
IN_PROCESS = ("The workers are in this process (processes=False): start it with 'crema run -- jupyter lab' or "
              "'crema run -- python ...', or drop processes=False and call crema.preload() first")
FOLDER = "if the collector writes to another folder, set it with dir= or CREMA_DIR"


def nothing_there(why, expected, workers):
    """Why there are no records; `workers` is the result of preloaded()."""
    if expected["idle"]:
        return ("nothing was measured: no task ran for this block. It submitted none, or only tasks that the scheduler had already "
                "(another client's equal keys): they are in the run that submitted them first ('crema report --list')")
    bare = [inside for has, inside in workers.values() if not has]
    if bare:
        return (f"nothing was measured: {len(bare)} of {len(workers)} workers run without crema's library. "
                f"{IN_PROCESS if all(bare) else START}")
    if workers:
        return (f"nothing was measured: the workers have crema's library, but none of their records are here ({reason(why)}). "
                f"'crema doctor' on a worker's machine shows where they go; {FOLDER}")
    return f"nothing was measured: {reason(why)}. {START}; {FOLDER}"


def reason(why):
    return str(why).removeprefix("crema: ")
