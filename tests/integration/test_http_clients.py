"""HTTP clients that are not in the environment of all tests: uvloop, HTTP/2, s3fs and pyarrow's S3. Run by
make accuracy."""

import os
import sys

import jobs
import pytest
import web_jobs
from distributed import Client
from test_http import (SIZES, Web, check_bytes, check_served, check_waits, difference, everything, passed, served_by,
                       unattributed, wire_bytes)

pytestmark = pytest.mark.matrix
BUCKET = "bucket"


def start(home, homes, server, args=(), env=None):
    """A cluster whose only worker runs in the environment with these clients."""
    import cluster
    import webvenv

    procs = cluster.Cluster(home, homes)
    procs.start_collector()
    procs.start_scheduler()
    bin_dir = webvenv.environment()
    procs.dask = lambda *words: [bin_dir / "python", "-m", "dask", *words]
    procs.start_worker(nthreads=4, args=args, env={"SSL_CERT_FILE": str(server.home / "cert.pem"),
                                                   "AWS_EC2_METADATA_DISABLED": "true", **(env or {})})
    return procs


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from nginx import Nginx

    home = tmp_path_factory.mktemp("clients")
    (home / "files").mkdir()
    for name, size in SIZES.items():
        (home / "files" / name).write_bytes(os.urandom(size))
    with Nginx(home / "nginx", home / "files", tls=True) as nginx:
        yield nginx


def web_of(server, tmp_path_factory, homes, **options):
    with start(tmp_path_factory.mktemp("clients"), homes, server, **options) as procs, Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        yield Web(server, procs, client)


@pytest.fixture(scope="module")
def web(server, tmp_path_factory, homes):
    yield from web_of(server, tmp_path_factory, homes)


@pytest.fixture(scope="module")
def uvloop_web(server, tmp_path_factory, homes):
    """fsspec's loop and the worker's own are uvloop's."""
    for each in web_of(server, tmp_path_factory, homes, env={"DASK_DISTRIBUTED__ADMIN__EVENT_LOOP": "uvloop"}):
        each.client.run(web_jobs.use_uvloop)
        assert list(each.client.run(web_jobs.loop_kinds).values()) == [("uvloop", "uvloop")]
        each.client.run(web_jobs.fsspec_gets, [server.url("/warm/small.bin")])
        yield each


def test_uvloop_bytes(uvloop_web, cell):
    web, server = uvloop_web, uvloop_web.server
    calls = [(web_jobs.gets, "fsspec", [server.url(f"/uv{i}/{name}")] * (i + 1)) for i, name in enumerate(SIZES)]
    for in_turn in (True, False):
        name = f"uv{in_turn}"
        before = [server.of(f"/uv{i}/") for i in range(2)]
        _, rows, _ = web.run(name, calls, in_turn=in_turn)
        for i, row in enumerate(rows):
            requests, out, received = difference(server.of(f"/uv{i}/"), before[i])
            assert requests == i + 1
            how = "nginx's log"
            what = f"fsspec on uvloop, task {i + 1} of 2 {'in turn' if in_turn else 'at once'}"
            cell("network", f"network_read_bytes of {what}", how, out, row["network_read_bytes"])
            cell("network", f"network_write_bytes of {what}", how, received, row["network_write_bytes"])


def test_uvloop_waits(uvloop_web, cell):
    from relay import Relay

    with Relay(uvloop_web.server.port, delay_s=1.3) as relay:
        urls = [f"http://127.0.0.1:{relay.port}/late/small.bin"] * 2
        (queued,), (row,), _ = uvloop_web.run("uvlate", [(web_jobs.timed, "fsspec", urls)])
        check_waits(cell, "fsspec on uvloop, answers 1.3 s late", row, relay.turns * 1.3,
                    "a relay holds each answer back", queued)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_uvloop_requests_by_server(uvloop_web, cell, scheme):
    from relay import Relay

    server, name = uvloop_web.server, f"uvserved{scheme}"
    with Relay(server.tls_port if scheme == "https" else server.port, delay_s=0.1) as relay:
        urls = [f"{scheme}://127.0.0.1:{relay.port}/{name}/big.bin"] * 3
        _, _, report = uvloop_web.run(name, [(web_jobs.gets, "fsspec", urls)] * 2)
        (row,) = served_by(report, relay)
        assert row["scheme"] == scheme and relay.connections == 1
        check_served(cell, f"fsspec on uvloop, {scheme}", uvloop_web, relay, f"/{name}/", row, report)


