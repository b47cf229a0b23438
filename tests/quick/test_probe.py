"""shim/python/probe.py with Workers made by hand, each of whose numbers is different: it must send exactly these."""

import asyncio
import inspect
import json
import sys
import types
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "shim" / "python" / "probe.py"


class Callback:
    def __init__(self, function, milliseconds):
        self.function, self.milliseconds, self.running = function, milliseconds, False

    def start(self):
        self.running = True

    def stop(self):
        self.running = False


class TCP:
    def __init__(self, stream, *args):
        self.stream, self.args = stream, args


class Shim:
    """Records what the probe passes to the shim."""

    def __init__(self):
        self.put, self.begun, self.ended, self.comms, self.notes = [], [], [], [], []

    def begin(self, *what):
        self.begun.append(what)
        return f"mark {len(self.begun)}"


async def run_async(task, *args):
    return {"op": "task-finished" if task.good else "task-erred"}


@pytest.fixture
def probe(monkeypatch):
    """The probe's globals in a process that has Dask's modules; `shim` records its calls."""
    for name in ("tornado", "tornado.ioloop", "distributed", "distributed.worker", "distributed.comm", "distributed.comm.tcp"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["tornado.ioloop"].PeriodicCallback = Callback
    for name in ("distributed.gc", "distributed.utils_perf"):  # left by other tests in this process, if they ran a Client
        monkeypatch.delitem(sys.modules, name, raising=False)
    worker = sys.modules["distributed.worker"]
    worker._run_task_async, worker.apply_function_async, worker._run_task_simple = run_async, run_async, object()
    worker.iscoroutinefunction, worker.key_split = inspect.iscoroutinefunction, lambda key: key.split("-")[0]
    monkeypatch.setattr(TCP, "__init__", TCP.__init__)
    sys.modules["distributed.comm.tcp"].TCP = TCP
    shim = Shim()
    names = {"_put": lambda *what: shim.put.append(what), "_ASYNC": 1, "_ACTOR": 2, "_ELSEWHERE": 4, "_task_begin": shim.begin,
             "_task_end": lambda *what: shim.ended.append(what), "_comm": shim.comms.append, "_note": shim.notes.append}
    exec(compile(SOURCE.read_text() + (SOURCE.parent / "probe_scheduler.py").read_text(), "probe.py", "exec"), names)
    return types.SimpleNamespace(shim=shim, **{k: v for k, v in names.items() if not k.startswith("__")})


class Loop:
    def __init__(self):
        self.calls = []

    def run_in_executor(self, executor, function, *args):
        self.calls.append((executor, function, args))
        return Future()


class Future:
    def __init__(self):
        self.callbacks, self.value, self.problem, self.gone = [], None, None, False

    def add_done_callback(self, function):
        self.callbacks.append(function)

    def result(self):
        return self.value

    def exception(self):
        return self.problem

    def cancelled(self):
        return self.gone


class Thing(types.SimpleNamespace):
    """Has any attribute, and supports weak references."""


class Recorder(Thing):
    def log_event(self, topic, msg):
        self.logged.append((topic, msg))
        return "logged"


class Socket:
    """Has the kernel's count of bytes received on a connection."""

    def __init__(self, received):
        self.received = received

    def getsockopt(self, level, option, size):
        assert (level, option, size) == (6, 11, 136)
        return bytes(128) + self.received.to_bytes(8, sys.byteorder)


def make_worker(n, **more):
    """Worker n; each of its numbers is 100 n plus another number."""
    def ten(i):
        return 100 * n + i

    async def actor_execute(**_):
        return {"status": "OK"}

    state = Thing(nthreads=ten(1), executing_count=ten(2), ready=range(ten(3)), long_running=range(ten(4)), in_flight_tasks_count=ten(5),
                  tasks=range(ten(6)), executed_count=ten(7), nbytes=ten(8), actors={})
    data = Thing(fast=Thing(total_weight=ten(9)), spilled_total=Thing(disk=ten(10), memory=1))
    monitor = Thing(quantities={"memory": [1, ten(11)], "cpu": [2, ten(12)]})
    made = Recorder(**{"state": state, "data": data, "monitor": monitor, "memory_manager": Thing(memory_limit=ten(13)), "name": n,
                    "status": Thing(name="running"), "address": f"tcp://127.0.0.{n}:1", "scheduler": Thing(address="tcp://s:8786"),
                    "batched_stream": Thing(comm=Thing(stream=Thing(socket=Socket(20)))), "nanny": None, "heartbeat_active": True, "digests_total": {}, "loop": Loop(),
                    "handlers": {"actor_execute": actor_execute}, **more})
    made.logged, made.freed = [], (freed := [])
    made.stream_handlers = {"free-keys": lambda **message: freed.append(message) or len(freed)}
    return made


def samples(probe):
    return [json.loads(text) for kind, text in probe.shim.put if kind == 1]


def facts(probe):
    return [json.loads(text) for kind, text in probe.shim.put if kind == 0]


def test_a_worker_says_its_own_numbers(probe, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1234.5)
    worker = make_worker(3)
    probe.start(worker)
    said, = samples(probe)
    assert said == {
        "t": 1234.5, "workers": 1, "nthreads": 301, "executing": 302, "ready": 303, "long_running": 304, "in_flight_data": 305,
        "tasks": 306, "executed": 307, "nbytes_managed": 308, "fast_bytes": 309, "spilled_bytes": 310, "memory_bytes": 311,
        "memory_limit_bytes": 313, "cpu_percent": 312, "status": "running", "last_seen": 1234.5, "closing": None, "taken_back": [],
        "scheduler": None, "gc_seconds": None, "stream_bytes": 20, "digests": [], "digests_cut": 0, "digests_whole": True}
    assert [*said][-3:] == ["digests", "digests_cut", "digests_whole"]  # collector/model/digest_rows.c expects them there


def test_two_workers_of_a_process_are_added_up(probe):
    workers = [make_worker(3), make_worker(5)]
    for worker in workers:
        probe.start(worker)
    said = samples(probe)[-1]
    assert [said[name] for name in ("workers", "nthreads", "executing", "ready", "long_running", "in_flight_data", "tasks", "executed",
                                    "nbytes_managed", "fast_bytes", "spilled_bytes")] == [2, *range(802, 821, 2)]
    # of the process: the first worker's monitor, and the lowest limit
    assert (said["memory_bytes"], said["cpu_percent"], said["memory_limit_bytes"]) == (311, 312, 313)
    assert said["status"] == "running, running"
    assert facts(probe)[-1]["worker_address"] == "tcp://127.0.0.3:1, tcp://127.0.0.5:1"


def test_what_a_worker_lacks_is_unknown(probe):
    worker = make_worker(1)
    del worker.state.executing_count, worker.state.ready, worker.data.fast
    worker.data.spilled_total.disk, worker.memory_manager.memory_limit = None, 0
    worker.monitor.quantities, worker.heartbeat_active = {"memory": [], "cpu": ["much"]}, False
    probe.start(worker)
    said, = samples(probe)
    assert [said[name] for name in ("executing", "ready", "fast_bytes", "spilled_bytes", "memory_bytes", "cpu_percent",
                                    "memory_limit_bytes")] == [None] * 7
    assert said["last_seen"] is None
    worker.data.spilled_total = None  # this Dask does not spill
    probe._tick(probe._members[0])
    assert samples(probe)[-1]["spilled_bytes"] == 0


def test_bytes_of_the_scheduler(probe):
    """Over all workers and connections: a new one starts at 0, and a closed one leaves its count."""
    workers = [make_worker(3), make_worker(5)]
    for worker in workers:
        probe.start(worker)
    said = [samples(probe)[-1]["stream_bytes"]]
    for first, second in ((5000, 100), (2, 100), (None, 100), (7, 300)):
        workers[0].batched_stream.comm.stream.socket = None if first is None else Socket(first)
        workers[1].batched_stream.comm.stream.socket.received = second
        probe._members[0].callback.function()
        said.append(samples(probe)[-1]["stream_bytes"])
    workers[1].status.name = "closed"
    probe._members[0].callback.function()
    assert [*said, samples(probe)[-1]["stream_bytes"]] == [40, 5100, 5102, 5102, 5307, 5307]
    third = make_worker(7)
    third.batched_stream.comm = None  # not yet connected
    probe.start(third)
    assert samples(probe)[-1]["stream_bytes"] == 5307
    third.batched_stream = None
    probe._members[0].callback.function()
    assert samples(probe)[-1]["stream_bytes"] == 5307


@pytest.mark.parametrize("stream", [None, types.SimpleNamespace(), types.SimpleNamespace(comm=types.SimpleNamespace())])
def test_bytes_of_another_connection_are_unknown(probe, stream):
    probe.start(make_worker(1, batched_stream=stream))
    assert samples(probe)[-1]["stream_bytes"] is None


def test_garbage_collections(probe, monkeypatch):
    worker = make_worker(1)
    probe.start(worker)
    for name, seconds in (("distributed.utils_perf", 2.5), ("distributed.gc", 3.5)):  # the old name, and today's
        assert samples(probe)[-1]["gc_seconds"] in (None, 2.5)
        timer = types.SimpleNamespace(_duration_total=int(seconds * 1e9))
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(_gc_diagnosis=types.SimpleNamespace(_fractional_timer=timer)))
        probe._members[0].callback.function()
        assert samples(probe)[-1]["gc_seconds"] == seconds


