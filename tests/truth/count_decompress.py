"""Runs the demo's analysis serially, without crema, and counts the work of uproot's decompressors.

    count_decompress.py --files F... --chunksize N --output truth.json

The result: {"files": {path: {codec: {"calls", "in_bytes", "out_bytes"}}}, "codecs": {...},
"output": the accumulator's sums, "report": coffea's report}.
"""

import argparse
import functools
import json
import sys
import threading
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import ttbar
import uproot
import uproot.compression
from coffea import processor
from coffea.nanoevents import NanoAODSchema

KINDS = {"zlib": "_DecompressZLIB", "lzma": "_DecompressLZMA", "lz4": "_DecompressLZ4", "zstd": "_DecompressZSTD"}
lock = threading.Lock()
current = threading.local()


def zero():
    return {"calls": 0, "in_bytes": 0, "out_bytes": 0}


files = defaultdict(lambda: defaultdict(zero))


def add(codec, data, result):
    with lock:
        row = files[getattr(current, "path", "unknown")][codec]
        row["calls"] += 1
        row["in_bytes"] += len(data)
        row["out_bytes"] += len(result)


def counted(codec, original):
    def decompress(self, data, uncompressed_bytes=None):
        result = original(self, data, uncompressed_bytes)
        add(codec, data, result)
        return result

    return decompress


def with_path(original):
    @functools.wraps(original)  # carries the hook attributes that uproot looks for
    def decompress(chunk, *args, **kwargs):
        current.path = str(chunk.source.file_path)
        return original(chunk, *args, **kwargs)

    return decompress


def install():
    for codec, name in KINDS.items():
        kind = getattr(uproot.compression, name)
        kind.decompress = counted(codec, kind.decompress)
    uproot.compression.decompress = with_path(uproot.compression.decompress)


def totals():
    codecs = defaultdict(zero)
    for row in files.values():
        for codec, counts in row.items():
            for name, value in counts.items():
                codecs[codec][name] += value
    return codecs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", required=True)
    parser.add_argument("--chunksize", type=int, default=50_000)
    parser.add_argument("--handler", help="class in uproot that reads, as MemmapSource")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    install()
    NanoAODSchema.warn_missing_crossrefs = False
    options = {"handler": getattr(uproot, args.handler)} if args.handler else {}
    run = processor.Runner(executor=processor.IterativeExecutor(status=False), schema=NanoAODSchema,
                           chunksize=args.chunksize, savemetrics=True)
    out, report = run(ttbar.fileset(args.files), processor_instance=ttbar.TTbarProcessor(), uproot_options=options)
    ttbar.write_json(args.output, {"files": files, "codecs": totals(), "output": ttbar.summary(out), "report": report})


if __name__ == "__main__":
    main()
