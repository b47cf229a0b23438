"""The trace in the viewers it is written for: the Perfetto UI and its trace processor, and catapult's viewer, which
is chrome://tracing. What they have read is compared with the journal and the JSON report."""

import json
import subprocess
from collections import Counter, defaultdict

import browser
import cluster
import frames
import hostile
import pytest
import trace_viewers

pytestmark = pytest.mark.matrix

TASKS, WORKERS = 2500, 3
COUNTS = [2**53, 2**53 + 1, 2**63, 2**64 - 1]
NAMES = {**hostile.TEXTS, **{name: raw.decode("utf-8", "surrogateescape") for name, raw in hostile.RAW.items()}}
# (thread, start, length) in ns: adjacent slices, odd lengths, length 0, overlaps, threads with a worker's number, thread 0
TIMES = [(7, 0, 1), (7, 1, 999), (7, 1000, 0), (7, 1000, 1_234_567_891), (7, 5000, 77), (7, 5000, 77), (1, 0, 10**9 + 1),
         (2, 3, 4), (0, 11, 13), (2**31 - 1, 17, 19), (9, 3600 * 10**9 + 7, 86_400 * 10**9 + 1)]

SLICES = """
    SELECT p.pid, t.tid, s.name, s.ts, s.dur, s.category, extract_arg(s.arg_set_id, 'args.key'),
           extract_arg(s.arg_set_id, 'args.attempt'), extract_arg(s.arg_set_id, 'args.read_bytes'), t.name, p.name
    FROM slice s LEFT JOIN thread_track tt ON s.track_id = tt.id LEFT JOIN thread t USING (utid)
         LEFT JOIN process_track pt ON s.track_id = pt.id
         LEFT JOIN process p ON p.upid = coalesce(t.upid, pt.upid) ORDER BY s.id"""
COUNTERS = """
    SELECT p.pid, t.name, c.ts, c.value FROM counter c JOIN process_counter_track t ON c.track_id = t.id
    JOIN process p USING (upid) ORDER BY c.ts"""
CATAPULT_SLICES = """Object.values(m.processes).flatMap((p) => Object.values(p.threads).flatMap((t) =>
    [...t.sliceGroup.slices, ...t.asyncSliceGroup.slices].map((s) =>
        [p.pid, t.tid, s.title, s.start, s.duration, s.category, s.args.key, s.args.attempt, t.name, p.name, s.args.read_bytes])))"""
CATAPULT_COUNTERS = """Object.values(m.processes).flatMap((p) => Object.values(p.counters).flatMap((c) =>
    c.series.flatMap((s) => s.samples.map((x) => [p.pid, c.name + " " + s.name, x.timestamp, x.value]))))"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


class Run:
    """A run, its JSON report, and its trace at an address with the viewers."""


def reported(directory, journal):
    made = Run()
    command = [cluster.BUILD / "crema", "report", "--dir", journal, "--run", "last", "--json", directory / "run.json",
               "--perfetto", directory / "run.trace"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    made.json = json.loads((directory / "run.json").read_text())
    made.events = json.loads((directory / "run.trace").read_text())["traceEvents"]
    return made


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run of the size of an analysis, with samples and rates."""
    directory = tmp_path_factory.mktemp("plain")
    maker = cluster.BUILD / "tests" / "bench" / "make_journal"
    subprocess.run(["make", "-C", str(cluster.ROOT), str(maker.relative_to(cluster.ROOT))], check=True, capture_output=True)
    subprocess.run([maker, directory / "journal", str(TASKS), str(WORKERS)], check=True)
    made = reported(directory, directory / "journal")
    with trace_viewers.served(directory) as made.address:
        yield made


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Hostile names, and times that are hard to draw; two workers with the same name and thread."""
    directory = tmp_path_factory.mktemp("odd")
    journal = frames.Journal(directory / "journal")
    journal.worker(host=NAMES["html"])
    journal.worker(b"v" * 16, host=NAMES["cells"], pid=2)
    boot, attempt = frames.BOOT_NS, 0
    expected = []

    def put(worker, name, thread, start, length, **values):
        nonlocal attempt
        attempt += 1
        journal.task(attempt, name, worker=worker, thread=thread, start_boot_ns=boot + start, stop_boot_ns=boot + start + length,
                     wall_ns=length, read_bytes=COUNTS[attempt % len(COUNTS)], **values)
        expected.append((attempt, thread, start, length, COUNTS[attempt % len(COUNTS)]))

    for worker in (b"w" * 16, b"v" * 16):
        for thread, start, length in TIMES:
            put(worker, "times", thread, start, length)
    for i, text in enumerate(NAMES.values()):
        put(b"v" * 16, text, 8, (i + 1) * 10**9 + i, 5 * 10**8 + i, function=text, dataset=text)
    made = reported(directory, journal.write())
    made.expected = expected
    with trace_viewers.served(directory) as made.address:
        yield made


@pytest.fixture(scope="module")
def perfetto(plain, chromium):
    return trace_viewers.Perfetto(chromium, plain.address, "run.trace")


def numbered(report):
    """{process number in the trace: worker}."""
    return dict(enumerate(report["workers"], 1))


def shown(thread):
    """0 is not a thread number, and Perfetto takes it for a main thread: the trace has a number that no kernel assigns."""
    return thread or 2**22


def of_json(report):
    """All that a viewer must show of each attempt except its times: {(process, attempt): ...}."""
    pids = {w["id"]: pid for pid, w in numbered(report).items()}
    names = {pid: w["name"] or w["worker"] for pid, w in numbered(report).items()}
    return {(pids[t["worker_id"]], t["attempt"]): (shown(t["thread"]), t["prefix"] or t["function"] or t["key"],
                                                   t["key"], names[pids[t["worker_id"]]]) for t in report["tasks"]}


def read_by(text):
    """A name as Perfetto v52 shows it: it undoes JSON's escapes only in names that contain a quote."""
    return text if text is None or '"' in text else json.loads(f'"{text}"')


