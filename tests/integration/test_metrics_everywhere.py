"""contract/metrics.def is the only place where a metric is declared: each is in every output, with the same
value: JSON, the terminal, the report page in a real browser, Prometheus' text, docs/metrics.md."""

import re
import urllib.request

import browser
import cluster
import prometheus_server
import pytest
from conftest import ROOT

LINE = re.compile(r'METRIC\((\w+), "(\w*)", "([^"]*)", (\w+), (\w+), (\w+), "((?:[^"\\]|\\.)*)"\)')
BASE_UNITS = {"MB/s": 1e6, "Gbit/s": 1e9 / 8, "kHz": 1e3, "kHz/core": 1e3, "%": 0.01, "MiB": 1024 * 1024}


class Metric:
    def __init__(self, found):
        self.id, self.alias, self.unit, self.kind = found[1], found[2], found[3], found[4]
        self.names = [name for name in (self.id, self.alias) if name]


def declared():
    text = (ROOT / "contract" / "metrics.def").read_text()
    found = [Metric(m) for m in LINE.finditer(text)]
    assert len(found) == sum(line.startswith("METRIC(") for line in text.splitlines())
    return found


METRICS = declared()
NAMES = [name for metric in METRICS for name in metric.names]


def missing(found):
    return [name for name in NAMES if name not in found]


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


def test_json(demo):
    assert missing(demo.json["metrics"]) == []
    for metric in METRICS:
        assert len({repr(demo.json["metrics"][name]) for name in metric.names}) == 1, metric.id


@pytest.fixture(scope="module")
def terminal(demo, shared):
    """{name: the rest of its line} of crema report --all-metrics."""
    done = shared.procs.report("--all-metrics", "--run", demo.json["run"])
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) < 80
    return dict(line.strip().split(None, 1) for line in done.stdout.splitlines() if re.match(r"  [a-z0-9_]+  ", line))


def test_terminal(terminal):
    assert missing(terminal) == []


def all_rows(tab):
    """Cells of each row, once every collapsed table is drawn."""
    if tab.run('document.querySelectorAll("#panel-metrics details:not(:has(table))").length'):
        return None
    return tab.run("""[...document.querySelectorAll("#panel-metrics tbody tr")].map(
        (row) => [...row.cells].map((cell) => cell.textContent))""")


def test_page(demo, shared, terminal, tmp_path):
    page = tmp_path / "report.html"
    done = shared.procs.report("--html", page, "--run", demo.json["run"])
    assert done.returncode == 0, done.stderr
    with browser.Browser(tmp_path / "chromium") as tab:
        tab.look()
        tab.open(page.as_uri())
        tab.run('document.querySelectorAll("#panel-metrics details").forEach((e) => { e.open = true; })')
        rows = cluster.wait_until(lambda: all_rows(tab), "the tables of all metrics")
    shown = {row[0].split()[0]: row for row in rows}
    assert missing(set(re.findall(r"\w+", " ".join(row[0] for row in rows)))) == []
    for metric in METRICS:
        if metric.kind == "NUM":
            assert shown[metric.id][1] == terminal[metric.id], metric.id


def table(text):
    """{metric: cells} of docs/metrics.md."""
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| `")]
    return {re.search(r"`(\w+)`", row[0])[1]: row for row in rows}


def test_documents():
    found = table((ROOT / "docs" / "metrics.md").read_text())
    assert missing(set(re.findall(r"\w+", " ".join(row[0] for row in found.values())))) == []
    for metric in METRICS:
        assert ("crema_run_" in found[metric.id][-1]) == (metric.kind == "NUM"), metric.id


def clocks_moved(found, last):
    """Seconds, mostly 0. The gauges are made once, when the run ends; if a worker's clock is compared again after
    that, the times of its tasks in the report shift by the difference between the two comparisons."""
    times = [(found["crema_run_workers_wall_time_seconds"], last["metrics"]["workers_wall_time"]),
             (found["crema_run_start_timestamp_seconds"], last["run_info"]["start"]),
             (found["crema_run_stop_timestamp_seconds"], last["run_info"]["stop"])]
    moved = sum(abs(float(gauge) - time) for gauge, time in times)
    assert moved < 1e-3
    return moved


def test_prometheus(demo, shared):
    """The collector's gauges are the last run's numbers, in base units, under the names of the documents."""
    compared = []  # a report takes longer than a look at the gauges

    def gauges():
        """Those of the run as the report has it: they are made again when the cluster has been idle for a while."""
        with urllib.request.urlopen(f"http://127.0.0.1:{shared.procs.http_port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        found = dict(re.findall(r"^(crema_run_\w+) (\S+)$", text, re.MULTILINE))
        if found in compared:
            return None
        compared.append(found)
        last = shared.procs.report_json()
        times = [(float(found.get(f"crema_run_{name}_timestamp_seconds", 0)), last["run_info"][name]) for name in ("start", "stop")]
        return (text, found, last) if all(abs(gauge - time) < 1e-3 for gauge, time in times) else None

    text, found, last = cluster.wait_until(gauges, "the last run's gauges")
    assert not last["run_info"]["running_attempts"]
    done = prometheus_server.promtool("check", "metrics", input=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    documents = table((ROOT / "docs" / "metrics.md").read_text())
    moved, cores = clocks_moved(found, last), last["metrics"]["total_cores"]
    wall = last["metrics"]["workers_wall_time"]
    shortest = min(wall, 0.1)  # peaks are over the time between two samples
    for metric in METRICS:
        if metric.kind != "NUM":
            continue
        name = re.search(r"crema_run_\w+", documents[metric.id][-1])[0]
        value = last["metrics"][metric.id]
        assert f"# TYPE {name} gauge\n" in text
        if value is None:
            assert name not in found, name
        else:
            least = moved * {"s": cores, "ratio": 1 / wall, "%": 1 / wall}.get(metric.unit, 0)
            wanted = pytest.approx(value * BASE_UNITS.get(metric.unit, 1), rel=1e-9 + moved / shortest, abs=least)
            assert float(found[name]) == wanted, name
