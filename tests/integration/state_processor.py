"""A processor that raises in one chunk, and records where."""

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
    """Takes the same time for each chunk, whatever the machine's other load."""

    def process(self, events):
        time.sleep(0.8)
        return {"n": len(events)}

    def postprocess(self, accumulator):
        return accumulator
