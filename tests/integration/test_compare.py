"""crema compare: real runs with 1, 2 and 4 workers and three chunk sizes, against the runs' own JSON.

tests/quick/test_comparison.py has the same tables for runs that are not real.
"""

import json
import re
import shutil
import subprocess
import threading
import unicodedata

import cluster
import jobs
import pytest
from distributed import Client

pytestmark = pytest.mark.further


class Runs:
    pass


def compare(procs, *args, directory=None):
    return subprocess.run([procs.build / "crema", "compare", "--dir", directory or procs.journal, *args], env=procs.env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def compared(procs, *args):
    done = compare(procs, "--json", "-", *args)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def run(procs, client, path, chunksize, chunks):
    """The JSON of one finished run that was not listed before."""
    seen = procs.report("--list").stdout
    jobs.run_coffea(client, [path], chunksize=chunksize)
    return jobs.settled(procs, lambda r: len(r["chunks"]) >= chunks and r["run"] not in seen)


def lose_a_worker(procs, client, seen):
    """Retires a worker once the new run has done a chunk."""
    def begun():
        report = procs.report_json()
        return report["run"] not in seen and any(c["status"] == "ok" for c in report["chunks"])

    cluster.wait_until(begun, "the first chunk", 120)
    client.retire_workers([sorted(client.scheduler_info()["workers"])[0]], close_workers=True, remove=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, homes, data):
    r = Runs()
    with cluster.Cluster(tmp_path_factory.mktemp("compare") / "cluster", homes) as procs:
        r.procs = procs
        procs.start_collector()
        procs.start_scheduler()
        with Client(procs.address) as client:
            r.workers = {}
            for count in (1, 2, 4):
                while len(procs.workers) < count:
                    procs.start_worker(args=["--no-nanny"])
                client.wait_for_workers(count, timeout=120)
                r.workers[count] = run(procs, client, data["zstd"], 25_000, 8)
            r.chunks = {25_000: r.workers[4]}
            for size in (10_000, 100_000):
                r.chunks[size] = run(procs, client, data["zstd"], size, 200_000 // size)
            r.less = run(procs, client, data["lzma"], 25_000, 8)
            seen = procs.report("--list").stdout
            loser = threading.Thread(target=lose_a_worker, args=(procs, client, seen))
            loser.start()
            jobs.run_coffea(client, [data["zstd"]], chunksize=2_000)  # long enough to lose a worker in it
            loser.join()
            r.changing = jobs.settled(procs, lambda j: len(j["chunks"]) >= 100 and j["run"] not in seen)
        yield r


def names(*reports):
    return [r["run"] for r in reports]


def rate(report):
    """Events per second, from the tasks' own start and end and the chunks' own counts."""
    wall = max(t["stop"] for t in report["tasks"]) - min(t["start"] for t in report["tasks"])
    return sum(c["events"] for c in report["chunks"] if c["counted"]) / wall


def test_row_101_scaling_efficiency(runs):
    """Speed-up over the run with one worker, against ideal linear scaling."""
    reports = [runs.workers[4], runs.workers[1], runs.workers[2]]
    found = compared(runs.procs, *names(*reports))
    assert [p["run"] for p in found["scaling"]] == names(runs.workers[1], runs.workers[2], runs.workers[4])
    one = rate(runs.workers[1])
    for point, count in zip(found["scaling"], (1, 2, 4)):
        speedup = rate(runs.workers[count]) / one
        assert point["base"] == runs.workers[1]["run"]
        assert point["total_cores"] == pytest.approx(count) and point["ideal_speedup"] == pytest.approx(count)
        assert point["speedup"] == pytest.approx(speedup, rel=1e-5)
        assert point["scaling_efficiency"] == pytest.approx(speedup / count, rel=1e-5)
    assert found["scaling"][0]["grew_most"] is None
    assert found["chunk_sizes"] == []


def test_cause_of_losses(runs):
    """The class whose time per event grew most from the run with one worker: from the runs' own classes."""
    found = compared(runs.procs, *names(runs.workers[1], runs.workers[4]))["scaling"][1]
    grew = {}
    for name in ("cpu", "runqueue_wait", "gil_wait", "lock_wait", "network_wait", "storage_wait", "sleep"):
        after, before = (sum(t[f"{name}_seconds"] for t in r["tasks"] if t["counted"]) for r in (runs.workers[4], runs.workers[1]))
        grew[name] = (after - before) / 200_000 * 1e6
    after, before = (r["metrics"]["idle_thread_seconds"] for r in (runs.workers[4], runs.workers[1]))
    grew["idle"] = (after - before) / 200_000 * 1e6
    assert found["grew_most"] == max(grew, key=grew.get)
    assert found["grew_seconds_per_million_events"] == pytest.approx(max(grew.values()), rel=1e-5)


def test_row_136_chunk_sizes(runs):
    found = compared(runs.procs, *names(*runs.chunks.values()))
    assert [p["chunk_events_mean"] for p in found["chunk_sizes"]] == [10_000, 25_000, 100_000]
    fastest = max(runs.chunks, key=lambda size: rate(runs.chunks[size]))
    assert [p["best"] for p in found["chunk_sizes"]] == [size == fastest for size in sorted(runs.chunks)]
    assert found["best"] == runs.chunks[fastest]["run"] and found["scaling"] == []


def test_row_118_scenario_table(runs):
    """Wall, CPU, waiting, their shares and overhead of each run, against its own tasks."""
    reports = [runs.workers[1], runs.workers[4]]
    found = compared(runs.procs, *names(*reports))
    text = compare(runs.procs, *names(*reports)).stdout
    rows = re.search(r"^Time:.*\n.*\n((?:  .*\n)+)", text, re.M).group(1).splitlines()
    for got, row, report in zip(found["runs"], rows, reports, strict=True):
        counted = [t for t in report["tasks"] if t["counted"]]
        chunks = {(c["worker_id"], c["attempt"]) for c in report["chunks"]}
        wall, cpu = jobs.total(counted, "wall_seconds"), jobs.total(counted, "cpu_seconds")
        other = jobs.total([t for t in counted if (t["worker_id"], t["attempt"]) not in chunks], "wall_seconds")
        assert got["task_wall_seconds"] == pytest.approx(wall)
        assert got["task_wait_seconds"] == pytest.approx(wall - cpu)
        assert got["overhead_task_seconds"] == pytest.approx(other)
        shares = [float(s) for s in re.findall(r"([\d.]+) %", row)]
        assert shares == [pytest.approx(v, abs=0.06) for v in (100 * cpu / wall, 100 * (wall - cpu) / wall, 100 * other / wall)]


def test_row_128_workers_of_each_run(runs):
    """For each worker its work in the run, and how much more the busiest one did than the mean."""
    found = compared(runs.procs, *names(runs.workers[1], runs.workers[4]))["runs"][1]
    per = [sum(t["wall_seconds"] for t in runs.workers[4]["tasks"] if t["counted"] and t["worker_id"] == w["id"])
           for w in runs.workers[4]["workers"]]
    assert len(found["per_worker"]) == 4
    assert found["worker_imbalance"] == pytest.approx(max(per) / (sum(per) / 4))


def test_row_135_fixed_and_changing_workers(runs):
    found = compared(runs.procs, *names(runs.workers[4], runs.changing))
    fixed, changing = found["runs"]
    assert (fixed["workers_fixed"], fixed["least_workers"], fixed["peak_workers"]) == (True, 4, 4)
    assert (changing["workers_fixed"], changing["least_workers"], changing["peak_workers"]) == (False, 3, 4)
    text = compare(runs.procs, *names(runs.workers[4], runs.changing)).stdout
    assert "3-4" in text and "with a changing number (run 2)" in text


def test_the_best_is_named_with_a_reason(runs):
    reports = [*runs.workers.values(), runs.chunks[10_000]]
    text = compare(runs.procs, *names(*reports)).stdout
    order = sorted(range(len(reports)), key=lambda i: -rate(reports[i]))
    best = re.search(r"^  Run (\d): .*, ([\d.]+)x the next one's \(run (\d)\); each did 200,000 events\.$", text, re.M)
    assert [int(best[1]) - 1, int(best[3]) - 1] == order[:2]
    assert float(best[2]) == pytest.approx(rate(reports[order[0]]) / rate(reports[order[1]]), abs=0.006)
    assert re.search(r"^  (It had \d cores?, run|The largest saving was in)", text, re.M)


def test_80_columns(runs):
    text = compare(runs.procs, *names(*runs.workers.values(), *list(runs.chunks.values())[1:], runs.changing)).stdout
    assert "\033" not in text
    for line in text.splitlines():
        assert sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= 80, line


def test_other_work_has_no_best(runs, data, tmp_path):
    """Other files with the same number of events are reported; with another number of events there is no best run."""
    found = compared(runs.procs, *names(runs.workers[4], runs.less))
    assert found["best"] and "different files" in found["differs"]
    with Client(runs.procs.address) as client:
        seen = runs.procs.report("--list").stdout
        jobs.run_coffea(client, [data["zstd"], data["lz4"]], chunksize=100_000)
        more = jobs.settled(runs.procs, lambda r: len(r["chunks"]) == 4 and r["run"] not in seen)
    found = compared(runs.procs, *names(runs.workers[4], more))
    assert found["best"] is None and found["scaling"] == [] == found["chunk_sizes"]
    assert "run 1 processed 200,000 events, run 2 400,000" in found["refused"]
    assert "No run is called best" in compare(runs.procs, *names(runs.workers[4], more)).stdout


def test_runs_of_two_directories(runs, tmp_path):
    """DIR is its last run, DIR:RUN one of its runs."""
    other = tmp_path / "an other: place"
    shutil.copytree(runs.procs.journal, other)
    one, two = names(runs.workers[1], runs.workers[2])
    found = compared(runs.procs, one, f"{other}:{two}", str(other))
    assert [r["run"] for r in found["runs"][:2]] == [one, two]
    assert [r["directory"] for r in found["runs"][1:]] == [str(other)] * 2
    last = json.loads(runs.procs.report("--json", "-", directory=other).stdout)["run"]
    assert found["runs"][2]["run"] == last


def test_wrong_names(runs, tmp_path):
    one = runs.workers[1]["run"]
    for args, status, words in (([one], 2, "at least two"), ([one, "no-such-run"], 1, "no-such-run"), ([one, one], 1, "twice"),
                                ([one, str(tmp_path)], 1, str(tmp_path)), ([one, f"{tmp_path}:x"], 1, str(tmp_path))):
        done = compare(runs.procs, *args)
        assert done.returncode == status and words in done.stderr and done.stdout == "", (args, done.stderr)
