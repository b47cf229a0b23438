"""HTTP clients against a real nginx: wire bytes by task also under TLS, and the time their tasks wait."""

import os

import jobs
import pytest
import web_jobs
from distributed import span

SIZES = {"small.bin": 2_000, "big.bin": 1_234_567}
HANDLERS = ["fsspec", "requests", "http.client", "HTTPSource"]
# fsspec always, the others with all cells
FSSPEC_FIRST = ["fsspec", *(pytest.param(kind, marks=pytest.mark.matrix) for kind in HANDLERS[1:])]


class Web:
    """nginx, a cluster whose only worker trusts its certificate, and runs of named tasks."""

    def __init__(self, server, procs, client):
        self.server, self.procs, self.client = server, procs, client

    def run(self, name, calls, in_turn=True, between=None):
        """Runs each (function, args) as a task with a separate prefix; returns their results and rows in order."""
        prefixes = [f"{name}{i}" for i in range(len(calls))]
        futures = []
        with span(name):
            for prefix, (function, *args) in zip(prefixes, calls):
                futures.append(self.client.submit(function, *args, pure=False, key=jobs.unique(prefix)))
                if in_turn:
                    futures[-1].result(timeout=120)
                    if between:
                        between()
            results = self.client.gather(futures)
        report = jobs.settled(self.procs, lambda r: all(jobs.tasks_of(r, p) for p in prefixes))
        rows = [jobs.tasks_of(report, p) for p in prefixes]
        assert all(len(r) == 1 for r in rows)
        return results, [r[0] for r in rows], report


@pytest.fixture(scope="module")
def web(tmp_path_factory, homes, data):
    import cluster
    from nginx import Nginx, served_files

    home = tmp_path_factory.mktemp("http")
    files = served_files(home, SIZES, data["zlib"])
    with Nginx(home / "nginx", files, tls=True) as server, cluster.Cluster(home / "cluster", homes) as procs:
        trust = str(server.home / "cert.pem")
        with jobs.measured(procs, nthreads=4, env={"SSL_CERT_FILE": trust, "REQUESTS_CA_BUNDLE": trust}) as client:
            for kind in HANDLERS:  # so that no measured task imports
                client.run(web_jobs.gets, kind, [server.url(f"/warm/{file_of(kind)}")])
            yield Web(server, procs, client)


def label(kind):
    return kind.replace(".", "")


def file_of(kind, name="small.bin"):
    return "nano.root" if kind == "HTTPSource" else name


# --- bytes: what a relay in front of the server passed on is what was on the wire

def passed(relay):
    return relay.down_bytes, relay.up_bytes


def difference(now, before):
    return tuple(a - b for a, b in zip(now, before))


def wire_bytes(row):
    return row["network_read_bytes"], row["network_write_bytes"]


def unattributed(web):
    report = jobs.settled(web.procs, lambda r: True)
    return tuple(sum(w["unattributed"][name] for w in report["workers"])
                 for name in ("network_read_bytes", "network_write_bytes"))


def everything(web):
    """What the worker's tasks and the rest of it received and sent."""
    sums = jobs.settled(web.procs, lambda r: True)["completeness"]
    return tuple(sums["tasks"][name] + sums["unattributed"][name] for name in ("network_read_bytes", "network_write_bytes"))


CLOSE_NOTIFY = 24  # record and alert; a client that has its answer no longer reads it


def check_bytes(cell, name, truth, row, unread=0):
    """unread: the last bytes from the server, which the client may have left in its socket."""
    received, sent = truth
    cell("network", f"network_read_bytes of {name}", "a relay counts what passes",
         (received - unread, received) if unread else received, row["network_read_bytes"])
    cell("network", f"network_write_bytes of {name}", "a relay counts what passes", sent, row["network_write_bytes"])


