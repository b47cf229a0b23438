"""A Dask cluster of real processes with crema's collector, as a user would start it.

Used by the demo and by the tests. Every process gets its own session, so that a signal to its
group reaches all its children. Only crema's agents leave their group on purpose, and must be
found separately.
"""

import collections
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
stop_signal = 0  # set by a signal handler; checked in waits


class StepFailed(Exception):
    """One line for the user, with the log that explains it."""

    def __init__(self, text, log=None):
        super().__init__(text)
        self.log = log


def tail(path, count=25):
    if path is None:
        return []
    try:
        return Path(path).read_text(errors="replace").splitlines()[-count:]
    except OSError:
        return []


reserved_ports = collections.deque(maxlen=200)  # sockets whose names say so


def free_port():
    """A port below the kernel's ephemeral range: until its server listens, no connection and no bind(0) takes it, nor another process that
    asks here: it finds the port's name in use."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(1000):
        port = random.SystemRandom().randrange(first // 2, first) if first > 4096 else 0
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            name.bind(f"\0crema-port-{s.getsockname()[1]}")
            reserved_ports.append(name)
            return s.getsockname()[1]
        name.close()
    raise StepFailed(f"no free port from {first // 2} to {first - 1} on 127.0.0.1")


def check_stop():
    """Exits if a signal requested it: only here, so that no process is left half started."""
    if stop_signal:
        raise SystemExit(128 + stop_signal)


def wait_until(ready, what, seconds=120.0, processes=()):
    """Waits until ready() returns a true value, and returns it; seconds is only a limit for hangs."""
    limit = time.monotonic() + seconds
    while True:
        check_stop()
        value = ready()
        if value:
            return value
        for process in processes:
            if process.poll() is not None:
                raise StepFailed(f"{process.name} ended with status {process.returncode}", process.log)
        if time.monotonic() > limit:
            raise StepFailed(f"waited {seconds:.0f} s for {what}", processes[0].log if processes else None)
        time.sleep(0.1)


class Process(subprocess.Popen):
    prefixed = False  # runs another program as its child, as strace does

    def __init__(self, name, argv, log, env=None, **options):
        self.name, self.log = name, Path(log)
        with open(self.log, "ab") as out:
            super().__init__([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, env=env, start_new_session=True, **options)

    def text(self):
        return self.log.read_text(errors="replace")

    def ask_to_end(self):
        """Sends TERM to the program; strace in front of it would not forward it."""
        below = children(self.pid) if self.prefixed else []
        kill(below[0] if below else self.pid, signal.SIGTERM)

    def signal_group(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def group_alive(self):
        self.poll()
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return any(group == self.pid for _, group, state in processes() if state != "Z")

    def stop(self, seconds=20.0):
        """Sends TERM to the process, which ends its own children in order (a nanny its worker), then to
        the rest of the group, then KILL; returns the exit status."""
        self.ask_to_end()
        try:
            self.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        limit = time.monotonic() + seconds
        if self.group_alive():
            self.signal_group(signal.SIGTERM)
        while self.group_alive() and time.monotonic() < limit:
            time.sleep(0.05)
        self.signal_group(signal.SIGKILL)
        return self.wait()


def stats():
    """(pid, name, the other fields of its stat) of every process of this machine."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                head, _, fields = file.read().rpartition(b")")
        except OSError:
            continue
        yield int(pid), head.partition(b"(")[2], fields.decode().split()


def processes():
    """(pid, process group, state) of every process of this machine."""
    return ((pid, int(fields[2]), fields[0]) for pid, _, fields in stats())


def children(pid):
    """All processes below pid, by parent."""
    parents = {child: int(fields[1]) for child, _, fields in stats()}
    found, new = [], [pid]
    while new:
        new = [p for p, parent in parents.items() if parent in new]
        found += new
    return found


def strings_of(pid, name):
    """The NUL-separated strings of /proc/PID/NAME (environ, cmdline)."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def agents_of(target):
    """Agents that send to this collector. They left their worker's group, so they must be searched for."""
    found = []
    for pid, name, fields in stats():
        words = strings_of(pid, "cmdline") if name.startswith(b"crema-agent") and fields[0] != "Z" else []
        if words and os.path.basename(words[0]) == "crema-agent" and target in words:
            found.append(pid)
    return found


def preloadable(build, directory):
    """build, or a link to it: LD_PRELOAD cannot contain a path with a space or a colon."""
    if not any(c in str(build) for c in " :"):
        return build
    link = directory / "build"
    if not link.exists():
        link.symlink_to(build)
    return link