def test_one_that_lacks_a_number_makes_the_sum_unknown(probe):
    workers = [make_worker(3), make_worker(5)]
    workers[1].state.nbytes = None
    for worker in workers:
        probe.start(worker)
    assert (samples(probe)[-1]["nbytes_managed"], samples(probe)[-1]["executing"]) == (None, 804)


def test_facts(probe):
    worker = make_worker(4)
    probe.start(worker)
    said, = facts(probe)
    assert said["python"] == sys.version.split()[0]
    assert [said[name] for name in ("worker_address", "worker_name", "nthreads", "memory_limit_bytes", "scheduler", "nanny")] == [
        "tcp://127.0.0.4:1", "4", 401, 413, "tcp://s:8786", False]
    from importlib import metadata
    for name in ("dask", "distributed", "coffea", "uproot", "awkward", "numpy"):
        try:
            assert said[name] == metadata.version(name)
        except metadata.PackageNotFoundError:
            assert said[name] is None


def test_facts_are_put_again_when_an_address_comes(probe):
    worker = make_worker(4, address=None, nanny="tcp://n:1")
    probe.start(worker)
    member, = probe._members
    assert [f["worker_address"] for f in facts(probe)] == [None]
    assert facts(probe)[0]["nanny"] is True
    worker.address = "tcp://127.0.0.4:1"
    member.callback.function()
    member.callback.function()
    assert [f["worker_address"] for f in facts(probe)] == [None, "tcp://127.0.0.4:1"]
    assert (member.callback.running, member.callback.milliseconds) == (True, 500)


