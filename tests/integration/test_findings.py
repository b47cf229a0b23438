"""Findings of real runs: each check has a run that triggers it and one that does not.

Each run is a span on a shared cluster; all runs come first, then their reports are read. The
checks are listed in contract/findings.def.
"""

import inspect
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import cluster
import cold
import findings_jobs as work
import findings_processors
import findings_server
import jobs
import pytest
import swarms
from distributed import Client, span, wait
from test_executors import run as run_executor
from test_storage import CHARGED, file_system

ROOT = Path(__file__).resolve().parents[2]
TABLE = dict(re.findall(r"^FINDING\((\w+), (\w+),", (ROOT / "contract" / "findings.def").read_text(), re.M))

MEMORY = 700_000_000

# check: (the run that triggers it, one in which it is made and finds nothing)
RUNS = {
    "gil_wait": ("gil", "core"),
    "lock_wait": ("lock", "sleep"),
    "storage_wait": ("direct", "sleep"),
    "network_wait": ("ask", "sleep"),
    "run_queue": ("core", "sleep"),
    "sleeping": ("sleep", "core"),
    "unclassified": ("stopped", "sleep"),
    "blocked_site": ("ask", "brief"),
    "cpu_bound": ("core", "sleep"),
    "decompression": ("codecs", "pack"),
    "compression": ("pack", "noise"),
    "low_compression": ("noise", "small_chunks"),
    "metadata_reread": ("small_chunks", "clumsy"),
    "baskets_reread": ("small_chunks", "clumsy"),
    "read_amplification": ("clumsy", "small_chunks"),
    "small_reads": ("small_reads", "large"),
    "cold_cache": ("cold", "large"),
    "warm_cache": ("large", "cold"),
    "slow_server": ("servers", "alike"),
    "failed_requests": ("servers", "alike"),
    "remote_amplification": ("remote", "remote_whole"),
    "unattributed_network": ("beside", "sleep"),
    "killed_work": ("killed", "sleep"),
    "failed_work": ("failed", "retried"),
    "retried_work": ("retried", "failed"),
    "recomputed_work": ("killed", "retried"),
    "stragglers": ("uneven", "tiny"),
    "tail": ("uneven", "core"),
    "few_chunks": ("clumsy", "small_chunks"),
    "idle_threads": ("uneven", "failed"),
    "low_cpu_efficiency": ("uneven", "failed"),
    "worker_imbalance": ("uneven", "failed"),
    "dataset_imbalance": ("clumsy", "small_chunks"),
    "late_workers": ("late", "uneven"),
    "memory_limit": ("fill", "uneven"),
    "memory_growth": ("leak", "tiny"),
    "spill": ("spill", "uneven"),
    "dask_overhead": ("clumsy", "small_chunks"),
    "tiny_tasks": ("tiny", "uneven"),
    "serialization": ("awkward", "uneven"),
    "python_heavy": ("clumsy", "small_chunks"),
    "imports": ("imports", "uneven"),
    "fresh_workers": ("fresh", "worn"),
    "process_start": ("processes", "forked"),
    "incomplete": ("torn", "uneven"),
    "silent_workers": ("silent", "uneven"),
    "unmeasured_tasks": ("asynchronous", "uneven"),
    "child_processes": ("child", "sleep"),
    "outside_threads": ("native", "codecs"),
}
# Their runs are in test_cause_first.py, test_run_state.py, test_columns.py, test_wall.py and test_heap_held.py.
CAUSES = {"chunk_overhead", "reread_in_task", "not_by_coffea", "wide_read", "chunk_baggage", "small_writes", "slow_worker", "stalled", "interrupted",
          "large_arguments", "large_results", "gc_pauses", "hot_line", "preload_columns", "unused_columns", "client_part", "allocator_holds",
          "name_lookup"}
# Runs of two more clusters. LONG ones, some of them in separate processes, need more than a second each.
FRESH = {"fresh", "worn", "spill", "leak"}
LONG = {"stopped", "direct", "remote", "remote_whole", "beside", "late", "fill", "awkward",
        "processes", "forked", "silent", "child"}


def test_every_check_has_runs():
    assert set(RUNS) | CAUSES == set(TABLE)
    assert len(TABLE) >= 20


