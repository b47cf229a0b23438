"""XRootD's client with the plug-in that reads https:// (xrdcl_http.py), against nginx: what the worker receives is known to the byte and waits are
known; what a task receives, and requests, are unknown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jobs
import pytest
import xrootd_jobs as work
from test_http import Web, difference, passed, served_by, unattributed

pytestmark = pytest.mark.further
TABLE = "xrootd"
RELAY = "a relay counts what passes"
UNKNOWN = "a plug-in receives them in its own threads"
SIZE = 3_000_000
WHOLE = [(0, 1000), (1000, 200_000), (201_000, SIZE - 201_000)]
KINDS = (work.read_sync, work.read_callback, work.vector_sync, work.vector_callback)


@pytest.fixture(scope="module")
def web(tmp_path_factory, homes, data):
    import cluster
    import xrdcl_http
    from nginx import Nginx, served_files
    from relay import Relay
    from xrootd import XRootD

    home = tmp_path_factory.mktemp("https")
    files = served_files(home, {"a.bin": SIZE}, data["zlib"])
    (files / "lines.txt").write_text(("x" * 63 + "\n") * 2000)
    for name in ("a.bin", "lines.txt"):
        (files / name).chmod(0o644)
    with (Nginx(home / "nginx", files, tls=True) as server, XRootD(home / "xrootd", files) as root,
          Relay(server.tls_port) as relay, Relay(server.h2_port) as h2_relay):
        plugin = xrdcl_http.environment(home / "plugins", server.home / "cert.pem")
        with cluster.Cluster(home / "cluster", {**homes, **plugin}) as procs, jobs.measured(procs, nthreads=6) as client:
            # All connections pass the relays, which stay: one that is closed later sends 24 bytes then.
            client.run(work.uproot_read, https(relay, "warm", "nano.root"), "MultithreadedXRootDSource")  # a first run
            made = Web(server, procs, client)
            made.root, made.relay, made.h2_relay = root, relay, h2_relay
            made.run("before", [(work.read_sync, https(relay, "before"), WHOLE)])
            yield made


def https(relay, name, file="a.bin"):
    return f"https://127.0.0.1:{relay.port}/{name}/{file}"


def gets(server, prefix):
    """The ranges that GETs requested; the plug-in opens with other methods."""
    return [ranges for method, _, _, ranges in server.answers(prefix) if method == "GET"]


def check_unknown(cell, what, row):
    for name in ("network_read_bytes", "network_write_bytes"):
        cell(TABLE, f"https:// by the client's plug-in, {what}: {name} of the task", RELAY, None, row[name], unknown=UNKNOWN)


def unread(port):
    """Bytes that have arrived for the connections to this port, and that no process has received."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(queues.partition(":")[2], 16) for _, _, remote, _, queues, *_ in rows if int(remote.partition(":")[2], 16) == port)


def totals(web, relay):
    down, up = passed(relay)
    return down - unread(relay.port), up, *unattributed(web)


def check_total(cell, what, web, relay, before):
    """All that passed the relay was received and sent by threads without a task."""
    down, up, received, sent = difference(totals(web, relay), before)
    for name, truth, counted in (("network_read_bytes", down, received), ("network_write_bytes", up, sent)):
        cell(TABLE, f"https:// by the client's plug-in, {what}: {name} of the process, all unattributed", RELAY, truth, counted)


def check_not_counted(report, relay):
    """What the plug-in requests is not what the task asked it for."""
    assert not served_by(report, relay)
    assert not any(file["requests"] or file["network_read_bytes"] for file in report["files"] if f":{relay.port}/" in file["path"])
    assert any("plug-in" in note and "https" in note for note in report["completeness"]["notes"])


def test_reads_of_every_kind(web, cell):
    """Of files that are read to their end: what a plug-in receives of the rest, and when it stops, depends on the machine."""
    relay, before = web.relay, totals(web, web.relay)
    calls = [(kind, https(relay, kind.__name__), WHOLE) for kind in KINDS]
    got, rows, report = web.run("kinds", calls, in_turn=False)
    assert got == [SIZE] * len(KINDS)
    for kind, row in zip(KINDS, rows):
        check_unknown(cell, kind.__name__, row)
    check_total(cell, "reads of every kind", web, relay, before)
    check_not_counted(report, relay)
    assert [len(gets(web.server, f"/{kind.__name__}/")) for kind in KINDS] == [1] * len(KINDS)  # though some read three times


def test_what_it_reads_ahead(web):
    """A read of 1000 bytes requests all that follows: neither bytes nor requests can be derived from what the task asked for."""
    relay, before = web.relay, unattributed(web)
    (got,), (row,), report = web.run("ahead", [(work.read_sync, https(relay, "ahead"), [(0, 1000)])])
    assert got == 1000 and difference(unattributed(web), before)[0] > 10 * got
    assert gets(web.server, "/ahead/") == [f"bytes=0-{SIZE - 1}"]
    assert row["network_read_bytes"] is None
    check_not_counted(report, relay)


