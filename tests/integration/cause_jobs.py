"""What test_cause_first.py runs on workers: bad analyses, and the same analyses with the advice applied."""

import hashlib
import lzma
import multiprocessing.pool
import os
import socket
import time
import zlib

import findings_jobs
import numpy as np
from coffea import processor


def cpu():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def compute(seconds):
    """Computes without the interpreter lock, in pieces of a few milliseconds."""
    data, end = bytes(1 << 20), cpu() + seconds
    while cpu() < end:
        hashlib.sha256(data)


class Base(processor.ProcessorABC):
    def postprocess(self, accumulator):
        return accumulator


class Sum(Base):
    """Reads one column."""

    def process(self, events):
        return {"events": len(events), "met": float(events.MET.pt.to_numpy().sum())}


class Columns(Base):
    """Reads every column of these collections."""

    def __init__(self, *collections):
        self.collections = collections

    def process(self, events):
        import awkward as ak

        total = 0.0
        for name in self.collections:
            for field in events[name].fields:
                if not field.endswith(("IdxG", "Idx1G", "Idx2G")):
                    total += float(ak.sum(ak.values_astype(events[name][field], "float64")))
        return {"sum": total}


class OneSlow(Sum):
    """One of the chunks computes for a long time."""

    def __init__(self, seconds, each):
        self.seconds, self.each = seconds, each

    def process(self, events):
        compute(self.seconds if events.metadata["entrystart"] == 0 else self.each)
        return super().process(events)


class OpensAgain(Base):
    """Calls uproot.open for each selection."""

    def __init__(self, times, once=False):
        self.times, self.once = times, once

    def process(self, events):
        import uproot

        m, total, column = events.metadata, 0.0, None
        for i in range(self.times):
            if column is None or not self.once:
                with uproot.open(m["filename"]) as file:
                    column = file[m["treename"]]["GenPart_pt"].array(library="np", entry_start=m["entrystart"], entry_stop=m["entrystop"])
            total += float(len(column)) * i
        return {"sum": total}


class PythonLoop(Base):
    """Computes one column event by event."""

    def __init__(self, arrays=False):
        self.arrays = arrays

    def process(self, events):
        met, phi = events.MET.pt.to_numpy(), events.MET.phi.to_numpy()
        if self.arrays:
            return {"px": float((met * np.cos(phi)).sum())}
        px = 0.0
        for i in range(len(met)):
            for k in range(2000):
                px += float(met[i]) * k if k else 0.0
        return {"px": px}


class Packs(Sum):
    """Compresses what it returns."""

    def __init__(self, preset):
        self.preset = preset

    def process(self, events):
        out = super().process(events)
        met = np.concatenate([events.MET.pt.to_numpy(), events.MET.phi.to_numpy()])
        raw = b"".join((met * (1 + n)).astype(np.float32).tobytes() for n in range(6))  # different bytes each time
        packed = lzma.compress(raw, preset=9) if self.preset == "lzma" else zlib.compress(raw, 1)
        return {**out, "packed": len(packed)}


class ReadsBeside(Sum):
    """Reads the whole file in addition, for its checksum."""

    def __init__(self, times=1):
        self.times = times

    def process(self, events):
        for _ in range(self.times):
            found = hashlib.md5()
            with open(events.metadata["filename"], "rb") as file:
                while piece := file.read(1 << 20):
                    found.update(piece)
        return super().process(events)


class Leaks(Sum):
    kept = []

    def __init__(self, size):
        self.size = size

    def process(self, events):
        import cause_jobs

        cause_jobs.Leaks.kept.append(bytearray(os.urandom(1 << 20)) * (self.size >> 20))
        compute(0.1)
        return super().process(events)


class Big:
    """An output that is slow to add."""

    def __init__(self, bins):
        self.bins = bins

    def __add__(self, other):
        total = {}
        for side in (self.bins, other.bins):
            for k in side:
                total[k] = total.get(k, 0) + side[k]
        return Big(total)


class BigOutput(Base):
    """A dictionary with each event's number instead of a histogram."""

    def __init__(self, bins):
        self.bins = bins

    def process(self, events):
        start = events.metadata["entrystart"]
        if not self.bins:
            return {"hist": np.histogram(events.MET.pt.to_numpy(), 100)[0].sum()}
        return {"hist": Big({start * 1000 + i: i for i in range(self.bins)})}


class Fails(Sum):
    """Fails once, after most of its work."""

    def __init__(self, folder):
        self.folder = folder

    def process(self, events):
        compute(0.1)
        m = events.metadata
        marker = os.path.join(self.folder, f"{os.path.basename(m['filename'])}-{m['entrystart']}")
        if self.folder and not os.path.exists(marker):
            open(marker, "w").close()
            raise ValueError("not a number in Muon_pt")
        return super().process(events)


# --- Dask tasks without coffea

def rest(seconds):
    time.sleep(seconds)


def poll(path):
    """Sleeps in a loop, as code that waits for a file does."""
    for _ in range(10):
        time.sleep(0.1)


def spin_threads(seconds, threads):
    """Starts threads, as numpy and other libraries do."""
    with multiprocessing.pool.ThreadPool(threads) as pool:
        pool.map(compute, [seconds / threads] * threads)


def small_reads(path, calls, size):
    fd = os.open(path, os.O_RDONLY)
    try:
        return sum(len(os.pread(fd, size, i * size)) for i in range(calls))
    finally:
        os.close(fd)


def around_the_cache(path, seconds):
    return findings_jobs.read_around_the_cache(path, seconds, 1 << 20)


def arrays(n):
    return np.arange(n)


def noise(n):
    """Data that no codec can compress: one megabyte, repeated."""
    return np.resize(np.frombuffer(os.urandom(1 << 20), np.uint8), n)


def size_of(data, seconds=0):
    return len(data)


def nothing(i):
    return i


def batch(first, n):
    return [nothing(i) for i in range(first, first + n)]


def ask(address, times, seconds):
    with socket.create_connection(address) as s:
        for _ in range(times):
            s.sendall(b"GET /%f HTTP/1.1\r\nHost: x\r\n\r\n" % seconds)
            s.recv(1000)


def import_slowly(folder, number):
    """A package of 2 MB whose import takes a second on each fresh worker."""
    import importlib
    import sys

    name = f"slow_package_{number}"
    path = os.path.join(folder, f"{name}.py")
    if not os.path.exists(path):
        with open(path + str(os.getpid()), "w") as f:
            f.write(f"import time\nTEXT = {'x' * 2_000_000!r}\ntime.sleep(1.5)\n")
        os.rename(path + str(os.getpid()), path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.import_module(name)
