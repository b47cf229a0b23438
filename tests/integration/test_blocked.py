"""Long waits of tasks and the stacks of their callers: waits in functions with known names, called from known lines."""

import ctypes
import http.server
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import jobs
import pytest
from distributed import Client, span

SOURCE = Path(__file__).with_name("blocking.c")
DIRECT_BYTES = 64 << 20
THRESHOLD_MS = 5


# --- on a worker

def call(library, name, *args):
    function = getattr(ctypes.CDLL(library), name)
    function.restype = ctypes.c_int64
    return function(*[ctypes.c_char_p(a.encode()) if isinstance(a, str) else ctypes.c_long(a) for a in args])  # LINE call


def hold_gil(library, ms):
    """A thread sleeps while it holds the interpreter's lock and the task needs it."""
    holder = threading.Thread(target=ctypes.PyDLL(library).known_sleep, args=(ctypes.c_long(ms),))
    holder.start()
    holder.join()  # LINE join
    return ms * 1_000_000


def get(url):
    """Through fsspec's event loop: the task waits for a lock while the loop waits for the answer."""
    import fsspec

    begin = time.monotonic_ns()
    fsspec.filesystem("http").cat_file(url)  # LINE get
    return time.monotonic_ns() - begin


LINES = {text.split("# LINE ")[1]: f"{__file__}:{n}" for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# LINE " in text[4:]}


def throw(library):
    """(caught exceptions, the unwinder's library, is libunwind loaded?)"""
    loaded = ctypes.CDLL(library)
    loaded.unwinder.restype = ctypes.c_char_p
    maps = open("/proc/self/maps").read()
    return loaded.caught(1000), loaded.unwinder().decode(), "libunwind.so.8" in maps


# --- the tests

@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("blocking") / "libblocking.so"
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-pthread", "-o", path, SOURCE], check=True)
    return str(path)


@pytest.fixture(scope="module")
def throwing(tmp_path_factory):
    path = tmp_path_factory.mktemp("throwing") / "libthrowing.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", path, SOURCE.with_name("throwing.cc")], check=True)
    return str(path)


class Late:
    """A server that answers each request late."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer:
                peer.recv(1)
                time.sleep(self.seconds)
                peer.send(b"!")


class LateAnswer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.2)
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"!")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def blocked(tmp_path_factory, homes, disk, library, throwing):
    """Every kind of wait once, in a separate task; the report and {prefix: ns the call took}."""
    import cluster

    home = tmp_path_factory.mktemp("blocked")
    server = Late(0.1)
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), LateAnswer)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    fifo, big = home / "fifo", disk / "direct"
    os.mkfifo(fifo)
    big.write_bytes(os.urandom(1 << 20) * (DIRECT_BYTES >> 20))
    os.sync()
    writer = threading.Timer(1.0, lambda: fifo.write_bytes(b"!"))
    with cluster.Cluster(home / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        threshold = {"CREMA_BLOCKED_MS": str(THRESHOLD_MS)}
        broken = home / "broken"
        broken.mkdir()
        (broken / "libunwind.so.8").touch()
        for env in (threshold, {**threshold, "LD_LIBRARY_PATH": str(broken)}, {"CREMA_BLOCKED_MS": "0"}):
            procs.start_worker(env=env, args=("--no-nanny",))
        with Client(procs.address) as client:
            client.wait_for_workers(3, timeout=120)
            waits = {
                "first": (call, library, "known_sleep", 1),
                "asleep": (call, library, "known_sleep", 50),
                "on_file": (call, library, "known_file_read", str(big), DIRECT_BYTES),
                "on_fifo": (call, library, "known_fifo_read", str(fifo)),
                "on_socket": (call, library, "known_receive", server.port),
                "on_lock": (call, library, "known_lock", 80),
                "on_answer": (get, f"http://127.0.0.1:{web.server_port}/x"),
                "on_gil": (hold_gil, library, 200),
            }
            elsewhere = {"without_libunwind": "worker-1", "turned_off": "worker-2"}
            waits.update({prefix: (call, library, "known_sleep", 30) for prefix in elsewhere})
            waits["throwing"] = (throw, throwing)
            took = {}
            with span("waits"):
                for prefix, (function, *args) in waits.items():
                    if prefix == "on_fifo":
                        writer.start()
                    took[prefix] = client.submit(function, *args, pure=False, key=jobs.unique(prefix),
                                                 workers=[elsewhere.get(prefix, "worker-0")]).result(timeout=60)
            report = jobs.settled(procs, lambda r: len(r["tasks"]) >= len(waits))
            text = procs.report().stdout
    server.socket.close()
    web.shutdown()
    report["text"], report["names"] = text, {"file": str(big), "peer": f"127.0.0.1:{server.port}"}
    return report, took


def rows_of(report, prefix, function):
    return [r for r in report["blocking"] if r["prefix"] == prefix
            and any(f["function"] == function for f in r["stack"])]


@pytest.mark.parametrize("prefix, function, wait, least_ms", [
    ("asleep", "known_sleep", "sleep", 49),
    ("on_file", "known_file_read", "storage", THRESHOLD_MS),
    ("on_fifo", "known_fifo_read", "lock", 100),
    ("on_socket", "known_receive", "network", 50),
    ("on_lock", "known_lock", "lock", 40),
])
def test_a_wait_is_told_once_with_its_stack(blocked, library, cell, prefix, function, wait, least_ms):
    report, took = blocked
    assert took[prefix] >= least_ms * 1_000_000
    rows = [r for r in rows_of(report, prefix, function) if r["wait"] == wait]
    assert len(rows) == 1
    row = rows[0]
    assert row["count"] == 1
    cell("blocked", f"{prefix}: {wait}, called from {function}", "the delay asked for, and a clock around the call",
         (least_ms * 1_000_000, took[prefix]), round(row["waited_seconds"] * 1e9))
    assert row["longest_seconds"] == row["waited_seconds"]
    assert row["frames"][0] == ("pause_ms" if function == "known_sleep" else function)
    assert row["file"] == (report["names"]["file"] if wait == "storage" else None)
    assert row["peer"] == (report["names"]["peer"] if wait == "network" else None)
    frame = next(f for f in row["stack"] if f["function"] == function)
    assert frame["module"] == library
    assert frame["build_id"] == build_id(library)
    assert row["line"] == row["python_frames"][-1] == f"{LINES['call']} call"
    assert any("_run_task" in frame or "execute" in frame for frame in row["python_frames"])


def test_a_wait_for_the_gil_is_one_wait(blocked):
    """The interpreter waits 5 ms at a time; the thread that held it slept for 200 ms in C."""
    report, _ = blocked
    rows = [r for r in rows_of(report, "on_gil", "take_gil") if r["longest_seconds"] > 0.05]
    assert [(r["wait"], r["count"]) for r in rows] == [("gil", 1)]
    task, = jobs.tasks_of(report, "on_gil")
    assert rows[0]["waited_seconds"] <= task["gil_wait_seconds"]
    assert rows[0]["python_frames"] and rows[0]["line"].startswith(f"{__file__}:")


def test_an_answer_that_an_event_loop_waits_for_is_told(blocked, cell):
    report, took = blocked
    rows = [r for r in report["blocking"] if r["prefix"] == "on_answer" and r["wait"] == "network"]
    assert {r["line"] for r in rows} == {f"{LINES['get']} get"}
    assert rows and all("PyThread_acquire_lock_timed" in [f["function"] for f in r["stack"]] for r in rows)
    cell("blocked", "on_answer: network, in fsspec's sync()", "the server's delay, and a clock around the call",
         (190_000_000, took["on_answer"]), round(sum(r["waited_seconds"] for r in rows) * 1e9))


def test_what_is_told_is_what_the_task_was_charged(blocked):
    """One wait of one class: the record agrees with the task's counter."""
    report, _ = blocked
    for prefix, name in (("on_file", "storage_wait_seconds"), ("on_socket", "network_wait_seconds")):
        task, = jobs.tasks_of(report, prefix)
        wait = name.partition("_")[0]
        told = sum(r["waited_seconds"] for r in report["blocking"] if r["prefix"] == prefix and r["wait"] == wait)
        assert 0 <= task[name] - told < THRESHOLD_MS / 1e3, prefix


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return out.partition("Build ID: ")[2].split()[0]


