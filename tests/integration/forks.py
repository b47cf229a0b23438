# SPDX-License-Identifier: BSD-3-Clause
"""Starts `dask scheduler` and `dask worker` with a nanny as forks of a process that has imported them, which saves a second of CPU each.

A measured worker is the same as a user's: its nanny starts it as a new program, with LD_PRELOAD, which came too late for the nanny itself.
A process that needs something else from its start (a scheduler with LD_PRELOAD, a worker without a nanny, a program that runs it,
another Python or another environment) is started as usual.
"""

import functools
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import cluster

SERVER = Path(__file__).with_name("forks_server.py")
FREE = ("CREMA", "XDG_", "DASK_", "LD_PRELOAD", "PYTHONPATH", "PYTEST_")  # read when a nanny or scheduler starts, not before
BOUND = ("DASK_DISTRIBUTED__COMM__OFFLOAD", "DASK_DISTRIBUTED__COMM__SHARD", "DASK_CONFIG")  # read by an import


def bound(env):
    return {name: value for name, value in env.items() if not name.startswith(FREE) or name.startswith(BOUND)}


class Forks:
    """The process that has imported Dask, started when it is needed, and the exit statuses of its children."""

    def __init__(self, env):
        self.env, self.process, self.ended, self.lock, self.rest = {**os.environ, **env}, None, {}, threading.Lock(), b""

    def process_of(self, argv, env):
        """The class that starts this program in this environment."""
        words = [str(word) for word in argv]
        dask = words[0] == str(Path(sys.executable).with_name("dask")) and words[1:2]
        suits = dask == ["worker"] and "--no-nanny" not in words or dask == ["scheduler"] and "LD_PRELOAD" not in env
        return functools.partial(Forked, self) if suits and bound(env) == bound(self.env) else cluster.Process

    def begin(self):
        self.socket, theirs = socket.socketpair()
        self.process = subprocess.Popen([sys.executable, SERVER, str(theirs.fileno())], env=bound(self.env), pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        theirs.close()

    def start(self, **wanted):
        """Starts a process; returns its id."""
        with self.lock:
            if self.process is None:
                self.begin()
            self.socket.sendall(json.dumps(wanted).encode() + b"\n")
            while "begun" not in self.ended:
                self.take(None)
            return self.ended.pop("begun")

    def take(self, seconds):
        """Reads messages that are there or arrive within these seconds."""
        if select.select([self.socket], [], [], seconds)[0]:
            data = self.socket.recv(1 << 16)
            assert data, "the process that forks for tests is gone"
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.ended.update({int(k) if k.isdigit() else k: v for k, v in json.loads(line).items()})

    def status(self, pid, seconds):
        """The exit status, or None while it runs."""
        limit = None if seconds is None else time.monotonic() + seconds
        while True:
            with self.lock:
                self.take(0)
                if pid in self.ended:
                    return self.ended[pid]
            if limit is not None and time.monotonic() >= limit:
                return None
            select.select([self.socket], [], [], 0.05)

    def end(self):
        if self.process is not None:
            self.socket.close()
            self.process.wait()


class Forked(cluster.Process):
    _child_created = False  # forks_server.py creates the process: subprocess has nothing to reap

    def __init__(self, forks, name, argv, log, env, cwd):
        self.forks, self.name, self.log, self.args, self.returncode = forks, name, Path(log), [str(a) for a in argv], None
        self.pid = forks.start(argv=self.args, log=str(log), env=dict(env), cwd=str(cwd))

    def poll(self):
        if self.returncode is None:
            self.returncode = self.forks.status(self.pid, 0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            self.returncode = self.forks.status(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode
