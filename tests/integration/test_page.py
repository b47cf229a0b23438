"""The report page in a real browser: complete, without errors, and with the numbers of the JSON report."""

import json
import re
import subprocess
import urllib.error
from pathlib import Path

import browser
import cluster
import jobs
import jupyterhub
import make_data
import page_checks
import page_jobs
import path_proxy
import pytest
from conftest import ROOT
from distributed import Client, span

PAGE_BYTES = 3_000_000
PANELS = {"findings", "figures", "time", "overtime", "gbps", "levels", "memory", "stream", "lines", "scatter", "codecs",
          "files", "columns", "datasets", "balance", "source", "waits", "completeness", "metrics"}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


class Job:
    """A cluster that has run the example's analysis over two files, and its JSON report."""


@pytest.fixture(scope="module")
def job(tmp_path_factory, homes):
    made = Job()
    files = make_data.files(ROOT / "data")
    with cluster.Cluster(tmp_path_factory.mktemp("page") / "cluster", homes) as made.procs:
        made.procs.start_collector()
        made.procs.start_scheduler()
        for _ in range(2):
            made.procs.start_worker()
        with Client(made.procs.address) as made.client:
            made.client.wait_for_workers(2, timeout=120)
            jobs.run_coffea(made.client, [files["zlib"], files["zstd"]])
            made.json = jobs.settled(made.procs, lambda r: len(r["chunks"]) >= 8)
            yield made


def write_page(procs, path, *options):
    done = procs.report("--html", path, *options)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size < PAGE_BYTES
    return path


@pytest.fixture(scope="module")
def page(job, tmp_path_factory):
    return write_page(job.procs, tmp_path_factory.mktemp("html") / "report.html", "--run", job.json["run"])


@pytest.fixture
def opened(chromium, page):
    chromium.look()
    chromium.open(page.as_uri())
    return chromium


@pytest.fixture
def seen(request, chromium, page):
    """The page for tests that only read it: in turn they need not open it again."""
    return chromium if chromium.run("location.href") == page.as_uri() else request.getfixturevalue("opened")


def segments(tab, chart):
    """{(row, class): value} of the bars of a chart."""
    found = tab.run(f"""[...document.querySelectorAll("#{chart} .segment")].map((e) => [+e.dataset.row, e.dataset.name, +e.dataset.value])""")
    return {(row, name): value for row, name, value in found}


def test_whole_and_quiet(opened, page):
    assert opened.problems == []
    assert opened.requests == [page.as_uri()]
    assert set(opened.run("[...document.querySelectorAll('main > section.panel')].map((e) => e.id.slice(6))")) == PANELS


def drawn_of(wall, unclassified):
    """The part of the wall time that a bar shows: the classes, and the unclassified time if that is 1 % or more."""
    return wall - unclassified + (unclassified if unclassified >= 0.01 * wall else 0)


def test_time_in_total(seen, job):
    metrics = job.json["metrics"]
    drawn = segments(seen, "chart-time")
    assert drawn[0, "CPU"] == metrics["task_cpu_seconds"]
    assert drawn[0, "waiting for a core"] == metrics["runqueue_wait_seconds"]
    # no bar is drawn if the counted time is longer than the wall time, when others take the cores at a task's end
    assert sum(drawn.values()) == pytest.approx(drawn_of(metrics["task_wall_seconds"], metrics["unclassified_seconds"]), rel=1e-9)


def class_seconds(task, name):
    if name == "unclassified":  # below 1 % of the task it is not drawn
        rest = task["unclassified_seconds"]
        return rest if abs(rest) >= 0.01 * task["wall_seconds"] else 0
    return task[{"cpu": "cpu_seconds", "sleep": "sleep_seconds"}.get(name, f"{name}_wait_seconds")]


