"""What a notebook shows of a run: findings, repr, the card and the charts, each against the run's JSON and the program's own
output; and crema.preload() with programs that lack the library or do not load it."""

import copy
import html
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import test_exports
import test_reports  # sets the path to frames.py and browser.py
import test_worker
import browser
import frames

sys.path.insert(0, str(test_reports.ROOT / "python"))
import crema
import crema.card
from crema import plots

BUILD = test_worker.BUILD


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("display")
    made = frames.Journal(folder / "journal")
    test_exports.fill(made)
    made.write()
    found = crema.load(dir=folder)
    found.folder = folder
    return found


def program(folder, *arguments):
    return subprocess.run([BUILD / "crema", "report", "--dir", folder, *arguments], capture_output=True, text=True, check=True).stdout


# --- findings and repr

def changed(run, **more):
    data = copy.deepcopy(run.json)
    data.update(more)
    return crema.Run(data)


def test_findings(run):
    rows = run.json["findings"]
    assert len(rows) > 3 and [(f.id, f.severity, f.text, f.advice) for f in run.findings] == [
        (r["id"], r["severity"], r["sentence"], r["advice"]) for r in rows]
    assert [f.evidence for f in run.findings] == [{e["name"]: e["value"] for e in r["evidence"]} for r in rows]
    assert repr(run.findings) == "\n".join(str(f) for f in run.findings) and run.findings[0].text in repr(run.findings)


def test_cost_of_a_finding(run):
    rows = [{**row, "cost_seconds": cost, "gain_seconds": gain} for row, cost, gain in zip(run.json["findings"], (12.345, 0, None), (7.5, None, 0))]
    assert [f.gain_seconds for f in changed(run, findings=rows).findings] == [7.5, None, 0]
    first, none, unknown = changed(run, findings=rows).findings
    assert (first.cost_seconds, first.cost) == (12.345, "costs about 12.3 s") and "(costs about 12.3 s)\n" in str(first)
    assert (none.cost_seconds, none.cost) == (0, "costs about 0 s")
    assert (unknown.cost_seconds, unknown.cost) == (None, "") and "costs" not in str(unknown)
    for row in rows:
        del row["cost_seconds"], row["gain_seconds"]
    assert {(f.cost_seconds, f.gain_seconds) for f in changed(run, findings=rows).findings} == {(None, None)}
    assert repr(changed(run, findings=[]).findings) == "no findings"


def test_state_in_repr(run):
    assert run.json["state"]["state"] == "failed" and repr(run).startswith(f"<crema run {run.id}: failed, 6 attempts, 6 at chunks, ")
    assert repr(changed(run, state={"state": "stalled"})).startswith(f"<crema run {run.id}: stalled, 6 attempts")
    assert repr(changed(run, state=None)).startswith(f"<crema run {run.id}: 6 attempts")


# --- the card

def test_card(run):
    card = run._repr_html_()
    assert html.escape(program(run.folder, "--run", run.id).rstrip()) in card
    (frame,) = re.findall(r'<iframe .* srcdoc="([^"]*)"></iframe></details>', card, re.S)
    assert html.unescape(frame) == program(run.folder, "--run", run.id, "--html", "-")
    assert run._repr_html_() is card


def test_card_in_a_browser(run, tmp_path):
    """The page is drawn in its frame, and cannot access the notebook around it."""
    (tmp_path / "cell.html").write_text(f"<!doctype html><meta charset=utf-8><title>cell</title>{run._repr_html_()}")
    with browser.Browser(tmp_path / "profile") as tab:
        tab.look()
        tab.open((tmp_path / "cell.html").as_uri())
        shown = tab.run("document.body.innerText")
        assert run.findings[0].text.split(":")[0][:40] in " ".join(shown.split()) and "Charts and tables" in shown
        tab.run("document.querySelector('summary').click()")
        tab.wait("document.querySelector('iframe').getBoundingClientRect().height > 600")
        assert tab.run("document.querySelector('iframe').contentDocument") is None
        frames_seen = tab.wait("window.length && window.length")
        assert frames_seen == 1 and tab.problems == []
        assert f"crema report of run {run.id}" in json.dumps(tab.call("Accessibility.getFullAXTree"))


def test_card_without_the_program(run, tmp_path):
    """A run from a file has only its findings; for a page that is too large the command is shown."""
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run.json))
    card = crema.load(file)._repr_html_()
    assert html.escape(run.findings[-1].text) in card and "iframe" not in card and "load it by its id" in html.unescape(card)
    large = crema.Run(run.json, lambda *options: "<x>" * 2_000_000 if options else "text & more")
    assert large._repr_html_().count("&lt;x&gt;") == 0 and "text &amp; more" in large._repr_html_() and f"--run {run.id} --html" in large._repr_html_()


