"""What test_http.py runs on workers: HTTP clients, one request after the other."""

import glob
import os
import threading
import time

_kept = {}


def fsspec_gets(urls):
    """Uses fsspec's only loop and session for all tasks of the process: aiohttp with pooled connections."""
    import fsspec

    files = fsspec.filesystem("http")
    return sum(len(files.cat_file(url)) for url in urls)


def requests_gets(urls):
    """A session for each thread."""
    import requests

    me = threading.get_ident()
    if me not in _kept:
        _kept[me] = requests.Session()
    return sum(len(_kept[me].get(url).content) for url in urls)


def xrdclient_reads(urls):
    """XRootD in Python: one connection for all threads of the process."""
    import xrdclient

    total = 0
    for url in urls:
        with xrdclient.open(url, "rb") as file:
            total += len(file.read())
    return total


def client_gets(urls):
    """http.client, a connection for each request."""
    import urllib.request

    total = 0
    for url in urls:
        with urllib.request.urlopen(url, timeout=60) as answer:
            total += len(answer.read())
    return total


def source_reads(urls):
    """uproot's HTTPSource: http.client in the threads of its pool."""
    import uproot

    total = 0
    for url in urls:
        with uproot.open({url: "Events"}, handler=uproot.HTTPSource) as tree:
            total += len(tree["MET_pt"].array(library="np"))
    return total


CLIENTS = {"fsspec": fsspec_gets, "requests": requests_gets, "http.client": client_gets, "HTTPSource": source_reads}


def gets(kind, urls):
    return CLIENTS[kind](urls)


def gets_and_stays(kind, urls, folder):
    """Continues until another request is over."""
    gets(kind, urls)
    open(f"{folder}/done", "w").close()
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)


def queued():
    """Seconds during which this process's threads were ready to run but had no core."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[1])
        except OSError:
            pass  # the thread has ended
    return total / 1e9


def timed(kind, urls):
    """The time that all threads together waited for a core: on a busy machine that is not network wait."""
    before = queued()
    gets(kind, urls)
    return queued() - before


def lock_beside(folder, name, others, seconds):
    """Waits for an event that a thread sets, while the other tasks of `folder` run."""
    import test_network

    test_network.wait_for(others, folder, name)
    event = threading.Event()
    threading.Timer(seconds, event.set).start()
    start = time.perf_counter()
    event.wait()
    return time.perf_counter() - start


def timed_beside(kind, urls, folder, name, others):
    import test_network

    test_network.wait_for(others, folder, name)
    return timed(kind, urls)


# --- clients that are not part of the environment of all tests (webvenv.py)

_http2 = {}


def use_uvloop():
    """Uses uvloop for loops created from now on: fsspec's."""
    import asyncio

    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


def loop_kinds():
    """The classes of fsspec's loop and of the worker's own."""
    import fsspec.asyn
    from tornado.ioloop import IOLoop

    return type(fsspec.asyn.get_loop()).__module__, type(IOLoop.current().asyncio_loop).__module__


def http2_gets(urls):
    """One client on one loop for all tasks: their requests share a connection."""
    import asyncio
    import ssl

    import httpx

    if not _http2:  # a first task alone creates them
        _http2["loop"] = asyncio.new_event_loop()
        _http2["client"] = httpx.AsyncClient(http2=True, verify=ssl.create_default_context(), timeout=60)
        threading.Thread(target=_http2["loop"].run_forever, daemon=True).start()

    async def get_all():
        answers = await asyncio.gather(*(_http2["client"].get(url) for url in urls))
        assert all(a.http_version == "HTTP/2" for a in answers)
        return sum(len(a.content) for a in answers)

    return asyncio.run_coroutine_threadsafe(get_all(), _http2["loop"]).result(60)


def urllib3_http2_gets(urls):
    """A pool of connections that offer HTTP/2 only."""
    import ssl

    import urllib3.http2

    urllib3.http2.inject_into_urllib3()
    try:
        pool = urllib3.PoolManager(ssl_context=ssl.create_default_context())
        answers = [pool.request("GET", url) for url in urls]
    finally:
        urllib3.http2.extract_from_urllib3()
    assert all(a.version_string == "HTTP/2" for a in answers)
    return sum(len(a.data) for a in answers)


def pelican_reads(federation, paths, direct=False):
    """Through the caches that the director names, or from the origin."""
    from pelicanfs.core import PelicanFileSystem

    files = PelicanFileSystem(federation, direct_reads=direct)
    return sum(len(files.cat_file(path)) for path in paths)


