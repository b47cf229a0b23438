"""Which tasks make a run: each Runner call is one, according to the client's and the scheduler's own records, whatever else runs."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
import warnings
from pathlib import Path

import cluster
import crema
import dask
import distributed
import numpy as np
import own_map
import pytest
import right_run
import uproot
from distributed import Client

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def two(tmp_path_factory, homes):
    """Two schedulers with two workers each, and one collector."""
    directory = tmp_path_factory.mktemp("two")
    first, second = (cluster.Cluster(directory / name, homes) for name in ("first", "second"))
    try:
        first.start_collector()
        second.target = first.target
        for each in (first, second):
            each.start_scheduler()
        for each in (first, second, first, second):
            each.start_worker(nthreads=2)
        for each in (first, second):
            each.client = Client(each.address)
            each.client.wait_for_workers(2, timeout=120)
            each.client.register_plugin(right_run.Executions())
        for each in (first, second):  # imports take seconds, in which Dask's start and end differ from ours
            each.client.run(right_run.warm_up)
        yield first, second
    finally:
        for each in (first, second):
            if getattr(each, "client", None):
                each.client.close()
            each.stop_workers()
        second.stop()
        first.stop()


@pytest.fixture(scope="module")
def files(disk):
    """Small files: only the assignment of tasks is tested."""
    found = []
    for i in range(4):
        found.append(str(disk / f"right-{i}.root"))
        with uproot.recreate(found[-1]) as out:
            out.mktree("Events", {"x": "float64"})
            out["Events"].extend({"x": np.arange(4000 + i, dtype="float64")})
    return found


def listed(procs):
    done = procs.report("--list", "--json", "-")
    return json.loads(done.stdout)["runs"] if done.returncode == 0 else []


def of_kind(runs, since, kind="coffea"):
    return [r for r in runs if r["kind"] == kind and r["start"] >= since]


def same(run, call, slack_seconds=0):
    wall, truth = run["wall_time"], call["stop"] - call["start"]
    events = call["events"] if call["chunks"] else None
    return (run["num_tasks"], run["num_chunks"], run["total_events"]) == (call["tasks"], call["chunks"], events) and abs(wall - truth) <= 0.02 * truth + slack_seconds


def told(procs, calls, since, kind, seconds=20):
    """The runs of that kind since then, by start, once there is one for each call and all tasks are there; after `seconds` as they are."""
    limit = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        runs = of_kind(listed(procs), since, kind)
        if (len(runs) == len(calls) and not any(r["running_attempts"] for r in runs)
                and sum(r["num_tasks"] for r in runs) >= sum(c["tasks"] for c in calls)) or time.monotonic() > limit:
            return runs
        time.sleep(max(0.5, time.monotonic() - began))  # leave half of a busy machine's time to others


def check(procs, calls, since, kind="coffea", slack_seconds=0):
    """Each call is a run with its own tasks, chunks, events and wall time, and there is no other run of its kind: returns pairs of
    run and call, by start."""
    runs = told(procs, calls, since, kind)
    calls = sorted(calls, key=lambda c: c["start"])
    text = "\n".join([*(f"run  {r['run']} {r['start']:.3f} wall {r['wall_time']:.3f} tasks {r['num_tasks']} chunks "
                        f"{r['num_chunks']} events {r['total_events']}" for r in runs),
                      *(f"call {c['start']:.3f} wall {c['stop'] - c['start']:.3f} tasks {c['tasks']} chunks {c['chunks']} "
                        f"events {c['events']}" for c in calls)])
    assert len(runs) == len(calls), text
    left, pairs = list(runs), []
    for call in calls:
        run = min(left, key=lambda r: (r["total_events"] != (call["events"] or None), abs(r["start"] - call["start"])))
        left.remove(run)
        assert abs(run["start"] - call["start"]) < 0.1 and same(run, call, slack_seconds), text
        pairs.append((run, call))
    return pairs


def test_four_users_on_two_clusters(two, files):
    """Four processes at once, two on each scheduler, each with five Runner calls."""
    since = time.time()
    users = [word for each, file in zip((*two, *two), files) for word in (each.address, file)]
    done = subprocess.run([sys.executable, HERE / "right_run.py", "5", *users], env=two[0].env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    calls = list(zip((*two, *two), json.loads(done.stdout)))
    assert [len(c) for _, c in calls] == [5] * 4
    pairs = check(two[0], [c for _, found in calls for c in found], since)
    for each, found in calls:
        run = next(run for run, call in pairs if call is found[-1])
        report = two[0].report_json(run["run"])
        assert {w["address"] for w in report["workers"]} == set(each.client.scheduler_info()["workers"])
        assert report["metrics"]["total_cores"] == pytest.approx(4, rel=0.02)
        idle = 4 * (found[-1]["stop"] - found[-1]["start"]) - found[-1]["busy"]
        assert report["metrics"]["idle_thread_seconds"] == pytest.approx(idle, rel=0.02)


def test_a_merge_that_is_late(two, files):
    """The client is delayed until Dask has closed the span of the chunks: the merge gets a separate span."""
    procs = two[0]
    client = right_run.open_client(procs.address)

    def spans_done():
        def ask(dask_scheduler):
            return all(s.done for s in dask_scheduler.extensions["spans"].root_spans)

        cluster.wait_until(lambda: client.run_on_scheduler(ask), "Dask's spans to end")

    since = time.time()
    watched = right_run.Watched(client, before_merge=spans_done)
    calls = right_run.settle(client, [watched.call(files[:1], right_run.Count("late"))])
    client.close()
    ((run, _),) = check(procs, calls, since)
    assert procs.report_json()["run"] == run["run"]


def test_a_failed_call_that_is_kept(two, files):
    """As in a notebook: the exception keeps the futures, and Dask puts later calls into their span."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since = time.time()
    calls = [watched.call(files[:1], instance) for instance in (
        right_run.Count("kept", fail=True), right_run.Count("kept"), right_run.Count("kept again"),
        right_run.Other("kept"), right_run.Other("kept again"))]
    assert [bool(c["error"]) for c in calls] == [True, False, False, False, False]
    keep = [c["error"] for c in calls]
    cluster.wait_until(lambda: not client.run_on_scheduler(
        lambda dask_scheduler: [ts for ts in dask_scheduler.tasks.values() if ts.state == "processing"]), "the last tasks")
    right_run.settle(client, calls)
    check(procs, calls, since)
    assert keep[0] is not None
    client.close()


