# SPDX-License-Identifier: BSD-3-Clause
"""crema doctor on a healthy cluster and on setups that are really broken. Workers of other tests may run on this machine,
so --worker selects one."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import cluster
import dask
import frames
import pytest
import sealed
from distributed import Client

LIBRARY = "libcrema.so"


@pytest.fixture(scope="module")
def procs(tmp_path_factory, homes):
    with cluster.Cluster(tmp_path_factory.mktemp("doctor") / "cluster", homes) as made:
        made.start_collector()
        made.start_scheduler()
        yield made


def doctor(procs, *args, env=None, status=None):
    """Runs the doctor and checks its exit status; returns the lines that it prints."""
    done = subprocess.run([procs.build / "crema", "doctor", "--json", "--http", f"127.0.0.1:{procs.http_port}", *args],
                          env={**procs.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    found = json.loads(done.stdout)
    assert found["bad"] == sum(line["level"] == "bad" for line in found["lines"])
    assert done.returncode == (1 if found["bad"] else 0) and done.stderr == ""
    assert all(line["advice"] or line["level"] in ("ok", "unknown") for line in found["lines"])
    if status is not None:
        assert done.returncode == status, done.stdout
    return found["lines"]


def about(lines, word, level=None):
    return [line for line in lines if line["about"] == word and level in (None, line["level"])]


def only(lines, word, level):
    (line,) = about(lines, word, level)
    return line["text"] + " " + (line["advice"] or "")


def pid_of(procs, name):
    """The pid of the process that runs the tasks of the worker with that name."""
    with Client(procs.address) as client:
        def address():
            rows = client.scheduler_info(n_workers=-1)["workers"]
            return [at for at, row in rows.items() if row["name"] == name]

        at = cluster.wait_until(address, f"worker {name}")
        (pid,) = client.run(os.getpid, workers=at).values()
    return pid


@pytest.fixture(scope="module")
def measured(procs):
    worker = procs.start_worker()
    pid = pid_of(procs, worker.name)
    # The worker's description arrives first; its connection is reported within a second.
    def is_whole():
        lines = doctor(procs, "--worker", str(pid))
        return about(lines, "versions") and any("1 workers connected" in page["text"] for page in about(lines, "page"))

    cluster.wait_until(is_whole, "the worker's agent")
    return pid


def test_healthy(procs, measured):
    lines = doctor(procs, "--worker", str(measured), status=0)
    assert f"{measured} is measured by {procs.build.resolve()}/{LIBRARY}" in only(lines, "worker", "ok")
    assert procs.target in [line["text"].split()[-1] for line in about(lines, "agent", "ok")]
    assert "accepts your token" in only(lines, "collector", "ok")
    assert "differ by" in only(lines, "clocks", "ok")
    assert f"dask {dask.__version__}" in only(lines, "versions", "ok")
    assert "1 workers connected, 0 silent" in only(lines, "page", "ok")
    assert only(lines, "token", "ok").strip() == procs.env["CREMA_TOKEN_FILE"]


def test_all_workers_are_found(procs, measured):
    """Without --worker the doctor recognizes the worker that Dask's nanny started."""
    assert [line for line in about(doctor(procs), "worker", "ok") if f"{measured} is measured" in line["text"]]


