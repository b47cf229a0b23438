# SPDX-License-Identifier: BSD-3-Clause
"""A run that was measured, for looking at it in a notebook."""

import json
import os

from crema.program import report_json


class Run:
    """What `crema report --json` says of a run: `metrics`, and lists of everything that has rows."""

    def __init__(self, data):
        self.json = data
        self.id = data["run"]
        self.metrics = data["metrics"]

    def __repr__(self):
        return f"<crema run {self.id}: {len(self.json['tasks'])} attempts, {len(self.json['chunks'])} at chunks>"

    def table(self, name):
        """A list of the JSON (tasks, chunks, files, codecs, workers, ...) as a DataFrame."""
        rows = self.json.get(name)
        if not isinstance(rows, list):
            lists = ", ".join(key for key, value in self.json.items() if isinstance(value, list))
            raise KeyError(f"the run has no table '{name}'; there are {lists}")
        try:
            import pandas
        except ImportError:
            raise ImportError("tables of crema.load() need pandas (pip install pandas); .json has the same as lists") from None
        frame = pandas.DataFrame(rows)
        for time in {"start", "stop"} & set(frame.columns):
            frame[time] = pandas.to_datetime(frame[time], unit="s", utc=True)
        return frame

    @property
    def tasks(self):
        """Every attempt at a task, counted or not; `start` and `stop` in UTC."""
        return self.table("tasks")

    @property
    def chunks(self):
        """Those that processed a chunk, with its file, entry range and coffea's numbers."""
        return self.table("chunks")

    @property
    def tracking_data(self):
        return self.json["tracking_data"]


def load(run="last", dir=None):
    """The run of that id (or a part of it, or its Dask span) in the collector's folder `dir`; or a file that
    `crema report --json FILE` wrote."""
    if os.path.isfile(run):
        with open(run, encoding="utf-8") as file:
            return Run(json.load(file))
    return Run(report_json("--run", os.fspath(run), directory=dir))