def test_no_more_threads_than_there_are(seen, job):
    """Each bin of the chart adds up to the tasks running in it, and each class to the tasks' own sums."""
    levels = json.loads(seen.run("document.getElementById('data').textContent"))["levels"]
    classes = levels["classes"]
    for i, threads in enumerate(levels["threads"]):
        busy = sum(values[i] for values in classes.values())
        assert busy <= threads + len(classes)
        assert busy == pytest.approx(levels["tasks"][i], abs=2 * len(classes))
    beyond = sum(max(0, -t["unclassified_seconds"]) for t in job.json["tasks"])  # counted beyond the wall time: no bin has room for it
    for name, values in classes.items():
        spent = sum(class_seconds(t, name) for t in job.json["tasks"])
        assert sum(values) / 1000 * levels["bin"] / 1e6 == pytest.approx(spent, abs=0.001 * len(values) * levels["bin"] / 1e6 + beyond), name


def test_task_stream(seen, job):
    """One bar for each attempt: all paths together have as many pieces as there are tasks of each kind."""
    assert f"{len(job.json['tasks'])} tasks" in seen.run("document.querySelector('#chart-stream').getAttribute('aria-label')")
    data = json.loads(seen.run("document.getElementById('data').textContent"))
    bars = sorted((bar[0], bar[2], bar[3]) for bar in data["stream"]["bars"])
    start = job.json["run_info"]["start"]
    for (key, begin, wall), task in zip(bars, sorted(job.json["tasks"], key=lambda t: (t["key"], t["start"])), strict=True):
        assert key == task["key"]
        assert begin / 1e6 == pytest.approx(task["start"] - start, abs=2e-6)
        assert wall / 1e6 == pytest.approx(task["stop"] - task["start"], abs=2e-6)
    chunks = {c["key"] for c in job.json["chunks"]}
    drawn = seen.run("[...document.querySelectorAll('#chart-stream .kind')].map((e) => [e.dataset.name, (e.getAttribute('d').match(/M/g) || []).length])")
    kinds = ["preprocessing" if t["preprocessing"] else "merging" if t["merge"] else "processing" if t["key"] in chunks
             else "other tasks" for t in job.json["tasks"]]
    assert dict(drawn) == {name: kinds.count(name) for name in ("processing", "preprocessing", "merging", "other tasks")}
    assert kinds.count("processing") == 8 and kinds.count("preprocessing") == 2


def test_numbers_of_every_list(seen, job):
    """Codecs, datasets and workers against sums over the rows of the JSON report."""
    chunks = [c for c in job.json["chunks"] if c["counted"]]
    decompression = segments(seen, "chart-codecs")
    assert sorted(decompression.values()) == sorted(c["cpu_seconds"] for c in job.json["codecs"] if c["cpu_seconds"])
    names = seen.run("JSON.parse(document.getElementById('data').textContent).datasets.rows.map((r) => r.dataset)")
    drawn = segments(seen, "chart-datasets")
    assert set(names) == {c["dataset"] for c in chunks}
    for row, name in enumerate(names):
        rows = [c for c in chunks if c["dataset"] == name]
        assert drawn[row, "CPU"] == pytest.approx(sum(c["cpu_seconds"] for c in rows), rel=1e-9)
        whole = drawn_of(sum(c["wall_seconds"] for c in rows), sum(c["unclassified_seconds"] for c in rows))
        assert sum(v for (r, _), v in drawn.items() if r == row) == pytest.approx(whole, abs=1e-5)
    workers = seen.run("JSON.parse(document.getElementById('data').textContent).balance.rows.map((r) => [r.worker, r.tasks, r.read_bytes])")
    assert {name: (tasks, read) for name, tasks, read in workers} == {
        name: (len(rows), sum(t["read_bytes"] for t in rows))
        for name in {t["worker"] for t in job.json["tasks"]} for rows in [[t for t in job.json["tasks"] if t["worker"] == name]]}


