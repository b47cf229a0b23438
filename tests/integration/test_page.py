"""The report page in a real browser: whole, quiet, and with the numbers of the JSON report."""

import json
import urllib.parse
from pathlib import Path

import browser
import cluster
import jobs
import make_data
import page_jobs
import path_proxy
import pytest
from conftest import ROOT
from distributed import Client

PAGE_BYTES = 3_000_000
PANELS = {"findings", "figures", "time", "overtime", "gbps", "levels", "memory", "stream", "scatter", "codecs", "files",
          "datasets", "balance", "waits", "completeness", "metrics"}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


class Job:
    """A cluster that has run the example's analysis over two files, and what `crema report` says of it."""


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
            jobs.run_coffea(made.client, [files["zlib"], files["lzma"]])
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


def segments(tab, chart):
    """{(row, class): value} of the bars of a chart."""
    found = tab.run(f"""[...document.querySelectorAll("#{chart} .segment")].map((e) => [+e.dataset.row, e.dataset.name, +e.dataset.value])""")
    return {(row, name): value for row, name, value in found}


def test_whole_and_quiet(opened, page):
    assert opened.problems == []
    assert opened.requests == [page.as_uri()]
    assert set(opened.run("[...document.querySelectorAll('main > section.panel')].map((e) => e.id.slice(6))")) == PANELS


def test_time_in_total(opened, job):
    metrics = job.json["metrics"]
    drawn = segments(opened, "chart-time")
    assert drawn[0, "CPU"] == metrics["task_cpu_seconds"]
    assert drawn[0, "waiting for a core"] == metrics["runqueue_wait_seconds"]
    assert sum(drawn.values()) == pytest.approx(metrics["task_wall_seconds"], rel=1e-9)


def test_task_stream(opened, job):
    """One bar for each attempt: all paths together have as many pieces as the tasks have classes."""
    assert f"{len(job.json['tasks'])} tasks" in opened.run("document.querySelector('#chart-stream').getAttribute('aria-label')")
    data = json.loads(opened.run("document.getElementById('data').textContent"))
    bars = sorted((bar[0], bar[2], bar[3]) for bar in data["stream"]["bars"])
    start = job.json["run_info"]["start"]
    for (key, begin, wall), task in zip(bars, sorted(job.json["tasks"], key=lambda t: (t["key"], t["start"])), strict=True):
        assert key == task["key"]
        assert begin / 1e6 == pytest.approx(task["start"] - start, abs=2e-6)
        assert wall / 1e6 == pytest.approx(task["stop"] - task["start"], abs=2e-6)


def test_live_behind_a_proxy(chromium, job, tmp_path):
    """The page below a path of a proxy's own, with the token, while tasks run and after it."""
    token = Path(job.procs.env["CREMA_TOKEN_FILE"]).read_text().strip()
    futures = [job.client.submit(page_jobs.held, str(tmp_path / "go"), i, key=f"hold_{i}", pure=False) for i in range(2)]
    with path_proxy.PathProxy(tmp_path / "nginx", job.procs.http_port) as proxy:
        chromium.look()
        chromium.open(proxy.url)
        assert "token" in chromium.run("document.body.textContent")
        chromium.open(f"{proxy.url}?token={urllib.parse.quote(token)}")
        chromium.wait("document.querySelectorAll('main > section.panel').length >= 15")
        assert "token" not in chromium.run("location.href")
        chromium.wait("/2 running on 2 workers/.test(document.getElementById('live-text').textContent)")
        chromium.wait("/2 tasks still running/.test(document.getElementById('facts').textContent)")
        assert "at least" in chromium.run("document.getElementById('live-text').textContent")
        (tmp_path / "go").touch()
        job.client.gather(futures)
        chromium.wait("/0 running on 2 workers/.test(document.getElementById('live-text').textContent)")
        chromium.wait("!/still running/.test(document.getElementById('facts').textContent)")
        assert chromium.problems == []
        assert proxy.elsewhere() in ([], ["/favicon.ico"])


def test_live_run_by_id_equals_the_file(chromium, job):
    """?run= shows the run that the file shows; Pause stops the asking."""
    chromium.look()
    chromium.open(f"http://127.0.0.1:{job.procs.http_port}/?run={job.json['run']}")
    chromium.wait("document.querySelectorAll('main > section.panel').length >= 15")
    assert segments(chromium, "chart-time")[0, "CPU"] == job.json["metrics"]["task_cpu_seconds"]
    chromium.run("document.getElementById('pause').click()")
    assert chromium.run("document.getElementById('pause').textContent") == "Resume"
    assert chromium.problems == []
