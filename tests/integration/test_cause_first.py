"""Bad analyses whose true cause is the first finding, with their advice applied, and healthy ones without a warning.

CREMA_ADVICE_TABLE=FILE writes a table of the predicted and measured gains, for scripts/try-advice.
"""

import os
from pathlib import Path

import cause_cases
import cause_jobs
import cloudpickle
import cluster
import jobs
import pytest
import ttbar
from distributed import Client

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = {"threads": [6], "pair": [1, 1], "spilling": [1]}
# 300 MB of results in memory, whatever the process's other memory: on the other clusters nothing spills.
MEMORY = "DASK_DISTRIBUTED__WORKER__MEMORY__"
ENVIRONMENT = {"spilling": {MEMORY + "TARGET": "0.1", MEMORY + "SPILL": "False", MEMORY + "PAUSE": "False"}}
CASES, HEALTHY = cause_cases.tried("CREMA_ALL_CELLS" in os.environ, "CREMA_FURTHER_CELLS" in os.environ), cause_cases.HEALTHY
BUSY = {"quiet": 0, "busy": 2}  # processes that compute next to the workers


def spinner():
    import subprocess
    import sys

    return subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])


def wanted(request):
    """The analyses of the selected tests: all, or of those that are repeated alone."""
    chosen = [item for item in request.session.items if item.module is request.module]
    names = {getattr(item, "callspec", None) and item.callspec.params.get("name") for item in chosen if item.name != "test_enough_cases"}
    return {name for name in [*CASES, *HEALTHY] if None in names or name in names}


def runs_of(where, names):
    """(name, function) of a cluster's bad analyses."""
    for name, (place, bad, _, then, good, _) in CASES.items():
        if place == where and name in names:
            yield name, bad
        if good and then == where and name in names:
            yield name + cause_cases.ADVISED, good


def warm(lab):
    """Reads the files into memory, imports modules, and processes two chunks."""
    for path in lab.data.values():
        Path(path).read_bytes()
    lab.client.run(lambda: __import__("coffea.nanoevents") and None)
    lab.coffea(cause_jobs.Sum(), 100_000)


# The cases' modules on the workers.
PATHS = [str(ROOT / folder) for folder in ("tests/integration", "examples", "scripts", "tests/truth", "python")]


@pytest.fixture(scope="module", params=[pytest.param("quiet"), pytest.param("busy", marks=pytest.mark.matrix)])
def reports(request, tmp_path_factory, homes, data):
    cloudpickle.register_pickle_by_value(ttbar)
    directory = tmp_path_factory.mktemp("cause")
    made, names = cause_cases.Reports(), wanted(request)
    others = [spinner() for _ in range(BUSY[request.param])]
    try:
        for where, nthreads in CLUSTERS.items():
            healthy = {name: function for name, (place, function) in HEALTHY.items() if place == where and name in names}
            bad = list(runs_of(where, names))
            if not healthy and not bad:
                continue
            env = {**homes, "PYTHONPATH": ":".join(PATHS), **ENVIRONMENT.get(where, {})}
            with cluster.Cluster(directory / where, env) as procs:
                procs.start_collector()
                procs.start_scheduler()
                for n in nthreads:
                    procs.start_worker(nthreads=n, args=["--memory-limit", "3GB"])
                with Client(procs.address) as client:
                    client.wait_for_workers(len(nthreads), timeout=120)
                    lab = cause_cases.Lab(procs, client, data, str(directory), made)
                    if where != "threads":  # its functions need no modules
                        warm(lab)
                    for name, function in healthy.items():
                        lab.run(name, function)
                    for name, function in bad:
                        lab.run_advised(name, function)
                    lab.read()
                    lab.run_again(bad)
                    lab.run_healthy_again(healthy)
    finally:
        for one in others:
            one.kill()
            one.wait()
    if os.environ.get("CREMA_ADVICE_TABLE"):
        Path(os.environ["CREMA_ADVICE_TABLE"]).write_text(cause_cases.table(made))
    return made


def test_enough_cases():
    assert len(CASES) >= 16 and len(HEALTHY) >= 6


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_first(reports, name):
    found = reports[name]["findings"]
    seen = [(f["id"], f["severity"], f["cost_seconds"], f["sentence"]) for f in found]
    assert found and found[0]["id"] in CASES[name][2], (seen, reports[name]["findings_checked"], reports[name]["findings_left_out"])
    assert found[0]["severity"] != "note"
    assert CASES[name][5].lower() in (found[0]["advice"] + found[0]["sentence"]).lower()


@pytest.mark.parametrize("name", HEALTHY)
def test_no_warning_on_a_healthy_run(reports, name):
    found = [f for f in reports[name]["findings"] if f["severity"] != "note"]
    assert not found, [(f["id"], f["sentence"]) for f in found]


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c[4]])
def test_the_advice_removes_the_cause(reports, name):
    found = [f for f in reports[name + cause_cases.ADVISED]["findings"] if f["severity"] != "note"]
    assert not found or found[0]["id"] not in CASES[name][2], found[0]["sentence"]


def test_nothing_contradicts(reports):
    """More cores are not advised next to fewer threads."""
    for name, report in reports.items():
        ids = {f["id"] for f in report["findings"]}
        assert not {"cpu_bound", "run_queue"} <= ids, name
        assert not ({"cpu_bound", "idle_threads"} <= ids or {"cpu_bound", "few_chunks"} <= ids), name
        assert not ("blocked_site" in ids and ids & {"gil_wait", "lock_wait", "network_wait"}), name


def test_the_budget_adds_up(reports):
    for name, report in reports.items():
        budget = report["metrics"]["budget"]
        parts = [v for k, v in budget.items() if k not in ("wall_seconds", "threads", "thread_seconds")]
        assert sum(v for v in parts if v is not None) == pytest.approx(budget["thread_seconds"], abs=1e-6), name
        assert budget["thread_seconds"] >= budget["wall_seconds"] * budget["threads"] * (1 - 1e-9), name
