"""Errors are reported in one line with exit status 1, and nothing else is lost."""

import os
import random
import shutil
import socket
import subprocess
import tempfile

import jobs
import pytest
import swarms


def one_line(done, *words):
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0], lines[0]


def collect(procs, *args):
    return subprocess.run([procs.build / "crema", "collect", *args], env=procs.env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def send(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        except OSError:
            pass  # the connection is closed, as it should be for garbage


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "random": random.Random(1).randbytes(100_000),
    "zeros": bytes(100_000),
    "ones": b"\xff" * 100_000,
    "nothing": b"",
}


def test_garbage_on_the_port(new_cluster, data):
    procs = new_cluster()
    with jobs.measured(procs) as client:
        for name, sent in GARBAGE.items():
            before = len(procs.collector.text().splitlines())
            send(procs.port, sent)
            send(procs.http_port, sent)
            said = procs.collector.text().splitlines()[before:]
            assert len(said) <= 2, (name, said)
        n, (task,) = jobs.submit(procs, client, "after", jobs.read_whole, data["zstd"])
    assert procs.collector.poll() is None
    assert task["read_bytes"] == n


@pytest.fixture
def journal(new_cluster, data):
    """A finished run whose collector has stopped."""
    procs = new_cluster()
    with jobs.measured(procs) as client:
        jobs.submit(procs, client, "kept", jobs.read_whole, data["zstd"])
    procs.stop()
    return procs


def segments(procs):
    return sorted((p for p in swarms.segments(procs.journal) if p.stat().st_size > 1000), key=lambda p: p.stat().st_size)


def test_truncated_journal(journal):
    """The damaged tail is reported in one line, and everything before it is still reported."""
    largest = segments(journal)[-1]
    size = largest.stat().st_size
    os.truncate(largest, size - 7)
    done = journal.report("--run", "last", "--json", "-")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and largest.name in lines[0], lines
    os.truncate(largest, size // 2)
    done = journal.report("--list")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_damaged_journal(journal):
    """Every kind of damage gives a report or one line, never a crash."""
    largest, rng = segments(journal)[-1], random.Random(5)
    good = largest.read_bytes()
    for _ in range(20):
        bad = bytearray(good)
        for _ in range(rng.choice([1, 10, 200])):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        largest.write_bytes(bad)
        done = journal.report("--list")
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
    largest.write_bytes(b"")
    assert journal.report("--list").returncode in (0, 1)


def test_directory_that_is_none(new_cluster, tmp_path):
    procs = new_cluster()
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.write_text("text\n")
    one_line(procs.report(directory=missing), str(missing))
    one_line(procs.report(directory=file), str(file))
    one_line(collect(procs, "--listen", procs.target, "--http", f"127.0.0.1:{procs.http_port}", "--dir", file), str(file))


def test_unreadable_directory(new_cluster):
    """As an unprivileged user: root, which could read it, runs a copy of the program as nobody."""
    procs = new_cluster()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        closed = os.path.join(place, "closed")
        os.mkdir(closed, 0o000)
        program = shutil.copy(procs.build / "crema", place)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([program, "report", "--dir", closed], env=procs.env, cwd=place,
                              capture_output=True, text=True, timeout=60, **user)
    one_line(done, closed)


def test_empty_directory(new_cluster, tmp_path):
    procs = new_cluster()
    (tmp_path / "empty").mkdir()
    one_line(procs.report(directory=tmp_path / "empty"))


def test_port_in_use(new_cluster, tmp_path):
    procs = new_cluster()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used = f"127.0.0.1:{taken.getsockname()[1]}"
        one_line(collect(procs, "--listen", used, "--http", f"127.0.0.1:{procs.http_port}", "--dir", tmp_path / "a"), used)
        one_line(collect(procs, "--listen", procs.target, "--http", used, "--dir", tmp_path / "b"), used)


def test_unknown_run(journal):
    one_line(journal.report("--run", "no-such-run"), "no-such-run")


def test_wrong_coffea_report(journal, tmp_path):
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{not json")
    one_line(journal.report("--coffea-report", wrong), str(wrong))
    one_line(journal.report("--coffea-report", tmp_path / "missing.json"), "missing.json")


@pytest.mark.parametrize("args", [["--no-such-option"], ["no-such-command"], []])
def test_usage(new_cluster, args):
    procs = new_cluster()
    done = subprocess.run([procs.build / "crema", *args], env=procs.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