def test_uvloop_keeps_dasks_own_apart(uvloop_web):
    """A task's argument arrives over Dask's connection and does not count as the task's network bytes."""
    size = 3_000_000
    _, (row,), report = uvloop_web.run("uvcomm", [(len, os.urandom(size))])
    assert row["network_read_bytes"] == 0
    parts = report["completeness"]
    comm = parts["tasks"]["comm_read_bytes"] + parts["unattributed"]["comm_read_bytes"]
    assert comm > size


def test_http2_is_shared(web, cell):
    """The connection's bytes are known, but not each task's share."""
    from relay import Relay

    with Relay(web.server.h2_port) as relay:
        url = f"https://127.0.0.1:{relay.port}/h2/big.bin"
        _, (first,), report = web.run("h2first", [(web_jobs.http2_gets, [url])])
        assert wire_bytes(first) == (None, None)
        before, shared = passed(relay), report["completeness"]
        _, rows, report = web.run("h2", [(web_jobs.http2_gets, [url] * (i + 1)) for i in range(3)], in_turn=False)
        truth = difference(passed(relay), before)
        assert relay.connections == 1 and truth[0] > 6 * SIZES["big.bin"]
        for row in rows:
            assert wire_bytes(row) == (None, None)
        assert not served_by(report, relay)  # requests at the same time cannot be told apart
        for direction, known in zip(("read", "write"), truth):
            name = f"shared_network_{direction}_bytes"
            cell("network", f"{name} of HTTP/2, three tasks at once on one connection", "a relay counts what passes",
                 known, report["completeness"][name] - shared[name])
        assert any("HTTP/2" in note for note in report["completeness"]["notes"])


def shared_bytes(report):
    return [report["completeness"][f"shared_network_{direction}_bytes"] for direction in ("read", "write")]


def check_shared_bytes(relay, before, report):
    """All that passed the relay is among the worker's shared bytes."""
    assert [now - then for now, then in zip(shared_bytes(report), before)] == list(passed(relay))


def check_shared(relay, before, report):
    """And no request of it is counted."""
    check_shared_bytes(relay, before, report)
    assert not served_by(report, relay)


def shared_before(web):
    return shared_bytes(web.run("before", [(len, "")])[2])


def test_http2_of_urllib3(web):
    """Its hello offers HTTP/2 only."""
    from relay import Relay

    before = shared_before(web)
    with Relay(web.server.h2_port) as relay:
        (got,), (row,), report = web.run("urllib3h2", [(web_jobs.urllib3_http2_gets, [f"https://127.0.0.1:{relay.port}/h2/big.bin"] * 3)])
        assert got == 3 * SIZES["big.bin"] < relay.down_bytes and wire_bytes(row) == (None, None)
        check_shared(relay, before, report)


def test_pelican(web, cell):
    """The director, the cache and the origin are servers of their own; a task's bytes are those that all of them sent it."""
    from contextlib import ExitStack

    from pelican_director import Director
    from relay import Relay

    with ExitStack() as stack:
        cache, origin = [stack.enter_context(Relay(web.server.port)) for _ in range(2)]
        places = [f"http://127.0.0.1:{relay.port}" for relay in (cache, origin)]
        answers = stack.enter_context(Director(web.server.home, places[:1], places[1]))
        director = stack.enter_context(Relay(answers.port))
        federation, seen = f"pelican://127.0.0.1:{director.port}", [(0, 0)]
        relays = cache, origin, director

        def passed_all():
            return tuple(sum(each) for each in zip(*map(passed, relays)))

        calls = [(web_jobs.pelican_reads, federation, ["/pelican/big.bin"] * 3), (web_jobs.pelican_reads, federation, ["/pelican/big.bin"], True)]
        got, rows, report = web.run("pelican", calls, between=lambda: seen.append(passed_all()))
        assert got == [3 * SIZES["big.bin"], SIZES["big.bin"]]
        for i, (row, how) in enumerate(zip(rows, ("by a cache", "from the origin"))):
            check_bytes(cell, f"pelicanfs {how}", difference(seen[i + 1], seen[i]), row)
        requests = [sum(row["requests"] for row in served_by(report, relay)) for relay in relays]
        assert requests[0] + requests[1] == web.server.of("/pelican/")[0]
        assert requests[2] == answers.answers and all(requests) and origin.down_bytes < 2 * SIZES["big.bin"] < cache.down_bytes


