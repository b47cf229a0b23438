# SPDX-License-Identifier: BSD-3-Clause
"""crema for notebooks and processors. The library that the workers preload does the measuring.

    crema.preload()             # in a notebook, before LocalCluster(...)

    with crema.measure(client, processor_instance=p) as m:
        output, report = runner(fileset, processor_instance=p)
        m.set_coffea_report(report)
    m                           # shows the report and its page; m.findings, m.plot(), m.metrics, m.run.tasks

    run = crema.load()          # the last run: run.metrics, run.tasks (a DataFrame)

Inside a processor: crema.section, crema.memory, crema.metric.
"""

import os as _os

# `crema` on PyPI is a music library with a package of the same name: installed together, each overwrites the other.
if any(_os.path.exists(_os.path.join(_os.path.dirname(__file__), name)) for name in ("analyze.py", "models")):
    raise ImportError(f"'{_os.path.dirname(__file__)}' also contains the music library 'crema': run 'pip uninstall crema', "
                      "then install the wheel of crema-hep with --force-reinstall")

from crema.folder import load_measurement
from crema.instrument import memory, metric, section
from crema.measurement import Measurement, MetricsCollector, measure
from crema.preloading import preload
from crema.program import CremaError
from crema.run import Finding, Run, load
from crema.track import track_bytes, track_memory, track_metrics, track_section, track_time

__all__ = ["CremaError", "Finding", "Measurement", "MetricsCollector", "Run", "load", "load_measurement", "measure", "memory",
           "metric", "preload", "section", "track_bytes", "track_memory", "track_metrics", "track_section", "track_time"]
