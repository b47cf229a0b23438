# SPDX-License-Identifier: BSD-3-Clause
"""What a worker's Dask objects say, as JSON text; runs inside the worker.

The shim compiles this text when a Worker starts (py_worker.c), with `_put(kind, text)`,
`_task_begin(key)`, `_task_end(name, ok)` and `_comm(fd)` in its globals. It only reads; every value that this
version of Dask lacks is None. Called in the event loop every half second: about 0.1 ms.
"""
import json
import sys

_SAMPLE_MS = 500
_TEXT_MAX = 60000
_workers = []
_callbacks = []
_addressed = []


def _get(obj, *path):
    for name in path:
        try:
            obj = obj[name] if isinstance(obj, dict) else getattr(obj, name)
        except Exception:
            return None
    return obj


def _number(value):
    return value if isinstance(value, (int, float)) else None


def _size(value):
    try:
        return len(value)
    except Exception:
        return None


def _last(series):
    try:
        return _number(series[-1])
    except Exception:
        return None


def facts(worker):
    out = {"python": sys.version.split()[0]}
    from importlib import metadata

    for name in ("dask", "distributed", "coffea", "uproot", "awkward", "numpy"):
        try:
            out[name] = metadata.version(name)
        except Exception:
            out[name] = None
    out["worker_address"] = _address(worker)
    out["worker_name"] = str(_get(worker, "name"))
    out["nthreads"] = _number(_get(worker, "state", "nthreads"))
    out["memory_limit_bytes"] = _number(_get(worker, "memory_manager", "memory_limit"))
    out["scheduler"] = str(_get(worker, "scheduler", "address"))
    out["nanny"] = _get(worker, "nanny") is not None
    return out


def _digests(worker):
    rows, size, cut = [], 0, 0
    totals = _get(worker, "digests_total")
    for key, value in list((totals or {}).items()):
        if not isinstance(key, tuple) or _number(value) is None:
            continue
        if len(key) == 5:
            row = [None if k is None else str(k) for k in key]
        elif len(key) == 3:
            row = [str(key[0]), None, None, str(key[1]), str(key[2])]
        else:
            continue
        size += sum(len(k) for k in row if k) + 40
        if size > _TEXT_MAX - 2000:
            cut += 1
            continue
        rows.append(row + [value])
    return rows, cut


def sample(worker):
    from time import time

    state = _get(worker, "state")
    quantities = _get(worker, "monitor", "quantities") or {}
    rows, cut = _digests(worker)
    return {
        "t": time(),
        "workers": len(_workers),
        "nthreads": _number(_get(state, "nthreads")),
        "executing": _number(_get(state, "executing_count")),
        "ready": _size(_get(state, "ready")),
        "long_running": _size(_get(state, "long_running")),
        "in_flight_data": _number(_get(state, "in_flight_tasks_count")),
        "tasks": _size(_get(state, "tasks")),
        "executed": _number(_get(state, "executed_count")),
        "nbytes_managed": _number(_get(state, "nbytes")),
        "fast_bytes": _number(_get(worker, "data", "fast", "total_weight")),
        "spilled_bytes": _spilled(worker),
        "memory_bytes": _last(quantities.get("memory")),
        "memory_limit_bytes": _number(_get(worker, "memory_manager", "memory_limit")),
        "cpu_percent": _last(quantities.get("cpu")),
        "status": str(_get(worker, "status", "name") or _get(worker, "status")),
        "last_seen": _number(_get(worker, "heartbeat_active") and time()),
        "digests": rows,
        "digests_cut": cut,
    }


def _spilled(worker):
    total = _get(worker, "data", "spilled_total")
    return _number(_get(total, "disk")) if total is not None else 0


def _address(worker):
    """None until the worker listens."""
    address = _get(worker, "address")
    return str(address) if address else None


def _put_facts(worker):
    _put(0, json.dumps(facts(worker)))


def _tick():
    worker = _workers[0]
    try:
        if not _addressed and _address(worker):
            _addressed.append(True)
            _put_facts(worker)
        text = json.dumps(sample(worker))
    except Exception as error:
        text = json.dumps({"error": type(error).__name__})
    _put(1, text)


def _key_of(task, caller):
    """A graph node knows its key; before distributed 2024.11 only our caller, Worker.execute, does."""
    key = getattr(task, "key", None)
    return key if key is not None or caller is None else caller.f_locals.get("key")


def _wrap_async(module, name):
    original = getattr(module, name, None)
    if original is None:
        return

    async def wrapper(task, *args, **kwargs):
        mark = _task_begin(_key_of(task, sys._getframe(1)))
        ok = False
        try:
            message = await original(task, *args, **kwargs)
            ok = not (isinstance(message, dict) and message.get("op") == "task-erred")
            return message
        finally:
            _task_end(mark, ok)

    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__module__ = module.__name__
    setattr(module, name, wrapper)


def _mark_comms():
    """Dask's own connections are a class of their own: each is named when it is made."""
    module = sys.modules.get("distributed.comm.tcp")
    original = module.TCP.__init__

    def __init__(self, stream, *args, **kwargs):
        original(self, stream, *args, **kwargs)
        try:
            _comm(stream.socket.fileno())
        except Exception:
            pass

    module.TCP.__init__ = __init__


def start(worker):
    """A Worker object starts: the first one is the process's, others share its numbers."""
    _workers.append(worker)
    if len(_workers) > 1:
        return
    module = sys.modules["distributed.worker"]
    _wrap_async(module, "_run_task_async")
    _wrap_async(module, "apply_function_async")
    try:
        _mark_comms()
    except Exception:
        pass  # another transport: its bytes are unattributed
    _put_facts(worker)
    _tick()
    from tornado.ioloop import PeriodicCallback

    _callbacks.append(PeriodicCallback(_tick, _SAMPLE_MS))
    _callbacks[0].start()
