# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that compress and decompress below Python: each case writes and reads the same numbers in two tasks. The codecs'
work in each direction is (calls, bytes in, bytes out); None if crema cannot see it."""

import gc
import os
import sys

NOTHING = (0, 0, 0)
ROWS = 100_000


def module(name):
    """Imports as an import statement does."""
    __import__(name)
    return sys.modules[name]


def numbers():
    import numpy

    return numpy.arange(ROWS, dtype="i4") // 100


def same(found):
    assert (numbers() == found).all()


def low_write(path, packed=True, early=False):
    """Writes through h5py's low-level interface."""
    h5py = module("h5py")
    file = h5py.h5f.create(path.encode())
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_chunk((1000,))
    if packed:
        options.set_deflate(4)
    if early:
        options.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    made = h5py.h5d.create(file, b"d", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((ROWS,)), options)
    if not early:
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers())


def low_read(path):
    import numpy

    h5py = module("h5py")
    found = numpy.empty(ROWS, "i4")
    h5py.h5d.open(h5py.h5f.open(path.encode(), h5py.h5f.ACC_RDONLY), b"d").read(h5py.h5s.ALL, h5py.h5s.ALL, found)
    same(found)


def h5py_write(path, **options):
    with module("h5py").File(path, "w") as file:
        file.create_dataset("d", data=numbers(), chunks=True, **options)


def h5py_change(path):
    """Changes part of one chunk, which is decompressed first."""
    with module("h5py").File(path, "r+") as file:
        file["d"][5:10] = numbers()[5:10]


def tables_write(path, kind, filters=None):
    tables = module("tables")
    filters = tables.Filters(5, filters) if filters else tables.Filters(0)
    with tables.open_file(path, "w") as file:
        if kind == "vlarray":
            made = file.create_vlarray("/", "d", tables.Int32Atom(), filters=filters)
            made.append(numbers())
        elif kind == "earray":
            made = file.create_earray("/", "d", tables.Int32Atom(), (0,), filters=filters)
            made.append(numbers())
        elif kind in ("table", "index"):
            made = file.create_table("/", "d", {"x": tables.Int32Col()}, filters=filters)
            made.append(numbers().view([("x", "i4")]))
            made.flush()
            if kind == "index":
                made.cols.x.create_index(filters=tables.Filters(1, "zlib"))
        else:
            file.create_carray("/", "d", obj=numbers(), filters=filters)


def tables_read(path, how):
    import numpy

    with module("tables").open_file(path) as file:
        d = file.root.d
        if how == "rows":
            same(numpy.array([row["x"] for row in d]))
        elif how == "where":
            assert [row["x"] for row in d.where("x == 500")] == [500] * 100
        elif how == "read":
            found = d.read()
            same(found[0] if isinstance(found, list) else found)
        else:
            same(d[:])


def netcdf_write(path, compression=None, **options):
    with module("netCDF4").Dataset(path, "w", **options) as file:
        file.createDimension("x", ROWS)
        file.createVariable("d", "i4", ("x",), compression=compression, **({"chunksizes": (10_000,)} if not options else {}),
                            fill_value=False)[:] = numbers()


def netcdf_read(path):
    with module("netCDF4").Dataset(path) as file:
        same(file["d"][:])


def chunks_of(path):
    """The chunks as HDF5's only filter wrote them."""
    with module("h5py").File(path) as file:
        d = file["d"]
        stored = [d.id.get_chunk_info(i).size for i in range(d.id.get_num_chunks())]
        return len(stored), sum(stored), len(stored) * d.chunks[0] * d.dtype.itemsize


def blosc2_write(path, kind):
    blosc2 = module("blosc2")
    if kind == "schunk":
        blosc2.SChunk(data=numbers(), urlpath=path, mode="w")
    else:
        blosc2.asarray(numbers(), urlpath=path, mode="w")


def blosc2_read(path, kind):
    import numpy

    found = module("blosc2").open(path)[:]
    same(numpy.frombuffer(found, "i4") if kind == "schunk" else found)


def packed_by(path, name, suffix=""):
    """One-shot functions: the file keeps the last task's compressed output."""
    blosc2, data = module("blosc2"), numbers().tobytes()
    packed = getattr(blosc2, f"compress{suffix}")(data, **({"typesize": 4} if not suffix else {"cparams": {"typesize": 4}}))
    with open(path, "wb") as file:
        file.write(packed)
    return 1, len(data), len(packed)


