"""`crema collect --keep --max-bytes`: whole runs are dropped, the oldest first, and their totals stay: in the list, in
separate reports, in /metrics over restarts. Journals made by hand, read by a real collector; the sums are
computed here."""

import json
import struct

import cluster
import pytest
from frames import BOOT_NS, CARRIED, CARRY, CHECKPOINT, DROPPED_RUN, HEAD, frame, read
from frames import DROPPED as DROPPED_FRAME
from stores import DAY, Store, begun, noise, tasks, totals

DROPPED = "00000000000000000000-dropped.crema"


def wait_for_footers(store, collector):
    """A run whose footers have just been written is dropped only by the next check."""
    cluster.wait_until(lambda: len(list((store.dir / "footers").glob("*-journal.crema"))) >= 3, "footers", 60, [collector.log])


def three_runs(folder):
    """Two old runs and a recent one of the same worker, each in a separate segment."""
    store = Store(folder)
    segments = [store.segment(5 * DAY + 20, tasks(5 * DAY, "span-a"), totals(5 * DAY - 60, 3, 3000)),
                store.segment(4 * DAY + 20, tasks(4 * DAY, "span-b", first=4, read=10), totals(4 * DAY - 60, 6, 3030)),
                store.segment(7220, tasks(7200, "span-c", first=7, read=500), totals(7100, 9, 4530))]
    return store, segments


def test_old_runs_leave_their_totals(tmp_path):
    store, segments = three_runs(tmp_path)
    runs, _ = store.list()
    young = store.report(runs[2])
    old = store.report(runs[0])
    with store.collect() as plain:
        before = plain.counters()
    assert before['crema_tasks_total{prefix="analyse",status="ok"}'] == 9 and before["crema_events_total"] == 900
    assert before['crema_read_bytes_total{owner="task"}'] == 4530
    with store.collect("--keep", "2d") as collector:
        collector.wait("2 runs dropped")
        assert collector.counters() == before
        assert json.loads(collector.get("status.json"))["journal"]["keep_seconds"] == 2 * DAY
    assert [s.exists() for s in segments] == [False, False, True]
    assert (store.journal / DROPPED).stat().st_mode & 0o777 == 0o600
    assert store.list() == (runs[2:], runs[:2])
    with store.collect("--keep", "2d") as collector:  # its values now come from what was kept
        assert collector.counters() == before
    gone = store.report(runs[0])
    assert gone["dropped"]["option"] == "--keep" and gone["run"] == runs[0]
    want = {k: v for k, v in old["metrics"].items() if k in gone["metrics"]}
    assert gone["metrics"] == want
    assert (want["num_tasks"], want["total_events"], want["num_chunks"]) == (3, 300, 3)
    after = store.report(runs[2])
    del young["completeness"]["files_read"], after["completeness"]["files_read"]
    for part in ("metrics", "tasks", "files", "completeness"):
        assert after[part] == young[part], part
    text = store.crema("report", "--full")
    assert text.returncode == 0 and "span-c" in text.stdout
    listed = store.crema("report", "--list").stdout
    assert listed.count("dropped, totals only") == 2
    page = store.crema("report", "--run", runs[0], "--html", str(tmp_path / "page.html"))
    assert page.returncode == 1 and "only its totals are left" in page.stderr and page.stderr.count("\n") == 1
    told = store.crema("report", "--run", runs[1]).stdout
    assert "was dropped from the journal" in told and "--keep" in told and "num_tasks" in told


def of(worker, *messages):
    """Messages that another worker sends."""
    def fill(made):
        made.worker(worker * 16, real_ns=made.real_ns)
        for message in messages:
            made.message(message, worker * 16)
    return fill


def total(age, done):
    return [11, {"boot_ns": BOOT_NS + (10 * DAY - age) * 10**9, "tasks_done": done, "tasks": {"read_bytes": 100 * done}}]


MODULE = [20, {"id": 7, "path": "/lib/libx.so", "build_id": "ab"}]
GOODBYE = [14, {"boot_ns": BOOT_NS + 5 * DAY * 10**9, "how": "exit"}]