class Made:
    """Runs of one cluster by name: spans first, reports later."""

    def __init__(self, procs, client):
        self.procs, self.client, self.spans, self.reports = procs, client, {}, {}

    def submit(self, name, function, *args, count=1, **options):
        with span(name) as self.spans[name]:
            return [self.client.submit(function, *args, pure=False, key=jobs.unique(name), **options) for _ in range(count)]

    def run(self, name, function, *args, **options):
        """The task may fail: that is part of the job."""
        futures = self.submit(name, function, *args, **options)
        self.client.gather(futures, errors="skip")
        return futures

    def coffea(self, name, files, instance, **options):
        with span(name) as self.spans[name]:
            run_coffea(self.client, files, instance, **options)

    def read(self):
        jobs.settled(self.procs, lambda r: True, run=list(self.spans.values())[-1])
        for name, one in self.spans.items():
            self.reports[name] = self.procs.report_json(one)


def run_coffea(client, files, instance, chunksize, maxchunks=None):
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    NanoAODSchema.warn_missing_crossrefs = False
    run = processor.Runner(executor=processor.DaskExecutor(client=client, status=False, retries=10), schema=NanoAODSchema,
                           chunksize=chunksize, maxchunks=maxchunks, savemetrics=True, metadata_cache={})
    return run({name: {"files": {str(path): "Events"}} for name, path in files.items()}, processor_instance=instance)


def small(data):
    return {codec: data[codec] for codec in ("zlib", "zstd")}


@pytest.fixture(scope="module")
def server(data):
    server = findings_server.start([data["zlib"]])
    yield server.server_address
    server.shutdown()


def waits_and_codecs(made, server):
    """Jobs that only wait run at the same time."""
    waiting = made.submit("lock", work.wait_for_a_lock, 1.3) + made.submit("ask", work.ask, server, 1.3)
    waiting += made.submit("sleep", work.rest, 1.3)
    waiting += made.submit("brief", work.ask, server, 0.1)
    made.client.gather(waiting)
    made.client.run(work.native_spin)
    made.run("native", work.beside_a_native_thread, 1.5)
    made.run("gil", work.spin, 1.0, count=2, workers=["worker-0"])
    made.run("core", work.share_one_core, 1.0, count=2, workers=["worker-0"])
    made.run("codecs", work.unpack_two, 1.6)
    made.run("pack", work.pack, 1.2)
    made.run("noise", work.unpack_noise, 12 << 20)


def files_and_servers(made, server, path, other):
    cold.drop(path)
    made.run("cold", work.read_large, path)
    made.run("large", work.read_large, path)
    made.run("small_reads", work.read_small, path, 6000, 512)
    with span("servers") as made.spans["servers"]:
        client = made.client
        client.gather([client.submit(work.ask_often, server, 20, 0.0, pure=False, key=jobs.unique("servers")),
                       client.submit(work.ask_often, other, 20, 0.1, pure=False, key=jobs.unique("servers")),
                       client.submit(work.ask_in_vain, other, pure=False, key=jobs.unique("servers"))])
    with span("alike") as made.spans["alike"]:
        client.gather([client.submit(work.ask_often, server, 20, 0.03, pure=False, key=jobs.unique("alike")),
                       client.submit(work.ask_often, other, 20, 0.03, pure=False, key=jobs.unique("alike"))])


def tasks(made, directory):
    made.run("failed", work.fail)
    made.run("retried", work.fail_once, str(directory / "failed"), retries=1)
    made.run("asynchronous", work.asynchronous)
    made.run("tiny", work.nothing, 1, count=300)
    with span("uneven") as made.spans["uneven"]:
        client, where = made.client, {"pure": False, "workers": ["worker-0"]}
        client.gather(client.map(work.rest, 12 * [0.05], key=[jobs.unique("uneven") for _ in range(12)], pure=False))  # on all threads at once
        client.gather([client.submit(work.rest, seconds, key=jobs.unique("uneven"), **where) for seconds in (1.8, 4.1)])


def killed(made, directory):
    """A worker that dies takes a task and a result with it."""
    with span("killed") as made.spans["killed"]:
        client = made.client
        held = client.submit(work.hold, 1000, pure=False, key=jobs.unique("held"))
        client.gather(held)
        ((where, *_),) = client.who_has(held).values()
        died = client.submit(work.die_once, str(directory / "died"), pure=False, key=jobs.unique("killed"), workers=[where],
                             allow_other_workers=True, retries=2)
        client.gather(died)
        client.gather(client.submit(work.use, held, pure=False, key=jobs.unique("killed")))


