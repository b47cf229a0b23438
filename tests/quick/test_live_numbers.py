"""live.json, /metrics and status.json of a collector whose agents are simulated here, with a different value for each number. The truth is
what the agents sent, summed in Python by the names of contract/counters.def."""

import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
import frames
import msgpack
import sealed

TEXT = (ROOT / "contract" / "counters.def").read_text()
TIMES, COUNTS = (re.findall(rf"^{kind}\((\w+),", TEXT, re.M) for kind in ("TIME", "COUNT"))
PLAIN = ("tasks_started", "tasks_done", "tasks_refused", "records_refused", "strings_refused", "files_refused", "threads_refused",
         "shared_network_read_bytes", "shared_network_write_bytes")
AMOUNTS = [(part, name) for part in ("process", "seen", "children") for name in ("cpu_ns", "storage_read_bytes", "storage_write_bytes")]
LAYERS = {name: f"{name}_bytes" for name in ("read", "mapped", "network_read", "network_write", "comm_read", "comm_write", "decompress_in",
                                             "decompress_out", "write")}
NOWHERE = {("tasks", "mapped_bytes"), ("tasks", "page_calls"), (None, "records_refused"), ("tasks", "sleep_ns"), ("process", "storage_write_bytes")}
NOT_EVERYWHERE = {("tasks", "read_calls"), ("unattributed", "comm_read_bytes"), ("tasks", "gil_wait_ns"), ("seen", "cpu_ns"),
                  (None, "files_refused")}  # not sent by the second worker
CHUNK = 2
A, B, QUIET, ENDED, KILLED, SILENT, LOST = (bytes([65 + i]) * 16 for i in range(7))
TOTALS_AT = {A: (0, 4, 6, 9), B: (0, 3)}  # s of the worker's clock; a rate is over the last two totals that are at least 4 s apart
FROM_TO = {A: (1, 3), B: (0, 1)}
PROBES = {A: {"nthreads": 3, "executing": 2, "ready": 11, "long_running": 1, "in_flight_data": 21, "nbytes_managed": 6001, "spilled_bytes": 701,
              "memory_limit_bytes": 10_000_005},
          B: {"nthreads": 5, "executing": 4, "ready": 17, "long_running": 3, "nbytes_managed": 8002, "spilled_bytes": 902,
              "memory_limit_bytes": 20_000_000, "digests": [["execute", None, "x", "thread-cpu", "seconds", 1.5]]}}
SAMPLES = {A: {"rss_bytes": 8_000_004, "cpu_percent": 150.25, "tasks_running": 2}, B: {"rss_bytes": 9_000_000, "cpu_percent": 33.5, "tasks_running": 7},
           QUIET: {"rss_bytes": 790_000}}
TASKS = {A: [("fill", "ok", CHUNK, 100, 700_000_001), ("fill", "erred", CHUNK, 7, 30_000_000), ("merge", "ok", 0, 0, 5_000_000)],
         B: [("fill", "ok", CHUNK, 250, 900_000_000), ("merge", "killed", 0, 3, 11_000_000), ("odd\"\\", "cancelled", 0, 5, 2_000_000_000)]}
DOING = [{"key": "short", "call": "poll", "call_boot_ns": frames.BOOT_NS + 7 * 10**9, "place_boot_ns": frames.BOOT_NS + 7 * 10**9},
         {"key": "runs", "call": None, "start_boot_ns": frames.BOOT_NS, "place_boot_ns": frames.BOOT_NS + 10**9},
         {"key": "a\x1b[31m", "call": "recv", "kind": "peer", "object": "10.0.0.7:1094", "line": "a.py:3 f", "stack": ["b.py:1 g", 5, "a.py:3 f"], "pool": False,
          "thread": 77, "attempt": 5, "start_boot_ns": frames.BOOT_NS + 10**9, "call_boot_ns": frames.BOOT_NS + 2_500_000_000, "entrystart": 10, "entrystop": 20}]
