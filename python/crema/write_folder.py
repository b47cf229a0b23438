# SPDX-License-Identifier: BSD-3-Clause
"""A run as a folder in the layout of roastcoffea 0.1.2, for its load_measurement, tables and plots.

`crema report --measurement` runs this text in a Python process: the report's JSON comes on standard input, the four
files are open descriptors (FILES). Only the standard library is used. roastcoffea accepts a missing member
but fails on null, so unknown values are left out.
"""

import json
import math
import os
import shutil
import sys
import tempfile
from datetime import datetime, timedelta, timezone

FILES = {3: "metrics.json", 4: "start_end_time.txt", 5: "config.json", 6: "metadata.json"}
MIB = 1024.0 * 1024.0
# Dask's own digests with these names are about spilling and sending: they are renamed, and replaced by the tasks'
# numbers.
OF_TASKS = (("disk-read", "bytes", "storage_read_bytes", 1), ("disk-write", "bytes", "storage_write_bytes", 1),
            ("decompress", "seconds", "decompress_cpu_seconds", 1e9), ("compress", "seconds", "compress_cpu_seconds", 1e9))
# roastcoffea's series: our series, the member of a point
SERIES = {"worker_memory": ("worker_memory", "memory_bytes"),
          "worker_memory_limit": ("worker_memory_limit", "memory_limit_bytes"),
          "worker_active_tasks": ("worker_active_tasks", "active_tasks"),
          "worker_cores": ("worker_cores", "cores"), "worker_nbytes": ("worker_nbytes", "nbytes"),
          "worker_occupancy": ("worker_occupancy", "occupancy"),
          "worker_executing": ("worker_executing", "executing"),
          "worker_last_seen": ("worker_last_seen", "last_seen"),
          "worker_cpu": ("worker_cpu_occupancy", "cpu_percent")}
LISTS = ("columns", "span_metrics", "per_task_metrics")  # null if unknown
NEAR_SECONDS = 1.5
GRID_STEP = 0.5         # the sampling interval of a worker
GRID_POINTS = 7200      # at most, of each series
ALL_POINTS = 2_000_000  # at most, of all of them
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def read(lines, rows):
    """The report without its large lists: each row of a list named in `rows` is passed to that function.

    Each member of the report's outer two levels is on one line, so only one row is in memory.
    """
    run, inside = {}, None
    for line in lines:
        text = line.strip().rstrip(",")
        if line.startswith("  "):
            if name in rows:
                rows[name](json.loads(text))
            elif isinstance(inside, list):
                inside.append(json.loads(text))
            else:
                inside.update(json.loads("{" + text + "}"))
        elif line.startswith(' "'):
            member = json.loads("{" + text + {"[": "]", "{": "}"}.get(text[-1], "") + "}")
            (name, inside), = member.items()
            run.update(member)
    return run


def known(**members):
    return {name: value for name, value in members.items() if value is not None}


def ratio(a, b, factor=1):
    return None if a is None or not b else a / b * factor


def plus(a, b):
    return None if a is None or b is None else a + b


class Sum:
    """Unknown if one part is. Seconds are summed in whole nanoseconds."""

    def __init__(self, unit=1):
        self.unit, self.value = unit, 0

    def add(self, value):
        if value is not None and self.unit != 1:
            value = round(value * self.unit)
        self.value = plus(self.value, value)

    def get(self):
        return self.value if self.unit == 1 or self.value is None else self.value / self.unit


def seconds_of(utc):
    """Seconds since 1970 of a time in ISO."""
    return (datetime.fromisoformat(utc) - EPOCH) / timedelta(seconds=1)


def value_of(value):
    return seconds_of(value) if isinstance(value, str) else value


def iso(seconds):
    whole = math.floor(seconds)
    time = EPOCH + timedelta(seconds=whole, microseconds=int((seconds - whole) * 1e6))
    return time.isoformat(timespec="microseconds")


def is_remote(name):
    return name is not None and "://" in name and not name.startswith("file://")


class Members:
    """The members of a JSON list or object, one per line."""

    def __init__(self, file):
        self.file, self.lead = file, "\n "

    def put(self, text):
        self.file.write(self.lead + text)
        self.lead = ",\n "


