"""Tasks that hang in a real worker's process, each in another way: the agent's messages, live.json and `crema stuck` name the call and
what it waits for, within two rounds of the agent. The truth comes from the job."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import types
import urllib.request
from pathlib import Path

import pytest
import test_agent_life
import test_lines
import test_live_numbers  # sets the path to the integration tests' modules
import test_worker

sys.path.insert(0, str(test_live_numbers.ROOT / "scripts"))
import venvs

HERE = Path(__file__).resolve().parent
TASKS = ["silent_server", "silent_server_with_timeout", "fifo_open", "fifo_read", "semaphore", "futex", "lock_one", "lock_two", "endless", "child",
         "not_intercepted", "imports", "xrootd", "short"]
LOOKS_SECONDS = 2  # a task counts after its first second, and the agent's next round is at most a second away


@contextlib.contextmanager
def hung(folder, python, tasks):
    """Those tasks hang, in a process of that Python: what the collector, `crema stuck` and `crema top` say of them."""
    for name in ("data", "home"):
        (folder / name).mkdir()
    process, port, http = test_live_numbers.collector(folder / "collected")
    silent = socket.create_server(("127.0.0.1", 0))
    peer = silent.getsockname()[1]
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"127.0.0.1:{port}", "CREMA_INSECURE": "on",
           "CREMA_TLS": "off", "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "home")}
    try:
        with subprocess.Popen([python, HERE / "stuck_job.py", folder / "data", str(peer), ",".join(tasks)], env=env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as worker:
            pid = json.loads(worker.stdout.readline())["pid"]
            site = types.SimpleNamespace(folder=folder / "data", peer=f"127.0.0.1:{peer}", pid=pid, http=http, began=time.monotonic())
            try:
                due = len(set(tasks) - {"short"})
                site.live = test_agent_life.until(lambda: all_there(http, due))
                site.took = time.monotonic() - site.began
                time.sleep(2.1)
                site.live = test_agent_life.until(lambda: with_native(all_there(http, due)))
                site.rows = {row["key"]: row for row in site.live["doing"]}
                site.stuck = subprocess.run([test_live_numbers.ROOT / "build/crema", "stuck", "--http", f"127.0.0.1:{http}"], capture_output=True, text=True,
                                            timeout=20)
                site.top = subprocess.run([test_live_numbers.ROOT / "build/crema", "top", "--once", "--http", f"127.0.0.1:{http}"], capture_output=True,
                                          text=True, timeout=20)
                site.worker_seconds = time.monotonic() - site.began
            finally:
                worker.stdin.close()
        yield site
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
        silent.close()


@pytest.fixture(scope="module")
def hanging(tmp_path_factory):
    with hung(tmp_path_factory.mktemp("stuck"), sys.executable, TASKS) as site:
        yield site


def all_there(http, due):
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/live.json", timeout=5) as answer:
        live = json.loads(answer.read())
    return live if len(live["doing"]) >= due else None


def with_native(live):
    """The agent's child reads them in the third second of a call."""
    return live if all(row["native"] for row in live["doing"] if row["call"] and row["kind"] != "GIL") else None


def test_each_is_there_once(hanging):
    assert sorted(row["key"] for row in hanging.live["doing"]) == sorted(set(TASKS) - {"short"})
    assert hanging.live["doing_cut"] == 0


def test_what_each_waits_for(hanging):
    seen = {key: (row["call"], row["kind"], row["object"]) for key, row in hanging.rows.items()}
    assert seen["silent_server"] == ("recv", "peer", hanging.peer)
    assert seen["silent_server_with_timeout"] == ("poll", "peer", hanging.peer)
    assert seen["fifo_open"][0] in ("open", "open64") and seen["fifo_open"][1:] == ("file", str(hanging.folder / "opened.fifo"))
    assert seen["fifo_read"] == ("read", "file", str(hanging.folder / "read.fifo"))
    assert seen["not_intercepted"] == ("read", "file", str(hanging.folder / "read.fifo"))
    assert seen["semaphore"][:2] == ("sem_wait", "lock") and seen["futex"][:2] == ("futex", "lock")
    for name in ("lock_one", "lock_two", "imports"):
        assert seen[name][0].startswith(("sem_", "pthread_cond_")) and seen[name][1] == "lock"
    assert seen["xrootd"][1:] == ("url", "root://black-hole:1094//store/a.root")
    assert seen["child"][0] in ("waitpid", "wait4") and re.fullmatch(r"\d+ \(sleep\)", seen["child"][2])
    assert seen["endless"][0] is None or seen["endless"][1] == "GIL"


