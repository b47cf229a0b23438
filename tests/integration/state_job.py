"""An analysis with a LocalCluster inside, for test_run_state.py: `state_job.py MODE FOLDER [FILE...]`.

It writes its own record to FOLDER/said, one JSON line each.
"""

import json
import os
import sys
import time
from pathlib import Path

LONG = int(os.environ.get("STATE_LONG", "45"))  # seconds of a long task that is not stalled
kept = []


def say(folder, **what):
    with open(Path(folder) / "said", "a") as out:
        print(json.dumps(what), file=out, flush=True)


def nap(i, seconds=0.2):
    time.sleep(seconds)
    return i


def keep(i):
    """As a processor that leaks 48 MB with each chunk."""
    kept.append(bytearray(os.urandom(1 << 20)) * 46)
    time.sleep(0.1)
    return i


def hang(i, folder):
    """Waits in C for a lock that is never released."""
    import threading

    if i == 7:
        say(folder, pid=os.getpid(), thread=threading.get_native_id())
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()  # forever
    return nap(i, 0.05)


def drip(i):
    """Reads a little at intervals, as from a slow server."""
    if i == 7:
        import socket
        import threading

        with socket.create_server(("127.0.0.1", 0)) as server:
            one = socket.create_connection(server.getsockname())
            other, _ = server.accept()
        threading.Thread(target=lambda: [(time.sleep(1), other.sendall(bytes(1500))) for _ in range(LONG)], daemon=True).start()
        for _ in range(LONG):
            one.recv(1500, socket.MSG_WAITALL)
    return nap(i, 0.05)


def compute(i):
    until = time.process_time() + (LONG if i == 7 else 0.05)
    while time.process_time() < until:
        pass


def die(i, folder):
    """Task 3 kills its worker, the first time."""
    if i == 3 and not (Path(folder) / "died").exists():
        (Path(folder) / "died").touch()
        os._exit(1)
    return nap(i, 0.05)


def fail(i):
    nap(i)
    if i == 5:
        raise ValueError("chunk 5 is bad\nand this is a second line")
    return i


class Trap(Exception):
    """Records the callers of its code: Dask's own functions call it, to pickle and to log it."""

    def seen(self):
        with open(self.folder + "/ran", "a") as out:
            print(sys._getframe(2).f_code.co_filename, sys._getframe(2).f_code.co_name, file=out)

    def __str__(self):
        self.seen()
        return "from __str__"

    @property
    def args(self):
        self.seen()
        return ("from args",)

    @args.setter
    def args(self, value):
        pass


class Text(str):
    pass


def raise_one(i, folder):
    """Raises each of these in a separate task; test_run_state.py has what a report may contain of it."""
    if i == 0:
        error = Trap("plain text")
        error.folder = folder
        raise error
    if i == 1:
        raise KeyError(Text("a str of its own kind"))
    if i == 2:
        open(folder + "/not there")
    if i == 3:
        raise RuntimeError("x" * 199 + "\u00e9" * 100)
    if i == 4:
        raise RuntimeError("\x1b[31mred\x07\ud800")
    if i == 5:
        raise RuntimeError()
    if i == 6:
        try:
            {}["no key"]
        except KeyError as inner:
            raise RuntimeError("outer") from inner
    raise RuntimeError("\x1b[31mred")


def raise_all(folder, client):
    futures = client.map(raise_one, range(8), [folder] * 8, pure=False, key="raise")
    client.gather(futures, errors="skip")


def run(mode, folder, files, client):
    if mode == "raise":
        return raise_all(folder, client)
    if mode == "coffea":
        return run_coffea(folder, files, client)
    late = [0.2] * 24 + [float(os.environ.get("STATE_LATE", 0.2))] * 36  # tasks that still run however late a report is read
    function, args = {"nap": (nap, (late,)), "keep": (keep, ()), "hang": (hang, (folder,)), "compute": (compute, ()), "drip": (drip, ()),
                      "die": (die, (folder,)), "fail": (fail, ()), "cancel": (nap, ())}[mode]
    futures = client.map(function, range(60), *(a if isinstance(a, list) else [a] * 60 for a in args), pure=False, key=mode)
    if mode == "cancel":
        client.gather(futures[:20])
        client.cancel(futures)
    else:
        client.gather(futures)


def run_coffea(folder, files, client):
    import jobs
    import state_processor

    jobs.run_coffea(client, files, chunksize=20_000, processor_instance=state_processor.Failing())


def main(mode, folder, *files):
    from distributed import Client, LocalCluster

    if mode == "nothing":
        return
    workers = 1 if mode in ("coffea", "fail", "raise", "cancel") else 2
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit="1000MB") as cluster:
        with Client(cluster) as client:
            say(folder, ready=True)
            try:
                run(mode, folder, files, client)
                say(folder, done=True)
                time.sleep(float(os.environ.get("STATE_STAY", "0")))
            except Exception as error:
                say(folder, type=type(error).__name__, text=str(error))
                raise


if __name__ == "__main__":
    main(*sys.argv[1:])