def test_figures_are_the_metrics(seen, job):
    """Every number of the table of all metrics is the JSON report's."""
    seen.run("document.querySelectorAll('#panel-metrics details').forEach((e) => { e.open = true; })")
    seen.wait("document.querySelectorAll('#panel-metrics table').length === document.querySelectorAll('#panel-metrics details').length")
    rows = seen.run("""[...document.querySelectorAll('#panel-metrics tbody tr')].map((e) => e.children[0].textContent)""")
    assert [re.split(r"\W", name)[0] for name in rows] == [m["id"] for m in json.loads(seen.run("document.getElementById('data').textContent"))["metrics"]]
    for m in json.loads(seen.run("document.getElementById('data').textContent"))["metrics"]:
        if "value" in m:
            assert m["value"] == job.json["metrics"][m["id"]], m["id"]
    shown = seen.run("document.querySelector('[data-metric=total_events] dd').textContent")
    assert shown == f"{job.json['metrics']['total_events']:,}"


def test_workers_and_tasks_over_time(seen, job):
    """The area under "running tasks" is the time of all attempts."""
    levels = json.loads(seen.run("document.getElementById('data').textContent"))["levels"]
    seconds = sum(levels["tasks"]) / 1000 * levels["bin"] / 1e6
    assert seconds == pytest.approx(sum(t["stop"] - t["start"] for t in job.json["tasks"]), rel=0.01)
    assert max(levels["workers"]) == 2000


@pytest.mark.parametrize("kind", [path_proxy.PathProxy, pytest.param(jupyterhub.Hub, marks=pytest.mark.further)])
def test_live_behind_a_proxy(chromium, job, tmp_path, kind):
    """The page below a proxy's path, opened by a link that works once, while tasks run and afterwards."""
    token = Path(job.procs.env["CREMA_TOKEN_FILE"]).read_text().strip()
    at = f"127.0.0.1:{job.procs.http_port}"
    link = subprocess.run([job.procs.build / "crema", "token", "--link", "--http", at], env=job.procs.env, check=True,
                          capture_output=True, text=True, timeout=60).stdout.strip()
    with span("held") as own:
        futures = [job.client.submit(page_jobs.held, str(tmp_path / "go"), i, key=f"hold_{i}", pure=False) for i in range(2)]
    with kind(tmp_path / "proxy", job.procs.http_port) as proxy:
        proxy.let_in(chromium)
        link = link.replace(f"http://{at}/", proxy.url)
        chromium.look()
        chromium.open(proxy.url)
        assert "crema token --link" in chromium.run("document.body.textContent")
        chromium.open(link)
        chromium.wait("document.querySelectorAll('main > section.panel').length >= 15")
        assert chromium.run("location.href") == proxy.url
        assert chromium.run("document.cookie").partition("=")[0] in ("", "_xsrf")  # ours is hidden from scripts
        history = chromium.call("Page.getNavigationHistory")["entries"]
        assert not any("code=" in entry["url"] for entry in history)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            proxy.open(link)
        chromium.wait("/2 running on 2 workers/.test(document.getElementById('live-text').textContent)")
        # Selects their run by its id: `last` stays with the analysis.
        chromium.open(f"{proxy.url}?run={own}")
        chromium.wait("/2 tasks still running/.test(document.getElementById('facts').textContent)")
        (tmp_path / "go").touch()
        job.client.gather(futures)
        chromium.wait("/0 running on 2 workers/.test(document.getElementById('live-text').textContent)")
        chromium.wait("!/still running/.test(document.getElementById('facts').textContent)")
        assert chromium.problems == []
        asked = proxy.requests()
        assert {path for path in asked if not path.startswith(proxy.prefix)} <= {"/favicon.ico"}
        assert sum("code=" in path for path in asked) == 2  # the link itself; later requests have no code
        assert not any(token in text for text in (*asked, job.procs.collector.text(), *chromium.requests))


def test_live_run_by_id_equals_the_file(chromium, job):
    """?run= shows the same run as the file; Pause stops the requests."""
    chromium.look()
    chromium.open(f"http://127.0.0.1:{job.procs.http_port}/?run={job.json['run']}")
    chromium.wait("document.querySelectorAll('main > section.panel').length >= 15")
    assert segments(chromium, "chart-time")[0, "CPU"] == job.json["metrics"]["task_cpu_seconds"]
    chromium.run("document.getElementById('pause').click()")
    assert chromium.run("document.getElementById('pause').textContent") == "Resume"
    assert chromium.problems == []


