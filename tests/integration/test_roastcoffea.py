# SPDX-License-Identifier: BSD-3-Clause
"""roastcoffea 0.1.2 and crema on the same job: the same numbers if both count the same. The real roastcoffea reads the folders of
`crema report --measurement` and of crema.measure(): with its loader, all of its tables
and every plot function of the package. What is drawn is compared with the run's JSON."""

import json
import os
import subprocess
from datetime import datetime
from pathlib import Path

import cluster
import cold
import jobs
import numpy as np
import pytest
import venvs

pytestmark = pytest.mark.further

NAME = "roastcoffea-0.1.2"
HERE = Path(__file__).parent
CHUNKS = 8
# roastcoffea's load_measurement drops worker_cpu, and leaves keys of span metrics as text: whichever program wrote the
# folder, these five find no data in its result. crema.load_measurement reads the same files completely.
LOST_BY_LOADER = {"plot_cpu_utilization_mean_timeline", "plot_cpu_utilization_per_worker_timeline",
                  "plot_per_task_bytes_read", "plot_per_task_cpu_io", "plot_per_task_overhead"}


def python(bin_dir, env, *argv):
    done = subprocess.run([bin_dir / "python", *argv], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory, homes, data):
    """One run of two files on a separate cluster, all in roastcoffea's environment."""
    class Run:
        pass

    base = tmp_path_factory.mktemp("roastcoffea")
    bin_dir = venvs.environment(NAME)
    found = Run()
    cold.drop(data["zlib"], data["zstd"])
    env = {**homes, "PYTHONPATH": str(cluster.ROOT / "python")}
    with cluster.Cluster(base / "cluster", env) as procs:
        procs.dask = lambda *args: [bin_dir / "dask", *args]
        procs.start_collector()
        procs.start_scheduler()
        for _ in range(2):
            procs.start_worker()
        python(bin_dir, procs.env, HERE / "roastcoffea_job.py", "--scheduler", procs.address, "--journal",
               procs.journal, "--output", base / "job.json", "--save", base / "saved", data["zlib"], data["zstd"])
        found.job = json.loads((base / "job.json").read_text())
        found.json = procs.report_json(found.job["run"])
        done = procs.report("--run", found.job["run"], "--measurement", base / "ours")
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
    found.folder, found.journal = base / "ours", procs.journal
    found.metrics = json.loads((found.folder / "metrics.json").read_text())
    python(bin_dir, procs.env, HERE / "roastcoffea_plots.py", base / "drawn.json", base / "pngs",
           "drawn", "crema", found.folder, "by_their_loader", "roastcoffea", found.folder,
           "of_the_client", "roastcoffea", base / "saved" / "crema", "theirs", "roastcoffea", base / "saved" / "theirs")
    vars(found).update(json.loads((base / "drawn.json").read_text()))
    if os.environ.get("CREMA_COMPARE_OUT"):
        Path(os.environ["CREMA_COMPARE_OUT"]).write_text(json.dumps({"job": found.job, "run": found.json}))
    found.chunks = [c for c in found.json["chunks"] if c["counted"]]
    return found


def bars(run, plot):
    return [b["heights"] for b in run.drawn["plots"][plot]["bars"]]


def lines(run, plot):
    """{label: (x, y)}"""
    return {line["label"]: (line["x"], line["y"]) for line in run.drawn["plots"][plot]["lines"]}


def epoch(text):
    return datetime.fromisoformat(text).timestamp()


def samples(run, series, value):
    """{worker: [(time, value)]} of the JSON's own tracking data."""
    return {worker: [(epoch(p["timestamp"]), p[value]) for p in points]
            for worker, points in run.json["tracking_data"][series].items()}


def nearest(points, time):
    return min(points, key=lambda p: abs(p[0] - time))