def unpacked_by(path, suffix="", into=False):
    import numpy

    with open(path, "rb") as file:
        packed = file.read()
    room = bytearray(4 * ROWS) if into else None
    found = getattr(module("blosc2"), f"decompress{suffix}")(packed, room)
    same(numpy.frombuffer(room or found, "i4"))
    return 1, len(packed), 4 * ROWS


def arrow_codec_write(path, codec):
    import pyarrow

    data = numbers().tobytes()
    packed = pyarrow.compress(data, codec, asbytes=True)
    with open(path, "wb") as file:
        file.write(packed)
    return 1, len(data), len(packed)


def arrow_codec_read(path, codec):
    import numpy
    import pyarrow

    with open(path, "rb") as file:
        packed = file.read()
    same(numpy.frombuffer(pyarrow.decompress(packed, 4 * ROWS, codec), "i4"))
    return 1, len(packed), 4 * ROWS


def table():
    import pyarrow

    return pyarrow.table({"d": numbers()})


def ipc_write(path, codec, kind="file", **options):
    import pyarrow.ipc as ipc

    with getattr(ipc, f"new_{kind}")(path, table().schema, options=ipc.IpcWriteOptions(compression=codec, **options)) as sink:
        sink.write_table(table())


left = {}  # writers opened by another task, by path


def ipc_open(path, codec):
    import pyarrow.ipc as ipc

    left[path] = ipc.new_file(path, table().schema, options=ipc.IpcWriteOptions(compression=codec))


def ipc_go_on(path):
    with left.pop(path) as sink:
        sink.write_table(table())
        sink.write_batch(table().to_batches()[0])
        sink.write(table())


def ipc_read(path, kind="file", batches=False):
    import pyarrow.ipc as ipc

    with getattr(ipc, f"open_{kind}")(path) as source:
        if not batches:
            same(source.read_all()["d"].to_numpy())
        elif kind == "file":
            assert sum(source.get_batch(i).num_rows for i in range(source.num_record_batches)) == ROWS
        else:
            assert sum(batch.num_rows for batch in source) == ROWS


def in_memory(path):
    """A reader of tables that are already in memory does not decompress batches."""
    same(table().to_reader().read_all()["d"].to_numpy())


def text_write(path, way):
    import pyarrow
    import pyarrow.csv

    if way == "csv":
        with pyarrow.output_stream(path) as sink:  # the name selects the codec
            pyarrow.csv.write_csv(table(), sink)
        return
    with pyarrow.output_stream(path) as sink:
        sink.write(b"".join(b'{"d": %d}\n' % n for n in numbers()))


def text_read(path, how="path"):
    import pyarrow
    import pyarrow.csv
    import pyarrow.json

    if how == "stream":
        with pyarrow.input_stream(path) as source:
            assert len(source.read()) > ROWS
    elif how == "batches":
        with pyarrow.csv.open_csv(path) as source:
            assert sum(batch.num_rows for batch in source) == ROWS
    else:
        source = pyarrow.input_stream(path) if how == "given" else path
        read = pyarrow.json.read_json if how == "json" else pyarrow.csv.read_csv
        same(read(source)["d"].to_numpy())


def feather_write(path, codec):
    import pyarrow.feather

    pyarrow.feather.write_feather(table(), path, compression=codec)


def feather_read(path):
    import pyarrow.feather

    same(pyarrow.feather.read_table(path, memory_map=False)["d"].to_numpy())


def stored(path, around=0):
    """The chunks of a zarr array as the codec wrote them, by their files; around: bytes of header and trailer that Python writes."""
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(os.path.join(path, "c")) for name in names]
    return len(sizes), sum(sizes) - len(sizes) * around, 4 * ROWS


def zarr_write(path, codec, around=0, **options):
    """zarr runs its codecs in threads of its own event loop."""
    zarr = module("zarr")
    of, name = f"zarr.codecs.{codec}".rsplit(".", 1)
    zarr.create_array(path, data=numbers(), chunks=(10_000,), compressors=getattr(module(of), name)(**options))
    calls, packed, whole = stored(path, around)
    return calls, whole, packed


def zarr_read(path, around=0):
    same(module("zarr").open_array(path, mode="r")[:])
    return stored(path, around)


def dataset_write(path):
    import pyarrow.dataset

    pyarrow.dataset.write_dataset(table(), path, format="parquet")