LATER = ("fill", "ok", CHUNK, 45, 60_000_000)  # of A, between its second and its last totals
DROPPED = {"chunks": 1000, "events": 20_000, "records_lost": 300, "records_bad": 40, "ended": [11, 22, 33, 44],
           "prefixes": [["fill", 5_000_000_000, 5, 6, 7, 8], ["old", 1_000_000, 6, 16, 26, 36]]}  # of dropped segments
CARRIED = {"tasks_done": 1000, "tasks": {"read_bytes": 123_456}, "unattributed": {"read_bytes": 44}}


def number(*of):
    return 1 + sum((i + 3) * 7919 * sum(map(ord, str(word))) for i, word in enumerate(of)) % 999_983


def value(worker, part, name, k):
    """A value in the worker's k-th totals; None: the worker cannot count it."""
    if (part, name) in NOWHERE or (worker == B and (part, name) in NOT_EVERYWHERE):
        return None
    unit = 10**6 if name.endswith("_ns") else 1
    return unit * (number("base", worker, part, name) + k * number("step", worker, part, name))


def names_of(part):
    return [*COUNTS, *(f"{p}{t}_ns" for t in TIMES for p in ("", "pool_"))] if part == "tasks" else COUNTS if part == "unattributed" else [
        name for where, name in AMOUNTS if where == part]


def totals(worker, k):
    found = {name: value(worker, None, name, k) for name in PLAIN}
    for part in ("tasks", "unattributed", "process", "seen", "children"):
        found[part] = {name: value(worker, part, name, k) for name in names_of(part)}
    return [11, {"boot_ns": frames.BOOT_NS + TOTALS_AT[worker][k] * 10**9, "notes": ["not that"] if worker == B else [], **found}]


def task(attempt, row):
    said = dict(zip(("prefix", "status", "flags", "events", "wall_ns"), row), attempt=attempt, key="k", thread=1)
    return [frames.TASK_END, 1, *(said.get(name) for name in frames.names())]


def hello(worker, i, real_ns, stack=None):
    facts = {"host": f"node{i}", "pid": 4_000_000 + i, "boot_ns": frames.BOOT_NS, "real_ns": real_ns, "stack": json.dumps(stack or {})}
    return frames.frame(frames.HELLO, {"facts": facts, "task_fields": frames.names()}, worker)


class Agent:
    """An agent without a token; counts what it sent."""

    def __init__(self, port, worker, i, stack):
        self.peer, self.worker, self.seq, self.bytes, self.records, self.frames = sealed.Agent(port, None, worker), worker, 0, 0, 0, 0
        self.peer.send(hello(worker, i, time.time_ns(), stack))
        assert self.peer.expect(frames.WELCOME)[1] == 0
        self.name = "{}:{}".format(*self.peer.socket.getsockname())

    def tell(self, *messages, gap=0):
        self.seq += gap
        self.last = frames.frame(frames.DATA, messages, self.worker, self.seq, len(messages))
        self.peer.send(self.last)
        self.seq += len(messages)
        self.bytes, self.records, self.frames = self.bytes + len(self.last), self.records + len(messages), self.frames + 1

    def wait(self):
        while self.peer.expect(frames.ACK)[1] < self.seq:
            pass


