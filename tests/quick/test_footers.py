"""Footers of segments: reports that use them equal those of the segments, whatever the folder of footers contains, and open only
the segments of their runs."""

import json
import os
import shutil
import sys
import time

import pytest
import test_live_numbers  # sets the path to the integration tests' modules

sys.path.insert(0, str(test_live_numbers.ROOT / "scripts"))
import cluster
from frames import BOOT_NS, NOTE, RUN_TOTALS, frame, read
from stores import DAY, PREPROCESSING, Store, begun, samples, tasks, totals

SELECTED = ("--read-whole", "1")


def padding(n):
    """n kB that no reader interprets."""
    def fill(made):
        made.message([99, {"padding": os.urandom(500 * n).hex()}])
    return fill


def dask(age, seconds):
    """Dask's measurements on a worker so far, in the span and outside any span."""
    def fill(made):
        digests = [["execute", "span-b", "analyse", "thread-cpu", "seconds", seconds],
                   ["get-data", None, None, "serialize", "seconds", 2 * seconds]]
        made.message([10, BOOT_NS + (10 * DAY - age) * 10**9,
                      json.dumps({"nthreads": 1, "executing": 1, "digests": digests, "digests_cut": 0})])
    return fill


def wait_row(age, span, number):
    def fill(made):
        made.message([20, {"id": 7, "path": "/lib/libx.so", "build_id": "ab"}])
        made.message([21, {"number": number, "wait": "network_wait_ns", "waited_ns": 10**9, "span": span, "prefix": "analyse",
                           "frames": [7, 64], "end_boot_ns": BOOT_NS + (10 * DAY - age) * 10**9}])
    return fill


def file_row(span, read):
    def fill(made):
        made.message([12, {"path": "/data/f.root", "span": span, "kind": "data", "storage": "exact", "read_calls": 3, "read_bytes": read}])
    return fill


