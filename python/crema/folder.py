# SPDX-License-Identifier: BSD-3-Clause
"""Folders in roastcoffea's layout, as `crema report --measurement` and roastcoffea itself write them."""

import ast
import json
from datetime import datetime
from pathlib import Path


def _time(text):
    return datetime.fromisoformat(text)


def _tracking(data):
    """Converts ISO times to datetimes in all series."""
    if data is None:
        return None
    found = {}
    for name, series in data.items():
        if name == "worker_counts":
            found[name] = {_time(t): count for t, count in series.items()}
        elif isinstance(series, dict):
            found[name] = {worker: [(_time(t), value) for t, value in points] for worker, points in series.items()}
        else:
            found[name] = series
    return found


def _tuples(data):
    """Converts keys that were written as repr() of a tuple; others are unchanged."""
    found = {}
    for key, value in data.items():
        try:
            found[ast.literal_eval(key)] = tuple(value) if isinstance(value, list) else value
        except (ValueError, SyntaxError):
            found[key] = value
    return found


def load_measurement(path):
    """(metrics, start, end) of a folder, with everything that roastcoffea's plots need.

    roastcoffea's own load_measurement returns the same without the workers' CPU and with the keys of
    raw_span_metrics as text, so its plots of CPU and of tasks do not find their data.
    """
    path = Path(path)
    for name in ("metrics.json", "start_end_time.txt"):
        if not (path / name).exists():
            raise FileNotFoundError(f"'{path}' is not a measurement: it has no {name}")
    metrics = json.loads((path / "metrics.json").read_text(encoding="utf-8"))
    if "tracking_data" in metrics:
        metrics["tracking_data"] = _tracking(metrics["tracking_data"])
    for name in ("raw_span_metrics", "chunk_info"):
        if isinstance(metrics.get(name), dict):
            metrics[name] = _tuples(metrics[name])
    line = (path / "start_end_time.txt").read_text(encoding="utf-8").strip()
    try:
        start, end = map(float, line.split(","))
    except ValueError:
        raise ValueError(f"'{path / 'start_end_time.txt'}' does not contain two times") from None
    return metrics, start, end


def json_ready(value):
    """Converts to JSON types: tuple keys to text, times to ISO, sets and arrays to lists."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else k.isoformat() if isinstance(k, datetime) else str(k): json_ready(v)
                for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(json_ready, value), key=repr)
    if isinstance(value, (list, tuple)):
        return [json_ready(v) for v in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # JSON has no NaN and infinity
    if value is None or isinstance(value, (str, int)):
        return value
    item = getattr(value, "item", None)  # numpy numbers
    try:
        return json_ready(item()) if item else str(value)
    except (TypeError, ValueError):
        return str(value)