class Chunks:
    """Counted chunks as roastcoffea's @track_metrics lists them.

    duration is coffea's processtime, the wall time around process() as in roastcoffea. Without savemetrics it is the task's
    wall time; duration_of names which. bytes_read is coffea's number of requested bytes, or what read calls returned.
    Accessed bytes are of the baskets that this chunk used; roastcoffea's are whole branches of the file. Rows
    and info are written to these files at once: a run may have a million chunks.
    """

    def __init__(self, rows, info):
        self.rows, self.info, self.datasets = Members(rows), Members(info), {}

    def add(self, row):
        if not row["counted"]:
            return
        seconds, size = row["coffea_processtime_seconds"], row["coffea_bytesread"]
        found = known(
            t_start=row["start"], t_end=row["stop"], duration=row["wall_seconds"] if seconds is None else seconds,
            duration_of="task" if seconds is None else "process()", wall_seconds=row["wall_seconds"],
            mem_before_mb=ratio(row["rss_start_bytes"], MIB), mem_after_mb=ratio(row["rss_stop_bytes"], MIB),
            bytes_read=row["read_bytes"] if size is None else size,
            bytes_read_of="returned by read calls" if size is None else "requested", timestamp=row["stop"],
            num_events=row["events"], dataset=row["dataset"], file=row["filename"], entry_start=row["entrystart"],
            entry_stop=row["entrystop"], accessed_bytes=row["basket_bytes"],
            accessed_uncompressed_bytes=row["basket_raw_bytes"])
        if row["rss_start_bytes"] is not None and row["rss_stop_bytes"] is not None:
            found["mem_delta_mb"] = (row["rss_stop_bytes"] - row["rss_start_bytes"]) / MIB
        if row["columns"] is not None:
            found["accessed_branches"] = sorted({branch(c) for c in row["columns"] if c}, key=str.encode)
            found["num_branches_accessed"] = len(found["accessed_branches"])
        if row.get("sections"):
            found["sections"] = [{name: section[name] for name in ("section_name", "time_delta", "calls", "thread")} for section in row["sections"]]
            if row["sections_refused"]:
                found["sections_refused"] = row["sections_refused"]
        self.rows.put(json.dumps(found))
        if all(name in found for name in ("file", "entry_start", "entry_stop", "t_start", "t_end", "bytes_read")):
            key = repr((found["file"], found["entry_start"], found["entry_stop"]))
            self.info.put(f"{json.dumps(key)}: {json.dumps([found['t_start'], found['t_end'], found['bytes_read']])}")
        self._count(row, found.get("duration"))

    def _count(self, row, duration):
        names = ("events", "coffea_bytesread", "read_bytes", "storage_read_bytes")
        sums = self.datasets.setdefault(row["dataset"], {
            "n": Sum(), "duration": Sum(), **{name: Sum() for name in names}, "cpu": Sum(1e9)})
        sums["n"].add(1)
        sums["duration"].add(duration)
        for name in names:
            sums[name].add(row[name])
        for name in ("cpu_seconds", "pool_cpu_seconds"):
            sums["cpu"].add(row[name])

    def per_dataset(self):
        found = {}
        for name in sorted(self.datasets, key=lambda name: (name is not None, (name or "").encode())):
            s = {key: value.get() for key, value in self.datasets[name].items()}
            found["unknown" if name is None else name] = known(
                num_chunks=s["n"], total_duration=s["duration"], mean_duration=ratio(s["duration"], s["n"]),
                total_events=s["events"], mean_events_per_chunk=ratio(s["events"], s["n"]),
                coffea_bytesread=s["coffea_bytesread"], read_bytes=s["read_bytes"],
                storage_read_bytes=s["storage_read_bytes"], cpu_seconds=s["cpu"])
        return found


def branch(column):
    """The branch of one of coffea's columns, which lists awkward's parts of a branch separately."""
    for part in ("-data", "-offsets"):
        if column.endswith(part) and column != part:
            return column[:-len(part)]
    return column


def files_read(rows):
    """roastcoffea's ratio is compressed / uncompressed of the whole tree; this is the same for the used baskets.
    Its percentages are of the tree's bytes; these are of the file's size, which is slightly larger."""
    data, percents = {}, []
    for row in rows:
        name, packed = row["path"] if row["name"] is None else row["name"], ratio(row["basket_bytes"], row["basket_raw_bytes"])
        if name is None or packed is None:
            continue
        used, size = row["unique_basket_bytes"], row["size_bytes"]
        data.setdefault("ratios", []).append(packed)
        data.setdefault("metadata", {})[name] = {"filename": name, "compression_ratio": packed}
        data.setdefault("reads", {})[name] = known(file_bytes=size, bytes_read=used, bytes_read_percent=ratio(used, size, 100))
        percents.append(ratio(used, size, 100))
    return {"file_metadata": data.get("metadata", {}), "file_read_metrics": data.get("reads", {}),
            "compression_ratios": data.get("ratios", []),
            "bytes_read_percent_per_file": [p for p in percents if p is not None]}


