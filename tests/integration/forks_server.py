# SPDX-License-Identifier: BSD-3-Clause
"""The process that has imported Dask and forks for forks.py: it reads a line of JSON for each program, and writes its id and later its status."""

import atexit
import contextlib
import importlib.metadata
import json
import os
import select
import signal
import socket
import sys
import threading
from multiprocessing import resource_tracker


def become(wanted):
    """Sets up this child as exec would have."""
    os.setsid()
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(wanted["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for fd, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, target)
    tracker = resource_tracker.getfd()  # one tracker for all nannies: each would start its own program
    os.closerange(3, tracker)
    os.closerange(tracker + 1, 1 << 12)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    sys.argv = wanted["argv"]
    program = sys.argv[0]
    sys.path[0:1] = [os.path.dirname(os.path.realpath(program)), *map(os.path.abspath, wanted["env"].get("PYTHONPATH", "").split(os.pathsep))]
    sys.modules["__main__"].__file__ = program  # a nanny sends it to its worker
    import dask.config

    dask.config.refresh()


def reaped(channel):
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            channel.sendall(json.dumps({found[0]: os.waitstatus_to_exitcode(found[1])}).encode() + b"\n")


def serve(channel):
    """Forks for each request until the channel's other end is closed; in each child, returns the request."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    rest = b""
    while True:
        ready = select.select([channel, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1 << 10)
            reaped(channel)
        if channel in ready:
            data = channel.recv(1 << 20)
            if not data:
                os._exit(0)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    return json.loads(line)
                channel.sendall(json.dumps({"begun": pid}).encode() + b"\n")


def start_tracker():
    """Without its warnings, which are about workers that tests kill."""
    ours, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    resource_tracker.ensure_running()
    os.dup2(ours, 2)


def finish(status):
    """Ends as the interpreter does, but does not clear each module, which takes a quarter of a second of CPU."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(fd):
    import gc

    import dask.cli

    for command in importlib.metadata.entry_points(group="dask_cli"):
        command.load()
    start_tracker()
    gc.freeze()
    become(serve(socket.socket(fileno=fd)))
    status = 0
    try:
        dask.cli.run_cli()
    except SystemExit as end:
        status = end.code or 0
    finish(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
