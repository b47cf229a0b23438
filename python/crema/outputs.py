# SPDX-License-Identifier: BSD-3-Clause
"""Combines what roastcoffea's decorators and trackers put into an analysis' output with the measured chunks.

@track_metrics puts a list of chunks into the output, under KEY; coffea's merging joins the lists. Each chunk has
"timing", "memory" and "bytes" by the names given to track_time, track_memory and track_bytes.
"""

KEY = "__roastcoffea_metrics__"
TRACKERS = {"timing": "section", "memory": "memory", "bytes": "bytes"}


def peek(output):
    """The list in an output; None if there is none."""
    try:
        found = output[KEY]
    except (TypeError, KeyError, IndexError):
        return None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else None


def identity(row):
    """File and entry range of a chunk; None if one is missing."""
    key = row.get("file"), row.get("entry_start"), row.get("entry_stop")
    return None if None in key else key


def merge_chunks(measured, tracked):
    """Measured chunks with the decorators' additional data; tracked chunks that were not measured come last.

    The measured value wins over that of a decorator, which stays in the original list.
    """
    known = {identity(row): row for row in tracked if identity(row)}
    merged, used = [], set()
    for row in measured:
        theirs = known.get(identity(row), {})
        used.add(id(theirs))
        merged.append({**theirs, **row})
    return merged + [{**row, "measured": False} for row in tracked if id(known.get(identity(row), row)) not in used]


def branches_percent(chunks):
    """Share of a file's branches that were read, mean of the files; only the decorators have their number."""
    first = {}
    for chunk in chunks:
        if chunk.get("file") and _number(chunk.get("branches_read_percent")):
            first.setdefault(chunk["file"], chunk["branches_read_percent"])
    return sum(first.values()) / len(first) if first else None


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def sections(chunks):
    """{name: count, total and mean} of the trackers of all chunks, as needed by roastcoffea's table of chunks."""
    found = {}
    for chunk in chunks:
        for tracker, kind in TRACKERS.items():
            values = chunk.get(tracker)
            for name, value in (values.items() if isinstance(values, dict) else ()):
                if not _number(value):
                    continue
                row = found.setdefault(str(name), {"count": 0, "total_duration": 0.0, "mean_duration": 0.0})
                _add(row, kind, value)
    for row in found.values():
        row["type"] = "memory" if "mem_deltas_mb" in row else "section" if "timed" in row else "bytes"
        if "timed" in row:
            row["mean_duration"] = row["total_duration"] / row.pop("timed")
        if "mem_deltas_mb" in row:
            deltas = row.pop("mem_deltas_mb")
            row.update(mean_mem_delta_mb=sum(deltas) / len(deltas), min_mem_delta_mb=min(deltas), max_mem_delta_mb=max(deltas))
    return found


def _add(row, kind, value):
    if kind == "section":
        row["timed"] = row.get("timed", 0) + 1
        row["total_duration"] += value
        row["count"] = max(row["count"], row["timed"])
    elif kind == "memory":
        row.setdefault("mem_deltas_mb", []).append(value)
        row["count"] = max(row["count"], len(row["mem_deltas_mb"]))
    else:
        row["reads"] = row.get("reads", 0) + 1
        row["bytes"] = row.get("bytes", 0) + value
        row["count"] = max(row["count"], row["reads"])


def summary(found):
    """Lines for people."""
    if not found:
        return []
    width = max(len(name) for name in found)
    lines = ["", "Sections from roastcoffea's trackers", f"  {'section':<{width}}  count   seconds  memory, MB per chunk      bytes"]
    for name, row in sorted(found.items(), key=lambda item: -item[1]["total_duration"]):
        seconds = f"{row['total_duration']:.3f}" if row["total_duration"] else "-"
        memory = f"{row['mean_mem_delta_mb']:.1f}" if "mean_mem_delta_mb" in row else "-"
        lines.append(f"  {_plain(name):<{width}}  {row['count']:>5}  {seconds:>8}  {memory:>20}  {row.get('bytes', '-'):>9}")
    return lines


def _plain(name):
    """A name without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in name)