LINES = {"silent_server": "urlopen(f\"http://127.0.0.1:{port}/a.root\")", "silent_server_with_timeout": "timeout=3600", "fifo_open": "opened.fifo\", \"rb\"",
         "fifo_read": "os.read(", "semaphore": "libc.sem_wait(never)", "futex": "ctypes.byref(word)", "lock_one": "second.acquire()", "lock_two": "second.acquire()", "child": "\"sleep\", \"100\"",
         "not_intercepted": "libc.syscall("}


def test_the_line_of_each(hanging):
    """The line of the user's own code; inside it there may be frames of the standard library."""
    source = (HERE / "stuck_job.py").read_text().splitlines()
    for name, words in LINES.items():
        line = next(i for i, text in enumerate(source, 1) if words in text)
        function = "cycle" if name.startswith("lock_") else name
        assert hanging.rows[name]["line"] == f"{HERE}/stuck_job.py:{line} {function}"
        stack = [frame.split()[-1] for frame in hanging.rows[name]["stack"]]
        assert stack[stack.index(function):][:2] == (["cycle", name] if function == "cycle" else [name, stack[stack.index(function) + 1]])
    assert hanging.rows["imports"]["line"] == f"{hanging.folder}/hangs_while_imported.py:2 <module>"
    called = next(i for i, text in enumerate(source, 1) if "client.File().open(" in text)
    assert f"{HERE}/stuck_job.py:{called} xrootd" in hanging.rows["xrootd"]["stack"]
    assert hanging.rows["silent_server"]["stack"][0].endswith("readinto")
    loop = next(i for i, text in enumerate(source, 1) if "while True:" in text)
    assert hanging.rows["endless"]["line"] in [f"{HERE}/stuck_job.py:{n} endless" for n in (loop, loop + 1)]


def test_the_functions_of_c_between_line_and_call(hanging):
    """As they are in the sources of CPython and libffi; innermost first, and none of the library's own or of the interpreter's loop."""
    native = {key: row["native"] and [frame.split()[0] for frame in row["native"]] for key, row in hanging.rows.items()}
    assert native["silent_server"][0].endswith("recv") and native["silent_server"][1] == "sock_recv_into"
    assert native["silent_server_with_timeout"][0].endswith("poll") and native["silent_server_with_timeout"][1] == "sock_recv_into"
    assert native["fifo_read"][0].endswith("read") and native["child"][0].endswith("wait4") and native["fifo_open"][0].endswith("open")
    for name in ("lock_one", "lock_two", "imports", "xrootd"):
        assert "PyThread_acquire_lock_timed" in native[name] and "lock_PyThread_acquire_lock" in native[name]
    order = [native["semaphore"].index(name) for name in ("ffi_call", "_ctypes_callproc", "PyCFuncPtr_call")]
    assert order == sorted(order)
    assert native["not_intercepted"][0] == "syscall"  # libffi's own frame has a register that syscall() does not save: "?" may follow
    assert native["endless"] is None or "take_gil" in native["endless"]
    assert not any("libcrema" in frame or "_PyEval_EvalFrame" in frame for row in hanging.rows.values() for frame in row["native"] or [])
    assert re.search(r"\n    at .*stuck_job.py:26 silent_server\n    through sock_recv_into \(_socket\)\n", hanging.stuck.stdout)


@pytest.mark.parametrize("version", test_lines.VERSIONS[1:])
def test_functions_of_c_in_each_python(version, tmp_path):
    """Also where the interpreter's loop has no symbol: between it and the call of these tasks are 2 to 10 functions."""
    with hung(tmp_path, test_lines.python_of(version), ["silent_server", "fifo_read", "lock_one", "lock_two", "child"]) as site:
        native = {key: row["native"] for key, row in site.rows.items()}
    calls = {"silent_server": "recv", "fifo_read": "read", "child": "wait4"}
    for key, frames in native.items():
        of_libc = sum(bool(re.match(r"lib(c|pthread)[.-]", frame.split()[-1])) for frame in frames)
        assert 1 <= of_libc <= 4 and 1 <= len(frames) - of_libc <= 6 and "?" not in frames, (key, frames)
        assert any(frame.split()[0].lstrip("_") == calls[key] for frame in frames) if key in calls else any("Sem" in f or "lock" in f for f in frames)


