"""live.json, /metrics and a Prometheus server during a real run in which a worker is killed and restarted, and the
collector too: they agree with the reports, and no total ever decreases."""

import gzip
import json
import os
import re
import signal
import time
import urllib.request

import cluster
import jobs
import prometheus_server
import pytest
from distributed import Client

PATIENT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}
COUNTERS = ("read_bytes", "mapped_bytes", "network_read_bytes", "network_write_bytes", "comm_read_bytes", "comm_write_bytes",
            "decompress_calls", "decompress_in_bytes", "decompress_out_bytes")
PARTS = {"task": "tasks", "unattributed": "unattributed"}  # owner: part of a worker in the report


def get(procs, path, headers=None):
    request = urllib.request.Request(f"http://127.0.0.1:{procs.http_port}/{path}", headers=headers or {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read(), answer.headers


def live(procs):
    return json.loads(get(procs, "live.json")[0])


def metrics(procs):
    return get(procs, "metrics")[0].decode()


def sample(text, series):
    """The value of a line of /metrics as text; None if the line is missing."""
    found = re.search("^" + re.escape(series) + " (.*)$", text, re.MULTILINE)
    return found and found.group(1)


def kill_one(client, procs):
    """Kills a worker once it has finished chunks, and waits for the one that its nanny starts."""
    def processed():
        return any(p["prefix"] == "TTbarProcessor" and p["ok"] for p in live(procs)["prefixes"])

    cluster.wait_until(processed, "the first chunk")
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    cluster.wait_until(lambda: live(procs)["workers"]["seen"] == 3 and live(procs)["workers"]["connected"] == 2,
                       "another worker")
    return pid


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes, data):
    """Two runs of coffea; all workers have ended since, so all numbers are final."""
    import concurrent.futures

    home = tmp_path_factory.mktemp("live")
    with cluster.Cluster(home / "cluster", homes) as procs:
        procs.start_collector()
        procs.empty = metrics(procs)
        procs.start_scheduler(PATIENT)
        for _ in range(2):
            procs.start_worker()
        with prometheus_server.Prometheus(home / "prometheus", procs.http_port) as procs.prometheus:
            with Client(procs.address) as client, concurrent.futures.ThreadPoolExecutor(1) as other:
                client.wait_for_workers(2, timeout=120)
                cluster.wait_until(lambda: live(procs)["workers"]["connected"] == 2, "the workers' agents")
                files = [data["zlib"], data["lz4"]]
                run = other.submit(jobs.run_coffea, client, files, chunksize=25_000)
                procs.killed = kill_one(client, procs)
                run.result(timeout=300)
                client.wait_for_workers(2, timeout=120)
                jobs.run_coffea(client, files)
                procs.running = cluster.wait_until(lambda: busy(procs), "numbers of the run")
                procs.running_metrics = metrics(procs)
            procs.stop_workers()
            cluster.wait_until(lambda: gone(live(procs)["workers"]), "the workers' goodbyes")
            runs = json.loads(procs.report("--list", "--json", "-").stdout)["runs"]
            procs.reports = [procs.report_json(run["run"]) for run in runs]
            procs.truth = {w["id"]: w for report in procs.reports for w in report["workers"]}
            yield procs


def gone(workers):
    """Whether all have ended or were killed: a nanny on a busy machine kills a worker that is slow to end."""
    return workers["ended"] + workers["killed"] == workers["seen"]


def how(procs, text):
    return sum(w["goodbye"]["how"] == text for w in procs.truth.values())


def busy(procs):
    found = live(procs)
    return found["activity"]["since"] and found["memory"]["limit_bytes"] and found


def total(procs, part, name):
    return sum(w[part][name] for w in procs.truth.values())


def test_three_workers_are_in_the_reports(site):
    """The reports' workers, whose sums are compared below, include the killed one."""
    assert len(site.truth) == 3
    killed, = (w for w in site.truth.values() if w["pid"] == site.killed)
    assert killed["goodbye"]["how"] == "killed" and killed["tasks"]["read_bytes"] > 0


def test_live_json_says_what_the_reports_say(site):
    found = live(site)
    for name in COUNTERS:
        layer = name.removesuffix("_bytes")
        if layer in found["totals"]:
            assert found["totals"][layer] == sum(total(site, part, name) for part in PARTS.values()), name
    assert found["totals"]["read"] > 60e6 and found["totals"]["decompress_out"] > 100e6
    assert found["totals"]["storage_read"] == total(site, "rusage", "storage_read_bytes")
    assert found["tasks"]["done"] == sum(w["tasks_done"] for w in site.truth.values())
    ended = [task for report in site.reports for task in report["tasks"]]
    for status in ("ok", "erred", "killed"):
        assert found["tasks"][status] == sum(task["status"] == status for task in ended), status
    assert found["workers"] == {"connected": 0, "silent": 0, "lost": 0, "ended": how(site, "exit"),
                                "killed": how(site, "killed"), "seen": 3, "threads": 0}
    assert found["tasks"]["chunks"] == sum(c["status"] == "ok" for report in site.reports for c in report["chunks"])


def test_live_json_while_it_runs(site):
    found = site.running
    assert [row["state"] for row in found["worker_rows"]] == ["connected"] * 2
    assert found["activity"]["done"] > 8 and found["activity"]["read_bytes"] > 30e6
    assert found["memory"]["rss_bytes"] > 50e6
    assert found["workers"]["threads"] == 2


def test_metrics_are_what_the_reports_say(site):
    text = metrics(site)
    for owner, part in PARTS.items():
        for name in COUNTERS:
            assert sample(text, f'crema_{name}_total{{owner="{owner}"}}') == str(total(site, part, name)), name
    for name in ("storage_read_bytes", "storage_write_bytes"):
        assert sample(text, f"crema_worker_process_{name}_total") == str(total(site, "rusage", name))
        assert sample(text, f'crema_{name}_total{{owner="task"}}') == str(total(site, "tasks", name))
        assert sample(text, f'crema_{name}_total{{owner="unattributed"}}') is None
    cpu = float(sample(text, "crema_worker_process_cpu_seconds_total"))
    assert cpu == pytest.approx(total(site, "rusage", "cpu_seconds"), abs=1e-6)
    tasks = [t for report in site.reports for t in report["tasks"] if t["prefix"] == "TTbarProcessor"]
    wall = float(sample(text, 'crema_task_wall_seconds_total{prefix="TTbarProcessor"}'))
    assert wall == pytest.approx(sum(t["wall_seconds"] for t in tasks), abs=1e-6)
    for status in ("ok", "erred", "killed"):
        series = f'crema_tasks_total{{prefix="TTbarProcessor",status="{status}"}}'
        assert sample(text, series) == str(sum(t["status"] == status for t in tasks))
    assert sample(text, 'crema_workers_gone_total{how="killed"}') == str(how(site, "killed"))
    assert how(site, "killed") >= 1
    assert sample(text, 'crema_workers_incomplete{value="read_bytes"}') == "0"


def test_metrics_compressed_are_the_same(site):
    body, headers = get(site, "metrics", {"Accept-Encoding": "gzip;q=0.9, identity"})
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    names = [re.match(r"[^ {]+", line).group() for line in gzip.decompress(body).decode().splitlines()]
    assert names == [re.match(r"[^ {]+", line).group() for line in metrics(site).splitlines()]
    plain, headers = get(site, "metrics", {"Accept-Encoding": "gzip;q=0"})
    assert headers["Content-Encoding"] is None and plain.startswith(b"# HELP")


def test_promtool_accepts_the_metrics(site):
    for text in (site.empty, site.running_metrics, metrics(site)):
        done = prometheus_server.promtool("check", "metrics", input=text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_counters_are_there_before_the_first_worker(site):
    """Counters whose labels are known beforehand start at 0: rates see the first increase."""
    def series(text):
        return {line.rpartition(" ")[0] for line in text.splitlines()
                if re.match("crema_(?!run_)[a-z_]+_total", line) and "prefix=" not in line}

    assert series(metrics(site)) <= series(site.empty)


def test_the_last_finished_run_is_there_as_gauges(site):
    """Once the cluster was idle for 10 s: only of that run, and none before."""
    last = max(site.reports, key=lambda report: report["run_info"]["start"])

    def gauges():  # those of an earlier run come first if it took 10 s to start the last one
        text = metrics(site)
        stop = sample(text, "crema_run_stop_timestamp_seconds") if "crema_run_stop_timestamp_seconds" in text else 0
        return float(stop) == pytest.approx(last["run_info"]["stop"], abs=1e-6) and text

    text = cluster.wait_until(gauges, "the last run's gauges")
    assert "crema_run_" not in site.empty
    assert sample(text, "crema_run_total_events") == str(last["metrics"]["total_events"]) == "400000"
    assert sample(text, "crema_run_read_bytes") == str(last["metrics"]["read_bytes"])
    assert float(sample(text, "crema_run_wall_time_seconds")) == pytest.approx(last["metrics"]["wall_time"])


def test_no_file_key_worker_or_run_is_a_label(site):
    labels = set(re.findall(r'[{,]([a-z_]+)="', metrics(site)))
    assert labels == {"owner", "class", "thread", "prefix", "status", "state", "how", "reason", "value", "version"}


def test_row_122_prometheus_has_the_reports_numbers(site):
    """Through its scrapes, its store and its API, after the collector was restarted over its journal."""
    prometheus, now = site.prometheus, time.time()
    cluster.wait_until(lambda: prometheus.has_scraped_since(now), "a scrape")
    site.collector.stop()
    site.start_collector()
    now = time.time()
    cluster.wait_until(lambda: prometheus.has_scraped_since(now), "a scrape")
    for owner, part in PARTS.items():
        for name in COUNTERS:
            assert prometheus.value(f'crema_{name}_total{{owner="{owner}"}}') == total(site, part, name), name
    assert prometheus.value("crema_tasks_done_total") == sum(w["tasks_done"] for w in site.truth.values())
    own = '{__name__=~"crema_.+_total",__name__!~"crema_(collector|journal)_.+"}'
    stored = {json.dumps(metric): [float(value) for _, value in values] for metric, values in prometheus.query(f"{own}[1h]")}
    assert len(stored) > 100
    assert [series for series, values in stored.items() if values != sorted(values)] == []
    # there is a value that could have decreased
    assert float(prometheus.query('count_over_time(crema_read_bytes_total{owner="task"}[1h])')[0][1][1]) >= 1


# --- alert rules, dashboard, document

DOCS = jobs.ROOT / "docs"
NAME = re.compile(r"crema_[a-z_]*[a-z]")


def dashboard_queries():
    board = json.loads((DOCS / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_alert_rules_fire_when_they_should(tmp_path):
    """promtool runs each rule on series that must fire it, and on some that must not."""
    rules = DOCS / "prometheus-alerts.yml"
    assert prometheus_server.promtool("check", "rules", rules).returncode == 0
    cases = (jobs.ROOT / "tests/integration/alerts_test.yml").read_text()
    for alert in re.findall("alert: (.*)", rules.read_text()):
        assert cases.count(f"alertname: {alert}") == 2, alert
    case = tmp_path / "test.yml"
    case.write_text(cases.replace("RULES", str(rules)))
    done = prometheus_server.promtool("test", "rules", case)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_name_in_alerts_dashboard_and_document_is_served(site):
    there = set(re.findall(r"^# TYPE (\S+)", metrics(site), re.MULTILINE)) | {"crema_journals"}  # of crema page: test_one_page.py
    for text in [(DOCS / "prometheus-alerts.yml").read_text(), *dashboard_queries()]:
        assert set(NAME.findall(text)) <= there, text
    named = set(NAME.findall(re.sub(r"crema_\w+_\*|crema_NAME_total|job_name: crema", "", (DOCS / "prometheus.md").read_text())))
    assert {name for name in named - there if not any(other.startswith(name) for other in there)} == set()


def test_every_query_of_the_dashboard_has_an_answer(site):
    """Asks the server that has scraped the run, or soon will have; it rejects a query that is not PromQL."""
    def answers(expr):
        query = expr.replace("$__rate_interval", "10m").replace("$instance", ".*")
        return site.prometheus.query(f"max_over_time(({query})[10m:2s])")

    def may_be_empty(expr):
        """Comparisons leave out zeros; a limit is known once Dask's worker has reported it, which may be in its last second."""
        return " > 0" in expr or "memory_largest_ratio" in expr

    empty = dashboard_queries()
    limit = time.monotonic() + 60
    while not all(map(may_be_empty, empty)) and time.monotonic() < limit:
        empty = [expr for expr in empty if not answers(expr)]
        time.sleep(0.5)
    assert all(map(may_be_empty, empty)), empty
