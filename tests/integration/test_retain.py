"""`crema collect --keep --max-bytes`: whole runs go, the oldest first, and their totals stay: in the list, in a
report of their own, in /metrics over restarts. Journals made by hand, read by a real collector; the sums are
worked out here."""

import json

import cluster
import pytest
from stores import DAY, Store, begun, noise, tasks, totals

DROPPED = "00000000000000000000-dropped.crema"


def three_runs(folder):
    """Two old runs and a young one of the same worker, each in a segment of its own."""
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
    with store.collect("--keep", "2d") as collector:  # what it knows now is what was left
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


def test_a_run_goes_whole_though_its_segment_stays(tmp_path):
    """The first run reaches into the second one's segment, and a record of it comes later still."""
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
    done = store.crema("report", "--run", "span-a")  # by its span, too
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
    """The child that drops is killed as it enters a system call: each run is there once, whole or as totals."""
    store, segments = three_runs(tmp_path)
    runs, _ = store.list()
    with store.collect() as plain:
        before = plain.counters()
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
    with store.collect("--keep", "2d") as collector:  # tidies up
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
    """Runs that share segments and reach over several, with ends that do not say whose they are, without a span, without
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