def test_layout(run):
    assert sorted(p.name for p in run.folder.iterdir()) == ["config.json", "metadata.json", "metrics.json",
                                                            "start_end_time.txt"]
    metadata = json.loads((run.folder / "metadata.json").read_text())
    assert metadata["format"] == "roastcoffea_measurement_v1"
    assert metadata["elapsed_time_seconds"] == run.json["metrics"]["wall_time"]
    config = json.loads((run.folder / "config.json").read_text())
    assert config["run"] == run.json["run"] and len(config["workers"]) == 2
    assert (run.drawn["start"], run.drawn["end"]) == pytest.approx(
        (run.json["run_info"]["start"], run.json["run_info"]["stop"]), abs=1e-5)
    times = [t for t in run.metrics["tracking_data"]["worker_counts"]]
    assert all(t.endswith("+00:00") for t in times) and times == sorted(times)


def test_metrics_are_the_reports(run):
    """Every number of the report is in the folder, and unknown ones are left out, as the tables fail on null."""
    ours = run.json["metrics"]
    numbers = {k: v for k, v in ours.items() if isinstance(v, (int, float, str))}
    assert {k: run.metrics[k] for k in numbers} == numbers
    assert not [k for k, v in ours.items() if v is None and run.metrics.get(k, v) is None and k in run.metrics
                and not isinstance(v, (list, dict))]


def test_all_names_of_theirs_are_there(run):
    """Each name that roastcoffea has for the same run; one is known only to its decorators."""
    theirs = set(run.job["theirs"])
    assert len(theirs) > 50
    assert theirs - set(run.metrics) == {"avg_branches_read_percent"}
    assert theirs - set(run.job["ours"]) == set()
    assert run.job["ours"]["avg_branches_read_percent"] == pytest.approx(run.job["theirs"]["avg_branches_read_percent"])


def test_every_plot_has_this_run(run):
    assert len(run.drawn["plots"]) == 21
    for name, plot in run.drawn["plots"].items():
        assert "error" not in plot, (name, plot)
        assert plot["lines"] or plot["bars"] or plot["points"], name
        assert plot["png_bytes"] > 10_000, name


def failed(drawn):
    return {name for name, plot in drawn["plots"].items() if "error" in plot}


def test_their_loader(run):
    """With roastcoffea's own loader all plots are the same, except those whose data it loses, in its own folders too."""
    assert failed(run.by_their_loader) == failed(run.of_the_client) == LOST_BY_LOADER
    assert LOST_BY_LOADER <= failed(run.theirs)
    for name in set(run.drawn["plots"]) - LOST_BY_LOADER:
        assert run.by_their_loader["plots"][name]["lines"] == run.drawn["plots"][name]["lines"], name
        assert run.by_their_loader["plots"][name]["bars"] == run.drawn["plots"][name]["bars"], name
    assert run.by_their_loader["tables"] == run.drawn["tables"]


def test_chunk_plots(run):
    branches = {(c["file"], c["entry_start"]): c["num_branches_accessed"] for c in run.job["theirs"]["raw_chunk_metrics"]}
    assert bars(run, "plot_branch_access_per_chunk") == [[branches[c["filename"], c["entrystart"]] for c in run.chunks]]
    assert set(branches.values()) == {3}  # Jet_pt, nJet, MET_pt
    packed, unpacked = bars(run, "plot_bytes_accessed_per_chunk")
    assert packed == pytest.approx([c["basket_bytes"] / 1e6 for c in run.chunks])
    assert unpacked == pytest.approx([c["basket_raw_bytes"] / 1e6 for c in run.chunks])
    times = [c["coffea_processtime_seconds"] for c in run.chunks]
    assert sum(bars(run, "plot_runtime_distribution")[0]) == CHUNKS
    (mean,) = (x for label, (x, _) in lines(run, "plot_runtime_distribution").items() if label.startswith("Mean"))
    assert mean == pytest.approx([np.mean(times)] * 2)
    assert sorted(run.drawn["plots"]["plot_runtime_vs_events"]["points"]) == pytest.approx(
        np.array(sorted([c["events"], t] for c, t in zip(run.chunks, times))))