@pytest.mark.parametrize("kind", HANDLERS)
def test_tls_in_turn_and_then_nobody(web, cell, kind):
    """The connection's handshake belongs to the first task that uses it; fsspec keeps the connection for all tasks."""
    from relay import Relay

    with Relay(web.server.tls_port) as relay:
        url, name = f"https://127.0.0.1:{relay.port}/tls/{file_of(kind, 'big.bin')}", f"tls_{label(kind)}"
        seen = [passed(relay)]
        _, rows, _ = web.run(name, [(web_jobs.gets, kind, [url] * (i + 1)) for i in range(3)],
                             between=lambda: seen.append(passed(relay)))
        unread = CLOSE_NOTIFY if kind == "http.client" else 0
        for i, row in enumerate(rows):
            check_bytes(cell, f"{kind}, https, task {i + 1} of 3 in turn", difference(seen[i + 1], seen[i]), row,
                        unread * (i + 1))
        before = unattributed(web)
        web.client.run(web_jobs.gets, kind, [url])
        nobody = difference(unattributed(web), before)
        check_bytes(cell, f"{kind}, https, unattributed after them", difference(passed(relay), seen[-1]),
                    {"network_read_bytes": nobody[0], "network_write_bytes": nobody[1]}, unread)
        assert relay.connections == 1 or kind != "fsspec"
        # and the last task has not grown
        (last,) = jobs.tasks_of(jobs.settled(web.procs, lambda r: True), f"{name}2")
        assert wire_bytes(last) == wire_bytes(rows[2])


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nobodys_request_while_its_last_user_runs(web, tmp_path, scheme):
    """From the first byte of a request that no task makes, the kept connection belongs to no task."""
    import cluster
    from relay import Relay

    with Relay(web.server.tls_port if scheme == "https" else web.server.port) as relay:
        url, name = f"{scheme}://127.0.0.1:{relay.port}/stays/big.bin", f"stays{scheme}"
        future = web.client.submit(web_jobs.gets_and_stays, "fsspec", [url], str(tmp_path), pure=False,
                                   key=jobs.unique(name))
        cluster.wait_until((tmp_path / "done").exists, "the task's request")
        truth = passed(relay)
        web.client.run(web_jobs.gets, "fsspec", [url])
        assert relay.connections == 1 and passed(relay)[0] > truth[0] + SIZES["big.bin"]
        (tmp_path / "go").touch()
        future.result(timeout=60)
        report = jobs.settled(web.procs, lambda r: jobs.tasks_of(r, name))
        assert wire_bytes(jobs.tasks_of(report, name)[0]) == truth


@pytest.mark.parametrize("kind", FSSPEC_FIRST)
def test_tls_two_at_once_one_throttled(web, cell, tmp_path, kind):
    from relay import Relay

    with Relay(web.server.tls_port) as a, Relay(web.server.tls_port) as b:
        file = file_of(kind, "big.bin")
        _, rows, _ = web.run(f"tlstwo_{label(kind)}", [
            (web_jobs.timed_beside, kind, [f"https://127.0.0.1:{a.port}/tls/{file}"] * 2, str(tmp_path), "a", 2),
            (web_jobs.timed_beside, kind, [f"https://127.0.0.1:{b.port}/slow/tls/{file}"], str(tmp_path), "b", 2)],
            in_turn=False)
        unread = CLOSE_NOTIFY if kind == "http.client" else 0
        for relay, row, what in ((a, rows[0], "beside a throttled one"), (b, rows[1], "throttled")):
            check_bytes(cell, f"{kind}, https, {what}", passed(relay), row, unread * relay.connections)


