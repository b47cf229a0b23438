"""Reports of runs with very many tasks: the right sums in bounded memory. The journal is made by
tests/bench/make_journal, which defines how many tasks there are and which fail."""

import json
import resource
import shutil
import subprocess
import time
import urllib.request

import browser
import cluster
import pytest
from stores import Store

MIB = 1 << 20
FAIL_EVERY = 1000  # as in make_journal


@pytest.fixture(scope="module")
def maker():
    target = cluster.BUILD / "tests" / "bench" / "make_journal"
    subprocess.run(["make", "-C", str(cluster.ROOT), f"{target.relative_to(cluster.ROOT)}"], check=True, capture_output=True)
    return target


def report(journal, memory, *options):
    return crema("report", journal, memory, *options)


def crema(command, journal, memory, *options):
    """Standard output of a command whose private memory the kernel limits."""
    done = subprocess.run(["prlimit", f"--data={memory}", cluster.BUILD / "crema", command, "--dir", journal, *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_text(text, tasks):
    """Every 1,000th attempt fails and is retried."""
    failed = tasks // FAIL_EVERY
    assert f"{tasks} of {tasks + failed} attempts at tasks counted, {failed} wasted" in text


def make(maker, directory, *args):
    subprocess.run([maker, directory, *map(str, args)], check=True)
    return directory


@pytest.fixture(scope="module")
def journal(maker, tmp_path_factory):
    return make(maker, tmp_path_factory.mktemp("big") / "journal", 25_000, 10)


PART = 8 * MIB + 500 * MIB // 40  # a fortieth of what 1,000,000 tasks may take, plus the libraries' own


def test_text_in_bounded_memory(journal):
    check_text(report(journal, PART, "--full"), 25_000)


def test_too_little_memory_is_said(journal):
    """The limit is effective: less than half of it is not enough, and one line reports that."""
    with pytest.raises(AssertionError, match="cannot allocate memory"):
        report(journal, PART // 2)


def test_json_in_bounded_memory(journal):
    """Written as a stream: it is far larger than the memory it needs, and its sums equal those of its rows."""
    text = report(journal, PART, "--json", "-")
    assert len(text) > 4 * PART
    found = json.loads(text)
    assert len(found["tasks"]) == 25_025 and sum(t["counted"] for t in found["tasks"]) == 25_000
    read = sum(t["read_bytes"] for t in found["tasks"])
    assert read == sum(w["tasks"]["read_bytes"] for w in found["workers"])
    assert read == sum(found["timeline"]["layers"]["read_bytes"])
    assert found["metrics"]["total_events"] == 25_000 * 50_000


def test_many_runs_are_listed(maker, tmp_path):
    """Twenty spans with equal parts of the tasks: read at once, one by one, and a few at a time."""
    journal = make(maker, tmp_path / "journal", 2000, 2, 20)
    text = report(journal, PART, "--list", "--json", "-")
    assert [r["num_tasks"] for r in json.loads(text)["runs"]] == [100] * 20
    for size in ("1", "100k"):
        assert report(journal, PART, "--list", "--json", "-", "--read-whole", size) == text


@pytest.fixture(scope="module")
def many(maker, tmp_path_factory):
    """Twenty runs that do not fit in FEW, a few of them do."""
    return make(maker, tmp_path_factory.mktemp("many") / "journal", 60_000, 5, 20)


FEW = 16 * MIB


def test_the_list_takes_the_memory_of_a_few_runs(many):
    """The limit is effective: the whole journal does not fit."""
    listed = json.loads(report(many, FEW, "--list", "--json", "-", "--read-whole", "8M"))["runs"]
    assert [r["num_tasks"] for r in listed] == [3000] * 20 and [r["num_attempts"] for r in listed] == [3003] * 20
    assert [r["total_events"] for r in listed] == [3000 * 50_000] * 20
    with pytest.raises(AssertionError, match="cannot allocate memory"):
        report(many, FEW, "--list")


def test_one_run_of_many_in_its_own_memory(many):
    """The journal is twenty times as large."""
    journal = many
    listed = json.loads(report(journal, 4 * FEW, "--list", "--json", "-"))["runs"]
    for run in (listed[-1]["run"], listed[7]["run"]):
        found = json.loads(report(journal, FEW, "--run", run, "--read-whole", "1", "--json", "-"))
        assert found["run"] == run and found["metrics"]["num_tasks"] == 3000
        assert sum(t["counted"] for t in found["tasks"]) == 3000
    with pytest.raises(AssertionError, match="cannot allocate memory"):
        report(journal, FEW, "--json", "-")


def test_two_runs_of_many_are_compared_in_their_own_memory(many):
    """The limit is effective: the whole journal does not fit."""
    names = "00000000-0000-4000-8000-000000000003", "last"
    found = json.loads(crema("compare", many, FEW, "--json", "-", "--read-whole", "1", *names))["runs"]
    assert [(r["num_chunks"], r["total_events"]) for r in found] == [(3000, 3000 * 50_000)] * 2 and found[0]["run"] < found[1]["run"]
    with pytest.raises(AssertionError, match="cannot allocate memory"):
        crema("compare", many, FEW, *names)


def test_old_runs_go_in_the_memory_of_one(maker, tmp_path):
    """The limit, which includes the stack of the thread that syncs, is effective: the whole journal does not fit."""
    store, start = Store(tmp_path), int(time.time()) - 2 * 86_400
    journal = make(maker, store.journal, 40_000, 2, 4, start)
    (made,) = journal.glob("*-journal.crema")
    made.rename(journal / f"{start * 10**9:020}-journal.crema")
    runs, _ = store.list()
    limit = ["prlimit", f"--data={23 * MIB}"]
    with store.collect("--io-uring", "off", "--keep", "1d", "--read-whole", "100G", prefix=limit) as collector:
        collector.wait("cannot allocate memory")
    with store.collect("--io-uring", "off", "--keep", "1d", "--read-whole", "8M", prefix=limit) as collector:
        collector.wait("4 runs dropped")
    assert store.list() == ([], runs)
    for run in runs:
        found = store.report(run)["metrics"]
        assert (found["num_tasks"], found["total_events"]) == (10_000, 10_000 * 50_000)


def cpu_seconds(argv):
    """User CPU time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


@pytest.fixture(scope="module")
def growing(maker, tmp_path_factory):
    """A run, and one with four times its tasks and workers."""
    return [make(maker, tmp_path_factory.mktemp("growing") / "journal", n * 10_000, n * 100) for n in (1, 4)]


@pytest.mark.parametrize("options", [(), *(pytest.param(each, marks=pytest.mark.further) for each in [("--json", "/dev/null"), ("--html", "/dev/null"), ("--list",)])],
                         ids=["text", "json", "html", "list"])
def test_time_grows_as_the_tasks_do(growing, options):
    """Four times as many tasks and workers take four times as long; comparing each with each would take 16 times. The least of
    three pairs hardly depends on the machine's other load."""
    pairs = [[cpu_seconds([cluster.BUILD / "crema", "report", "--dir", journal, *options]) for journal in growing] for _ in range(3)]
    assert min(four / once for once, four in pairs) < 6, pairs


@pytest.mark.matrix
def test_the_page_of_a_million_tasks(million, tmp_path):
    """The live page's data is within the server's limit, and a browser draws its charts."""
    store = Store(tmp_path)
    shutil.copytree(million, store.journal)
    with store.collect() as collector, browser.Browser(tmp_path / "chromium") as tab:
        with urllib.request.urlopen(f"http://127.0.0.1:{collector.port}/data.json", timeout=180) as answer:
            data = json.load(answer)
        assert data["stream"]["total"] == 1_001_000 and sum(sum(lane) for lane in data["stream"]["cells"]) > 0
        tab.open(f"http://127.0.0.1:{collector.port}/")
        panels = "document.querySelectorAll('main > section.panel').length"
        cluster.wait_until(lambda: tab.run(panels) >= 15, "the charts", 180, [collector.log])
        assert tab.run("document.querySelectorAll('#chart-stream path').length") > 0
        assert tab.problems == []


@pytest.mark.matrix
@pytest.mark.parametrize("options", [("--full",), ("--json", "-"), ("--list",)], ids=["text", "json", "list"])
def test_a_million_tasks(million, options):
    text = report(million, 500 * MIB, *options)
    if options == ("--full",):
        check_text(text, 1_000_000)


@pytest.fixture(scope="module")
def million(maker, tmp_path_factory):
    return make(maker, tmp_path_factory.mktemp("million") / "journal", 1_000_000, 100)