def test_throughput_plot(run):
    """Requested bits over the tasks' wall times, summed over the running chunks at each of 100 moments."""
    spans = [(c["start"], c["stop"], c["coffea_bytesread"]) for c in run.chunks]
    at = np.linspace(min(s[0] for s in spans), max(s[1] for s in spans), 100)
    rates = [sum(n * 8e-9 / (b - a) for a, b, n in spans if a <= t <= b) for t in at]
    x, y = lines(run, "plot_throughput_timeline")["area"]
    assert max(y) == pytest.approx(max(rates), rel=1e-6)
    assert max(x) - min(x) == pytest.approx(at[-1] - at[0], abs=0.01)
    assert set(lines(run, "plot_throughput_timeline")["Workers"][1]) == {2}


def test_file_plots(run):
    files = [f for f in run.json["files"] if f["basket_raw_bytes"]]
    assert len(files) == 2
    for plot, values in (("plot_compression_ratio_distribution", [f["basket_bytes"] / f["basket_raw_bytes"] for f in files]),
                         ("plot_data_access_percentage", [100 * f["unique_basket_bytes"] / f["size_bytes"] for f in files])):
        assert sum(bars(run, plot)[0]) == 2
        (mean,) = (x for label, (x, _) in lines(run, plot).items() if label.startswith("Mean"))
        assert mean == pytest.approx([np.mean(values)] * 2), plot


def test_summary_plots(run):
    m = run.json["metrics"]
    assert bars(run, "plot_efficiency_summary") == [pytest.approx([m["core_efficiency"] * 100, m["speedup_factor"]])]
    assert bars(run, "plot_resource_utilization") == [pytest.approx(
        [m["avg_workers"], m["total_cores"], m["peak_memory_bytes"] / 1e9])]


@pytest.mark.parametrize("plot,series,value", [
    ("plot_executing_tasks_timeline", "worker_executing", "executing"),
    ("plot_worker_activity_timeline", "worker_active_tasks", "active_tasks"),
    ("plot_occupancy_timeline", "worker_occupancy", "occupancy"),
])
def test_worker_timelines(run, plot, series, value):
    truth = samples(run, series, value)
    found = lines(run, plot)
    assert set(found) == set(truth) and len(found) == 2
    for worker, (x, y) in found.items():
        assert len(x) >= 2
        assert y == pytest.approx([nearest(truth[worker], t)[1] for t in x])


def test_memory_timelines(run):
    memory, limit = samples(run, "worker_memory", "memory_bytes"), samples(run, "worker_memory_limit", "memory_limit_bytes")
    found = lines(run, "plot_memory_utilization_per_worker_timeline")
    assert set(found) == set(memory) and len(found) == 2
    percent = {}
    for worker, (x, y) in found.items():
        assert y == pytest.approx([100 * nearest(memory[worker], t)[1] / nearest(limit[worker], t)[1] for t in x])
        for t, v in zip(x, y):
            percent.setdefault(t, []).append(v)
    x, y = lines(run, "plot_memory_utilization_mean_timeline")["Mean"]
    assert y == pytest.approx([np.mean(percent[t]) for t in x])
    assert min(y) > 0


def test_sums_over_workers(run):
    counts = [(epoch(p["timestamp"]), p["worker_count"]) for p in run.json["tracking_data"]["worker_counts"]]
    (x, y), = lines(run, "plot_worker_count_timeline").values()
    assert x[0] == pytest.approx(counts[0][0], abs=1e-3) and x[-1] == pytest.approx(counts[-1][0], abs=1e-3)
    assert set(y) == {count for _, count in counts} == {2}
    active = samples(run, "worker_active_tasks", "active_tasks")
    x, y = lines(run, "plot_total_active_tasks_timeline")["_child0"]
    said = [[nearest(points, t) for points in active.values()] for t in x]
    # A worker without a sample within 1.5 s of a moment is left out.
    assert y == pytest.approx([sum(v for at, v in row if abs(at - t) <= 1.5) for t, row in zip(x, said)])


