# SPDX-License-Identifier: BSD-3-Clause
"""Draws measurements with every plot function of roastcoffea; runs in the environment of test_roastcoffea.py.

    roastcoffea_plots.py OUTPUT.json PNGS NAME LOADER FOLDER [NAME LOADER FOLDER ...]

LOADER selects whose load_measurement reads the folder: roastcoffea or crema. The first is saved as PNGs, too.

Writes {NAME: {function: {lines, bars, points, areas, error}}} of the contents of the axes, and all tables as text.
"""

import inspect
import io
import json
import sys
from pathlib import Path

import crema
import matplotlib

matplotlib.use("agg")
import matplotlib.dates as mdates
import numpy as np
import roastcoffea
from rich.console import Console
from roastcoffea.export import reporter
from roastcoffea.visualization import plots


def seconds(value):
    """Times in the axes are days since 1970."""
    return float(value) * 86400 if value > 10_000 else float(value)


def drawn(figure):
    found = {"lines": [], "bars": [], "points": [], "areas": 0}
    for axes in figure.axes:
        for line in axes.get_lines():
            x, y = line.get_xdata(orig=False), line.get_ydata(orig=False)
            found["lines"].append({"label": str(line.get_label()), "y": [float(v) for v in y],
                                   "x": [seconds(mdates.date2num(v)) if hasattr(v, "year") else seconds(v) for v in x]})
        for container in axes.containers:
            found["bars"].append({"label": str(container.get_label()), "heights": [float(b.get_height()) for b in container]})
        for collection in axes.collections:
            offsets = np.asarray(collection.get_offsets())
            if type(collection).__name__ == "PathCollection":
                found["points"] += [[float(a), float(b)] for a, b in offsets]
            else:
                found["areas"] += 1
                vertices = collection.get_paths()[0].vertices
                found["lines"].append({"label": "area", "x": [seconds(v) for v in vertices[:, 0]],
                                       "y": [float(v) for v in vertices[:, 1]]})
    found["labels"] = [t.get_text() for a in figure.axes for t in a.get_xticklabels()]
    return found


def arguments(name, function, metrics):
    """Values for the function's first parameters, by their names."""
    known = {"metrics": metrics, "tracking_data": metrics.get("tracking_data"),
             "chunk_metrics": metrics.get("raw_chunk_metrics"), "chunk_info": metrics.get("chunk_info"),
             "span_metrics": metrics.get("raw_span_metrics")}
    return {p: known[p] for p in inspect.signature(function).parameters if p in known}


def draw_all(metrics, folder):
    found = {}
    for name in dir(plots):
        function = getattr(plots, name)
        if not name.startswith("plot_") or not inspect.isfunction(function):
            continue
        try:
            png = folder / f"{name}.png" if folder else None
            figure, axes = function(**arguments(name, function, metrics), output_path=png)
            found[name] = drawn(figure)
            found[name]["png_bytes"] = png.stat().st_size if png else None
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"}
        matplotlib.pyplot.close("all")
    return found


def tables(metrics):
    text = {}
    for name in dir(reporter):
        if name.startswith("format_"):
            table = getattr(reporter, name)(metrics)
            out = io.StringIO()
            Console(file=out, width=120).print(table)
            text[name] = None if table is None else out.getvalue()
    return text


def main():
    output, pngs = map(Path, sys.argv[1:3])
    pngs.mkdir()
    found = {}
    for name, loader, folder in zip(*[iter(sys.argv[3:])] * 3):
        metrics, start, end = {"roastcoffea": roastcoffea, "crema": crema}[loader].load_measurement(Path(folder))
        found[name] = {"start": start, "end": end, "tables": tables(metrics),
                       "plots": draw_all(metrics, None if found else pngs)}
    output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
