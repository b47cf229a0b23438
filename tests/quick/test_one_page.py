"""`crema page`: one live page over the journals of several collectors equals that of one collector that has all records, whatever
each journal has, while they grow, and while their segments are dropped."""

import json
import os
import shutil
import subprocess

import pytest
import test_footers  # sets the path to the integration tests' modules
import cluster
import frames
from frames import BASE_NS, BOOT_NS, DATA, HELLO, TASK_END, Journal, frame
from one_page import Page
from stores import DAY, TOTALS, Store, tasks, totals
from test_footers import store  # noqa: F401 (fixture)
from test_several_dirs import WAYS, split, whole_frames

GOODBYE, NAMES = 14, frames.names()
SUMS = ("tasks", "totals", "prefixes", "completeness", "workers", "activity", "state", "worker_rows")


def sums(live):
    rows = [{name: value for name, value in row.items() if name != "heard_seconds"} for row in live["worker_rows"]]
    return {**{name: live[name] for name in SUMS}, "worker_rows": rows}


@pytest.fixture(scope="module")
def whole(store, tmp_path_factory):  # noqa: F811
    """live.json and counters of one collector that has everything."""
    one = store.copy(tmp_path_factory.mktemp("whole"))
    with one.collect() as collector:
        return sums(json.loads(collector.get("live.json"))), collector.counters()


@pytest.mark.parametrize("way", WAYS)
def test_as_one_collector(store, whole, tmp_path, way):  # noqa: F811
    parts = split(store, tmp_path, WAYS[way], 3 if way == "in threes" else 2)
    before = {path: path.stat() for part in parts for path in part.dir.rglob("*")}
    for dirs in (parts, parts[::-1]):
        with Page(tmp_path, [part.dir for part in dirs], store.env) as page:
            live = page.caught_up() if way == "in threes" and dirs is parts else page.read()
            if live["completeness"]["records_lost_at_least"] is None:  # not known for the first ten seconds
                assert {**sums(live), "completeness": 0} == {**whole[0], "completeness": 0}
            else:
                assert sums(live) == whole[0] and page.counters() == whole[1]
            assert live["journals_trouble"] is None and [journal["dir"] for journal in live["journals"]] == [str(part.dir) for part in dirs]
            assert live["tasks"]["ok"] == sum(run["num_tasks"] for run in json.loads(page.get("runs.json"))["runs"])
    assert {path: path.stat() for part in parts for path in part.dir.rglob("*")}.keys() == before.keys()
    assert all(path.stat().st_mtime_ns == was.st_mtime_ns for path, was in before.items())


def test_reports_of_all(store, tmp_path):  # noqa: F811
    parts = split(store, tmp_path, WAYS["to and fro"])
    dirs = [word for part in parts for word in ("--dir", part.dir)]
    with Page(tmp_path, [part.dir for part in parts], store.env) as page:
        run = json.loads(page.get("runs.json"))["runs"][0]["run"]
        assert json.loads(page.get(f"report.json?run={run}")) == json.loads(
            subprocess.run([cluster.BUILD / "crema", "report", *dirs, "--run", run, "--json", "-"], env=store.env, capture_output=True).stdout)
        assert json.loads(page.get(f"data.json?run={run}"))["run"]["id"] == run and "<html" in page.get("")
        page.wait(lambda: "crema_run_num_tasks" in page.get("metrics"), "the last run's metrics")


