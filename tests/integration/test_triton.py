"""Triton's client, as coffea's triton_wrapper uses it: gRPC's threads serve all tasks, so what a task waits for and how often it asked is known by
its calls only; what it sent and received on the wire is unknown, and nobody else's."""

import contextlib

import cluster
import jobs
import pytest
import triton_jobs
import venvs
from relay import Relay
from test_http import Web, check_bytes, passed, served_by, wire_bytes
from test_http_clients import check_shared_bytes, shared_before

pytestmark = pytest.mark.further
DELAY_S = 0.2


@pytest.fixture(scope="module")
def python():
    return venvs.beside("triton", jobs.ROOT / "tests" / "triton-requirements.txt") / "python"


class Model:
    def __init__(self, log):
        self.log = log
        self.grpc, self.http = map(int, log.read_text().split("\n")[0].split())

    def calls(self):
        """Bytes of the messages (sent, received) of each call so far."""
        return [tuple(map(int, line.split()[1:])) for line in self.log.read_text().splitlines() if line.startswith("grpc ")]


@pytest.fixture(scope="module")
def model(python, tmp_path_factory):
    log = tmp_path_factory.mktemp("triton") / "server.log"
    process = cluster.Process("triton", [python, jobs.ROOT / "tests" / "integration" / "triton_server.py", str(DELAY_S)], log)
    try:
        cluster.wait_until(lambda: "\n" in log.read_text(), "the inference server", 60, [process])
        yield Model(log)
    finally:
        process.stop()


@contextlib.contextmanager
def worker(python, model, folder, homes, **options):
    with cluster.Cluster(folder, homes) as procs:
        procs.dask = lambda *words: [python, "-m", "dask", *words]
        with jobs.measured(procs, nthreads=4, **options) as client:
            yield Web(model, procs, client)


@pytest.fixture(scope="module")
def web(python, model, tmp_path_factory, homes):
    with worker(python, model, tmp_path_factory.mktemp("inference"), homes) as one:
        address = f"127.0.0.1:{model.grpc}"
        one.run("warm", [(triton_jobs.wrapped, address, 1), (triton_jobs.asked_later, address, 1), (triton_jobs.by_asyncio, address, 1)])
        yield one


def check_waits(row, calls):
    """All of the task but its own work was the wait for the server."""
    assert row["network_wait_seconds"] >= calls * DELAY_S * 0.98 - row["runqueue_wait_seconds"]
    rest = row["wall_seconds"] - row["cpu_seconds"] - row["runqueue_wait_seconds"] - row["gil_wait_seconds"] - row["network_wait_seconds"]
    assert abs(rest) < 0.03 + 0.05 * calls * DELAY_S, row


def check_served(report, relay, model, before, requests):
    (served,) = served_by(report, relay)
    new = model.calls()[before:]
    assert served["scheme"] == "grpc" and (served["requests"], served["failed_requests"]) == (requests, 0)
    assert served["read_bytes"] == sum(answer for _, answer in new)
    return served


@pytest.mark.parametrize("in_turn", [True, False])
def test_coffeas_wrapper(web, model, in_turn):
    """3 batches for each of 4 tasks, and two calls for the model's description; a fifth task calls nothing."""
    name, before, shared = f"wrapper{in_turn}", len(model.calls()), shared_before(web)
    with Relay(model.grpc) as relay:
        calls = [(triton_jobs.wrapped, f"127.0.0.1:{relay.port}", 3000)] * 4 + [(len, "abc")]
        got, rows, report = web.run(name, calls, in_turn=in_turn)
        assert got == [3000] * 4 + [3]
        check_shared_bytes(relay, shared, report)
    for row in rows[:4]:
        check_waits(row, 3)
    assert [wire_bytes(row) for row in rows] == [(None, None)] * 4 + [(0, 0)]
    served = check_served(report, relay, model, before, len(model.calls()) - before)
    assert served["requests"] in range(14, 21)  # each of the tasks at once may ask for the description
    assert served["latency_max_s"] >= DELAY_S and served["latency_sum_s"] >= 12 * DELAY_S
    check_lines(report, rows)
    (finding,) = [f for f in report["findings"] if f["id"] == "network_wait"]
    assert f"'127.0.0.1:{relay.port}' answered" in finding["sentence"] and "instances of the model" in finding["advice"]


def check_lines(report, rows):
    """The samples have the class and the line."""
    own = report["stacks"]["own"]
    waited = sum(row["network_wait_seconds"] for row in rows)
    assert own["network_wait_seconds"] >= 0.85 * own["seconds"], own
    assert abs(own["network_wait_seconds"] - waited) < 0.15 * waited, (own, waited)


@pytest.mark.parametrize("function, args, calls", [(triton_jobs.asked_later, (500,), 1), (triton_jobs.streamed, (500, 3), 3)])
def test_others_threads_receive(web, model, function, args, calls):
    """Futures, and streams of answers, which are one request each."""
    before = len(model.calls())
    with Relay(model.grpc) as relay:
        got, (row,), report = web.run(function.__name__, [(function, f"127.0.0.1:{relay.port}", *args)])
    assert wire_bytes(row) == (None, None)
    check_waits(row, calls)
    (served,) = served_by(report, relay)
    assert (served["requests"], served["failed_requests"]) == (1, 0)
    answers = sum(answer for _, answer in model.calls()[before:])
    # the stream's messages have the answer inside, with a tag and its length
    assert served["read_bytes"] == answers if calls == 1 else answers < served["read_bytes"] <= answers + 4 * calls


def test_a_failure_counts(web, model):
    with Relay(model.grpc) as relay:
        got, (row,), report = web.run("fails", [(triton_jobs.fails, f"127.0.0.1:{relay.port}")])
    assert got == ["StatusCode.NOT_FOUND"]
    (served,) = served_by(report, relay)
    assert (served["requests"], served["failed_requests"], served["read_bytes"]) == (1, 1, 0)


def test_asyncio_is_unknown(web, model):
    with Relay(model.grpc) as relay:
        got, (row,), report = web.run("aio", [(triton_jobs.by_asyncio, f"127.0.0.1:{relay.port}", 500)])
    assert got == [500] and wire_bytes(row) == (None, None) and not served_by(report, relay)


def test_behind_a_proxy_it_is_unknown_for_all(python, model, tmp_path, homes):
    """Its connections would begin as the proxy wants."""
    with worker(python, model, tmp_path / "proxy", homes, env={"http_proxy": "http://127.0.0.1:1", "no_proxy": "127.0.0.1"}) as web:
        address = f"127.0.0.1:{model.grpc}"
        _, rows, _ = web.run("proxy", [(len, "abc"), (triton_jobs.fails, address), (len, "abc")])
    assert [wire_bytes(row) for row in rows] == [(0, 0), (None, None), (None, None)]


def test_http(web, model, cell):
    """Its greenlets run in the task's thread."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        relays = [stack.enter_context(Relay(model.http)) for _ in range(3)]
        calls = [(triton_jobs.by_http, f"127.0.0.1:{relay.port}", 1000, i + 1) for i, relay in enumerate(relays)]
        got, rows, report = web.run("triton_http", calls, in_turn=False)
        for i, (relay, row) in enumerate(zip(relays, rows)):
            check_bytes(cell, f"Triton's HTTP client, task {i + 1} of 3 at once", passed(relay), row)
            check_waits(row, i + 1)
            (served,) = served_by(report, relay)
            assert (served["scheme"], served["requests"], served["failed_requests"]) == ("http", i + 1, 0)