def test_digests(probe):
    first, second = make_worker(1), make_worker(2)
    first.digests_total = {("execute", "span", "prefix", "thread-cpu", "seconds"): 1.5, ("get-data", "network", "bytes"): 7,
                           ("execute", None, "prefix", "other", "seconds"): 2, "latency": 3, ("two", "words"): 4,
                           ("execute", "span", "prefix", "no number", "seconds"): None}
    second.digests_total = {("execute", "span", "prefix", "thread-cpu", "seconds"): 2.25}
    for worker in (first, second):
        probe.start(worker)
    expected = [["get-data", None, None, "network", "bytes", 7], ["execute", None, "prefix", "other", "seconds", 2],
                ["execute", "span", "prefix", "thread-cpu", "seconds", 3.75]]
    assert (samples(probe)[-1]["digests"], samples(probe)[-1]["digests_cut"]) == (expected, 0)
    second.status.name = "closed"  # its past work stays, its current state does not
    member = probe._members[1]
    probe._members[0].callback.function()
    assert samples(probe)[-1]["digests"][-1][-1] == 3.75
    assert (samples(probe)[-1]["workers"], samples(probe)[-1]["executing"], member.callback.running) == (1, 102, False)
    third = make_worker(3)
    third.digests_total = dict(second.digests_total)
    probe.start(third)
    third.status.name = "failed"
    probe._members[0].callback.function()
    assert samples(probe)[-1]["digests"][-1][-1] == 6.0


