# SPDX-License-Identifier: BSD-3-Clause
"""Four matplotlib charts of a run. Unknown values are named and have no bar."""

import itertools

TIME = [("task_cpu_seconds", "CPU", "#0072B2"), ("runqueue_wait_seconds", "waiting for a core", "#E69F00"),
        ("gil_wait_seconds", "waiting for the GIL", "#D55E00"), ("lock_wait_seconds", "waiting for other locks", "#CC79A7"),
        ("network_wait_seconds", "waiting for the network", "#009E73"), ("storage_wait_seconds", "waiting for storage", "#56B4E9"),
        ("sleep_seconds", "asleep", "#999999"), ("unclassified_seconds", "not classified", "#555555"),
        ("idle_thread_seconds", "threads without a task", "#DDDDDD")]
BYTES = [("total_bytes_read_coffea", "requested (coffea)", "#999999"), ("read_bytes", "read", "#0072B2"),
         ("disk_read_bytes", "from storage", "#56B4E9"), ("network_read_bytes", "from the network", "#009E73"),
         ("basket_bytes", "baskets used", "#E69F00"), ("bytes_read_uncompressed", "decompressed", "#CC79A7")]
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"]
NAMED = 8  # datasets or kinds of tasks with a separate colour; the others share the last
NAMED_THREADS = 16


def bars(ax, metrics, rows, title, unit, scale):
    for place, (name, _, colour) in enumerate(rows):
        value = metrics.get(name)
        if value is None:
            ax.text(0, place, " unknown", va="center", color="#777777", fontsize="small")
        else:
            ax.barh(place, value / scale, color=colour)
    ax.set_yticks(range(len(rows)), [label for _, label, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(left=0, right=ax.get_xlim()[1] if any(metrics.get(name) for name, _, _ in rows) else 1)
    ax.set(title=title, xlabel=unit)


def time(ax, data):
    """Where the threads' time went: counted tasks, and threads without a task."""
    bars(ax, data["metrics"], TIME, "Thread time", "seconds, of all threads", 1)


def volumes(ax, data):
    """The layers that bytes pass through; each is measured separately."""
    bars(ax, data["metrics"], BYTES, "Bytes by layer", "MB", 1e6)


def colours_of(names):
    """{name: colour}, the most frequent first."""
    names = list(names)
    order = sorted(set(names), key=lambda name: (-names.count(name), str(name)))
    return {name: COLOURS[min(place, NAMED - 1)] for place, name in enumerate(order)}


def whole(rows):
    return [row for row in rows if row["start"] is not None and row["stop"] is not None]


def legend(ax, colours):
    """Below the chart, where it hides nothing; only if there is more than one, and each has its own color."""
    shown = list(colours.items())[:NAMED]
    if len(colours) > 1:
        marks = [ax.plot([], [], color=colour, linewidth=5)[0] for _, colour in shown]
        more = [" and others" if place == NAMED - 1 and len(colours) > NAMED else "" for place in range(len(shown))]
        ax.legend(marks, [str(name) + word for (name, _), word in zip(shown, more, strict=True)], fontsize="small",
                  loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, frameon=False)


def tasks(ax, data):
    """The task stream: one row for each thread of a worker."""
    rows = whole(data["tasks"])
    begin = min((row["start"] for row in rows), default=0.0)
    names = data.get("prefix_names", {})
    rows = [{**row, "kind": names.get(row["prefix"], row["prefix"])} for row in rows]
    colours = colours_of(row["kind"] for row in rows)
    rows.sort(key=lambda row: (str(row["worker"]), str(row["thread"])))
    threads = [list(group) for _, group in itertools.groupby(rows, key=lambda row: (row["worker"], row["thread"]))]
    for place, thread in enumerate(threads):
        ax.broken_barh([(row["start"] - begin, row["stop"] - row["start"]) for row in thread], (place - 0.45, 0.9),
                       facecolors=[colours[row["kind"]] for row in thread], edgecolor="white", linewidth=0.3)
    ax.set_ylim(max(len(threads), 1) - 0.5, -0.5)
    named = range(len(threads) if len(threads) <= NAMED_THREADS else 0)
    ax.set_yticks(named, [f"thread {place + 1}" for place in named])
    ax.set(title="Task stream", xlabel="seconds since the first task")
    legend(ax, colours)


def chunks(ax, data):
    """The duration of each chunk, by its start."""
    rows = [row for row in whole(data["chunks"]) if row["wall_seconds"] is not None]
    begin = min((row["start"] for row in whole(data["tasks"])), default=0.0)
    colours = colours_of(row["dataset"] for row in rows)
    for name, colour in colours.items():
        own = [row for row in rows if row["dataset"] == name]
        ax.plot([row["start"] - begin for row in own], [row["wall_seconds"] for row in own], "o", color=colour, markersize=4)
    if rows:
        lengths = sorted(row["wall_seconds"] for row in rows)
        median = (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2]) / 2
        ax.axhline(median, color="#555555", linewidth=1, linestyle="--")
        ax.annotate(f"median {median:.3g} s", (1, median), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize="small")
    ax.set(title="Chunks" if rows else "Chunks: none", xlabel="start, seconds since the first task", ylabel="seconds")
    ax.set_ylim(bottom=0)
    legend(ax, colours)


CHARTS = {"time": time, "bytes": volumes, "tasks": tasks, "chunks": chunks}


def plot(data, which=None, ax=None):
    """Draws one chart and returns its Axes, or all four and returns an array of them."""
    if which is not None and which not in CHARTS:
        raise ValueError(f"there is no chart '{which}'; there are {', '.join(CHARTS)}")
    if which is None and ax is not None:
        raise ValueError(f"name the chart that goes into ax: {', '.join(CHARTS)}")
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot() needs matplotlib (pip install matplotlib); .metrics and .json have the numbers") from None
        if which is None:
            _, axes = plt.subplots(2, 2, figsize=(12, 7), layout="constrained")
            for draw, each in zip(CHARTS.values(), axes.flat, strict=True):
                draw(each, data)
            return axes
        ax = plt.subplots(figsize=(7, 4), layout="constrained")[1]
    CHARTS[which](ax, data)
    return ax