def test_forty_mixed_on_four_threads(web):
    """A mix of clients, sizes, http and https. nginx logs the bytes before TLS, so records and at most one
    handshake per request are added."""
    server, names = web.server, list(SIZES)
    calls = []
    for i in range(40):
        kind, tls = HANDLERS[i % 3], i // 3 % 2
        place = f"https://127.0.0.1:{server.tls_port}" if tls else server.url("")
        calls.append((web_jobs.gets, kind, [f"{place}/mix{i}/{names[i % 2]}"] * (1 + i % 2)))
    _, rows, _ = web.run("mix", calls, in_turn=False)
    for i, row in enumerate(rows):
        requests, out, received = server.of(f"/mix{i}/")
        assert requests == 1 + i % 2
        more = (out // 500 + 4_000 * requests) if i // 3 % 2 else 0
        assert out <= row["network_read_bytes"] <= out + more, i
        assert received <= row["network_write_bytes"] <= received + more, i


# --- time

def check_waits(cell, name, row, known, how, queued):
    """The known wait is network_wait; other classes contain only the task's additional time, and the
    loop's own wait for a core."""
    more = max(row["wall_seconds"] - known, 0) + queued
    cell("waits", f"network_wait of {name}", how, known, row["network_wait_seconds"], 0.05 * known + queued)
    for other in ("lock_wait", "gil_wait", "sleep", "storage_wait"):
        assert row[f"{other}_seconds"] <= 0.02 * known + more, (name, other)


@pytest.mark.parametrize("kind", HANDLERS)
def test_wait_for_late_answers(web, cell, kind):
    """0.7 s, and more than the second after which fsspec's wait wakes up."""
    from relay import Relay

    with Relay(web.server.port, delay_s=0.7) as quick, Relay(web.server.port, delay_s=1.3) as late:
        urls = [f"http://127.0.0.1:{relay.port}/late/{file_of(kind)}" for relay in (quick, late)]
        if kind == "HTTPSource":
            urls = urls[:1]
        (queued,), (row,), _ = web.run(f"late_{label(kind)}", [(web_jobs.timed, kind, urls)])
        known = quick.turns * quick.delay_s + late.turns * late.delay_s
        check_waits(cell, f"{kind}, answers 0.7 and 1.3 s late", row, known, "a relay holds each answer back",
                    queued)


@pytest.mark.parametrize("kind", FSSPEC_FIRST[:3])
def test_wait_for_a_throttled_answer(web, cell, kind):
    name = f"throttled_{label(kind)}"
    (queued,), (row,), _ = web.run(name, [(web_jobs.timed, kind, [web.server.url(f"/slow/{name}/big.bin")])])
    web.server.of(f"/slow/{name}/")
    known = web.server.seconds(f"/slow/{name}/")
    assert known > 2
    check_waits(cell, f"{kind}, throttled", row, known, "nginx's $request_time", queued)


def test_a_lock_beside_others_requests_stays_a_lock(web, cell, tmp_path):
    from relay import Relay

    with Relay(web.server.port, delay_s=1.5) as relay:
        urls = [f"http://127.0.0.1:{relay.port}/beside/small.bin"]
        (slept, _), (lock, _), _ = web.run("beside", [
            (web_jobs.lock_beside, str(tmp_path), "a", 2, 1.5),
            (web_jobs.timed_beside, "fsspec", urls, str(tmp_path), "b", 2)], in_turn=False)
    assert lock["network_wait_seconds"] < 0.01
    cell("waits", "lock_wait beside another task's request", "the event's own time in Python", slept,
         lock["lock_wait_seconds"], 0.05 * slept + lock["runqueue_wait_seconds"])


def test_dasks_own_connections_are_a_class_of_their_own(web):
    """A task's argument arrives over one of them: its size is known."""
    def comm(report):
        parts = report["completeness"]
        return parts["tasks"]["comm_read_bytes"] + parts["unattributed"]["comm_read_bytes"]

    size = 3_000_000
    before = comm(web.run("commbefore", [(len, b"x")])[2])
    _, (row,), report = web.run("comm", [(len, os.urandom(size))])
    assert row["network_read_bytes"] == 0
    assert size < comm(report) - before < size + 300_000  # and Dask's other messages
    text = web.procs.report("--run", "last").stdout
    assert "Dask's own connections" in text


# --- requests by server: nginx's log has a line for each

def served_by(report, relay):
    return [s for s in report["servers"] if s["server"] == f"127.0.0.1:{relay.port}"]


def check_served(cell, what, web, relay, prefix, row, report):
    requests, out, _ = web.server.of(prefix)
    cell("network", f"requests of {what}", "nginx's access log", requests, row["requests"])
    assert row["failed_requests"] == 0
    if row["scheme"] == "http":
        cell("network", f"bytes of answers to {what}", "nginx's $bytes_sent", out, row["read_bytes"])
    else:  # records, and a session's tickets, are added
        assert out < row["read_bytes"] < out + out // 500 + 1_000 * requests
    assert row["latency_max_s"] >= relay.delay_s and row["latency_sum_s"] >= requests * relay.delay_s
    check_served_file(cell, what, relay, report, row)


def check_served_file(cell, what, relay, report, row):
    """Only one file was requested, so its row equals the server's; under TLS it cannot be known."""
    files = [f for f in report["files"] if f":{relay.port}/" in f["path"]]
    if row["scheme"] == "https":
        assert not any(f["requests"] for f in files)
        return
    (file,) = files
    assert "?" not in file["path"]
    cell("network", f"requests of the file of {what}", "nginx's access log", row["requests"], file["requests"])
    assert (file["network_read_bytes"], file["latency_max_s"], file["latency_sum_s"]) == (
        row["read_bytes"], row["latency_max_s"], row["latency_sum_s"])


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", [*HANDLERS[:3:2], *(pytest.param(k, marks=pytest.mark.matrix) for k in HANDLERS[1::2])])
def test_requests_by_server(web, cell, kind, scheme):
    """One request after the other, some on kept connections: the sum of their times is below that of the tasks."""
    from relay import Relay

    with Relay(web.server.tls_port if scheme == "https" else web.server.port, delay_s=0.1) as relay:
        name = f"served{scheme}_{label(kind)}"
        urls = [f"{scheme}://127.0.0.1:{relay.port}/{name}/{file_of(kind, 'big.bin')}?secret=of-a-request"] * 3
        _, rows, report = web.run(name, [(web_jobs.gets, kind, urls)] * 2)
        (row,) = served_by(report, relay)
        assert row["scheme"] == scheme
        check_served(cell, f"{kind}, {scheme}", web, relay, f"/{name}/", row, report)
        assert relay.connections == 1 or kind != "fsspec"
        assert kind == "HTTPSource" or row["latency_sum_s"] < sum(r["wall_seconds"] for r in rows)
        # there is no other server: neither Dask's scheduler nor the worker's own listener
        assert {s["scheme"] for s in report["servers"]} <= {"http", "https"}


@pytest.mark.parametrize("kind", HANDLERS[:2])  # which keep the connection until the server has read the change
def test_a_change_of_keys_is_no_request(web, cell, kind):
    """The server changes its keys within each answer and wants the same of the client, which OpenSSL sends before the next request."""
    import rekeying
    from relay import Relay

    with rekeying.Server(web.server.home, SIZES["big.bin"]) as server, Relay(server.port) as relay:
        url, name, seen = f"https://127.0.0.1:{relay.port}/x", f"rekeyed_{label(kind)}", [passed(relay)]
        got, rows, report = web.run(name, [(web_jobs.gets, kind, [url] * 3)] * 2, between=lambda: seen.append(passed(relay)))
        assert got == [3 * SIZES["big.bin"]] * 2 and server.answers == 6 and server.client_updates >= 3
        for i, row in enumerate(rows):
            check_bytes(cell, f"{kind}, changes of keys, task {i + 1} of 2", difference(seen[i + 1], seen[i]), row)
        (row,) = served_by(report, relay)
        cell("network", f"requests of {kind} with changes of keys", "the server counts its answers", server.answers, row["requests"])
        assert row["failed_requests"] == 0


@pytest.mark.parametrize("kind", ["requests", "http.client"])  # which do not retry
def test_a_request_without_an_answer_has_failed(web, kind):
    import cluster
    from relay import Relay

    with Relay(web.server.port, delay_s=60) as relay:
        url, name = f"http://127.0.0.1:{relay.port}/cut/{file_of(kind)}", f"cut_{label(kind)}"
        future = web.client.submit(web_jobs.gets, kind, [url], pure=False, key=jobs.unique(name))
        cluster.wait_until(lambda: relay.turns == 1, "the request")
        relay.cut()
        assert future.exception(timeout=60)
        report = jobs.settled(web.procs, lambda r: jobs.tasks_of(r, name) and served_by(r, relay))
        (row,) = served_by(report, relay)
        assert (row["requests"], row["failed_requests"], row["read_bytes"]) == (1, 1, 0)


@pytest.mark.further
def test_arrow_over_fsspec(web):
    """Arrow's threads call fsspec, whose loop requests: which task asked is unknown, and a task that asks fsspec itself is exact."""
    from relay import Relay

    (web.server.home.parent / "files" / "table.parquet").write_bytes(web_jobs.parquet_table())
    (web.server.home.parent / "files" / "table.parquet").chmod(0o644)
    with Relay(web.server.port) as relay:
        url, seen = f"http://127.0.0.1:{relay.port}", []
        web.run("before", [(web_jobs.gets, "fsspec", [f"{url}/small.bin"])])
        start, before = passed(relay), everything(web)
        (n, _), rows, report = web.run("overfsspec", [
            (web_jobs.arrow_over_fsspec, f"{url}/table.parquet"), (web_jobs.gets, "fsspec", [f"{url}/small.bin"])],
            between=lambda: seen.append(passed(relay)))
    assert n == 20_000 and wire_bytes(rows[0]) == (None, None)
    assert wire_bytes(rows[1]) == difference(seen[1], seen[0])
    assert difference(everything(web), before) == difference(passed(relay), start)
    assert sum("libarrow, or another library, requests data in native threads" in note for note in report["completeness"]["notes"]) == 1
