"""Whether a run finished, failed, hangs or was interrupted: what really happened to the analysis, against the report."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import jobs
import pytest
import state_job

# CREMA_STALL_AFTER; with CREMA_ALL_CELLS the users' default. Long tasks that are not stalled take 8 s more.
PATIENCE_SECONDS = 30 if os.environ.get("CREMA_ALL_CELLS") else 10
JOB = jobs.ROOT / "tests" / "integration" / "state_job.py"


class Job:
    """The analysis in a separate process, and its own record."""

    def __init__(self, procs, mode, folder, *files, env=None):
        self.procs, self.folder = procs, folder
        folder.mkdir()
        self.log = open(folder / "log", "w")
        environment = {**procs.env, **procs.worker_env(), **(env or {})}
        environment["PYTHONPATH"] = os.pathsep.join([str(JOB.parent), str(jobs.ROOT / "examples"), environment["PYTHONPATH"]])
        self.process = subprocess.Popen([sys.executable, JOB, mode, folder, *files], env=environment, stdout=self.log,
                                        stderr=self.log, start_new_session=True)

    def said(self):
        path = self.folder / "said"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def report(self):
        from cluster import StepFailed

        try:
            return self.procs.report_json()
        except StepFailed:
            return None

    def until(self, holds, seconds=120):
        """The report once holds(it) is true; after `seconds` the latest one."""
        begun, waited, report = time.monotonic(), 0, None
        while waited < seconds:
            report = self.report()
            if report and holds(report):
                return report
            time.sleep(min(1, max(0.5, waited / 8)))
            waited = time.monotonic() - begun
        return report

    def state(self, wanted, seconds=120):
        report = self.until(lambda r: r["state"]["state"] == wanted, seconds)
        assert report, self.text()
        assert report["state"]["state"] == wanted, (report["state"], self.text())
        assert report["metrics"]["state"] == wanted
        row = self.procs.report("--list").stdout.splitlines()[-1].split()
        assert wanted in row
        for full in (True, False):
            assert self.procs.report("--run", report["run"], full=full).stdout.splitlines()[1].strip().startswith(wanted)
        return report

    def live(self):
        return json.loads(self.get("live.json"))

    def until_live(self, state, seconds):
        """live.json's state; the page checks only at intervals."""
        limit = time.monotonic() + seconds
        while (live := self.live()["state"])["state"] != state and time.monotonic() < limit:
            time.sleep(0.5)
        assert live["state"] == state
        return live

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.procs.http_port}/{path}", timeout=60) as answer:
            return answer.read().decode()

    def stuck(self):
        return subprocess.run([self.procs.build / "crema", "stuck", "--http", f"127.0.0.1:{self.procs.http_port}"], env=self.procs.env,
                              capture_output=True, text=True, check=True, timeout=60).stdout

    def doctor(self):
        done = subprocess.run([self.procs.build / "crema", "doctor", "--json", "--http", f"127.0.0.1:{self.procs.http_port}"], env=self.procs.env,
                              capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)["lines"]

    def text(self):
        return (self.folder / "log").read_text()[-3000:]

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


@pytest.fixture
def patience():
    return PATIENCE_SECONDS


@pytest.fixture
def start(new_cluster, tmp_path, patience):
    made = []
    procs = new_cluster(env={"CREMA_STALL_AFTER": f"{patience}s", "STATE_LONG": str(patience + 8)})
    procs.start_collector()

    def begin(mode, *files, **options):
        made.append(Job(procs, mode, tmp_path / mode, *files, **options))
        return made[-1]

    yield begin
    for job in made:
        job.stop()


def done(report, least):
    return sum(t["status"] == "ok" for t in report["tasks"]) >= least


def findings(report):
    return {f["id"] for f in report["findings"]}


def test_running_then_finished(start):
    job = start("nap", env={"STATE_LATE": "0.5"})
    job.until(lambda r: done(r, 5))
    report = job.state("running", 20)
    job.until_live("running", 8)
    assert report["state"]["running"] >= 1 or report["state"]["ready"] >= 1
    assert job.process.wait(120) == 0, job.text()
    report = job.state("finished")
    assert done(report, 60) and not findings(report) & {"interrupted", "stalled", "failed_work", "killed_work"}


def test_finished_on_a_cluster_that_stays(start):
    job = start("nap", env={"STATE_STAY": "20"})
    job.until(lambda r: done(r, 60))
    assert job.state("finished", 10)["state"]["workers"] == 2
    job.until_live("idle", 20)
    assert job.process.poll() is None


