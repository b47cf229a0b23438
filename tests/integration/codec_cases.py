# SPDX-License-Identifier: BSD-3-Clause
"""What a worker does with each codec: each case compresses and decompresses TEXT, and returns the codec's true input and
output as (calls, bytes in, bytes out) for each direction."""

import sys
import zlib

SIZE = 256 * 4000
STRINGS = zlib.compress(b"strings" * 100)


def module(name):
    """Imports as an import statement does."""
    __import__(name)
    return sys.modules[name]


def text():
    return bytes(range(256)) * 4000


def both(pack, unpack, calls=1):
    packed = pack(text())
    n = len(packed)
    out = unpack(packed)
    out = out if isinstance(out, int) else len(out)
    return {"compress": (calls, SIZE, n), "decompress": (calls, n, out)}


def function(name, pack="compress", unpack="decompress", **options):
    """A pair of functions of one module."""
    m = module(name)
    return both(getattr(m, pack), lambda packed: getattr(m, unpack)(packed, **options))


def zlib_like(name):
    """Stream objects, each with two pieces of input."""
    m = module(name)
    packer, data = m.compressobj(), text()
    packed = packer.compress(data[:1000]) + packer.compress(data[1000:]) + packer.flush()
    unpacker = m.decompressobj()
    out = len(unpacker.decompress(packed[:100])) + len(unpacker.decompress(packed[100:])) + len(unpacker.flush())
    return {"compress": (2, SIZE, len(packed)), "decompress": (2, len(packed), out)}


def cramjam_functions(name):
    import cramjam

    m = getattr(cramjam, name)
    return both(lambda data: bytes(m.compress(data)), m.decompress)


def cramjam_into(name):
    import cramjam

    m, room = getattr(cramjam, name), bytearray(2 * SIZE)
    n = m.compress_into(text(), room)
    packed, out = bytes(room[:n]), bytearray(SIZE)
    return {"compress": (1, SIZE, n), "decompress": (1, n, m.decompress_into(packed, out))}


def cramjam_objects(name):
    import cramjam

    m, data = getattr(cramjam, name), text()
    packer = m.Compressor()
    packer.compress(data[:1000])
    packer.compress(data[1000:])
    packed = bytes(packer.flush()) + bytes(packer.finish())
    unpacker = m.Decompressor()
    unpacker.decompress(packed)
    return {"compress": (2, SIZE, len(packed)), "decompress": (1, len(packed), len(unpacker.finish()))}


def raw(name, pack, unpack):
    import cramjam

    m = getattr(cramjam, name)
    return both(lambda data: bytes(getattr(m, pack)(data)), getattr(m, unpack))


def numcodecs(name, **options):
    codec = getattr(module(f"numcodecs.{name.lower()}"), name)(**options)
    return both(codec.encode, codec.decode)


def blosc_threads():
    """Its threads call zstd: counted once, for the call that uses them."""
    blosc, data = module("blosc"), text() * 16
    assert blosc.set_nthreads(2) and blosc.ncores >= 1
    packed = blosc.compress(data, typesize=8, cname="zstd")
    assert len(blosc.decompress(packed)) == len(data)
    return {"compress": (1, len(data), len(packed)), "decompress": (1, len(packed), len(data))}


