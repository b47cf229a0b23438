# SPDX-License-Identifier: BSD-3-Clause
"""A collector that is killed while records arrive, whose disk is full or not writable, and whose
journal is damaged: no acknowledged record is lost, nothing counts twice, and losses are reported."""

import os
import shutil
import subprocess
from pathlib import Path

import browser
import cluster
import disks
import faults
import host
import jobs
import pytest
import swarms
from disks import recovered, run_tasks, status, stuck
from distributed import Client, span


@pytest.fixture(scope="module")
def small(tmp_path_factory, homes):
    with disks.site(tmp_path_factory, homes) as procs:
        yield procs


@pytest.fixture(scope="module")
def killed(small, tmp_path_factory):
    """The collector is killed and restarted three times while tasks run; the run, and a copy of its journal."""
    keys = []
    with span("flood"):
        for _ in range(3):
            new = [jobs.unique("flood") for _ in range(600)]
            futures = small.client.map(faults.count_up, range(600), key=new)
            before = status(small)["records"]
            cluster.wait_until(lambda: status(small)["records"] > before, "records")
            small.collector.kill()
            small.collector.wait(60)
            assert small.client.gather(futures) == list(range(1, 601))
            keys += new
            small.start_collector(prefix=small.inside)
    found = jobs.settled(small, lambda r: len(jobs.tasks_of(r, "flood")) >= len(keys))
    small.copy = shutil.copytree(f"/proc/{small.holder.pid}/root{small.journal}", tmp_path_factory.mktemp("copy") / "journal")
    small.found, small.keys = found, sorted(keys)
    return small


def test_killed_three_times_while_records_come(killed):
    tasks = jobs.tasks_of(killed.found, "flood")
    assert sorted(t["key"] for t in tasks) == killed.keys
    assert all(t["counted"] and t["status"] == "ok" for t in tasks)
    assert sum(w["tasks_done"] for w in killed.found["workers"]) == len(killed.keys)
    faults.whole(killed.found)
    assert "2 workers seen, 0 records refused, 0 records lost" in faults.line_of(killed)


# --- a damaged journal

def frames_of(path):
    """(offset, length, type, worker, stream, first number, count) of each frame, by contract/wire.h."""
    from frames import HEAD

    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        magic, _, kind, _, worker, stream, first, count, _, stored, _ = HEAD.unpack_from(data, at)
        assert magic == 0x464D5243
        found.append((at, HEAD.size + stored, kind, worker, stream, first, count))
        at += HEAD.size + stored
    return found


@pytest.fixture
def damaged(killed, tmp_path):
    """A copy of that journal, its largest file, and that file's frames."""
    copy = shutil.copytree(killed.copy, tmp_path / "copy")
    file = max(swarms.segments(copy), key=lambda p: p.stat().st_size)
    return copy, file, [f for f in frames_of(file) if f[2] == 7]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("where", ["payload", "header"])