@pytest.mark.further
@pytest.mark.parametrize("patience", [min(PATIENCE_SECONDS, 4)])  # it uses a core until then
def test_a_long_computation_is_no_stall(start, patience):
    job = start("compute")
    job.until(lambda r: r["state"]["at"] - r["state"]["last_task_edge"] > patience + 2)
    assert job.report()["state"]["state"] == "running"
    job.state("finished")


def test_paused_for_ever(start):
    # Dask's own interval: a worker that is looked at once a second passes the limit of the nanny, which kills it, before it is paused.
    job = start("keep", env={"DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "200ms"})
    report = job.state("stalled", 180)
    state = report["state"]
    assert state["why"] == "workers paused" and state["paused_workers"] == state["workers"] == 2
    assert state["paused_memory_percent"] >= 80 and state["ready"] >= 1 and state["running"] == 0
    assert "2 of 2 workers paused" in state["text"]
    assert "stalled" in findings(report) and job.process.poll() is None
    live = job.until_live("stalled", 20)
    assert live["paused_workers"] == 2
    assert live["text"].startswith("stalled for ") and "2 of 2 workers paused, at " in live["text"]
    assert len(re.findall(r"^paused by Dask: worker .* of its memory limit, \d+ tasks ready$", job.stuck(), re.M)) == 2
    metrics = job.get("metrics")
    assert 'crema_state{state="stalled"} 1' in metrics and "crema_workers_paused 2" in metrics


def test_hung_call(start):
    job = start("hang")
    report = job.state("stalled", 180)
    state = report["state"]
    (where,) = [s for s in job.said() if "thread" in s]
    task = state["longest_running"]
    assert state["why"] == "task in a call" and state["running"] == 1
    assert (task["pid"], task["thread"], task["function"]) == (where["pid"], where["thread"], "hang")
    assert f"pid {where['pid']}, thread {where['thread']}" in state["text"]
    line = next(n for n, text in enumerate(JOB.read_text().splitlines(), 1) if text == "        lock.acquire()  # forever")
    assert state["stuck"]["kind"] == "lock" and state["stuck"]["seconds"] > PATIENCE_SECONDS / 2 and f"state_job.py:{line} hang" in state["stuck"]["line"]
    live = job.until_live("stalled", 60)["text"]
    for text in (state["text"], live):
        assert f"{state['stuck']['call']} on lock" in text and f"state_job.py:{line} hang" in text
    assert f"state_job.py:{line} hang" in job.stuck()
    patient = job.procs.report("--run", report["run"], env={"CREMA_STALL_AFTER": "1d"}).stdout
    assert patient.splitlines()[1].strip().startswith("running")
    stuck = [row["text"] for row in job.doctor() if row["about"] == "stuck"]
    assert len(stuck) == 1 and f"{state['stuck']['call']} on lock" in stuck[0] and f"state_job.py:{line} hang" in stuck[0]


def test_slow_bytes_are_no_stall(start):
    job = start("drip")
    report = job.until(lambda r: r["state"]["at"] - r["state"]["last_task_edge"] > PATIENCE_SECONDS + 2)
    assert (job.live()["state"]["state"], report["state"]["state"]) == ("running", "running")
    job.state("finished")


def test_no_worker_is_left(start):
    """Its client waits, and accepts the results of a new worker."""
    from distributed import Client

    job = start("nothing")
    procs = job.procs
    procs.start_scheduler()
    procs.start_worker(args=["--no-nanny"])
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        pid, = client.run(os.getpid).values()
        futures = client.map(state_job.nap, range(60), pure=False)
        job.until(lambda r: done(r, 15))
        os.kill(pid, signal.SIGKILL)
        report = job.state("stalled")
        assert report["state"]["why"] == "no worker" and 1 <= report["state"]["client_waits_for"] <= 60
        assert "no worker is left; the client was waiting for " in report["state"]["text"] and "stalled" in findings(report)
        assert "no worker is left; a client was waiting for " in job.until_live("stalled", 60)["text"]
        procs.start_worker()
        client.gather(futures)
        assert job.state("finished")["run"] == report["run"]


def test_worker_that_was_replaced(start):
    job = start("die")
    assert job.process.wait(120) == 0, job.text()
    report = job.state("finished")
    assert any(t["status"] in ("killed", "lost") for t in report["tasks"])


def test_failed(start):
    job = start("fail")
    assert job.process.wait(120) == 1
    report = job.state("failed")
    first = report["state"]["first_failed"]
    (said,) = [s for s in job.said() if "type" in s]
    assert report["state"]["failed_tasks"] == 1 and first["key"].endswith("-5")
    assert (first["error_type"], first["error_text"], first["error_cause"]) == (said["type"], said["text"].split("\n")[0], None)
    assert "ValueError: chunk 5 is bad; 1 task failed" in report["state"]["text"]
    assert not findings(report) & {"interrupted", "killed_work"}


def test_failed_chunk_of_coffea(start, data):
    job = start("coffea", data["zstd"])
    assert job.process.wait(200) == 1
    report = job.state("failed")
    first = report["state"]["first_failed"]
    (said,) = [s for s in job.said() if "type" in s]
    assert first["error_type"] == said["type"] and said["text"].startswith(first["error_text"]) and len(first["error_text"]) == 200
    cause = f"ValueError: no muons in entries {first['entrystart']} to {first['entrystop']}"
    assert first["error_cause"] == cause and cause.removeprefix("ValueError: ") in said["text"]
    assert (first["dataset"], first["filename"]) == (os.path.basename(data["zstd"]).removesuffix(".root"), data["zstd"])
    assert first["entrystart"] == 20_000
    (finding,) = [f for f in report["findings"] if f["id"] == "failed_work"]
    assert "no muons" in report["state"]["text"] and os.path.basename(data["zstd"]) in report["state"]["text"]
    assert f"Failing().process(NanoEventsFactory.from_root({{'{data['zstd']}': 'Events'}}, entry_start=20_000, " in finding["advice"]


def test_exceptions_run_no_code(start):
    """Their own text is not requested: only args[0] of BaseException, if it is a str."""
    job = start("raise")
    assert job.process.wait(120) == 0, job.text()
    report = job.until(lambda r: sum(t["status"] == "erred" for t in r["tasks"]) == 8)
    told = {t["key"].rsplit("-", 1)[1]: (t["error_type"], t["error_text"], t["error_cause"]) for t in report["tasks"]}
    assert told == {"0": ("Trap", "plain text", None), "1": ("KeyError", None, None),
                    "2": ("FileNotFoundError", "No such file or directory", None), "3": ("RuntimeError", "x" * 199, None),
                    "4": ("RuntimeError", None, None), "5": ("RuntimeError", None, None),
                    "6": ("RuntimeError", "outer", "KeyError: no key"), "7": ("RuntimeError", "\x1b[31mred", None)}
    assert "\x1b" not in job.procs.report("--run", report["run"]).stdout
    ran = (job.folder / "ran").read_text().split("\n")
    assert ran and not [line for line in ran if "thread" in line]  # called in the thread that runs the task, and so by the library


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_client_gone(start, how):
    """Ctrl-C reaches the terminal's whole process group, SIGKILL only the client."""
    job = start("nap", env={"STATE_LATE": "4"})
    job.until(lambda r: done(r, 18))
    if how == signal.SIGINT:
        os.killpg(job.process.pid, how)
    else:
        os.kill(job.process.pid, how)
    report = job.state("interrupted")  # the client is a zombie until it is reaped
    job.process.wait(60)
    assert not done(report, 60) and "interrupted" in findings(report)
    assert not findings(report) & {"killed_work", "failed_work"}


def test_workers_close_before_the_client_leaves(start):
    """Ctrl-C again, but the client is the last process to notice."""
    job = start("nap", env={"STATE_LATE": "4"})
    job.until(lambda r: done(r, 6))
    shown = subprocess.run(["ps", "-o", "pid=,args=", "-ww", "-g", str(job.process.pid)], capture_output=True, text=True, check=True)
    workers = [int(line.split()[0]) for line in shown.stdout.splitlines() if "multiprocessing.spawn" in line]
    assert len(workers) == 2
    for pid in workers:
        os.kill(pid, signal.SIGINT)
    time.sleep(0.5)
    os.kill(job.process.pid, signal.SIGINT)
    job.process.wait(60)
    report = job.state("interrupted")
    assert not done(report, 60) and report["state"]["unfinished_tasks"] + report["state"]["tasks_taken_back"]


def test_client_takes_tasks_back(start):
    job = start("cancel", env={"STATE_STAY": "20"})
    report = job.state("interrupted")
    assert report["state"]["why"] == "tasks taken back" and job.process.poll() is None
