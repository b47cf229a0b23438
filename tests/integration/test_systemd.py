# SPDX-License-Identifier: BSD-3-Clause
"""The unit of the .deb, started by a real systemd in a temporary Debian: real workers send to its collector,
and systemd restarts it when it is killed. Unpacking takes a minute or two, so this is a matrix cell."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import cluster
import jobs
import packages
import pytest
from distributed import Client, span
from test_package import BUILD_SECONDS, deb, debian, done, right  # noqa: F401 (deb is a fixture)

pytestmark = pytest.mark.matrix
UNIT = "crema-collect"


class Machine:
    """A container whose first process is systemd; it uses the machine's own network."""

    def __init__(self, root, log):
        nspawn = packages.unpacked("nspawn", "systemd-container") / "usr/bin/systemd-nspawn"
        with open(log, "w") as out:
            self.process = subprocess.Popen(
                [nspawn, "--boot", "--register=no", "--keep-unit", f"--directory={root}", "--console=pipe",
                 f"--machine=crema-{os.getpid()}"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.first = cluster.wait_until(self._first, "systemd in the container", 60)
        cluster.wait_until(lambda: self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"),
                           "systemd to be up", 120)

    def _first(self):
        assert self.process.poll() is None
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                return child
        return None

    def run(self, *command):
        return done(["nsenter", "--target", self.first, "--all", *command], timeout=120)

    def state(self):
        return self.run("systemctl", "is-active", UNIT).stdout.strip()

    def main_pid(self):
        return int(self.run("systemctl", "show", "--property=MainPID", "--value", UNIT).stdout)

    def close(self):
        self.process.terminate()  # nspawn asks systemd to power off
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.kill(int(self.first), signal.SIGKILL)
            self.process.wait(60)


@pytest.fixture
def machine(deb, tmp_path):  # noqa: F811
    """Has the .deb installed, and free ports for its unit in a drop-in."""
    signal.alarm(BUILD_SECONDS)  # instead of the usual hang limit
    if os.geteuid():
        pytest.skip("a throw-away system needs root")
    root = debian(deb[0], tmp_path / "root", "systemd-sysv", "dbus")
    shutil.copy(deb[0], root / "var/crema.deb")
    right(["chroot", root, "dpkg", "-i", "/var/crema.deb"])
    (start,) = [line for line in (root / "usr/lib/systemd/system" / f"{UNIT}.service").read_text().splitlines()
                if line.startswith("ExecStart=")]
    ports = cluster.free_port(), cluster.free_port()
    folder = root / "etc/systemd/system" / f"{UNIT}.service.d"
    folder.mkdir()
    (folder / "ports.conf").write_text(
        f"[Service]\nExecStart=\n{start} --listen 127.0.0.1:{ports[0]} --http 127.0.0.1:{ports[1]}\n")
    one = Machine(root, tmp_path / "nspawn.log")
    one.root, one.port = root, ports[0]
    yield one
    one.close()
    shutil.rmtree(root)


def test_systemd_runs_the_collector(machine, new_cluster, data):
    started = machine.run("systemctl", "start", UNIT)
    assert started.returncode == 0, started.stderr
    token = machine.root / "var/lib/private/crema/token"
    cluster.wait_until(lambda: machine.state() == "active" and token.exists(), "the unit and its token", 60)
    assert token.stat().st_mode & 0o777 == 0o600 and token.stat().st_uid != 0
    procs = new_cluster()
    procs.target = f"127.0.0.1:{machine.port}"
    mine = Path(procs.env["CREMA_TOKEN_FILE"])
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_bytes(token.read_bytes())
    mine.chmod(0o600)
    procs.start_scheduler()
    procs.start_worker()
    keys = []
    with Client(procs.address) as client, span("kept"):  # one run, however long the restarts take
        client.wait_for_workers(1, timeout=120)
        for _ in range(2):
            new = [jobs.unique("read_whole") for _ in range(10)]
            sizes = client.gather(client.map(jobs.read_whole, [data["zstd"]] * 10, key=new, pure=False))
            assert sizes == [os.path.getsize(data["zstd"])] * 10
            keys += new
            before = machine.main_pid()
            right(["nsenter", "--target", machine.first, "--all", "systemctl", "kill", "--signal=KILL", UNIT])
            cluster.wait_until(lambda: machine.state() == "active" and machine.main_pid() not in (0, before),  # noqa: B023
                               "systemd to start it again", 60)

    def told():
        said = machine.run("crema", "report", "--dir", "/var/lib/crema", "--json", "-")
        tasks = json.loads(said.stdout)["tasks"] if said.returncode == 0 else []
        return [t for t in tasks if t["key"] in keys]

    tasks = cluster.wait_until(lambda: len(told()) == len(keys) and told(), "all tasks", 120)
    assert sorted(t["key"] for t in tasks) == sorted(keys)
    assert {t["read_bytes"] for t in tasks} == {os.path.getsize(data["zstd"])}
    status = machine.run("cat", f"/proc/{machine.main_pid()}/status").stdout
    assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status and "Seccomp:\t2" in status
    assert machine.run("systemctl", "stop", UNIT).returncode == 0
    assert machine.run("systemctl", "show", "--property=Result", "--value", UNIT).stdout.strip() == "success"
