# SPDX-License-Identifier: BSD-3-Clause
"""A cgroup (version 1 or 2) with little memory, and one that can be frozen."""

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def own_group(controller):
    """The folder of this process's cgroup for that controller; None if there is none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, group = line.split(":", 2)
        if controller in names.split(","):
            return ROOT / controller / group.lstrip("/")
    unified = ROOT / "cgroup.controllers"
    return ROOT if unified.exists() and controller in [*unified.read_text().split(), "freezer"] else None


class Group:
    """A cgroup below ours; put() moves processes into it, and the end moves them out again."""

    def __init__(self, controller, name):
        self.parent = own_group(controller)
        if self.parent is None:
            raise OSError(f"no {controller} groups")
        self.old = (self.parent / "cgroup.procs").exists() and not (self.parent / "cgroup.controllers").exists()
        self.path = self.parent / f"crema-test-{os.getpid()}-{name}"
        self.path.mkdir()

    def write(self, name, text):
        (self.path / name).write_text(text)

    def number(self, name, key):
        for line in (self.path / name).read_text().splitlines():
            if line.split()[0] == key:
                return int(line.split()[1])
        raise KeyError(key)

    def put(self, pid):
        self.write("cgroup.procs", str(pid))

    def put_out(self, pid):
        (self.parent / "cgroup.procs").write_text(str(pid))

    def pids(self):
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]

    def limit_memory(self, limit_bytes):
        self.write("memory.limit_in_bytes" if self.old else "memory.max", str(limit_bytes))

    def oom_kills(self):
        return self.number("memory.oom_control" if self.old else "memory.events", "oom_kill")

    def freeze(self, frozen):
        if self.old:
            self.write("freezer.state", "FROZEN" if frozen else "THAWED")
            while frozen and (self.path / "freezer.state").read_text().strip() != "FROZEN":
                time.sleep(0.05)
        else:
            self.write("cgroup.freeze", "1" if frozen else "0")
            while self.number("cgroup.events", "frozen") != frozen:
                time.sleep(0.05)

    def remove(self):
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            with contextlib.suppress(OSError):
                for pid in self.pids():
                    self.put_out(pid)
                self.path.rmdir()
                return
            time.sleep(0.1)


@contextlib.contextmanager
def group(controller, name):
    """Yields a Group, or None if this machine does not allow one."""
    try:
        made = Group(controller, name)
    except OSError:
        yield None
        return
    try:
        yield made
    finally:
        made.remove()