def test_too_many_digests_are_cut_by_spans(probe):
    """Digests without a span are kept, then the spans that changed last."""
    worker, size = make_worker(1), 958 + 40 + len("execute" + "s0" + "a" + "u")  # of each row; 58,000 for all
    worker.digests_total = {("execute", f"s{i % 10}", f"{i:0958}", "a", "u"): i for i in range(70)}
    probe.start(worker)
    said, = samples(probe)
    assert len(said["digests"]) == 58_000 // size // 7 * 7 and len(said["digests"]) + said["digests_cut"] == 70
    seen = [row[1] for row in said["digests"]]
    assert all(seen.count(span) == 7 for span in seen)
    missing = next(f"s{i}" for i in range(10) if f"s{i}" not in seen)
    worker.digests_total[("execute", missing, f"{int(missing[1:]):0958}", "a", "u")] += 1
    worker.digests_total[("get-data", "serialize", "seconds")] = 5
    probe._members[0].callback.function()
    rows = samples(probe)[-1]["digests"]
    assert rows[0] == ["get-data", None, None, "serialize", "seconds", 5]
    assert [row[1] for row in rows[1:8]] == 7 * [missing]
    assert {row[1] for row in rows[8:]} < set(seen)


def test_the_room_for_digests(probe):
    """58,000 characters, including 40 for the rest of each row: one more is too much."""
    worker, room = make_worker(1), 58_000 - 2 * (40 + len("execute" + "s0" + "a" + "u"))
    worker.digests_total = {("execute", f"s{i}", "p" * (room // 2), "a", "u"): i for i in range(2)}
    probe.start(worker)
    assert [samples(probe)[-1][name] for name in ("digests_cut", "digests_whole")] == [0, True]
    worker.digests_total[("execute", "s1", "p" * (room // 2 + 1), "a", "u")] = worker.digests_total.popitem()[1]
    probe._members[0].callback.function()
    assert [samples(probe)[-1][name] for name in ("digests_cut", "digests_whole")] == [1, True]
    worker.digests_total[("execute", None, "p" * 58_000, "a", "u")] = 5
    probe._members[0].callback.function()
    assert [samples(probe)[-1][name] for name in ("digests_cut", "digests_whole")] == [3, False]


def test_only_the_first_worker_samples(probe):
    for n in (1, 2):
        worker = make_worker(n)
        setattr(probe, f"kept{n}", worker)
        probe.start(worker)
    before = len(samples(probe))
    probe._members[1].callback.function()
    assert len(samples(probe)) == before
    probe._members[0].callback.function()
    assert len(samples(probe)) == before + 1


def test_a_worker_that_is_gone_says_nothing(probe):
    probe.start(make_worker(1))
    before = len(samples(probe))
    probe.shim.put.clear()
    for member in list(probe._members):
        member.callback.function()
    assert before <= 1 and not samples(probe) and not probe._members


def test_an_error_is_named(probe, monkeypatch):
    worker = make_worker(1)
    probe.start(worker)
    monkeypatch.setattr("time.time", lambda: object())
    probe._members[0].callback.function()
    assert samples(probe)[-1] == {"error": "TypeError"}


def execute_async(worker, key, task, name="_run_task_async"):
    """As in Worker.execute: a task of an old graph has no key, but the caller has."""
    async def execute(self, key):
        return await getattr(sys.modules["distributed.worker"], name)(task)

    return asyncio.run(execute(worker, key))


@pytest.mark.parametrize("name", ["_run_task_async", "apply_function_async"])  # in newer and in older versions
@pytest.mark.parametrize("good", [True, False])
def test_async_tasks(probe, good, name):
    worker, other = make_worker(1), make_worker(2)
    probe.start(worker)
    probe.start(other)  # a module is wrapped once
    message = execute_async(worker, "of-caller", Thing(good=good, key="of-task"), name)
    assert message == {"op": "task-finished" if good else "task-erred"}  # Dask gets what it would get without crema
    execute_async(worker, "of-caller", Thing(good=good), name)
    assert probe.shim.begun == [(1, "of-task", worker), (1, "of-caller", worker)]
    assert probe.shim.ended == [("mark 1", good), ("mark 2", good)]
    wrapped = getattr(sys.modules["distributed.worker"], name)
    assert (wrapped.__name__, wrapped.__qualname__, wrapped.__module__) == (name, name, "distributed.worker")
    with pytest.raises(AttributeError):
        execute_async(worker, "of-caller", Thing(), name)
    assert probe.shim.ended[-1] == ("mark 3", False)


class Actor:
    def quick(self):
        pass

    async def waits(self):
        pass


def test_methods_of_actors(probe):
    worker, actor, answer = make_worker(1), Actor(), {"status": "OK"}

    async def original(**_):
        if answer["status"] == "raises":
            raise KeyError
        return answer

    worker.handlers["actor_execute"] = original
    worker.state.actors["Counter-1"] = actor
    probe.start(worker)
    execute = worker.handlers["actor_execute"]
    assert asyncio.run(execute(actor="Counter-1", function="quick")) is answer  # in a thread: the hooks of task start and end see it
    asyncio.run(execute(actor="Counter-1", function="waits"))
    asyncio.run(execute(actor="Counter-1", function="quick", kwargs={"separate_thread": False}))
    asyncio.run(execute(actor="nobody", function="quick"))
    assert probe.shim.begun == [(3, "Counter.waits", worker, "Counter-1"), (3, "Counter.quick", worker, "Counter-1")]
    answer["status"] = "error"
    asyncio.run(execute(actor="Counter-1", function="waits"))
    answer["status"] = "raises"
    with pytest.raises(KeyError):
        asyncio.run(execute(actor="Counter-1", function="waits"))
    assert probe.shim.ended == [("mark 1", True), ("mark 2", True), ("mark 3", False), ("mark 4", False)]
    assert probe.actor_key(worker, actor.quick) == "Counter-1"
    assert probe.actor_key(worker, Actor().quick) is None


def test_tasks_of_other_executors(probe):
    worker, module = make_worker(1), sys.modules["distributed.worker"]
    probe.start(worker)
    loop = worker.loop

    def execute(self, key, function):
        return loop.run_in_executor("pool", function, 1, 2)

    assert isinstance(execute(worker, "any", print), Future)
    assert not probe.shim.begun
    futures = [execute(worker, "k", module._run_task_simple) for _ in range(5)]
    assert probe.shim.begun == [(4, "k", worker)] * 5
    assert loop.calls == [("pool", print, (1, 2))] + [("pool", module._run_task_simple, (1, 2))] * 5
    futures[0].value = {"op": "task-finished", "start": 10.0, "stop": 12.5}
    futures[1].value = {"op": "task-erred", "start": 10.0, "stop": 11.0}
    futures[2].value = {}
    futures[3].problem, futures[4].gone = ValueError(), True
    for future in futures:
        future.callbacks[0](future)
    assert probe.shim.ended == [("mark 1", True, 2.5), ("mark 2", False, 1.0), ("mark 3", True, -1.0), ("mark 4", False, -1.0),
                                ("mark 5", False, -1.0)]
    again = make_worker(2, loop=loop)
    probe.start(again)  # a loop is wrapped once
    execute(worker, "k", module._run_task_simple)
    assert len(probe.shim.begun) == 6


def test_connections_are_named(probe):
    probe.start(make_worker(1))
    stream = Thing(socket=Thing(fileno=lambda: 42))
    made = TCP(stream, "more")
    assert probe.shim.comms == [42] and (made.stream, made.args) == (stream, ("more",))
    assert not probe.shim.notes


def test_why_a_worker_is_closed(probe):
    worker = make_worker(1)
    probe.start(worker)
    worker.log_event("topic", {"action": "other", "reason": "none"})
    worker.log_event("topic", "text")
    assert len(samples(probe)) == 1
    assert worker.log_event("topic", {"action": "closing-worker", "reason": "scheduler-close"}) == "logged"
    assert [said["closing"] for said in samples(probe)] == [None, "scheduler-close"]
    assert [message for _, message in worker.logged] == [{"action": "other", "reason": "none"}, "text",
                                                         {"action": "closing-worker", "reason": "scheduler-close"}]


def test_tasks_that_a_client_takes_back(probe, monkeypatch):
    worker = make_worker(1)
    states = ["waiting", "ready", "constrained", "executing", "long-running", "resumed", "memory", "error", "released", "flight"]
    worker.state.tasks = {f"k{i}": Thing(state=name, span_id="s1" if i else "s0") for i, name in enumerate(states)}
    probe.start(worker)
    clock = [100.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    messages = [{"keys": [*worker.state.tasks, "gone", ["no key"]], "stimulus_id": "remove-client-1.5"},
                {"keys": ["k1"], "stimulus_id": "client-releases-keys-2"}, {"keys": ["k2"], "stimulus_id": "cancel-key-2"},
                {"keys": ["k1", "k2"], "stimulus_id": "worker-lost-3"}, {"keys": ["k6"], "stimulus_id": "client-releases-keys-4"}, {"keys": None}]
    told = [len(samples(probe))]
    for n, message in enumerate(messages, 1):
        assert worker.stream_handlers["free-keys"](**message) == n
        told.append(len(samples(probe)))
    assert worker.freed == messages  # Dask gets what it would get without crema
    assert [b - a for a, b in zip(told, told[1:])] == [1, 1, 1, 0, 0, 0]  # sent at once: the worker may be removed next
    clock[0] = 102.5
    probe._tick(probe._members[0])
    taken = samples(probe)[-1]["taken_back"]
    assert [row[:4] for row in taken] == [["s0", True, 1, 2.5], ["s1", True, 5, 2.5], ["s1", False, 2, 2.5]]
    assert taken[0][4] == ["8be0e07b562230e"] and [len(row[4]) for row in taken] == [1, 5, 2]
    assert probe._hash("a") == "af63dc4c8601ec8c"  # the published value of FNV-1a


def test_what_cannot_be_wrapped_is_noted(probe):
    worker = make_worker(1)
    del worker.handlers["actor_execute"], worker.loop, worker.stream_handlers
    probe.start(worker)
    assert probe.shim.notes == ["actors are not seen: KeyError", "executors are not seen: AttributeError", "recalls are not seen: AttributeError"]
    assert samples(probe)[0]["executing"] == 102


class Scheduler:
    """As a worker sees it; runs functions as the scheduler does, on tasks made by hand."""

    address = "tcp://s:8786"

    def __init__(self, monkeypatch, *tasks):
        self.real = Thing(id="Scheduler-1", handlers={}, clients={"fire-and-forget": 1, "Client-a": 1, "Client-worker-b": 1}, workers=["w"] * 4, tasks={}, plugins={})
        self.calls, self.refuses = [], None
        for name in ("distributed.diagnostics", "distributed.diagnostics.plugin", "distributed.protocol", "distributed.protocol.pickle"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules["distributed.diagnostics.plugin"].SchedulerPlugin = object
        sys.modules["distributed.protocol.pickle"].dumps = lambda function: function
        for key, state in tasks:
            self.real.tasks[key] = Thing(state=state, prefix=Thing(name=key.split("-")[0]))

    async def register_scheduler_plugin(self, plugin, name, idempotent):
        self.calls.append("register_scheduler_plugin")
        if self.refuses:
            raise self.refuses
        if name not in self.real.plugins:
            plugin.start(self.real)
            self.real.plugins[name] = plugin

    async def crema_count_2(self, asker):
        self.calls.append(asker)
        return self.real.handlers["crema_count_2"](asker=asker)

    def move(self, key, *states):
        task = self.real.tasks.setdefault(key, Thing(state="released", prefix=Thing(name=key.split("-")[0])))
        for state in states:
            before, task.state = task.state, state
            for plugin in self.real.plugins.values():
                plugin.transition(key, before, state, stimulus_id="s", worker="w")


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    for name in ("time.time", "time.monotonic"):
        monkeypatch.setattr(name, lambda: now[0])
    return now


def ask(probe, worker, clock, seconds=1):
    async def tick():
        probe._members[0].callback.function()
        probe._ask_if_due(worker)  # one request at a time
        if probe._ask["under_way"]:
            await probe._ask["under_way"]

    clock[0] += seconds
    asyncio.run(tick())
    return probe._told_by_scheduler()


def test_what_the_scheduler_counts(probe, monkeypatch, clock):
    scheduler = Scheduler(monkeypatch, ("old-1", "processing"), ("old-2", "memory"))
    worker = make_worker(1, scheduler=scheduler)
    probe.start(worker)
    assert ask(probe, worker, clock, 0.9) is None and not scheduler.calls
    assert ask(probe, worker, clock) == {"id": "Scheduler-1", "clients": 1, "prefixes": [["old", 1, 0, 0, None]], "age": 0}
    for i in range(5):
        scheduler.move(f"chunk-{i}", "waiting", "processing")
    clock[0] += 10
    scheduler.move("chunk-0", "memory", "released", "forgotten")
    scheduler.move("chunk-1", "erred")
    scheduler.move("chunk-2", "released", "waiting", "queued", "processing")  # its worker was lost
    scheduler.move("chunk-3", "released", "forgotten")  # it was cancelled
    clock[0] += 0.5
    assert ask(probe, worker, clock, 0)["prefixes"] == [["old", 1, 0, 10.5, None], ["chunk", 2, 2, 10.5, 0.5]]
    assert (ask(probe, worker, clock, 1.5)["age"], scheduler.calls) == (1.5, ["register_scheduler_plugin", worker.address, worker.address])
    for key in ("old-1", "chunk-2", "chunk-4"):
        scheduler.move(key, "memory")
    assert ask(probe, worker, clock, 1)["prefixes"] == []  # nothing is left to do
    scheduler.move("next-1", "waiting")
    assert ask(probe, worker, clock, 2)["prefixes"] == [["next", 1, 0, 2, None]]
    scheduler.move("next-1", "processing", "released", "waiting")  # the only task, whose worker was lost
    assert ask(probe, worker, clock, 2)["prefixes"] == [["next", 1, 0, 4, None]]


def test_many_prefixes_of_the_scheduler(probe, monkeypatch, clock):
    scheduler = Scheduler(monkeypatch)
    worker = make_worker(1, scheduler=scheduler)
    probe.start(worker)
    ask(probe, worker, clock)
    for i in range(40):
        scheduler.move(f"{i}{'x' * 100}-1", "waiting")
    rows = ask(probe, worker, clock, 2)["prefixes"]
    assert len(rows) == 17 and rows[-1][:3] == ["other", 24, 0] and len(rows[0][0]) == 64
    scheduler.move(f"39{'x' * 100}-1", "memory")
    assert ask(probe, worker, clock, 2)["prefixes"][-1][:3] == ["other", 23, 1]


def test_one_worker_asks(probe, monkeypatch, clock):
    scheduler = Scheduler(monkeypatch, ("task-1", "waiting"))
    worker = make_worker(1, scheduler=scheduler)
    probe.start(worker)
    asyncio.run(scheduler.register_scheduler_plugin(probe._counter(), "crema_count_2", True))
    scheduler.calls.clear()
    assert scheduler.real.handlers["crema_count_2"](asker="another") == {"id": "Scheduler-1", "clients": 1, "prefixes": [["task", 1, 0, 0, None]]}
    scheduler.real.workers = range(200)
    assert ask(probe, worker, clock, 9) is None and len(scheduler.calls) == 2
    assert ask(probe, worker, clock, 19) is None and len(scheduler.calls) == 2  # with 200 workers, ten requests per second
    assert ask(probe, worker, clock, 1.5)["clients"] == 1
    assert len(scheduler.real.plugins) == 1


def test_no_question_beside_dasks_own(probe, monkeypatch, clock):
    """Two requests at a time take two connections, which Dask keeps."""
    scheduler = Scheduler(monkeypatch, ("task-1", "waiting"))
    worker = make_worker(1, scheduler=scheduler)
    probe.start(worker)
    idle, beat = {scheduler.address: set()}, Thing(_next_timeout=0, io_loop=Thing(time=lambda: clock[0]))
    worker.rpc, worker.periodic_callbacks = Thing(available=idle), {"heartbeat": beat}
    probe._ask["next"] = 0
    probe._ask_if_due(worker)
    assert probe._ask["under_way"] is None  # the only connection is in use
    idle[scheduler.address].add("connection")
    beat._next_timeout = clock[0] + 0.1
    probe._ask_if_due(worker)
    assert probe._ask["under_way"] is None  # and soon will be
    beat._next_timeout, probe._ask["put_off"] = clock[0] + 1.5, 0
    assert ask(probe, worker, clock)["clients"] == 1
    calls = len(scheduler.calls)
    idle.clear()
    ask(probe, worker, clock, 3)
    assert len(scheduler.calls) == calls  # in both of its turns it is put off
    ask(probe, worker, clock)
    assert len(scheduler.calls) == calls + 1  # but not forever


def test_a_scheduler_that_refuses(probe, monkeypatch, clock):
    scheduler = Scheduler(monkeypatch)
    worker = make_worker(1, scheduler=scheduler)
    probe.start(worker)
    scheduler.refuses = OSError()  # not reachable: it retries later
    assert ask(probe, worker, clock) is None and ask(probe, worker, clock, 5) is None and len(scheduler.calls) == 1
    scheduler.refuses = ValueError()  # it never retries
    assert ask(probe, worker, clock, 6) is None and ask(probe, worker, clock, 100) is None and len(scheduler.calls) == 2
    monkeypatch.setenv("CREMA_ASK_SCHEDULER", "off")
    probe._ask_from_now()
    worker.status.name = "closing"
    assert ask(probe, worker, clock, 100) is None and len(scheduler.calls) == 2
