"""The names that other programs rely on, and the formulas between the numbers."""

import datetime

import pytest

TASK_FIELDS = """key attempt counted waste_reason prefix span worker host pid thread async status start stop
wall_seconds cpu_seconds pool_cpu_seconds runqueue_wait_seconds gil_wait_seconds lock_wait_seconds
network_wait_seconds storage_wait_seconds sleep_seconds unclassified_seconds read_calls read_bytes mapped_bytes
storage_read_bytes storage_known_bytes storage_write_bytes network_read_bytes network_write_bytes late_bytes
decompress_calls decompress_in_bytes decompress_out_bytes decompress_cpu_seconds decompress_wall_seconds
rss_start_bytes rss_stop_bytes rss_peak_bytes""".split()
CHUNK_FIELDS = TASK_FIELDS + """chunk_id dataset filename treename entrystart entrystop events coffea_bytesread
coffea_processtime_seconds columns""".split()
METRICS = """overall_rate_gbps data_rate_gbps overall_rate_mbs event_rate_wall_khz event_rate_elapsed_khz
event_rate_agg_khz event_rate_cpu_total_khz event_rate_core_hz event_rate_core_khz total_bytes_read_coffea
total_bytes_read bytes_read_compressed bytes_read_uncompressed total_bytes_uncompressed compression_ratio
total_bytes_memory_read_dask memory_read_count disk_read_bytes disk_write_bytes dask_spill_read_bytes
dask_spill_write_bytes total_events wall_time elapsed_time_seconds total_cpu_time num_chunks avg_cpu_time_per_chunk
avg_workers mean_workers peak_workers cores_per_worker total_cores avg_memory_per_worker_bytes
peak_memory_per_worker_bytes peak_memory_bytes cpu_time_seconds io_time_seconds compression_time_seconds
dask_compress_seconds decompression_time_seconds dask_decompress_seconds serialization_time_seconds
deserialization_time_seconds executor_time_seconds other_time_seconds processor_cpu_time_seconds
processor_noncpu_time_seconds processor_io_wait_time_seconds processor_cpu_percentage processor_noncpu_percentage
overhead_cpu_time_seconds overhead_noncpu_time_seconds total_compression_overhead_seconds
total_serialization_overhead_seconds core_efficiency speedup_factor io_overhead_percent efficiency_ratio_percent
chunk_time_min_seconds chunk_time_max_seconds chunk_time_mean_seconds""".split()
TRACKING = """worker_counts worker_memory worker_memory_limit worker_cores worker_active_tasks worker_executing
worker_nbytes worker_occupancy worker_last_seen""".split()
ALIASES = {"data_rate_gbps": "overall_rate_gbps", "event_rate_elapsed_khz": "event_rate_wall_khz",
           "event_rate_cpu_total_khz": "event_rate_agg_khz", "total_bytes_read": "total_bytes_read_coffea",
           "elapsed_time_seconds": "wall_time", "total_bytes_uncompressed": "bytes_read_uncompressed"}


def missing(names, found):
    return [name for name in names if name not in found]


def test_sections(demo):
    assert missing(["run", "metrics", "tasks", "chunks", "workers", "files", "codecs", "servers", "tracking_data", "completeness"],
                   demo.json) == []


def test_fields(demo):
    for task in demo.json["tasks"]:
        assert missing(TASK_FIELDS, task) == []
    for chunk in demo.json["chunks"]:
        assert missing(CHUNK_FIELDS, chunk) == []
    assert missing(METRICS, demo.json["metrics"]) == []


def test_tracking(demo):
    tracking = demo.json["tracking_data"]
    assert missing(TRACKING, tracking) == []
    assert max(row["worker_count"] for row in tracking["worker_counts"]) == 2
    for row in tracking["worker_counts"]:
        assert datetime.datetime.fromisoformat(row["timestamp"]).utcoffset() == datetime.timedelta(0)
    for rows in tracking["worker_memory"].values():
        assert all(row["memory_bytes"] > 10_000_000 for row in rows)


@pytest.mark.parametrize("alias,name", ALIASES.items())
def test_aliases(demo, alias, name):
    assert demo.json["metrics"][alias] == demo.json["metrics"][name]


def test_formulas(demo):
    m = demo.json["metrics"]
    wall, cores, cpu = m["wall_time"], m["total_cores"], m["total_cpu_time"]
    expected = {
        "overall_rate_gbps": m["total_bytes_read_coffea"] * 8 / wall / 1e9,
        "overall_rate_mbs": m["total_bytes_read_coffea"] / wall / 1e6,
        "event_rate_wall_khz": m["total_events"] / wall / 1e3,
        "event_rate_agg_khz": m["total_events"] / cpu / 1e3,
        "event_rate_core_hz": m["total_events"] / (wall * cores),
        "event_rate_core_khz": m["event_rate_core_hz"] / 1e3,
        "compression_ratio": m["bytes_read_uncompressed"] / m["bytes_read_compressed"],
        "avg_cpu_time_per_chunk": cpu / m["num_chunks"],
        "core_efficiency": cpu / (wall * cores),
        "speedup_factor": cpu / wall,
        "total_cores": m["avg_workers"] * m["cores_per_worker"],
        "efficiency_ratio_percent": 100 * m["event_rate_wall_khz"] / m["event_rate_agg_khz"],
    }
    for name, value in expected.items():
        assert m[name] == pytest.approx(value, rel=1e-9), name
    counted = [t for t in demo.json["tasks"] if t["counted"]]
    first, last = min(t["start"] for t in counted), max(t["stop"] for t in counted)
    assert wall == pytest.approx(last - first, abs=0.05)


def test_times_are_within_the_run(demo):
    for task in demo.json["tasks"]:
        assert task["start"] <= task["stop"]
        assert task["stop"] - task["start"] == pytest.approx(task["wall_seconds"], abs=0.05)
        assert 0 <= task["cpu_seconds"] <= task["wall_seconds"] + 0.05
        assert task["rss_peak_bytes"] >= max(task["rss_start_bytes"], task["rss_stop_bytes"])