def second(age):
    return lambda made: made.message([15, {"boot_ns": BOOT_NS + (10 * DAY - age) * 10**9, "real_ns": made.real_ns +
                                           (10 * DAY - age) * 10**9, "offset_ns": 0, "error_ns": 1000}])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Five runs in six segments: one of three spans; one that continues in the next segment, whose last row and wait come a
    day later; a task that starts in one segment and ends in the next."""
    made = Store(tmp_path_factory.mktemp("footers"))
    t = 4 * DAY
    scatter = {"prefix": "lambda", "flags": 0, "events": None, "seconds": 1}
    made.segment(t + 20, second(t), tasks(t, "span-p", n=2, first=1, prefix="metadata", flags=PREPROCESSING, events=None,
                                          dataset="d", filename="f"),
                 tasks(t - 25, "span-l", n=1, first=3, **scatter), tasks(t - 30, "span-a", first=4, dataset="d", filename="f"),
                 samples(t, 80), totals(t - 10, 2, 2000), totals(t - 200, 6, 6000), dask(t - 20, 1), dask(t - 60, 2), padding(20))
    made.segment(t - DAY, second(t - DAY), tasks(t - DAY, "span-b", first=10, read=70), samples(t - DAY, 40),
                 begun(t - DAY - 30, "span-b", 13), wait_row(t - DAY - 10, "span-b", 1), totals(t - DAY - 5, 7, 6070),
                 dask(t - DAY - 4, 3), dask(t - DAY - 40, 5), padding(20))
    made.segment(t - DAY - 60, second(t - DAY - 60), tasks(t - DAY - 30, "span-b", n=1, first=13, read=5, seconds=40),
                 samples(t - DAY - 60, 30), totals(t - DAY - 70, 10, 6300), padding(20))
    made.segment(2 * DAY, second(2 * DAY), tasks(2 * DAY - 10, "span-d", first=40, read=3), file_row("span-b", 700),
                 wait_row(2 * DAY, "span-b", 2), wait_row(2 * DAY, "span-d", 3), totals(2 * DAY - 60, 13, 6309), padding(20))
    made.segment(DAY, second(DAY), tasks(DAY - 10, "span-e", first=60, read=3), totals(DAY - 60, 16, 6400),
                 dask(DAY - 40, 7), padding(20))
    made.segment(7000, second(7000), tasks(6990, "span-c", first=50, read=900), samples(7000, 150), totals(2000, 24, 11000),
                 padding(20))
    with made.collect() as collector:
        cluster.wait_until(lambda: len(footers(made)) == len(segments(made)) - 1, "footers", 60, [collector.log])
        cluster.wait_until(lambda: len(known(made)) == 5, "totals", 60, [collector.log])
    assert [path.name for path in footers(made)] == [path.name for path in segments(made)]
    return made


def segments(store):
    return sorted(store.journal.glob("*.crema"))


def footers(store):
    return sorted((store.dir / "footers").glob("*-journal.crema"))


def totals_file(store):
    return store.dir / "footers" / f"{0:020}-runs.crema"


def known(store):
    """The runs with stored totals."""
    return [map["run"] for type, map in read(totals_file(store)) if type == RUN_TOTALS] if totals_file(store).exists() else []


def said(store, *options):
    """All runs, by three commands each, without the parts of a report that depend on the current time."""
    listed = json.loads(store.crema("report", "--list", "--json", "-", *options).stdout)["runs"]
    made = [listed]
    for run in listed:
        done = store.crema("report", "--run", run["run"], "--json", "-", *options)
        made += [store.crema("report", "--run", run["run"], *options).stdout, done.stdout, done.stderr]
        assert done.returncode == 0, done.stderr
    made.append(store.crema("compare", "span-a", "span-c", *options).stdout)
    made.append(store.crema("report", "--run", "nothing", *options).stderr)
    return made


@pytest.fixture(scope="module")
def truth(store, tmp_path_factory):
    """The reports made from the segments."""
    alone = store.copy(tmp_path_factory.mktemp("alone"))
    shutil.rmtree(alone.dir / "footers")
    made = said(alone, *SELECTED)
    assert [r["num_attempts"] for r in made[0]] == [6, 4, 3, 3, 3]
    shutil.rmtree(alone.dir)
    return [json.loads(json.dumps(part).replace(str(alone.dir), str(store.dir))) for part in made]


def damage(path, at=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0x10
    path.write_bytes(data)


def whole(store):
    pass


def removed(store):
    for path in footers(store)[::2]:
        path.unlink()


def no_totals(store):
    totals_file(store).unlink()


def damaged_totals(store):
    damage(totals_file(store))


def no_folder(store):
    shutil.rmtree(store.dir / "footers")


def damaged(store):
    for path in footers(store):
        damage(path)


def truncated(store):
    for n, path in enumerate(footers(store)):
        os.truncate(path, max(0, path.stat().st_size - 1 - 100 * n))


def swapped(store):
    one, two, *_ = footers(store)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)


def foreign(store):
    """A segment in place of each footer, or no frames at all."""
    for path in footers(store):
        path.write_bytes((store.journal / path.name).read_bytes())
    footers(store)[0].write_bytes(b"CREM" * 50)


def nothing(store):
    for path in footers(store):
        path.write_bytes(b"")


def no_files(store):
    for path in footers(store):
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("done", [whole, removed, no_totals, damaged_totals, no_folder, damaged, truncated, swapped, foreign, nothing, no_files],
                         ids=lambda done: done.__name__)
def test_reports_are_those_of_the_segments(store, truth, tmp_path, done):
    other = store.copy(tmp_path)
    done(other)
    assert json.loads(json.dumps(said(other, *SELECTED)).replace(str(other.dir), str(store.dir))) == truth


def test_what_a_selection_does_not_read_is_unknown(store):
    """The probes of these runs are hours away: only reading the whole journal includes them, and no other number differs."""
    for run in ("span-a", "span-b", "span-c", "span-d", "span-e"):
        whole, selected = (json.loads(store.crema("report", "--run", run, "--json", "-", *options).stdout)["metrics"] for options in ((), SELECTED))
        differ = {name for name in whole if whole[name] != selected[name] and selected[name] is not None}
        assert differ <= {"overhead_classes"}, {name: (whole[name], selected[name]) for name in differ}
        assert whole["num_attempts"] == selected["num_attempts"] > 0


def test_a_segment_that_is_another_by_now(store, tmp_path):
    """It grew, or ends differently: its footer is stale, and its current contents are reported."""
    other = store.copy(tmp_path)
    path = segments(other)[1]
    more = other.segment(0, tasks(3 * DAY - 200, "span-b", n=1, first=17, read=1))
    path.write_bytes(path.read_bytes() + more.read_bytes())
    more.unlink()
    found = json.loads(other.crema("report", "--run", "span-b", "--json", "-", *SELECTED).stdout)
    assert found["metrics"]["num_attempts"] == 5
    damage(segments(other)[4], -3)
    assert "skipped" in other.crema("report", "--run", "span-c", *SELECTED).stderr


def test_only_the_segments_of_a_run_are_opened(store, truth, tmp_path):
    """The first and the last segment are damaged before their last 4 KiB, which only reading them shows."""
    other = store.copy(tmp_path)
    for path in (segments(other)[0], segments(other)[5]):
        damage(path, 3000)
    by_footers, why = [other.crema("report", "--run", "span-b", "--json", "-", *SELECTED) for _ in range(2)]
    assert by_footers.stderr == why.stderr == "" and by_footers.stdout.replace(str(other.dir), str(store.dir)) in truth
    for run in ("span-a", "span-c"):
        assert "bytes skipped" in other.crema("report", "--run", run, *SELECTED).stderr
    shutil.rmtree(other.dir / "footers")
    assert "bytes skipped" in other.crema("report", "--run", "span-b", *SELECTED).stderr


def test_the_list_opens_no_segment_of_runs_that_are_over(store, truth, tmp_path):
    """Each is damaged where only reading it shows it. A run with an additional record is read."""
    other = store.copy(tmp_path)
    for path in segments(other)[:6]:
        damage(path, 3000)
    listed = other.crema("report", "--list", "--json", "-", *SELECTED)
    assert listed.stderr == "" and json.loads(listed.stdout)["runs"] == truth[0]
    shutil.copytree(store.journal, other.journal, dirs_exist_ok=True)
    other.segment(0, tasks(3 * DAY - 200, "span-b", n=1, first=17, read=1))
    listed = json.loads(other.crema("report", "--list", "--json", "-", *SELECTED).stdout)["runs"]
    assert [r["num_attempts"] for r in listed] == [6, 5, 3, 3, 3] and listed[2:] == truth[0][2:]


def test_totals_of_another_version(store, truth, tmp_path):
    """Its metrics may have been computed differently."""
    other = store.copy(tmp_path)
    runs = [map for type, map in read(totals_file(other)) if type == RUN_TOTALS]
    for map in runs:
        map["metrics"]["num_tasks"] += 1
    for by, seen in ((runs[0]["by"], 1), ("0.0.9", 0)):
        totals_file(other).write_bytes(b"".join([frame(1, {"format": 1, "kind": "totals", "created_ns": 0})] +
                                                [frame(RUN_TOTALS, {**map, "by": by}) for map in runs]))
        listed = json.loads(other.crema("report", "--list", "--json", "-", *SELECTED).stdout)["runs"]
        assert [r["num_tasks"] - was["num_tasks"] for r, was in zip(listed, truth[0])] == [seen] * 5


def test_segments_with_samples_of_a_run(tmp_path):
    """A segment without the run's records, but with samples from the run's time or a minute around it, is opened; one of
    another day is not."""
    made = Store(tmp_path)
    t = 3 * DAY
    made.segment(t + 1, second(t), tasks(t, "span-r", n=4, first=1), padding(20))
    made.segment(t - 1, samples(t - 5, 20), padding(20))
    made.segment(t - 39, samples(t - 90, 5), padding(20))
    made.segment(t - DAY, samples(t - DAY, 20), padding(20))

    with made.collect() as collector:
        cluster.wait_until(lambda: len(footers(made)) >= 4, "footers", 60, [collector.log])

    def report():
        done = made.crema("report", "--run", "span-r", "--json", "-", *SELECTED)
        assert done.returncode == 0
        return done.stdout, done.stderr

    by_footers = report()
    assert by_footers[1] == ""
    damage(segments(made)[3], 3000)
    assert report() == by_footers
    for path in segments(made)[1:3]:
        damage(path, 3000)
        assert "skipped" in report()[1], path
        damage(path, 3000)
    damage(segments(made)[3], 3000)
    (made.dir / "footers").rename(made.dir / "away")
    assert report() == by_footers


def test_samples_at_both_ends_of_a_run(tmp_path):
    """A run of 400 s, with another run 200 s later: samples from long before it until it started are read, and those at its end, which only
    the last task's record gives. No segment from the time between the runs is opened."""
    made = Store(tmp_path)
    t = 3 * DAY
    made.segment(t + 400, samples(t + 300, 280), padding(20))
    made.segment(t + 1, second(t), tasks(t, "span-r", n=4, first=1, seconds=100), padding(20))
    made.segment(t - 390, samples(t - 395, 5), padding(20))
    made.segment(t - 480, samples(t - 490, 5), padding(20))
    made.segment(t - 600, second(t - 600), tasks(t - 600, "span-n", first=11), padding(20))
    with made.collect() as collector:
        cluster.wait_until(lambda: len(footers(made)) >= 5, "footers", 60, [collector.log])
    for n, opened in enumerate((True, True, True, False, False)):
        damage(segments(made)[n], 3000)
        assert ("skipped" in made.crema("report", "--run", "span-r", "--json", "-", *SELECTED).stderr) == opened, n
        damage(segments(made)[n], 3000)


