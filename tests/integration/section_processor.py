"""A coffea processor whose parts read known columns, and one that keeps its own time."""

import time

import awkward as ak
import crema
from coffea import processor


class Sectioned(processor.ProcessorABC):
    @crema.section("process")
    def process(self, events):
        with crema.section("muons"):
            n = ak.sum(events.Muon.pt > 25)
        with crema.section("jets"), crema.memory("jets"):
            m = ak.sum(events.Jet.pt > 25)
        crema.metric("events", len(events))
        return {"n": int(n), "m": int(m)}

    def postprocess(self, accumulator):
        return accumulator


class Timed(processor.ProcessorABC):
    """Sleeps as long as its dataset requires, and measures the time around the section."""

    def __init__(self, sleeps):
        self.sleeps = sleeps

    def process(self, events):
        begin = time.perf_counter()
        with crema.section("nap"):
            time.sleep(self.sleeps[events.metadata["dataset"]])
        return {events.metadata["dataset"]: [time.perf_counter() - begin]}

    def postprocess(self, accumulator):
        return accumulator


class Tracked(processor.ProcessorABC):
    """Its output has what roastcoffea's decorators would put there, and what they never would."""

    def __init__(self, chunk):
        self.chunk = chunk

    def process(self, events):
        return {"n": len(events), "__roastcoffea_metrics__": [self.chunk, "no chunk", None]}

    def postprocess(self, accumulator):
        return accumulator
