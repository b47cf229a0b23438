"""Long journals are read by selection: the results of `crema compare`, `crema report --run` and of dropping old runs are
the same as for the whole journal. Journals made by hand, in which runs share segments and span several."""

import json
import re

import pytest
from stores import DAY, PREPROCESSING, Store, begun, noise, samples, tasks, totals

WHOLE, SELECTED = "100G", "1"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Four days ago a run of three spans (preprocessing, the processor's way, chunks) with a late task; then a span that
    only carried a processor, four others, and a run that must not include it, as four are between them. A run without a
    span. The last one continues in a second segment."""
    made = Store(tmp_path_factory.mktemp("long"))
    t = 4 * DAY
    scatter = {"prefix": "lambda", "flags": 0, "events": None, "seconds": 1}
    others = [tasks(t - 302 - i, f"span-o{i}", n=1, first=20 + i, **{**scatter, "prefix": "sum"}) for i in range(4)]
    made.segment(t + 20, tasks(t, "span-p", n=2, first=1, prefix="metadata", flags=PREPROCESSING, events=None, dataset="d", filename="f"),
                 tasks(t - 25, "span-l", n=1, first=3, **scatter), tasks(t - 30, "span-a", first=4, dataset="d", filename="f"),
                 samples(t, 80), totals(t - 200, 6, 6000))
    made.segment(t - 290, tasks(t - 300, "span-x", n=1, first=10, **scatter), *others,
                 tasks(t - 310, "span-b", first=30, read=70), tasks(t - 60, "span-a", n=1, first=7, read=5, dataset="d", filename="f"))
    made.segment(2 * DAY, tasks(2 * DAY - 10, None, first=40, read=3), begun(6900, "span-c", 53))
    made.segment(7000, tasks(6990, "span-c", first=50, read=900), samples(7000, 150))
    made.segment(3000, tasks(6900, "span-c", n=1, first=53, read=11, seconds=40), totals(2000, 24, 11000))
    return made


@pytest.fixture(scope="module")
def runs(store):
    """The runs' ids by their spans."""
    listed = json.loads(store.crema("report", "--list", "--json", "-", "--read-whole", WHOLE).stdout)["runs"]
    spans = ("span-a", "span-x", "span-o0", "span-o1", "span-o2", "span-o3", "span-b", None, "span-c")
    assert [r["num_attempts"] for r in listed] == [7, 1, 1, 1, 1, 1, 3, 3, 4]
    return {span: r["run"] for span, r in zip(spans, listed, strict=True)}


def said(store, command, *args):
    done = [store.crema(command, "--read-whole", size, *args) for size in (WHOLE, SELECTED)]
    whole, selected = [(d.returncode, d.stdout, d.stderr) for d in done]
    assert selected == whole
    return whole


@pytest.mark.parametrize("spans", [("span-a", "span-c"), ("span-b", "span-x", "span-a"), ("span-b", None), (None, "span-x")])
def test_compared_as_read_whole(store, runs, spans):
    names = [runs[span] for span in spans]
    status, text, _ = said(store, "compare", "--json", "-", *names)
    assert status == 0 and [r["run"] for r in json.loads(text)["runs"]] == names
    assert said(store, "compare", *names)[0] == 0


def test_names_mean_the_same(store, runs):
    """The last run is the last of all, even if another one is read as well; spans, ends of ids, other directories."""
    def found(*names):
        status, text, why = said(store, "compare", "--json", "-", *names)
        assert status == 0, why
        return [r["run"] for r in json.loads(text)["runs"]]

    assert found(runs["span-a"], "last") == [runs["span-a"], runs["span-c"]]
    assert found("span-l", runs["span-x"][-4:], f"{store.dir}:span-b") == [runs[s] for s in ("span-a", "span-x", "span-b")]
    assert found(str(store.dir), f"{store.dir}:span-b") == [runs["span-c"], runs["span-b"]]


def test_names_of_no_run(store, runs):
    """A part that many ids have in common names none of them, even if only one of these is read."""
    for name in ("20", "nothing", "span-"):
        line = f"'20' matches {len(runs)} runs: " if name == "20" else f"no run '{name}' in '{store.dir}'"
        for command in (["report", "--run", name], ["compare", name, "nothing"], ["compare", runs[None], name]):
            status, _, why = said(store, *command)
            assert status == 1 and line in why and why.count("\n") == 1
    why = said(store, "compare", "nothing", "20")[2]
    assert "no run 'nothing'" in why and "matches" not in why  # matches of the other name are not reported for this one
    assert "is given twice" in said(store, "compare", "last", runs["span-c"])[2]


def test_reported_as_read_whole(store, runs):
    for run in runs.values():
        whole, selected = [json.loads(store.crema("report", "--run", run, "--json", "-", "--read-whole", size).stdout)
                           for size in (WHOLE, SELECTED)]
        for part in ("run", "metrics", "tasks", "chunks", "files"):
            assert selected[part] == whole[part], (run, part)


@pytest.mark.parametrize("option, value", [("--keep", "3d"), ("--keep", "1d"), ("--max-bytes", "130k")])
def test_the_same_is_dropped(store, runs, tmp_path, option, value):
    """A report of it stays the same as before it was dropped. A dropped run has its last record in a separate
    segment, which is dropped as well, though for --max-bytes the segments before it are enough."""
    store = store.copy(tmp_path / "store")
    store.segment(4 * DAY - 400, noise(50), tasks(4 * DAY - 395, "coffea-12.0", n=2, first=60, read=13))
    late = store.segment(4 * DAY - 500, noise(100), tasks(4 * DAY - 320, "span-b", n=1, first=33))
    store.segment(4 * DAY - 600)
    states = {size: store.copy(tmp_path / size) for size in (WHOLE, SELECTED)}
    segments = {path.name for path in store.journal.iterdir()}

    def drop(size):
        with states[size].collect(option, value, "--read-whole", size) as collector:
            collector.wait("runs dropped")

    for size in states:
        drop(size)
    # A run whose footers are being written at that moment stays until the next check, a minute later or at a start.
    for _ in range(4):
        kept = {size: len(state.list()[0]) for size, state in states.items()}
        if kept[WHOLE] != kept[SELECTED]:
            drop(max(kept, key=kept.get))
    left = []
    for state in states.values():
        kept, gone = state.list()
        assert gone and runs["span-c"] in kept
        reports = [state.report(run) for run in gone]
        for run, r in zip(gone, reports):
            before = store.report(run)["metrics"]
            assert r["metrics"] == {name: before[name] for name in r["metrics"]}
            assert r["dropped"].pop("at") and r["dropped"]["option"] == option
        left.append((kept, sorted(reports, key=lambda r: r["run"]), segments & {path.name for path in state.journal.iterdir()}))
    assert left[0] == left[1] and late.name not in left[0][2]


def test_a_long_start_is_reported(tmp_path):
    """A journal that takes more than 2 s: it reports what it reads and how far it is, at growing intervals, before the ports are
    printed. A journal that takes less: it prints nothing."""
    store = Store(tmp_path)
    for age in range(20):
        store.segment(DAY - 60 * age, noise(300))
    size = sum(path.stat().st_size for path in store.journal.iterdir()) / 1e6
    slowly = ["strace", "-f", "-qq", "-o", tmp_path / "trace", "-e", "trace=pread64", "-e", "inject=pread64:delay_exit=60000"]
    with store.collect(prefix=slowly) as collector:
        text = collector.log.text()
        found = re.findall(r"reading the journal in '(\S+)': (\d+) of (\d+) MB after (\d+) s; ", text[:text.index("status page")])
        after = [int(seconds) for *_, seconds in found]
        assert len(after) >= 2 and after[0] >= 2 and all(late >= 2 * early for early, late in zip(after, after[1:]))
        assert {folder for folder, *_ in found} == {str(store.journal)}
        done = [int(mb) for _, mb, *_ in found]
        assert 0 < done[0] < done[-1] < size and done == sorted(done)
        assert {int(total) for _, _, total, _ in found} == {int(size)}
    with store.collect() as collector:
        assert "reading the journal" not in collector.log.text()
