"""`crema follow` of a journal that a collector is writing: to a file, a socket's receiver and a real JetStream, while followers,
collector, workers and the NATS server are killed. What arrives is what the report contains, once."""

import json
import os
import random
import signal
import subprocess
import threading
import time

import certificates
import cluster
import jobs
import nats
import pytest

ROUNDS = 12 if os.environ.get("CREMA_ALL_CELLS") else 4


def follow(procs, *args):
    return subprocess.Popen([procs.build / "crema", "follow", "--dir", procs.journal, *args], env=procs.env, stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def kill_now_and_then(procs, targets, stop, rng, said):
    """Kills and restarts followers until `stop`."""
    running = {to: follow(procs, "--to", to) for to in targets}
    while not stop.wait(rng.uniform(0.2, 1.0)):
        to = rng.choice(targets)
        running[to].kill()
        said.append(running[to].communicate(timeout=60)[1])
        running[to] = follow(procs, "--to", to)
    for process in running.values():
        process.terminate()
        said.append(process.communicate(timeout=60)[1])
        assert process.returncode == 0 or "cannot connect" in said[-1]  # it started while the server was down


def ends(lines):
    """The latest record of each execution."""
    last = {}
    for line in lines:
        if line["message"] in ("TASK_END", "TASK_AMEND"):
            key = line["worker"], line["record"]["attempt"]
            if key not in last or last[key]["rev"] <= line["record"]["rev"]:
                last[key] = line["record"]
    return last.values()


def test_everything_is_killed(new_cluster, tmp_path):
    procs, rng, stop, said = new_cluster(), random.Random(4), threading.Event(), []
    path, out = tmp_path / "data.root", tmp_path / "records.jsonl"
    path.write_bytes(bytes(300_000))
    with nats.Server(tmp_path) as server:
        stream = f"nats://127.0.0.1:{server.port}/crema"
        with jobs.measured(procs, 2, scheduler={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}) as client:
            thread = threading.Thread(target=kill_now_and_then, args=(procs, [out, stream], stop, rng, said))
            thread.start()
            try:
                for i in range(ROUNDS):
                    futures = client.map(jobs.read_whole, [str(path)] * 60, key=[jobs.unique("read") for _ in range(60)], pure=False)
                    time.sleep(0.3)
                    if i == 1:
                        os.kill(rng.choice(list(client.run(os.getpid).values())), signal.SIGKILL)
                    elif i == 2:
                        server.process.signal_group(signal.SIGKILL)
                        server.process.wait()
                        server.start()
                    elif i % 4 == 3:
                        procs.collector.signal_group(signal.SIGKILL)
                        procs.collector.wait()
                        procs.start_collector()
                    assert client.gather(futures) == [300_000] * 60
            finally:
                stop.set()
                thread.join()
            report = jobs.settled(procs, lambda r: sum(t["counted"] for t in jobs.tasks_of(r, "read")) == 60 * ROUNDS)
        procs.stop_workers()
        cluster.wait_until(lambda: not procs.agents(), "the agents' last records", 60)
        procs.collector.stop()
        for to in (out, stream):
            assert subprocess.run([procs.build / "crema", "follow", "--dir", procs.journal, "--once", "--to", to], env=procs.env).returncode == 0
        whole = subprocess.run([procs.build / "crema", "follow", "--dir", procs.journal, "--once"], env=procs.env, capture_output=True, check=True).stdout
        lines = [json.loads(line) for line in whole.splitlines()]
        assert out.read_bytes() == whole
        assert [(line["id"], json.dumps(line)) for line in lines] == [(name, json.dumps(json.loads(data))) for name, data in server.messages("crema")]
    assert len({line["id"] for line in lines}) == len(lines)
    report = procs.report_json(report["run"])
    tasks = [record for record in ends(lines) if record["prefix"] == "read" and record["status"] == "ok"]
    mine = [t for t in jobs.tasks_of(report, "read") if t["status"] == "ok"]
    assert sorted((t["key"], t["read_bytes"]) for t in tasks) == sorted((t["key"], t["read_bytes"]) for t in mine)
    assert {t["read_bytes"] for t in tasks} == {300_000} and len(tasks) >= 60 * ROUNDS
    assert all("trying again each second" in line or "cannot connect" in line for text in said for line in text.splitlines()), said


def test_two_followers_of_one_stream(new_cluster, tmp_path):
    """The server accepts a message only after its predecessor: the followers conflict, and nothing is missing or duplicated."""
    procs = new_cluster()
    with nats.Server(tmp_path) as server:
        stream = f"nats://127.0.0.1:{server.port}/crema"
        with jobs.measured(procs) as client:
            both = [follow(procs, "--to", stream) for _ in range(2)]
            client.gather(client.map(pow, range(200), range(200), pure=False))
            jobs.settled(procs, lambda r: len(r["tasks"]) == 200)
        procs.stop_workers()
        cluster.wait_until(lambda: not procs.agents(), "the agents' last records", 60)
        procs.collector.stop()
        time.sleep(3)
        for process in both:
            process.terminate()
            process.communicate(timeout=60)
        whole = subprocess.run([procs.build / "crema", "follow", "--dir", procs.journal, "--once"], env=procs.env, capture_output=True, check=True).stdout
        assert [json.loads(line)["id"] for line in whole.splitlines()] == [name for name, _ in server.messages("crema")]


def follow_once(directory, to, *args):
    return subprocess.run([cluster.BUILD / "crema", "follow", "--dir", directory, "--once", "--to", to, *args],
                          env={**os.environ, "HOME": str(directory)}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("login", ["me:secret:1", "a-token-of-twenty-signs"])
def test_login_over_tls(tmp_path, login):
    """To a server that takes nobody else, nothing unencrypted, and whose certificate is not everybody's."""
    certificates.self_signed(tmp_path)
    target = cluster.BUILD / "tests" / "bench" / "make_journal"
    subprocess.run(["make", "-C", cluster.ROOT, "-s", f"BUILD={cluster.BUILD}", target], check=True, capture_output=True)
    (tmp_path / "data" / "journal").mkdir(parents=True)
    subprocess.run([target, tmp_path / "data" / "journal", "50", "2", "1"], check=True, capture_output=True)
    whole = follow_once(tmp_path / "data", "-").stdout
    secret = tmp_path / "login"
    secret.write_text(login + "\n")
    secret.chmod(0o600)
    given = ["--to-login", secret, "--to-ca-file", tmp_path / "cert.pem"]
    with nats.Server(tmp_path, login=login, tls=True) as server:
        to = f"tls://127.0.0.1:{server.port}/crema"
        for args, said in ((given[2:], "Authorization"), (given[:2], "certificate"), (["--to-login", tmp_path / "none", *given[2:]], "No such file"),
                           ([*given[:2], "--to-ca-file", secret], "--to-ca-file")):
            done = follow_once(tmp_path / "data", to, *args)
            assert done.returncode == 1 and said.lower() in done.stderr.lower() and login[3:] not in done.stderr, done.stderr
        other_name = follow_once(tmp_path / "data", to.replace("127.0.0.1", "localhost"), *given)
        assert other_name.returncode == 1 and "hostname mismatch" in other_name.stderr, other_name.stderr
        secret.chmod(0o640)
        assert "chmod 600" in follow_once(tmp_path / "data", to, *given).stderr
        secret.chmod(0o600)
        for _ in range(2):
            done = follow_once(tmp_path / "data", to, *given)
            assert (done.returncode, done.stderr) == (0, "")
        assert [json.loads(data) for _, data in server.messages("crema")] == [json.loads(line) for line in whole.splitlines()] != []


def test_no_password_is_sent_in_the_clear(tmp_path):
    (tmp_path / "login").write_text("me:secret")
    (tmp_path / "login").chmod(0o600)
    done = follow_once(tmp_path, "nats://192.0.2.1:4222/crema", "--to-login", tmp_path / "login")
    assert done.returncode == 1 and "readable on the network" in done.stderr


def test_no_password_is_shown_to_others(tmp_path):
    done = subprocess.run([cluster.BUILD / "crema", "follow", "--dir", tmp_path, "--to", "nats://me:secret@127.0.0.1:1/crema"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "visible to other users" in done.stderr


@pytest.mark.parametrize("what, subjects, said", [("none", ["crema"], "dropped all of its messages"), ("two", ["crema", "b"], "exactly one subject"),
                                                  ("star", ["crema.*"], "exactly one subject"), ("other", ["crema"], "does not end with a record")])
def test_streams_that_are_refused(tmp_path, what, subjects, said):
    (tmp_path / "journal").mkdir()
    with nats.Server(tmp_path) as server:
        list(server.ask(("$JS.API.STREAM.CREATE.crema", {"name": "crema", "subjects": subjects, "storage": "file", "retention": "limits", "max_msgs": 5})))
        if what in ("none", "other"):
            list(server.ask(("crema", {"a": 1})))
        if what == "none":
            list(server.ask(("$JS.API.STREAM.PURGE.crema", {})))
        done = follow_once(tmp_path, f"nats://127.0.0.1:{server.port}/crema")
        assert done.returncode == 1 and said in done.stderr, done.stderr
