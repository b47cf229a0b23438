#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/compare-roastcoffea.md from the results of tests/integration/test_roastcoffea.py: one run under both tools.

    render_roastcoffea.py --found FILE --output docs/compare-roastcoffea.md

No number is written by hand: each comes from FILE, which the test writes to the path in CREMA_COMPARE_OUT.
"""

import argparse
import json
import statistics
from pathlib import Path

SAME = ["total_events", "num_chunks", "num_successful_chunks", "num_failed_chunks", "total_bytes_read", "total_branches_read",
        "peak_workers", "total_cpu_time", "processor_cpu_time_seconds", "processor_io_wait_time_seconds",
        "overhead_cpu_time_seconds", "overhead_io_wait_time_seconds", "total_bytes_memory_read"]
WAITS = {"runqueue_wait_seconds": "a core", "gil_wait_seconds": "the interpreter lock", "lock_wait_seconds": "other locks",
         "network_wait_seconds": "the network", "storage_wait_seconds": "storage", "sleep_seconds": "sleep"}


def seconds(value):
    return f"{value:.3f} s"


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def plain(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def percent(value):
    return f"{100 * value:.1f} %"


def ratio(a, b):
    if not b:
        return "unlike" if a else "same"
    return f"{100 * (a - b) / b:+.1f} %"


def row(name, theirs, truth, what, why, show=number):
    return f"| `{name}` | {show(theirs)} | {show(truth)} | {ratio(theirs, truth)} | {what} | {why} |"


def byte_rows(theirs, ours, small):
    chunk_bytes = sum(c.get("accessed_bytes", 0) for c in theirs["raw_chunk_metrics"])
    per_file = {c["file"] for c in theirs["raw_chunk_metrics"]}
    return [
        row("total_bytes_read", theirs["total_bytes_read"], ours["basket_bytes"], "`basket_bytes`: baskets that the chunks used",
            "these are requested bytes: every chunk opens its file and requests its metadata again. "
            f"{ours['requested_outside_percent']:.1f} % of it is outside baskets; in {small['num_chunks']} chunks the same "
            f"events are {number(small['total_bytes_read'])} bytes"),
        row("data_rate_gbps", theirs["data_rate_gbps"], ours["read_rate_mbs"] * 8e-3, "`read_rate_mbs`: bytes that read calls returned",
            "requested bytes are not those read (ranges are joined), and its time includes its own setup", plain),
        row("disk_read_bytes", theirs["disk_read_bytes"], ours["disk_read_bytes"], "bytes charged by the storage",
            "Dask's disk-read counts spilled data read back, not files"),
        row("disk_write_bytes", theirs["disk_write_bytes"], ours["disk_write_bytes"], "bytes charged by the storage", "the same for disk-write"),
        row("accessed_bytes of all chunks", chunk_bytes, ours["basket_bytes"], "`basket_bytes`",
            f"each of the {len(theirs['raw_chunk_metrics'])} chunks has the whole branches of its file ({len(per_file)} files)"),
        row("bytes_read of all chunks", sum(c["bytes_read"] for c in theirs["raw_chunk_metrics"]), ours["read_bytes"],
            "`read_bytes`", "requested while process() ran, without the requests for opening the file"),
        row("compression_ratios, mean", statistics.mean(theirs["compression_ratios"]), statistics.mean(ours["compression_ratios"]),
            "baskets used, packed / unpacked", "it covers all branches of the file, read or not", plain),
    ]


def time_rows(theirs, ours, setup):
    cores, events = theirs["total_cores"], theirs["total_events"]
    cpu, wall = ours["total_cpu_time_true"], ours["wall_time"]
    waits = ", ".join(f"{seconds(ours[n])} for {what}" for n, what in WAITS.items() if ours[n])
    return [
        row("elapsed_time_seconds", theirs["elapsed_time_seconds"], wall, "`wall_time`, by the client",
            f"{seconds(setup)} of it is setup: before the job it sends a function to the scheduler, which imports roastcoffea for it", seconds),
        row("total_cpu_time", theirs["total_cpu_time"], cpu, "`total_cpu_time_true`: CPU of chunks, own and pool threads",
            "coffea's processtime is wall time around process(), without opening the file", seconds),
        row("avg_cpu_time_per_chunk", theirs["avg_cpu_time_per_chunk"], ours["avg_cpu_time_per_chunk_true"], "`..._true`", "follows from it", seconds),
        row("event_rate_cpu_total_khz", theirs["event_rate_cpu_total_khz"], events / cpu / 1000, "`event_rate_agg_khz_true`", "follows from it"),
        row("core_efficiency", theirs["core_efficiency"], cpu / (wall * cores), "`core_efficiency_true`", "follows from both times", percent),
        row("speedup_factor", theirs["speedup_factor"], cpu / wall, "`speedup_factor_true`", "follows from both times", plain),
        row("processor_cpu_time_seconds", theirs["processor_cpu_time_seconds"], ours["processor_cpu_time_seconds_true"],
            "`..._true`", "Dask measures only the task's own thread; uproot reads in pool threads", seconds),
        row("processor_io_wait_time_seconds", theirs["processor_io_wait_time_seconds"],
            (ours["storage_wait_seconds"] or 0) + (ours["network_wait_seconds"] or 0), "waits for storage and network, all tasks",
            f"it is everything that is not CPU of the task's own thread. crema's waits of all tasks: {waits}", seconds),
        row("decompression_time_seconds", theirs["decompression_time_seconds"], ours["decompression_time_seconds"],
            "CPU in codecs", "Dask's decompress counts its own messages", seconds),
        row("chunk_duration_mean", theirs["chunk_duration_mean"], ours["chunk_time_mean_seconds"], "coffea's processtime",
            "excludes its decorator's work before and after process(), which is in the chunk's time", seconds),
    ]


def memory_rows(theirs, ours):
    return [
        row("peak_memory_bytes", theirs["peak_memory_bytes"], ours["peak_memory_bytes"], "samples every second and at each task's start and end",
            "heartbeats, read once a second"),
        row("avg_memory_per_worker_bytes", theirs["avg_memory_per_worker_bytes"], ours["avg_memory_per_worker_bytes"],
            "over the tasks' time", "averaged over the whole block, in which the workers still import modules"),
    ]


def render(found):
    job, versions = found["job"], found["run"]["workers"][0]
    theirs, ours, small = job["theirs"], job["ours"], job["small"]
    same = [f"| `{name}` | {number(theirs[name])} | {number(ours[name])} |" for name in SAME]
    head = "| name | roastcoffea | truth | off by | what the truth is | why they differ |\n|---|---|---|---|---|---|"
    return "\n".join([
        "# crema compared with roastcoffea 0.1.2", "",
        "One job, measured by roastcoffea's `MetricsCollector` and `crema.measure` at once: "
        f"{number(theirs['total_events'])} events in {theirs['num_chunks']} chunks, two workers, Python "
        f"{versions['python'].split()[0]}, Dask {versions['dask']}, coffea {versions['coffea']}, uproot {versions['uproot']}.",
        "The files were not in the page cache; the workers had not yet imported coffea. This page is generated from that run by", "", "    make compare-roastcoffea", "",
        "which runs `tests/integration/test_roastcoffea.py` and fails if the numbers of the first table are not",
        "equal (counts) or differ by more than 2 % (sums over tasks). Seconds are from the machine that ran it.", "",
        "## The same in both", "", "| name | roastcoffea | crema |", "|---|---|---|", *same, "",
        f"The wall time, without the {seconds(job['their_setup'])} of roastcoffea's own setup, is "
        f"{seconds(theirs['elapsed_time_seconds'] - job['their_setup'])} in roastcoffea and {seconds(ours['wall_time'])} in crema; from the first to the last task on the "
        f"workers it is {seconds(ours['workers_wall_time'])}.", "",
        "## Bytes", "", head, *byte_rows(theirs, ours, small), "",
        "## Time", "", head, *time_rows(theirs, ours, job["their_setup"]), "",
        "## Memory", "", head, *memory_rows(theirs, ours), "",
        "crema writes roastcoffea's names with roastcoffea's meaning where it has one (`total_bytes_read`,",
        "`total_cpu_time`, `processor_cpu_time_seconds`: the first table), and the true value under a name of its",
        "own; `disk_read_bytes`, `disk_write_bytes`, `compression_time_seconds` and `decompression_time_seconds` are",
        "true here, and Dask's own are `dask_spill_read_bytes` and so on. docs/metrics.md has them all.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--found", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    args = parser.parse_args()
    args.output.write_text(render(json.loads(args.found.read_text())))


if __name__ == "__main__":
    main()