def test_cpu_timelines(run):
    truth = samples(run, "worker_cpu_occupancy", "cpu_percent")
    found = lines(run, "plot_cpu_utilization_per_worker_timeline")
    assert set(found) == set(truth) and len(found) == 2
    percent = {}
    for worker, (x, y) in found.items():
        assert y == pytest.approx([nearest(truth[worker], t)[1] for t in x])
        for t, v in zip(x, y):
            percent.setdefault(t, []).append(v)
    x, y = lines(run, "plot_cpu_utilization_mean_timeline")["Mean"]
    assert y == pytest.approx([np.mean(percent[t]) for t in x])


def by_prefix(run, value):
    sums = {}
    for task in run.json["tasks"]:
        if task["counted"]:
            sums[task["prefix"]] = sums.get(task["prefix"], 0) + value(task)
    return {prefix: total for prefix, total in sorted(sums.items()) if total}


def test_task_plots(run):
    """Dask's CPU and waits; the tasks' own storage bytes and CPU in codecs in place of Dask's spill and frames."""
    dask = {}
    for context, prefix, activity, unit, value in run.json["metrics"]["span_metrics"]:
        if context == "execute":
            dask.setdefault(activity, {})[prefix] = value
    prefixes = sorted(dask["thread-cpu"])
    plot = run.drawn["plots"]["plot_per_task_cpu_io"]
    assert plot["labels"] == prefixes and "Jets" in prefixes
    assert bars(run, "plot_per_task_cpu_io") == [pytest.approx([dask[a][p] for p in prefixes])
                                                 for a in ("thread-cpu", "thread-noncpu")]
    storage = by_prefix(run, lambda t: t["storage_read_bytes"])
    assert storage["Jets"] > 1_000_000
    assert bars(run, "plot_per_task_bytes_read") == [pytest.approx([v / 1e9 for v in storage.values()])]
    codecs = by_prefix(run, lambda t: t["decompress_cpu_seconds"])
    plot = run.drawn["plots"]["plot_per_task_overhead"]
    drawn = dict(zip(plot["labels"], bars(run, "plot_per_task_overhead")[0]))
    assert {p: v for p, v in drawn.items() if v} == pytest.approx(codecs)


def test_beside_theirs(run):
    """One job, measured by both at the same time: counts are equal, sums over tasks agree within 2 %, wall within 2 % + 0.2 s."""
    theirs, ours = run.job["theirs"], run.job["ours"]
    assert run.job["warning"] is None and run.job["small_warning"] is None
    assert run.job["tasks"] == ours["num_tasks"]
    for name in ("total_events", "num_chunks", "total_bytes_read", "num_successful_chunks", "num_failed_chunks",
                 "total_branches_read", "chunk_events_min", "chunk_events_max", "peak_workers"):
        assert ours[name] == theirs[name], name
    assert (ours["total_events"], ours["num_chunks"]) == (400_000, CHUNKS)
    for name in ("total_cpu_time", "avg_cpu_time_per_chunk", "event_rate_cpu_total_khz", "processor_cpu_time_seconds",
                 "processor_io_wait_time_seconds", "processor_cpu_percent", "overhead_cpu_time_seconds",
                 "overhead_io_wait_time_seconds", "total_bytes_memory_read", "total_cores", "cores_per_worker"):
        assert ours[name] == pytest.approx(theirs[name], rel=0.02), name
    # Measured by crema's own clocks and not taken from Dask: the task's own thread, and its whole time.
    assert ours["task_cpu_seconds"] == pytest.approx(ours["cpu_time_seconds"], rel=0.02)
    assert ours["task_wall_seconds"] == pytest.approx(ours["cpu_time_seconds"] + ours["io_time_seconds"], rel=0.02)
    # Before the job it makes the scheduler track the workers, which is part of its time.
    elapsed = theirs["elapsed_time_seconds"] - run.job["their_setup"]
    assert ours["wall_time_source"] == "client"
    assert abs(ours["wall_time"] - elapsed) <= 0.02 * elapsed + 0.2
    assert ours["workers_wall_time"] < ours["wall_time"]