def many_workers(folder, *last):
    """Three segments: w is in all of them, v in the first and the last, x sent its goodbye in the first, y went silent after it. x and
    then v describe a library that v waits in during the recent run. last: the end of the first two segments."""
    store = Store(folder)
    wait = [21, {"number": 1, "wait": "network_wait_ns", "waited_ns": 10**9, "span": "span-c", "prefix": "analyse", "frames": [7, 64],
                 "end_boot_ns": BOOT_NS + (10 * DAY - 7150) * 10**9}]
    clocks = [15, {"boot_ns": BOOT_NS, "real_ns": store.now - 10 * DAY * 10**9, "offset_ns": 0, "error_ns": 1000}]
    segments = [store.segment(5 * DAY + 20, of(b"x", MODULE, total(5 * DAY, 1), GOODBYE), tasks(5 * DAY, "span-a"), of(b"y", total(5 * DAY, 2)),
                              totals(5 * DAY - 60, 3, 3000), of(b"v", clocks, MODULE, total(5 * DAY, 4), total(5 * DAY - 1, 5)), *last),
                store.segment(4 * DAY + 20, tasks(4 * DAY, "span-b", first=4, read=10), totals(4 * DAY - 60, 6, 3030),
                              totals(4 * DAY - 70, 6, 3020), totals(4 * DAY - 50, 6, 3040), *last),
                store.segment(7220, of(b"v", wait), tasks(7200, "span-c", first=7, read=500), of(b"z", total(7100, 1)),
                              of(b"v", total(7100, 9)))]
    return store, segments


def without_checkpoints(path):
    """Rewrites a segment as a crema wrote it that did not start segments with a checkpoint."""
    data, kept, at = path.read_bytes(), b"", 0
    while at < len(data):
        size = HEAD.size + struct.unpack_from("<I", data, at + 48)[0]
        kept += data[at:at + size] if data[at + 5] != CHECKPOINT else b""
        at += size
    path.write_bytes(kept)


@pytest.mark.parametrize("by", ["footers", "segments"])
def test_what_is_left_of_workers(tmp_path, by):
    """In reports only the workers of remaining runs; in the live numbers all workers, though no remaining segment has a checkpoint. Segments
    with a footer are not read: here they are damaged where only reading them shows it."""
    odd = by == "segments"  # a message that no agent sends: the footer makes the collector read the segment
    store, segments = many_workers(tmp_path, of(b"y", [99] if odd else [8, {"boot_ns": 1, "padding": "0" * 20000}]))
    young = store.list()[0][2]
    report = store.report(young)
    with store.collect() as plain:
        before = plain.counters()
        wait_for_footers(store, plain)
    for path in not odd and segments[:2] or ():
        data = bytearray(path.read_bytes())
        data[-10000] ^= 0x10
        path.write_bytes(data)
    assert before['crema_read_bytes_total{owner="task"}'] == 3020 + 900 + 100 + 200 + 100
    with store.collect("--keep", "2d") as collector:
        collector.wait("2 runs dropped")
        assert collector.counters() == before
    assert [s.exists() for s in segments] == [False, False, True]
    left = read(store.journal / DROPPED)
    assert [type for type, _ in left] == [1, CHECKPOINT, DROPPED_FRAME, DROPPED_RUN, DROPPED_RUN] + 3 * [CARRY, CARRIED]
    assert left[2][1].keys() == {"below_ns", "dropped_ns"}
    w, v, y = ((left[n][1], left[n + 1][1]) for n in (5, 7, 9))
    if left[6][1][0][1]["tasks_done"] != 6:
        w, v = v, w
    assert w[0] == {"streams": [[1, [3, 6, 7, 8, 13, 19]]]} and v[0] == {"streams": [[1, [8, 12]]]} and y[0] == {"streams": [[1, [6, 7, 12, 13, 19, 20]]]}
    assert [m[1]["tasks"]["read_bytes"] for m in (w[1][0], v[1][0], y[1][0])] == [3020, 500, 200]
    assert [m[0] for m in left[6][1]][-1] == 20 and sum(m == MODULE for carried in (w, v, y) for m in carried[1]) == 1
    assert [m[0] for m in v[1] if m != MODULE] == [11, 15]
    after = store.report(young)
    assert [report["workers"][0].pop("work_seconds"), after["workers"][0].pop("work_seconds")] == [90, 30]  # since the first remaining task
    for completeness in report["completeness"], after["completeness"]:
        del completeness["files_read"], completeness["records_bad"]
    assert {part for part in report if report[part] != after[part]} == ({"completeness", "findings"} if odd else set())
    assert "libx.so" in json.dumps(after)
    for path in store.journal.glob("*-journal.crema"):
        without_checkpoints(path)
    with store.collect() as collector:
        assert collector.counters() == before
    store.segment(100, of(b"y", total(100, 3)))
    with store.collect("--keep", "90m") as collector:
        collector.wait("1 runs dropped")
    assert y[0]["streams"] in [map["streams"] for type, map in read(store.journal / DROPPED) if type == CARRY]