def test_while_they_grow(store, whole, tmp_path):  # noqa: F811
    """Each frame is appended while the page reads, to one journal or both; the second journal appears later."""
    parts = [Store(tmp_path / str(k)) for k in range(2) if not (tmp_path / str(k)).mkdir()]
    shutil.rmtree(parts[1].dir)
    with Page(tmp_path, [part.dir for part in parts], store.env) as page:
        page.wait(lambda: page.states() == ["missing", "missing"], "both to be missing")
        live = page.live()
        assert live["tasks"]["ok"] is live["totals"]["read"] is live["workers"]["seen"] is live["activity"]["done"] is live["rates"]["cpu"] is None
        assert "crema_tasks" not in page.get("metrics") and 'crema_journals{state="missing"} 2' in page.get("metrics")
        i = 0
        for path in test_footers.segments(store):
            for part in parts:
                part.journal.mkdir(parents=True, exist_ok=True)
            for kind, frame in whole_frames(path):
                for k in ({0, 1} if kind != DATA or i % 7 == 0 else {i // 5 % 2}):
                    with open(parts[k].journal / path.name, "ab") as out:
                        out.write(frame[:40]), out.flush(), out.write(frame[40:])
                i += kind == DATA
        page.wait(lambda: page.live()["tasks"]["ok"] == whole[0]["tasks"]["ok"], "all tasks")
        live, counters = page.caught_up(), page.counters()
        counters.pop("crema_records_lost_total", None)  # here the worker may still be connected
        assert (live["totals"], live["prefixes"], counters) == (whole[0]["totals"], whole[0]["prefixes"], whole[1])
        text = page.log.text()
    for part in parts:
        assert text.count(f"crema: page: cannot read '{part.journal}': no such file or directory; the sums lack its records") == 1
        assert text.count(f"crema: page: '{part.journal}' can be read again") == 1


def check_reports_without(parts, page, env, error):
    """Reports are of the journal that can be read, and say that the other one is missing."""
    alone = subprocess.run([cluster.BUILD / "crema", "report", "--dir", parts[0].dir, "--json", "-"], env=env, capture_output=True)
    report, alone = json.loads(page.get("report.json")), json.loads(alone.stdout)
    assert report["tasks"] == alone["tasks"] and report["tasks"]
    note = f"{parts[1].dir}: cannot be read ({error}), and what it has is not in this report"
    assert note in report["completeness"]["notes"] and report["completeness"]["records_lost"] is None
    assert "".join(note.split()) in "".join(page.get("report.txt").split()) and len(json.loads(page.get("runs.json"))["runs"]) > 0


def test_a_journal_goes_and_returns(store, whole, tmp_path):  # noqa: F811
    parts = split(store, tmp_path, WAYS["moved early, sent again"])
    with Page(tmp_path, [part.dir for part in parts], store.env) as page:
        page.read()
        parts[1].dir.rename(tmp_path / "away")
        parts[1].dir.mkdir()
        (parts[1].dir / "journal").touch()  # also for root
        page.wait(lambda: page.states() == ["read", "unreadable"], "the second one to be unreadable")
        live = page.live()
        assert live["journals"][1]["error"] == "not a directory"
        check_reports_without(parts, page, store.env, "not a directory")
        assert live["journals_trouble"] == f"1 of 2 journals cannot be read, and the sums lack what it has: '{parts[1].journal}': not a directory"
        assert live["completeness"]["records_lost"] is live["completeness"]["records_lost_at_least"] is None
        assert "\ncrema_records_lost" not in page.get("metrics")
        assert sums(live)["totals"] == whole[0]["totals"]  # what was read stays
        shutil.rmtree(parts[1].dir)
        page.wait(lambda: page.states() == ["read", "missing"], "the second one to be missing")
        check_reports_without(parts, page, store.env, "no such file or directory")
        (tmp_path / "away").rename(parts[1].dir)
        page.wait(lambda: page.states() == ["read", "read"], "it to be back")
        assert sums(page.caught_up()) == whole[0] and page.counters() == whole[1]
        assert page.log.text().count("cannot read") == 2 and page.log.text().count("can be read again") == 1


def test_a_record_that_no_journal_has(store, tmp_path):  # noqa: F811
    """It is lost; a record that only the other journal has is not."""
    parts = split(store, tmp_path, lambda i, n: set() if i == n // 2 else {i % 2})
    with Page(tmp_path, [part.dir for part in parts], store.env) as page:
        page.caught_up()
        assert "\ncrema_records_lost_at_least_total 1\n" in page.get("metrics")


def test_lost_records_everywhere(two, tmp_path):
    """The first worker refused 5 records, which are a gap; the second one lost 3; the third one refused 10, whose gap is not visible yet."""
    def worker(id, gap, refused):
        said = [{"boot_ns": BOOT_NS + k * 10**9, "records_refused": k * refused, "tasks_done": 1} for k in range(2)]
        yield hello(id)
        yield frame(DATA, [[TASK_END, 1, *({"attempt": 1, "status": "ok", "key": id.hex(), "start_boot_ns": BOOT_NS, "wall_ns": 10**9}.get(name) for name in NAMES)]], id, 0, 1)
        yield frame(DATA, [[TOTALS, said[0]]], id, 1, 1)
        yield frame(DATA, [[TOTALS, said[1]]], id, 2 + gap, 1)
        yield frame(DATA, [[GOODBYE, {"boot_ns": BOOT_NS + 2 * 10**9, "how": "exit"}]], id, 3 + gap, 1)

    parts = [list(worker(id * 16, gap, refused)) for id, gap, refused in ((b"a", 5, 5), (b"b", 3, 0), (b"c", 0, 10))]
    with two(parts[0] + parts[2], parts[1]) as page:
        lost = page.caught_up()["completeness"]
        assert (lost["records_lost"], lost["records_lost_at_least"], lost["records_refused"]) == (3, 3, 15)
        told = page.counters()
        assert [told[f"crema_records_{name}_total"] for name in ("lost", "lost_at_least", "refused")] == [3, 3, 15]
        lost = json.loads(page.get("report.json"))["completeness"]
        assert (lost["records_lost"], lost["records_lost_at_least"], lost["records_refused"]) == (3, 3, 15)
    (tmp_path / "all").mkdir()
    one = Store(tmp_path / "all")
    journal = Journal(one.journal)
    journal.frames += sum(parts, [])
    journal.write()
    with one.collect() as collector:
        assert json.loads(collector.get("live.json"))["completeness"]["records_lost"] == 3
        told = collector.counters()
        assert [told[f"crema_records_{name}_total"] for name in ("lost", "lost_at_least", "refused")] == [3, 3, 15]


def test_dropped_while_it_is_read(tmp_path):
    """Retention removes segments that the page has read: the sums stay. A page that starts later reports the dropped run."""
    parts = []
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        parts.append(Store(tmp_path / str(k)))
        parts[k].seq = 1000 * k
        parts[k].segment((5 + k) * DAY, tasks((5 + k) * DAY - 10, f"old-{k}", first=10 * k + 1), totals((5 + k) * DAY - 100, 3, 3000 - 10 * k))
        parts[k].segment(4 * DAY)
        parts[k].segment(1000 + k, tasks(990, f"new-{k}", first=10 * k + 101))
    with Page(tmp_path, [part.dir for part in parts], parts[0].env) as page:
        before = page.read()
        assert (before["tasks"]["ok"], before["totals"]["read"]) == (4 * 3, 3007)
        with parts[0].collect("--keep", "3d") as collector:
            cluster.wait_until(lambda: (parts[0].journal / f"{0:020}-dropped.crema").exists(), "the old run to be dropped", 60, [collector.log])
        page.wait(lambda: json.loads(page.get("runs.json"))["dropped_runs"], "the dropped run to be listed")
        after = page.read()
        assert (after["tasks"], after["totals"], after["prefixes"]) == (before["tasks"], before["totals"], before["prefixes"])
        assert after["journals_trouble"] is None and [journal["runs_dropped"] for journal in after["journals"]] == [0, 0]
    with Page(tmp_path, [part.dir for part in parts], parts[0].env) as page:
        later = page.caught_up()
        assert [journal["runs_dropped"] for journal in later["journals"]] == [1, 0]
        assert later["tasks"]["ok"] == before["tasks"]["ok"] - 3
        assert later["totals"] == before["totals"]
        assert later["completeness"]["records_lost_at_least"] == 1000 - parts[0].seq  # what was dropped is not lost


def end(attempt, worker, seq, stream=1, **said):
    """A frame with a task's end."""
    said = {"attempt": attempt, "status": "ok", "prefix": "p", "key": "k", **said}
    return frame(DATA, [[TASK_END, 1, *(said.get(name) for name in NAMES)]], worker, seq, 1, stream=stream)


def hello(worker, stream=1):
    return frame(HELLO, {"facts": {"boot_ns": BOOT_NS, "real_ns": BASE_NS}, "task_fields": NAMES}, worker, stream=stream)


@pytest.fixture
def two(tmp_path):
    """Two journals for frames by hand, and a page over both."""
    def made(*contents):
        for k, content in enumerate(contents):
            journal = Journal(tmp_path / str(k) / "journal")
            journal.frames += content
            journal.write()
        return Page(tmp_path, [tmp_path / str(k) for k in range(2)], {**os.environ, "HOME": str(tmp_path)})
    return made


def test_workers_that_left_before_their_first_records_are_read(two):
    """3,000 workers moved and left: the second journal, with their goodbyes, is short and read long before the first one."""
    ids = [i.to_bytes(16, "big") for i in range(1, 3001)]
    padding = [frame(DATA, [[99]], b"x" * 16, i, 1) for i in range(8000)]
    first = padding + [part for id in ids for part in (hello(id), *(end(n, id, n) for n in range(3)))]
    second = [part for id in ids for part in (hello(id), end(3, id, 3), frame(DATA, [[GOODBYE, {"how": "exit"}]], id, 4, 1))]
    with two(first, second) as page:
        live = page.read()
        assert (live["tasks"]["ok"], live["workers"]["ended"], live["workers"]["seen"]) == (4 * 3000, 3000, 3001)


def test_numbers_count_once(two):
    """Records that nobody can understand have only their number: the journals have 0 to 2, and 1, 2 to 4, 3 and 2 again."""
    def bad(seq, n=1):
        return frame(DATA, [[TOTALS]] * n, b"w" * 16, seq, n)

    for parts in (([bad(0, 3)], [bad(1), bad(2, 3), bad(3), bad(2)]), ([bad(4), bad(0)], [bad(0), bad(1, 4)])):
        with two(*([hello(b"w" * 16), *part] for part in parts)) as page:
            page.read()
            assert "\ncrema_records_bad_total 5\n" in page.get("metrics")


def test_many_streams_of_a_worker(two):
    """Ten agents of one worker, one after the other: each stream's records have the field order of its hello."""
    id = b"w" * 16
    for first in (0, 1):
        parts = [[], []]
        for stream in range(1, 11):
            parts[(stream + first) % 2] += [hello(id, stream)]
        for stream in range(1, 11):
            parts[(stream + first) % 2] += [end(stream, id, 0, stream)]
        with two(*parts) as page:
            assert page.read()["tasks"]["ok"] == 10
            assert "\ncrema_records_bad_total 0\n" in page.get("metrics")


def test_gaps_beyond_the_bound_count_as_lost(two, tmp_path):
    """4,296 gaps, 201 more than are kept: the oldest are given up, and their records, which arrive later, do not count."""
    id, n = b"w" * 16, 2 * 4297
    with two([hello(id), *(end(i, id, i) for i in range(0, n, 2))]) as page:
        page.wait(lambda: page.states() == ["read", "missing"], "the first journal")
        journal = Journal(tmp_path / "1" / "journal")
        journal.frames += [hello(id), *(end(i, id, i) for i in range(1, n, 2))]
        journal.write()
        live = page.caught_up()
        assert live["tasks"]["ok"] == n - 201 and "\ncrema_records_lost_at_least_total 201\n" in page.get("metrics")


def test_top_shows_what_is_missing(two, tmp_path):
    with two([hello(b"w" * 16)]) as page:
        page.wait(lambda: page.states() == ["read", "missing"], "the first journal")
        done = subprocess.run([cluster.BUILD / "crema", "top", "--once", "--http", f"127.0.0.1:{page.port}"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "HOME": str(tmp_path)})
        assert done.returncode == 0 and "; 1 of 2 journals cannot be read, and the sums lack what it has: '" in done.stdout, done.stdout


def test_wrong_words(tmp_path):
    done = subprocess.run([cluster.BUILD / "crema", "page", "--dir", tmp_path, "--http", "nowhere:x"], capture_output=True, text=True,
                                  env={**os.environ, "HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (1, "crema: page: --http: 'nowhere:x' is not ADDR:PORT\n")