def exact(number):
    """A number that not all viewers can represent is a text."""
    return str(number) if number > 2**53 else number


def no_errors(viewer):
    """Neither errors nor lost data, according to the trace processor and the UI."""
    assert viewer.sql("SELECT name, severity, value FROM stats WHERE severity != 'info' AND value > 0") == []
    assert viewer.sql("SELECT count(*) FROM stats WHERE severity = 'error'")[0][0] > 100  # the table does list errors
    assert viewer.tab.run("[app.trace.traceInfo.importErrors, app.trace.loadingErrors.length]") == [0, 0]


def test_plain_in_perfetto(plain, perfetto):
    no_errors(perfetto)
    assert len(plain.json["tasks"]) == TASKS + TASKS // 1000
    count, length_ns = perfetto.sql("SELECT count(*), sum(dur) FROM slice")[0]
    assert count == len(plain.json["tasks"])
    assert length_ns / 1e3 == pytest.approx(sum(t["stop"] - t["start"] for t in plain.json["tasks"]) * 1e6, abs=count)
    rows = perfetto.sql(SLICES)
    tasks = of_json(plain.json)
    assert {(r[0], r[7]): (r[1], r[2], r[6], r[10]) for r in rows} == tasks
    times = {(w, t["attempt"]): t for w, worker in numbered(plain.json).items() for t in plain.json["tasks"]
             if t["worker_id"] == worker["id"]}
    first = min(t["start"] for t in plain.json["tasks"])
    for row in rows:
        task = times[row[0], row[7]]
        assert row[3] / 1e3 - 1e6 == pytest.approx((task["start"] - first) * 1e6, abs=1)
        assert row[4] / 1e3 == pytest.approx((task["stop"] - task["start"]) * 1e6, abs=1)
        assert row[8] == task["read_bytes"]


def test_threads_in_perfetto(plain, perfetto):
    """Each worker is a process, each thread that ran tasks is a track, and there are no others; slices on a track do not overlap."""
    named = perfetto.sql("SELECT p.pid, t.tid FROM thread t JOIN process p USING (upid) WHERE t.name IS NOT NULL")
    assert sorted(named) == sorted({(key[0], task[0]) for key, task in of_json(plain.json).items()})
    assert len(named) == perfetto.sql("SELECT count(*) FROM thread_track")[0][0] == WORKERS * 4
    assert perfetto.sql("SELECT max(depth) FROM slice") == [(0,)]
    names = perfetto.sql("SELECT pid, name FROM process WHERE pid > 0 ORDER BY pid")
    assert names == [(pid, w["name"]) for pid, w in numbered(plain.json).items()]


def counters_of(rows):
    found = defaultdict(list)
    for pid, name, at, value in sorted(rows, key=lambda r: r[2]):
        found[pid, name].append((at, value))
    return found


