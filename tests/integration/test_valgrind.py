# SPDX-License-Identifier: BSD-3-Clause
"""Agents, the collector and reports under valgrind's memcheck, with real workers and their shared memory: no error and
no definite leak, whatever starts and stops. The collector with old agents and strangers: test_golden.py."""

import os
import signal
from pathlib import Path

import cluster
import jobs
import pytest
from distributed import Client

# Every error and each definite leak counts; separate programs (popen) do not.
VALGRIND = ("valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite",
            "--error-exitcode=99", "--num-callers=25")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "journal-1.crema"


class Checked:
    """The logs of processes under valgrind, one file each."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()

    def prefix(self, name):
        return [*VALGRIND, f"--log-file={self.directory}/{name}.%p"]

    def logs(self, name):
        return {int(p.suffix[1:]): p.read_text() for p in sorted(self.directory.glob(f"{name}.*"))}

    def alive(self, name):
        return [pid for pid, _, state in cluster.processes() if state != "Z" and pid in self.logs(name)
                and any(str(self.directory) in word for word in cluster.strings_of(pid, "cmdline"))]

    def check(self, name, ends):
        """None has an error, and for each of `ends` a process whose command contains it ran to its end."""
        logs = self.logs(name).values()
        for text in logs:
            assert "ERROR SUMMARY: 0 errors" in text or "ERROR SUMMARY" not in text, text
            assert "Invalid " not in text and "uninitialised" not in text, text
        for words in ends:
            assert any(f"{words} " in text.replace("\n", " ") and "ERROR SUMMARY" in text for text in logs), (words, logs)


@pytest.fixture
def checked(tmp_path):
    seen = Checked(tmp_path / "valgrind")
    yield seen
    for name in ("agent", "collect"):
        for pid in seen.alive(name):
            cluster.kill(pid, signal.SIGKILL)


def agent_of(checked):
    """A program that runs the agent under valgrind, for CREMA_AGENT."""
    program = checked.directory.parent / "checked-agent"
    words = " ".join(f"'{word}'" for word in [*checked.prefix("agent"), cluster.BUILD / "crema-agent"])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return program


def workers_of(client):
    try:
        return list(client.run(os.getpid).values())
    except Exception:  # noqa: BLE001 - it was killed a moment ago
        return []


@pytest.mark.matrix
def test_agent_and_collector(new_cluster, checked, data):
    """Workers run coffea's job while the collector is running, killed (SIGKILL) and restarted, and one of them is killed."""
    procs = new_cluster(env={"CREMA_AGENT": str(agent_of(checked))})
    procs.start_collector(prefix=checked.prefix("collect"))
    procs.start_scheduler()
    procs.start_worker()
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "first", jobs.read_whole, data["lz4"])
        assert task["read_bytes"] == n == os.path.getsize(data["lz4"])
        procs.collector.kill()
        procs.collector.wait(60)
        _, truth = jobs.run_coffea(client, [data["zstd"]])
        procs.start_collector(prefix=checked.prefix("collect"))
        found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4, seconds=180)
        assert found["metrics"]["total_events"] == truth["entries"]
        assert found["completeness"]["records_lost"] == 0
        (first,) = client.run(os.getpid).values()
        cluster.kill(first, signal.SIGKILL)
        (second,) = cluster.wait_until(lambda: [w for w in workers_of(client) if w != first], "the next worker", 180)
    procs.stop_workers()
    cluster.wait_until(lambda: not checked.alive("agent"), "the agents' end", 180)
    assert procs.collector.stop(60) == 0, procs.collector.text()
    checked.check("agent", [f"--pid {first}", f"--pid {second}"])
    checked.check("collect", [f"{procs.journal}"])


WAYS = {"text": ["--all-metrics"], "json": ["--json", "-"], "page": ["--html", "-"],
        "tables": ["--csv", "csv", "--sqlite", "tables.db"], "trace": ["--perfetto", "trace.json"], "measurement": ["--measurement", "measured"]}


@pytest.mark.parametrize("way", [w if w == "json" else pytest.param(w, marks=pytest.mark.matrix) for w in WAYS])
def test_report(checked, tmp_path, way):
    """The golden journal contains every kind of message; for each output."""
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / f"{'0' * 20}-journal.crema").write_bytes(GOLDEN.read_bytes())
    report = cluster.Process("report", [*checked.prefix("report"), cluster.BUILD / "crema", "report", "--dir", tmp_path,
                                        *WAYS[way]], tmp_path / "report.log", cwd=tmp_path)
    assert report.wait(120) == 0, report.text()
    checked.check("report", [WAYS[way][-1]])