@pytest.fixture(scope="module")
def pair(tmp_path_factory, homes, disk, data, server):
    """Two workers with two threads each."""
    directory = tmp_path_factory.mktemp("findings")
    other = findings_server.start()
    path = str(shutil.copy(data["zstd"], disk / "findings"))
    with cluster.Cluster(directory / "pair", homes) as procs:
        procs.start_collector()
        procs.start_scheduler({"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"})
        for _ in range(2):
            procs.start_worker(nthreads=2, args=["--memory-limit", "4GB"])
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            made = Made(procs, client)
            with span("imports") as made.spans["imports"]:
                for first in (True, False, False, False):
                    client.submit(work.import_much, str(directory), first, pure=False, key=jobs.unique("imports"),
                                  workers=["worker-1"]).result()
            waits_and_codecs(made, server)
            files_and_servers(made, server, path, other.server_address)
            tasks(made, directory)
            made.coffea("small_chunks", small(data), findings_processors.Light(), chunksize=12_000)
            said = evidence(finding(jobs.settled(procs, lambda r: r["chunks"], made.spans["small_chunks"]), "metadata_reread"))
            made.coffea("advised", small(data), findings_processors.Light(), chunksize=int(said["chunksize"]))
            made.coffea("clumsy", {"slow": data["zlib"], "fast": data["lz4"], "third": data["zstd"]},
                        findings_processors.Clumsy(), chunksize=5000, maxchunks=1)
            killed(made, directory)
            made.read()
            made.reports["torn"] = torn(procs, directory)
        yield made
    other.shutdown()


def torn(procs, directory):
    """The report of a journal with a gap."""
    copy = directory / "torn"
    shutil.copytree(procs.journal, copy)
    (file,) = [f for f in swarms.segments(copy) if f.stat().st_size > 50_000][:1]
    with open(file, "r+b") as f:
        f.seek(20_000)
        f.write(os.urandom(3000))
    return procs.report_json(directory=copy)


def alone(made, server, path):
    """Jobs on one worker with one thread and little memory."""
    client = made.client
    made.run("child", work.child_spins, 2.5)
    client.run(work.download_beside, server, 12 << 20)
    made.run("beside", work.rest, 0.1)
    made.run("stopped", work.stop_for, 1.6)
    made.run("direct", work.read_around_the_cache, path, 2.0)
    wait(made.submit("awkward", work.make_awkward, 1.3, count=3))
    (resident,) = client.run(work.resident).values()
    made.run("fill", work.fill, int(0.86 * MEMORY - resident), 1.6)