def check_counters(plain, rows):
    """`rows`: (process, counter and its part, time in us, value). Memory is that of the samples; rates add up to what was
    read; everything in the file was imported."""
    found = counters_of(rows)
    written = counters_of([(e["pid"], f"{e['name']} {part}", e["ts"], value) for e in plain.events if e["ph"] == "C"
                           for part, value in e["args"].items()])
    assert {key: [v for _, v in points] for key, points in found.items()} == {
        key: [pytest.approx(v, rel=1e-15) for _, v in points] for key, points in written.items()}  # a viewer rounds the last digit
    for pid, worker in numbered(plain.json).items():
        memory = [v for _, v in found[pid, "memory, bytes resident"]]
        assert memory == [s["memory_bytes"] for s in plain.json["tracking_data"]["worker_memory"][worker["worker"]]] and memory
        for name, total in (("read from files, Gbit/s rate", worker["tasks"]["read_bytes"] * 8 / 1e9),
                            ("tasks' time, s/s cpu_seconds", sum(t["cpu_seconds"] for t in plain.json["tasks"]
                                                                 if t["worker_id"] == worker["id"]))):
            points = found[pid, name]
            done = sum(rate * (after - at) / 1e6 for (at, rate), (after, _) in zip(points, points[1:]))
            assert done == pytest.approx(total, rel=0.05), name
            assert points[-1][1] == 0  # the rate is 0 at the end


def test_counters_in_perfetto(plain, perfetto):
    check_counters(plain, [(pid, name, ns / 1e3, value) for pid, name, ns, value in perfetto.sql(COUNTERS)])


def shifted(expected):
    """Traces begin a second before the first task."""
    return Counter((attempt, shown(thread), start + 10**9, length) for attempt, thread, start, length, _ in expected)


def harmless(tab):
    """No name was interpreted as part of the page."""
    assert "Page.javascriptDialogOpening" not in tab.events
    assert not [url for url in tab.requests if url.endswith("/x")]


def test_odd_in_perfetto(odd, chromium):
    """Names as in the JSON report; times exact to the ns, also those of slices outside the tracks."""
    viewer = trace_viewers.Perfetto(chromium, odd.address, "run.trace")
    no_errors(viewer)
    rows = viewer.sql(SLICES)
    tasks = of_json(odd.json)
    names = {(r[0], r[7]): tuple(map(read_by, (r[2], r[6], r[10]))) for r in rows}
    assert names == {key: task[1:] for key, task in tasks.items()}
    assert len(rows) == len(tasks) == len(odd.expected)
    threads = {key[1]: task[0] for key, task in tasks.items()}
    assert Counter((r[7], threads[r[7]], r[3], r[4]) for r in rows) == shifted(odd.expected)
    assert [r for r in rows if r[1] not in (threads[r[7]], None)] == []
    beside = [r for r in rows if r[1] is None]
    assert len(beside) == 2 * 2  # for each worker, the two that are inside another
    assert [r[8] for r in sorted(rows, key=lambda r: r[7])] == [exact(n) for *_, n in odd.expected]
    harmless(chromium)


def test_plain_in_catapult(plain, chromium):
    viewer = trace_viewers.Catapult(chromium, plain.address, "run.trace")
    assert viewer.model("m.importWarnings") == []
    rows = viewer.model(CATAPULT_SLICES)
    assert {(r[0], r[7]): (r[1], r[2], r[6], r[9]) for r in rows} == of_json(plain.json) and len(rows) == len(plain.json["tasks"])
    assert sum(r[4] for r in rows) * 1e3 == pytest.approx(
        sum(t["stop"] - t["start"] for t in plain.json["tasks"]) * 1e6, abs=len(rows))
    assert {(r[0], r[1]): r[8] for r in rows} == {(r[0], r[1]): f"thread {r[1]}" for r in rows}
    check_counters(plain, [(pid, name, ms * 1e3, value) for pid, name, ms, value in viewer.model(CATAPULT_COUNTERS)])


def test_odd_in_catapult(odd, chromium):
    """Its times are binary fractions of a ms: here they are exact to the ns."""
    viewer = trace_viewers.Catapult(chromium, odd.address, "run.trace")
    assert viewer.model("m.importWarnings") == []
    rows = viewer.model(CATAPULT_SLICES)
    assert {(r[0], r[7]): (r[1], r[2], r[6], r[9]) for r in rows} == of_json(odd.json) and len(rows) == len(odd.expected)
    begin = min(r[3] for r in rows)  # it moves the trace to 0
    times = Counter((r[7], r[1], round((r[3] - begin) * 1e6) + 10**9, round(r[4] * 1e6)) for r in rows)
    assert times == shifted(odd.expected)
    assert [r[10] for r in sorted(rows, key=lambda r: r[7])] == [exact(n) for *_, n in odd.expected]
    harmless(chromium)