def test_spans_in_turn_whose_merges_are_one_group(two, files):
    """Spans that the user opened: while Dask has a task of the first one's group `reduce`, it puts the other spans' merges there."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since, kept, calls, spans, submit = time.time(), [], [], [], client.map

    def keep(function, *args, **options):
        if type(function).__name__ == "_reduce" and not kept:
            kept.append(client.submit(right_run.nap, 0, key=f"reduce-{uuid.uuid4().hex}"))
        return submit(function, *args, **options)

    client.map = keep
    for name in ("first", "second", "third"):
        with distributed.span(name) as own:
            calls.append(watched.call(files[:2], right_run.Count(name)))
        spans.append(own)
        time.sleep(0.5)
    right_run.settle(client, calls)
    assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.task_groups["reduce"].span_id) == spans[0]
    pairs = check(procs, calls, since)
    assert [procs.report_json(span)["run"] for span in spans] == [run["run"] for run, _ in pairs]
    client.close()


def test_two_threads_of_one_client(two, files):
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since, calls = time.time(), []

    def both(instance, files):
        calls.extend(watched.call(files, instance) for _ in range(3))

    threads = [threading.Thread(target=both, args=(right_run.Count(name), [file])) for name, file in zip("ab", files)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    right_run.settle(client, calls)
    client.close()
    check(procs, calls, since)


def test_own_lambdas_before_and_beside(two, files):
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since = time.time()
    before = client.map(lambda x: x + 1, range(10), pure=False)
    client.gather(before)
    stop = threading.Event()

    def beside():
        while not stop.is_set():
            client.gather(client.map(lambda x: time.sleep(0.01), range(2), pure=False))

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        calls = [watched.call(files[:1], right_run.Count("lambdas")) for _ in range(2)]
    finally:
        stop.set()
        thread.join()
    right_run.settle(client, calls)
    pairs = check(procs, calls, since)
    assert procs.report_json()["run"] == pairs[-1][0]["run"]  # not a stray span of these
    del before
    client.close()


@pytest.mark.parametrize("how", [own_map.by_map, own_map.by_bag])
def test_work_items_without_the_runner(two, files, how):
    """A user's own functions over coffea's WorkItems, twice: their numbers are in what they return."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since = time.time()
    calls = right_run.settle(client, [own_map.call(watched, how, own_map.items(some)) for some in (files[:1], files[1:3])])
    client.close()
    for run, call in check(procs, calls, since):
        metrics = procs.report_json(run["run"])["metrics"]
        assert metrics["total_bytes_read_coffea"] == call["bytesread"] > 0
        assert metrics["total_cpu_time"] == pytest.approx(call["processtime"], rel=1e-9)
        assert metrics["columns"] == call["columns"] and len(call["columns"]) == 1