def zarr_write(folder, numbers):
    """Arrays in Zarr's format 3, and how many chunks each has."""
    import numpy
    import zarr

    for n in numbers:
        array = zarr.create_array(f"{folder}/array{n}.zarr", shape=(n * 50_000,), chunks=(50_000,), dtype="float64")
        array[:] = numpy.random.default_rng(n).normal(size=n * 50_000)
    return [len(glob.glob(f"{folder}/array{n}.zarr/c/*")) for n in numbers]


def zarr_reads(urls):
    """Over fsspec, whose loop and session all tasks of the process share."""
    import zarr

    return sum(float(zarr.open_array(url, mode="r")[:].sum()) for url in urls)


def hdf5_write(folder, numbers):
    """Files with compressed chunks, and the sum of the values of each."""
    import h5py
    import numpy

    sums = []
    for n in numbers:
        values = numpy.random.default_rng(n).normal(size=n * 50_000)
        with h5py.File(f"{folder}/values{n}.h5", "w") as file:
            file.create_dataset("values", data=values, chunks=(50_000,), compression="gzip")
        os.chmod(f"{folder}/values{n}.h5", 0o644)
        sums.append(float(values.sum()))
    return sums


def hdf5_reads(urls, folder=None, name=None, others=1):
    """The library calls read of fsspec's file, for metadata and for each chunk."""
    import fsspec
    import h5py
    import test_network

    if folder:
        test_network.wait_for(others, folder, name)
    sums = []
    for url in urls:
        files, path = fsspec.core.url_to_fs(url)
        with files.open(path, block_size=1 << 16) as answers, h5py.File(answers) as file:
            values = file["values"]
            sums.append(sum(float(values[chunk].sum()) for chunk in values.iter_chunks()))
    return sums


_netcdf = threading.Lock()


def netcdf_reads(urls, folder=None, name=None, others=1):
    """The library's own driver requests with libcurl, in the task's thread. One call at a time: netCDF4 is not thread-safe."""
    import netCDF4
    import test_network

    if folder:
        test_network.wait_for(others, folder, name)
    sums = []
    for url in urls:
        with _netcdf:
            file = netCDF4.Dataset(f"{url}#mode=bytes")
        total = 0.0
        for at in range(0, len(file["values"]), 50_000):
            with _netcdf:
                total += float(file["values"][at:at + 50_000].sum())
        with _netcdf:
            file.close()
        sums.append(total)
    return sums


def s3_reads(endpoint, paths):
    import s3fs

    files = s3fs.S3FileSystem(key="k", secret="s", endpoint_url=endpoint, client_kwargs={"region_name": "us-east-1"})
    return sum(len(files.cat_file(path)) for path in paths)


def s3_reads_beside(endpoint, paths, folder, name, others):
    import test_network

    test_network.wait_for(others, folder, name)
    return s3_reads(endpoint, paths)


def s3_timed(endpoint, paths):
    before = queued()
    s3_reads(endpoint, paths)
    return queued() - before


def arrow_s3(endpoint):
    from pyarrow import fs

    return fs.S3FileSystem(access_key="k", secret_key="s", endpoint_override=endpoint, scheme="http", region="us-east-1")


def arrow_reads(endpoint, path):
    """Reads a whole file in pieces, in the task's own thread."""
    with arrow_s3(endpoint).open_input_stream(path, buffer_size=1 << 16) as file:
        return len(file.read())


def parquet_table():
    """A Parquet file of several row groups."""
    import io

    import numpy
    import pyarrow
    import pyarrow.parquet

    file, columns = io.BytesIO(), {f"c{i}": numpy.random.default_rng(i).random(20_000) for i in range(8)}
    pyarrow.parquet.write_table(pyarrow.table(columns), file, row_group_size=5_000)
    return file.getvalue()


def arrow_scans(endpoint, path):
    """Reads a Parquet file in row groups, which Arrow requests in its own threads."""
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, filesystem=arrow_s3(endpoint)).num_rows


def arrow_over_fsspec(url):
    """Arrow reads a file of fsspec's HTTP, in row groups."""
    import fsspec
    import pyarrow.parquet

    with fsspec.filesystem("http").open(url) as file:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=True).read().num_rows


def boto3_reads(endpoint, paths):
    """A client for each thread, over urllib3."""
    import boto3

    key = endpoint, threading.get_ident()
    if key not in _kept:
        _kept[key] = boto3.session.Session("k", "s", region_name="us-east-1").client("s3", endpoint_url=endpoint)
    total = 0
    for path in paths:
        bucket, name = path.split("/")
        total += len(_kept[key].get_object(Bucket=bucket, Key=name)["Body"].read())
    return total


def grpc_calls(address, sizes):
    """One channel for all tasks, as the client of an inference server has; each answer has that size."""
    import grpc

    if address not in _kept:
        _kept[address] = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
    call = _kept[address].unary_unary("/test.Test/Get")
    return sum(len(call(str(size).encode(), timeout=60)) for size in sizes)
