"""Hundreds of simulated workers, and many who mean no good, at one collector: nothing is lost, nothing is
counted twice, memory stays what it was."""

import json
import resource
import urllib.request
from collections import Counter
from pathlib import Path

import attackers
import cluster
import pytest
import swarms

MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def built():
    swarms.build()


@pytest.fixture
def procs(new_cluster):
    made = new_cluster()
    made.start_collector()
    return made


def status(procs):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/status.json", timeout=60) as answer:
        return json.load(answer)


def sum_of(parts):
    return sum(count for _, count in parts)


def test_nothing_lost_nothing_twice(procs, tmp_path):
    """Frames come twice, connections break between any two frames, and every record is in the journal once."""
    sent = swarms.Swarm(procs, tmp_path, workers=150, records=18_000, rate=6_000, frame=12, starts=True, twice=5,
                        cut=4).result()
    assert sent["records_sent"] == sent["records_acked"] == 18_000 and sent["tasks"] == 9_000
    assert sent["cuts"] == 300
    journal = swarms.journaled(procs.journal)
    assert len(journal) == 150 and all(swarms.is_whole(parts) for parts in journal.values())
    assert sum(sum_of(parts) for parts in journal.values()) == sent["messages"]
    said = status(procs)
    assert said["records"] == sent["messages"] and said["missing_records"] == 0
    # each frame 0 and 5 of a worker, and its goodbye, at least
    assert sent["frames_again"] == 450 and said["duplicate_records"] >= 300 * 12 + 150
    report = procs.report_json()
    assert report["metrics"]["num_tasks"] == report["metrics"]["num_chunks"] == sent["tasks"]
    assert report["metrics"]["total_events"] == sent["tasks"] * 50_000
    assert sum(task["read_bytes"] for task in report["tasks"]) == sent["read_bytes"]
    assert report["completeness"]["records_lost"] == 0 and report["completeness"]["workers_seen"] == 150


def test_a_gap_is_named(procs, tmp_path):
    """Frames that never came are neither waited for nor hidden."""
    sent = swarms.Swarm(procs, tmp_path, workers=20, records=4000, rate=8000, frame=10, skip=10).result()
    assert sent["frames_left_out"] == 40 and sent["records_sent"] == 3600
    missing = status(procs)["missing_records"]
    assert missing >= 400
    journal = swarms.journaled(procs.journal)
    assert not any(swarms.is_whole(parts) for parts in journal.values())
    assert sum(sum_of(parts) for parts in journal.values()) == sent["messages"] - missing
    report = procs.report_json()
    assert report["completeness"]["records_lost"] == missing
    assert report["metrics"]["num_tasks"] == 3600


def test_memory_and_cost_do_not_grow(procs, tmp_path):
    """The part of 50 million records that fits here: docs/scale.md has the whole."""
    sent = swarms.Swarm(procs, tmp_path, workers=200, records=600_000, shared=True).result()
    assert sent["records_acked"] == sent["records_sent"] == 600_000
    parts = sent["parts"]
    assert len(parts) >= 8 and parts[2]["records"] < 300_000 < parts[-1]["records"]
    assert parts[-1]["rss_bytes"] - parts[2]["rss_bytes"] < 4 * MIB, parts
    assert sent["rss_most_bytes"] < 60 * MIB
    assert status(procs)["records"] == sent["messages"]


@pytest.mark.parametrize("half_open", [2000, pytest.param(10_000, marks=pytest.mark.matrix)])
def test_who_means_no_good(procs, tmp_path, half_open):
    """Thousands that never say a word, slow ones, and traps in frames: dropped for the right reason, while no
    worker has to connect anew, and nothing of theirs is lost."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    traps, slow, again = list(attackers.TRAPS.values()), 50, 10
    token = Path(procs.env["CREMA_TOKEN_FILE"]).read_text().strip().encode()
    swarm = swarms.Swarm(procs, tmp_path, workers=200, rate=4000, seconds=12, frame=10, starts=True)
    cluster.wait_until(lambda: status(procs)["workers_connected"] == 200, "the workers to connect", 60)
    peers = attackers.HalfOpen(procs.port, half_open, slow)
    try:
        for _ in range(again):
            for _, trap in traps:
                attackers.spring(procs.port, token, trap)
            attackers.spring(procs.port, None, attackers.LARGE_CLAIM[1])
        assert status(procs)["connections"] >= 200 + half_open
        assert peers.until_dropped(60) == 0
    finally:
        peers.close()
    sent = swarm.result()
    assert sent["records_sent"] == sent["records_acked"] >= 40_000
    said = status(procs)
    assert said["connections"] == 200 + half_open + slow + again * (len(traps) + 1)
    expected = Counter(too_slow=half_open + slow)
    for reason, _ in [*traps, attackers.LARGE_CLAIM]:
        expected[reason] += again
    assert {name: n for name, n in said["refused"].items() if n} == expected
    assert said["records"] == sent["messages"] and said["missing_records"] == 0
    assert sent["rss_most_bytes"] < 100 * MIB
    journal = swarms.journaled(procs.journal)
    assert len(journal) == 200 and all(swarms.is_whole(parts) for parts in journal.values())
