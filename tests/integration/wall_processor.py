# SPDX-License-Identifier: BSD-3-Clause
"""A processor of known seconds: its first chunk is a straggler, and adding results takes time."""
import time

from coffea import processor


class Times(processor.AccumulatorABC):
    def __init__(self, tasks=(), merges=()):
        self.tasks, self.merges = list(tasks), list(merges)

    def identity(self):
        return Times()

    def add(self, other):
        begin = time.time()
        if self.tasks and other.tasks:
            time.sleep(0.5)
        self.tasks += other.tasks
        self.merges += [*other.merges, (begin, time.time())]


class Slow(processor.ProcessorABC):
    def process(self, events):
        begin = time.time()
        time.sleep(3.0 if events.metadata["entrystart"] == 0 else 0.5)
        return {"times": Times([(begin, time.time())])}

    def postprocess(self, accumulator):
        return accumulator
