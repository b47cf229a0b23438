"""The Python package without Dask and workers: crema.measure() around a run whose journal was made by hand, and how it waits for the run,
with clocks, a client and a scheduler that the tests control. The numbers are those of test_exports.py."""

import contextlib
import json
import os
import re
import socket
import sys
import types
import warnings
from collections import deque, namedtuple
from datetime import datetime

import pytest
import test_exports
import test_reports  # sets the path to frames.py
import frames

sys.path.insert(0, str(test_reports.ROOT / "python"))
import crema
import crema.instrument
import crema.measurement
import crema.program
import crema.wait
from crema import outputs
from crema.folder import json_ready

BEGIN = frames.BASE_NS / 1e9


class Clock:
    """Replaces a module's `time`: advances only in sleep()."""

    def __init__(self, now=1000.0):
        self.now, self.slept = now, 0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now, self.slept = self.now + seconds, self.slept + 1


# --- waiting

def task(key, status="ok"):
    return {"key": key, "status": status}


def run_of(tasks, running=0, start=100.0, **worker):
    worker = {"goodbye": False, "silent": False, "last_seen": 51.2, "address": "a", **worker}
    return {"tasks": tasks, "workers": [worker], "run_info": {"running_attempts": running, "start": start}}


def expected(tasks=2, least=0, all_ran=True, workers=("a",), idle=False):
    return {"tasks": tasks, "least": least, "all_ran": all_ran, "workers": list(workers), "idle": idle}


TWO = [task("x"), task("y"), task("y", "erred")]


