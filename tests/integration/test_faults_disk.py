# SPDX-License-Identifier: BSD-3-Clause
"""The collector's disk turns read-only, as after an error, or its folder is removed: it accepts nothing that
it cannot store, reports that, and continues in whatever folder the path then leads to."""

import glob
import os
import shutil
import signal
import subprocess

import browser
import cluster
import disks
import host
import jobs
import pytest
from disks import flows, recovered, run_tasks, spooled, status, stuck, tiny_tasks
from distributed import span

pytestmark = pytest.mark.matrix

IMAGE = 'PATH="$PATH:/usr/sbin:/sbin"; truncate -s 16M "{0}.{1}" && mkfs.ext4 -q -F "{0}.{1}" && mount -o loop "{0}.{1}" "{2}"'


# The file system's own tables have space. File blocks do not once the tmpfs is full, which shows only after write() has returned.
THIN = 'PATH="$PATH:/usr/sbin:/sbin"; mkdir "{0}.thin"; mount -t tmpfs -o size=6m,mode=700 none "{0}.thin"; cd "{0}.thin"; ' \
    'truncate -s 64M image; mkfs.ext4 -q -F -b 4096 -O ^has_journal -E lazy_itable_init=0 -N 256 image; mount -o loop image "{0}"'


class ThinDisk(disks.SmallDisk):
    """ext4 on a device that is smaller than it claims."""

    def __init__(self, directory, env):
        super().__init__(directory, env, THIN)

    def use_up(self):
        self.shell(f'sync -f "{self.journal}"; dd if=/dev/zero of="{self.journal}.thin/ballast" bs=4k')
        assert os.statvfs(f"/proc/{self.holder.pid}/root{self.journal}.thin").f_bavail == 0

    def give_room(self):
        assert self.shell(f'mount -o remount,size=128m "{self.journal}.thin"').returncode == 0

    def forget_cache(self):
        """From here on files contain what the disk has of them."""
        for file in glob.glob(f"/proc/{self.holder.pid}/root{self.journal}/journal/*.crema"):
            fd = os.open(file, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


class RealDisk(disks.SmallDisk):
    """ext4 in a file: unlike tmpfs it can be made to behave as after a disk error."""

    def __init__(self, directory, env):
        super().__init__(directory, env, IMAGE.format("{0}", "first", "{0}"))

    def new_disk(self):
        """Copies what can still be read from the old disk to a new one, which is then mounted in its place."""
        new = f"{self.directory}/new"
        done = self.shell(f'set -e; mkdir "{new}"; ' + IMAGE.format(self.journal, "second", new) +
                          f'; cp -a "{self.journal}/." "{new}"; mount --move "{new}" "{self.journal}"')
        assert done.returncode == 0, done.stderr


def needs_loop_devices(tmp_path_factory):
    script = IMAGE.format(tmp_path_factory.mktemp("try") / "image", "first", "/mnt")
    if subprocess.run([*host.namespaces("-m"), "sh", "-c", script], capture_output=True).returncode:
        pytest.skip("no loop devices of our own on this machine")


@pytest.fixture(scope="module")
def real(tmp_path_factory, homes, journal_way):
    needs_loop_devices(tmp_path_factory)
    with disks.site(tmp_path_factory, {**homes, "CREMA_IO_URING": journal_way}, RealDisk) as procs:
        yield procs


@pytest.fixture(scope="module")
def thin(tmp_path_factory, homes, journal_way):
    needs_loop_devices(tmp_path_factory)
    with disks.site(tmp_path_factory, {**homes, "CREMA_IO_URING": journal_way}, ThinDisk) as procs:
        yield procs


def turn_read_only(procs):
    """At that moment no written data is on its way to the disk: such bytes would be lost, as when a machine
    loses power, at most those of a second."""
    procs.collector.send_signal(signal.SIGSTOP)
    done = procs.shell(f'sync -f "{procs.journal}"; mount -o remount,abort "{procs.journal}"; ! touch "{procs.journal}/x"')
    procs.collector.send_signal(signal.SIGCONT)
    assert done.returncode == 0 and "Read-only file system" in done.stderr, done.stderr


def said(procs, words):
    return procs.collector.text().count(words)


def test_turns_read_only(real, tmp_path):
    assert "busy" in real.shell(f'mount -o remount,ro "{real.journal}"').stderr  # it cannot be done by mistake
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
    """What was in it is lost, and counted; nothing else is."""
    run_tasks(real.client, "gone", 200)
    jobs.settled(real, lambda r: len(jobs.tasks_of(r, "gone")) >= 200)
    assert real.shell(f'rm -rf "{real.journal}/journal"').returncode == 0
    keys = run_tasks(real.client, "after", 200)
    stuck(real, "no such file or directory")
    assert said(real, ".crema' was removed: its records are lost") == 1, real.collector.text()
    taken = sum(agent["next"] for agent in status(real)["agents"])
    assert real.shell(f'mkdir -m 700 "{real.journal}/journal"').returncode == 0
    flows(real)
    found = jobs.settled(real, lambda r: len(jobs.tasks_of(r, "after")) >= len(keys))
    assert sorted(t["key"] for t in jobs.tasks_of(found, "after") if t["counted"]) == keys
    done = found["completeness"]
    assert done["records_lost_at_least"] == taken >= 200 and done["records_bad"] == done["records_refused"] == 0, done


def test_spool_removed(real):
    """The agents' folders are removed while no collector can be reached: the agents still have the contents."""
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


def test_does_not_keep_what_it_took(thin):
    """The disk loses what write() passed to it, and reports that a second later. What was acknowledged by then is lost, and
    counted; nothing else is."""
    with span("thin"):
        first = tiny_tasks(thin.client, "thin", 200)
        jobs.settled(thin, lambda r: len(jobs.tasks_of(r, "thin")) >= 200)
        thin.use_up()
        doubtful = tiny_tasks(thin.client, "thin", 200)
        cluster.wait_until(lambda: status(thin)["journal"]["state"] == "stuck", "the disk to be found out", 60)
        kept = tiny_tasks(thin.client, "thin", 200)
    stuck(thin, status(thin)["journal"]["error"])
    assert said(thin, "lost the latest writes") == said(thin, "cannot write the journal") == 1, thin.collector.text()
    thin.give_room()
    flows(thin)
    assert said(thin, "can be written again") == 1
    assert status(thin)["journal"]["unsynced_bytes"] > 0
    thin.forget_cache()
    found = jobs.settled(thin, lambda r: {t["key"] for t in jobs.tasks_of(r, "thin")} >= {*kept})
    keys = [t["key"] for t in jobs.tasks_of(found, "thin") if t["counted"]]
    assert len(set(keys)) == len(keys) and {*first, *kept} <= set(keys) <= {*first, *doubtful, *kept}
    lost = 600 - len(keys)
    assert found["completeness"]["records_lost_at_least"] >= lost > 0, found["completeness"]
    cluster.wait_until(lambda: not spooled(thin), "the spool to be sent", 60)