def test_every_chart_has_marks_and_a_table(opened):
    for chart in opened.run("[...document.querySelectorAll('main svg')].map((e) => e.id)"):
        marks = opened.run(f"""[...document.querySelectorAll("#{chart} rect, #{chart} circle, #{chart} path")].filter((e) =>
            e.getBoundingClientRect().width > 1 && e.parentNode.closest(".axis, .grid") === null).length""")
        assert marks > 0, chart
        rows = opened.run(f"""(() => {{ const box = document.querySelector("#{chart}").closest("section").querySelector("details");
            box.open = true; return new Promise((done) => setTimeout(() => done(box.querySelectorAll("tbody tr").length), 50)); }})()""")
        assert rows > 0, chart


def test_keyboard(opened):
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.className") == "skip"
    opened.key("Enter", 13)
    assert opened.run("document.activeElement.id") == "main"
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.tagName") == "SUMMARY"
    assert opened.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    opened.key("Enter", 13)
    opened.wait("document.activeElement.parentNode.open && document.activeElement.parentNode.querySelector('tbody tr') !== null")
    for chart in ("chart-overtime", "chart-gbps", "chart-levels", "chart-memory", "chart-stream", "chart-scatter"):
        opened.run(f"document.getElementById('{chart}').focus()")
        seen = set()
        for _ in range(2):
            opened.key("ArrowRight", 39)
            seen.add(opened.run("document.activeElement.getAttribute('aria-valuetext')"))
        opened.key("End", 35)
        assert opened.run("document.activeElement.getAttribute('aria-valuenow') === document.activeElement.getAttribute('aria-valuemax')")
        assert len(seen) == 2, chart


@pytest.mark.parametrize("dark", [False, True])
def test_readable(chromium, page, dark):
    """Names for everything that takes the focus, ordered headings, unique ids, contrast of all text."""
    chromium.look(dark=dark)
    chromium.open(page.as_uri())
    chromium.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    chromium.wait("[...document.querySelectorAll('main details')].every((e) => e.children.length > 1)")
    assert page_checks.unnamed(chromium) == []
    assert page_checks.structure(chromium) == []
    assert page_checks.low_contrast(chromium) == []


def test_theme_switch_and_print(opened):
    light = opened.run("getComputedStyle(document.body).backgroundColor")
    opened.run("document.querySelector('input[value=dark]').click()")
    assert opened.run("getComputedStyle(document.body).backgroundColor") != light
    opened.look(media="print", dark=True)
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.run("getComputedStyle(document.querySelector('.panel h2')).color") == "rgb(29, 33, 38)"
    assert len(opened.call("Page.printToPDF", printBackground=True)["data"]) > 10_000
    opened.look()
    opened.run("document.querySelector('input[value=auto]').click()")


@pytest.mark.parametrize("width, zoom", [(1280, 1.0), (1280, 2.0), (768, 1.0), (320, 1.0),
                                         *(pytest.param(*each, marks=pytest.mark.further) for each in [(1280, 0.8), (390, 1.0)])])
def test_nothing_overflows(chromium, page, width, zoom):
    chromium.look(width, zoom=zoom)
    chromium.open(page.as_uri())
    assert page_checks.overflowing(chromium) == []


HOSTILE = ["</script><script>window.injected=1</script>", "<img src=x onerror=window.injected=1>", "\"'&<>`${window.injected=1}",
           "<!--<script>", "line\nbreak\u2028\u0000", "\u202egnp.exe", "k" * 4096]


