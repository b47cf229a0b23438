"""coffea's processors for test_findings.py."""

import time

import findings_jobs
from coffea import processor


class Light(processor.ProcessorABC):
    """One column."""

    def process(self, events):
        return {"events": len(events), "met": float(events.MET.pt[:].to_numpy().sum())}

    def postprocess(self, accumulator):
        return accumulator


class Sum:
    """An output that is slow to add."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __add__(self, other):
        findings_jobs.spin(self.seconds)
        return self


class Clumsy(processor.ProcessorABC):
    """Loops over the events of one dataset in Python, reads its whole file beside, and merges slowly."""

    def process(self, events):
        seconds = 0.0
        if events.metadata["dataset"] == "slow":
            findings_jobs.spin(2.4)
            findings_jobs.read_large(events.metadata["filename"])
        _ = events.MET.pt[:10]
        return {"sum": Sum(1.2), "seconds": seconds, "at": [time.time()]}

    def postprocess(self, accumulator):
        return accumulator