def test_trackers_are_shown(run):
    """The results of track_time, track_memory and track_bytes are in the measured chunks, and summed by name."""
    theirs = {(c["file"], c["entry_start"]): c for c in run.job["theirs"]["raw_chunk_metrics"]}
    chunks = run.job["ours"]["raw_chunk_metrics"]
    assert len(chunks) == len(theirs) == CHUNKS
    for chunk in chunks:
        told = theirs[chunk["file"], chunk["entry_start"]]
        assert [chunk[n] for n in ("timing", "memory", "bytes")] == [told[n] for n in ("timing", "memory", "bytes")]
        assert set(chunk["timing"]) == {"jet selection"} and set(chunk["memory"]) == {"sums"}
    sections = run.job["ours"]["sections"]
    assert sections["jet selection"]["total_duration"] == pytest.approx(
        sum(c["timing"]["jet selection"] for c in theirs.values()))
    assert sections["jet loading"]["bytes"] == sum(c["bytes"]["jet loading"] for c in theirs.values()) > 0
    assert sections["sums"]["mean_mem_delta_mb"] == pytest.approx(np.mean([c["memory"]["sums"] for c in theirs.values()]))
    assert "jet selection" in run.of_the_client["tables"]["format_chunk_metrics_table"]
    # The analysis' output is unchanged, with either.
    assert all(set(row) == {"events", "jets", "met"} for row in run.job["output"].values())


def test_more_chunks_request_more(run):
    ours, small = run.job["ours"], run.job["small"]
    assert small["total_events"] == ours["total_events"] and small["num_chunks"] == 40
    assert small["total_bytes_read"] > 1.5 * ours["total_bytes_read"]


def test_load(run):
    loaded = run.job["loaded"]
    assert loaded["tasks"] == len(run.json["tasks"])
    assert loaded["read_bytes"] == sum(t["read_bytes"] for t in run.json["tasks"])
    assert loaded["chunks"] == sorted(c["entrystart"] for c in run.chunks)
    assert epoch(loaded["first"]) == pytest.approx(run.json["run_info"]["start"], abs=1e-3)
    assert loaded["metrics"]["total_bytes_read"] == run.json["metrics"]["total_bytes_read"]


def test_clients_folder(run):
    """The files of m.save_measurement: the client's times, and numbers derived from them."""
    assert run.of_the_client["end"] - run.of_the_client["start"] == pytest.approx(run.job["ours"]["wall_time"], abs=1e-5)
    rate = run.job["report"]["entries"] / run.job["ours"]["wall_time"] / 1000
    assert f"{rate:.1f} kHz" in run.of_the_client["tables"]["format_event_processing_table"]


def test_tables(run):
    m, tables = run.json["metrics"], run.drawn["tables"]
    assert len(tables) == 6 and all(tables.values())
    assert f"{m['total_events']:,}" in tables["format_event_processing_table"]
    assert f"{m['event_rate_wall_khz']:.1f} kHz" in tables["format_event_processing_table"]
    assert f"{m['overall_rate_gbps']:.2f} Gbps" in tables["format_throughput_table"]
    assert f"{m['core_efficiency']:.1%}" in tables["format_resources_table"]
    assert f"{m['processor_cpu_percentage']:.1f}%" in tables["format_fine_metrics_table"]
    assert f"Number of Chunks   │ {CHUNKS}" in tables["format_timing_table"]
    assert "N/A" not in "".join(tables.values())


def test_no_folder_can_be_made(run, tmp_path):
    (tmp_path / "file").write_text("")
    for journal, out, line in ((run.journal, tmp_path / "file" / "out", "cannot use "),
                               (run.journal, tmp_path / "file", "cannot use "),
                               (tmp_path, tmp_path / "out", "nothing was measured")):
        done = subprocess.run([cluster.BUILD / "crema", "report", "--dir", journal, "--measurement", out],
                              capture_output=True, text=True)
        assert done.returncode == 1 and line in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
