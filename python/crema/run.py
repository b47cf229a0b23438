# SPDX-License-Identifier: BSD-3-Clause
"""A measured run, for use in a notebook."""

import json
import os
import tempfile
from dataclasses import dataclass, field

from crema import otlp, parquet, plots
from crema.card import card
from crema.program import CremaError, report, report_id


@dataclass(frozen=True)
class Finding:
    """One finding of the report. Its cost and the gain of its advice, in seconds of wall time, are None if unknown."""

    id: str
    severity: str
    text: str
    advice: str
    cost_seconds: float | None = None
    gain_seconds: float | None = None
    evidence: dict = field(default_factory=dict, repr=False)

    @property
    def cost(self):
        """The cost in words; empty if it is unknown."""
        return "" if self.cost_seconds is None else f"costs about {self.cost_seconds:.3g} s"

    def __str__(self):
        return f"{self.severity.upper()}: {self.text}{f' ({self.cost})' if self.cost else ''}\n    {self.advice}"


class Findings(list):
    """A list of Finding, the most important one first."""

    def __repr__(self):
        return "\n".join(map(str, self)) or "no findings"

    def _repr_pretty_(self, printer, _cycle):
        printer.text(repr(self))


def findings_of(data):
    """The findings of a run's JSON; older ones have no cost."""
    return Findings(Finding(row["id"], row["severity"], row["sentence"], row["advice"], row.get("cost_seconds"),
                            row.get("gain_seconds"), {e["name"]: e["value"] for e in row["evidence"]}) for row in data.get("findings", ()))


def state_of(data):
    """running, finished, failed, ...; None in JSON of older programs."""
    return (data.get("state") or {}).get("state")


class Run:
    """A run of `crema report --json`: `metrics`, `findings`, and lists of everything that has rows."""

    def __init__(self, data=None, ask=None, id=None):
        """ask(*options) returns the output of `crema report` for this run; None for a run from a file. Without data, they are read
        when they are first used: a large run's JSON takes far more time and memory than its page or its tables."""
        self.id = data["run"] if id is None else id
        self._json, self._ask, self._card = data, ask, None

    @property
    def json(self):
        """All numbers, as in `crema report --json`."""
        if self._json is None:
            self._json = json.loads(self._printed("--json", "-"))
        return self._json

    @property
    def metrics(self):
        return self.json["metrics"]

    def __repr__(self):
        state, found = state_of(self.json), len(self.findings)
        words = [*([state] if state else []), f"{len(self.json['tasks'])} attempts", f"{len(self.json['chunks'])} at chunks",
                 f"{found} finding{'s' * (found != 1)}"]
        return f"<crema run {self.id}: {', '.join(words)}>"

    def _repr_html_(self):
        if self._card is None:
            self._card = card(self)
        return self._card

    def report(self):
        """The text of `crema report`."""
        return self._printed()

    def html(self):
        """The HTML page of `crema report --html`."""
        return self._printed("--html", "-")

    def _printed(self, *options):
        if self._ask is None:
            raise CremaError("a run that was loaded from a file has only its numbers: load it by its id for the report, the page, Arrow and Parquet")
        return self._ask(*options)

    @property
    def findings(self):
        """The findings: each has text, advice, cost_seconds (None: unknown) and evidence."""
        return findings_of(self.json)

    def plot(self, which=None, ax=None):
        """Draws with matplotlib: "time", "bytes", "tasks" or "chunks" into `ax`, or all four."""
        return plots.plot(self.json, which, ax)

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

    def to_parquet(self, folder):
        """Writes every table of `crema report --csv` below FOLDER/TABLE/run=ID and returns the number of rows of each.

        The runs of one folder are one data set, partitioned by `run`; writing a run again replaces it. Unknown is
        null; the unit is in the metadata of each column. Needs pyarrow.
        """
        return self._sheets(parquet.write, folder, self.id)

    def to_arrow(self):
        """{name: pyarrow.Table} of every table, with the columns, types, nulls and units of `to_parquet`. Needs pyarrow."""
        return self._sheets(parquet.read)

    def _sheets(self, use, *arguments):
        """use(folder of `crema report --csv`, ...)"""
        with tempfile.TemporaryDirectory() as scratch:
            sheets = os.path.join(scratch, "sheets")
            self._printed("--csv", sheets)
            return use(sheets, *arguments)

    def to_otlp(self, where, headers=None):
        """Sends the run as an OpenTelemetry trace (OTLP/HTTP, JSON) to a URL, or writes it to a file, one request per line.

        `headers` is a dict for the receiver, for example with a token. Returns {"spans": sent, "left_out": attempts that have no
        end or no known time}; spans that the receiver rejects raise CremaError.
        """
        return otlp.send(self.json, where, headers)

    @property
    def wall(self):
        """Seconds of the client's wall time by part (docs/metrics.md), `rest` and `all`; None: unknown, or no record of the client."""
        told = self.json.get("client_wall")
        return told and {**told["parts"], "rest": told["rest_seconds"], "all": told["wall_seconds"]}

    @property
    def tasks(self):
        """Every attempt at a task, counted or not; `start` and `stop` in UTC."""
        return self.table("tasks")

    @property
    def chunks(self):
        """Tasks that processed a chunk, with its file, entry range and coffea's numbers."""
        return self.table("chunks")

    @property
    def tracking_data(self):
        return self.json["tracking_data"]


def load(run="last", dir=None):
    """Loads the run with that id (or a part of it, or its Dask span) from the collector's folder `dir`, or from a list of
    several collectors' folders; or from a file that `crema report --json FILE` wrote."""
    if os.path.isfile(run):
        with open(run, encoding="utf-8") as file:
            return Run(json.load(file))
    found = report_id(os.fspath(run), dir)
    return Run(None, lambda *options: report("--run", found, *options, directory=dir), found)
