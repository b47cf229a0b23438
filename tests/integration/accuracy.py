"""Cells of docs/accuracy.md. A test passes a truth and crema's value to the fixture cell(), which asserts that they agree.
With CREMA_ACCURACY_OUT=FILE they are also recorded for tests/truth/render_accuracy.py."""

import json
import math
import os
from pathlib import Path

import pytest

# number -> what it is; the order is that of the document
TABLES = {
    "storage_read_bytes": "Bytes from storage",
    "read_bytes": "Bytes that read calls returned",
    "read_calls": "Read calls that returned",
    "mapped_bytes": "Bytes mapped for reading",
    "decompress_calls": "Decompress calls",
    "decompress_in_bytes": "Compressed bytes that were decompressed",
    "decompress_out_bytes": "Bytes that decompression returned",
    "basket_bytes": "Baskets and pages that uproot used",
    "columns": "Bytes and requests by column",
    "compress_calls": "Compress calls",
    "compress_in_bytes": "Bytes that were compressed",
    "compress_out_bytes": "Compressed bytes that compression returned",
    "reread_bytes": "Bytes read more than once",
    "cached_bytes": "Bytes from the page cache",
    "coffea": "Numbers of coffea's own report",
    "sums": "tasks + unattributed + unseen is the whole process",
    "killed": "A task whose worker was killed",
    "identity": "Wall time is the sum of its classes",
    "throttled": "Waiting for a throttled disk",
    "executors": "coffea's executors other than Dask's",
    "network": "Bytes on the network by task",
    "waits": "Waits and network bytes in reports",
    "xrootd": "Bytes and waits by XRootD",
    "threads": "Tasks side by side in one worker",
    "blocked": "Long waits by call site, ns",
    "preloads": "Other preloaded libraries before and after ours",
    "versions": "Versions of Python, Dask and coffea",
}

COFFEA = "coffea's report"
MINCORE = "pages in the page cache after a cold read (mincore)"
LOCKED = "0, its pages are locked in memory"
RUSAGE = "ru_inblock of the workers (getrusage in Python)"
STRACE = "strace of the worker"
UPROOT = "uproot's decompressors counted, serial job without crema"

rows = []


def percent(part, whole):
    """A bound that is never too small, with two digits."""
    share = 100 * abs(part) / abs(whole)
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return round(math.ceil(share / step - 1e-9) * step, 12)


def judge(truth, crema, tolerance, unknown):
    """(difference or None, verdict, right?). truth: a number, (least, most), or None if crema may not report
    a value; unknown: the reason why crema may report the value as unknown."""
    if crema is None:
        right = unknown is not None
        return None, f"not measurable, reported as unknown: {unknown}" if right else "unknown, although known", right
    if truth is None:
        return None, "a value where it cannot be known", False
    if isinstance(truth, tuple):
        least, most = truth
        difference = max(least - crema, crema - most, 0) or 0
        right, far = difference <= tolerance, max(abs(crema - least), abs(most - crema))
    else:
        difference = crema - truth
        right, far, most = abs(difference) <= tolerance, abs(difference), truth
    if not right:
        return difference, "wrong", False
    if round(far, 9) == 0:  # seconds are sums of nanoseconds
        return difference, "exact", True
    return difference, f"within {percent(far, most):g} %" if most else f"within {far:,}", True


@pytest.fixture
def cell(request):
    """cell(table, name, how the truth is known, truth, crema's value, tolerance): wrong cells fail the
    test only at its end, so that its other cells are recorded too."""
    request.node.wrong_cells = []

    def check(table, name, how, truth, crema, tolerance=0, unknown=None):
        assert table in TABLES
        difference, verdict, right = judge(truth, crema, tolerance, unknown)
        rows.append({"table": table, "cell": name, "how": how, "truth": truth, "crema": crema,
                     "difference": difference, "verdict": verdict, "right": right})
        if not right:
            request.node.wrong_cells.append(f"{table}, {name}: truth {truth} ({how}), crema {crema}: {verdict}")

    return check


def not_tried(table, name, why):
    """A cell that this machine cannot run. The document lists it as neither right nor wrong."""
    rows.append({"table": table, "cell": name, "how": "", "truth": None, "crema": None, "difference": None,
                 "verdict": f"not tried here: {why}", "right": True})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    wrong = getattr(item, "wrong_cells", None)
    if wrong and outcome.excinfo is None:
        outcome.force_exception(AssertionError("wrong cells:\n" + "\n".join(wrong)))


def environment():
    import platform
    from importlib.metadata import version

    import test_storage

    found = {"kernel": platform.release().split("-")[0], "file system of the data": test_storage.file_system(
        test_storage.DATA), "cores": os.cpu_count(), "Python": platform.python_version()}
    return {**found, **{name: version(name) for name in ("coffea", "dask", "distributed", "uproot", "cramjam")}}


def pytest_sessionfinish(session, exitstatus):
    """With pytest -n each process writes its rows to a separate file, and the main process merges them."""
    path = os.environ.get("CREMA_ACCURACY_OUT")
    if not path:
        return
    process = getattr(session.config, "workerinput", None)
    if process:
        Path(f"{path}.{process['workerid']}").write_text(json.dumps(rows))
        return
    for part in sorted(Path(path).parent.glob(Path(path).name + ".gw*")):
        rows.extend(row for row in json.loads(part.read_text()) if row not in rows)
    Path(path).write_text(json.dumps({"tables": TABLES, "environment": environment(), "status": int(exitstatus),
                                      "rows": rows}, indent=1))