def test_one_bit_of_the_journal(killed, damaged, where):
    """One frame is lost and reported with its file, its bytes and its records; all others are unchanged."""
    copy, file, frames = damaged
    at, length, _, _, _, _, count = max(frames[len(frames) // 4:-1], key=lambda f: f[6])
    flip(file, at + (8 if where == "header" else 56 + (length - 56) // 2))
    found = killed.report_json(directory=copy)
    torn, = found["completeness"]["torn_files"]
    assert torn["file"].endswith(file.name) and torn["bytes_skipped"] == length and not torn["truncated"]
    assert found["completeness"]["records_lost_at_least"] == count
    before = {t["key"]: t for t in jobs.tasks_of(killed.report_json(directory=killed.copy), "flood")}
    assert sorted(before) == killed.keys
    after = {t["key"]: t for t in jobs.tasks_of(found, "flood")}
    assert set(after) <= set(before) and len(before) - len(after) <= count
    whole = [key for key in after if after[key]["status"] == "ok"]
    assert len(before) - len(whole) <= count
    for key in whole:
        for name in ("pid", "wall_seconds", "cpu_seconds", "read_bytes"):
            assert after[key][name] == before[key][name], (key, name)
        assert after[key]["start"] == pytest.approx(before[key]["start"], abs=1e-3)  # a clock may be in the frame
    # Totals are cumulative: a later frame has them again.
    assert sum(w["tasks_done"] for w in found["workers"]) == len(before)
    line = faults.line_of(killed, copy)
    assert f"0 records refused, {count} records lost" in line and line.endswith("1 torn"), line


def test_truncated_journal(killed, damaged):
    """Truncated within a frame: everything before it is read, and the rest is reported."""
    copy, file, frames = damaged
    at, length = frames[len(frames) // 2][:2]
    os.truncate(file, at + length - 3)
    found = killed.report_json(directory=copy)
    torn, = found["completeness"]["torn_files"]
    assert torn["file"].endswith(file.name) and torn["truncated"] and torn["bytes_skipped"] == length - 3
    lost = [f for f in frames if f[0] >= at]
    # A gap is seen only if the same stream has later numbers; the end of a stream leaves no gap.
    assert found["completeness"]["records_lost_at_least"] <= sum(f[6] for f in lost)
    assert "1 torn" in faults.line_of(killed, copy)


# --- a disk that is full or fails

def test_disk_full(small, tmp_path):
    before = len(small.collector.text())
    small.fill()
    keys = run_tasks(small.client, "full", 400)
    stuck(small, "no space left on device")
    with browser.Browser(tmp_path / "browser") as page:
        page.open(f"http://127.0.0.1:{small.http_port}/")
        page.wait("/cannot write its journal \\(no space left/.test(document.getElementById('live-journal').textContent)")
        os.unlink(f"/proc/{small.holder.pid}/root{small.journal}/filler")
        page.wait("document.getElementById('live-journal').textContent === ''")
    recovered(small, "full", keys)
    said = small.collector.text()[before:]
    assert said.count("cannot write the journal") == 1 and said.count("can be written again") == 1, said


@pytest.mark.matrix
def test_killed_while_its_disk_is_full(small):
    """When restarted it finds no room and reports that; with room it continues where it stopped."""
    small.fill()
    keys = run_tasks(small.client, "again", 200)
    stuck(small, "no space left on device")
    small.collector.kill()
    small.collector.wait(60)
    with pytest.raises(cluster.StepFailed):
        small.start_collector(prefix=small.inside)
    assert small.collector.wait(60) == 1
    assert "cannot begin a journal" in small.collector.text().splitlines()[-1]
    os.unlink(f"/proc/{small.holder.pid}/root{small.journal}/filler")
    small.start_collector(prefix=small.inside)
    recovered(small, "again", keys)


@pytest.mark.matrix
def test_writes_that_fail(small):
    """A disk that turns read-only under the collector, as after an error, makes each write fail; here
    the limit on file sizes does."""
    place = Path(f"/proc/{small.holder.pid}/root{small.journal}")
    size = max(swarms.segments(place)).stat().st_size
    subprocess.run(["prlimit", f"--pid={small.collector.pid}", f"--fsize={size + 100}:unlimited"], check=True)
    keys = run_tasks(small.client, "limited", 200)
    stuck(small, "file too large")
    subprocess.run(["prlimit", f"--pid={small.collector.pid}", "--fsize=unlimited:unlimited"], check=True)
    recovered(small, "limited", keys)


def collect_once(procs, prefix, directory):
    """A second collector in that folder, which must not start; returns its line."""
    done = subprocess.run([*prefix, procs.build / "crema", "collect", "--listen", f"127.0.0.1:{cluster.free_port()}",
                           "--http", f"127.0.0.1:{cluster.free_port()}", "--dir", directory],
                          env=procs.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done
    line, = done.stderr.splitlines()
    return line


def test_read_only_folder(small):
    script = f'mount --bind "{small.directory}" "{small.directory}"; mount -o remount,ro,bind "{small.directory}"; exec "$@"'
    line = collect_once(small, [*host.namespaces("-m"), "sh", "-ec", script, "sh"], small.directory / "new")
    assert "read-only file system" in line and str(small.directory / "new") in line


@pytest.mark.matrix
def test_limit_on_the_size_of_files(new_cluster):
    """A segment ends below 'ulimit -f', so that the journal never stops there."""
    procs = new_cluster()
    procs.start_collector(prefix=["prlimit", "--fsize=200000"])
    procs.start_scheduler()
    procs.start_worker(nthreads=2)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        keys = run_tasks(client, "sized", 3000, step=500)
        found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "sized")) >= len(keys))
    assert sorted(t["key"] for t in jobs.tasks_of(found, "sized")) == keys
    assert found["completeness"]["files_read"] >= 2
    assert "cannot write" not in procs.collector.text()
    faults.whole(found)
