"""What the tests run on workers, and how they wait for the results of the measurement."""

import contextlib
import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


# --- on the client

@contextlib.contextmanager
def measured(procs, workers=1, scheduler=None, **options):
    """A client of a new collector, scheduler and `workers` workers with these options, once all of them have connected."""
    from distributed import Client

    procs.start_collector()
    procs.start_scheduler(scheduler)
    for _ in range(workers):
        procs.start_worker(**options)
    with Client(procs.address) as client:
        client.wait_for_workers(workers, timeout=120)
        yield client


def run_coffea(client, files, chunksize=50_000, maxchunks=None, savemetrics=True, handler=None, tree="Events", processor_instance=None):
    """The example's analysis from this process; returns (sums, coffea's report or None)."""
    import ttbar
    import uproot
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    NanoAODSchema.warn_missing_crossrefs = False
    run = processor.Runner(
        executor=processor.DaskExecutor(client=client, status=False, retries=10), schema=NanoAODSchema,
        chunksize=chunksize, maxchunks=maxchunks, savemetrics=savemetrics, metadata_cache={})
    fileset = {Path(p).stem: {"files": {str(p): tree}} for p in files}
    options = {"handler": getattr(uproot, handler)} if handler else {}
    instance = processor_instance or ttbar.TTbarProcessor()
    out = run(fileset, processor_instance=instance, uproot_options=options)
    out, report = out if savemetrics else (out, None)
    return (out if processor_instance else ttbar.summary(out)), report


