# SPDX-License-Identifier: BSD-3-Clause
"""The collector's disk turns read-only under it, as after an error, or its folder is removed: it takes nothing that
it cannot keep, says so, and goes on where the folder's path leads to by then."""

import os
import shutil
import signal
import subprocess

import browser
import cluster
import disks
import jobs
import pytest
from disks import flows, recovered, run_tasks, spooled, status, stuck, tiny_tasks
from distributed import span

pytestmark = pytest.mark.matrix

IMAGE = 'PATH="$PATH:/usr/sbin:/sbin"; truncate -s 16M "{0}.{1}" && mkfs.ext4 -q -F "{0}.{1}" && mount -o loop "{0}.{1}" "{2}"'


class RealDisk(disks.SmallDisk):
    """ext4 in a file: unlike tmpfs it can be told to behave as after an error of the disk."""

    def __init__(self, directory, env):
        super().__init__(directory, env, IMAGE.format("{0}", "first", "{0}"))

    def new_disk(self):
        """What the old one still gives is copied to a new one, which then lies where the old one did."""
        new = f"{self.directory}/new"
        done = self.shell(f'set -e; mkdir "{new}"; ' + IMAGE.format(self.journal, "second", new) +
                          f'; cp -a "{self.journal}/." "{new}"; mount --move "{new}" "{self.journal}"')
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def real(tmp_path_factory, homes, collector_loop):
    script = IMAGE.format(tmp_path_factory.mktemp("try") / "image", "first", "/mnt")
    if subprocess.run([*disks.namespaces(), "sh", "-c", script], capture_output=True).returncode:
        pytest.skip("no loop devices of our own on this machine")
    with disks.site(tmp_path_factory, homes, RealDisk) as procs:
        yield procs


def turn_read_only(procs):
    """Nothing that was written is on its way to the disk at that moment: such bytes it loses like a machine
    whose power fails, at most a second's."""
    procs.collector.send_signal(signal.SIGSTOP)
    done = procs.shell(f'sync -f "{procs.journal}"; mount -o remount,abort "{procs.journal}"; ! touch "{procs.journal}/x"')
    procs.collector.send_signal(signal.SIGCONT)
    assert done.returncode == 0 and "Read-only file system" in done.stderr, done.stderr


def said(procs, words):
    return procs.collector.text().count(words)


def test_turns_read_only(real, tmp_path):
    assert "busy" in real.shell(f'mount -o remount,ro "{real.journal}"').stderr  # nobody does it by mistake
    with span("turned"):
        keys = tiny_tasks(real.client, "turned", 200)
        turn_read_only(real)
        keys += tiny_tasks(real.client, "turned", 200)
    stuck(real, "read-only file system")
    with browser.Browser(tmp_path / "browser") as page:
        page.open(f"http://127.0.0.1:{real.http_port}/")
        page.wait("/cannot write its journal \\(read-only file/.test(document.getElementById('live-journal').textContent)")
        real.new_disk()
        page.wait("document.getElementById('live-journal').textContent === ''")
    recovered(real, "turned", sorted(keys))
    assert said(real, "cannot write the journal") == said(real, "can be written again") == 1, real.collector.text()


def test_folder_removed(real):
    """What was in it is lost, and counted; nothing more is."""
    run_tasks(real.client, "gone", 200)
    jobs.settled(real, lambda r: len(jobs.tasks_of(r, "gone")) >= 200)
    assert real.shell(f'rm -rf "{real.journal}/journal"').returncode == 0
    keys = run_tasks(real.client, "after", 200)
    stuck(real, "no such file or directory")
    assert said(real, ".crema' was removed: what it held is lost") == 1, real.collector.text()
    taken = sum(agent["next"] for agent in status(real)["agents"])
    assert real.shell(f'mkdir -m 700 "{real.journal}/journal"').returncode == 0
    flows(real)
    found = jobs.settled(real, lambda r: len(jobs.tasks_of(r, "after")) >= len(keys))
    assert sorted(t["key"] for t in jobs.tasks_of(found, "after") if t["counted"]) == keys
    done = found["completeness"]
    assert done["records_lost"] == taken >= 200 and done["records_bad"] == done["records_refused"] == 0, done


def test_spool_removed(real):
    """The agents' folders are cleared while no collector can be reached: their agents have what was in them."""
    real.collector.kill()
    real.collector.wait(60)
    with span("cleared"):
        keys = tiny_tasks(real.client, "cleared", 200)
        cluster.wait_until(lambda: len(spooled(real)) == 2, "both agents to spool", 60)
        shutil.rmtree(real.spool.parent)
        keys += tiny_tasks(real.client, "cleared", 200)
    real.start_collector(prefix=real.inside)
    found = jobs.settled(real, lambda r: len(jobs.tasks_of(r, "cleared")) >= len(keys))
    assert sorted(t["key"] for t in jobs.tasks_of(found, "cleared") if t["counted"]) == sorted(keys)
