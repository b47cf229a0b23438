"""`crema compare` of runs made by hand: its JSON and its tables from the runs' own reports. The best run, the scaling
and the best chunk size are computed here."""

import json
import re
import subprocess
import time
from itertools import takewhile

import pytest
import test_reports  # sets the path to frames.py
import frames
from test_exports import human, row
from test_reports import ROOT

EVENTS = 4000
CLASSES = ("cpu", "runqueue", "gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep")
IDS = {"cpu": "task_cpu_seconds", "sleep": "sleep_seconds", **{c: f"{c.removesuffix('_wait')}_wait_seconds" for c in CLASSES[1:-1]}}
# threads of the first worker, of one that starts later, chunks, ms per chunk, its largest class
RUNS = [(2, 0, 4, 1000, "cpu"), (4, 0, 4, 1300, "gil_wait"), (4, 0, 2, 1100, "network_wait"), (4, 4, 4, 1250, "storage_wait"), (0, 0, 4, 1500, "sleep")]


def fill(journal, threads, later, chunks, wall, most, events=EVENTS, file="/a.root", columns="x\ny", status="ok"):
    workers = [(b"a" * 16, threads, 0)] + ([(b"b" * 16, later, 1500)] if later else [])
    for k, (worker, n, ms) in enumerate(workers):
        stack = {"worker_address": f"tcp://w{k}:1", **({"nthreads": n} if n else {})}
        journal.worker(worker, host="node", pid=1 + k, boot_ns=frames.BOOT_NS + ms * 10**6, real_ns=frames.BASE_NS + ms * 10**6, stack=json.dumps(stack))
        for at in (ms, 5000):
            journal.message([8, {"boot_ns": frames.BOOT_NS + at * 10**6, "rss_bytes": 10**6 + at, "cpu_percent": 1}], worker)
    size, numbers = events // chunks, {name: 10**6 * (wall + 7 * i) for i, name in enumerate(test_reports.COUNTS) if not name.endswith("_ns")}
    for i in range(chunks):
        worker = workers[i % len(workers)][0]
        times = {f"{c}_ns": 10**6 * (10 + 3 * j + i + (400 if c == most else 0)) for j, c in enumerate(CLASSES)}
        start = 1000 + i * 10 + wall * (i // 4) + 600 * (i % len(workers))  # those of the later worker start later
        journal.task(i // len(workers) + 1, f"work-{i}", start, start + wall, worker, prefix="work", thread=i + 1, flags=2, events=size, entrystart=i * size,
                     entrystop=(i + 1) * size, dataset="set", filename=file, treename="t", coffea_bytesread=10**6 * wall + i, coffea_processtime=0.2,
                     columns=columns, function="work", status=status, decompress_cpu_ns=10**6 * (i + 1), **times, **numbers)
    merge = {f"{t}_ns": 10**6 for t in CLASSES}
    journal.task(50, "merge", 4700, 4700 + wall // 10, workers[0][0], prefix="merge", flags=4, thread=9, function="merge", **merge, **{n: 0 for n in numbers})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder, metrics of the report) of each run."""
    found = []
    for k, of in enumerate(RUNS):
        folder = tmp_path_factory.mktemp(f"run{k}")
        journal = frames.Journal(folder / "journal")
        fill(journal, *of)
        journal.write()
        done = subprocess.run([ROOT / "build/crema", "report", "--dir", folder, "--json", "-"], capture_output=True, text=True, timeout=60, check=True)
        found.append((folder, json.loads(done.stdout)))
    return found


def compare(folders, *options):
    done = subprocess.run([ROOT / "build/crema", "compare", *options, *folders], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout) if options else done.stdout


def cores(metrics):
    return metrics["total_cores"]


def test_runs(made):
    found = compare([folder for folder, _ in made], "--json", "-")
    assert (found["refused"], found["differs"]) == (None, None)
    for k, (told, (folder, report)) in enumerate(zip(found["runs"], made, strict=True)):
        metrics = report["metrics"]
        threads, later, chunks, wall, _ = RUNS[k]
        assert (told.pop("run"), told.pop("directory"), told.pop("running_attempts")) == (report["run"], str(folder), 0)
        assert (told.pop("least_workers"), told.pop("workers_fixed")) == (1, not later)
        assert (told.pop("task_wait_seconds"), told.pop("overhead_task_seconds")) == pytest.approx(
            (metrics["task_wall_seconds"] - metrics["task_cpu_seconds"], wall // 10 / 1000))
        assert told == {name: metrics[name] for name in told} and len(told) == 45
        assert (told["num_chunks"], told["total_events"], told["peak_workers"]) == (chunks, EVENTS, 1 + bool(later))
        assert told["wall_time"] == pytest.approx(3.7 + wall // 10 / 1000, abs=1e-5)


def curve(metrics, scaling):
    """Points of runs that differ in one number and agree in the other; a run whose cores are unknown is not a point."""
    one, other = ("total_cores", "num_chunks") if scaling else ("num_chunks", "total_cores")
    known = [m for m in metrics if m["total_cores"]]
    found = [m for m in known if any(m[other] == n[other] and m[one] != n[one] for n in known)]
    return sorted(found, key=lambda m: (cores(m), -m["event_rate_wall_khz"]) if scaling else (cores(m), -m["num_chunks"], -m["event_rate_wall_khz"]))


def per_event(m, name):
    return m[IDS.get(name, "idle_thread_seconds")] / EVENTS * 1e6


def test_best_and_curves(made):
    metrics = [report["metrics"] | {"run": report["run"], "k": k} for k, (_, report) in enumerate(made)]
    found = compare([folder for folder, _ in made], "--json", "-")
    by_rate = sorted(metrics, key=lambda m: -m["event_rate_wall_khz"])
    assert [found["best"], found["next"]] == [m["run"] for m in by_rate[:2]] and by_rate[0]["k"] == 0
    assert found["best_per_core"] is None  # the cores of one run are unknown
    four = compare([folder for folder, _ in made[:4]], "--json", "-")
    assert four["best_per_core"] == max(metrics[:4], key=lambda m: m["event_rate_wall_khz"] / cores(m))["run"]
    points = curve(metrics, scaling=True)
    assert len(points) == 3 and [cores(p) for p in points] == sorted(cores(p) for p in points)
    for told, m in zip(found["scaling"], points, strict=True):
        base = points[0]
        speedup, ideal = m["event_rate_wall_khz"] / base["event_rate_wall_khz"], cores(m) / cores(base)
        grown = {name: per_event(m, name) - per_event(base, name) for name in (*CLASSES, "idle")}
        most = max(grown, key=grown.get)
        assert told == {"run": m["run"], "total_cores": cores(m), "chunk_events_mean": 1000, "event_rate_wall_khz": pytest.approx(m["event_rate_wall_khz"]),
                        "base": base["run"], "speedup": pytest.approx(speedup), "ideal_speedup": pytest.approx(ideal),
                        "scaling_efficiency": pytest.approx(speedup / ideal),
                        "grew_most": {"runqueue": "runqueue_wait"}.get(most, most) if m is not base else None,
                        "grew_seconds_per_million_events": pytest.approx(grown[most]) if m is not base else None}
    assert {told["grew_most"] for told in found["scaling"]} == {None, "idle"}
    points = curve(metrics, scaling=False)
    best = max(points, key=lambda m: m["event_rate_wall_khz"])
    assert found["chunk_sizes"] == [{"run": m["run"], "total_cores": cores(m), "chunk_events_mean": EVENTS / m["num_chunks"],
                                     "event_rate_wall_khz": pytest.approx(m["event_rate_wall_khz"]), "best": m is best} for m in points] and len(points) == 2


@pytest.mark.parametrize("cause", [c for c in CLASSES if c != "cpu"])
def test_cause(tmp_path, cause):
    """The class that grew most is named; threads that idle less are not a class."""
    for k, (threads, most) in enumerate(((2, "cpu"), (3, cause))):
        journal = frames.Journal(tmp_path / str(k) / "journal")
        fill(journal, threads, 0, 4, 1000, most)
        for i in range(6 * k):  # so that the threads of the larger run are just as busy
            journal.task(100 + i, f"other-{i}", 1000, 4799, b"a" * 16, prefix="other", thread=20 + i, status="erred")
        journal.write()
    found = compare([tmp_path / "0", tmp_path / "1"], "--json", "-")
    assert found["scaling"][1]["grew_most"] == {"runqueue": "runqueue_wait"}.get(cause, cause)
    assert found["scaling"][1]["grew_seconds_per_million_events"] == pytest.approx(4 * 0.4 / EVENTS * 1e6)


@pytest.mark.parametrize("away", [0, 1])
def test_no_cause_without_classes(tmp_path, away):
    """A task that another process ran may have had any class: then none grew most, and nothing is the largest saving."""
    for k, threads in enumerate((2, 8)):  # most of the larger run's threads are idle
        journal = frames.Journal(tmp_path / str(k) / "journal")
        fill(journal, threads, 0, 4, 1000, "cpu")
        if away:
            journal.task(100, "away", 1000, 1100, b"a" * 16, prefix="away", thread=20, flags=1 << 12)
        journal.write()
    folders = [tmp_path / "0", tmp_path / "1"]
    point = compare(folders, "--json", "-")["scaling"][1]
    assert (point["grew_most"] is None) == (point["grew_seconds_per_million_events"] is None) == bool(away)
    assert ("largest saving" in compare(folders)) == (not away)


def tables_of(text):
    lines = text.splitlines()
    return {line: [re.split(r" {2,}", cells.strip()) for cells in takewhile(str.strip, lines[i + 1:])] for i, line in enumerate(lines)
            if line and not line.startswith(" ")}


def test_tables(made):
    metrics = [report["metrics"] for _, report in made]
    text = compare([folder for folder, _ in made])
    tables = tables_of(text)
    shown = [["run", "id (start, UTC)", "workers", "cores", "chunks", "events/chunk", "events"]]
    for k, (_, report) in enumerate(made):
        m = report["metrics"]
        shown.append([str(k + 1), report["run"], "1-2" if RUNS[k][1] else "1", human(cores(m), "n") if cores(m) in (None, 2, 4, 8) else human(cores(m), "").strip(),
                      str(RUNS[k][2]), human(EVENTS / RUNS[k][2], "n"), "4,000"])
    assert tables["Runs"] == [*shown, *([str(k + 1), str(folder)] for k, (folder, _) in enumerate(made))]

    def share(m, value):
        return 100 * value / m["task_wall_seconds"] if value is not None else None, "%"

    def each(title, heads, cells):
        assert tables[title] == [["run", *heads], *(row(str(k + 1), *cells(k, m)) for k, m in enumerate(metrics))], title

    each("Time: of counted tasks in all threads; overhead: other than chunks", ["wall", "CPU", "waiting", "CPU", "waiting", "overhead", "busiest"], lambda k, m: [
        (m["wall_time"], "s"), (m["task_cpu_seconds"], "s"), (m["task_wall_seconds"] - m["task_cpu_seconds"], "s"), share(m, m["task_cpu_seconds"]),
        share(m, m["task_wall_seconds"] - m["task_cpu_seconds"]), share(m, RUNS[k][3] // 10 / 1000), (m["worker_imbalance"], "x")])
    each("Waiting, of the tasks' wall time", ["core", "GIL", "lock", "network", "storage", "sleep", "the rest"], lambda k, m: [
        share(m, m[name]) for name in (*(IDS[c] for c in CLASSES[1:]), "unclassified_seconds")])
    each("Throughput, by wall time", ["events", "requested", "read", "storage", "unpacked"], lambda k, m: [
        (m["event_rate_wall_khz"], "kHz"), *((m[f"{name}_mbs"], "MB/s") for name in ("overall_rate", "read_rate", "storage_read_rate", "decompressed_rate"))])
    each("Bytes", ["requested", "read", "network", "storage", "baskets", "unpacked"], lambda k, m: [
        (m[name], "B") for name in ("total_bytes_read_coffea", "read_bytes", "network_read_bytes", "disk_read_bytes", "basket_bytes", "bytes_read_uncompressed")])
    points = curve([m | {"k": k} for k, m in enumerate(metrics)], scaling=True)
    assert tables["Scaling: events per second, compared with the fewest cores"] == [
        ["run", "cores", "events", "speed-up", "ideal", "efficiency", "what took more per event"],
        *(row(str(m["k"] + 1), shown[m["k"] + 1][3], (m["event_rate_wall_khz"], "kHz"), (m["event_rate_wall_khz"] / points[0]["event_rate_wall_khz"], "x"),
              (cores(m) / 2, "x"), (100 * m["event_rate_wall_khz"] / points[0]["event_rate_wall_khz"] / cores(m) * 2, "%"),
              *(["threads without a task"] if m is not points[0] else [])) for m in points)]
    points = curve([m | {"k": k} for k, m in enumerate(metrics)], scaling=False)
    best = max(points, key=lambda m: m["event_rate_wall_khz"])
    assert tables["Chunk size: runs with the same number of cores"] == [
        ["run", "cores", "events/chunk", "events", "CPU/event", "no baskets", "longest"],
        *(row(str(m["k"] + 1), "4", (EVENTS / m["num_chunks"], "n"), (m["event_rate_wall_khz"], "kHz"), (m["cpu_time_per_event_seconds"], "s"),
              (m["requested_outside_percent"], "%"), (RUNS[m["k"]][3] / 1000, "s"), *(["best"] if m is best else [])) for m in points)]
    first, second = sorted(range(5), key=lambda k: -metrics[k]["event_rate_wall_khz"])[:2]
    saved = {name: metrics[second][name] - metrics[first][name] for name in (*IDS.values(), "idle_thread_seconds")}
    most = max(saved, key=saved.get)
    last = " ".join(line.strip() for line in text.split("Best\n")[1].splitlines())
    fixed = max((m for k, m in enumerate(metrics) if not RUNS[k][1] and cores(m)), key=lambda m: m["event_rate_wall_khz"])
    assert last == (
        f"Run {first + 1}: {human(metrics[first]['event_rate_wall_khz'], 'kHz')}, {metrics[first]['event_rate_wall_khz'] / metrics[second]['event_rate_wall_khz']:.2f}x "
        f"the next one's (run {second + 1}); each did 4,000 events. It had 2 cores, run {second + 1} had {round(cores(metrics[second]))}. "
        f"The largest saving was in \"threads without a task\": {human(metrics[first][most], 's')}, in run {second + 1} {human(metrics[second][most], 's')}. "
        f"Per core and second: {human(fixed['event_rate_core_hz'], 'n')} events with a fixed number of workers (run {metrics.index(fixed) + 1}), "
        f"{human(metrics[3]['event_rate_core_hz'], 'n')} with a changing number (run 4).")
    assert most == "idle_thread_seconds"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_fixed_and_changing_workers(tmp_path, order):
    """The fastest of each kind, whatever its position."""
    runs, metrics = [(2, 0, 4, 1000), (2, 0, 4, 1200), (4, 4, 4, 1100), (4, 4, 4, 1300)], []
    for k in order:
        journal = frames.Journal(tmp_path / str(k) / "journal")
        fill(journal, *runs[k], "cpu")
        journal.write()
        done = subprocess.run([ROOT / "build/crema", "report", "--dir", tmp_path / str(k), "--json", "-"], capture_output=True, text=True, timeout=60, check=True)
        metrics.append(json.loads(done.stdout)["metrics"] | {"changes": runs[k][1]})
    text = " ".join(compare([tmp_path / str(k) for k in order]).split("Best\n")[1].split())
    best = [max((m for m in metrics if bool(m["changes"]) == kind), key=lambda m: m["event_rate_wall_khz"]) for kind in (False, True)]
    assert sorted(runs[order[metrics.index(m)]][3] for m in best) == [1000, 1100]
    rates = [human(m["event_rate_core_hz"], "n") for m in best]
    assert (f"{rates[0]} events with a fixed number of workers (run {metrics.index(best[0]) + 1}), "
            f"{rates[1]} with a changing number (run {metrics.index(best[1]) + 1}).") in text


@pytest.mark.parametrize("more, member, text", [
    ({"events": 8000}, "refused", "the work differs: run 1 processed 4,000 events, run 2 8,000"),
    ({"file": "/b.root"}, "differs", "runs 1 and 2 read their events from different files"),
    ({"columns": "x"}, "differs", "runs 1 and 2 read different numbers of columns")])
def test_other_work(made, tmp_path, more, member, text):
    journal = frames.Journal(tmp_path / "journal")
    fill(journal, *RUNS[0], **more)
    journal.write()
    found = compare([made[0][0], tmp_path], "--json", "-")
    assert {name: found[name] for name in ("refused", "differs")} == {"refused": None, "differs": None, member: text}
    printed = " ".join(compare([made[0][0], tmp_path]).split("Best\n")[1].split())
    assert (f"No run is called best: {text}." if member == "refused" else f"Note that {text}.") in printed
    assert (found["best"] is None) == (member == "refused")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_per_core(tmp_path, order):
    """4,000 events in 3.8 s on 4 cores, in 3.83 s on 1: the second run did more per core."""
    for k, (threads, wall) in enumerate(((4, 1000), (1, 1300))):
        journal = frames.Journal(tmp_path / str(k) / "journal")
        fill(journal, threads, 0, 4, wall, "cpu")
        journal.write()
    fast, small = order.index(0) + 1, order.index(1) + 1
    printed = " ".join(compare([tmp_path / str(k) for k in order]).split("Best\n")[1].split())
    assert f"Run {fast}: 1.053 kHz, 1.01x the next one's (run {small}); each did 4,000 events. It had 4 cores, run {small} had 1." in printed
    assert f"Per core, run {small} did most: 1,044 events per second." in printed
    found = compare([tmp_path / str(k) for k in order], "--json", "-")
    assert (found["best"], found["best_per_core"]) == tuple(found["runs"][n - 1]["run"] for n in (fast, small))


def other(journal, chunk, **said):
    """A run that differs from the others, with one task or two. It is in the future, so that no worker counts as silent."""
    journal.worker(b"a" * 16, host="node", pid=1, stack='{"nthreads": 2}', real_ns=time.time_ns() + 3600 * 10**9)
    if "start" in said:
        fields = {"attempt": 1, "key": "k", "key_hash": 1, "prefix": "work", "span": "span-1", "flags": 2, "status": "running", "start_boot_ns": frames.BOOT_NS}
        journal.message([1, 0, *(fields.get(name) for name in journal.order)], b"a" * 16)
    journal.task(2, "work-1", 0, 2000, b"a" * 16, prefix="work", flags=2 * chunk, dataset="set", filename="/a.root", treename="t",
                 **{name: value for name, value in said.items() if name != "start"})
    journal.message([8, {"boot_ns": frames.BOOT_NS + 2000 * 10**6, "rss_bytes": 10**6}], b"a" * 16)


@pytest.mark.parametrize("said, text", [
    ({"chunk": False}, "run 2 processed no chunks"), ({"chunk": True, "events": EVENTS, "start": True}, "run 2 is still running"),
    ({"chunk": True}, "the events of run 2 are unknown")])
def test_what_cannot_be_compared(made, tmp_path, said, text):
    journal = frames.Journal(tmp_path / "journal")
    other(journal, **said)
    journal.write()
    found = compare([made[0][0], tmp_path], "--json", "-")
    assert (found["refused"], found["best"]) == (text, None) and f"No run is called best: {text}." in " ".join(compare([made[0][0], tmp_path]).split("Best\n")[1].split())


def test_a_run_that_is_named_twice(made):
    folder, report = made[0]
    done = subprocess.run([ROOT / "build/crema", "compare", folder, folder], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode and f"run '{report['run']}' is given twice" in done.stderr


def test_what_clocks_differ_by(tmp_path):
    """Unclassified time below 1 % of the time is shown as 0, whatever its sign."""
    for name in ("one", "two"):
        journal = frames.Journal(tmp_path / name)
        journal.worker(b"a" * 16)
        journal.task(1, "a", 0, 1000, b"a" * 16, prefix="work", flags=2, dataset="set", events=10, **{f"{c}_ns": 1_000_900_000 if c == "cpu" else 0 for c in CLASSES})
        journal.write()
    waiting = tables_of(compare([tmp_path / "one", tmp_path / "two"]))["Waiting, of the tasks' wall time"]
    assert [line[-1] for line in waiting] == ["the rest", "0.0 %", "0.0 %"]