def orc_write(path):
    import pyarrow.orc

    pyarrow.orc.write_table(table(), path, compression="zlib")


def case(write, read, packed, unpacked, end=""):
    return {"write": write, "read": read, "compress": packed, "decompress": unpacked, "end": end}


def call(function, *args, **options):
    return lambda path: function(path, *args, **options)


GZIP = 10 + 8  # RFC 1952 header and trailer, written by Python
ZARR = (("zstd", "ZstdCodec", 0, {}), ("gzip", "GzipCodec", GZIP, {}), ("blosc", "BloscCodec", 0, {"cname": "lz4"}),
        ("numcodecs_lz4", "numcodecs.LZ4", 0, {}), ("numcodecs_bz2", "numcodecs.BZ2", 0, {}))
SAID = "what the task returned"  # sizes that the library reported
CHUNKS = "chunks of the file"
CASES = {
    "h5py_low_gzip": case(low_write, low_read, None, None),
    "h5py_low_plain": case(call(low_write, packed=False), low_read, NOTHING, NOTHING),
    "h5py_low_early": case(call(low_write, early=True), None, None, None),
    "h5py_low_early_plain": case(call(low_write, packed=False, early=True), None, NOTHING, None),
    "h5py_lzf": case(call(h5py_write, compression="lzf"), low_read, None, None),
    "h5py_szip": case(call(h5py_write, compression="szip"), low_read, None, None),
    "h5py_shuffle": case(call(h5py_write, shuffle=True), low_read, NOTHING, NOTHING),
    "h5py_changed": case(call(h5py_write, compression="gzip"), h5py_change, None, None),
    **{f"tables_{lib}": case(call(tables_write, "carray", lib), call(tables_read, "slice"), None, None)
       for lib in ("zlib", "bzip2", "blosc", "blosc2")},
    "tables_plain": case(call(tables_write, "carray"), call(tables_read, "slice"), NOTHING, NOTHING),
    "tables_vlarray": case(call(tables_write, "vlarray", "zlib"), call(tables_read, "read"), None, None),
    "tables_earray": case(call(tables_write, "earray", "blosc"), call(tables_read, "read"), None, None),
    "tables_table": case(call(tables_write, "table", "blosc2"), call(tables_read, "rows"), None, None),
    "tables_table_plain": case(call(tables_write, "table"), call(tables_read, "rows"), NOTHING, NOTHING),
    "tables_where": case(call(tables_write, "table", "zlib"), call(tables_read, "where"), None, None),
    "tables_index": case(call(tables_write, "index"), call(tables_read, "where"), None, None),
    "netcdf_zlib": case(call(netcdf_write, "zlib"), netcdf_read, None, None),
    "netcdf_bzip2": case(call(netcdf_write, "bzip2"), netcdf_read, None, None),
    "netcdf_szip": case(call(netcdf_write, "szip"), netcdf_read, None, None),
    "netcdf_blosc": case(call(netcdf_write, "blosc_lz4"), netcdf_read, None, None),
    "netcdf_zstd": case(call(netcdf_write, "zstd"), netcdf_read, CHUNKS, CHUNKS),
    "netcdf_plain": case(netcdf_write, netcdf_read, NOTHING, NOTHING),
    "netcdf_classic": case(call(netcdf_write, format="NETCDF3_CLASSIC"), netcdf_read, NOTHING, NOTHING),
    **({f"zarr_{codec}": case(call(zarr_write, name, around, **options), call(zarr_read, around), SAID, SAID)
        for codec, name, around, options in ZARR} if sys.version_info >= (3, 11) else {}),
    "blosc2": case(call(packed_by, "blosc2"), unpacked_by, SAID, SAID),
    "blosc2_2": case(call(packed_by, "blosc2", "2"), call(unpacked_by, "2"), SAID, SAID),
    "blosc2_into": case(call(packed_by, "blosc2"), call(unpacked_by, into=True), SAID, None),
    "blosc2_schunk": case(call(blosc2_write, "schunk"), call(blosc2_read, "schunk"), None, None, ".b2frame"),
    "blosc2_array": case(call(blosc2_write, "array"), call(blosc2_read, "array"), None, None, ".b2nd"),
    **{f"arrow_{codec}": case(call(arrow_codec_write, codec), call(arrow_codec_read, codec), SAID, SAID)
       for codec in ("lz4", "snappy", "gzip", "zstd")},
    "arrow_ipc_lz4": case(call(ipc_write, "lz4"), ipc_read, None, None),
    "arrow_ipc_zstd": case(call(ipc_write, "zstd"), call(ipc_read, batches=True), None, None),
    "arrow_ipc_plain": case(call(ipc_write, None), ipc_read, NOTHING, None),
    **{f"feather_{codec}": case(call(feather_write, codec), feather_read, None, None) for codec in ("lz4", "zstd")},
    "feather_plain": case(call(feather_write, "uncompressed"), feather_read, None, None),
    "arrow_stream_lz4": case(call(ipc_write, "lz4", "stream"), call(ipc_read, "stream"), None, None),
    "arrow_stream_plain": case(call(ipc_write, None, "stream"), call(ipc_read, "stream", True), NOTHING, None),
    "arrow_in_memory": case(None, in_memory, None, NOTHING),
    "arrow_csv_gzip": case(call(text_write, "csv"), text_read, None, None, ".csv.gz"),
    "arrow_csv_batches": case(call(text_write, "csv"), call(text_read, "batches"), None, None, ".csv.bz2"),
    "arrow_csv_given": case(call(text_write, "csv"), call(text_read, "given"), None, None, ".csv.gz"),
    "arrow_csv_plain": case(call(text_write, "csv"), text_read, NOTHING, NOTHING, ".csv"),
    "arrow_json_gzip": case(call(text_write, "json"), call(text_read, "json"), None, None, ".json.gz"),
    "arrow_text_stream": case(call(text_write, "json"), call(text_read, "stream"), None, None, ".gz"),
    "arrow_text_plain": case(call(text_write, "json"), call(text_read, "stream"), NOTHING, NOTHING, ".json"),
    "arrow_dataset": case(dataset_write, None, None, None),
    "arrow_orc": case(orc_write, None, None, None),
}