def durations(rows):
    """The shortest, the median and the longest; none for rows without a common median."""
    if not rows or any(row["wall_min_seconds"] is None for row in rows):
        return {}
    return known(min_duration=min(row["wall_min_seconds"] for row in rows), max_duration=max(row["wall_max_seconds"] for row in rows),
                 median_duration=rows[0]["wall_median_seconds"] if len(rows) == 1 else None)


def sections_by_dataset(rows):
    """{dataset: {name: ...}}; those of unknown datasets are left out."""
    found = {}
    for row in rows:
        if row["dataset"] is not None and row["section"] is not None:
            found.setdefault(row["dataset"], []).append(row)
    return {dataset: sections(own, []) for dataset, own in found.items()}


def sections(rows, memory):
    """Sums by name, over all prefixes and threads. If tasks used crema's own section() with a name, the numbers of
    roastcoffea's trackers with that name are left out. For a name with memory, too: the growth of the process."""
    found = {}
    for name in dict.fromkeys(row[key] for key, part in (("section", rows), ("name", memory)) for row in part if row[key] is not None):
        own = [row for row in rows if row["section"] == name]
        ours = [row for row in own if row["source"] == "crema"] or own
        count, seconds = 0, 0
        for row in ours:
            count, seconds = plus(count, row["count"]), plus(seconds, row["wall_seconds"])
        grown = [row["delta_bytes"] for row in memory if row["name"] == name and row["delta_bytes"]["count"]]
        times = sum(row["count"] for row in grown)
        found[name] = {"type": "memory" if times else "section", "count": count or times,
                       **known(total_duration=seconds, mean_duration=ratio(seconds, count)), **durations(ours)}
        if times:
            found[name].update(mean_mem_delta_mb=sum(row["sum"] for row in grown) / (MIB * times),
                               min_mem_delta_mb=min(row["min"] for row in grown) / MIB,
                               max_mem_delta_mb=max(row["max"] for row in grown) / MIB)
    return found


class Spans:
    """{"(context, prefix, activity, unit)": value}: Dask's digests, and what the counted tasks of each prefix did."""

    def __init__(self):
        self.prefixes, self.network, self.chunks = {}, {}, {}
        self.remote, self.local = set(), False  # prefixes with chunks of files on servers; whether there are other chunks

    def add(self, task):
        if not task["counted"] or task["prefix"] is None:
            return
        sums = self.prefixes.setdefault(task["prefix"], [Sum(unit) for *_, unit in OF_TASKS])
        for one, (_, _, column, _) in zip(sums, OF_TASKS):
            one.add(task[column])
        self.network.setdefault(task["prefix"], Sum()).add(task["network_read_bytes"])

    def add_chunk(self, row):
        if not row["counted"] or row["prefix"] is None:
            return
        remote = is_remote(row["filename"])
        self.local = self.local or not remote
        if remote:
            self.remote.add(row["prefix"])
        self.chunks.setdefault(row["prefix"], Sum()).add(row["network_read_bytes" if remote else "storage_read_bytes"])

    def data_read(self, prefix, storage):
        """For files on servers the bytes from there: storage then only has the pages of libraries."""
        if prefix in self.remote:
            return self.chunks[prefix]
        return self.network[prefix] if self.remote and not self.local else storage

    def get(self, digests):
        found, replaced = {}, {activity for activity, *_ in OF_TASKS}
        for *names, value in digests or []:
            if names[2] in replaced:
                names[2] = "dask-" + names[2]
            found[tuple(names)] = found.get(tuple(names), 0) + value
        for prefix, sums in self.prefixes.items():
            sums = [self.data_read(prefix, sums[0]), *sums[1:]]
            for one, (activity, unit, _, _) in zip(sums, OF_TASKS):
                key = ("execute", prefix, activity, unit)
                if one.get() is not None:
                    found[key] = found.get(key, 0) + one.get()

        def order(names):
            return [(name is not None, (name or "").encode()) for name in names]

        # Units in reverse order: the plots keep the last one of an activity, which must be its bytes.
        keys = sorted(sorted(found, key=lambda names: order(names[3:]), reverse=True), key=lambda names: order(names[:3]))
        return {repr(tuple(name for name in names if name is not None)): found[names] for names in keys}