def test_zarr(web, cell):
    """Its metadata and chunks, some of them asked for at once, in turn and by two tasks at once."""
    from relay import Relay

    assert web.client.submit(web_jobs.zarr_write, str(web.server.home.parent / "files"), [3, 7], pure=False).result() == [3, 7]
    with Relay(web.server.port) as a, Relay(web.server.port) as b:
        urls, seen = [f"http://127.0.0.1:{relay.port}/zarr{i}/array{n}.zarr" for i, (relay, n) in enumerate(((a, 3), (b, 7)))], [(0, 0)]
        calls = [(web_jobs.zarr_reads, [url] * 2) for url in urls]
        _, rows, _ = web.run("zarrturn", calls, between=lambda: seen.append(tuple(map(sum, zip(passed(a), passed(b))))))
        for i, row in enumerate(rows):
            check_bytes(cell, f"Zarr 3 over fsspec, task {i + 1} of 2 in turn", difference(seen[i + 1], seen[i]), row)
        before = passed(a), passed(b)
        _, rows, report = web.run("zarronce", calls, in_turn=False)
        for i, (relay, row) in enumerate(zip((a, b), rows)):
            check_bytes(cell, f"Zarr 3 over fsspec, task {i + 1} of 2 at once", difference(passed(relay), before[i]), row)
            (served,) = served_by(report, relay)
            assert served["requests"] == web.server.of(f"/zarr{i}/")[0] / 2 >= 2 * (1 + (3, 7)[i])


@pytest.fixture(scope="module")
def hdf5(web):
    """{chunks: the sum of the values} of the files /valuesCHUNKS.h5."""
    numbers, folder = [3, 7], web.server.home.parent / "files"
    return dict(zip(numbers, web.client.submit(web_jobs.hdf5_write, str(folder), numbers, pure=False).result()))


@pytest.mark.parametrize("reads", [web_jobs.hdf5_reads, web_jobs.netcdf_reads])
def test_hdf5(web, hdf5, cell, tmp_path, reads):
    """Metadata and chunks, in turn and by two tasks at once: h5py calls fsspec's file, netCDF4 has a driver that uses libcurl."""
    from relay import Relay

    name, what = reads.__name__, {"hdf5_reads": "h5py over fsspec", "netcdf_reads": "netCDF4's byte ranges of HDF5"}[reads.__name__]
    with Relay(web.server.port, delay_s=0.02) as a, Relay(web.server.port, delay_s=0.02) as b:
        calls = [(reads, [f"http://127.0.0.1:{relay.port}/{name}{n}/values{n}.h5"] * 2) for relay, n in zip((a, b), hdf5)]
        seen = [(0, 0)]
        got, rows, _ = web.run(f"{name}turn", calls, between=lambda: seen.append(tuple(map(sum, zip(passed(a), passed(b))))))
        assert got == [[pytest.approx(value)] * 2 for value in hdf5.values()]
        for i, row in enumerate(rows):
            check_bytes(cell, f"{what}, task {i + 1} of 2 in turn", difference(seen[i + 1], seen[i]), row)
        before = passed(a), passed(b)
        _, rows, report = web.run(f"{name}once", [(*call, str(tmp_path), str(i), 2) for i, call in enumerate(calls)], in_turn=False)
        for i, (relay, row, n) in enumerate(zip((a, b), rows, hdf5)):
            check_bytes(cell, f"{what}, task {i + 1} of 2 at once", difference(passed(relay), before[i]), row)
            (served,) = served_by(report, relay)
            assert served["requests"] == web.server.of(f"/{name}{n}/")[0] / 2 > 2 * n


# --- S3

def moto_call(port, method, path, body=None):
    import urllib.request

    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", data=body, method=method,
                                     headers={"Content-Type": "application/octet-stream"})
    with urllib.request.urlopen(request, timeout=60):
        return True


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    """moto's server with a bucket; returns its port."""
    import cluster
    import webvenv

    port, home = cluster.free_port(), tmp_path_factory.mktemp("moto")
    process = cluster.Process("moto", [webvenv.environment() / "moto_server", "-p", str(port)], home / "moto.log")

    def ready():
        try:
            return moto_call(port, "GET", "moto-api/")
        except OSError:
            return False

    try:
        cluster.wait_until(ready, "moto", 120, [process])
        moto_call(port, "PUT", BUCKET)
        for name, size in SIZES.items():
            moto_call(port, "PUT", f"{BUCKET}/{name}", os.urandom(size))
        yield port
    finally:
        process.stop()