def test_text_is_for_people(procs, measured):
    done = subprocess.run([procs.build / "crema", "doctor", "--worker", "1", "--collector", "nonsense:x"],
                          env=procs.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\nFAIL " in done.stdout and "\n                       -> " in done.stdout


@pytest.mark.parametrize("args,what", [(["--worker", "x"], "not a process id"), (["--nonsense"], "unknown option")])
def test_bad_options(procs, args, what):
    done = subprocess.run([procs.build / "crema", "doctor", *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and what in done.stderr


def wrapped(procs, tmp_path, text):
    """A worker started by `crema run` through a script."""
    script = tmp_path / "wrapper"
    script.write_text(f"#!/bin/bash\n{text}\n")
    script.chmod(0o755)
    worker = procs.start_worker(shim=False, prefix=lambda output, env: [procs.build / "crema", "run", "--", script])
    return pid_of(procs, worker.name), script


@pytest.mark.parametrize("drop", ["unset LD_PRELOAD; \"$@\"; exit $?", "env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$@\"; exit $?"])
def test_wrapper_that_drops_the_preload(procs, tmp_path, drop):
    """The report names the script, not the nanny between it and the worker."""
    pid, script = wrapped(procs, tmp_path, drop)
    text = only(doctor(procs, "--worker", str(pid), status=1), "worker", "bad")
    assert f"{pid} is not measured: process" in text and f"({'/bin/bash'} {script}" in text
    assert "had LD_PRELOAD, but its child" in text and "crema run --" in text


def test_nobody_preloads(procs):
    worker = procs.start_worker(shim=False)
    text = only(doctor(procs, "--worker", str(pid_of(procs, worker.name)), status=1), "worker", "bad")
    assert "none of its parent processes has LD_PRELOAD" in text and "crema run -- dask worker" in text


def test_static_program(procs, tmp_path):
    source = tmp_path / "p.c"
    source.write_text("#include <unistd.h>\nint main(void) { pause(); }\n")
    program = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-o", program, source], check=True)
    process = subprocess.Popen([program], env={**procs.env, **procs.worker_env()})
    try:
        text = only(doctor(procs, "--worker", str(process.pid), status=1), "worker", "bad")
    finally:
        process.kill()
        process.wait()
    assert "loader did not load it" in text and "linked statically" in text


def test_switched_off(procs):
    worker = procs.start_worker(env={"CREMA": "off"})
    text = only(doctor(procs, "--worker", str(pid_of(procs, worker.name)), status=1), "worker", "bad")
    assert "its environment has CREMA=off" in text


def test_dead_agent(procs, tmp_path):
    """Its program is deleted, so the worker cannot start another one."""
    agent = shutil.copy(cluster.BUILD / "crema-agent", tmp_path / "crema-agent")
    worker = procs.start_worker(env={"CREMA_AGENT": str(agent)})
    pid = pid_of(procs, worker.name)

    def agents():
        return [p for p in procs.agents() if str(pid) in cluster.strings_of(p, "cmdline")]

    (running,) = cluster.wait_until(agents, "the agent")
    os.unlink(agent)
    os.kill(running, signal.SIGKILL)
    cluster.wait_until(lambda: not agents(), "the agent's end")
    lines = doctor(procs, "--worker", str(pid), status=1)
    assert f"worker {pid} has no agent" in only(lines, "agent", "bad")
    assert f"{pid} is measured" in only(lines, "worker", "ok")


def test_wrong_token(procs, measured, tmp_path):
    other = tmp_path / "token"
    other.write_text("another-token-that-is-long-enough\n")
    other.chmod(0o600)
    lines = doctor(procs, "--worker", str(measured), "--token-file", str(other), status=1)
    text = only(lines, "collector", "bad")
    assert f"the collector at {procs.target} does not know the token; records are kept in " in text
    assert "the token here is a different one" in text
    assert "another-token" not in json.dumps(lines)
    other.chmod(0o644)
    assert "other" in only(doctor(procs, "--worker", str(measured), "--token-file", str(other)), "token", "bad")


def test_no_token(procs, tmp_path):
    lines = doctor(procs, "--collector", procs.target, "--token-file", str(tmp_path / "none"), "--worker", "1")
    assert "there is no token here" in only(lines, "collector", "bad")


def test_collector_is_away(procs):
    target = f"127.0.0.1:{cluster.free_port()}"
    bad = about(doctor(procs, "--collector", target, "--worker", "1", status=1), "collector", "bad")
    assert [line for line in bad if f"{target}: connection refused" in line["text"] and "firewall" in line["advice"]]


def test_not_a_collector(procs):
    """Dask's scheduler sends first, but with another protocol."""
    address = procs.address.removeprefix("tcp://")
    assert "not a crema collector" in only(doctor(procs, "--collector", address, "--worker", "1"), "collector", "bad")


def test_folder(procs, tmp_path):
    assert "files in" in only(doctor(procs, "--collector", f"dir:{tmp_path}", "--worker", "1"), "collector", "ok")
    text = only(doctor(procs, "--collector", f"dir:{tmp_path}/none", "--worker", "1"), "collector", "bad")
    assert "no such file or directory" in text


def test_clock_that_is_off_and_nothing_is_left_behind(procs):
    """A collector 100 s ahead: the doctor completes the proof and asks it for the time, but sends it nothing about a worker."""
    heard = []
    token = Path(procs.env["CREMA_TOKEN_FILE"]).read_text().strip().encode()

    def serve(server):
        connection, _ = server.accept()
        with connection:
            peer = sealed.Collector(connection)
            heard.append(sorted(peer.auth()))
            peer.prove(token)
            asked, _ = peer.expect(frames.CLOCK)
            peer.send(frames.frame(frames.CLOCK, {"t0": asked["t0"], "t1": time.time_ns() + 100 * 10**9}))
            heard.append(connection.recv(1))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        lines = doctor(procs, "--collector", "127.0.0.1:%d" % server.getsockname()[1], "--worker", "1")
        thread.join(30)
    ahead_s = float(re.search(r"is \+(\d+\.\d)", only(lines, "clocks", "warn"))[1])
    assert abs(ahead_s - 100) < 2  # a busy machine takes a while between the question and the answer
    assert heard == [["nonce", "version"], b""]


def test_full_shared_memory(procs, tmp_path):
    """In a separate mount namespace, where /dev/shm has no room for a worker."""
    inner = f"mount -t tmpfs -o size=1m none /dev/shm && exec {procs.build}/crema doctor --json --worker 1"
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inner], env=procs.env,
                          capture_output=True, text=True, timeout=120)
    if not done.stdout:
        pytest.skip("no namespaces of our own on this machine")
    assert "1.0 MiB are free in /dev/shm" in only(json.loads(done.stdout)["lines"], "memory", "bad")


def test_small_files_only(procs):
    done = subprocess.run(["bash", "-c", f"ulimit -f 1024; exec {procs.build}/crema doctor --json --worker 1"],
                          env=procs.env, capture_output=True, text=True, timeout=120)
    assert "ulimit -f" in only(json.loads(done.stdout)["lines"], "limits", "bad")


def test_installation_without_its_parts(procs, tmp_path):
    shutil.copy(cluster.BUILD / "crema", tmp_path / "crema")

    def lines(word):
        done = subprocess.run([tmp_path / "crema", "doctor", "--json", "--worker", "1"], env=procs.env,
                              capture_output=True, text=True, timeout=120)
        return only(json.loads(done.stdout)["lines"], word, "bad")

    assert "libcrema.so is neither next to" in lines("library")
    (tmp_path / LIBRARY).write_bytes((cluster.BUILD / LIBRARY).read_bytes()[:1000])
    assert "cannot be preloaded" in lines("library")
    shutil.copy(cluster.BUILD / LIBRARY, tmp_path / LIBRARY)
    assert "no executable crema-agent" in lines("agent")