@pytest.fixture
def waited(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(crema.wait, "time", clock)

    def go(found, wanted, limit=20.0, **more):
        """(data, warning, seconds waited)"""
        asked = []

        def report_json(*arguments, directory):
            asked.append((arguments, directory))
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(crema.wait, "report_json", report_json)
        began = clock.now
        data, warning = crema.wait.wait("r", 50.0, wanted, limit, "d", **more)
        assert set(asked) == {(("--run", "r"), "d")} and len(asked) == round((clock.now - began) / 0.3) + 1
        return data, warning, pytest.approx(clock.now - began, abs=0.301) if clock.now > began else 0

    return go


@pytest.mark.parametrize("worker", [{}, {"last_seen": 0, "goodbye": True}, {"last_seen": None, "silent": True}])
def test_wait_is_over_at_once(waited, worker):
    data = run_of(TWO, **worker)
    for wanted in (expected(), expected(tasks=None), expected(tasks=0), expected(tasks=1)):
        assert waited(data, wanted) == (data, None, 0)


LATE = "the records of this run have not all arrived after 20 s, so its numbers may still grow; is 'crema collect' running?"


@pytest.mark.parametrize("more", [{"last_seen": 51.19}, {"last_seen": None}, {"running": 1}])
def test_wait_for_signs_of_life(waited, more):
    data = run_of(TWO, **more)
    assert waited(data, expected()) == (data, LATE, 20.1)
    empty = run_of([])
    assert waited(empty, expected()) == (empty, LATE, 20.1)


def test_wait_for_stray_tasks(waited):
    data = run_of([*TWO, task("z", None), task("u", "running")])
    assert waited(data, expected(3)) == (data, "2 of 3 tasks of this run were measured", 3.15)
    line = "2 of 3 tasks of this run were measured; workers without crema: b, c"
    assert waited(data, expected(3, workers="abc")) == (data, line, 3.15)
    assert waited(data, expected(3, workers="abcdefg"))[1].endswith("workers without crema: b, c, d, e, f ...")
    assert waited(data, expected(3, workers="abcdef"))[1].endswith("workers without crema: b, c, d, e, f")
    good = run_of([task("x")])
    assert waited(good, expected(3, least=1, all_ran=False)) == (good, None, 3.15)  # two were cancelled
    assert waited(good, expected(3, least=2, all_ran=False))[1] == "1 of 3 tasks of this run were measured"
    assert waited(good, expected(3, least=0, all_ran=False, workers="ab"))[1] is not None
    assert waited(data, expected(3, all_ran=False)) == (data, None, 0)  # one failed: others did not start


NOTHING = ("nothing was measured: {}. In a notebook, call crema.preload() before you create the cluster; elsewhere start the workers with 'crema run -- dask worker ...'; if the collector writes to another folder, set it with dir= or CREMA_DIR")


class Workers:
    """A client whose workers report whether they have the library and in which process they are."""

    def __init__(self, said):
        self.said = said

    async def _run(self):
        pass

    def sync(self, function, look, **_):
        assert function == self._run and isinstance(look(), tuple)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


HERE, THERE = (socket.gethostname(), os.getpid()), ("elsewhere", os.getpid())


@pytest.mark.parametrize("said, line", [
    ({"a": (False, THERE), "b": (True, THERE)}, "1 of 2 workers run without crema's library. In a notebook, call crema.preload()"),
    ({"a": (False, HERE)}, r"1 of 1 workers run without crema's library. The workers are in this process \(processes=False\)"),
    ({"a": (False, HERE), "b": (False, THERE)}, "2 of 2 workers run without crema's library. In a notebook"),
    ({"a": (True, THERE), "b": OSError("gone")}, r"the workers have crema's library, but none of their records are here \(no journal\)"),
    ({"b": OSError("gone")}, "no journal. In a notebook"), (TimeoutError("slow"), "no journal. In a notebook")])
def test_why_there_is_nothing(waited, said, line):
    data, warning, _ = waited(crema.CremaError("crema: no journal"), expected(), client=Workers(said))
    assert data is None and re.match(f"nothing was measured: {line}", warning) and warning.count("crema: ") == 0


def test_wait_for_nothing(waited):
    gone = crema.CremaError("no journal")
    assert waited(gone, expected()) == (None, NOTHING.format("no journal"), 6.15)
    assert waited(gone, expected(), 2.0) == (None, NOTHING.format("no journal"), 2.15)
    assert waited(gone, expected(idle=True))[1].startswith("nothing was measured: no task ran for this block. It submitted none, or only")
    old = run_of(TWO)
    assert waited(old, expected(), begun=100.1) == (None, NOTHING.format("no task of this run was recorded"), 6.15)
    assert waited(old, expected(), begun=100.0) == (old, None, 0)
    unknown = run_of(TWO, start=None)
    assert waited(unknown, expected(), begun=100.1) == (unknown, None, 0)


# --- a client

class Scheduler:
    def __init__(self, states, log, room=10):
        group = namedtuple("Group", "name")
        self.extensions = {"spans": types.SimpleNamespace(spans={"span-1": types.SimpleNamespace(states=states, groups=[group("work")])})}
        self.tasks = {}
        self.transition_log, self.workers = deque(log, room), {"k": types.SimpleNamespace(address="tcp://w0:1"), "l": types.SimpleNamespace(address="tcp://w1:1")}


def entry(key, before="processing", after="memory"):
    return key, before, after


LOG = [entry("work-0"), entry("work-1", after="erred"), entry("work-2", after="released"), entry("work-3", "waiting"), entry("other-4"), entry("work-0")]
STATES = {"memory": 1, "erred": 2, "released": 3, "forgotten": 4, "waiting": 50}


class Client:
    def __init__(self, scheduler, ahead=0.0):
        self.scheduler, self.ahead = scheduler, ahead

    def run_on_scheduler(self, function, **more):
        if more:
            return function(dask_scheduler=self.scheduler, **more)
        return function() + self.ahead


@pytest.fixture
def dask(monkeypatch):
    """The parts of `distributed` that the client's side needs."""
    module, utils = types.ModuleType("distributed"), types.ModuleType("distributed.utils")
    module.spans = []

    class Span:
        def __init__(self, name):
            module.spans.append(name)

        def __enter__(self):
            return "span-1"

        def __exit__(self, *how):
            module.spans.append(how[0])

    @contextlib.contextmanager
    def annotate(**annotations):
        assert annotations == {"crema_span": "span-1"}
        yield

    monkeypatch.setitem(sys.modules, "dask", types.SimpleNamespace(annotate=annotate))
    module.span, utils.key_split_group = Span, lambda key: key.split("-")[0]
    monkeypatch.setitem(sys.modules, "distributed", module)
    monkeypatch.setitem(sys.modules, "distributed.utils", utils)
    return module


def test_what_the_scheduler_says(dask):
    def told(scheduler, span="span-1"):
        return crema.wait.told_by_scheduler(Client(scheduler), span)

    workers = ["tcp://w0:1", "tcp://w1:1"]
    assert told(Scheduler(STATES, LOG)) == {"tasks": 2, "least": 2, "all_ran": True, "workers": workers, "idle": False}
    assert told(Scheduler(STATES, LOG, room=6)) == {"tasks": 10, "least": 2, "all_ran": False, "workers": workers, "idle": False}
    assert told(Scheduler({"memory": 1}, LOG, room=6)) == {"tasks": 1, "least": 1, "all_ran": True, "workers": workers, "idle": False}
    assert told(Scheduler({"memory": 1}, LOG))["tasks"] == 1
    shared = Scheduler(STATES, LOG)
    shared.tasks = {"work-0": types.SimpleNamespace(annotations={"crema_span": "span-0"}), "work-1": types.SimpleNamespace(annotations=None)}
    assert told(shared)["tasks"] == 1
    for state in ("erred", "released", "forgotten"):
        assert told(Scheduler({state: 7}, LOG, room=6)) == {"tasks": 7, "least": 2, "all_ran": False, "workers": workers, "idle": False}
    nothing = {"tasks": None, "least": 0, "all_ran": True, "workers": workers, "idle": False}
    assert told(Scheduler(STATES, LOG), "span-2") == {**nothing, "idle": True}
    bare = Scheduler(STATES, LOG)
    bare.extensions = {}
    assert told(bare) == nothing
    for client, span in ((None, "span-1"), (Client(None), None)):
        assert crema.wait.told_by_scheduler(client, span) == {**nothing, "workers": []}


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measure")
    made = frames.Journal(folder / "journal")
    test_exports.fill(made)
    made.write()
    return folder


class Times(Clock):
    """The client's clocks: a block of 12.5 s that starts half a second before the run, with a slow scheduler."""

    def __init__(self):
        super().__init__()
        self.real, self.counter = [BEGIN - 0.5, BEGIN + 12, BEGIN + 13, BEGIN + 13.2], [500.0, 512.5]

    def time(self):
        return self.real.pop(0) if len(self.real) > 1 else self.real[0]

    def perf_counter(self):
        return self.counter.pop(0)


@pytest.fixture
def times(monkeypatch):
    found = Times()
    monkeypatch.setattr(crema.measurement, "time", found)
    monkeypatch.setattr(crema.wait, "time", found)
    return found


RAN = [entry(f"work-{i}") for i in (0, 1, 2, 3, 5, 9)]


class AheadClient(Client):
    """Its scheduler's clock returns the same time on each call."""

    def run_on_scheduler(self, function, **more):
        return super().run_on_scheduler(function, **more) if more else BEGIN + 13.1 + self.ahead


def measured(journal, dask, ahead=0.0, **options):
    client = AheadClient(Scheduler({"memory": 6}, RAN), ahead)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with crema.measure(client, dir=journal, **options) as m:
            assert m.start_time == BEGIN - 0.5
    return m


REPORT = {"bytesread": 123_456, "entries": 500, "processtime": 2.5, "chunks": 3}


def test_a_measured_run(journal, dask, times):
    m = measured(journal, dask)
    assert dask.spans == ["crema", None] and m.span_id == "span-1" and m.warning is None and times.slept == 0
    assert (m.t_end - m.t_start, m.end_time) == (12.5, BEGIN + 12)
    plain = crema.load(dir=journal)
    assert m.metrics["wall_time"] == 12.5 and plain.metrics["wall_time"] == pytest.approx(3.95)
    assert m.get_metrics() is m.metrics
    assert m.metrics["num_tasks"] == 5 and m.metrics["total_events"] == 511 and m.metrics["total_bytes_read_coffea"] == plain.metrics["total_bytes_read_coffea"]
    m.set_coffea_report(({"out": 1}, REPORT), custom_metrics={"n": 5})
    assert m.metrics["custom_metrics"] == {"n": 5} and m.chunk_metrics == []
    compared = m.run.json["coffea_report"]
    assert {name: compared[name]["coffea"] for name in REPORT} == REPORT and compared["entries"]["workers"] == 511
    assert m.run.id == plain.id and m.run.metrics["wall_time"] == 12.5
    assert m.run.tasks["key"].tolist() == [t["key"] for t in plain.json["tasks"]]
    spans = m.span_metrics
    assert spans and all(len(key) == 4 for key in spans)
    assert {(*key, value) for key, value in spans.items()} == {tuple(row) for row in m.metrics["span_metrics"]}
    counts = m.tracking_data["worker_counts"]
    assert all(isinstance(t, datetime) for t in counts) and max(counts.values()) == 2
    points, samples = m.tracking_data["worker_memory"]["tcp://w0:1"], [(BEGIN + 0.599999 + p, 10**6 + 5000 * p) for p in range(3)]
    for t, value in points:  # one for each half second: the last sample before its end; before the first sample, the first one
        assert value == [v for at, v in samples if at < t.timestamp() + 0.5 or at == samples[0][0]][-1]
    assert len(points) == 10 and {v for _, v in points} == {v for _, v in samples}


def test_clocks_of_client_and_scheduler(journal, dask, times, monkeypatch):
    """The difference is known only to half of the time that the request took."""
    asked = []
    real = crema.measurement.report
    monkeypatch.setattr(crema.measurement, "report", lambda *a, **k: (asked.append(a), real(*a, **k))[1])
    for ahead, seen in ((40.0, 40.0), (0.11, 0.11), (0.09, 0.0), (-0.11, -0.11), (-0.09, 0.0)):
        times.__init__()
        measured(journal, dask, ahead).get_metrics()
        given = dict(zip(asked[-1], asked[-1][1:]))
        assert all(asked[-1].count(option) == 1 for option in ("--run", "--client-wall", "--client-start"))
        assert float(given["--client-start"]) == pytest.approx(BEGIN - 0.5 + seen, abs=2e-6) and given["--client-wall"] == "12.500000000"


def test_the_run_is_asked_first(journal, dask, times):
    assert measured(journal, dask).run.metrics["wall_time"] == 12.5


class Gone(Client):
    """A scheduler that does not answer."""

    def run_on_scheduler(self, function, **more):
        raise OSError("gone")


def test_without_a_scheduler(journal, dask, times, monkeypatch):
    with crema.measure(Gone(None), dir=journal) as m:
        pass
    assert m.warning is None and m.metrics["num_tasks"] == 5 and m._clock_ahead == 0

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    times.__init__()
    monkeypatch.setattr(crema.measurement, "wait", interrupted)
    with pytest.warns(RuntimeWarning, match="interrupted while waiting"), crema.measure(Gone(None), dir=journal) as m:
        pass
    assert m.warning == "interrupted while waiting for the last records: numbers may be missing"


def test_without_a_client(journal, times):
    """The last run, if it started no earlier than a second before the block."""
    with crema.measure(dir=journal) as m:
        pass
    assert m.span_id is None and m.metrics["wall_time"] == 12.5 and m._clock_ahead == 0
    times.__init__()
    times.real[0] = BEGIN + 1.5
    with pytest.warns(RuntimeWarning, match="no task of this run was recorded"):
        with crema.measure(dir=journal) as m:
            pass
    assert "no task of this run was recorded" in m.warning
    times.__init__()
    with crema.measure(dir=journal, wait_seconds=0) as m:
        pass
    assert repr(m) == "<crema measurement: the records have not been read yet>"
    assert m._json is None and m.wait() is True and m.wait(5) is True
    for dir in (journal / "none", None):
        times.__init__()
        with warnings.catch_warnings(record=True), crema.measure(dir=journal / "none", wait_seconds=0.5) as m:
            pass
        assert m.wait(1) is False


def test_workers_that_do_not_measure(journal, dask, times):
    times.real[-1] = BEGIN + 13.2
    scheduler = Scheduler({"memory": 7}, [*RAN, entry("work-10")])
    scheduler.workers["m"] = types.SimpleNamespace(address="tcp://w9:1")
    with pytest.warns(RuntimeWarning, match=r"^crema: 6 of 7 tasks of this run were measured; workers without crema: tcp://w9:1$"):
        with crema.measure(AheadClient(scheduler), dir=journal) as m:
            pass
    assert m.metrics["num_tasks"] == 5


TRACKED = {"file": "/data/a.root", "entry_start": 1000, "entry_stop": 1101, "branches_read_percent": 40.0, "timing": {"loop": 2.0}, "num_events": 1}


def test_saved(journal, dask, times, tmp_path, capsys):
    m = measured(journal, dask, track_workers=False)
    output = {outputs.KEY: [TRACKED], "n": 1}
    m.extract_metrics_from_output(output)
    m.record_chunk_metrics({**TRACKED, "file": "/data/b.root", "branches_read_percent": 20.0})
    m.record_section_metrics({"name": "s", "t": 1})
    assert output == {"n": 1}
    metrics = m.get_metrics()
    assert metrics["avg_branches_read_percent"] == 30 and metrics["raw_section_metrics"] == [{"name": "s", "t": 1}]
    rows = metrics["raw_chunk_metrics"]
    assert len(rows) == 6 and [r.get("measured") for r in rows] == [None] * 5 + [False] and sum("timing" in r for r in rows) == 2
    assert next(r for r in rows if r["entry_start"] == 1000)["num_events"] == 101
    assert metrics["sections"]["loop"] == {"count": 2, "type": "section", "total_duration": 4.0, "mean_duration": 2.0}
    assert metrics["sections"].keys() > {"loop"}
    assert metrics["tracking_data"] is None is m.tracking_data and metrics["track_workers"] is False
    folder = m.save_measurement(tmp_path, "one", {"a": 5})
    assert folder == tmp_path / "one" and json.loads((folder / "config.json").read_text())["a"] == 5
    found, start, end = crema.load_measurement(folder)
    assert (start, end) == (BEGIN - 0.5, BEGIN + 12) and found["wall_time"] == 12.5 and found["avg_branches_read_percent"] == 30
    assert found["raw_section_metrics"] == [{"name": "s", "t": 1}] and len(found["raw_chunk_metrics"]) == 6
    assert found["chunk_info"] == metrics["chunk_info"] and len(found["chunk_info"]) == 5
    assert all(isinstance(k, tuple) and len(k) == 3 and isinstance(v, tuple) for k, v in found["chunk_info"].items())
    with pytest.raises(TypeError, match="needs the folder"):
        m.save_measurement()
    m.output_dir = tmp_path / "named"
    assert m.save_measurement().parent == tmp_path / "named"
    capsys.readouterr()
    m.print_summary()
    text = capsys.readouterr().out
    assert "wall time 12.50 s (the client" in text and text.splitlines()[-1].split() == ["loop", "2", "4.000", "-", "-"]
    m.set_chunk_metrics(iter([TRACKED]))
    assert m.chunk_metrics == [TRACKED]
    m.set_chunk_metrics(None)
    assert m.chunk_metrics == [] and len(m.get_metrics()["raw_chunk_metrics"]) == 5 and "loop" not in m.metrics["sections"]
    m.print_summary()
    assert "from roastcoffea's trackers" not in capsys.readouterr().out


class Processor:
    """Its class already has the flag."""
    _roastcoffea_collect_metrics = "outer"


def test_around_the_block(journal, dask, times):
    p = Processor()
    m = crema.measure(AheadClient(Scheduler({"memory": 6}, RAN)), p, dir=journal)
    with m:
        assert (vars(p), Processor._roastcoffea_collect_metrics) == ({"_roastcoffea_collect_metrics": True}, True)
        with pytest.raises(crema.CremaError, match="has not ended"):
            m.get_metrics()
    assert (vars(p), Processor._roastcoffea_collect_metrics) == ({}, "outer")
    times.__init__()
    with pytest.raises(KeyError), crema.measure(AheadClient(None), dir=journal) as m:
        raise KeyError
    assert dask.spans[-2:] == ["crema", KeyError] and m._json is None
    del dask.span
    times.__init__()
    with pytest.warns(RuntimeWarning, match="CremaError: this Dask has no spans"), crema.measure(AheadClient(Scheduler({}, [])), dir=journal) as m:
        pass
    assert m.metrics["num_tasks"] == 5


def test_collector_of_metrics(journal, tmp_path):
    client = Client(None)
    for given in (client, types.SimpleNamespace(client=client)):
        m = crema.MetricsCollector(given, "dask", False, 2.5, "p", tmp_path, dir=journal, wait_seconds=3)
        assert (m.client, m.track_workers, m.worker_tracking_interval, m.processor_instance, m.output_dir, m.dir, m.wait_seconds) == (
            client, False, 2.5, "p", tmp_path, journal, 3)
    assert crema.MetricsCollector(types.SimpleNamespace()).client is None and crema.MetricsCollector(None).client is None
    m = crema.measure()
    assert (m.wait_seconds, m.worker_tracking_interval, m.track_workers, m.chunk_metrics, m.section_metrics) == (30.0, 1.0, True, [], [])


# --- runs and the program

def test_load(journal, tmp_path):
    run = crema.load(dir=journal)
    assert repr(run) == f"<crema run {run.id}: failed, 6 attempts, 6 at chunks, {len(run.json['findings'])} findings>" and run.id == run.json["run"] == crema.load("span-1", journal).id
    assert run.tracking_data == run.json["tracking_data"] and "worker_memory" in run.tracking_data
    tasks, chunks = run.tasks, run.chunks
    assert [t.timestamp() for t in tasks["start"]] == [pytest.approx(t["start"]) for t in run.json["tasks"]] and str(tasks["stop"].dtype).endswith("UTC]")
    assert chunks["entrystart"].tolist() == [c["entrystart"] for c in run.json["chunks"]] and len(tasks) == 6
    with pytest.raises(KeyError, match="no table 'run'; there are findings, findings_left_out, tasks, chunks"):
        run.table("run")
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run.json))
    assert crema.load(file).json == run.json == crema.load(str(file)).json
    with pytest.raises(crema.CremaError, match="no-such"):
        crema.load("no-such", journal)


