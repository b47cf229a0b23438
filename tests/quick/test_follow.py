"""`crema follow`: each record of a journal once, whatever stops; against the journal's bytes as decoded by msgpack."""

import json
import math
import os
import random
import signal
import socket
import subprocess
import threading
import time
import zlib

import msgpack
import pytest
import test_footers  # sets the path to the integration tests' modules
import cluster
from frames import BASE_NS, BOOT_NS, DATA, FILE_HEADER, HELLO, NOTE, TASK_END, Journal, frame, sealed

WORKER, OTHER = b"w" * 16, b"\xff\x00" * 8


def follow(folder, *args, check=True):
    done = subprocess.run([cluster.BUILD / "crema", "follow", "--dir", folder, "--once", *args], env={**os.environ, "HOME": str(folder)},
                          timeout=120, stdin=subprocess.DEVNULL, capture_output=True)
    assert not check or done.returncode == 0, done.stderr
    return done


def lines(data):
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal")


class Grown:
    """Segments that grow by one frame at a time; some frames are duplicated, and some hellos have other contents."""

    def __init__(self, folder, seed=3):
        self.folder, self.random, self.seq, self.segment, self.ids = folder, random.Random(seed), 0, BASE_NS, set()
        self.before = []
        (folder / "journal").mkdir()
        self.next()

    def next(self):
        self.segment += 1000
        self.path = self.folder / "journal" / f"{self.segment:020}-journal.crema"
        self.put(frame(FILE_HEADER, {"format": 1, "kind": "journal", "created_ns": self.segment}),
                 frame(HELLO, {"facts": {"pid": 1}, "task_fields": ["attempt", "key"]}, WORKER))

    def put(self, *frames):
        with open(self.path, "ab") as out:
            out.write(b"".join(frames))

    def grow(self):
        n = self.random.randint(1, 5)
        made = frame(DATA, [[TASK_END, 1, self.seq + i, "k\u00e9" * self.random.randint(0, 3000)] for i in range(n)], WORKER, self.seq, n)
        self.ids |= {f"{WORKER.hex()}-1-{self.seq + i}" for i in range(n)}
        self.before.append(made)
        self.seq += n
        self.put(made, *(self.random.choice(self.before[-5:]) for _ in range(self.random.randint(0, 1))))
        if self.random.random() < 0.1:
            self.next()

    def whole(self, data):
        """The lines, after checking that each record is there once and in order."""
        found = lines(data)
        ids = [line["id"] for line in found]
        tasks = [line["record"]["attempt"] for line in found if line["message"] == "TASK_END"]
        assert len(ids) == len(set(ids)) and tasks == list(range(self.seq))
        assert set(ids) - self.ids == {f"{WORKER.hex()}-1-hello-" + ids[0].rsplit("-", 1)[1]}
        return found