def collector(folder, *options):
    """(process, port for agents, port for the page)"""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0)), two.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], two.getsockname()[1]
    process = subprocess.Popen(
        [ROOT / "build/crema", "collect", "--insecure", "--listen", f"127.0.0.1:{ports[0]}", "--http", f"127.0.0.1:{ports[1]}", "--dir", folder, *options],
        env={**os.environ, "CREMA_TLS": "off", "CREMA_IO_URING": "off"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    while b"status page" not in process.stdout.readline():
        assert process.poll() is None
    return process, *ports


class Site:
    """A collector over the journal of two workers that vanished without a goodbye."""

    def __init__(self, folder):
        self.folder, self.started = folder / "journal", time.time()
        journal = frames.Journal(self.folder)
        dropped = [({"format": 1, "kind": "dropped", "created_ns": 0}, 1, bytes(16)), ({"below_ns": 5, "sums": DROPPED}, 11, bytes(16)),
                   ({"streams": [[1, [0, 7]]], "ended": [2, 4]}, 13, SILENT)]
        gone = b"".join(frames.frame(kind, payload, worker) for payload, kind, worker in dropped)
        (self.folder / f"{0:020}-dropped.crema").write_bytes(gone)
        for worker, age in ((SILENT, 100), (LOST, 1000)):
            journal.frames.append(hello(worker, 9, time.time_ns() - age * 10**9))
            journal.seq = 7 * (worker == SILENT)
            journal.message(task(3, ("old", "ok", CHUNK, 10**6, 10**9)) if worker == SILENT else [1], worker)
            journal.message([8, {"boot_ns": frames.BOOT_NS + 40 * 10**9, "rss_bytes": 5_000_000, "tasks_running": 1}], worker)
            if worker == SILENT:
                journal.message([11, {"boot_ns": frames.BOOT_NS, **CARRIED}], worker)
                journal.message(doing(40, 0, {"key": "quiet", "call": "read", "call_boot_ns": frames.BOOT_NS + 39 * 10**9}), worker)
        journal.write()
        self.process, self.port, self.http = collector(folder, "--keep", "9000d", "--max-bytes", "20M")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/{path}", timeout=5) as answer:
            return answer.read().decode()


def refused(port, *whole):
    """A peer that the collector refuses."""
    peer = sealed.Peer(socket.create_connection(("127.0.0.1", port), timeout=5))
    peer.expect(frames.CHALLENGE)
    peer.send(*whole)
    try:
        while peer.read(1):
            pass
    except ConnectionError:
        peer.close()


def doing(second, cut, *rows):
    return [22, {"boot_ns": frames.BOOT_NS + second * 10**9, "cut": cut, "rows": list(rows)}]


def play(site):
    """Fills the site; returns after a second with activity."""
    agents = {worker: Agent(site.port, worker, i, {"worker_address": f"tcp://w{i}:1", "worker_name": f"name{i}", "nthreads": 1 + i,
                                                    "memory_limit_bytes": 1_000_000})
              for i, worker in enumerate((A, B, QUIET, ENDED, KILLED))}
    for worker in (A, B, QUIET):
        agent = agents[worker]
        ends = [task(i + 1, row) for i, row in enumerate(TASKS.get(worker, ()))]
        agent.tell(*ends, *ends[:1], [8, {"boot_ns": frames.BOOT_NS + 1, "rss_bytes": 2}], [8, {"boot_ns": frames.BOOT_NS + 2 * 10**9, **SAMPLES[worker]}],
                   [8, {"boot_ns": frames.BOOT_NS + 10**9, "rss_bytes": 1}])  # the older sample comes too late
        if worker in PROBES:
            agent.tell([10, frames.BOOT_NS, json.dumps({"ready": 998})], [10, frames.BOOT_NS + 2, json.dumps(PROBES[worker])], [10, frames.BOOT_NS + 1, json.dumps({"ready": 999})])
            agent.tell(totals(worker, 0), gap=3)
            agent.tell(totals(worker, 1))
    agents[A].tell(doing(4, 3, *DOING), doing(3, 0))  # the older message comes too late
    agents[B].tell(doing(2, 0, *DOING), doing(3, 0))
    agents[A].tell(task(4, LATER), totals(A, 2), totals(A, 3), totals(A, 1))
    agents[B].tell([frames.TASK_END, 1], [8, 1])  # malformed
    for worker, how in ((ENDED, "exit"), (KILLED, "killed")):
        agents[worker].tell([14, {"boot_ns": frames.BOOT_NS, "how": how}])
    for agent in agents.values():
        agent.wait()
    agents[A].peer.send(agents[A].last)
    agents[A].wait()
    for worker in (ENDED, KILLED):
        agents[worker].peer.close()
    auth = {"version": 1, "nonce": None}
    for _ in range(2):
        refused(site.port, frames.frame(frames.AUTH, auth, A))
    for _ in range(3):
        refused(site.port, b"GET / HTTP/1.1\r\n\r\n" + bytes(60))
    refused(site.port, frames.frame(frames.HELLO, auth, A))
    limit = time.monotonic() + 5
    while time.monotonic() < limit:
        status = json.loads(site.get("status.json"))
        if json.loads(site.get("live.json"))["activity"]["since"] and len(status["agents"]) == 3 and status["journal"]["syncs"]:
            return agents
        time.sleep(0.05)
    pytest.fail("the collector does not come to rest")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    found = Site(tmp_path_factory.mktemp("live"))
    try:
        found.before = json.loads(found.get("live.json"))
        found.began = time.time()
        found.agents = play(found)
        found.asked = time.time()
        found.live, found.status = json.loads(found.get("live.json")), json.loads(found.get("status.json"))
        found.metrics = found.get("metrics")
        found.answered = time.time()
        found.samples = {series: float(number) for series, number in re.findall(r"^([^#\n].*) (\S+)$", found.metrics, re.M)}
        yield found
    finally:
        found.process.send_signal(signal.SIGTERM)
        try:
            found.process.wait(5)
        finally:
            found.process.kill()
            found.process.stdout.close()


def last(part, name):
    """The sum over the workers' last totals; None: no worker could count it."""
    known = [v for v in (value(w, part, name, len(TOTALS_AT[w]) - 1) for w in (A, B)) if v is not None]
    carried = (CARRIED if part is None else CARRIED.get(part, {})).get(name)
    return sum(known, carried or 0) if known or carried is not None else None


def rate(worker, part, name):
    start, stop = FROM_TO[worker]
    of = [value(worker, part, name, k) for k in (start, stop)]
    return None if None in of else (of[1] - of[0]) / (TOTALS_AT[worker][stop] - TOTALS_AT[worker][start])


def added(*values):
    return None if None in values else sum(values)


def rates(worker):
    """The rates of a row in live.json."""
    events = {A: LATER[3] / 5, B: 0}[worker]  # A's rate is over the 5 s since its second totals
    layers = {layer: added(rate(worker, "tasks", name), rate(worker, "unattributed", name)) for layer, name in LAYERS.items()}
    layers.update({f"storage_{way}": rate(worker, "process", f"storage_{way}_bytes") for way in ("read", "write")})
    classes = {t: added(rate(worker, "tasks", f"{t}_ns"), rate(worker, "tasks", f"pool_{t}_ns")) for t in TIMES}
    return {"tasks_per_second": rate(worker, None, "tasks_done"), "events_per_second": events, "cpu": rate(worker, "process", "cpu_ns") / 1e9,
            "bytes_per_second": layers, "threads_in": {t: None if v is None else v / 1e9 for t, v in classes.items()}}


def rows():
    """All attempts, each with one end, without those of dropped segments."""
    return [*TASKS[A], *TASKS[B], LATER]


def prefixes(began=True):
    found = {name: {"prefix": name, "ok": 0, "erred": 0, "killed": 0, "other": 0, "wall_seconds": 0} for name in ("fill", "old", "merge", "odd\"\\", "other")}
    for name, wall_ns, *ended in DROPPED["prefixes"]:
        found[name].update(zip(("ok", "erred", "killed", "other"), ended), wall_seconds=wall_ns / 1e9)
    if not began:
        return [found[name] for name in ("fill", "old", "other")]
    for prefix, status, _, _, wall_ns in rows():
        found[prefix][status if status in found[prefix] else "other"] += 1
        found[prefix]["wall_seconds"] += wall_ns / 1e9
    return sorted(found.values(), key=lambda row: -row["wall_seconds"])


def near(found, expected):
    """Equal trees; integers are equal exactly."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for name in expected:
            assert near(found[name], expected[name]), (name, found[name], expected[name])
        return True
    if isinstance(expected, list):
        return len(found) == len(expected) and all(near(*pair) for pair in zip(found, expected))
    if isinstance(expected, float):
        return found is not None and math.isclose(found, expected, rel_tol=1e-9, abs_tol=2e-6)
    return found == expected


def test_before_the_first_agent(site):
    live = site.before
    assert live["workers"] == {"connected": 0, "silent": 1, "lost": 1, "ended": 0, "killed": 0, "seen": 2, "threads": 0}
    assert live["activity"] == {"since": None, "done": 0, "events": 0, "read_bytes": 0}
    assert (live["tasks"]["done"], live["totals"]["read"], live["tasks"]["known"], live["prefixes"]) == (1000, 123_500, None, prefixes(began=False))
    row, = live["worker_rows"]
    assert (row["state"], row["id"]) == ("silent", SILENT.hex()) and row["heard_seconds"] == pytest.approx(60, abs=10)
    assert 0 <= live["uptime_seconds"] <= site.began - site.started + 0.1


def test_workers(site):
    assert site.live["workers"] == {"connected": 3, "silent": 1, "lost": 1, "ended": 1, "killed": 1, "seen": 7, "threads": 3 + 5 + 3}
    assert site.live["memory"] == {"rss_bytes": 17_790_004, "limit_bytes": 31_000_005, "managed_bytes": 14_003, "spilled_bytes": 1603,
                                   "largest_ratio": 8_000_004 / 10_000_005, "near_limit": 1}


def test_tasks(site):
    done = last(None, "tasks_done")
    hold = {name: sum(PROBES[w][name] for w in (A, B)) for name in ("executing", "ready", "long_running")}
    ok = [row for row in rows() if row[1] == "ok"]
    assert site.live["tasks"] == {
        "running": 9, "started": last(None, "tasks_started"), "done": done, "refused": last(None, "tasks_refused"), "ok": 4 + 11,
        "erred": 1 + 22, "killed": 1 + 33, "other": 1 + 44, "chunks": 3 + 1000, "events": 395 + 20_000, **hold, "fetching": 21, "remaining": 38, "known": done - 1000 + 38}
    assert (len(ok), sum(row[3] for row in ok), sum(hold.values())) == (4, 395, 38)
    activity = dict(site.live["activity"])
    assert site.began - 0.01 <= activity.pop("since") <= site.asked
    assert activity == {"done": done - 1000, "events": 395, "read_bytes": last("tasks", "read_bytes") + last("unattributed", "read_bytes") - 123_500}
    assert near(site.live["prefixes"], prefixes())


def test_totals_and_completeness(site):
    totals = {layer: added(last("tasks", name), last("unattributed", name)) for layer, name in LAYERS.items()}
    totals.update({f"storage_{way}": last("process", f"storage_{way}_bytes") for way in ("read", "write")})
    names = {**LAYERS, **{f"storage_{way}": f"storage_{way}_bytes" for way in ("read", "write")}}
    assert site.live["totals"] == {**totals, **{names[layer]: value for layer, value in totals.items()}} and totals["mapped"] is None is totals["storage_write"]
    # One worker is silent, one lost: they may have lost more.
    assert site.live["completeness"] == {
        "records_lost": None, "records_lost_at_least": 306, "records_refused": None, "records_refused_at_least": None,
        "tasks_refused": None, "tasks_refused_at_least": last(None, "tasks_refused"), "workers_with_notes": 1}
    assert (site.live["journal_over"], site.live["journal_error"]) == (None, None)
    assert site.asked <= site.live["time"] <= site.answered
    assert 0 < site.live["uptime_seconds"] <= site.status["uptime_seconds"] <= site.answered - site.started
    assert site.asked - site.began - 1 < site.live["uptime_seconds"]
    assert site.live["version"] == site.status["version"] == re.search(
        r"(\d\S+)", subprocess.run([ROOT / "build/crema", "--version"], capture_output=True, text=True).stdout).group(1)


def test_rates(site):
    each = [rates(w) for w in (A, B)]

    def summed(*values):
        if isinstance(values[0], dict):
            return {name: summed(*(v[name] for v in values)) for name in values[0]}
        known = [v for v in values if v is not None]
        return float(sum(known)) if known else None

    assert near(site.live["rates"], summed(*each)) and site.live["rates"]["threads_in"]["sleep"] is None
    assert site.live["rates"]["threads_in"]["gil_wait"] == pytest.approx(each[0]["threads_in"]["gil_wait"]) and each[1]["threads_in"]["gil_wait"] is None


def test_rows_of_workers(site):
    found = {row.pop("id"): row for row in site.live["worker_rows"]}
    assert site.live["worker_rows_cut"] == 0 and set(found) == {w.hex() for w in (A, B, QUIET, SILENT)}
    for i, worker in enumerate((A, B, QUIET)):
        row, probe, sample = found[worker.hex()], PROBES.get(worker, {}), SAMPLES[worker]
        assert 0 <= row.pop("heard_seconds") <= site.answered - site.began
        told = {name: row.pop(name) for name in ("tasks_per_second", "events_per_second", "cpu", "bytes_per_second", "threads_in")}
        if worker == QUIET:
            assert all(v is None for v in (*told["bytes_per_second"].values(), *told["threads_in"].values(), told["cpu"]))
        else:
            assert near(told, json.loads(json.dumps(rates(worker)), parse_int=float))
        assert row == {"worker": f"tcp://w{i}:1", "name": f"name{i}", "host": f"node{i}", "pid": 4_000_000 + i, "state": "connected",
                       "threads": probe.get("nthreads", 1 + i), "running": sample.get("tasks_running"), "ready": probe.get("ready"),
                       "executing": probe.get("executing"), "done": value(worker, None, "tasks_done", len(TOTALS_AT[worker]) - 1) if probe else None,
                       "cpu_percent": sample.get("cpu_percent"), "rss_bytes": sample["rss_bytes"],
                       "limit_bytes": probe.get("memory_limit_bytes", 1_000_000), "paused": False,
                       "call": {"call": "recv", "kind": "peer", "object": "10.0.0.7:1094", "line": "a.py:3 f", "seconds": 6.5} if worker == A else None}
    row = found[SILENT.hex()]
    assert 60 <= row.pop("heard_seconds") < 75
    assert row == {"worker": None, "name": None, "host": "node9", "pid": 4_000_009, "state": "silent", "threads": None, "running": None, "ready": None,
                   "executing": None, "done": 1000, "cpu_percent": None, "rss_bytes": None, "limit_bytes": None, "paused": False,
                   "call": {"call": "read", "kind": None, "object": None, "line": None, "seconds": 1}}


def test_what_tasks_do(site):
    """From the latest message of each worker; the longest call first, a task that waits for nothing last; seconds until the last message."""
    rows = site.live["doing"]
    assert [row["key"][0] for row in rows] == ["a", "s", "q", "r"] and site.live["doing_cut"] == 3
    silent = rows.pop(2)
    assert {row["id"] for row in rows} == {A.hex()} and all(0 <= row["heard_seconds"] < 60 for row in rows)
    assert (silent["id"], silent["call_seconds"]) == (SILENT.hex(), 1) and 60 <= silent["heard_seconds"] < 75
    first = rows[0]
    assert "\x1b" not in first["key"] and first["stack"] == ["b.py:1 g", "a.py:3 f"]
    assert {name: first[name] for name in ("call_seconds", "task_seconds", "place_seconds", "thread", "attempt", "entrystart", "entrystop", "dataset", "line", "pool")} == {
        "call_seconds": 6.5, "task_seconds": 8, "place_seconds": None, "thread": 77, "attempt": 5, "entrystart": 10, "entrystop": 20, "dataset": None,
        "line": "a.py:3 f", "pool": False}
    assert (rows[1]["call_seconds"], rows[2]["call_seconds"], rows[2]["place_seconds"]) == (2, None, 8)
    assert [row["seconds"] for row in rows] == [6.5, 2, None]


def of_metrics(site):
    """Every series from the workers, by its name."""
    plain = {f"crema_{name}_total": last(None, name) for name in PLAIN}
    times = {f'crema_task_seconds_total{{class="{t}",thread="{thread}"}}': last("tasks", f"{p}{t}_ns")
             for t in TIMES for thread, p in (("own", ""), ("pool", "pool_"))}
    counts = {f'crema_{name}_total{{owner="{owner}"}}': last(part, name) for name in COUNTS for owner, part in (("task", "tasks"), ("unattributed",) * 2)}
    amounts = {f"crema_worker_{part}_{name}_total": last(part, name) for part, name in AMOUNTS}
    found = {re.sub("_ns_total", "_seconds_total", name): v / 1e9 if "_ns_total" in name or "_seconds_total{" in name else v
             for name, v in {**plain, **times, **counts, **amounts}.items() if v is not None}
    without = {f"{t}_seconds": ("tasks", f"{t}_ns") for t in TIMES}
    without.update({name: ("tasks", name) for name in COUNTS}, **{f"worker_{part}_{name}": (part, name) for part, name in AMOUNTS})
    for name, of in without.items():
        found[f'crema_workers_incomplete{{value="{re.sub("_ns$", "_seconds", name)}"}}'] = (of in NOWHERE) * 2 + (of in NOT_EVERYWHERE) + (of != ("tasks", "read_bytes"))
    for row in prefixes():
        name = row["prefix"].replace("\\", "\\\\").replace('"', '\\"')
        found[f'crema_task_wall_seconds_total{{prefix="{name}"}}'] = row["wall_seconds"]
        for status, shown in (("ok",) * 2, ("erred",) * 2, ("killed",) * 2, ("other", "unknown")):
            found[f'crema_tasks_total{{prefix="{name}",status="{shown}"}}'] = row[status]
    return found


def test_metrics_of_workers(site):
    for series, expected in of_metrics(site).items():
        assert site.samples[series] == pytest.approx(expected, rel=1e-12, abs=1e-9), series
    expected = {
        "crema_events_total": 20_395, "crema_chunks_total": 1003, 'crema_workers{state="connected"}': 3, 'crema_workers{state="silent"}': 1,
        'crema_workers{state="lost"}': 1, 'crema_workers_gone_total{how="exit"}': 1, 'crema_workers_gone_total{how="killed"}': 1,
        "crema_workers_seen_total": 7, "crema_worker_threads": 11, "crema_tasks_running": 9, 'crema_dask_tasks{state="executing"}': 6,
        'crema_dask_tasks{state="ready"}': 28, 'crema_dask_tasks{state="long_running"}': 4, 'crema_dask_tasks{state="fetching"}': 21,
        "crema_worker_memory_bytes": 17_790_004, "crema_worker_memory_limit_bytes": 31_000_005, "crema_worker_memory_managed_bytes": 14_003,
        "crema_worker_memory_spilled_bytes": 1603, "crema_worker_memory_largest_ratio": 0.8, "crema_workers_near_memory_limit": 1, 'crema_state{state="idle"}': 0, 'crema_state{state="running"}': 1,
        'crema_state{state="stalled"}': 0, "crema_workers_paused": 0, "crema_longest_call_seconds": 6.5,
        "crema_workers_with_notes": 1, "crema_records_lost_at_least_total": 306, "crema_records_bad_total": 42}
    assert {name: site.samples[name] for name in expected} == pytest.approx(expected, rel=1e-14)
    own = {name for name in site.samples if not name.startswith(("crema_collector_", "crema_journal_", "crema_build_info", "crema_run_"))}
    assert own == set(of_metrics(site)) | set(expected) | {"crema_tasks_quiet_seconds"}
    assert 0 <= site.samples["crema_tasks_quiet_seconds"] < 400


def test_metrics_are_declared(site):
    """Each family has its help and type, once and before its series; only counters end in _total."""
    name, seen = None, set()
    for line in site.metrics.splitlines():
        if line.startswith("# HELP "):
            _, _, name, text = line.split(" ", 3)
            assert name not in seen and text
            seen.add(name)
            continue
        kind = "counter" if name.endswith("_total") else "gauge"
        assert line == f"# TYPE {name} {kind}" or re.match(rf"{name}(\{{.*\}})? \S+$", line), (name, line)


def test_the_last_run(tmp_path):
    """Its gauges are there when nothing runs."""
    journal = frames.Journal(tmp_path / "journal")
    journal.worker(A)
    journal.task(1, "k", 100, 2350, A)
    journal.write()
    process, _, port = collector(tmp_path)
    try:
        limit, found = time.monotonic() + 10, {}
        while time.monotonic() < limit and not found:
            time.sleep(0.05)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                found = {name: float(number) for name, number in re.findall(r"^(crema_run_\w+) (\S+)$", answer.read().decode(), re.M)}
        assert found["crema_run_start_timestamp_seconds"] == pytest.approx(frames.BASE_NS / 1e9 + 0.1, abs=1e-5)
        assert found["crema_run_stop_timestamp_seconds"] == pytest.approx(frames.BASE_NS / 1e9 + 2.35, abs=1e-5)
        assert len(found) > 20
    finally:
        process.terminate()
        process.wait(5)
        process.stdout.close()


def frames_of(path):
    data, found = path.read_bytes(), []
    while data:
        head = frames.HEAD.unpack_from(data)
        found.append((head[2], frames.HEAD.size + head[9]))
        data = data[found[-1][1]:]
    return found


def test_server_and_journal(site):
    agents, status, samples = site.agents, site.status, site.samples
    told = {"connections": len(agents) + 6, "frames": sum(a.frames for a in agents.values()), "bytes": sum(a.bytes for a in agents.values()),
            "records": sum(a.records for a in agents.values()), "duplicate_records": 4, "missing_records": 6, "workers_connected": 3, "workers_seen": 7,
            "refused_total": 6}
    assert {name: status[name] for name in told} == told
    reasons = {"bad_version": 2, "bad_frame": 3, "bad_order": 1}
    assert status["refused"] == {name: reasons.get(name, 0) for name in status["refused"]}
    for name, series in (("connections", "connections_total"), ("workers_connected", "agents_connected"), ("frames", "frames_total"),
                         ("records", "records_total"), ("bytes", "received_bytes_total"), ("duplicate_records", "duplicate_records_total")):
        assert samples[f"crema_collector_{series}"] == told[name]
    for reason, count in status["refused"].items():
        assert samples[f'crema_collector_refused_total{{reason="{reason}"}}'] == count
    here = {row.pop("worker"): row for row in status["agents"]}
    assert here == {w.hex(): {"peer": agents[w].name, "host": f"node{i}", "pid": 4_000_000 + i, "records": agents[w].records, "bytes": agents[w].bytes,
                              "next": agents[w].seq} for i, w in enumerate((A, B, QUIET))}
    _, *more = sorted(site.folder.glob("*-journal.crema"))
    (header, *written), = map(frames_of, more)
    journal = dict(status["journal"])
    sizes = {"segments": 1, "frames": len(written), "bytes": sum(size for _, size in written), "queued_bytes": 0, "failures": 0, "unsynced_bytes": 0}
    assert {name: journal.pop(name) for name in sizes} == sizes
    syncs, slowest = journal.pop("syncs"), journal.pop("slowest_sync_seconds")
    assert 0 < syncs <= 4 and 0 < slowest < site.answered - site.began
    assert journal == {"state": "ok", "error": None, "sync_error": None, "dir": str(site.folder.parent), "keep_seconds": 9000 * 86400, "max_bytes": 20_000_000, "over": None, "writes_by": "pwrite"}
    expected = {"written_bytes_total": sizes["bytes"], "segments_total": 1, "write_failures_total": 0, "queued_bytes": 0, "stuck": 0, "sync_failed": 0,
                "unsynced_bytes_total": 0, "size_bytes": sum(p.stat().st_size for p in site.folder.glob("*.crema"))}
    assert {name: samples[f"crema_journal_{name}"] for name in expected} == expected
    assert syncs <= samples["crema_journal_syncs_total"] <= syncs + 1 and samples["crema_journal_slowest_sync_seconds"] >= slowest * 0.99
    free = os.statvfs(site.folder)
    assert samples["crema_journal_free_bytes"] == pytest.approx(free.f_bavail * free.f_frsize, rel=0.05)
    assert samples["crema_journal_free_bytes"] % free.f_frsize == 0
    assert site.started - 0.01 <= samples["crema_collector_start_time_seconds"] <= site.began
    rss = int(Path(f"/proc/{site.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert samples["crema_collector_resident_memory_bytes"] == pytest.approx(rss, rel=0.2)
    assert samples["crema_collector_resident_memory_bytes"] % os.sysconf("SC_PAGESIZE") == 0
    ticks = sum(map(int, Path(f"/proc/{site.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    assert 0 < samples["crema_collector_cpu_seconds_total"] <= ticks + 0.05
    assert samples[f'crema_build_info{{version="{status["version"]}"}}'] == 1
