"""Journals and agents of earlier versions: files kept unchanged (tests/golden/make_golden.py), which today's
collector reads from the disk and from an agent's connection; and versions that are newer or too old to be understood."""

import json
import socket
import subprocess
from pathlib import Path

import cluster
import frames
import pytest
import sealed

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "journal-1.crema"
WORKER, TOKEN = b"golden-worker-01", b"golden-token-of-16-and-more"


def report(directory):
    out = directory / "report.json"
    done = subprocess.run([cluster.BUILD / "crema", "report", "--dir", directory, "--json", out], capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done, json.loads(out.read_text()) if out.exists() else None


def says_what_it_said(found):
    metrics, (file,), (codec,), (server,), (section,) = (found[part] for part in ("metrics", "files", "codecs", "servers",
                                                                                  "sections"))
    assert [metrics[k] for k in ("num_tasks", "num_chunks", "total_events", "wall_time")] == [3, 3, 300, 2.9]
    assert [t["read_bytes"] for t in found["tasks"]] == [1000, 1001, 1002]
    assert (file["path"], file["read_bytes"], file["storage_read_bytes"], file["chunks"]) == ("/data/a.root", 3003, 4096, 3)
    assert (codec["calls"], codec["in_bytes"], codec["out_bytes"]) == (6, 2000, 8000)
    assert (server["requests"], server["failed_requests"], server["read_bytes"]) == (5, 1, 3003)
    assert (section["section"], section["count"], section["wall_seconds"]) == ("fill", 3, 0.6)
    (apart,) = found["sections_by_dataset"]
    for row in (section, apart):  # its agent sent no dataset and no spread: unknown
        assert [row[f"wall_{name}_seconds"] for name in ("min", "median", "max")] == [None] * 3 and row["count"] == 3
    assert apart["dataset"] is None
    assert (found["workers"][0]["host"], found["workers"][0]["pid"]) == ("node-1", 4711)
    whole = found["completeness"]
    assert (whole["records_bad"], whole["records_lost"], whole["workers_seen"]) == (0, 0, 1)
    assert (whole["tasks"]["read_bytes"], whole["unattributed"]["read_bytes"]) == (3003, 7)


def test_an_old_journal_is_read(tmp_path):
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / f"{frames.BASE_NS:020}-journal.crema").write_bytes(GOLDEN.read_bytes())
    done, found = report(tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    says_what_it_said(found)


VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"]


@pytest.fixture
def options():
    return []


@pytest.fixture(params=["", pytest.param("valgrind", marks=pytest.mark.further)])
def collector(tmp_path, request, options):
    """Also under valgrind: with old agents and strangers, and at its end, it neither leaks nor makes invalid accesses."""
    (tmp_path / "token").write_bytes(TOKEN + b"\n")
    (tmp_path / "token").chmod(0o600)
    port = cluster.free_port()
    process = cluster.Process("collect", [
        *(VALGRIND if request.param else ()), cluster.BUILD / "crema", "collect", "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{cluster.free_port()}",
        "--dir", tmp_path / "state", "--token-file", tmp_path / "token", *options], tmp_path / "collect.log")
    cluster.wait_until(lambda: "status page" in process.text(), "crema collect", 120, [process])
    process.port = port
    yield process
    assert process.stop(60) == 0, process.text()


def spoken():
    """The golden file's frames as its agent sent them: (type, sequence after it, bytes)."""
    data, at = GOLDEN.read_bytes(), 0
    while at < len(data):
        head = frames.HEAD.unpack(data[at:at + frames.HEAD.size])
        size = frames.HEAD.size + head[9]
        yield head[2], head[6] + head[7], data[at:at + size]
        at += size


def tells_all(agent):
    """Sends everything that the golden agent sent, until all of it is acknowledged."""
    said = [f for f in spoken() if f[0] in (frames.HELLO, frames.DATA)]
    agent.send(said[0][2])
    agent.expect(frames.WELCOME)
    agent.send(*(f[2] for f in said[1:]))
    while agent.expect(frames.ACK)[1] != said[-1][1]:
        pass


def test_todays_protocol_brings_them_too(collector, tmp_path):
    """The same frames in sealed records; the journal has them unchanged."""
    tells_all(sealed.Agent(collector.port, TOKEN, WORKER))
    done, found = report(tmp_path / "state")
    assert done.returncode == 0, done.stderr
    says_what_it_said(found)
    (journal,) = (tmp_path / "state").rglob("*.crema")
    assert all(f[2] in journal.read_bytes() for f in spoken() if f[0] == frames.DATA)


@pytest.mark.parametrize("options", [["--old-agents"]])
def test_an_old_agent_is_understood(collector, tmp_path, options):
    """The previous release, if --old-agents allows it: one line reports it, for any number of agents."""
    tells_all(sealed.Agent(collector.port, TOKEN, WORKER, version=1))
    tells_all(sealed.Agent(collector.port, TOKEN, WORKER, version=1))
    done, found = report(tmp_path / "state")
    assert done.returncode == 0, done.stderr
    says_what_it_said(found)
    assert collector.text().count("has an older release: it is accepted because of --old-agents") == 1


@pytest.mark.parametrize("options", [["--old-agents"]])
def test_an_old_agent_without_the_token_is_refused(collector, options):
    agent = sealed.Agent(collector.port, b"another-token-of-16-bytes", WORKER, version=1)
    assert agent.expect(frames.REFUSE)[0]["reason"] == "wrong token"


def test_an_old_agent_is_refused_with_a_line(collector):
    agent = sealed.Agent(collector.port, TOKEN, WORKER, version=1)
    assert "an agent of an older release" in agent.expect(frames.REFUSE)[0]["reason"]
    cluster.wait_until(lambda: "an agent of an older release, whose connection is not protected: use one release on both "
                       "ends, or crema collect --old-agents" in collector.text(), "the line", 120)


@pytest.mark.parametrize("version", [0, 3])
def test_another_version_is_refused_with_a_line(collector, version):
    agent = sealed.Agent(collector.port, TOKEN, WORKER, version)
    assert agent.offer == (1, 2)
    assert agent.expect(frames.REFUSE)[0]["reason"] == "no common protocol version"
    cluster.wait_until(lambda: "no common protocol version" in collector.text(), "the line", 120)


def test_a_replayed_proof_is_refused(collector):
    """One connection's proof is not valid on the next, whose challenge, and therefore its keys, are different."""
    first = sealed.Agent(collector.port, TOKEN, WORKER)
    proof = first.out.seal(frames.sealed(frames.PROOF, b"", WORKER))
    second = sealed.Agent(collector.port, TOKEN, WORKER)
    second.socket.sendall(proof)
    assert second.expect(frames.REFUSE)[0]["reason"].startswith("bytes that were changed")
    third = sealed.Peer(socket.create_connection(("127.0.0.1", collector.port), 60))
    third.expect(frames.CHALLENGE)
    third.send(frames.frame(frames.AUTH, {"version": 2, "nonce": first.nonce}, WORKER))
    third.expect(frames.PROOF)
    third.socket.sendall(proof)
    assert third.expect(frames.REFUSE)[0]["reason"] == "wrong token"
    cluster.wait_until(lambda: collector.text().count("wrong token") == 1, "the line", 120)


def test_a_newer_journal_is_named(tmp_path):
    newer = frames.Journal(tmp_path / "journal", format=2)
    newer.write()
    done, _ = report(tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "was written by a newer crema" in done.stderr
