# SPDX-License-Identifier: BSD-3-Clause
"""What the scheduler knows and its workers do not: how many tasks there are, and whether a client waits for them.

Continues probe.py. Of all measured workers of a scheduler one asks, every two seconds. Before the first question it
registers _counter() there: a plugin that counts each task once as it begins and ends to be unfinished, with a
handler that answers. Where the scheduler refuses (distributed.scheduler.pickle: false) nothing is known. The plugin
stays until the scheduler ends: 16 rows, and less than a microsecond for each transition of a task.
"""
_ASK_SECONDS = 2.0
_NOT_NOW_SECONDS = 10.0
_BEFORE_HEARTBEAT_SECONDS = 0.15
_PUT_OFF = 2  # at most: a heartbeat may come with each of our turns
_ASKED_OP = "crema_count_2"  # of the scheduler's handlers; another number where they answer something else
_ask = {"next": None, "under_way": None, "installed": None, "answer": None, "at": 0.0, "put_off": 0}


def _counter():
    """For the scheduler, where it is unpacked: all that it needs is in here."""
    from time import time

    from distributed.diagnostics.plugin import SchedulerPlugin

    op, lease_seconds, prefixes, name_max = "crema_count_2", 10.0, 16, 64
    unfinished = frozenset(("waiting", "no-worker", "queued", "processing"))

    class Count(SchedulerPlugin):
        """By prefix, since the scheduler last had nothing to do."""

        def __init__(self):
            self.scheduler = None
            self.rows = {}  # prefix: [unfinished, ended, when the first was there, when the last ended]
            self.left, self.over, self.asker, self.asked = 0, True, None, 0.0

        def start(self, scheduler):
            self.scheduler = scheduler
            for task in list(scheduler.tasks.values()):
                if task.state in unfinished:
                    self.count(task.prefix.name, +1)
                    self.over = False
            scheduler.handlers[op] = lambda asker=None: self.answer(asker)

        def count(self, prefix, change):
            if not self.left and self.over:
                self.rows = {}
            row = self.rows.get(prefix)
            if row is None:
                row = self.rows.setdefault(prefix if len(self.rows) < prefixes else "other", [0, 0, time(), None])
            row[0] += change
            self.left += change
            return row

        def transition(self, key, start, finish, *args, **kwargs):
            if (start in unfinished) != (finish in unfinished):
                row = self.count(self.scheduler.tasks[key].prefix.name, +1 if finish in unfinished else -1)
                if finish in ("memory", "erred"):
                    row[1] += 1
                    row[3] = time()
            if finish != "released":  # from where a task whose worker was lost goes back
                self.over = finish not in unfinished

        def answer(self, asker):
            now = time()
            if self.asker not in (None, asker) and now - self.asked < lease_seconds:
                return {"again": max(lease_seconds, len(self.scheduler.workers) / 10)}
            self.asker, self.asked = asker, now
            clients = [c for c in list(self.scheduler.clients) if c.startswith("Client-") and not c.startswith("Client-worker-")]
            rows = [[str(prefix)[:name_max], left, ended, now - began, None if last is None else now - last]
                    for prefix, (left, ended, began, last) in self.rows.items()] if self.left else []
            return {"id": str(self.scheduler.id), "clients": len(clients), "prefixes": rows}

    return Count()


async def _ask_scheduler(worker):
    from time import monotonic

    scheduler, address = worker.scheduler, _address(worker)
    pause = _NOT_NOW_SECONDS
    try:
        if _ask["installed"] != scheduler.address:
            from distributed.protocol.pickle import dumps

            # which, unlike run_function(), writes nothing into the scheduler's log
            await scheduler.register_scheduler_plugin(plugin=dumps(_counter()), name=_ASKED_OP, idempotent=True)
            _ask["installed"] = scheduler.address
        answer = await getattr(scheduler, _ASKED_OP)(asker=address)
        _ask["answer"], _ask["at"] = (answer, monotonic()) if "clients" in answer else (None, 0.0)
        pause = answer.get("again", _ASK_SECONDS)
    except OSError:
        pass  # not reached now
    except Exception:
        pause = None
    _ask["under_way"] = None
    _ask["next"] = None if pause is None else monotonic() + pause


def _ask_from_now():
    from os import environ
    from time import monotonic

    if environ.get("CREMA_ASK_SCHEDULER") not in ("off", "no", "false", "0"):
        _ask["next"] = monotonic() + 1


def _has_idle_connection(worker):
    """Whether Dask has a connection to the scheduler at hand, and none of its own questions will want it now. For two at
    the same time it opens another, which it keeps: a descriptor of the worker and one of the scheduler. True if unknown."""
    idle, address = _get(worker, "rpc", "available"), _get(worker, "scheduler", "address")
    beat = _get(worker, "periodic_callbacks", "heartbeat")
    next_beat, now = _get(beat, "_next_timeout"), _get(beat, "io_loop", "time")
    if isinstance(idle, dict) and not idle.get(address):
        return False
    return next_beat is None or now is None or not 0 <= next_beat - now() < _BEFORE_HEARTBEAT_SECONDS


def _ask_if_due(worker):
    """Never cancelled: Dask would give its connection, with the answer still to come, to the next who asks."""
    import asyncio
    from time import monotonic

    now = monotonic()
    due = _ask["next"] is not None and now >= _ask["next"]
    if due and _ask["under_way"] is None and str(_get(worker, "status", "name")) in ("running", "paused"):
        if not _has_idle_connection(worker) and _ask["put_off"] < _PUT_OFF:
            _ask["put_off"] += 1
            return
        _ask["put_off"] = 0
        _ask["under_way"] = asyncio.ensure_future(_ask_scheduler(worker))


def _told_by_scheduler():
    from time import monotonic

    answer = _ask["answer"]
    return None if answer is None else {**answer, "age": monotonic() - _ask["at"]}