class Cluster:
    """collect, scheduler and workers with their logs in one directory."""

    forks = None  # starts Dask's processes for tests, which need about a hundred: tests/integration/forks.py

    def __init__(self, directory, env=None, say=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.journal = self.directory / "journal"
        self.env = {**os.environ, **(env or {})}
        for name in ("LD_PRELOAD", "CREMA", "CREMA_COLLECTOR", "CREMA_DIR"):
            if name not in (env or {}):
                self.env.pop(name, None)
        # Dask's scratch space is inside the directory, so that it is removed with the rest.
        self.env.setdefault("DASK_TEMPORARY_DIRECTORY", str(self.directory / "dask"))
        self.say = say or (lambda text: None)
        self.build = preloadable(BUILD, self.directory)
        self.port, self.http_port = free_port(), free_port()
        self.target = f"127.0.0.1:{self.port}"
        self.collector = self.scheduler = self.address = None
        self.workers = []
        self.host = "127.0.0.1"  # of the scheduler

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, name, argv, env=None):
        self.say(" ".join(str(a) for a in argv))
        begin = self.forks.process_of(argv, env or self.env) if self.forks else Process
        return begin(name, argv, self.directory / f"{name}.log", env or self.env, cwd=self.directory)

    def dask(self, *args):
        return [Path(sys.executable).with_name("dask"), *args]

    def start_collector(self, prefix=()):
        name = "collect"
        before = (self.directory / f"{name}.log")
        seen = before.stat().st_size if before.exists() else 0
        self.collector = self.start(name, [
            *prefix, self.build / "crema", "collect", "--listen", self.target,
            "--http", f"127.0.0.1:{self.http_port}", "--dir", self.journal])
        wait_until(lambda: self.target in self.collector.text()[seen:], "crema collect", 60, [self.collector])

    def start_scheduler(self, env=None):
        file = self.directory / "scheduler.json"
        self.scheduler = self.start("scheduler", self.dask(
            "scheduler", "--host", self.host, "--port", "0", "--no-dashboard", "--no-jupyter",
            "--scheduler-file", file), {**self.env, **(env or {})})
        wait_until(file.exists, "dask scheduler", 120, [self.scheduler])
        self.address = wait_until(lambda: read_json(file).get("address"), "dask scheduler", 120, [self.scheduler])

    def worker_env(self, shim=True, env=None):
        extra = {}
        if shim:
            extra = {"LD_PRELOAD": str(self.build / "libcrema.so"), "CREMA_COLLECTOR": self.target}
        return {**extra, **(env or {})}

    def start_worker(self, shim=True, env=None, prefix=(), args=(), nthreads=1):
        """prefix: a command that runs the worker and must then set its environment (see strace_reads)."""
        name = f"worker-{len(self.workers)}"
        extra = self.worker_env(shim, env)
        if prefix:
            prefix = prefix(self.directory / f"{name}.strace", extra)
            extra = {}
        local = self.directory / f"{name}.local"
        worker = self.start(name, [*prefix, *self.dask(
            "worker", self.address, "--name", name, "--nthreads", str(nthreads), "--no-dashboard",
            "--local-directory", local, *args)], {**self.env, **extra})
        worker.prefixed = worker.args[0] == "strace"
        self.workers.append(worker)
        return worker

    def agents(self):
        return agents_of(self.target)

    def stop_workers(self):
        for worker in self.workers:
            worker.ask_to_end()
        for worker in self.workers:
            # The nanny closes its worker; a signal to the whole group would kill it first.
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                pass
            worker.stop()

    def stop(self, agent_seconds=10.0):
        """Stops workers first, so that their agents' remaining records reach the collector."""
        self.stop_workers()
        limit = time.monotonic() + agent_seconds
        while self.agents() and time.monotonic() < limit and running(self.collector):
            time.sleep(0.05)
        for pid in self.agents():
            kill(pid, signal.SIGTERM)
        for process in (self.scheduler, self.collector):
            if process is not None:
                process.stop()
        time.sleep(0.05)
        for pid in self.agents():
            kill(pid, signal.SIGKILL)

    def report(self, *args, directory=None, env=None, full=True):
        """The finished process of `crema report`: with all tables unless the first screen or another output is requested."""
        return subprocess.run([self.build / "crema", "report", "--dir", directory or self.journal, *with_tables(args, full)],
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)

    def report_json(self, run="last", directory=None, options=()):
        done = self.report("--run", run, "--json", "-", *options, directory=directory)
        if done.returncode != 0:
            raise StepFailed(f"crema report: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def with_tables(args, full=True):
    return args if not full or set(map(str, args)) & OTHER_OUTPUTS else ("--full", *args)


OTHER_OUTPUTS = {"--list", "--show", "--full", "--all-metrics", "--json", "--csv", "--sqlite", "--html", "--perfetto", "--measurement"}


def running(process):
    return process is not None and process.poll() is None


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def read_json(path):
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError):
        return {}
