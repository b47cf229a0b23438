"""A processor that raises at one chunk, and keeps where."""

import time

from coffea.processor import ProcessorABC


class Failing(ProcessorABC):
    def process(self, events):
        if events.metadata["entrystart"] == 20_000:
            raise ValueError(f"no muons in entries {events.metadata['entrystart']} to {events.metadata['entrystop']}")
        return {"n": len(events)}

    def postprocess(self, accumulator):
        return accumulator


class Steady(ProcessorABC):
    """As long for each chunk, whatever else the machine does."""

    def process(self, events):
        time.sleep(0.4)
        return {"n": len(events)}

    def postprocess(self, accumulator):
        return accumulator