def uproot_file(name):
    """Writes and reads a tree; uproot's own pool decompresses the baskets. Wrappers around uproot's codecs count
    their input and output."""
    import os
    import tempfile

    import numpy
    import uproot

    codec = getattr(uproot, name)(3) if name else None
    places = {"compress": (type(codec), "compress"),
              "decompress": (getattr(uproot.compression, f"_Decompress{name}", None), "decompress")} if name else {}
    seen = {"compress": [], "decompress": []}

    def counting(calls, original):
        def run(self, data, *more):
            out = original(self, data, *more)
            calls.append((len(data), len(out)))
            return out
        return run

    originals = {direction: getattr(*place) for direction, place in places.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.root")
        try:
            for direction, place in places.items():
                setattr(*place, counting(seen[direction], originals[direction]))
            with uproot.recreate(path, compression=codec) as file:
                file.mktree("t", {"x": "f8", "n": "i4"})
                for i in range(3):
                    file["t"].extend({"x": numpy.arange(20_000.0) + i, "n": numpy.arange(20_000, dtype="i4") % 7})
            pool = uproot.ThreadPoolExecutor(2)
            with uproot.open(path) as file:
                assert len(file["t"].arrays(library="np", decompression_executor=pool)["x"]) == 60_000
            pool.shutdown()
        finally:
            for direction, place in places.items():
                setattr(*place, originals[direction])
    assert not name or all(len(calls) >= 6 for calls in seen.values())
    return {direction: (len(calls), sum(c[0] for c in calls), sum(c[1] for c in calls))
            for direction, calls in seen.items()}


def zstandard():
    m = module("zstandard")
    return both(m.ZstdCompressor().compress, m.ZstdDecompressor().decompress)


def zstandard_stream():
    """A separate library whose frames crema cannot see: unknown."""
    import io

    m = module("zstandard")
    out = m.ZstdDecompressor().stream_reader(io.BytesIO(packed := m.ZstdCompressor().compress(text()))).read()
    assert len(out) == SIZE
    return {"compress": (1, SIZE, len(packed)), "decompress": None}


def arrow(codec):
    """One-shot functions of libarrow outside Parquet."""
    import pyarrow

    packed = pyarrow.compress(text(), codec, asbytes=True)
    assert len(pyarrow.decompress(packed, SIZE, codec, asbytes=True)) == SIZE
    return {"compress": (1, SIZE, len(packed)), "decompress": (1, len(packed), SIZE)}


def nested():
    """A hooked codec that uses another hooked one: numcodecs' Zlib is Python's zlib."""
    return numcodecs("Zlib")


CRAMJAM = ["zstd", "lz4", "xz", "gzip", "zlib", "deflate", "snappy", "brotli", "bzip2"]
CASES = {
    "zlib": lambda: function("zlib"),
    "zlib_objects": lambda: zlib_like("zlib"),
    "isal": lambda: function("isal.isal_zlib", bufsize=SIZE),
    "isal_objects": lambda: zlib_like("isal.isal_zlib"),
    "deflate_zlib": lambda: both(lambda d: module("deflate").zlib_compress(d, 6),
                                 lambda p: module("deflate").zlib_decompress(p, SIZE)),
    "deflate_gzip": lambda: both(lambda d: module("deflate").gzip_compress(d, 6),
                                 lambda p: module("deflate").gzip_decompress(p)),
    "lz4_block": lambda: function("lz4.block"),
    "lz4_frame": lambda: function("lz4.frame"),
    **{f"cramjam_{name}": lambda name=name: cramjam_functions(name) for name in CRAMJAM},
    **{f"cramjam_{name}_into": lambda name=name: cramjam_into(name) for name in CRAMJAM},
    **{f"cramjam_{name}_objects": lambda name=name: cramjam_objects(name) for name in CRAMJAM},
    "cramjam_lz4_block": lambda: raw("lz4", "compress_block", "decompress_block"),
    "cramjam_snappy_raw": lambda: raw("snappy", "compress_raw", "decompress_raw"),
    "numcodecs_zstd": lambda: numcodecs("Zstd"),
    "numcodecs_lz4": lambda: numcodecs("LZ4"),
    "numcodecs_zlib": nested,
    "numcodecs_blosc": lambda: numcodecs("Blosc"),
    "numcodecs_blosc_zstd": lambda: numcodecs("Blosc", cname="zstd"),
    "blosc": lambda: both(lambda d: module("blosc").compress(d, typesize=8),
                          lambda p: module("blosc").decompress(p)),
    "blosc_zstd": lambda: both(lambda d: module("blosc").compress(d, typesize=8, cname="zstd"),
                               lambda p: module("blosc").decompress(p)),
    "blosc_zstd_threads": blosc_threads,
    "uproot_zlib": lambda: uproot_file("ZLIB"),
    "uproot_lz4": lambda: uproot_file("LZ4"),
    "uproot_zstd": lambda: uproot_file("ZSTD"),
    "uproot_lzma": lambda: uproot_file("LZMA"),
    "uproot_uncompressed": lambda: uproot_file(None),
    "zstandard": zstandard,
    "zstandard_stream": zstandard_stream,
    "arrow_zstd": lambda: arrow("zstd"),
}


def run(case):
    return CASES[case]()


def module_with_packed_strings(folder):
    """Imports a module that decompresses during its import, then decompresses something in the task."""
    sys.path.insert(0, folder)
    strings = module("packed_strings").strings
    return len(strings), len(zlib.decompress(STRINGS))


def hdf5(folder, options, how="getitem"):
    """Writes and reads a dataset: the task can only tell that the contents are right."""
    import h5py
    import numpy

    data = numpy.arange(100_000, dtype="i4") // 100
    with h5py.File(f"{folder}/{how}-{len(str(options))}.h5", "w") as file:
        made = file.create_dataset("d", data=data, chunks=True, **options)
        if how == "getitem":
            found = made[:]
        elif how == "virtual":
            layout = h5py.VirtualLayout(data.shape, data.dtype)
            layout[:] = h5py.VirtualSource(made)
            found = file.create_virtual_dataset("v", layout)[:]
        elif how == "array":
            found = numpy.asarray(made)
        else:
            made.read_direct(found := numpy.empty_like(data))
    return bool((found == data).all())


def imported(name):
    return module(name).__name__
