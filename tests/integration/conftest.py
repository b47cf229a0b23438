"""Fixtures: one shared cluster of measured workers under strace, and separate clusters for
tests that kill processes. All are real processes; see scripts/cluster.py and forks.py."""

import contextlib
import fcntl
import gc
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("CREMA_QUIET", "on")  # tests read standard error
for folder in ("scripts", "examples", "tests/truth", "python"):
    sys.path.insert(0, str(ROOT / folder))

gc.disable()  # what is imported lives as long as the tests
import cloudpickle
import cluster
import cold
import forks
import jobs
import make_data
import share_out
import strace_reads
import ttbar
from accuracy import cell, pytest_runtest_call, pytest_sessionfinish  # noqa: F401 (used by pytest)
from distributed import Client

gc.freeze()
gc.enable()
# Workers of a user's script cannot import this module, so its classes are pickled by value.
cloudpickle.register_pickle_by_value(ttbar)

HANG_SECONDS = 400
# nohup or a shell's background makes us ignore these signals; the programs under test must not inherit that.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
# Dask's profiler and the loops in which it looks at itself take most of an idle cluster's CPU. test_rows_worker.py has all, as users do.
PLAIN_DASK = {} if os.environ.get("CREMA_ALL_CELLS") else {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
                                                           "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
                                                           "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
                                                           "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s"}
# Two thirds of what an idle worker's agent uses. Only tests about them and the shared clusters have them.
NO_HEAPS = {} if os.environ.get("CREMA_ALL_CELLS") else {"CREMA_HEAP": "off"}
# Python programs below the tests start with less CPU: quick_start/sitecustomize.py.
QUICK_START = [] if os.environ.get("CREMA_ALL_CELLS") else ["tests/integration/quick_start"]
EXPECTED_SKIPS = ROOT / "tests" / "expected-skips"


def expected_skips():
    """Lines "TEST: REASON"; TEST is the id without the folder, or a prefix of it followed by *."""
    for line in EXPECTED_SKIPS.read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition(": ")
            yield test, reason


def is_expected(test, reason):
    file, _, rest = test.partition("::")
    name = f"{os.path.basename(file)}::{rest}"
    return any((name == t or (t.endswith("*") and name.startswith(t[:-1]))) and reason == r
               for t, r in expected_skips())


def pytest_configure(config):
    config.addinivalue_line("markers", "matrix: a long cell of docs/accuracy.md; runs with CREMA_ALL_CELLS=1 only")
    config.addinivalue_line("markers", "further: a cell whose mechanism other cells test, or another environment; runs with CREMA_FURTHER_CELLS=1 (.ci/run), too")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return share_out.Portions(config, log)


def pytest_collection_modifyitems(config, items):
    """Long cells are deselected, not skipped, unless requested."""
    items[:] = share_out.in_order(items)
    if os.environ.get("CREMA_ALL_CELLS"):
        return
    marks = ["matrix"] if os.environ.get("CREMA_FURTHER_CELLS") else ["matrix", "further"]
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    items[:] = [item for item in items if not any(map(item.get_closest_marker, marks))]
    config.hook.pytest_deselected(items=left_out)


