# SPDX-License-Identifier: BSD-3-Clause
"""A collector that is killed while records come, whose disk is full or may not be written, and whose
journal is damaged: nothing that was acknowledged is lost, nothing counts twice, and what is lost is named."""

import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

import browser
import cluster
import faults
import jobs
import pytest
from distributed import Client, span

ROOM = "8m"  # of the small disk


def namespaces():
    """unshare's words for mounts of our own, or a skip where this machine allows none."""
    words = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces of our own on this machine")
    return words


def run_tasks(client, name, n, step=200):
    """n tiny tasks in a span of that name; their keys."""
    keys = []
    with span(name):
        while len(keys) < n:
            new = [jobs.unique(name) for _ in range(step)]
            assert client.gather(client.map(faults.count_up, range(step), key=new)) == list(range(1, step + 1))
            keys += new
    return sorted(keys)


class SmallDisk(cluster.Cluster):
    """The collector's folder is a small file system of its own, in mounts that only it and its readers see."""

    def __init__(self, directory, env):
        super().__init__(directory, env)
        self.journal.mkdir()
        self.holder = subprocess.Popen([*namespaces(), "sh", "-ec", f'mount -t tmpfs -o size={ROOM} none "{self.journal}"; '
                                        'echo ready; exec sleep 100000'], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"
        self.inside = ["nsenter", "-t", str(self.holder.pid), *([] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]), "-m"]

    def stop(self, agent_seconds=10.0):
        super().stop(agent_seconds)
        self.holder.kill()
        self.holder.wait()

    def shell(self, script):
        return subprocess.run([*self.inside, "sh", "-c", script], cwd="/", capture_output=True, text=True, timeout=60)

    def fill(self):
        self.shell(f'dd if=/dev/zero of="{self.journal}/filler" bs=4k 2>/dev/null')
        free = os.statvfs(f"/proc/{self.holder.pid}/root{self.journal}")
        assert free.f_bavail == 0

    def report(self, *args, directory=None, env=None):
        return subprocess.run([*self.inside, self.build / "crema", "report", "--dir", directory or self.journal, *args],
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def small(tmp_path_factory, homes):
    state = tmp_path_factory.mktemp("state")
    with SmallDisk(tmp_path_factory.mktemp("small") / "cluster", {**homes, "XDG_STATE_HOME": str(state)}) as procs:
        procs.spool = state / "crema" / "spool"
        procs.start_collector(prefix=procs.inside)
        procs.start_scheduler()
        for _ in range(2):
            procs.start_worker(nthreads=2)
        with Client(procs.address) as client:
            client.wait_for_workers(2, timeout=120)
            procs.client = client
            yield procs


@pytest.fixture(scope="module")
def killed(small, tmp_path_factory):
    """The collector is killed and started again three times while tasks run; the run, and a copy of its journal."""
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


def status(procs, name="status.json"):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/{name}", timeout=60) as answer:
        return json.load(answer)


def test_killed_three_times_while_records_come(killed):
    tasks = jobs.tasks_of(killed.found, "flood")
    assert sorted(t["key"] for t in tasks) == killed.keys
    assert all(t["counted"] and t["status"] == "ok" for t in tasks)
    assert sum(w["tasks_done"] for w in killed.found["workers"]) == len(killed.keys)
    faults.whole(killed.found)
    assert "2 workers seen, 0 records refused, 0 records lost" in faults.line_of(killed)


# --- a damaged journal

def frames_of(path):
    """(offset, length, type, worker, stream, first number, how many) of each frame, by contract/wire.h."""
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
    """A copy of that journal, its largest file, and what that holds."""
    copy = shutil.copytree(killed.copy, tmp_path / "copy")
    file = max((p for p in copy.rglob("*.crema")), key=lambda p: p.stat().st_size)
    return copy, file, [f for f in frames_of(file) if f[2] == 7]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("where", ["payload", "header"])
def test_one_bit_of_the_journal(killed, damaged, where):
    """One frame is gone, by its name, its bytes and its records; all the others are there as they were."""
    copy, file, frames = damaged
    at, length, _, _, _, _, count = max(frames[len(frames) // 4:-1], key=lambda f: f[6])
    flip(file, at + (8 if where == "header" else 56 + (length - 56) // 2))
    found = killed.report_json(directory=copy)
    torn, = found["completeness"]["torn_files"]
    assert torn["file"].endswith(file.name) and torn["bytes_skipped"] == length and not torn["truncated"]
    assert found["completeness"]["records_lost"] == count
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
    # Totals are cumulative: the next one told them again.
    assert sum(w["tasks_done"] for w in found["workers"]) == len(before)
    line = faults.line_of(killed, copy)
    assert f"0 records refused, {count} records lost" in line and line.endswith("1 torn"), line


def test_truncated_journal(killed, damaged):
    """Cut within a frame: all before it is read, the piece is named."""
    copy, file, frames = damaged
    at, length = frames[len(frames) // 2][:2]
    os.truncate(file, at + length - 3)
    found = killed.report_json(directory=copy)
    torn, = found["completeness"]["torn_files"]
    assert torn["file"].endswith(file.name) and torn["truncated"] and torn["bytes_skipped"] == length - 3
    lost = [f for f in frames if f[0] >= at]
    # Numbers are missing where later ones of the same stream came; the end of a stream leaves no gap.
    assert found["completeness"]["records_lost"] <= sum(f[6] for f in lost)
    assert "1 torn" in faults.line_of(killed, copy)


# --- a disk that takes no more

def spooled(procs):
    return [p for p in procs.spool.glob("*.crema")] if procs.spool.exists() else []


def stuck(procs, why):
    """The collector says on its page what is wrong, and takes nothing."""
    cluster.wait_until(lambda: status(procs)["journal"]["state"] == "stuck", "the journal to be stuck", 60)
    assert status(procs)["journal"]["error"] == status(procs, "live.json")["journal_error"] == why
    top = subprocess.run([procs.build / "crema", "top", "--once", "--http", f"127.0.0.1:{procs.http_port}"],
                         env=procs.env, capture_output=True, text=True, timeout=60)
    assert f"the journal cannot be written: {why}" in top.stdout
    before = status(procs)["records"]
    cluster.wait_until(lambda: spooled(procs), "the agent to spool", 60)
    assert status(procs)["records"] == before
    assert procs.collector.poll() is None


def recovered(procs, name, keys):
    """All is there once, and the agent keeps nothing any more."""
    cluster.wait_until(lambda: status(procs)["journal"]["state"] == "ok", "the journal to be written again", 60)
    found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, name)) >= len(keys))
    tasks = jobs.tasks_of(found, name)
    assert sorted(t["key"] for t in tasks) == keys
    assert all(t["counted"] for t in tasks)
    faults.whole(found)
    assert status(procs, "live.json")["journal_error"] is None
    cluster.wait_until(lambda: not spooled(procs), "the spool to be sent", 60)
    return found


def test_disk_full(small, tmp_path):
    small.fill()
    keys = run_tasks(small.client, "full", 400)
    stuck(small, "no space left on device")
    with browser.Browser(tmp_path / "browser") as page:
        page.open(f"http://127.0.0.1:{small.http_port}/")
        page.wait("/cannot write its journal \\(no space left/.test(document.getElementById('live-journal').textContent)")
        os.unlink(f"/proc/{small.holder.pid}/root{small.journal}/filler")
        page.wait("document.getElementById('live-journal').textContent === ''")
    recovered(small, "full", keys)
    said = small.collector.text()
    assert said.count("cannot write the journal") == 1 and said.count("can be written again") == 1, said


@pytest.mark.matrix
def test_killed_while_its_disk_is_full(small):
    """Started again it finds no room and says so; with room it goes on where it was."""
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
    """A disk that turns read-only under the collector, as after an error, answers each write with one; here
    the limit on a file's size does."""
    place = Path(f"/proc/{small.holder.pid}/root{small.journal}")
    size = max(place.rglob("*.crema")).stat().st_size
    subprocess.run(["prlimit", f"--pid={small.collector.pid}", f"--fsize={size + 100}:unlimited"], check=True)
    keys = run_tasks(small.client, "limited", 200)
    stuck(small, "file too large")
    subprocess.run(["prlimit", f"--pid={small.collector.pid}", "--fsize=unlimited:unlimited"], check=True)
    recovered(small, "limited", keys)


def collect_once(procs, prefix, directory):
    """A second collector in that folder, which must not start: its line."""
    done = subprocess.run([*prefix, procs.build / "crema", "collect", "--listen", f"127.0.0.1:{cluster.free_port()}",
                           "--http", f"127.0.0.1:{cluster.free_port()}", "--dir", directory],
                          env=procs.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done
    line, = done.stderr.splitlines()
    return line


def test_read_only_folder(small):
    script = f'mount --bind "{small.directory}" "{small.directory}"; mount -o remount,ro,bind "{small.directory}"; exec "$@"'
    line = collect_once(small, [*namespaces(), "sh", "-ec", script, "sh"], small.directory / "new")
    assert "read-only file system" in line and str(small.directory / "new") in line


@pytest.mark.matrix
def test_limit_on_the_size_of_files(new_cluster):
    """A segment ends below 'ulimit -f', so that the journal never comes to a stop there."""
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
