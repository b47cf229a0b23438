"""More of what test_cause_first.py runs on workers: bad habits in analyses that cost time, and the same work without them."""

import json
import os
import subprocess
import sys
import time

import numpy as np
from cause_jobs import Base, Sum, compute


def json_table(path, entries):
    """A file of corrections as experiments publish them."""
    with open(path, "w") as file:
        json.dump({f"bin{i}": [i * 0.5, i / 7.0, {"up": i / 3.0, "down": i / 9.0}] for i in range(entries)}, file)
    return path


class LoadsEachTime(Sum):
    """Reads its corrections in each process() call."""

    kept = {}

    def __init__(self, path, once=False):
        self.path, self.once = path, once

    def load(self):
        with open(self.path) as file:
            return json.load(file)

    def process(self, events):
        if self.once:
            import cause_habits

            kept = cause_habits.LoadsEachTime.kept
            if self.path not in kept:
                kept[self.path] = self.load()
        else:
            self.load()
        return super().process(events)


class Prints(Sum):
    """Prints a line for each event."""

    def __init__(self, every=1):
        self.every = every

    def process(self, events):
        met = events.MET.pt.to_numpy()
        for i in range(0, len(met), self.every):
            print("event", i, "met", met[i], file=sys.stderr, flush=True)
        return super().process(events)


def lines_of(folder, seconds=0.5, least=300, most=30_000):
    """So many lines take this long if each is synced: a disk's sync takes from microseconds (in memory) to tens of milliseconds."""
    path = os.path.join(folder, "sync-probe")
    with open(path, "w") as file:
        began = time.monotonic()
        for i in range(50):
            file.write(f"event {i} passed\n")
            file.flush()
            os.fsync(file.fileno())
        one = (time.monotonic() - began) / 50
    os.unlink(path)
    return int(min(max(seconds / one, least), most))


class Logs(Sum):
    """A log of so many lines that is synced to disk after each line, or once."""

    def __init__(self, folder, lines, once=False):
        self.folder, self.lines, self.every = folder, lines, lines if once else 1

    def process(self, events):
        with open(os.path.join(self.folder, f"log-{os.getpid()}.txt"), "a") as file:
            for i in range(self.lines):
                file.write(f"event {i} passed\n")
                if i % self.every == 0:
                    file.flush()
                    os.fsync(file.fileno())
        return super().process(events)


class Appends(Base):
    """A selection that grows one value at a time."""

    def __init__(self, at_once=False):
        self.at_once = at_once

    def process(self, events):
        met, chosen = events.MET.pt.to_numpy(), np.array([])
        if self.at_once:
            chosen = met[met > 5]
        for value in () if self.at_once else met[met > 5]:
            chosen = np.append(chosen, value)
        return {"n": len(chosen)}


class Subprocess(Sum):
    """Starts a program in each chunk."""

    def __init__(self, seconds):
        self.seconds = seconds

    def process(self, events):
        if self.seconds:
            subprocess.run([sys.executable, "-S", "-c", f"import time\nwhile time.process_time() < {self.seconds}: pass"], check=True)
        return super().process(events)


class AllColumns(Base):
    """Reads all columns of the file to compute one number."""

    def process(self, events):
        import awkward as ak

        n = 0
        for name in set(events.fields) - {"PV"}:  # these files have only its z
            for field in events[name].fields or [None]:
                n += len(ak.materialize(events[name][field] if field else events[name]))
        return {"n": n}


class Table(Sum):
    """A processor that carries a table."""

    def __init__(self, mb):
        self.table = np.random.default_rng(1).random(mb << 17) if mb else None


def on_worker(seconds, slow):
    """One worker that is slower than the others."""
    from distributed import get_worker

    compute(seconds * (slow if get_worker().name.endswith("-1") else 1))