def pytest_generate_tests(metafunc):
    """With CREMA_ALL_CELLS=1 tests of failing disks run with both ways to write the journal."""
    if os.environ.get("CREMA_ALL_CELLS") and "journal_way" in metafunc.fixturenames:
        metafunc.parametrize("journal_way", ["on", "off"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def journal_way(request):
    """CREMA_IO_URING of the collectors; without a parameter the users' default."""
    return getattr(request, "param", "on")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip that is not listed is a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if not is_expected(item.nodeid, reason):
            report.outcome = "failed"
            report.longrepr = f"skipped ({reason}), and not listed in tests/expected-skips"


@pytest.fixture(autouse=True)
def hang_limit():
    """A test that hangs fails instead of blocking the others."""
    def expired(*_):
        pytest.fail("hangs", pytrace=True)

    signal.signal(signal.SIGALRM, expired)
    signal.alarm(HANG_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Separate directories for the tests, so that no user's token or journal is touched, and the path on
    which workers find the tests' functions."""
    base = tmp_path_factory.mktemp("home")
    modules = [str(ROOT / folder) for folder in (*QUICK_START, "tests/integration", "tests/truth", "python")]
    return {**PLAIN_DASK, **NO_HEAPS, "PYTHONPATH": os.pathsep.join([*modules, os.environ.get("PYTHONPATH", "")]),
            "XDG_CONFIG_HOME": str(base / "config"), "XDG_STATE_HOME": str(base / "state"),
            "CREMA_TOKEN_FILE": str(base / "config" / "crema" / "token")}


@pytest.fixture(scope="session", autouse=True)
def dask_forks(homes):
    cluster.Cluster.forks = forks.Forks(homes)
    yield
    cluster.Cluster.forks.end()
    cluster.Cluster.forks = None


@pytest.fixture(scope="session")
def disk():
    """A directory on the disk of the data files, for files that are read cold."""
    for left in (ROOT / "data").glob("test-*"):  # left by a run that was killed
        pid = left.name.removeprefix("test-")
        if pid == str(os.getpid()) or not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(left, ignore_errors=True)
    directory = ROOT / "data" / f"test-{os.getpid()}"
    directory.mkdir(parents=True)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def data(disk):
    """{codec: path} of copies of the generated files: no other process reads them while a test
    checks which of their pages are in memory."""
    found = {}
    for codec, path in make_data.files(ROOT / "data").items():
        assert path.exists(), f"run scripts/make_data.py first: no {path}"
        found[codec] = str(shutil.copy(path, disk))
    return found


@pytest.fixture
def new_cluster(tmp_path, homes):
    """Makes clusters that live as long as the test."""
    made = []

    def make(name="cluster", env=None):
        made.append(cluster.Cluster(tmp_path / name, {**homes, **(env or {})}))
        return made[-1]

    yield make
    for each in made:
        each.stop()


class Shared:
    """The shared cluster, its client, and what strace has counted."""

    def __init__(self, procs, client):
        self.procs, self.client = procs, client
        self.counters = [strace_reads.Counter(worker.log.with_suffix(".strace")) for worker in procs.workers]

    def reads(self):
        """{path: {"calls", "bytes"}} of both workers so far."""
        total = {}
        for counter in self.counters:
            for path, row in counter.count().items():
                sums = total.setdefault(path, {"calls": 0, "bytes": 0})
                for name in sums:
                    sums[name] += row[name]
        return total

    def kernel(self):
        """{pid: the kernel's counts for the worker's process so far}."""
        return {row["pid"]: row for row in self.client.run(jobs.rusage).values()}

    def charged(self):
        """Bytes read from storage that the kernel has charged to both workers so far."""
        return sum(row["storage_read_bytes"] for row in self.kernel().values())

    def sums(self, name):
        """{pid: crema's tasks + unattributed + unseen so far}, once the last samples have arrived. A run contains
        only workers that ran its tasks, so each worker runs one here."""
        from distributed import span

        with span(jobs.unique("sums")) as own:
            self.client.gather([self.client.submit(abs, -1, pure=False, workers=[w]) for w in self.client.scheduler_info()["workers"]])
        workers = self.settled(lambda r: True, run=own)["workers"]
        assert {w["pid"] for w in workers} == set(self.kernel())
        return {w["pid"]: sum(w[part][name] for part in ("tasks", "unattributed", "unseen")) for w in workers}

    def settled(self, enough, **options):
        return jobs.settled(self.procs, enough, **options)


shared_ends = contextlib.ExitStack()  # of the shared cluster: after its last test, not at the session's end


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if share_out.uses_shared(item) and not (nextitem and share_out.uses_shared(nextitem)):
        shared_ends.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory, homes, data):
    directory = tmp_path_factory.mktemp("shared")
    with contextlib.ExitStack() as stack:
        procs = stack.enter_context(cluster.Cluster(directory / "cluster", {**homes, "CREMA_HEAP": "on"}))
        procs.start_collector()
        procs.start_scheduler()
        for _ in range(2):
            procs.start_worker(prefix=strace_reads.prefix)
        client = stack.enter_context(Client(procs.address))
        client.wait_for_workers(2, timeout=120)
        # Imports everything on each worker, and all that the Runner needs, so that afterwards only the data is cold.
        handlers = {path: ["FSSpecSource"] for path in data.values()}
        handlers[data["zstd"]] += ["MultithreadedFileSource", "MemmapSource"]
        client.gather([client.submit(jobs.import_all, cloudpickle.dumps(ttbar.TTbarProcessor()), handlers, pure=False, workers=[address])
                       for address in client.scheduler_info()["workers"]])
        jobs.run_coffea(client, data.values(), chunksize=1000, maxchunks=1, handler="FSSpecSource")
        cold.warm(*set().union(*client.run(jobs.mapped_files).values()))
        shared_ends.push(stack.pop_all())
    with shared_ends:
        yield Shared(procs, client)


@pytest.fixture(scope="session")
def serial(tmp_path_factory, data, disk):
    """Results of the demo's analysis, run serially and unmeasured; with pytest-xdist one process counts for all."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "serial"
    place.mkdir(exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "truth.json").exists():
            jobs.serial_truth(place, make_data.files(ROOT / "data").values())
        return json.loads((place / "truth.json").read_text().replace(f"{ROOT / 'data'}/", f"{disk}/"))


class Demo:
    pass


def changes(before, after):
    return {pid: after[pid] - before[pid] for pid in before}


@pytest.fixture(scope="session")
def demo(shared, data, serial, tmp_path_factory):
    """One cold run of examples/ttbar.py over all codecs, as in scripts/demo."""
    directory = tmp_path_factory.mktemp("demo")
    result = Demo()
    result.files = list(data.values())
    cold.drop(*result.files)
    sums, kernel = shared.sums("storage_read_bytes"), shared.kernel()
    before, charged = shared.reads(), shared.charged()
    result.coffea_file = directory / "report.json"
    jobs.run_example(shared.procs, result.files, directory / "output.json", result.coffea_file)
    after = shared.reads()
    result.reads = {p: jobs.difference(after.get(p), before.get(p)) for p in result.files}
    result.resident = {p: cold.resident_bytes(p) for p in result.files}
    result.charged = shared.charged() - charged
    result.output = cluster.read_json(directory / "output.json")
    result.coffea = cluster.read_json(result.coffea_file)
    result.json = shared.settled(lambda r: len(r["chunks"]) >= 16)
    result.serial = serial
    result.sums = changes(sums, shared.sums("storage_read_bytes"))
    result.kernel = changes({pid: row["storage_read_bytes"] for pid, row in kernel.items()},
                                 {pid: row["storage_read_bytes"] for pid, row in shared.kernel().items()})
    return result