def test_a_loop_over_bags(two, files):
    """Within the 60 s in which Dask gives all computes the same number. As the results are kept, Dask puts each call's last tasks into the
    span of the first call, where only their inputs show which call they belong to."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since, kept = time.time(), []
    calls = [own_map.call(watched, own_map.by_bag, own_map.items(files[i:j]), kept=kept) for i in range(3) for j in range(i + 1, 4)]
    right_run.settle(client, calls)
    assert len({c["events"] for c in calls}) == len(calls) == 6
    check(procs, calls, since)
    del kept
    client.close()


def test_plain_bags_whose_results_are_kept(two):
    """Dask puts the last tasks of later calls into the first call's span: if so, both runs report it, and every task is
    in one of them."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    known, kept = {run["run"] for run in listed(procs)}, []

    def held():
        return client.run_on_scheduler(lambda dask_scheduler: sum(t.state != "released" for t in dask_scheduler.tasks.values()))

    before = held()
    for name in ("sum", "max", "min"):
        bag = dask.bag.from_sequence(range(8), npartitions=4).map(abs)
        kept.append(client.compute(getattr(bag, name)()))
        assert kept[-1].result() == {"sum": 28, "max": 7, "min": 0}[name]
        # Calls with equal keys: remaining tasks of one call would not run again in the next. This lets Dask tell them apart.
        cluster.wait_until(lambda: held() <= before + len(kept), "the call's tasks to be released")
        time.sleep(0.3)

    def settled():
        reports = {run["run"]: procs.report_json(run["run"]) for run in listed(procs) if run["run"] not in known}
        return sum(len(r["tasks"]) for r in reports.values()) == 3 * 10 and reports

    reports = cluster.wait_until(settled, "all tasks")
    client.close()
    for run, report in reports.items():
        text = " ".join(procs.report("--run", run).stdout.split())
        ends = [task for task in report["tasks"] if task["key"].startswith("finalize")]
        assert ("it contains several calls" in text) == (len(ends) > 1)
        assert ("tasks that use its results ran in the span of" in text) == (not ends)


def test_work_items_of_two_threads_whose_futures_are_kept(two, files):
    """As in notebooks: Dask keeps the span of kept futures, so the merges of all calls are in one span."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since, calls, kept = time.time(), [], []

    def both(n):
        calls.extend(own_map.call(watched, own_map.by_map, own_map.items([files[n]], chunksize), kept=kept, pure=False)
                     for chunksize in (1000, 500))

    threads = [threading.Thread(target=both, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    right_run.settle(client, calls)
    check(procs, calls, since)
    del kept
    client.close()


def test_work_items_that_fail(two, files):
    """The error is the result: the chunk ran, and returned no events."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    since = time.time()
    calls = right_run.settle(client, [own_map.call(right_run.Watched(client), own_map.by_map, own_map.items(files[:1]), fails=1000)])
    client.close()
    assert calls[0]["events"] == 3000 and calls[0]["good"] == 3 and calls[0]["chunks"] == 4
    check(procs, calls, since)