# --- charts

@pytest.fixture
def plt():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot

    yield matplotlib.pyplot
    matplotlib.pyplot.close("all")


def bars(ax):
    """{label: width, or the text in place of the bar} by the axes' own labels."""
    labels = {round(at): text.get_text() for at, text in zip(ax.get_yticks(), ax.get_yticklabels())}
    found = {labels[round(p.get_y() + p.get_height() / 2)]: p.get_width() for p in ax.patches}
    return found | {labels[round(t.get_position()[1])]: t.get_text().strip() for t in ax.texts}


TIME = {"CPU": "task_cpu_seconds", "waiting for a core": "runqueue_wait_seconds", "waiting for the GIL": "gil_wait_seconds",
        "waiting for other locks": "lock_wait_seconds", "waiting for the network": "network_wait_seconds",
        "waiting for storage": "storage_wait_seconds", "asleep": "sleep_seconds", "not classified": "unclassified_seconds",
        "threads without a task": "idle_thread_seconds"}
BYTES = {"requested (coffea)": "total_bytes_read_coffea", "read": "read_bytes", "from storage": "disk_read_bytes",
         "from the network": "network_read_bytes", "baskets used": "basket_bytes", "decompressed": "bytes_read_uncompressed"}


def test_each_class_of_time_has_a_bar():
    table = re.findall(r"^TIME\(\w+, (\w+), (\w+)", (test_reports.ROOT / "contract" / "counters.def").read_text(), re.MULTILINE)
    assert [name for name, _, _ in plots.TIME][:len(table)] == [("task_" if column == "CPU" else "") + name for name, column in table]


def test_bars(run, plt):
    assert bars(run.plot("time")) == {label: pytest.approx(run.metrics[name]) for label, name in TIME.items()}
    assert bars(run.plot("bytes")) == {label: pytest.approx(run.metrics[name] / 1e6) for label, name in BYTES.items()}
    unknown = changed(run, metrics={**run.metrics, "gil_wait_seconds": None, "disk_read_bytes": None})
    assert bars(unknown.plot("time"))["waiting for the GIL"] == "unknown" and bars(unknown.plot("bytes"))["from storage"] == "unknown"


def test_task_stream(run, plt):
    ax = run.plot("tasks")
    rows = [t for t in run.json["tasks"] if t["start"] is not None and t["stop"] is not None]
    begin = min(t["start"] for t in rows)
    drawn = [(path.get_extents().x0, path.get_extents().width) for lane in ax.collections for path in lane.get_paths()]
    assert sorted(drawn) == [pytest.approx(x, abs=1e-6) for x in sorted((t["start"] - begin, t["stop"] - t["start"]) for t in rows)]
    assert len(ax.collections) == len({(t["worker"], t["thread"]) for t in rows}) == len(ax.get_yticks())


def test_coffeas_own_tasks_have_their_names(plt, tmp_path):
    made = frames.Journal(tmp_path / "journal")
    made.worker()
    made.task(1, "automatic_retries-1", 0, 100, prefix="automatic_retries", flags=1 << 9)
    made.task(2, "lambda-1", 100, 150, prefix="lambda")
    made.task(3, "P-1", 200, 400, prefix="P", flags=2, dataset="d", filename="f", entrystart=0, entrystop=10)
    made.task(4, "apply-1", 400, 500, prefix="apply")
    made.write()
    run = crema.load(dir=tmp_path)
    assert run.json["prefix_names"] == {"automatic_retries": "preprocess", "lambda": "send processor"}
    legend = run.plot("tasks").get_legend()
    assert {text.get_text() for text in legend.get_texts()} == {"P", "apply", "preprocess", "send processor"}
    figure = legend.figure
    figure.canvas.draw()
    assert legend.get_window_extent().y1 < legend.axes.get_window_extent().y0  # it covers no bar
    assert legend.get_window_extent().y0 >= 0


