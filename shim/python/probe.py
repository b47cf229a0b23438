# SPDX-License-Identifier: BSD-3-Clause
"""What a worker's Dask objects say, as JSON text; runs inside the worker.

The shim compiles this text when a Worker starts (py_worker.c), with `_put(kind, text)`,
the task flags `_ASYNC`, `_ACTOR` and `_ELSEWHERE`,
`_task_begin(flags, key, worker, span_key)`, `_task_end(name, ok, seconds)` and `_comm(fd)` in its globals. It only
reads; every value that this version of Dask lacks is None. Called in the event loop every half second: about 0.1 ms.

A process may hold several Workers, at once or one after the other, each in its own event loop. What they
say is added up; nothing here keeps a Worker alive.
"""
import json
import sys
import weakref

_SAMPLE_MS = 500
_UNFINISHED = ("waiting", "ready", "constrained", "executing", "long-running", "resumed")
_BY_CLIENT = ("remove-client", "client-releases-keys", "cancel-key")  # what the scheduler answers by taking tasks back
_TEXT_MAX = 60000
_members = []
_former = {}  # digests of Workers that are gone
_former_received = []
_changed = {}  # span: (the sum of its digests, the sample in which it was new)
_samples = 0
_told = set()  # addresses
_closing = None  # why a Worker was closed
_taken = {}  # (span, whether the client left): [tasks, when the last, some hashes of keys] of those taken back before they ended
_TAKEN_MAX = 32
_TAKEN_KEYS = 32


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


class _Member:
    """A Worker of this process, and the callback in its event loop."""

    def __init__(self, worker):
        from tornado.ioloop import PeriodicCallback

        self.ref = weakref.ref(worker)
        self.digests = {}
        self.received = [0, None]  # on former connections to the scheduler, and on the present one; None: unknown
        self.callback = PeriodicCallback(lambda: _tick(self), _SAMPLE_MS)

    def worker(self):
        """None when it has closed."""
        worker = self.ref()
        return None if worker is None or str(_get(worker, "status", "name")) in ("closed", "failed") else worker

    def leave(self):
        for key, value in self.digests.items():
            _former[key] = _former.get(key, 0) + value
        _former_received.append(_received(self))
        self.callback.stop()


def _present():
    """[(member, Worker)]; those that have closed leave."""
    found = [(m, m.worker()) for m in list(_members)]
    for member, worker in found:
        if worker is None and member in _members:
            _members.remove(member)
            member.leave()
    return [(m, w) for m, w in found if w is not None]


def _sum(values):
    """None if one is unknown."""
    values = list(values)
    return None if not values or None in values else sum(values)


def _least(values):
    """Of the memory limits: each Worker compares the whole process with its own."""
    known = [v for v in values if v]
    return min(known) if known else None


def _names(values):
    return ", ".join(values) if values and None not in values else None


def facts(workers):
    out = {"python": sys.version.split()[0]}
    from importlib import metadata

    for name in ("dask", "distributed", "coffea", "uproot", "awkward", "numpy"):
        try:
            out[name] = metadata.version(name)
        except Exception:
            out[name] = None
    out["worker_address"] = _names([_address(w) for w in workers])
    out["worker_name"] = _names([str(_get(w, "name")) for w in workers])
    out["nthreads"] = _sum(_number(_get(w, "state", "nthreads")) for w in workers)
    out["memory_limit_bytes"] = _least(_number(_get(w, "memory_manager", "memory_limit")) for w in workers)
    out["scheduler"] = _names(sorted({str(_get(w, "scheduler", "address")) for w in workers}))
    out["nanny"] = _get(workers[0], "nanny") is not None
    return out


def _digests_of(worker):
    """{(context, span, prefix, activity, unit): value}"""
    found = {}
    for key, value in list((_get(worker, "digests_total") or {}).items()):
        if not isinstance(key, tuple) or _number(value) is None:
            continue
        if len(key) == 5:
            found[tuple(None if k is None else str(k) for k in key)] = value
        elif len(key) == 3:
            found[str(key[0]), None, None, str(key[1]), str(key[2])] = value
    return found


def _digests(present):
    sums = dict(_former)
    for member, worker in present:
        member.digests = _digests_of(worker)
        for key, value in member.digests.items():
            sums[key] = sums.get(key, 0) + value
    spans = {}
    for key, value in sums.items():
        spans.setdefault(key[1], []).append([*key, value])
    rows, size, cut, whole = [], 0, 0, True
    for span in _by_change(spans):
        size += sum(len(k) for row in spans[span] for k in row[:5] if k) + 40 * len(spans[span])
        if size > _TEXT_MAX - 2000:
            cut += len(spans[span])
            whole &= span is not None
        else:
            rows += spans[span]
    return rows, cut, whole


