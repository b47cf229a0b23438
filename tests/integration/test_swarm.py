"""Hundreds of simulated workers, and many hostile peers, with one collector: nothing is lost, nothing is
counted twice, and memory does not grow."""

import json
import resource
import time
import urllib.request
from collections import Counter
from pathlib import Path

import attackers
import cluster
import frames
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
    """Frames are sent twice, connections break between any two frames, and every record is in the journal once."""
    sent = swarms.Swarm(procs, tmp_path, workers=150, records=18_000, rate=6_000, frame=12, starts=True, twice=5,
                        cut=4).result()
    assert sent["records_sent"] == sent["records_acked"] == 18_000 and sent["tasks"] == 9_000
    assert sent["cuts"] == 300
    journal = swarms.journaled(procs.journal)
    assert len(journal) == 150 and all(swarms.is_whole(parts) for parts in journal.values())
    assert sum(sum_of(parts) for parts in journal.values()) == sent["messages"]
    said = status(procs)
    assert said["records"] == sent["messages"] and said["missing_records"] == 0
    # at least frames 0 and 5 of each worker, and its goodbye
    assert sent["frames_again"] == 450 and said["duplicate_records"] >= 300 * 12 + 150
    report = procs.report_json()
    assert report["metrics"]["num_tasks"] == report["metrics"]["num_chunks"] == sent["tasks"]
    assert report["metrics"]["total_events"] == sent["tasks"] * 50_000
    assert sum(task["read_bytes"] for task in report["tasks"]) == sent["read_bytes"]
    assert report["completeness"]["records_lost"] == 0 and report["completeness"]["workers_seen"] == 150


def totals(procs):
    """The work of all workers so far, from /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {line for line in lines if "_total" in line.split(" ")[0] and not line.startswith(("#", "crema_collector_", "crema_journal_", "crema_run_"))}


def begins_with_checkpoint(path):
    data = path.read_bytes()
    second = frames.HEAD.size + frames.HEAD.unpack_from(data, 0)[9]
    return len(data) >= second + frames.HEAD.size and frames.HEAD.unpack_from(data, second)[2] == frames.CHECKPOINT


def test_killed_between_checkpoints(new_cluster, tmp_path):
    """A collector with small segments is killed repeatedly while workers send: every record is in the journal once, and
    the totals include all records, though the last collector reads only what follows the newest checkpoint."""
    procs = new_cluster(env={"CREMA_MAX_BYTES": "8M"})
    procs.start_collector()
    swarm = swarms.Swarm(procs, tmp_path, workers=20, records=80_000, rate=8_000, frame=10, starts=True)
    for pause in (0.7, 1.1, 0.4, 1.6, 0.9, 0.3):
        cluster.wait_until(lambda: status(procs)["workers_connected"] == 20, "the workers to connect", 60)
        time.sleep(pause)
        procs.collector.kill()
        procs.collector.wait()
        procs.start_collector()
    sent = swarm.result()
    assert sent["records_sent"] == sent["records_acked"] == 80_000
    journal = swarms.journaled(procs.journal)
    assert len(journal) == 20 and all(swarms.is_whole(parts) for parts in journal.values())
    assert sum(sum_of(parts) for parts in journal.values()) == sent["messages"]
    said = totals(procs)
    assert f'crema_events_total {sent["tasks"] * 50_000}' in said
    procs.collector.kill()
    procs.collector.wait()
    segments = swarms.segments(procs.journal)
    newest = max(i for i, path in enumerate(segments) if begins_with_checkpoint(path))
    assert newest > 10
    for path in segments[:newest]:
        path.rename(tmp_path / path.name)
    procs.start_collector()
    assert totals(procs) == said
    for path in segments[:newest]:
        (tmp_path / path.name).rename(path)
    report = procs.report_json()
    assert report["metrics"]["num_tasks"] == sent["tasks"] and report["completeness"]["records_lost"] == 0


def test_a_gap_is_named(procs, tmp_path):
    """Frames that never arrive are neither waited for nor hidden."""
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
    """As many of the 50 million records as fit into a test: docs/scale.md has all of them."""
    sent = swarms.Swarm(procs, tmp_path, workers=200, records=600_000, shared=True).result()
    assert sent["records_acked"] == sent["records_sent"] == 600_000
    parts = sent["parts"]
    early = [part for part in parts if part["records"] < 300_000][-1]  # a part is a second, or longer on a busy machine
    assert early["records"] >= 50_000 and parts[-1]["records"] == 600_000
    assert parts[-1]["rss_bytes"] - early["rss_bytes"] < 4 * MIB, parts
    assert sent["rss_most_bytes"] < 60 * MIB
    assert status(procs)["records"] == sent["messages"]


@pytest.mark.parametrize("half_open", [2000, pytest.param(10_000, marks=pytest.mark.matrix)])
def test_who_means_no_good(procs, tmp_path, half_open):
    """Thousands of silent connections, slow ones, and malicious frames: dropped for the right reason, while no
    worker has to reconnect, and none of the workers' records are lost."""
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