def test_what_runs_was_in_its_function(hanging):
    assert 1 <= hanging.rows["endless"]["place_seconds"] <= hanging.rows["endless"]["task_seconds"]


def test_a_cycle_has_two_locks(hanging):
    one, two = (hanging.rows[name]["object"] for name in ("lock_one", "lock_two"))
    assert one.startswith("0x") and two.startswith("0x") and one != two


def test_for_how_long(hanging):
    """Since the call's own start, which is the task's plus what came before the call; for a call that is not intercepted, since it was first seen."""
    for name, row in hanging.rows.items():
        if name in ("endless", "not_intercepted"):
            continue
        assert 2 <= row["call_seconds"] <= row["task_seconds"] <= hanging.worker_seconds + 1, name
    seen = hanging.rows["not_intercepted"]
    assert seen["call_seconds"] is None and 1 <= seen["place_seconds"] <= seen["task_seconds"]


def test_the_command_names_them(hanging):
    assert hanging.stuck.returncode == 0, hanging.stuck.stderr
    paragraphs = re.split(r"\n(?=\S)", hanging.stuck.stdout)
    text = {key: next(p for p in paragraphs if re.match(rf"[^\n]*  {key}\n", p)) for key in hanging.rows}
    assert f"in recv on peer {hanging.peer} for " in text["silent_server"]
    assert f"on file {hanging.folder}/read.fifo, seen there for " in text["not_intercepted"]
    assert f"worker w-1 tcp://10.1.1.1:4001, pid {hanging.pid} on " in text["xrootd"]
    assert "secret" not in hanging.stuck.stdout
    assert all(f"    at {hanging.rows[key]['line']}\n" in p + "\n" for key, p in text.items() if key != "endless")
    assert paragraphs[-1].split("\n")[0].endswith("  endless")  # it waits for nothing, so it is the last


def test_top_names_the_longest(hanging):
    """In the last column, instead of shares of waits that have not ended yet."""
    row = next(row for row in hanging.live["worker_rows"] if row["pid"] == hanging.pid)
    longest = max((r for r in hanging.live["doing"] if r["call"]), key=lambda r: max(r["call_seconds"] or 0, r["place_seconds"] or 0))
    assert row["call"]["call"] == longest["call"] and row["call"]["object"] == longest["object"]
    assert re.search(rf"^w-1 .* (\w+) \d[\d.]* s ", hanging.top.stdout, re.M)


def test_lines_of_other_pythons(tmp_path):
    """All at the same time; each version has its own layout of frames."""
    others = {version: venvs.interpreter(version) for version in venvs.each()}
    others = {version: path for version, path in others.items() if path}
    source = (HERE / "stuck_job.py").read_text().splitlines()
    if not others:
        pytest.skip("no other Python is here")
    process, port, http = test_live_numbers.collector(tmp_path / "collected")
    env = {**os.environ, "LD_PRELOAD": str(test_worker.BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"127.0.0.1:{port}", "CREMA_INSECURE": "on",
           "CREMA_TLS": "off", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    workers = {}
    try:
        for version, path in others.items():
            (tmp_path / version).mkdir()
            workers[version] = subprocess.Popen([path, HERE / "stuck_job.py", tmp_path / version, "1", "semaphore,endless,imports"], env=env,
                                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

        def lines():
            with urllib.request.urlopen(f"http://127.0.0.1:{http}/live.json", timeout=5) as answer:
                rows = json.loads(answer.read())["doing"]
            found = {(row["pid"], row["key"]): row["line"] for row in rows if row["line"]}
            return found if len(found) == 3 * len(workers) else None

        found = test_agent_life.until(lines, 30)
        for version, worker in workers.items():
            at = {name: next(i for i, text in enumerate(source, 1) if words in text) for name, words in (("semaphore", "sem_wait(never)"), ("endless", "while True"))}
            assert found[worker.pid, "semaphore"] == f"{HERE}/stuck_job.py:{at['semaphore']} semaphore", version
            assert found[worker.pid, "endless"] in [f"{HERE}/stuck_job.py:{at['endless'] + n} endless" for n in (0, 1)], version
            assert found[worker.pid, "imports"] == f"{tmp_path / version}/hangs_while_imported.py:2 <module>", version
    finally:
        for worker in workers.values():
            worker.stdin.close()
            worker.wait(10)
        process.terminate()
        process.wait(10)
        process.stdout.close()
