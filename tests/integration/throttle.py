"""A disk that is slow for one process: the kernel's block throttling by cgroups, version 1 or 2."""

import contextlib
import os
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
NAME = f"crema-test-{os.getpid()}"


def device_of(path):
    """The whole disk below path, as named in the kernel's rules; None if there is none."""
    number = os.stat(path).st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not place.exists():
        return None
    place = place.resolve()
    return ((place.parent if (place / "partition").exists() else place) / "dev").read_text().strip()


def group_for(device, bytes_per_second):
    """Makes a cgroup with a limited read rate; OSError if this machine has no such cgroups."""
    if (V1 / "blkio.throttle.read_bps_device").exists():
        group, rule, text = V1 / NAME, "blkio.throttle.read_bps_device", f"{device} {bytes_per_second}"
    else:
        group, rule, text = V2 / NAME, "io.max", f"{device} rbps={bytes_per_second}"
    group.mkdir()
    try:
        (group / rule).write_text(text)
    except OSError:
        group.rmdir()
        raise
    return group


@contextlib.contextmanager
def slow_disk(path, bytes_per_second):
    """Yields put(pid), or None if the disk below path cannot be throttled."""
    device = device_of(path)
    try:
        group = group_for(device, bytes_per_second) if device else None
    except OSError:
        group = None
    if group is None:
        yield None
        return
    moved = []

    def put(pid):
        (group / "cgroup.procs").write_text(str(pid))
        moved.append(pid)

    try:
        yield put
    finally:
        for pid in moved:
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(str(pid))
        with contextlib.suppress(OSError):
            group.rmdir()


@contextlib.contextmanager
def delay_accounting():
    """Enables the kernel's delay accounting; yields whether that was possible."""
    switch = Path("/proc/sys/kernel/task_delayacct")
    try:
        before = switch.read_text()
        switch.write_text("1")
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        switch.write_text(before)