def test_concurrent_runs(two, files, tmp_path):
    """One call alone; two calls at once on one cluster and two on the other, with a fifth that follows one of them while the others continue;
    one alone again: each counts the other runs on its own workers only, by the client's and Dask's times."""
    marks = {name: str(tmp_path / name) for name in ("b", "c", "d", "e")}
    since, done = time.time(), []

    def call(where, number, instance, last=None):  # metadata tasks of the same file at the same time could not be told apart
        client = right_run.open_client(two[where].address)
        watched = right_run.Watched(client)
        mine = [watched.call(files[number:number + 1], each, chunksize=10000) for each in (instance, last) if each]
        done.extend((where, each) for each in right_run.settle(client, mine))
        client.close()

    def meets(name, *others):
        return right_run.Meets(marks[name], [marks[other] for other in others])

    for where in (0, 1):
        call(where, 0, right_run.Count(f"before {where}"))
    threads = [threading.Thread(target=call, args=args) for args in (
        (0, 1, meets("b", "c", "d")), (0, 2, meets("c", "b", "e")), (1, 3, meets("d", "b", "c"), meets("e", "b")))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    call(0, 0, right_run.Count("after"))
    found = []
    for run, truth in check(two[0], [each for _, each in done], since):
        met = [where for where, each in done if each is not truth and truth["start"] < each["stop"] and each["start"] < truth["stop"]]
        ((where, _),) = [pair for pair in done if pair[1] is truth]
        assert two[0].report_json(run["run"])["metrics"]["concurrent_runs"] == met.count(where)
        found.append((met.count(where), met.count(1 - where) > 0))
    assert sorted(found) == [(0, False)] * 3 + [(0, True)] * 2 + [(1, True)] * 2


def plain_calls(client, tag):
    """Dask without coffea: a map and its sum, and a graph."""
    calls = []
    for each in ("map", "graph"):
        call = {"begin": time.time(), "error": None, "items": 0, "events": 0, "keys": []}
        if each == "map":
            parts = client.map(right_run.nap, range(20), key=f"nap-{tag}")
            total = client.submit(sum, parts, key=f"sum-{tag}")
            call["keys"] = [f.key for f in (*parts, total)]
            assert total.result() == 190
            del parts, total
        else:
            graph = [dask.delayed(right_run.nap)(i, dask_key_name=f"leaf-{tag}-{i}") for i in range(12)]
            assert dask.delayed(sum)(graph, dask_key_name=f"total-{tag}").compute(scheduler=client) == 66
            call["keys"] = [f"leaf-{tag}-{i}" for i in range(12)] + [f"total-{tag}"]
        calls.append({**call, "end": time.time()})
        cluster.wait_until(lambda: client.run_on_scheduler(
            lambda dask_scheduler: all(s.done for s in dask_scheduler.extensions["spans"].root_spans)), "Dask's span to end")
    return right_run.settle(client, calls)


def test_plain_dask_on_two_clusters(two):
    since, calls = time.time(), []
    threads = [threading.Thread(target=lambda each=each: calls.extend(plain_calls(each.client, each.address[-4:]))) for each in two]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 4
    check(two[0], calls, since, "other")


def test_a_loop_of_submit_and_result(two, files):
    """Dask opens a span whenever it has no tasks left: each is a run. `last` is the analysis before them, and its report lists them."""
    procs = two[0]
    client = right_run.open_client(two[1].address)
    since = time.time()
    calls = right_run.settle(client, [right_run.Watched(client).call(files[:1], right_run.Count("before a loop"))])
    for i in range(30):
        assert client.submit(right_run.nap, i, pure=False).result() == i
        if i < 5:  # the next call may come before the scheduler is done, so that it still has tasks
            cluster.wait_until(lambda: client.run_on_scheduler(lambda dask_scheduler: all(s.done for s in dask_scheduler.extensions["spans"].root_spans)),
                               "Dask's span to end")
    client.close()
    limit = time.monotonic() + 20
    while sum(r["num_tasks"] for r in of_kind(listed(procs), since, "other")) < 30 and time.monotonic() < limit:
        time.sleep(0.5)
    ((run, _),) = check(procs, calls, since)
    mine = of_kind(listed(procs), since, "other")
    assert sum(r["num_tasks"] for r in mine) == 30
    assert all(a["start"] + a["wall_time"] <= b["start"] for a, b in zip(mine, mine[1:]))
    shown = procs.report_json()
    assert shown["run"] == run["run"]
    assert shown["run_info"]["other_runs"] == len(mine) > 3
    assert shown["run_info"]["other_run_ids"] == [r["run"] for r in reversed(mine)][:3]
    assert f"{len(mine)} other runs close to it" in " ".join(procs.report().stdout.split())


def test_cancelled_tasks_are_not_missing(two, monkeypatch):
    """crema.measure waits only for tasks that ran, and gives no warning: the scheduler counts cancelled tasks as ended, too."""
    procs, client = two[0], two[0].client
    monkeypatch.setenv("CREMA_PROGRAM", str(procs.build / "crema"))
    before = {row[0] for row in right_run.executions(client)}
    with warnings.catch_warnings(record=True) as caught, crema.measure(client, dir=procs.journal) as m:
        warnings.simplefilter("always")
        first = client.map(right_run.nap, range(8), pure=False)
        behind = client.map(right_run.nap, range(200), pure=False)
        client.gather(first)
        client.cancel(behind)
        del behind
    ran = [row for row in right_run.executions(client) if row[0] not in before]
    assert 8 <= len(ran) < 208
    assert m.warning is None and not [w for w in caught if "crema" in str(w.message)]
    assert m.get_metrics()["num_tasks"] == len(ran)


def submit_and_measure(client, procs, name, more, started=None, slow_seconds=0):
    """Submits the keys `name`-N, which another client may have submitted, and separate tasks on their results."""
    with crema.measure(client, dir=procs.journal) as m:
        parts = [client.submit(right_run.nap, i, key=f"{name}-{i}") for i in range(4)]
        client.gather(parts)
        client.gather([client.submit(sum, parts, key=f"{key}-{name}") for key in more])
        if slow_seconds:
            slow = client.submit(time.sleep, slow_seconds, key=f"slow-{name}")
            started.set()
            client.gather(slow)
    return m


@pytest.mark.filterwarnings("ignore:crema. nothing was measured")
def test_equal_keys_of_two_clients(two, monkeypatch):
    """Dask runs a key once: it is in the first client's run. A run that uses its results names that run; a client whose block ran nothing else gets a warning."""
    procs = two[0]
    monkeypatch.setenv("CREMA_PROGRAM", str(procs.build / "crema"))
    name, hers, done = f"equal{time.time_ns()}", threading.Event(), {}
    before = len(right_run.executions(procs.client))
    with Client(procs.address) as alice, Client(procs.address) as bob, Client(procs.address) as carol:
        first = threading.Thread(target=lambda: done.update(alice=submit_and_measure(alice, procs, name, ["hers"], hers, 5)))
        first.start()
        assert hers.wait(60)
        done["bob"] = submit_and_measure(bob, procs, name, ["his"])
        done["carol"] = submit_and_measure(carol, procs, name, [])
        first.join(60)
    assert len(right_run.executions(procs.client)) - before == 4 + 2 + 1
    a, b, c = done["alice"], done["bob"], done["carol"]
    assert (a.get_metrics()["num_tasks"], b.get_metrics()["num_tasks"]) == (6, 1) and a.warning is b.warning is None
    assert "equal keys" in c.warning and "no task ran for this block" in c.warning
    one, other = a.run.json, b.run.json
    assert other["run_info"]["takes_results_of"] == [one["run"]] and one["run_info"]["takes_results_of"] == []
    # his task ran during her slow one: numbers of whole workers belong to both
    assert (one["metrics"]["concurrent_runs"], other["metrics"]["concurrent_runs"]) == (1, 1)
    text = procs.report("--run", other["run"]).stdout
    assert "1 other run on its workers meanwhile" in text and f"uses results of {one['run']}" in " ".join(text.split())


def top_counts(procs):
    """connected, threads, done, ok, erred"""
    done = subprocess.run([procs.build / "crema", "top", "--once", "--http", f"127.0.0.1:{procs.http_port}"], env=procs.env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    patterns = (r"(\S+) connected", r"(\S+) threads;", r"(\S+) done", r"(\S+) ok,", r"(\S+) erred")
    return [int(re.search(p, done.stdout).group(1).replace(",", "")) for p in patterns]


def test_top_is_of_all_workers(two, files):
    """A Runner on one cluster, and stray tasks at the same time on the other: top shows neither as a run, but the sums of both."""
    procs = two[0]
    clients = [right_run.open_client(each.address) for each in two]
    before, ran = top_counts(procs), [len(right_run.executions(client)) for client in clients]
    stray = clients[1].map(right_run.nap, range(40), pure=False)
    bad = clients[1].submit(int, "no number", pure=False)
    right_run.Watched(clients[0]).call(files[:2], right_run.Count("top"))
    clients[1].gather(stray)
    assert bad.exception()
    ran = sum(len(right_run.executions(client)) for client in clients) - sum(ran)
    assert ran > 41 + 9
    wanted = [4, 8, before[2] + ran, before[3] + ran - 1, before[4] + 1]
    limit = time.monotonic() + 20
    while (found := top_counts(procs)) != wanted and time.monotonic() < limit:
        time.sleep(0.5)
    assert found == wanted
    for client in clients:
        client.close()


@pytest.mark.parametrize("meanwhile", [0, 1], ids=["after", "meanwhile"])
def test_equal_keys_of_which_some_are_kept(two, meanwhile):
    """Dask runs released tasks again in the span of the futures that the client still holds: text, JSON and page report two calls,
    even if the second one starts before all tasks of the first have ended."""
    procs = two[0]
    client = right_run.open_client(procs.address)
    known = {run["run"] for run in listed(procs)}
    before = len(right_run.executions(procs.client))
    first = client.map(right_run.nap, range(8))
    longer = client.submit(time.sleep, 6) if meanwhile else None
    assert client.gather(first) == list(range(8))
    del first[1:]
    left = [f.key for f in first]
    cluster.wait_until(lambda: client.run_on_scheduler(lambda dask_scheduler: [k for k in dask_scheduler.tasks if str(k).startswith("nap-")]) == left,
                       "the others are forgotten")
    again = client.map(right_run.nap, range(8))
    assert client.gather(again) == list(range(8))
    if meanwhile:
        assert longer.status == "pending"
        longer.result()
    assert len(right_run.executions(procs.client)) - before == 8 + 7 + meanwhile

    def settled():
        reports = [procs.report_json(run["run"]) for run in listed(procs) if run["run"] not in known]
        return sum(len(r["tasks"]) for r in reports) == 8 + 7 + meanwhile and reports

    report, = cluster.wait_until(settled, "all tasks")
    client.close()
    sentence, = report["run_info"]["company"]
    assert sentence.startswith("it contains several calls: 7 tasks ran again for a later call with equal keys")
    assert report["run_info"]["ran_again"] == 7 and "recomputed_work" not in [f["id"] for f in report["findings"]]
    assert sentence in " ".join(procs.report("--run", report["run"]).stdout.split())
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/data.json?run={report['run']}", timeout=60) as answer:
        assert json.load(answer)["run"]["company"] == [sentence]


@pytest.mark.filterwarnings("ignore:crema. .* of .* tasks of this run")
def test_a_failed_block_that_is_kept(two, files, monkeypatch):
    """As above with crema.measure, whose span Dask keeps as long as the exception: later calls, in blocks or outside, are not in it."""
    procs = two[0]
    monkeypatch.setenv("CREMA_PROGRAM", str(procs.build / "crema"))
    client = right_run.open_client(procs.address)
    watched = right_run.Watched(client)
    since, calls, blocks = time.time(), [], []
    for name, kind, fail, measured in (("block", right_run.Count, True, True), ("block", right_run.Count, False, True),
                                       ("outside", right_run.Count, False, False), ("other", right_run.Other, False, True)):
        if measured:
            with crema.measure(client, dir=procs.journal, wait_seconds=0) as m:
                calls.append(watched.call(files[:1], kind(name, fail=fail)))
            blocks.append((m, calls[-1]))
        else:
            calls.append(watched.call(files[:1], kind(name)))
        cluster.wait_until(lambda: not client.run_on_scheduler(
            lambda dask_scheduler: [ts for ts in dask_scheduler.tasks.values() if ts.state == "processing"]), "the last tasks")
    keep = [c["error"] for c in calls]
    assert [bool(error) for error in keep] == [True, False, False, False]
    dask_spans = client.run_on_scheduler(lambda dask_scheduler: {ts.group.span_id for ts in dask_scheduler.tasks.values()})
    assert blocks[0][0].span_id in dask_spans
    right_run.settle(client, calls)
    pairs = check(procs, calls, since, slack_seconds=0.1)  # the failed call takes less; with the others' tasks it took 1 s more
    for m, call in blocks:
        m.wait(30)
        ((run, _),) = [pair for pair in pairs if pair[1] is call]
        assert m.run.json["run"] == run["run"]
    client.close()