def test_s3fs_in_turn_over_a_kept_connection(web, moto, cell):
    from relay import Relay

    with Relay(moto) as relay:
        endpoint, seen = f"http://127.0.0.1:{relay.port}", [passed(relay)]
        _, rows, _ = web.run("s3turn", [(web_jobs.s3_reads, endpoint, [f"{BUCKET}/big.bin"] * (i + 1)) for i in range(3)],
                             between=lambda: seen.append(passed(relay)))
        for i, row in enumerate(rows):
            check_bytes(cell, f"s3fs, task {i + 1} of 3 in turn", difference(seen[i + 1], seen[i]), row)
        before = unattributed(web)
        web.client.run(web_jobs.s3_reads, endpoint, [f"{BUCKET}/small.bin"])
        assert difference(unattributed(web), before) == difference(passed(relay), seen[-1])


def test_s3fs_two_at_once(web, moto, cell, tmp_path):
    from relay import Relay

    with Relay(moto) as a, Relay(moto) as b:
        _, rows, _ = web.run("s3two", [
            (web_jobs.s3_reads_beside, f"http://127.0.0.1:{relay.port}", [f"{BUCKET}/{name}"] * 5, str(tmp_path), name, 2)
            for relay, name in ((a, "big.bin"), (b, "small.bin"))], in_turn=False)
        for relay, row, name in ((a, rows[0], "large"), (b, rows[1], "small")):
            check_bytes(cell, f"s3fs, two at once, {name} objects", passed(relay), row)


def test_s3fs_waits(web, moto, cell):
    from relay import Relay

    with Relay(moto, delay_s=1.2) as relay:
        (queued,), (row,), _ = web.run("s3late", [
            (web_jobs.s3_timed, f"http://127.0.0.1:{relay.port}", [f"{BUCKET}/small.bin"] * 2)])
        check_waits(cell, "s3fs, answers 1.2 s late", row, relay.turns * 1.2, "a relay holds each answer back", queued)


@pytest.fixture(scope="module")
def parquet(moto):
    table = web_jobs.parquet_table()
    moto_call(moto, "PUT", f"{BUCKET}/table.parquet", table)
    return len(table)


def test_arrow_s3(web, moto, parquet, cell):
    """Arrow's client is C++. What the task's own thread requests is its own; if Arrow's threads do, it is unknown which task asked."""
    from relay import Relay

    with Relay(moto) as relay:
        http, bare, seen = f"http://127.0.0.1:{relay.port}", f"127.0.0.1:{relay.port}", []
        web.run("before", [(web_jobs.boto3_reads, http, [f"{BUCKET}/small.bin"])])
        start, others, before = passed(relay), unattributed(web), everything(web)
        got, rows, report = web.run("arrow", [
            (web_jobs.boto3_reads, http, [f"{BUCKET}/small.bin"]), (web_jobs.arrow_reads, bare, f"{BUCKET}/big.bin"),
            (web_jobs.arrow_scans, bare, f"{BUCKET}/table.parquet"), (web_jobs.boto3_reads, http, [f"{BUCKET}/small.bin"])],
            between=lambda: seen.append(passed(relay)))
    assert got == [SIZES["small.bin"], SIZES["big.bin"], 20_000, SIZES["small.bin"]]
    names = ("boto3, before Arrow's", "pyarrow's S3, read in the task's thread", "", "boto3, after Arrow's")
    for name, row, now, then in zip(names, rows, seen, [start, *seen]):
        if name:
            check_bytes(cell, name, difference(now, then), row)
    assert wire_bytes(rows[2]) == (None, None)
    notes = [note for note in report["completeness"]["notes"] if "libarrow, or another library, requests data in native threads" in note]
    assert len(notes) == 1
    # what Arrow's threads received is unattributed, and the rest the task's own thread did
    nobody, scanned = difference(unattributed(web), others), difference(seen[2], seen[1])
    assert parquet * 0.9 < nobody[0] < scanned[0] and 0 < nobody[1] < scanned[1]
    assert difference(everything(web), before) == difference(passed(relay), start)