def _by_change(spans):
    """What has no span, then the spans whose values changed last: a worker with many runs sends the present one's."""
    global _samples
    _samples += 1
    for span, rows in spans.items():
        now = sum(row[5] for row in rows)
        if _changed.get(span, (None,))[0] != now:
            _changed[span] = now, _samples
    return sorted(spans, key=lambda span: (span is not None, -_changed[span][1]))


def sample(present):
    from time import time

    workers = [w for _, w in present]
    first = workers[0]
    states = [_get(w, "state") for w in workers]
    quantities = _get(first, "monitor", "quantities") or {}
    rows, cut, whole = _digests(present)
    for member, worker in present:
        _look_at_stream(member, worker)

    def numbers(name):
        return _sum(_number(_get(state, name)) for state in states)

    def sizes(name):
        return _sum(_size(_get(state, name)) for state in states)

    return {
        "t": time(),
        "workers": len(workers),
        "nthreads": numbers("nthreads"),
        "executing": numbers("executing_count"),
        "ready": sizes("ready"),
        "long_running": sizes("long_running"),
        "in_flight_data": numbers("in_flight_tasks_count"),
        "tasks": sizes("tasks"),
        "executed": numbers("executed_count"),
        "nbytes_managed": numbers("nbytes"),
        "fast_bytes": _sum(_number(_get(w, "data", "fast", "total_weight")) for w in workers),
        "spilled_bytes": _sum(_spilled(w) for w in workers),
        "memory_bytes": _last(quantities.get("memory")),
        "memory_limit_bytes": _least(_number(_get(w, "memory_manager", "memory_limit")) for w in workers),
        "cpu_percent": _last(quantities.get("cpu")),
        "status": _names([str(_get(w, "status", "name") or _get(w, "status")) for w in workers]),
        "last_seen": time() if _get(first, "heartbeat_active") else None,
        "closing": _closing,
        "taken_back": [[*key, n, max(0.0, time() - at), hashes] for key, (n, at, hashes) in list(_taken.items())],
        "scheduler": _told_by_scheduler(),
        "gc_seconds": _gc_seconds(),
        "stream_bytes": _sum([*_former_received, *(_received(m) for m, _ in present)]),
        "digests": rows,
        "digests_cut": cut,
        "digests_whole": whole,  # only spans are left out, each as a whole
    }


def _received(member):
    before, now = member.received
    return None if now is None else before + now


def _look_at_stream(member, worker):
    """The connection by which the scheduler sends tasks: bytes received by the kernel's count, of TCP only."""
    comm = getattr(_get(worker, "batched_stream"), "comm", worker)
    if comm is None and member.received == [0, None]:
        member.received = [0, 0]  # not yet connected
    socket = _get(comm, "stream", "socket")
    try:
        now = int.from_bytes(socket.getsockopt(6, 11, 136)[128:136], sys.byteorder)  # TCP_INFO, tcpi_bytes_received
    except Exception:
        return  # closed, or another transport
    before, last = member.received
    member.received = [before + (last if last is not None and now < last else 0), now]


def _gc_seconds():
    """CPU in full garbage collections, as Dask's own diagnosis counts it for this process."""
    for name in ("distributed.gc", "distributed.utils_perf"):
        seconds = _get(sys.modules.get(name), "_gc_diagnosis", "_fractional_timer", "_duration_total")
        if _number(seconds) is not None:
            return seconds / 1e9
    return None


def _spilled(worker):
    total = _get(worker, "data", "spilled_total")
    return _number(_get(total, "disk")) if total is not None else 0


def _address(worker):
    """None until the worker listens."""
    address = _get(worker, "address")
    return str(address) if address else None


def _put_facts(workers):
    """Again when a Worker came or got its address."""
    addresses = [_address(w) for w in workers]
    if not _told.issuperset(addresses):
        _told.update(addresses)
        _put(0, json.dumps(facts(workers)))


def _tick(member):
    """Of several Workers the first one samples for all."""
    present = _present()
    if not present or present[0][0] is not member:
        return
    try:
        _ask_if_due(present[0][1])
        _put_facts([w for _, w in present])
        text = json.dumps(sample(present))
    except Exception as error:
        text = json.dumps({"error": type(error).__name__})
    _put(1, text)


def _local(frame, name):
    return None if frame is None else frame.f_locals.get(name)


def _succeeded(message):
    return not (isinstance(message, dict) and message.get("op") == "task-erred")


def _wrap_async(module, name):
    original = getattr(module, name, None)
    if original is None:
        return

    async def wrapper(task, *args, **kwargs):
        # A graph node knows its key; before distributed 2024.11 only our caller, Worker.execute, does.
        caller = sys._getframe(1)
        key = getattr(task, "key", None)
        mark = _task_begin(_ASYNC, key if key is not None else _local(caller, "key"), _local(caller, "self"))
        del caller
        ok = False
        try:
            message = await original(task, *args, **kwargs)
            ok = _succeeded(message)
            return message
        finally:
            _task_end(mark, ok)

    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__module__ = module.__name__
    setattr(module, name, wrapper)