def run_example(procs, files, output, report=None, extra=(), workers=2):
    argv = [sys.executable, ROOT / "examples" / "ttbar.py", "--scheduler", procs.address, "--workers", str(workers),
            "--files", *files, "--output", output, *extra]
    if report:
        argv += ["--report", report]
    done = subprocess.run(argv, env=procs.env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def serial_truth(directory, files, *extra):
    output = directory / "truth.json"
    subprocess.run([sys.executable, ROOT / "tests" / "truth" / "count_decompress.py", "--files", *files,
                    "--output", output, *extra], check=True, capture_output=True, timeout=300)
    return json.loads(output.read_text())


def output_of(serial, files):
    """The serial run's results for these files. Each histogram has one entry per selected event, with the event's weight."""
    names = {Path(file).stem for file in files}
    sums = {name: {k: v for k, v in serial["output"][name].items() if k in names} for name in ("events", "selected", "sum_weights")}
    entries = [sum(sums[name].values()) for name in ("sum_weights", "selected")]
    return {**sums, "histograms": dict.fromkeys(serial["output"]["histograms"], entries)}


def finished(report):
    return all(t["status"] not in (None, "running") for t in report["tasks"])


def newest(procs, directory=None):
    """The run that began last, of any kind: `last` prefers an analysis with coffea."""
    # Uses the segments' totals: reading the shared cluster's whole journal takes a second.
    rows = procs.report("--list", "--read-whole", "1", directory=directory).stdout.splitlines()[1:]
    ids = [row.split()[0] for row in rows if row.strip()[:2] == "20"]
    return ids[-1] if ids else "last"


def sampled_bytes(rows):
    """Received, of rows of sampled stacks."""
    return sum(row["sampled_network_read_bytes"] for row in rows)


def settled(procs, enough, run=None, seconds=60, directory=None, totals=True):
    """The run's JSON once enough(it) holds and the workers' totals have arrived; without `totals` the records of its tasks are
    enough. After `seconds` it is returned unchecked: the test's own assertion then shows what is missing."""
    import cluster

    def read():
        return procs.report_json(run or newest(procs, directory), directory)

    first = time.monotonic()
    report = None
    while (began := time.monotonic()) < first + seconds:
        try:
            report = read()
        except cluster.StepFailed:
            report = None
        if report is not None and finished(report) and enough(report):
            return with_totals(read, report) if totals else report
        now = time.monotonic()
        time.sleep(max(0.2, now - began, min(0.5, (now - first) / 8)))  # leave half of a busy machine's time to others
    return report if report is not None else read()


def with_totals(read, report):
    """The report once each worker was last seen more than a second after this call: since then its event loop has read the
    process's numbers (each half second), and its agent has sent them (each second). It does not wait for workers that are silent or
    whose clocks differ."""
    began, took = time.time(), 0.0
    now = began
    while now < began + 10:
        living = [w for w in report["workers"] if not w["goodbye"]]
        speaking = [w for w in living if not w["silent"] and w["last_seen"] and abs(now - w["last_seen"]) < 3]
        patience_s = 0 if report["workers"] and len(speaking) == len(living) else 2
        if now >= began + patience_s and all(w["last_seen"] > began + 1 for w in speaking):
            break
        # A whole number of seconds after it was last seen: an earlier report costs time and shows nothing new.
        due = max((w["last_seen"] + math.ceil(max(began + 1 - w["last_seen"], 0)) for w in speaking), default=began + 1)
        time.sleep(max(0.2, took, due + 0.05 - now))
        now, report = time.time(), read()
        took = time.time() - now
    check_closed(report)
    return report


def check_closed(report):
    """No thread was counted twice: otherwise the worker's threads would have used more CPU than its process."""
    for worker in report["workers"]:
        unseen, all_of_it = worker["unseen"]["cpu_seconds"], worker["rusage"]["cpu_seconds"]
        assert unseen is None or unseen > -0.02 - 0.01 * all_of_it, (worker["worker"], unseen, all_of_it)


def tasks_of(report, prefix):
    return [t for t in report["tasks"] if t["prefix"] == prefix]


def submit(procs, client, name, function, *args, count=1, totals=True, **options):
    """Runs one function in a separate span; returns (its result, the attempts in the run's JSON). With totals=False it waits
    for the attempts only, not for their workers' totals."""
    from distributed import span

    with span(name) as own:
        result = client.submit(function, *args, pure=False, key=unique(name), **options).result(timeout=300)
    report = settled(procs, lambda r: len(tasks_of(r, name)) >= count, run=own, totals=totals)
    return result, tasks_of(report, name)


def unique(name):
    """A key whose prefix is name: Dask removes the hash."""
    import uuid

    return f"{name}-{uuid.uuid4().hex}"


def total(rows, name):
    """The sum, or None if one of the values is unknown."""
    values = [row[name] for row in rows]
    return None if None in values else sum(values)


def difference(after, before):
    after, before = after or {"calls": 0, "bytes": 0}, before or {"calls": 0, "bytes": 0}
    return {name: after[name] - before[name] for name in after}


def by_file(report, name):
    """Sums for files that have the value: of a file on a server only its requests are known."""
    sums = {}
    for row in report["files"]:
        if row[name] is not None:
            path = str(Path(row["path"]).resolve())
            sums[path] = sums.get(path, 0) + row[name]
    return sums


# --- on a worker

def read_whole(path, size=1 << 20):
    n = 0
    with open(path, "rb", buffering=0) as file:
        while data := file.read(size):
            n += len(data)
    return n


def read_whole_and_cgroup(path):
    """As xgboost, joblib and OpenMP, which read the number of cores from the cgroup."""
    controls = [p for pattern in ("cgroup.procs", "*/cgroup.procs") for p in Path("/sys/fs/cgroup").glob(pattern)]
    read = sum(len(p.read_bytes()) for p in [*controls, Path("/proc/self/status")])
    return read_whole(path), read, len(controls)


def read_whole_in_turn(path, ready, others, size=1 << 16):
    """Starts to read once `others` tasks have reached this point, so that they overlap."""
    import os

    open(os.path.join(ready, str(os.getpid()) + os.path.basename(path)), "w").close()
    while len(os.listdir(ready)) < others:
        time.sleep(0.01)
    return read_whole(path, size)


def read_ranges(path, ranges):
    import os

    fd = os.open(path, os.O_RDONLY)
    try:
        return sum(len(os.pread(fd, length, offset)) for offset, length in ranges)
    finally:
        os.close(fd)


def read_mapped(path):
    import mmap

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        return sum(view[::mmap.PAGESIZE])


def read_slowly_once(path, size, marker):
    """The first attempt reads until it is killed; the next one finds the marker and returns."""
    import os

    if os.path.exists(marker):
        return 0
    with open(path, "rb", buffering=0) as file:
        open(marker, "w").close()
        while True:
            while file.read(size):
                time.sleep(0.001)
            file.seek(0)


def import_all(analysis, handlers):
    """Runs the pickled analysis on a few events of each file, with each of its handlers."""
    import pickle

    import uproot
    from coffea.nanoevents import NanoAODSchema, NanoEventsFactory

    for path, names in handlers.items():
        for name in names:
            with uproot.open(path, handler=getattr(uproot, name)) as file:
                factory = NanoEventsFactory.from_root(file=file, treepath="Events", schemaclass=NanoAODSchema, metadata={"dataset": path},
                                                      mode="virtual", entry_start=0, entry_stop=1000)
                pickle.loads(analysis).process(factory.events())


def rusage():
    import os
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"pid": os.getpid(), "cpu_seconds": used.ru_utime + used.ru_stime, "storage_read_bytes": used.ru_inblock * 512}


def mapped_files():
    """Libraries and other files that this process has mapped."""
    import os

    names = (line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if len(line.split(maxsplit=5)) == 6)
    return {name for name in names if os.path.isfile(name) and not name.startswith("/dev/")}