def test_a_file_without_a_checkpoint(tmp_path):
    """A file of a crema that stored the sums of live numbers in it, and the numbers of each worker's ended attempts: later
    counts start from it, and it is carried forward."""
    store, segments = three_runs(tmp_path)
    runs, _ = store.list()
    with store.collect() as plain:
        before = plain.counters()
    with store.collect("--keep", "2d") as collector:
        collector.wait("2 runs dropped")
    left = read(store.journal / DROPPED)
    assert [type for type, _ in left] == [1, CHECKPOINT, DROPPED_FRAME, DROPPED_RUN, DROPPED_RUN, CARRY, CARRIED]
    sums = {"chunks": 6, "events": 600, "records_lost": 0, "records_bad": 0, "ended": [6, 0, 0, 0],
            "prefixes": [["analyse", 60 * 10**9, 6, 0, 0, 0], ["other", 0, 0, 0, 0, 0]]}
    left[2][1]["sums"] = sums
    left[5][1]["ended"] = [1, 6]  # six, starting with 1
    kinds = {CARRY: {"worker": b"w" * 16, "seq": 1}, CARRIED: {"worker": b"w" * 16, "seq": 1, "count": len(left[6][1])}}
    (store.journal / DROPPED).write_bytes(b"".join(frame(type, map, **kinds.get(type, {})) for type, map in left if type != CHECKPOINT))
    for path in store.journal.glob("*-journal.crema"):
        without_checkpoints(path)
    store.segment(7000, tasks(5 * DAY, "span-a", n=1))  # the same tasks again
    with store.collect() as collector:
        assert collector.counters() == before
    again = read(store.journal / DROPPED)
    with store.collect("--keep", "90m") as collector:
        collector.wait("1 runs dropped")
        assert collector.counters() == before
    final = read(store.journal / DROPPED)
    assert [map["streams"] for type, map in again + final if type == CARRY] == [[[1, [0, 8]]], [[1, [0, 12]]]]
    assert store.list() == ([], runs)


def test_a_run_goes_whole_though_its_segment_stays(tmp_path):
    """The first run extends into the second one's segment, and one of its records comes even later."""
    store = Store(tmp_path)
    first = store.segment(5 * DAY + 20, tasks(5 * DAY, "span-a"), noise(400))
    store.segment(5 * DAY - 100, tasks(5 * DAY - 100, "span-a", n=1, first=4),
                  tasks(5 * DAY - 200, "span-b", first=5), noise(100))
    store.segment(7220, tasks(7200, "span-c", first=8), tasks(5 * DAY - 120, "span-a", n=1, first=11), noise(100))
    runs, _ = store.list()
    kept = [store.report(run) for run in runs[1:]]
    assert store.report(runs[0])["metrics"]["num_tasks"] == 5
    with store.collect("--max-bytes", "600k") as collector:
        collector.wait("1 runs dropped")
        assert json.loads(collector.get("status.json"))["journal"]["over"] is None
    assert store.list() == (runs[1:], runs[:1]) and not first.exists()
    gone = store.report(runs[0])
    assert gone["metrics"]["num_tasks"] == 5 and gone["dropped"]["option"] == "--max-bytes"
    for run, before in zip(runs[1:], kept):
        assert store.report(run)["tasks"] == before["tasks"]
    done = store.crema("report", "--run", "span-a")  # also by its span
    assert f"run {runs[0]} was dropped" in done.stdout