def started(folder, *args):
    return subprocess.Popen([cluster.BUILD / "crema", "follow", "--dir", folder, *args], env={**os.environ, "HOME": str(folder)},
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ended(process, how=signal.SIGTERM):
    process.send_signal(how)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (0 if how == signal.SIGTERM else -how), said
    return said


def test_a_line_says_what_the_record_says(journal, tmp_path):
    texts = ['"quoted"\\ and\nline\ttab\x00nul', "\u00e9\u20ac\U0001f600", "\x7f\u2028"]
    odd = {"u": 2**64 - 1, "i": -2**63, "f": 0.1, "nan": math.nan, "yes": True, "no": False, "nil": None, "b": b"\x00\xff", "list": [1, [2, {}]],
           "deep": {"a": {"b": [{"c": texts}]}}, 'key "q"\n': 1}
    journal.worker(facts_of="none", dask={"x": [1.5]})
    journal.task(1, texts[0], read_bytes=2**63 + 1, status=None)
    journal.frames.append(sealed(DATA, msgpack.packb([[12, odd]]), WORKER, journal.seq, 1))
    journal.seq += 1
    journal.message([10, BOOT_NS, '{"nthreads": 4}'])
    journal.message([99, {"new": 1}])
    journal.message([98, 1, 2])
    journal.message("no message")
    journal.message([TASK_END, 1, 5, 6, *[None] * 200], OTHER)  # its hello is missing
    journal.frames.append(frame(NOTE, {"time_ns": 5, "event": "start", "text": "t"}))
    journal.frames.append(sealed(DATA, b"\xc1garbage", WORKER, 90, 1))
    journal.frames.append(sealed(DATA, b"not zlib", WORKER, 91, 1, flags=1, raw_bytes=50))
    journal.write()
    done = follow(tmp_path)
    hello, task, file, dask, new, newest, none, strange, note = lines(done.stdout)
    assert b"2 frames of the journal cannot be read" in done.stderr
    assert hello["message"] == "HELLO" and hello["record"]["facts"]["dask"] == {"x": [1.5]} and hello["record"]["task_fields"] == journal.order
    said = {"rev": 1, "attempt": 1, "thread": 7, "key": texts[0], "prefix": texts[0], "span": "span-1", "start_boot_ns": BOOT_NS,
            "stop_boot_ns": BOOT_NS + 10**8, "wall_ns": 10**8, "read_bytes": 2**63 + 1}
    assert (task["message"], task["record"], task["worker"]) == ("TASK_END", said, WORKER.hex())
    assert file["message"] == "FILE" and file["record"] == {**odd, "nan": None, "b": "00ff"}
    assert dask["record"] == {"boot_ns": BOOT_NS, "json": '{"nthreads": 4}'}
    assert [(x["message"], x["record"]) for x in (new, newest, none)] == [("99", {"new": 1}), ("98", [1, 2]), (None, "no message")]
    assert strange["record"][:3] == [1, 5, 6] and strange["worker"] == OTHER.hex()
    assert (note["message"], note["record"], note["worker"]) == ("NOTE", {"time_ns": 5, "event": "start", "text": "t"}, None)
    assert [x["id"].rsplit("-", 1)[1] for x in (task, file, dask, new, newest, none, strange)] == list("0123456")
    assert [x["at"] for x in (hello, task, strange)] == [f"{BASE_NS}/{n}/0" for n in (1, 2, 8)]


def test_goes_on_behind_any_record(tmp_path):
    """The last line may contain what breaks JSON parsers: 64-bit integers, NULs, 4 MB."""
    made, out = Grown(tmp_path), tmp_path / "out.jsonl"
    for value in (2**64 - 1, -2**63, "a\x00b", 0.1, "\u20ac" * 600_000, [[[[[[[]]]]]]], {"k" * 300: 1}, b"x" * 1_000_000):
        made.put(sealed(DATA, zlib.compress(msgpack.packb([[12, {"x": value}]])), WORKER, made.seq, 1, flags=1, raw_bytes=len(msgpack.packb([[12, {"x": value}]]))))
        made.seq += 1
        follow(tmp_path, "--to", out)
    with open(out, "ab") as file:
        file.write(b'{"id": "of a record that is not in the journal any more')
    follow(tmp_path, "--to", out)
    assert len(lines(out.read_bytes())) == made.seq + 1 and out.read_bytes() == follow(tmp_path).stdout


def test_text_that_is_no_text(journal, tmp_path):
    journal.worker()
    for text in (b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80"):
        journal.message([12, {"path": text.decode("utf8", "surrogateescape")}])
    journal.write()
    assert [line["record"]["path"] for line in lines(follow(tmp_path).stdout)[1:]] == ["\ufffd\ufffd", "a\ufffd", "\ufffd\ufffd\ufffd"]


def test_killed_at_any_time(tmp_path):
    """SIGKILL while the journal grows, sometimes with half a line at the end, as after a full disk or a power failure."""
    made, out, chance = Grown(tmp_path), tmp_path / "out.jsonl", random.Random(5)
    for i in range(12):
        process = started(tmp_path, "--to", out)
        for _ in range(chance.randint(1, 25)):
            made.grow()
            time.sleep(0.002)
        time.sleep(chance.random() * 0.4)
        said = ended(process, signal.SIGKILL if i % 3 else signal.SIGTERM)
        assert not said
        if out.exists() and i % 2 and (last := out.read_bytes().rfind(b"\n", 0, -1)) > 0:
            with open(out, "r+b") as file:
                file.truncate(last + 1 + chance.randint(0, 100))
    follow(tmp_path, "--to", out)
    made.whole(out.read_bytes())
    assert out.read_bytes() == follow(tmp_path).stdout and out.stat().st_mode & 0o777 == 0o600


def test_what_is_written_is_there_within_a_second(tmp_path):
    made, out = Grown(tmp_path), tmp_path / "out.jsonl"
    process = started(tmp_path, "--to", out)
    for _ in range(3):
        made.grow()
        cluster.wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") == made.seq + 1, "the record", 30)
    half = frame(DATA, [[TASK_END, 1, made.seq, "late"]], WORKER, made.seq, 1)
    made.put(half[:30])
    time.sleep(0.5)
    assert out.read_bytes().count(b"\n") == made.seq + 1
    made.put(half[30:])
    made.seq += 1
    made.ids.add(f"{WORKER.hex()}-1-{made.seq - 1}")
    cluster.wait_until(lambda: out.read_bytes().count(b"\n") == made.seq + 1, "the rest of a frame", 30)
    ended(process)
    made.whole(out.read_bytes())


def test_segments_that_go(tmp_path):
    made, out = Grown(tmp_path), tmp_path / "out.jsonl"
    made.grow()
    made.next()
    made.grow()
    assert not follow(tmp_path, "--to", out).stderr
    first, second = sorted((tmp_path / "journal").iterdir())[:2]
    first.unlink()
    made.grow()
    assert not follow(tmp_path, "--to", out).stderr
    made.whole(out.read_bytes())
    made.next()
    made.grow()
    for path in sorted((tmp_path / "journal").iterdir())[:-1]:
        path.unlink()
    assert "segments of the journal were dropped before all of their records had been followed" in follow(tmp_path, "--to", out).stderr.decode()
    found = lines(out.read_bytes())  # all of their records had been followed; the hello's first copy is no longer known
    (again,) = [line for line in found[1:] if line["id"] == found[0]["id"]]
    out.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in found if line is not again))
    made.whole(out.read_bytes())


