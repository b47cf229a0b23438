"""coffea's processors for test_findings.py."""

import findings_jobs
from coffea import processor


class Light(processor.ProcessorABC):
    """One column."""

    def process(self, events):
        return {"events": len(events), "met": float(events.MET.pt.to_numpy().sum())}

    def postprocess(self, accumulator):
        return accumulator


class Remote(Light):
    """Also reads the beginning of the file."""

    def process(self, events):
        import fsspec

        url = events.metadata["filename"]
        fsspec.filesystem("http").cat_file(url, 0, 3 << 20)
        return super().process(events)


class Sum:
    """An output that is slow to add."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __add__(self, other):
        findings_jobs.spin(self.seconds)
        return self


class Clumsy(processor.ProcessorABC):
    """Loops over the events of one dataset in Python, reads its whole file in addition, and merges slowly."""

    def process(self, events):
        if events.metadata["dataset"] == "slow":
            findings_jobs.spin(2.0)
            findings_jobs.read_large(events.metadata["filename"])
        return {"met": float(events.MET.pt.to_numpy().sum()), "sum": Sum(0.6)}

    def postprocess(self, accumulator):
        return accumulator