def test_short_waits_are_not_told(blocked):
    report, _ = blocked
    assert not rows_of(report, "first", "known_sleep")


def test_without_libunwind_only_the_stack_is_missing(blocked):
    report, took = blocked
    row, = [r for r in report["blocking"] if r["prefix"] == "without_libunwind" and r["wait"] == "sleep"]
    assert row["stack"] == row["frames"] == []
    assert 0.029 <= row["waited_seconds"] <= took["without_libunwind"] / 1e9
    notes = {w["name"]: w["notes"] for w in report["workers"]}
    assert notes["worker-1"] == ["blocked stacks: libunwind not found"]
    assert notes["worker-0"] == notes["worker-2"] == []


def test_turned_off_nothing_is_told(blocked):
    report, took = blocked
    assert took["turned_off"] > 30_000_000
    assert not [r for r in report["blocking"] if r["prefix"] == "turned_off"]


def test_exceptions_of_cpp_keep_their_unwinder(blocked):
    """C++ exceptions of a library that is loaded after libunwind."""
    caught, unwinder, there = blocked[1]["throwing"]
    assert there
    assert caught == 1000
    assert "libgcc_s.so" in unwinder


def test_the_sums_close(blocked):
    """Every long wait has its record, and none is reported twice."""
    report, _ = blocked
    told = report["completeness"]["long_waits"]
    assert told["threshold_seconds"] == THRESHOLD_MS / 1e3
    assert told["dropped"] == 0
    assert told["with_record"] == told["waits"] == sum(r["count"] for r in report["blocking"])
    assert sum(r["waited_seconds"] for r in report["blocking"]) == pytest.approx(told["waited_seconds"], rel=1e-9)
    stacks = report["stacks"]
    assert stacks["not_long_waits"] == 0 and stacks["not_long_waits_seconds"] == pytest.approx(0, abs=1e-9)
    assert sum(r["long_waits"] for r in stacks["lines"]) == sum(r["long_waits"] for r in stacks["stacks"]) == told["waits"]


def test_the_table_names_the_call_site(blocked):
    text = blocked[0]["text"]
    assert f"Long waits ({THRESHOLD_MS} ms and more)" in text
    assert any(line.split()[:2] == ["sleep", f"{Path(__file__).name}:{LINES['call'].rpartition(':')[2]}"] for line in text.splitlines())