def on_grid(points, moments):
    """The nearest sample for each moment; none if it is further away than NEAR_SECONDS."""
    found, k = [], 0
    for t in moments:
        while k + 1 < len(points) and abs(points[k + 1][0] - t) <= abs(points[k][0] - t):
            k += 1
        time, value = points[k]
        if abs(time - t) <= NEAR_SECONDS:
            found.append([iso(t), value])
    return found


def counts(series):
    """{time: count}; the count before a change is placed a microsecond before the one after it."""
    found = {}
    for point, after in zip(series, [*series[1:], None]):
        time = datetime.fromisoformat(point["timestamp"])
        if after and after["timestamp"] == point["timestamp"]:
            if after["worker_count"] == point["worker_count"]:
                continue
            time -= timedelta(microseconds=1)
        found[time.isoformat(timespec="microseconds")] = point["worker_count"]
    return found


def tracking(data, start, stop):
    """tracking_data in roastcoffea's format. Its plots require equal times in memory and limit, and in all workers,
    so the samples are placed on one grid."""
    data, moments = data or {}, []
    if start is not None and stop is not None and stop >= start:
        step = max(GRID_STEP, (stop - start) / GRID_POINTS,
                   (stop - start) * len(data.get("worker_memory") or ()) * len(SERIES) / ALL_POINTS)
        moments = [start + i * step for i in range(int((stop - start) / step) + 2)]
        moments = [t for t in moments if t < stop] + [stop]
    found = {"worker_counts": counts(data.get("worker_counts") or [])}
    for name, (ours, member) in SERIES.items():
        found[name] = {}
        for worker, points in (data.get(ours) or {}).items():
            if points:
                points = [(seconds_of(point["timestamp"]), value_of(point[member])) for point in points]
                found[name][worker] = on_grid(points, moments)
    return {**found, "estimated": ["worker_active_tasks", "worker_occupancy"]}


def write(lines, version, files):
    metrics_file = files["metrics.json"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as info_file:
        chunks, spans = Chunks(metrics_file, info_file), Spans()
        metrics_file.write('{"raw_chunk_metrics": [')

        def add_chunk(row):
            chunks.add(row)
            spans.add_chunk(row)

        run = read(lines, {"chunks": add_chunk, "tasks": spans.add})
        metrics_file.write('],\n"chunk_info": {')
        info_file.seek(0)
        shutil.copyfileobj(info_file, metrics_file)
    info, metrics = run["run_info"], run["metrics"]
    rest = {**{name: value for name, value in metrics.items() if value is not None or name in LISTS},
            "per_dataset": chunks.per_dataset(), **files_read(run["files"]),
            "sections": sections(run["sections"], run["memory_sections"]),
            "sections_by_dataset": sections_by_dataset(run["sections_by_dataset"]),
            "raw_span_metrics": spans.get(metrics.get("span_metrics")),
            "tracking_data": tracking(run.get("tracking_data"), info["averaged_from"], info["averaged_to"])}
    metrics_file.write("},\n" + json.dumps(rest, indent=1)[1:] + "\n")
    shown = ("worker", "host", "nthreads", "memory_limit_bytes", "python", "dask", "coffea", "uproot")
    json.dump({"run": run["run"], "spans": info["spans"],
               "workers": [{name: row[name] for name in shown} for row in run["workers"]]}, files["config.json"], indent=1)
    json.dump({"timestamp": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
               "elapsed_time_seconds": metrics["wall_time"], "format": "roastcoffea_measurement_v1",
               "written_by": f"crema {version}"}, files["metadata.json"], indent=1)
    start, stop = (math.nan if info[name] is None else info[name] for name in ("start", "stop"))
    files["start_end_time.txt"].write(f"{start:.6f},{stop:.6f}\n")


def main():
    files = {name: os.fdopen(descriptor, "w", encoding="utf-8") for descriptor, name in FILES.items()}
    write(open(0, encoding="utf-8"), sys.argv[1], files)
    for file in files.values():
        file.close()


if __name__ == "__main__":
    if sys.version_info < (3, 7):
        sys.exit("this Python is older than 3.7")
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
