"""A coffea processor whose parts read known columns."""

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