def test_a_note_tells_that_workers_are_silent(tmp_path):
    """The collector's own entry, a minute after the worker's last record; both are in the future, so that the current time does not matter. The
    footer has the latest of several notes."""
    def note(age):
        return lambda made: made.frames.append(frame(NOTE, {"time_ns": made.real_ns + (10 * DAY - age) * 10**9, "event": "start", "text": ""}))

    made = Store(tmp_path)
    made.segment(-1000, second(-1000), tasks(-1000, "span-x", n=1), note(-1009), padding(20))
    made.segment(-1010, padding(20))

    def silent():
        done = made.crema("report", "--run", "span-x", "--json", "-", *SELECTED)
        assert done.stderr == ""
        return [worker["silent"] for worker in json.loads(done.stdout)["workers"]]

    def footed():
        with made.collect() as collector:
            cluster.wait_until(lambda: len(footers(made)) >= 2, "footers", 60, [collector.log])

    assert silent() == [False]
    footed()
    assert silent() == [False]
    shutil.rmtree(made.dir / "footers")
    segments(made)[0].unlink()
    made.segment(-1000, second(-1000), tasks(-1000, "span-x", n=1), note(-1100), note(-1020), padding(20))
    assert silent() == [True]
    footed()
    assert silent() == [True]


def test_totals_that_came_late(tmp_path):
    """Totals of an agent that was disconnected arrive after later ones: those with the latest time are valid, also in a footer."""
    made = Store(tmp_path)
    t = 3 * DAY
    made.segment(t + 1, second(t), tasks(t, "span-r", n=4, first=1), padding(20))
    made.segment(t - 500, totals(t - 600, 4, 4000), totals(t - 700, 4, 4004), totals(t - 650, 4, 4002), padding(20))
    made.segment(t - 800, tasks(t - 900, "span-n", first=11), padding(20))

    def workers():
        done = made.crema("report", "--run", "span-r", "--json", "-", *SELECTED)
        assert done.returncode == 0 and done.stderr == ""
        return json.loads(done.stdout)["workers"]

    by_segments = workers()
    assert by_segments[0]["tasks"]["read_bytes"] == 4004
    with made.collect() as collector:
        cluster.wait_until(lambda: len(footers(made)) >= 3, "footers", 60, [collector.log])
    assert workers() == by_segments