def test_root_at_the_same_time(web, cell):
    """Objects of both protocols have the same addresses in turn. A task that reads root:// is exact, or unknown if the plug-in's threads
    requested something meanwhile: for whom cannot be seen."""
    relay, server, since = web.relay, web.root, web.root.mark()
    calls = []
    for i in range(24):
        kind = KINDS[i // 2 % 4]
        calls.append((kind, https(relay, f"mixed{i}") if i % 2 else server.url("/a.bin"), [(i * 1000, 10_000 + i)]))
    _, rows, report = web.run("mixed", calls, in_turn=False)
    server.mark()
    for i, row in enumerate(rows):
        if i % 2:
            check_unknown(cell, f"mixed with root://, task {i + 1}", row)
        else:
            sent = server.sent("/a.bin", since, named=10_000 + i)
            assert sent.requests == 1
            assert row["network_read_bytes"] in (None, sent.wire)
    since = server.mark()
    _, alone, _ = web.run("alone", [(kind, server.url("/a.bin"), [(0, 20_000 + i)]) for i, kind in enumerate(KINDS)], in_turn=False)
    server.mark()
    for i, row in enumerate(alone):
        cell(TABLE, f"root:// after https:// by a plug-in, task {i + 1}: network_read_bytes of the task",
             "trace of the XRootD server", server.sent("/a.bin", since, named=20_000 + i).wire, row["network_read_bytes"])
    check_not_counted(report, relay)
    (served,) = report["servers"]
    assert (served["scheme"], served["requests"], served["read_bytes"]) == ("root", 12, sum(10_000 + i for i in range(0, 24, 2)))


def test_what_makes_no_reads(web, cell, tmp_path):
    """The client splits lines and copies into requests; the answers to open and stat have no data."""
    relay, before = web.relay, totals(web, web.relay)
    url = https(relay, "itself")
    calls = {"FileSystem.copy": (work.copy, url, str(tmp_path / "copy.bin")), "File.open and close": (work.read_sync, url, []),
             "FileSystem.stat": (work.only_stat, f"https://127.0.0.1:{relay.port}"),
             "File.open of no file": (work.only_open, https(relay, "itself", "none.bin"))}
    got, rows, report = web.run("itself", list(calls.values()), in_turn=False)
    assert got == [SIZE, 0, SIZE, False]
    for what, row in zip(calls, rows):
        check_unknown(cell, what, row)
    check_total(cell, "copies, open and stat", web, relay, before)
    check_not_counted(report, relay)
    _, (lines,), _ = web.run("lines", [(work.read_lines, url, range(3))])
    check_unknown(cell, "readline", lines)
    assert [row["write_bytes"] for row in rows] == [None, 0, 0, 0]


def test_failures(web):
    """A read behind the file's end, which nginx refuses."""
    relay = web.relay
    (got,), (row,), report = web.run("failures", [(work.read_sync, https(relay, "failures"), [(0, SIZE), (1_000_000_000, 10)])])
    check_not_counted(report, relay)
    assert (got, [status for _, status, _, _ in web.server.answers("/failures/")]) == (SIZE, [200, 206, 416])
    assert row["network_read_bytes"] is None


def test_http2(web, cell):
    """Where nginx speaks HTTP/2, libcurl does, too."""
    relay, before = web.h2_relay, totals(web, web.h2_relay)
    _, rows, report = web.run("h2", [(kind, https(relay, f"h2{kind.__name__}"), WHOLE) for kind in KINDS], in_turn=False)
    for kind, row in zip(KINDS, rows):
        check_unknown(cell, f"HTTP/2, {kind.__name__}", row)
    check_total(cell, "HTTP/2", web, relay, before)
    check_not_counted(report, relay)


def test_uproot(web, cell):
    relay = web.relay
    calls = [(work.uproot_read, https(relay, f"uproot{i}", "nano.root"), "MultithreadedXRootDSource") for i in range(2)]
    _, rows, report = web.run("uproot", calls, in_turn=False)
    for i, row in enumerate(rows):
        assert len(gets(web.server, f"/uproot{i}/")) > 3
        check_unknown(cell, f"uproot, file {i + 1} of two at once", row)
        (file,) = [f for f in report["files"] if f["path"] == https(relay, f"uproot{i}", "nano.root")]
        assert file["basket_bytes"] > 100_000 and file["read_amplification"] is None
    check_not_counted(report, relay)


def test_behaves_as_before(web):
    url = https(web.relay, "behaviour")
    (found,), _, _ = web.run("behaviour", [(work.behaviour, url)])
    code = "import json, xrootd_jobs; print(json.dumps(xrootd_jobs.behaviour(input())))"
    done = subprocess.run([sys.executable, "-c", code], input=url, capture_output=True, text=True, timeout=120,
                          env={**os.environ, **web.procs.env, "PYTHONPATH": str(Path(work.__file__).parent)})
    assert done.returncode == 0, done.stderr[-2000:]
    assert found == json.loads(done.stdout)
    assert any("SUCCESS" in each for each in found) and any("ERROR" in each for each in found)


@pytest.mark.parametrize("kind", KINDS)
def test_waits(web, cell, kind):
    from relay import Relay

    delay = 0.3
    with Relay(web.server.tls_port, delay_s=delay) as relay:
        _, (row,), _ = web.run(f"late{kind.__name__}", [(kind, https(relay, f"late{kind.__name__}"), WHOLE)])
        held = relay.held_seconds()
    assert held >= 3 * delay
    in_line = row["gil_wait_seconds"] + row["runqueue_wait_seconds"]
    cell(TABLE, f"https:// by the client's plug-in, {kind.__name__}: network_wait_seconds behind a relay that holds answers back for {delay:g} s",
         "time during which an answer lay in the relay, to 5 %",
         (0.95 * held - in_line, row["wall_seconds"] - row["cpu_seconds"] - in_line + 0.005), row["network_wait_seconds"])
    for other in ("lock_wait_seconds", "storage_wait_seconds", "sleep_seconds"):
        assert row[other] <= 0.02 * held + 2 * in_line, other
