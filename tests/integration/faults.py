# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of faults: tasks that die, and what completeness must report afterwards."""

import re

import jobs

PATIENT = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}


# --- on a worker

def count_up(n):
    return n + 1


def read_a_little(path, n):
    with open(path, "rb", buffering=0) as file:
        return len(file.read(n))


def timed_read(path, n):
    """The time of small reads as the task measures it, with the calls around them."""
    import time

    began = time.perf_counter()
    for _ in range(20):
        with open(path, "rb", buffering=0) as file:
            file.read(n)
    return time.perf_counter() - began


def read_for(path, seconds, marker):
    """Reads repeatedly for that many seconds; returns the number of bytes."""
    import time

    total, end = 0, time.monotonic() + seconds
    with open(path, "rb", buffering=0) as file:
        open(marker, "w").close()
        while time.monotonic() < end:
            total += len(file.read(1 << 16))
            time.sleep(0.01)
    return total


def read_once_marked(path, marker):
    """(size of the file, which is read whole; whether an earlier attempt read it): the first attempt writes its pid."""
    import os

    again = os.path.exists(marker)
    with open(path, "rb", buffering=0) as file:
        size = len(file.read())
    if not again:
        with open(marker, "w") as file:
            file.write(str(os.getpid()))
    return size, again


def read_and_die(how, path, marker):
    """Reads the file; then the first attempt ends its process, the next one does not."""
    import ctypes
    import os
    import resource
    import signal
    import time

    size, again = read_once_marked(path, marker)
    if again:
        return size
    if how == "_exit":
        os._exit(3)
    elif how == "abort":
        os.abort()
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "cpu limit":
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1, resource.RLIM_INFINITY))
        while True:
            pass
    elif how == "memory":
        held = []
        while not os.path.exists(f"{marker}.go"):
            time.sleep(0.05)
        while True:
            held.append(bytearray(os.urandom(1 << 20)))
    else:
        os.kill(os.getpid(), getattr(signal, how))
    signal.pause()


def hold_and_wait(path, marker, limit_bytes):
    """Grows to just above the nanny's limit and waits to be killed."""
    import os
    import signal

    size, again = read_once_marked(path, marker)
    if again:
        return size
    held = []
    while int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") < limit_bytes * 97 // 100:
        held.append(bytearray(os.urandom(1 << 20)))
    signal.pause()


# --- of a report

def attempts(report, prefix):
    return sorted(jobs.tasks_of(report, prefix), key=lambda t: t["start"])


def by_pid(report):
    return {w["pid"]: w for w in report["workers"]}


def whole(report):
    """Completeness reports nothing missing; unknown, but at least 0, if a worker is silent."""
    done = report["completeness"]
    silent = any(w["silent"] for w in report["workers"])
    for name in ("records_refused", "tasks_refused", "records_lost"):
        assert (done[name], done[f"{name}_at_least"]) == (None if silent else 0, 0), (name, done)
    assert done["records_bad"] == 0, done
    assert done["torn_files"] == []


def line_of(procs, directory=None, run="last"):
    """The printed report's line about completeness; long sentences are wrapped, whatever COLUMNS is."""
    done = procs.report("--run", run, directory=directory)
    assert done.returncode == 0, done.stderr
    line, = re.findall(r"\d+ workers seen, .*?\d+ torn", done.stdout, re.DOTALL)
    return " ".join(line.split())
