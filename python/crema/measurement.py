# SPDX-License-Identifier: BSD-3-Clause
"""`with crema.measure(client) as m:` around a run: its numbers afterwards, with roastcoffea's calls.

The block opens a Dask span, so that all its tasks are one run, and measures the wall time. At its end it waits
until the collector has the run's records. Nothing here raises inside the block or at its end: a failure
is one warning, and get_metrics() repeats it.
"""

import json
import logging
import tempfile
import time
import warnings
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from crema import client as client_side
from crema import outputs
from crema.folder import json_ready, load_measurement
from crema.program import CremaError, report
from crema.run import Run
from crema.wait import NOTHING_TOLD, told_by_scheduler, wait

SPAN, ANNOTATION = "crema", "crema_span"  # contract/ids.h
WAIT_SECONDS = 30.0
FLAG = "_roastcoffea_collect_metrics"  # @track_metrics looks for it
logger = logging.getLogger("crema")
_absent = object()


class Measurement:
    """Made by measure(); see the methods."""

    def __init__(self, client=None, processor_instance=None, custom_metrics=None, *, track_workers=True,
                 worker_tracking_interval=1.0, dir=None, wait_seconds=WAIT_SECONDS):
        self.client = client
        self.processor_instance = processor_instance
        self.custom_metrics = custom_metrics
        self.track_workers = track_workers
        self.worker_tracking_interval = worker_tracking_interval
        self.dir = dir
        self.wait_seconds = wait_seconds
        self.coffea_report = self.output_dir = None
        self.chunk_metrics, self.section_metrics = [], []
        self.span_id = None
        self.t_start = self.t_end = None        # of time.perf_counter(), as roastcoffea's
        self.start_time = self.end_time = None  # UTC
        self.warning = None
        self._span = self._json = self._metrics = None
        self._expected = None
        self._clock_ahead, self._clock_known = 0.0, False
        self._flags = []
        self._recorder = self._begun = self._record = None

    # --- around the run

    def __enter__(self):
        for prepare in (self._raise_flags, self._open_span, self._watch_client):
            try:
                prepare()
            except Exception as error:
                self._warn(f"{type(error).__name__}: {error}")
        self.start_time, self.t_start = time.time(), time.perf_counter()
        if self._recorder:
            self._begun = self._recorder.mark()
        return self

    def __exit__(self, kind, value, trace):
        self.t_end, self.end_time = time.perf_counter(), time.time()
        try:
            self._unwatch_client()
            self._lower_flags()
            if self._span:
                self._span.__exit__(kind, value, trace)
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")
        try:
            if kind is None and self.wait_seconds:
                self.wait()
        except KeyboardInterrupt:
            self._warn("interrupted while waiting for the last records: numbers may be missing")
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")
        return False

    def wait(self, wait_seconds=None):
        """Waits until the collector has all records of the run; True if it has. The end of the block does this."""
        limit = self.wait_seconds if wait_seconds is None else wait_seconds
        self._metrics = None
        if self._expected is None:
            self._expected = self._ask_scheduler()
            self._clock_ahead = self._ask_clock()
        self._json, warning = wait(self.span_id or "last", self.end_time, self._expected, limit, self.dir,
                                   begun=self.start_time - 1 if not self.span_id else 0.0, client=self.client)
        if warning:
            self._warn(warning)
        else:
            self.warning = None
        return warning is None

    def _ask_scheduler(self):
        try:
            return told_by_scheduler(self.client, self.span_id)
        except Exception as error:  # the client is closed by now, or the scheduler is gone
            logger.info("the scheduler does not report the number of tasks: %s", error)
            return NOTHING_TOLD

    def _watch_client(self):
        """Records what this thread does in the block: imports, graphs, waits (client.py)."""
        recorder = client_side.running()
        if recorder is None:
            recorder = client_side.Recorder(outside="own")
            recorder.install()
        if recorder.thread == client_side.get_ident():
            self._recorder = recorder

    def _unwatch_client(self):
        if self._begun:
            self._record = self._recorder.record(self._begun, self._recorder.mark())
        if self._recorder and self._recorder is not client_side.running():
            self._recorder.uninstall()

    def _ask_clock(self):
        """How far the scheduler's clock, on the collector's host, is ahead of ours, in seconds; 0 if uncertain."""
        try:
            before = time.time()
            there = self.client.run_on_scheduler(time.time)
            after = time.time()
        except Exception:  # no client, or it is closed by now
            return 0.0
        self._clock_known = True
        ahead = there - (before + after) / 2
        return ahead if abs(ahead) > (after - before) / 2 else 0.0

    def _warn(self, line):
        self.warning = line
        try:
            warnings.warn(f"crema: {line}", RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # warnings are errors here: they must not fail the analysis
            logger.warning("%s", line)

    def _open_span(self):
        if self.client is None:
            return
        try:
            from dask import annotate
            from distributed import span
        except ImportError:
            raise CremaError("this Dask has no spans: the run is the last one that was measured") from None
        with ExitStack() as opened:
            span_id = opened.enter_context(span(SPAN))
            opened.enter_context(annotate(**{ANNOTATION: span_id}))  # Dask may move tasks to an older span
            self.span_id, self._span = span_id, opened.pop_all()

    def _raise_flags(self):
        """Sets them on the instance, and on its class, which is what reaches the workers."""
        if self.processor_instance is None:
            return
        for owner in (self.processor_instance, type(self.processor_instance)):
            before = vars(owner).get(FLAG, _absent)
            setattr(owner, FLAG, True)
            self._flags.append((owner, before))

    def _lower_flags(self):
        while self._flags:
            owner, before = self._flags.pop()
            if before is _absent:
                delattr(owner, FLAG)
            else:
                setattr(owner, FLAG, before)

    # --- the client's own data

    def set_coffea_report(self, report, custom_metrics=None):
        """Takes coffea's report, or the whole (output, report) that a Runner with savemetrics=True returns."""
        if isinstance(report, tuple) and len(report) == 2:
            output, report = report
            self.chunk_metrics = outputs.peek(output) or self.chunk_metrics
        self.coffea_report = report
        if custom_metrics is not None:
            self.custom_metrics = custom_metrics
        self._metrics = None

    def extract_metrics_from_output(self, output):
        """Removes what @track_metrics left in the output, and keeps it."""
        found = outputs.peek(output)
        if found is not None:
            self.chunk_metrics = found
            self._metrics = None
            del output[outputs.KEY]

    def set_chunk_metrics(self, chunk_metrics):
        self.chunk_metrics = list(chunk_metrics or [])
        self._metrics = None

    def record_chunk_metrics(self, chunk_data):
        """Adds one item of the kind that extract_metrics_from_output() finds."""
        self.chunk_metrics = [*self.chunk_metrics, chunk_data]
        self._metrics = None

    def record_section_metrics(self, section_data):
        """Passed through to `raw_section_metrics` of the metrics."""
        self.section_metrics.append(section_data)
        self._metrics = None

    def _report_to_compare(self):
        """coffea's report; without one, the sums of custom_metrics by dataset."""
        if self.coffea_report is not None or not self.custom_metrics:
            return self.coffea_report
        sets = [row for row in self.custom_metrics.values() if isinstance(row, dict)]
        counters = [row.get("performance_counters") or {} for row in sets]
        return {"entries": sum(row.get("entries", 0) for row in sets),
                "processtime": sum(row.get("duration", 0) for row in sets),
                "bytesread": sum(row.get("num_requested_bytes", 0) for row in counters)}

    # --- the numbers

    def _arguments(self, scratch):
        """Options of `crema report`: the run, its wall time and coffea's report."""
        if self.t_end is None:
            raise CremaError("the run has not ended: ask after the with block")
        if self._json is None:
            self.wait(0 if self.warning else self.wait_seconds or WAIT_SECONDS)
        if self._json is None:
            raise CremaError(self.warning or "nothing was measured")
        found = ["--run", self._json["run"], "--client-wall", f"{self.t_end - self.t_start:.9f}",
                 "--client-start", f"{self.start_time + self._clock_ahead:.6f}"]
        if self._record:
            file = Path(scratch) / "client-record.json"
            ahead = self._clock_ahead if self._clock_known else self._record["clock_ahead"]
            file.write_text(json.dumps({**self._record, "clock_ahead": ahead}))
            found += ["--client-record", file]
        said = self._report_to_compare()
        if said is not None:
            file = Path(scratch) / "coffea-report.json"
            file.write_text(json.dumps(json_ready(said)))
            found += ["--coffea-report", file]
        return found

    def _collect(self):
        if self._metrics is None:
            with tempfile.TemporaryDirectory(prefix="crema-") as scratch:
                arguments = self._arguments(scratch)
                out, folder = Path(scratch) / "run.json", Path(scratch) / "folder"
                report(*arguments, "--json", out, "--measurement", folder, directory=self.dir)
                self._json = json.loads(out.read_text(encoding="utf-8"))
                self._metrics = {**self._json["metrics"], **load_measurement(folder)[0]}
            self._add_own(self._metrics)
        return self._metrics

    def _add_own(self, metrics):
        """Adds the client's own data, also to a folder's metrics.json."""
        if self.chunk_metrics:
            metrics["raw_chunk_metrics"] = outputs.merge_chunks(metrics.get("raw_chunk_metrics") or [], self.chunk_metrics)
            percent = outputs.branches_percent(self.chunk_metrics)
            if percent is not None:
                metrics["avg_branches_read_percent"] = percent
            measured = metrics.get("sections") or {}
            told = outputs.sections(self.chunk_metrics)
            metrics["sections"] = {**measured, **{name: {**row, **measured.get(name, {})} for name, row in told.items()}}
        if self.section_metrics:
            metrics["raw_section_metrics"] = list(self.section_metrics)
        if self.custom_metrics:
            metrics["custom_metrics"] = self.custom_metrics
        if not self.track_workers:
            metrics["tracking_data"], metrics["track_workers"] = None, False

    def get_metrics(self):
        """All metrics, as a dict: unknown is None. Raises CremaError (a RuntimeError) if nothing was measured."""
        return self._collect()

    @property
    def metrics(self):
        return self._collect()

    @property
    def run(self):
        """The run with its tasks, as crema.load() returns it."""
        self._collect()
        return Run(self._json, self._printed)

    def _printed(self, *options):
        """The output of `crema report` for this run, including the client's data."""
        with tempfile.TemporaryDirectory(prefix="crema-") as scratch:
            return report(*self._arguments(scratch), *options, directory=self.dir)

    @property
    def findings(self):
        """The run's findings; see Run.findings."""
        return self.run.findings

    def plot(self, which=None, ax=None):
        """Draws with matplotlib: "time", "bytes", "tasks" or "chunks" into `ax`, or all four."""
        return self.run.plot(which, ax)

    def __repr__(self):
        if self.t_end is None:
            return "<crema measurement: the with block has not ended>"
        if self._json is None:  # run would wait for the records
            return f"<crema measurement: {self.warning or 'the records have not been read yet'}>"
        try:
            return f"<crema measurement of {self.t_end - self.t_start:.4g} s: {self.run!r}>"
        except CremaError as error:
            return f"<crema measurement: {error}>"

    def _repr_html_(self):
        """A notebook shows the run; None makes it show repr()."""
        try:
            return self.run._repr_html_()
        except CremaError:
            return None

    @property
    def tracking_data(self):
        return self._collect().get("tracking_data")

    @property
    def span_metrics(self):
        """Dask's own numbers of the run: {(context, prefix, activity, unit): value}; None without spans."""
        rows = self._collect()["span_metrics"]
        return None if rows is None else {tuple(row[:-1]): row[-1] for row in rows}

    def print_summary(self):
        """The tables of `crema report`; if nothing was measured, the line with the reason."""
        try:
            text = self._printed("--full")
        except CremaError as error:
            text = f"crema: {error}"
        print("\n".join([text.rstrip("\n"), *outputs.summary(outputs.sections(self.chunk_metrics))]))

    def save_measurement(self, output_dir=None, measurement_name=None, config=None):
        """Writes a folder that roastcoffea's load_measurement reads, below output_dir (of the call, else of
        MetricsCollector); returns its path."""
        output_dir = self.output_dir if output_dir is None else output_dir
        if output_dir is None:
            raise TypeError("save_measurement() needs the folder to write into: output_dir")
        folder = Path(output_dir) / (measurement_name or datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
        with tempfile.TemporaryDirectory(prefix="crema-") as scratch:
            report(*self._arguments(scratch), "--measurement", folder.absolute(), directory=self.dir)
        end = self.start_time + (self.t_end - self.t_start)
        (folder / "start_end_time.txt").write_text(f"{self.start_time!r},{end!r}\n")
        self._merge(folder / "metrics.json", self._add_own)
        if config:
            self._merge(folder / "config.json", lambda found: found.update(config))
        return folder

    @staticmethod
    def _merge(file, change):
        found = json.loads(file.read_text(encoding="utf-8"))
        change(found)
        file.write_text(json.dumps(json_ready(found)), encoding="utf-8")


def measure(client=None, processor_instance=None, custom_metrics=None, **options):
    """Measures what runs inside the with block.

    client: the Dask client (None: coffea's other executors). processor_instance: for roastcoffea's decorators.
    dir: the collector's folder, if it is not the default. wait_seconds: how long the end of the block may wait (0: get_metrics() waits).
    """
    return Measurement(client, processor_instance, custom_metrics, **options)


class MetricsCollector(Measurement):
    """measure() with the name and the arguments of roastcoffea 0.1.2.

    client: the Dask client, or coffea's executor, which has it (one without Dask: the run is the last one).
    output_dir: the default folder of save_measurement().
    """

    def __init__(self, client, backend="dask", track_workers=True, worker_tracking_interval=1.0,
                 processor_instance=None, output_dir=None, **options):
        if backend != "dask":
            raise ValueError(f"Unsupported backend: {backend}")
        if client is not None and not hasattr(client, "run_on_scheduler"):
            client = getattr(client, "client", None)
        super().__init__(client, processor_instance, track_workers=track_workers,
                         worker_tracking_interval=worker_tracking_interval, **options)
        self.output_dir = output_dir
