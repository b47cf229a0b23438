# SPDX-License-Identifier: BSD-3-Clause
"""Waiting until the collector has a run's records: they travel from the workers by themselves, within a second."""

import time

from crema.program import CremaError, report_json

POLL_SECONDS = 0.3
NOTHING_SECONDS = 6.0  # for a first record, which comes within one second where anything is measured
SIGN_SECONDS = 1.2     # a worker's totals come each second, after the records of what they count
STRAY_SECONDS = 3.0    # for a task that the scheduler counts and no record names

NOTHING_TOLD = {"tasks": None, "workers": []}


def told_by_scheduler(client, span):
    """How many tasks of the span have ended, and the workers' addresses; None where Dask does not say."""

    def ask(dask_scheduler, span):  # defined in here, so that it travels by value
        spans = dask_scheduler.extensions.get("spans")
        found = spans.spans.get(span) if spans else None
        states = dict(found.states) if found else {}
        return {"tasks": sum(states.get(s, 0) for s in ("memory", "erred", "released", "forgotten")) if found else None,
                "workers": [worker.address for worker in dask_scheduler.workers.values()]}

    if client is None or span is None:
        return NOTHING_TOLD
    return client.run_on_scheduler(ask, span=span)


def ended(data):
    return len({t["key"] for t in data["tasks"] if t["status"] not in (None, "running")})


def signs_of_life(data, moment):
    """Whether each worker that was not gone has said something after the moment."""
    return all(w["goodbye"] or w["silent"] or (w["last_seen"] or 0) >= moment for w in data["workers"])


def complete(data, end):
    return bool(data["tasks"]) and not data["run_info"]["running_attempts"] and signs_of_life(data, end + SIGN_SECONDS)


def wait(run, end, expected, limit_seconds, directory=None, begun=0.0):
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
            if not expected["tasks"] or ended(data) >= expected["tasks"]:
                return data, None
            if now > stray:
                return data, missing(data, expected)
        if not data and now > nothing:
            return None, nothing_there(why)
        if now > limit:
            return data, (f"the records of this run have not all arrived after {limit_seconds:g} s: its numbers may "
                          "grow; is 'crema collect' running?" if data else nothing_there(why))
        time.sleep(POLL_SECONDS)


def missing(data, expected):
    known = {w["address"] for w in data["workers"]}
    others = [address for address in expected["workers"] if address not in known]
    line = f"{ended(data)} of {expected['tasks']} tasks of this run were measured"
    if others:
        line += f"; workers without crema: {', '.join(others[:5])}{' ...' if len(others) > 5 else ''}"
    return line


def nothing_there(why):
    return (f"nothing was measured: {why}. Start the workers by 'crema run -- dask worker ...' (or with LD_PRELOAD), "
            "'crema collect' beside the scheduler, and name its folder by dir= or CREMA_DIR")