def late_and_silent(made):
    """Workers that join when most work is done; then one of them vanishes with its agent."""
    client, procs = made.client, made.procs
    with span("late") as made.spans["late"]:
        go = procs.directory / "workers-are-there"
        slow = client.submit(work.rest_until, str(go), 2.5, pure=False, key=jobs.unique("late"))
        time.sleep(2)  # more than half of the run, however fast workers start
        for _ in range(2):
            procs.start_worker()
        client.wait_for_workers(3, timeout=120)
        go.touch()
        client.gather([slow, client.submit(work.nothing, 1, pure=False, key=jobs.unique("late"))])
    with span("silent") as made.spans["silent"]:
        pids = client.run(os.getpid)
        gone = list(pids)[-1]
        client.gather([client.submit(work.nothing, 1, pure=False, key=jobs.unique("silent"), workers=[w]) for w in pids])
    # A worker is silent only to a collector that has heard of it, and its agent's first message may take 2 s.
    heard = jobs.settled(procs, lambda r: len(r["workers"]) == len(pids), made.spans["silent"], 90)
    assert len(heard["workers"]) == len(pids)
    agents = {int(words[words.index("--pid") + 1]): pid for pid in procs.agents() for words in [cluster.strings_of(pid, "cmdline")]}
    for pid in (agents[pids[gone]], pids[gone]):
        os.kill(pid, signal.SIGKILL)
    found = jobs.settled(procs, lambda r: any(w["silent"] for w in r["workers"]), made.spans["silent"], 90)
    assert any(w["silent"] for w in found["workers"])


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory, homes, disk, data, server):
    directory = tmp_path_factory.mktemp("findings-long")
    path = str(shutil.copy(data["lz4"], disk / "findings-long"))
    with cluster.Cluster(directory / "alone", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(args=["--memory-limit", str(MEMORY)])
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            made = Made(procs, client)
            url = "http://{}:{}/{}".format(*server, os.path.basename(data["zlib"]))
            alone(made, server, path)
            made.coffea("remote", {"web": url}, findings_processors.Remote(), chunksize=100_000)
            made.coffea("remote_whole", {"web": url}, findings_processors.Light(), chunksize=1_000_000)
            late_and_silent(made)
            made.read()
    place = cluster.Cluster(directory / "place", homes)
    for name, method in (("processes", "spawn"), ("forked", "fork")):
        made.reports[name] = run_executor(place, data, method).json
    return made.reports


@pytest.fixture(scope="module")
def fresh_runs(tmp_path_factory, homes):
    """A worker's first task, and that of the next run: the CPU outside tasks is the same, but belongs only to the first run. Then
    results and objects that stay in memory."""
    directory = tmp_path_factory.mktemp("findings-fresh")
    with cluster.Cluster(directory / "fresh", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(env={"DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "0.2"}, args=["--memory-limit", str(MEMORY)])
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            made = Made(procs, client)
            made.run("fresh", work.ignore, work.NeedsModule(str(directory)).make())
            made.read()
            made.run("worn", work.spin, 0.1)
            reports = {"fresh": made.reports["fresh"]}
            wait(made.submit("spill", work.hold, 60_000_000, count=4))
            made.run("leak", work.leak, 15_000_000, count=12)
            made.read()
    return {**made.reports, **reports}


@pytest.fixture
def report_of(request):
    def get(name):
        if name in FRESH:
            return request.getfixturevalue("fresh_runs")[name]
        return request.getfixturevalue("long_runs")[name] if name in LONG else request.getfixturevalue("pair").reports[name]

    return get


def test_a_run_read_alone_is_the_same(pair, tmp_path):
    """As for a journal that is too long to be kept whole (model/selection.h): for many runs, also with killed,
    retried and nested tasks. Only the workers' lifetimes before and after the run are less complete."""
    journal = tmp_path / "journal"
    shutil.copytree(pair.procs.journal, journal)

    def read(run, size):
        return pair.procs.report_json(run, journal, ("--read-whole", size))

    for name, span_id in pair.spans.items():
        whole, alone = read(span_id, "100G"), read(span_id, "1")
        for worker in whole["workers"] + alone["workers"]:
            del worker["work_seconds"], worker["startup_seconds"], worker["host_sample"]
        for report in whole, alone:
            del report["stacks"]["agents_cpu_seconds"]  # covers the workers' lifetimes, too
        assert alone == whole, name
    assert read("last", "1")["run"] == read("last", "100G")["run"]
    one_by_one, whole = (pair.procs.report("--list", "--read-whole", size, directory=journal).stdout for size in ("1", "100G"))
    assert one_by_one == whole and whole.count("\n") > len(pair.spans)


def finding(report, check):
    """The finding, even if it is left out because a more specific one is reported."""
    found = [f for f in report["findings"] + report["findings_left_out"] if f["id"] == check]
    return found[0] if found else None


def evidence(found):
    return {e["name"]: e["value"] for e in found["evidence"]}


def marked(side):
    return [pytest.param(check, id=check, marks=[pytest.mark.matrix] if runs[side] in LONG else []) for check, runs in RUNS.items()]


def storage_known(check, disk):
    if check in ("cold_cache", "warm_cache") and file_system(disk) not in CHARGED:
        pytest.skip("data/ lies on a file system whose storage charges are unknown")


@pytest.mark.parametrize("check", marked(0))
def test_speaks(report_of, disk, check):
    storage_known(check, disk)
    report = report_of(RUNS[check][0])
    found = finding(report, check)
    assert found, (report["findings"], report["findings_checked"])
    # a finding that costs little is a note, and a limit that comes near makes one high; both depend on the machine
    assert found["severity"] in (TABLE[check].lower(), "note", *(["high"] if check == "memory_growth" else []))
    assert found["evidence"] and all(e["value"] is not None for e in found["evidence"])
    assert re.search(r"\d", found["sentence"])


@pytest.mark.parametrize("check", marked(1))
def test_is_quiet(report_of, disk, check):
    """The check was made, and found nothing."""
    storage_known(check, disk)
    report = report_of(RUNS[check][1])
    checked = report["findings_checked"]
    assert finding(report, check) is None
    assert check not in checked["nothing_to_look_at"]
    assert check not in [gap["id"] for gap in checked["not_made"]]


def test_metrics_of_the_evidence(pair):
    """Evidence that has a metric's name has the metric's value."""
    n = 0
    for report in pair.reports.values():
        for found in report["findings"]:
            for name, value in evidence(found).items():
                if name in report["metrics"]:
                    assert value == pytest.approx(report["metrics"][name]), (found["id"], name)
                    n += 1
    assert n > 10


def line_of(function, words):
    """"FILE:LINE FUNCTION", as in findings."""
    lines, first = inspect.getsourcelines(function)
    at = first + next(n for n, line in enumerate(lines) if words in line)
    return f"{Path(work.__file__).name}:{at} {function.__name__}"


def test_a_call_site_has_its_line(pair):
    found = finding(pair.reports["ask"], "blocked_site")
    name = line_of(work.ask, "s.recv(")
    assert f", at '{name}'" in found["sentence"]
    assert (evidence(found)["line"], evidence(found)["line_file"]) == (name, work.__file__)


def test_growth_names_the_line_that_keeps_it(fresh_runs):
    """All 12 results of os.urandom(15,000,000) stay in a list; the spilled run before has objects as large, which are released."""
    report = fresh_runs["leak"]
    found = finding(report, "memory_growth")
    said, size, header = evidence(found), 15_000_000, sys.getsizeof(b"")
    name = line_of(work.leak, "os.urandom(")
    assert (said["kept_line"], said["kept_line_file"]) == (name, work.__file__)
    assert size * 12 <= said["kept_line_bytes"] <= (size + header + 4096) * 12
    assert said["kept_bytes_per_task"] == said["kept_line_bytes"] / 12
    assert f"; 15.00 MB stay with each task of 'leak': '{name}'" in found["sentence"] and name in found["advice"]
    other = finding(fresh_runs["spill"], "memory_growth")
    assert other is None or "kept_line" not in evidence(other)


def test_gain_of_a_chunksize(pair):
    """The gain of a larger chunksize, against a run that follows the advice."""
    before = pair.reports["small_chunks"]
    said = evidence(finding(before, "metadata_reread"))
    after = pair.reports["advised"]
    assert finding(after, "metadata_reread") is None
    saved = before["metrics"]["outside_basket_bytes"] - after["metrics"]["outside_basket_bytes"]
    assert saved == pytest.approx(said["saved_bytes"], rel=0.15)


def test_gain_of_a_codec(pair):
    """Computed with the speed of the other codec in the same run."""
    report = pair.reports["codecs"]
    said = evidence(finding(report, "decompression"))
    rows = {c["codec"]: c for c in report["codecs"] if c["calls"]}
    speed = rows["zlib"]["out_bytes"] / rows["zlib"]["cpu_seconds"]
    assert said["codec"] == "lzma" and said["other_codec"] == "zlib"
    assert said["saved_cpu_seconds"] == pytest.approx(rows["lzma"]["cpu_seconds"] - rows["lzma"]["out_bytes"] / speed)
    assert "LZMA" in finding(report, "decompression")["sentence"]


def test_no_gain_without_a_measured_speed(pair):
    for name, report in pair.reports.items():
        found = finding(report, "decompression")
        if found and len([c for c in report["codecs"] if c["calls"]]) < 2:
            assert "would save" not in found["sentence"], name


def test_text(pair):
    """Findings come first, in 79 columns; colours only on a terminal."""
    for name in ("codecs", "servers", "uneven", "killed", "retried"):
        one = pair.spans[name]
        done = pair.procs.report("--run", one)
        assert done.returncode == 0
        lines = done.stdout.split("\nFindings\n")[1].split("\n\n")[0].splitlines()
        assert done.stdout.index("\nFindings\n") < done.stdout.index("\nThroughput\n")
        assert max(map(len, lines)) <= 79 and "\033" not in done.stdout
        for found in pair.reports[name]["findings"]:
            assert found["advice"].split()[0] in done.stdout


def test_severity_orders(pair):
    order = ["high", "warning", "note"]
    for report in pair.reports.values():
        found = [order.index(f["severity"]) for f in report["findings"]]
        assert found == sorted(found)
        assert json.dumps(report["findings_checked"])
