"""State directories whose journals are made by hand: segments of any age, filled by tasks(), begun(), totals(),
samples() and noise(); and the crema commands on them."""

import copy
import json
import os
import shutil
import subprocess
import time
import urllib.request

import cluster
from frames import BOOT_NS, Journal

DAY = 86_400
PREPROCESSING, CHUNK = 1 << 9, 1 << 1
TASK_START, TOTALS = 1, 11


class Store:
    """A state directory whose journal is made by hand, and the crema that reads it."""

    def __init__(self, folder):
        self.dir, self.journal = folder / "state", folder / "state/journal"
        self.folder, self.seq, self.now = folder, 0, time.time_ns()
        self.dir.mkdir(exist_ok=True)
        self.env = {**os.environ, "HOME": str(folder), "CREMA_TOKEN_FILE": str(folder / "token")}

    def segment(self, age, *said):
        """A segment that was created `age` seconds ago; said: functions that fill it."""
        made = Journal(self.journal)
        made.path = self.journal / f"{self.now - int(age * 1e9):020}-journal.crema"
        made.seq, made.real_ns = self.seq, self.now - 10 * DAY * 10**9  # gives BOOT_NS of all workers
        made.worker(real_ns=made.real_ns)
        for fill in said:
            fill(made)
        made.write()
        self.seq = made.seq
        return made.path

    def copy(self, folder):
        """The same in another folder."""
        other = copy.copy(self)
        other.folder, other.dir, other.journal = folder, folder / "state", folder / "state/journal"
        shutil.copytree(self.dir, other.dir)
        return other

    def crema(self, command, *args):
        return subprocess.run([cluster.BUILD / "crema", command, "--dir", self.dir, *args], env=self.env, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def list(self):
        """The runs in order, and the dropped ones, by their ids."""
        done = self.crema("report", "--list", "--json", "-")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return [r["run"] for r in found["runs"]], [r["run"] for r in found["dropped_runs"]]

    def report(self, run):
        done = self.crema("report", "--run", run, "--json", "-")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def collect(self, *args, prefix=()):
        return Collector(self, [*prefix, cluster.BUILD / "crema", "collect"], args)


class Collector:
    def __init__(self, store, argv, args):
        self.port = cluster.free_port()
        self.log = cluster.Process("collect", [*argv, "--listen", f"127.0.0.1:{cluster.free_port()}", "--http",
                                               f"127.0.0.1:{self.port}", "--dir", store.dir, *args],
                                   store.folder / f"collect-{self.port}.log", store.env)
        self.log.prefixed = argv[0] == "strace"

    def __enter__(self):
        self.wait("status page")
        return self

    def __exit__(self, *_):
        assert self.log.stop() == 0, self.log.text()

    def get(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=30) as answer:
            return answer.read().decode()

    def counters(self):
        """The counters of workers and tasks in /metrics, without the collector's own."""
        rows = (line.rsplit(" ", 1) for line in self.get("metrics").splitlines() if line[0] != "#")
        return {name: float(value) for name, value in rows if "_total" in name
                and not name.startswith(("crema_collector", "crema_journal", "crema_run_"))}

    def wait(self, text):
        cluster.wait_until(lambda: text in self.log.text(), text, 120, [self.log])


def tasks(age, span, n=3, seconds=10, read=1000, first=1, **said):
    """n chunks of 100 events in a row, the first `age` seconds ago."""
    said = {"prefix": "analyse", "flags": CHUNK, "events": 100, "read_bytes": read, **said}

    def fill(made):
        for i in range(n):
            start = (10 * DAY - age + i * seconds) * 1000
            made.task(first + i, f"{span}_{first + i}", start, start + seconds * 1000, span=span, **said)
    return fill


def totals(age, done, read):
    """The worker's totals up to then."""
    def fill(made):
        made.message([TOTALS, {"boot_ns": BOOT_NS + (10 * DAY - age) * 10**9, "tasks_started": done, "tasks_done": done,
                               "tasks": {"read_bytes": read}, "unattributed": {"read_bytes": 7}}])
    return fill


def samples(age, n):
    """A sample of the worker each second."""
    def fill(made):
        for i in range(n):
            made.message([8, {"boot_ns": BOOT_NS + (10 * DAY - age + i) * 10**9, "cpu_percent": 40 + i, "cpu_seconds": 0.4 * i,
                              "rss_bytes": 10**8 + i * 10**6, "threads": 9, "tasks_running": 1}])
    return fill


def noise(n):
    """n kB of samples that do not compress."""
    def fill(made):
        made.message([8, {"boot_ns": 1, "padding": os.urandom(500 * n).hex()}])
    return fill


def begun(age, span, first):
    """The first record of a task: it is running."""
    def fill(made):
        said = {"attempt": first, "key": f"{span}_{first}", "key_hash": first, "prefix": "analyse", "span": span,
                "flags": CHUNK, "status": "running", "start_boot_ns": BOOT_NS + (10 * DAY - age) * 10**9}
        made.message([TASK_START, 0, *(said.get(name) for name in made.order)])
    return fill