def test_refused(tmp_path):
    made, out = Grown(tmp_path), tmp_path / "out.jsonl"
    made.grow()

    def refused(*args):
        done = follow(tmp_path, *args, check=False)
        assert done.returncode == 1 and not done.stdout
        (line,) = done.stderr.decode().splitlines()
        return line

    for text in (b"a letter\n", b'{"id": 1}\n', b"half a line of another", b'{"id":"x","at":"1/2"}\n', b'{"id":"x","at":"0/2/3"}\n'):
        out.write_bytes(text)
        assert "'crema follow'" in refused("--to", out) and out.read_bytes() == text
    out.write_bytes(b'{"id":"w-1-5","at":"%d/3/0"}\n' % (BASE_NS + 5000))
    assert "not of the journal in" in refused("--to", out)
    out.unlink()
    process = started(tmp_path, "--to", out)
    cluster.wait_until(lambda: out.exists() and out.read_bytes(), "the first line", 30)
    assert "another program writes it" in refused("--to", out)
    ended(process)
    assert "cannot open it: no such file or directory" in refused("--to", tmp_path / "none" / "out")
    assert "cannot connect: connection refused" in refused("--to", f"tcp:127.0.0.1:{cluster.free_port()}")
    assert "expected tcp:HOST:PORT" in refused("--to", "tcp:dir:/x")
    assert "cannot connect: no such file or directory" in refused("--to", f"unix:{tmp_path}/none")
    assert "has no journal" in refused("--dir", tmp_path / "none")
    full = follow(tmp_path, "--to", "/dev/full", check=False) if os.path.exists("/dev/full") else None
    assert full is None or b"no space left" in full.stderr


def test_a_reader_that_has_seen_enough(tmp_path):
    made = Grown(tmp_path)
    for _ in range(300):
        made.grow()
    done = subprocess.run(["bash", "-c", f"'{cluster.BUILD}/crema' follow --once --dir '{tmp_path}' | head -n 2; echo ${{PIPESTATUS[0]}}"], capture_output=True,
                          text=True, timeout=60)
    assert done.stdout.splitlines()[2] == "0" and not done.stderr