def test_hostile_names(chromium, job, tmp_path):
    with span("hostile"):
        futures = [job.client.submit(int, i, key=f"{name}_{i}", pure=False) for i, name in enumerate(HOSTILE)]
        job.client.gather(futures)
    report = jobs.settled(job.procs, lambda r: len(r["tasks"]) == len(HOSTILE))
    path = write_page(job.procs, tmp_path / "hostile.html", "--run", report["run"])
    chromium.look()
    chromium.open(path.as_uri())
    chromium.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    chromium.wait("document.querySelector('#table-stream tbody tr') !== null")
    assert chromium.run("window.injected") is None
    assert chromium.run("document.querySelectorAll('script').length") == 3
    assert chromium.run("document.querySelectorAll('img').length") == 0
    keys = chromium.run("[...document.querySelectorAll('#table-stream tbody th')].map((e) => e.textContent)")
    assert {key for key in (t["key"] for t in report["tasks"]) if len(key.encode()) <= 120} <= set(keys)
    assert max(len(key.encode()) for key in keys) <= 120
    assert chromium.problems == [] and chromium.requests == [path.as_uri()]
    assert page_checks.overflowing(chromium) == []


def test_one_task(chromium, job, tmp_path):
    """A run without chunks, codecs and files: the page states that instead of a chart, and nothing fails."""
    with span("single"):
        job.client.submit(int, 1, key="single_task", pure=False).result()
    report = jobs.settled(job.procs, lambda r: [t["prefix"] for t in r["tasks"]] == ["single_task"])
    path = write_page(job.procs, tmp_path / "one.html", "--run", report["run"])
    chromium.look()
    chromium.open(path.as_uri())
    assert chromium.problems == []
    assert chromium.run("JSON.parse(document.getElementById('data').textContent).stream.total") == 1
    assert "No chunk whose" in chromium.run("document.getElementById('panel-scatter').textContent")
    assert page_checks.overflowing(chromium) == []


def test_no_run(job, tmp_path):
    done = job.procs.report("--html", tmp_path / "none.html", directory=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "nothing was measured" in done.stderr
    assert not (tmp_path / "none.html").exists()


def test_live_without_a_run(chromium, new_cluster):
    procs = new_cluster("empty")
    procs.start_collector()
    chromium.look()
    chromium.open(f"http://127.0.0.1:{procs.http_port}/")
    chromium.wait("/nothing was measured|no run/.test(document.querySelector('main').textContent)")
    # only the browser's own log entry for each 404
    assert [p for p in chromium.problems if "404" not in p] == []


def test_many_tasks(chromium, job, tmp_path):
    """40,000 tasks: the page is small and fast, and its sums include all tasks."""
    maker = ROOT / "build" / "tests" / "bench" / "make_journal"
    subprocess.run(["make", "-C", ROOT, maker.relative_to(ROOT)], check=True, capture_output=True)
    subprocess.run([maker, tmp_path / "many", "40000"], check=True)
    path = tmp_path / "many.html"
    done = job.procs.report("--html", path, directory=tmp_path / "many")
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size < PAGE_BYTES
    chromium.look()
    chromium.open(path.as_uri())
    assert chromium.problems == []
    text = chromium.run("document.getElementById('panel-stream').textContent")
    shown, total = (int(n.replace(",", "")) for n in re.search(r"shown ([\d,]+) of ([\d,]+) tasks", text).groups())
    data = json.loads(chromium.run("document.getElementById('data').textContent"))
    assert total == data["stream"]["total"] == sum(r["tasks"] for r in data["balance"]["rows"]) == 40_040
    # the cells contain the time of the tasks on these threads: each half a second, to a thousandth of a cell
    cells = sum(sum(max(0, v) for v in lane) for lane in data["stream"]["cells"]) / 1000 * data["stream"]["cell"] / 1e6
    assert cells == pytest.approx(shown * metric(data, "task_wall_seconds") / metric(data, "num_tasks"), rel=0.02)
    assert "1,500 of 40,000 chunks" in chromium.run("document.getElementById('panel-scatter').textContent")


def metric(data, name):
    return next(m["value"] for m in data["metrics"] if m["id"] == name)