kept = {}  # files that one task writes and another one flushes, by path


def keep_h5py(path, **options):
    """The chunks fit into the library's cache, which compresses them when it is flushed."""
    file = module("h5py").File(path, "w", rdcc_nbytes=1 << 24)
    dataset = file.create_dataset("d", (ROWS,), "i4", chunks=(10_000,), **options)
    dataset[:] = numbers()
    kept[path] = [file, dataset]


def keep_tables(path):
    tables = module("tables")
    file = tables.open_file(path, "w", CHUNK_CACHE_SIZE=1 << 24)
    array = file.create_carray("/", "d", tables.Int32Atom(), (ROWS,), chunkshape=(10_000,), filters=tables.Filters(5, "zlib"))
    array[:] = numbers()
    kept[path] = [file, array]


def keep_netcdf(path):
    file = module("netCDF4").Dataset(path, "w")
    file.createDimension("x", ROWS)
    variable = file.createVariable("d", "i4", ("x",), compression="zlib", chunksizes=(10_000,), fill_value=False)
    variable.set_var_chunk_cache(1 << 24)
    variable[:] = numbers()
    kept[path] = [file, variable]


def settle(path, how):
    """Returns the bytes that were written to the file, however it is flushed: "drop" calls no function of the library."""
    before = os.stat(path).st_size
    file, _ = held = kept.pop(path)
    if how == "flush":
        file.flush()
    elif how == "sync":
        file.sync()
    elif how == "close":
        file.close()
    held.clear()
    del file, _, held
    gc.collect()
    return os.stat(path).st_size - before


# Compression in a task that did not write the data: expected or not.
LATER = {
    **{f"h5py_{how}": (call(keep_h5py, compression="gzip"), how, True) for how in ("flush", "close", "drop")},
    "h5py_lzf": (call(keep_h5py, compression="lzf"), "close", True),
    "h5py_szip": (call(keep_h5py, compression="szip"), "close", True),
    "h5py_shuffle": (call(keep_h5py, shuffle=True), "flush", False),
    "tables_flush": (keep_tables, "flush", True),
    "tables_close": (keep_tables, "close", True),
    "netcdf_sync": (keep_netcdf, "sync", True),
    "netcdf_close": (keep_netcdf, "close", True),
}


def run_later(name, step, path):
    keep, how, _ = LATER[name]
    return keep(path) if step == "keep" else settle(path, how)


def run(name, step, path):
    return CASES[name][step](path)
