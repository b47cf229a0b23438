# SPDX-License-Identifier: BSD-3-Clause
"""Each codec, one-shot and as a stream: bytes in and bytes out, counted once."""

import jobs
import pytest

CASES = ["zlib", "zlib_object", "zlib_object_limited", "gzip", "gzip_file", "bz2", "bz2_object", "lzma", "lzma_file",
         "lz4_frame", "lz4_frame_file", "lz4_block", "cramjam_zstd", "cramjam_lz4", "cramjam_xz", "cramjam_gzip",
         "cramjam_snappy", "cramjam_into"]


def unpack(case):
    """Compresses and decompresses a megabyte; returns the sizes of the codec's input and output."""
    import bz2
    import gzip
    import io
    import lzma
    import zlib

    import cramjam
    import lz4.block
    import lz4.frame

    text = bytes(range(256)) * 4000

    def pieces(packed, size=100):
        return [packed[i:i + size] for i in range(0, len(packed), size)]

    def zlib_object(packed, limit=0):
        unpacker, out, rest = zlib.decompressobj(), 0, packed + b"what follows the stream"
        while not unpacker.eof:
            out += len(unpacker.decompress(rest, limit))
            rest = unpacker.unconsumed_tail
        return out

    def through(opened):
        out = 0
        with opened as file:
            while block := file.read(7777):
                out += len(block)
        return out

    def lz4_file():
        packed = io.BytesIO()
        with lz4.frame.open(packed, "w") as file:
            file.write(text)
        return packed.getvalue()

    def into():
        packed, out = bytes(cramjam.zstd.compress(text)), bytearray(len(text))
        return packed, cramjam.zstd.decompress_into(packed, out)

    def size(packed, unpacked):
        return len(packed), unpacked if isinstance(unpacked, int) else len(unpacked)

    gzipped, xz, packed = gzip.compress(text), lzma.compress(text), zlib.compress(text)
    inside = len(gzipped) - 18  # the header and the trailer are written by Python
    if case == "gzip_file":
        return inside, through(gzip.GzipFile(fileobj=io.BytesIO(gzipped)))
    if case == "gzip":
        return inside, len(gzip.decompress(gzipped))
    return size(*{
        "zlib": lambda: (packed, zlib.decompress(packed)),
        "zlib_object": lambda: (packed, zlib_object(packed)),
        "zlib_object_limited": lambda: (packed, zlib_object(packed, 5000)),
        "bz2": lambda: (p := bz2.compress(text), bz2.decompress(p)),
        "bz2_object": lambda: (p := bz2.compress(text), sum(map(len, map(bz2.BZ2Decompressor().decompress, pieces(p))))),
        "lzma": lambda: (xz, lzma.decompress(xz)),
        "lzma_file": lambda: (xz, through(lzma.LZMAFile(io.BytesIO(xz)))),
        "lz4_frame": lambda: (p := lz4_file(), lz4.frame.decompress(p)),
        "lz4_frame_file": lambda: (p := lz4_file(), through(lz4.frame.open(io.BytesIO(p)))),
        "lz4_block": lambda: (p := lz4.block.compress(text), lz4.block.decompress(p)),
        "cramjam_zstd": lambda: (p := bytes(cramjam.zstd.compress(text)), cramjam.zstd.decompress(p)),
        "cramjam_lz4": lambda: (p := bytes(cramjam.lz4.compress_block(text)), cramjam.lz4.decompress_block(p)),
        "cramjam_xz": lambda: (p := bytes(cramjam.xz.compress(text)), cramjam.xz.decompress(p)),
        "cramjam_gzip": lambda: (p := bytes(cramjam.gzip.compress(text)), cramjam.gzip.decompress(p)),
        "cramjam_snappy": lambda: (p := bytes(cramjam.snappy.compress(text)), cramjam.snappy.decompress(p)),
        "cramjam_into": into,
    }[case]())


@pytest.fixture(scope="module")
def found(shared):
    """Every case in a separate task: {case: (truth, the attempt)}."""
    from distributed import span

    with span("codecs"):
        futures = {c: shared.client.submit(unpack, c, key=jobs.unique(c), pure=False) for c in CASES}
        truth = {case: future.result(timeout=200) for case, future in futures.items()}
    report = shared.settled(lambda r: {t["prefix"] for t in r["tasks"]} >= set(CASES))
    tasks = {t["prefix"]: t for t in report["tasks"]}
    return {case: (truth[case], tasks[case]) for case in CASES}, report


@pytest.mark.parametrize("case", CASES)
def test_codec(found, case):
    (compressed, unpacked), task = found[0][case]
    assert task["decompress_in_bytes"] == compressed
    assert task["decompress_out_bytes"] == unpacked == 256 * 4000
    assert task["decompress_calls"] >= 1
    assert 0 < task["decompress_cpu_seconds"] <= task["cpu_seconds"] + task["pool_cpu_seconds"]


def test_rows_close_with_tasks(found):
    report = found[1]
    for name in ("calls", "in_bytes", "out_bytes"):
        assert jobs.total(report["codecs"], name) == jobs.total(report["tasks"], f"decompress_{name}")