def test_the_program(tmp_path, monkeypatch):
    def program(text):
        path = tmp_path / "crema"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        monkeypatch.setenv("CREMA_PROGRAM", str(path))

    program('printf "%s " "$@"')
    assert crema.program.report("a", 5, directory=tmp_path) == f"report --dir {tmp_path} a 5 "
    assert crema.program.report("a", directory=[tmp_path, "b"]) == f"report --dir {tmp_path} --dir b a " and crema.program.report("a") == "report a "
    program("echo '[1]'; echo warned >&2")
    assert crema.program.report_json("x") == [1]
    for text, said in (("echo one >&2; echo two >&2; exit 3", "two"), ("exit 3", "'crema report' ended with status 3")):
        program(text)
        for call in (crema.program.report, lambda: crema.load("x")):
            with pytest.raises(crema.CremaError) as error:
                call()
            assert str(error.value) == said
    program("""printf '{\n "run": "a-b",\n'; exec sleep 600""")
    with monkeypatch.context() as patch:
        patch.setattr(crema.program, "REPORT_SECONDS", 30)
        assert crema.load("a").id == "a-b"  # without the rest
        wide = '"x": "%01000000d", ' % 0
        for text in ('{"run":"a-b",%s"y":1}' % wide, '{\n\n%s"run": "a-b"}' % wide):  # an older program's, larger than a pipe
            (tmp_path / "text").write_text(text)
            program(f"cat '{tmp_path}/text'")
            assert crema.load("a").id == "a-b"
        for text in ("crema 0.0", "[]", "{}", ""):
            (tmp_path / "text").write_text(text)
            with pytest.raises(crema.CremaError, match="crema' printed no run as JSON"):
                crema.load("a")
    program("exec sleep 5")
    monkeypatch.setattr(crema.program, "REPORT_SECONDS", 0.2)
    for call in (crema.program.report, lambda: crema.load("x")):
        with pytest.raises(crema.CremaError, match="did not finish within 0.2 s"):
            call()
    for path in (tmp_path, tmp_path / "none"):
        monkeypatch.setenv("CREMA_PROGRAM", str(path))
        with pytest.raises(crema.CremaError, match="not an executable program"):
            crema.program.find()
    monkeypatch.delenv("CREMA_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert crema.program.find() == str(tmp_path / "crema")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert crema.program.find() == str(test_reports.ROOT / "build" / "crema")
    monkeypatch.setattr(crema.program, "__file__", str(tmp_path / "a" / "b" / "program.py"))
    monkeypatch.setattr(crema.program.sys, "executable", str(tmp_path / "python"))
    assert crema.program.find() == str(tmp_path / "crema")
    (tmp_path / "crema").unlink()
    with pytest.raises(crema.CremaError, match="not on PATH"):
        crema.program.find()


# --- names in a processor

def test_sections_reach_the_library(monkeypatch):
    calls = []
    monkeypatch.setattr(crema.instrument, "_begin", lambda name: (calls.append(("begin", name)), ("token", name))[1])
    monkeypatch.setattr(crema.instrument, "_begin_memory", lambda name: (calls.append(("memory", name)), ("mark", name))[1])
    monkeypatch.setattr(crema.instrument, "_end", lambda token: calls.append(("end", token)))
    monkeypatch.setattr(crema.instrument, "_value", lambda *args: calls.append(args))

    @crema.section("all")
    def work(a, b):
        """Documented."""
        return a - b

    assert work(7, b=2) == 5 and work.__name__ == "work" and calls == [("begin", "all"), ("end", ("token", "all"))]
    calls.clear()
    again = crema.track_time(None, "nested")
    with again as first, again, crema.memory("m") as second:
        crema.metric("jets", 3)
    assert first is again and second.name == "m"
    nested, mark = ("token", "nested"), ("mark", "m")
    assert calls == [("begin", "nested")] * 2 + [("memory", "m"), ("jets", 3), ("end", mark), ("end", nested), ("end", nested)]
    calls.clear()
    with crema.track_section(None, "s"), crema.track_bytes(None, None, "b"), crema.track_memory(None, "m"):
        pass
    assert [c[:2] for c in calls[:3]] == [("begin", "s"), ("begin", "b"), ("memory", "m")]
    assert crema.track_metrics(work) is work
    kind, arguments = again.__reduce__()
    copy = kind(*arguments)
    assert type(copy) is crema.section and copy.name == "nested" and copy._tokens is None
    with pytest.raises(TypeError, match="the name of a section is a str, not int"):
        crema.section(5)

    async def coroutine():
        pass

    async def stream():
        yield

    def generator():
        yield

    for function in (coroutine, stream, generator):
        with pytest.raises(TypeError, match="crema.memory cannot measure an async function"):
            crema.memory("x")(function)


def test_sections_elsewhere():
    with crema.section("x") as s, crema.memory("y"):
        crema.metric("z", 1)
    assert s._tokens is None


# --- what decorators left in the output

ROW = {"file": "f.root", "entry_start": 0, "entry_stop": 10}


def test_merge_of_tracked_chunks():
    measured = [{**ROW, "duration": 2.0}, {**ROW, "entry_start": 10, "duration": 3.0}]
    tracked = [{**ROW, "duration": 1.5, "timing": {"a": 0.5}}, {**ROW, "file": "g.root", "duration": 9.0}, {"timing": {"a": 1.0}}]
    merged = outputs.merge_chunks(measured, tracked)
    assert merged[:2] == [{**ROW, "duration": 2.0, "timing": {"a": 0.5}}, measured[1]]
    assert merged[2:] == [{**tracked[1], "measured": False}, {**tracked[2], "measured": False}]


def test_sections_by_hand():
    chunks = [{"timing": {"a": 1.0, "b": "x"}, "memory": {"a": 4.0}, "bytes": {"c": 10}},
              {"timing": {"a": 3.0}, "memory": {"a": 8.0}, "bytes": {"c": 5}}, {"timing": None}, {"timing": {"a": True}}]
    assert outputs.sections(chunks) == {
        "a": {"count": 2, "type": "memory", "total_duration": 4.0, "mean_duration": 2.0, "mean_mem_delta_mb": 6.0,
              "min_mem_delta_mb": 4.0, "max_mem_delta_mb": 8.0},
        "c": {"count": 2, "type": "bytes", "total_duration": 0.0, "mean_duration": 0.0, "reads": 2, "bytes": 15}}


@pytest.mark.parametrize("output", [None, 3, [], {}, {outputs.KEY: 5}, {outputs.KEY: None}, "text"])
def test_outputs_without_chunks(output):
    assert outputs.peek(output) is None
    m = crema.measure()
    m.extract_metrics_from_output(output)
    m.set_coffea_report((output, {"entries": 1}))
    assert m.chunk_metrics == [] and m.coffea_report == {"entries": 1}


def test_extracting_takes_it_out():
    output = {outputs.KEY: [ROW, "garbage"], "n": 1}
    m = crema.measure()
    m.set_coffea_report((output, {}))
    assert m.chunk_metrics == [ROW] and outputs.KEY in output
    m.extract_metrics_from_output(output)
    assert m.chunk_metrics == [ROW] and output == {"n": 1}


def test_custom_metrics_by_dataset():
    custom = {"a": {"entries": 10, "duration": 1.5, "performance_counters": {"num_requested_bytes": 100}},
              "b": {"entries": 5, "duration": 0.5}, "note": "no dataset"}
    assert crema.measure(custom_metrics=custom)._report_to_compare() == {"entries": 15, "processtime": 2.0, "bytesread": 100}


def test_hostile_section_names_are_shown_tame():
    lines = outputs.summary(outputs.sections([{"timing": {"\x1b[31mred\nnext": 1.0}}]))
    assert "\x1b" not in "".join(lines) and any("?[31mred?next" in line for line in lines)


class Scalar:
    """Like numpy's: contains a number."""

    def __init__(self, value):
        self.item = lambda: value


def test_json_ready():
    value = {("a", 1): {3, 1}, "nan": float("nan"), "inf": -float("inf"), "n": Scalar(0.5), "i": Scalar(7), "o": [object, (1, 2)]}
    text = json.dumps(json_ready(value), allow_nan=False)
    assert json.loads(text) == {"('a', 1)": [1, 3], "nan": None, "inf": None, "n": 0.5, "i": 7, "o": ["<class 'object'>", [1, 2]]}


@pytest.mark.parametrize("files,error", [
    ({}, "is not a measurement: it has no metrics.json"),
    ({"metrics.json": "{}"}, "it has no start_end_time.txt"),
    ({"metrics.json": "{}", "start_end_time.txt": "soon"}, "does not contain two times"),
])
def test_folders_that_are_none(tmp_path, files, error):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises((FileNotFoundError, ValueError), match=error):
        crema.load_measurement(tmp_path)


def test_branches():
    rows = [{"file": "a", "branches_read_percent": 10.0}, {"file": "a", "branches_read_percent": 90.0}, {"file": "b", "branches_read_percent": 30},
            {"file": None, "branches_read_percent": 50}, {"file": "c", "branches_read_percent": None}, {"file": "d", "branches_read_percent": True}]
    assert outputs.branches_percent(rows) == 20 and outputs.branches_percent(rows[3:]) is None


def test_a_summary():
    found = outputs.sections([{"timing": {"short": 0.25, "longer-name": 2.0}, "memory": {"m": 12.34}, "bytes": {"short": 77}}])
    assert outputs.summary(found) == [
        "", "Sections from roastcoffea's trackers", "  section      count   seconds  memory, MB per chunk      bytes",
        "  longer-name      1     2.000                     -          -", "  short            1     0.250                     -         77",
        "  m                1         -                  12.3          -"]
    assert outputs.summary({}) == []


def test_a_folder_by_hand(tmp_path):
    """Keys that are a tuple's text become tuples, other keys stay; times become datetimes."""
    first, second = "2026-11-18T11:06:40.500000+00:00", "2026-11-18T11:06:41.250000+00:00"
    times = [datetime.fromisoformat(t) for t in (first, second)]
    (tmp_path / "metrics.json").write_text(json.dumps({
        "wall_time": 1.75, "raw_span_metrics": {"('execute', 'p', 'cpu', 'seconds')": 1.5, "plain text": 2.5, "[": 3}, "chunk_info": {"('f', 0, 9)": [1, 2, 3], "no tuple": [4, 5]},
        "tracking_data": {"worker_counts": {first: 1, second: 2}, "worker_memory": {"w": [[first, 10], [second, 20]]}, "estimated": ["worker_memory"]}}))
    with pytest.raises(FileNotFoundError, match="it has no start_end_time.txt"):
        crema.load_measurement(tmp_path)
    (tmp_path / "start_end_time.txt").write_text("1.5,3.25\n")
    assert crema.load_measurement(tmp_path) == ({
        "wall_time": 1.75, "raw_span_metrics": {("execute", "p", "cpu", "seconds"): 1.5, "plain text": 2.5, "[": 3}, "chunk_info": {("f", 0, 9): (1, 2, 3), "no tuple": [4, 5]},
        "tracking_data": {"worker_counts": {times[0]: 1, times[1]: 2}, "worker_memory": {"w": [(times[0], 10), (times[1], 20)]}, "estimated": ["worker_memory"]}}, 1.5, 3.25)
    (tmp_path / "metrics.json").write_text(json.dumps({"wall_time": None, "tracking_data": None}))
    assert crema.load_measurement(tmp_path)[0] == {"wall_time": None, "tracking_data": None}
    for text in ("", "1.5", "1.5,x", "1,2,3"):
        (tmp_path / "start_end_time.txt").write_text(text)
        with pytest.raises(ValueError, match="does not contain two times"):
            crema.load_measurement(tmp_path)