def actor_key(worker, method):
    """Of an actor's method: the key of the task that made the actor, which has the span."""
    actor = getattr(method, "__self__", None)
    return next((key for key, value in list(worker.state.actors.items()) if value is actor), None)


def _wrap_actors(worker, module):
    """Methods of actors that run in the event loop; all others come by the task edges (py_task.c)."""
    original = worker.handlers["actor_execute"]
    ref = weakref.ref(worker)

    async def actor_execute(actor=None, function=None, args=(), kwargs=None):
        mark = None
        try:
            method = getattr(ref().state.actors[actor], function)
            if module.iscoroutinefunction(method) or not (kwargs or {}).get("separate_thread", True):
                mark = _task_begin(_ASYNC | _ACTOR, f"{module.key_split(actor)}.{function}", ref(), actor)
        except Exception:
            pass  # the original says what is wrong
        ok = False
        try:
            result = await original(actor=actor, function=function, args=args, kwargs=kwargs)
            ok = not isinstance(result, dict) or result.get("status") != "error"
            return result
        finally:
            if mark is not None:
                _task_end(mark, ok)

    worker.handlers["actor_execute"] = actor_execute


def _wrap_executors(worker, module):
    """Tasks that an executor runs in other processes, where nobody counts."""
    loop = worker.loop
    original = loop.run_in_executor
    if getattr(original, "crema", False):
        return
    simple = [getattr(module, name, None) for name in ("_run_task_simple", "apply_function_simple")]

    def run_in_executor(executor, function, *args):
        if function is None or function not in simple:
            return original(executor, function, *args)
        caller = sys._getframe(1)
        mark = _task_begin(_ELSEWHERE, _local(caller, "key"), _local(caller, "self"))
        del caller
        future = original(executor, function, *args)
        future.add_done_callback(lambda done: _executed(mark, done))
        return future

    run_in_executor.crema = True
    loop.run_in_executor = run_in_executor


def _executed(mark, done):
    message = None if done.cancelled() or done.exception() else done.result()
    seconds = -1.0
    try:
        seconds = message["stop"] - message["start"]  # by the process that ran it
    except Exception:
        pass
    _task_end(mark, message is not None and _succeeded(message), seconds)


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


def _watch_ends(worker, module):
    """Worker.close() says in its first lines why; a last sample takes it along."""
    ref, original = weakref.ref(worker), type(worker).log_event

    def log_event(topic, msg, *args, **kwargs):
        global _closing
        try:
            if isinstance(msg, dict) and msg.get("action") == "closing-worker":
                _closing = str(msg.get("reason"))[:200]
                _put(1, json.dumps(sample(_present())))
        except Exception:
            pass
        return original(ref(), topic, msg, *args, **kwargs)

    worker.log_event = log_event


def _hash(key):
    """As the shim's: FNV-1a, 64 bits."""
    found = 0xCBF29CE484222325
    for byte in key.encode("utf-8", "surrogatepass"):
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:x}"


def _take_back(worker, keys, stimulus):
    from time import time

    unfinished = 0
    for key in keys:
        task = worker.state.tasks.get(key) if isinstance(key, (str, tuple, bytes, int, float)) else None
        if task is not None and task.state in _UNFINISHED:
            unfinished += 1
            at = (task.span_id, str(stimulus).startswith("remove-client"))
            if at in _taken or len(_taken) < _TAKEN_MAX:
                row = _taken.setdefault(at, [0, 0, []])
                row[:2] = row[0] + 1, time()
                if len(row[2]) < _TAKEN_KEYS and isinstance(key, str):
                    row[2].append(_hash(key))
    if unfinished:
        _put(1, json.dumps(sample(_present())))


def _watch_recalls(worker, module):
    """Tasks that the scheduler takes back because a client left, cancelled or released them."""
    ref, original = weakref.ref(worker), worker.stream_handlers["free-keys"]

    def free_keys(**kwargs):
        try:
            stimulus = str(kwargs.get("stimulus_id"))
            if stimulus.startswith(_BY_CLIENT):
                _take_back(ref(), kwargs.get("keys") or (), stimulus)
        except Exception:
            pass
        return original(**kwargs)

    worker.stream_handlers["free-keys"] = free_keys


def start(worker):
    """A Worker object starts; what is patched once is patched with the first."""
    first = not _told
    member = _Member(worker)
    module = sys.modules["distributed.worker"]
    for wrap in (_wrap_actors, _wrap_executors, _watch_ends, _watch_recalls):
        try:
            wrap(worker, module)
        except Exception as error:
            _note(f"{wrap.__name__.split('_', 2)[2]} are not seen: {type(error).__name__}")
    if first:
        _wrap_async(module, "_run_task_async")
        _wrap_async(module, "apply_function_async")
        try:
            _mark_comms()
        except Exception:
            pass  # another transport: its bytes are unattributed
    _members.append(member)
    _ask_from_now()
    _tick(_members[0])
    member.callback.start()