@pytest.mark.parametrize("state", ["newest", "in progress"])
def test_one_run_alone_is_larger(tmp_path, state):
    store = Store(tmp_path)
    age = 7200 if state == "newest" else 20
    store.segment(age + 10, tasks(age, "span-a"), noise(400))
    if state == "in progress":
        store.segment(age, tasks(age, "span-b", first=4))
    runs, _ = store.list()
    with store.collect("--max-bytes", "200k") as collector:
        collector.wait("more than --max-bytes 200000")
        over = json.loads(collector.get("status.json"))["journal"]["over"]
        assert f"run {runs[0]} is {'the newest' if state == 'newest' else 'in progress'}" in over
        assert collector.log.text().count(over) == 1
    assert store.list() == (runs, [])



@pytest.mark.parametrize("at", ["openat new", "pwrite64 new", "fsync new", "rename new", "unlink 0", "unlink 1"])
def test_killed_at_any_step(tmp_path, at):
    """The child that drops runs is killed when it enters a system call: each run is there once, complete or as totals."""
    store, segments = three_runs(tmp_path)
    runs, _ = store.list()
    with store.collect() as plain:
        before = plain.counters()
        wait_for_footers(store, plain)
    call, file = at.split()
    path = store.journal / ".new" / f"{0:020}-journal.crema" if file == "new" else segments[int(file)]
    prefix = ["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", f"trace={call}", "-P", path,
              "-e", f"inject={call}:signal=KILL"]
    with store.collect("--keep", "2d", prefix=prefix) as collector:
        collector.wait("cannot drop old runs")
    assert "killed by SIGKILL" in (tmp_path / "trace").read_text()
    renamed = call == "unlink"
    assert store.list() == ((runs[2:], runs[:2]) if renamed else (runs, []))
    assert segments[1].exists()
    with store.collect() as collector:
        assert collector.counters() == before
    with store.collect("--keep", "2d") as collector:  # cleans up
        cluster.wait_until(lambda: not segments[1].exists(), "the segments to go", 120, [collector.log])
        assert collector.counters() == before
    assert store.list() == (runs[2:], runs[:2])
    assert not (store.journal / ".new").exists()


@pytest.mark.parametrize("option, value", [("--keep", "14"), ("--keep", "-1d"), ("--keep", "0d"), ("--keep", "soon"),
                                           ("--keep", "1e3d"), ("--max-bytes", "20X"), ("--max-bytes", "0"),
                                           ("--max-bytes", "infG"), ("--max-bytes", "")])
def test_bad_bounds(tmp_path, option, value):
    done = Store(tmp_path).crema("collect", option, value)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and f"{option}: '{value}' is no" in done.stderr


def test_the_list_is_the_same_run_by_run(tmp_path):
    """Runs that share segments and span several, with task ends that do not name their run, without a span, without
    Dask."""
    store = Store(tmp_path)
    store.segment(5 * DAY + 20, begun(5 * DAY, "span-a", 50), begun(5 * DAY, "span-a", 51), tasks(5 * DAY, "span-a"), begun(5 * DAY, "span-x", 60))
    store.segment(5 * DAY - 10, tasks(5 * DAY - 5, "span-b", first=4), tasks(5 * DAY - 900, "coffea-1234.0", n=1, first=30))
    store.segment(5 * DAY - 50, tasks(5 * DAY, "span-a", n=1, first=50, seconds=60),
                  tasks(4 * DAY, "span-c", first=7, status="erred"), tasks(4 * DAY - 40, "span-c", first=10), tasks(3 * DAY, None, first=20))
    store.segment(3000, begun(2000, "span-x", 61), tasks(5 * DAY, None, n=1, first=51))

    def listed(size, *how):
        done = store.crema("report", "--list", *how, "--read-whole", size)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for how in ((), ("--json", "-")):
        assert listed("1", *how) == listed("1k", *how) == listed("100G", *how)
    found = {r["run"]: r for r in json.loads(listed("1", "--json", "-"))["runs"]}
    assert len(found) == 6
    assert sorted(r["num_attempts"] for r in found.values()) == [1, 2, 3, 3, 5, 6]
    assert sum(r["num_tasks"] for r in found.values()) == 15