def test_a_damaged_segment_is_always_read(store, tmp_path):
    other = store.copy(tmp_path)
    shutil.rmtree(other.dir / "footers")
    damage(segments(other)[0], 3000)
    with other.collect() as collector:
        cluster.wait_until(lambda: len(footers(other)) >= 6, "footers", 60, [collector.log])
    assert "bytes skipped" in other.crema("report", "--run", "span-c", *SELECTED).stderr


def test_footers_of_no_segment_go(store, tmp_path):
    other = store.copy(tmp_path)
    gone = footers(other)[0]
    (other.journal / gone.name).unlink()
    left, fresh = (other.dir / "footers" / name for name in (".new-0123", ".new-4567"))
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 3600,) * 2)
    fresh.write_bytes(b"another child writes it")
    with other.collect() as collector:
        cluster.wait_until(lambda: not gone.exists() and not left.exists(), "tidy", 60, [collector.log])
    assert len(footers(other)) == len(segments(other)) and fresh.exists()


def test_the_folder_is_there_when_it_is_needed(store, tmp_path):
    """Runs are dropped by their totals, even if the child that writes footers has not created the folder yet."""
    other = store.copy(tmp_path)
    shutil.rmtree(other.dir / "footers")
    late = ["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", "trace=mkdir,mkdirat", "-e", "inject=mkdir,mkdirat:delay_enter=300000"]
    with other.collect("--keep", "3d", prefix=late) as collector:
        collector.wait("runs dropped")
    assert "cannot drop" not in collector.log.text() and len(other.list()[1]) == 1


def test_a_folder_that_cannot_be_written(store, tmp_path):
    """Reports continue to use the segments, and one line gives the reason."""
    other = store.copy(tmp_path)
    shutil.rmtree(other.dir / "footers")
    (other.dir / "footers").write_text("in the way")
    with other.collect() as collector:
        collector.wait("cannot write the footers")
    assert len(json.loads(other.crema("report", "--list", "--json", "-", *SELECTED).stdout)["runs"]) == 5


def test_a_task_that_ends_in_the_next_segment(tmp_path):
    """The survey keeps the first task of a run, and the footer marks it as running; the next footer has another task. The
    run that follows is not concurrent with it. All times are in the future, so that no worker counts as silent."""
    made = Store(tmp_path)
    made.segment(-1000, begun(-1000, "span-x", 1))
    made.segment(-1010, tasks(-999, "span-x", n=1, first=2, seconds=20), tasks(-1000, "span-x", n=1, first=1, seconds=30))
    made.segment(-1090, tasks(-1100, "span-y", n=1, first=5))

    def concurrent():
        return [json.loads(made.crema("report", "--run", span, "--json", "-", *SELECTED).stdout)["metrics"]["concurrent_runs"]
                for span in ("span-x", "span-y")]

    assert concurrent() == [0, 0]
    with made.collect() as collector:
        cluster.wait_until(lambda: len(footers(made)) == 3, "footers", 60, [collector.log])
    assert concurrent() == [0, 0]