def test_boto3_in_turn(web, moto, cell):
    from relay import Relay

    with Relay(moto) as relay:
        endpoint, seen = f"http://127.0.0.1:{relay.port}", [passed(relay)]
        _, rows, report = web.run("boto3turn", [(web_jobs.boto3_reads, endpoint, [f"{BUCKET}/big.bin"] * (i + 1)) for i in range(3)],
                                  between=lambda: seen.append(passed(relay)))
        for i, row in enumerate(rows):
            check_bytes(cell, f"boto3, task {i + 1} of 3 in turn", difference(seen[i + 1], seen[i]), row)
        (served,) = served_by(report, relay)
        assert (served["requests"], served["failed_requests"]) == (6, 0)


def test_boto3_at_once(web, moto, cell):
    from contextlib import ExitStack

    from relay import Relay

    with ExitStack() as stack:
        relays = [stack.enter_context(Relay(moto)) for _ in range(3)]
        _, rows, _ = web.run("boto3once", [(web_jobs.boto3_reads, f"http://127.0.0.1:{relay.port}", [f"{BUCKET}/big.bin"] * (i + 1))
                                           for i, relay in enumerate(relays)], in_turn=False)
        for i, (relay, row) in enumerate(zip(relays, rows)):
            check_bytes(cell, f"boto3, task {i + 1} of 3 at once", passed(relay), row)


# --- gRPC

def grpc_server():
    """Answers with as many bytes as the request names."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: bytes(int(request)))

    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handler()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


@pytest.fixture(scope="module")
def grpc_port(tmp_path_factory):
    import cluster
    import webvenv

    log = tmp_path_factory.mktemp("grpc") / "grpc.log"
    code = f"import sys; sys.path[:0] = {sys.path}; import test_http_clients; test_http_clients.grpc_server()"
    process = cluster.Process("grpc", [webvenv.environment() / "python", "-c", code], log)
    try:
        cluster.wait_until(lambda: log.read_text().endswith("\n"), "the gRPC server", 60, [process])
        yield int(log.read_text().split()[-1])
    finally:
        process.stop()


# --- xrdclient

def test_xrdclient(web, tmp_path):
    """The thread that holds its lock receives for all tasks of the process: unknown for a task, but not in total."""
    from xrootd import XRootD

    (tmp_path / "files").mkdir()
    for i in range(4):
        (tmp_path / "files" / f"{i}.bin").write_bytes(os.urandom(3_000_000))
        (tmp_path / "files" / f"{i}.bin").chmod(0o644)
    tmp_path.chmod(0o755)
    with XRootD(tmp_path / "server", tmp_path / "files") as server:
        before = unattributed(web)
        got, rows, report = web.run("xrdclient", [(web_jobs.xrdclient_reads, [server.url(f"/{i}.bin")] * 2) for i in range(4)], in_turn=False)
    assert got == [2 * 3_000_000] * 4
    assert [(row["network_read_bytes"], row["network_write_bytes"]) for row in rows] == [(None, None)] * 4
    assert any(note.endswith("xrdclient is loaded: its connections serve several tasks, what each of them receives and sends is unknown")
               for note in report["completeness"]["notes"])
    assert unattributed(web) >= before


@pytest.fixture(scope="module")
def another_web(server, tmp_path_factory, homes):
    yield from web_of(server, tmp_path_factory, homes)


def test_grpc(another_web, grpc_port):
    """A thread that waits for its own answer receives those of others, too: unknown for a task that calls, but not in total.
    Its own worker, because the test before was about all tasks from then on."""
    from relay import Relay

    web, before = another_web, shared_before(another_web)
    with Relay(grpc_port) as relay:
        sizes = [[1_000_000] * (i + 1) for i in range(3)]
        got, rows, report = web.run("grpc", [(web_jobs.grpc_calls, f"127.0.0.1:{relay.port}", each) for each in sizes], in_turn=False)
        assert got == [sum(each) for each in sizes] and relay.down_bytes > 6_000_000
        check_shared_bytes(relay, before, report)
        (served,) = served_by(report, relay)
    assert (served["scheme"], served["requests"], served["failed_requests"]) == ("grpc", 6, 0)
    assert [wire_bytes(row) for row in rows] == [(None, None)] * 3
    assert any("gRPC" in note for note in report["completeness"]["notes"])