class Receiver:
    """Accepts lines from one connection after the other, and closes each after a number of bytes."""

    def __init__(self, family, address, hang_up):
        self.socket, self.data, self.hang_up, self.open = socket.socket(family), [], hang_up, True
        self.socket.bind(address)
        self.socket.listen()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while self.open:
            connection, _ = self.socket.accept()
            got = bytearray()
            self.data.append(got)
            while data := connection.recv(1 << 16):
                got += data
                if self.hang_up and len(got) > self.hang_up[0]:
                    self.hang_up.pop(0)
                    break
            connection.close()

    def whole_lines(self):
        return [json.loads(line) for got in self.data for line in bytes(got).split(b"\n")[:-1]]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_socket(tmp_path, family):
    """Lines that the receiver has not read when it closes are lost, as its kernel acknowledged them; here it reads everything before."""
    made, address = Grown(tmp_path), ("127.0.0.1", cluster.free_port()) if family == socket.AF_INET else str(tmp_path / "socket")
    to = f"tcp:127.0.0.1:{address[1]}" if family == socket.AF_INET else f"unix:{address}"
    there = Receiver(family, address, [])
    process = started(tmp_path, "--to", to)
    for _ in range(40):
        made.grow()
    cluster.wait_until(lambda: made.ids <= {line["id"] for line in there.whole_lines()}, "all lines", 60)
    time.sleep(1.5)  # the position is stored
    ended(process, signal.SIGKILL)
    before = len(there.whole_lines())
    for _ in range(10):
        made.grow()
    follow(tmp_path, "--to", to)
    cluster.wait_until(lambda: made.ids <= {line["id"] for line in there.whole_lines()}, "the rest", 60)
    found = there.whole_lines()
    assert len(there.data) == 2 and len({line["id"] for line in found[before:]} & {line["id"] for line in found[:before]}) == 0
    there.hang_up.append(1)
    process = started(tmp_path, "--to", to)
    for _ in range(10):
        made.grow()
        time.sleep(0.02)
    cluster.wait_until(lambda: made.ids <= {line["id"] for line in there.whole_lines()}, "what came after the receiver had hung up", 60)
    said = ended(process)
    assert "the receiver has closed the connection" in said or "cannot write: " in said
    assert "trying again each second" in said


def test_a_slow_receiver_is_noted_meanwhile(tmp_path):
    """It is never idle, and still stopping it repeats no more than the lines of a second."""
    made, port = Grown(tmp_path), cluster.free_port()
    for _ in range(2000):
        made.grow()
    with socket.create_server(("127.0.0.1", port)) as server:
        process = started(tmp_path, "--to", f"tcp:127.0.0.1:{port}")
        connection, _ = server.accept()
        connection.settimeout(10)
        notes = set()
        while len(notes) < 2 and connection.recv(100_000):
            time.sleep(0.02)
            notes |= {path.read_text() for path in tmp_path.glob("follow/*") if not path.name.startswith(".")}
        ended(process, signal.SIGKILL)
    assert len(notes) == 2


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_stops_while_nobody_reads(tmp_path, family):
    made, address = Grown(tmp_path), ("127.0.0.1", cluster.free_port()) if family == socket.AF_INET else str(tmp_path / "socket")
    for _ in range(2000):
        made.grow()
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        process = started(tmp_path, "--to", f"tcp:127.0.0.1:{address[1]}" if family == socket.AF_INET else f"unix:{address}")
        connection, _ = server.accept()
        time.sleep(1)
        assert not ended(process)
        connection.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_file_of_another_user(tmp_path):
    made, out = Grown(tmp_path), tmp_path / "out.jsonl"
    made.grow()
    out.touch()
    os.chown(out, 65534, 65534)
    done = follow(tmp_path, "--to", out, check=False)
    assert done.returncode == 1 and b"belongs to another user" in done.stderr and not out.read_bytes()
