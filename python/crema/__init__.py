# SPDX-License-Identifier: BSD-3-Clause
"""crema for notebooks and processors. The measuring itself is done by the library that the workers preload.

    with crema.measure(client, processor_instance=p) as m:
        output, report = runner(fileset, processor_instance=p)
        m.set_coffea_report(report)
    m.print_summary()

    run = crema.load()          # the last run: run.metrics, run.tasks (a DataFrame)

Inside a processor: crema.section, crema.memory, crema.metric.
"""

from crema.folder import load_measurement
from crema.instrument import memory, metric, section
from crema.measurement import Measurement, MetricsCollector, measure
from crema.program import CremaError
from crema.run import Run, load
from crema.track import track_bytes, track_memory, track_metrics, track_section, track_time

__all__ = ["CremaError", "Measurement", "MetricsCollector", "Run", "load", "load_measurement", "measure", "memory",
           "metric", "section", "track_bytes", "track_memory", "track_metrics", "track_section", "track_time"]