def test_chunks(run, plt):
    rows = [c for c in run.json["chunks"] if None not in (c["start"], c["stop"], c["wall_seconds"])]
    assert rows
    ax = run.plot("chunks", ax=plt.subplots()[1])
    begin = min(t["start"] for t in run.json["tasks"] if t["start"] is not None and t["stop"] is not None)
    drawn = sorted((x, y) for line in ax.lines if line.get_marker() == "o" for x, y in line.get_xydata())
    assert drawn == [pytest.approx(x) for x in sorted((c["start"] - begin, c["wall_seconds"]) for c in rows)]
    lengths = sorted(c["wall_seconds"] for c in rows)
    median = lengths[len(rows) // 2] if len(rows) % 2 else sum(lengths[len(rows) // 2 - 1:len(rows) // 2 + 1]) / 2
    assert [t.get_text() for t in ax.texts] == [f"median {median:.3g} s"]
    assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [pytest.approx(median)]
    assert changed(run, chunks=[]).plot("chunks").get_title() == "Chunks: none"


def test_many_datasets(run, plt):
    chunk = next(c for c in run.json["chunks"] if c["wall_seconds"] is not None)
    ax = changed(run, chunks=[{**chunk, "dataset": f"d{i}"} for i in range(20)]).plot("chunks")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == 8 and names[-1].endswith(" and others")


def test_all_charts(run, plt, tmp_path):
    axes = run.plot()
    assert [ax.get_title() for ax in axes.flat] == ["Thread time", "Bytes by layer", "Task stream", "Chunks"]
    axes[0, 0].figure.savefig(tmp_path / "all.png")
    with pytest.raises(ValueError, match="no chart 'pie'; there are time, bytes, tasks, chunks"):
        run.plot("pie")
    with pytest.raises(ValueError, match="name the chart"):
        run.plot(ax=axes[0, 0])


def test_without_matplotlib(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        run.plot()


# --- preload()

@pytest.fixture
def clean(monkeypatch, tmp_path):
    """os.environ, which is restored afterwards, without a library; the state directory is the test's."""
    for name in ("LD_PRELOAD", "CREMA", "CREMA_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LD_PRELOAD", "")
    (tmp_path / "plain").mkdir()  # the clone's own path may contain a space
    for name in ("crema", "libcrema.so", "crema-agent"):
        shutil.copy(BUILD / name, tmp_path / "plain")
    monkeypatch.setenv("CREMA_PROGRAM", str(tmp_path / "plain" / "crema"))
    return monkeypatch


def child_maps():
    return subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True, check=True).stdout


def test_preload(clean, tmp_path, capsys):
    library = str(tmp_path / "plain" / "libcrema.so")
    assert "libcrema.so" not in child_maps()
    assert crema.preload() == {"LD_PRELOAD": library} and os.environ["LD_PRELOAD"] == library
    assert "libcrema.so" in child_maps()
    assert capsys.readouterr().out == f"crema: Dask workers that start from now on are measured ({library})\n"
    assert crema.preload(quiet=True) == {"LD_PRELOAD": library} and capsys.readouterr().out == ""
    clean.setenv("CREMA", "off")
    crema.preload()
    assert capsys.readouterr().out == "crema: CREMA=off is set, so no worker is measured\n"


def test_preload_keeps_what_is_there(clean, tmp_path, capsys):
    clean.setenv("LD_PRELOAD", "/lib/one.so /lib/two.so")
    both = f"{tmp_path / 'plain' / 'libcrema.so'}:/lib/one.so:/lib/two.so"
    assert crema.preload() == crema.preload() == {"LD_PRELOAD": both}


def test_preload_from_a_folder_with_a_space(clean, tmp_path, capsys):
    folder = tmp_path / "my crema"
    folder.mkdir()
    for name in ("crema", "libcrema.so"):
        shutil.copy(BUILD / name, folder / name)
    clean.setenv("CREMA_PROGRAM", str(folder / "crema"))
    path = crema.preload()["LD_PRELOAD"]
    assert " " not in path and os.path.samefile(path, folder / "libcrema.so") and "libcrema.so" in child_maps()


def test_preload_without_a_library(clean, tmp_path, capsys):
    """One clear line, and nothing is set."""
    shutil.copy(BUILD / "crema", tmp_path / "crema")
    clean.setenv("CREMA_PROGRAM", str(tmp_path / "crema"))
    with pytest.raises(crema.CremaError, match=r"^cannot preload: libcrema.so is neither next to '.*/crema' nor in ../lib/crema$"):
        crema.preload()
    (tmp_path / "libcrema.so").write_text("no library")
    with pytest.raises(crema.CremaError, match="^cannot preload: a test run of .* printed: .*(cannot be preloaded|invalid ELF|too short)"):
        crema.preload()
    clean.setenv("CREMA_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(crema.CremaError, match="CREMA_PROGRAM is"):
        crema.preload()
    assert os.environ["LD_PRELOAD"] == "" and capsys.readouterr().out == ""
