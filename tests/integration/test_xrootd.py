"""XRootD by task: bytes exactly as in the server's trace, waits with a relay
that delays answers, and behaviour compared with a Python without the preload."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import jobs
import pytest
import web_jobs
import xrootd_jobs as work
from distributed import span

TABLE = "xrootd"
TRACE = "trace of the XRootD server"
SIZE = 3_000_000
# The client soon gives up on a server that is gone.
IMPATIENT = {"XRD_CONNECTIONRETRY": "1", "XRD_CONNECTIONWINDOW": "2", "XRD_STREAMERRORWINDOW": "1",
             "XRD_TIMEOUTRESOLUTION": "1"}
RANGES = [(0, 1000), (70_000, 200_000), (1_000_000, 1)]


@pytest.fixture(scope="module")
def net(tmp_path_factory, homes, data):
    import cluster
    from xrootd import XRootD, certificate  # here: it needs scripts/, which workers do not have

    home = tmp_path_factory.mktemp("xrootd")
    files = home / "files"
    files.mkdir()
    (files / "a.bin").write_bytes(os.urandom(SIZE))
    (files / "lines.txt").write_text(("x" * 63 + "\n") * 2000)
    for i, codec in enumerate(("zlib", "zstd")):
        os.link(data[codec], files / f"nano{i}.root")
    for each in files.iterdir():
        each.chmod(0o644)
    key, cert = certificate(home / "tls")
    env = {**homes, **IMPATIENT, "X509_CERT_FILE": str(cert)}  # the client reads it when it is loaded
    tls = f"xrd.tls {cert} {key}\nxrd.tlsca noverify\nxrootd.tls capable all\n"
    with XRootD(home / "server", files) as server, cluster.Cluster(home / "cluster", env) as procs:
        server.tls = lambda: XRootD(home / "tls", files, more=tls)
        with jobs.measured(procs, nthreads=6) as client:
            client.submit(work.fsspec_ranges, server.url("/a.bin"), [(0, 10)]).result(timeout=120)  # a first run
            yield server, procs, client


def run(net, name, calls):
    """Runs (function, args) each as a task with a separate prefix, all at once; returns their rows in
    order, their results, and the report."""
    _, procs, client = net
    prefixes = [f"{name}{i}" for i in range(len(calls))]
    with span(name):
        results = client.gather([client.submit(function, *args, pure=False, key=jobs.unique(prefix))
                                 for prefix, (function, *args) in zip(prefixes, calls)])
    report = jobs.settled(procs, lambda r: all(jobs.tasks_of(r, p) for p in prefixes))
    rows = [jobs.tasks_of(report, p) for p in prefixes]
    assert all(len(r) == 1 for r in rows)
    return [r[0] for r in rows], results, report


def unattributed(net):
    report = jobs.settled(net[1], lambda r: True)
    return sum(w["unattributed"]["network_read_bytes"] for w in report["workers"])


def test_reads_of_every_kind(net, cell):
    """At the same time; each requests different lengths, which identify it in the server's trace."""
    server, since = net[0], net[0].mark()
    kinds = (work.read_sync, work.read_callback, work.vector_sync, work.vector_callback)
    asked = [[(70_000, 200_000 + i)] if i < 2 else [(0, 1000 + i), (70_000, 200_000), (1_000_000, 1)]
             for i in range(4)]
    rows, got, report = run(net, "kinds", [(kind, server.url("/a.bin"), each) for kind, each in zip(kinds, asked)])
    server.mark()
    for kind, each, bytes_got, row in zip(kinds, asked, got, rows):
        sent = server.sent("/a.bin", since, named=sum(size for _, size in each))
        assert bytes_got == sent.data and (sent.requests, sent.parts) == (1, 0)
        cell(TABLE, f"{kind.__name__}: network_read_bytes of the task", TRACE, sent.wire, row["network_read_bytes"])
    requested = {f"kinds{i}": kind.__name__ for i, kind in enumerate(kinds)}
    report = jobs.settled(net[1], lambda r: {row["prefix"] for row in r["stacks"]["stacks"] if row["sampled_network_read_bytes"]} >= set(requested))
    for row in report["stacks"]["stacks"]:
        if row["prefix"] in requested and row["sampled_network_read_bytes"]:
            assert any(frame.endswith(f" {requested[row['prefix']]}") for frame in row["frames"]), row
    sent = server.sent("/a.bin", since)
    (one,) = report["servers"]
    assert (one["server"], one["scheme"], one["failed_requests"]) == (f"127.0.0.1:{server.port}", "root", 0)
    cell(TABLE, "read_bytes of the server", TRACE, sent.data, one["read_bytes"])
    cell(TABLE, "requests to the server", TRACE, sent.requests, one["requests"])


def test_other_protocols(net):
    """Reads of a plug-in have no XRootD headers: unknown, instead of 8 bytes more for each answer. test_xrootd_https.py runs a real one."""
    server, since = net[0], net[0].mark()
    schemes = ["https", "davs", "s3", "", "root", "roots", "xroot", "xroots"]
    rows, got, report = run(net, "plugin", [(work.read_by_plugin, server.url("/a.bin"), RANGES, scheme) for scheme in schemes])
    size = sum(size for _, size in RANGES)
    assert got == [size] * len(schemes)
    told = {scheme: row["network_read_bytes"] for scheme, row in zip(schemes, rows, strict=True)}
    assert told == {scheme: size + 3 * 8 if scheme.endswith(("root", "roots")) else None for scheme in schemes}
    server.mark()
    by_scheme = {row["scheme"]: (row["requests"], row["read_bytes"]) for row in report["servers"]}
    assert by_scheme == {scheme: (3, size) for scheme in schemes if scheme.endswith(("root", "roots"))}
    assert server.sent("/a.bin", since).data == size * len(schemes)


@pytest.mark.parametrize("handler", [None, "XRootDSource"])
def test_two_files_at_once(net, tmp_path, cell, handler):
    server, since = net[0], net[0].mark()
    calls = [(work.uproot_read, server.url(f"/nano{i}.root"), handler, str(tmp_path), str(i), 2) for i in range(2)]
    rows, _, report = run(net, f"two{handler}", calls)
    server.mark()
    sents = [server.sent(f"/nano{i}.root", since) for i in range(2)]
    for i, (row, sent) in enumerate(zip(rows, sents)):
        assert sent.requests > 3 and sent.data > 100_000
        cell(TABLE, f"uproot, {handler or 'default source'}, file {i + 1} of two at once: network_read_bytes of "
             "the task", f"{TRACE}, less the headers of further parts of answers", sent.told,
             row["network_read_bytes"])
    (one,) = report["servers"]
    assert one["requests"] == sum(sent.requests for sent in sents)
    assert one["read_bytes"] == sum(sent.data for sent in sents)
    for i, sent in enumerate(sents):
        (file,) = [f for f in report["files"] if f["path"].endswith(f"/nano{i}.root")]
        what = f"uproot, {handler or 'default source'}, file {i + 1} of two at once:"
        cell(TABLE, f"{what} requests of the file", TRACE, sent.requests, file["requests"])
        cell(TABLE, f"{what} read bytes of the file", TRACE, sent.data, file["network_read_bytes"])
        assert file["basket_bytes"] > 0 and file["read_bytes"] is None  # one row for both
        assert 0 < file["latency_max_s"] <= file["latency_sum_s"] <= one["latency_sum_s"]


@pytest.mark.parametrize("handler", [None, "XRootDSource"])
def test_sizes_of_files(net, handler):
    """Sizes as on the server's disk if uproot read ROOT's header; unknown for a file that was read otherwise, though one task
    asked the server for it. No additional request compared with a run without crema."""
    server, since = net[0], net[0].mark()
    calls = [(work.uproot_read, server.url("/nano1.root"), handler), (work.read_sync, server.url("/a.bin"), RANGES),
             (work.only_stat, server.url(""))]
    _, (_, _, asked), report = run(net, f"sizes{handler}", calls)
    server.mark()
    found = {os.path.basename(f["path"]): f["size_bytes"] for f in report["files"] if f["path"].startswith("root://")}
    assert found == {"nano1.root": (server.files / "nano1.root").stat().st_size, "a.bin": None}
    assert asked == SIZE and server.sent("/a.bin", since).requests == len(RANGES)
    per_file = {os.path.basename(path): f["size_bytes"] for path, f in report["metrics"]["per_file"].items()}
    assert per_file["nano1.root"] == found["nano1.root"] and per_file.get("a.bin") is None


def test_six_at_once_on_one_open_file(net, tmp_path, cell):
    """Each requests different lengths, which identify it in the server's trace."""
    server, since = net[0], net[0].mark()
    calls = [(work.fsspec_ranges, server.url("/a.bin"), [(i * 100_000, 50_000 + i)] * 4, str(tmp_path), str(i), 6)
             for i in range(6)]
    rows, _, _ = run(net, "six", calls)
    server.mark()
    for i, row in enumerate(rows):
        sent = server.sent("/a.bin", since, named=50_000 + i)
        assert sent.requests == 4
        cell(TABLE, f"task {i + 1} of six at once on the same open file: network_read_bytes", TRACE, sent.wire,
             row["network_read_bytes"])


@pytest.mark.matrix
def test_hdf5(net, tmp_path, cell):
    """h5py calls fsspec's file, for metadata and for each chunk; by a task alone and by two at once."""
    import codec_packages

    server, _, client = net
    packages, numbers = str(codec_packages.folder()), [3, 7]
    sums = client.submit(work.with_packages, packages, web_jobs.hdf5_write, str(server.files), numbers, pure=False).result()
    calls = [(work.with_packages, packages, web_jobs.hdf5_reads, [server.url(f"/values{n}.h5")] * 2) for n in numbers]
    together = [(*call, str(tmp_path), str(i), 2) for i, call in enumerate(calls)]
    for how, each in (("alone", calls[:1]), ("two at once", together)):
        since = server.mark()
        rows, got, _ = run(net, f"hdf5{len(each)}", each)
        server.mark()
        assert got == [[pytest.approx(value)] * 2 for value in sums[:len(each)]]
        for row, n in zip(rows, numbers):
            sent = server.sent(f"/values{n}.h5", since)
            assert sent.requests > 2 * n and sent.data > 2 * n * 300_000
            cell(TABLE, f"h5py over fsspec-xrootd, {n} chunks, {how}: network_read_bytes of the task",
                 f"{TRACE}, less the headers of further parts of answers", sent.told, row["network_read_bytes"])


def test_forty_mixed(net):
    server, since = net[0], net[0].mark()
    kinds = (work.fsspec_ranges, work.read_sync, work.vector_callback, work.read_callback)
    calls = [(kinds[i % 4], server.url("/a.bin"), [(i * 1000, 10_000 + i)]) for i in range(40)]
    rows, _, report = run(net, "forty", calls)
    server.mark()
    for i, row in enumerate(rows):
        sent = server.sent("/a.bin", since, named=10_000 + i)
        assert sent.requests == 1
        assert row["network_read_bytes"] == sent.wire, i
    assert sum(s["requests"] for s in report["servers"]) == 40


def test_whole_process(net, cell):
    """All data for the client passes the relay: tasks and unattributed add up to the relay's count."""
    from relay import Relay

    server = net[0]
    with Relay(server.port) as relay:
        before, since = unattributed(net), server.mark()
        calls = [(work.uproot_read, server.url("/nano0.root", relay.port), handler)
                 for handler in (None, "XRootDSource")]
        # The last read ends at the end of the file: its answer comes in two parts.
        calls.append((work.read_sync, server.url("/a.bin", relay.port), [(0, 10), (SIZE - 10, 100)]))
        rows, _, _ = run(net, "whole", calls)
        rest = unattributed(net) - before
        received = relay.down_bytes
    sents = [server.sent(path, since) for path in ("/nano0.root", "/a.bin")]
    assert sents[1].parts == 1
    tasks = sum(row["network_read_bytes"] for row in rows)
    assert tasks == sum(sent.told for sent in sents)
    cell(TABLE, "tasks and unattributed network_read_bytes of the process", "relay before the server", received,
         tasks + rest)
    # login, open, stat, query, close and the further parts
    assert 0 < rest < 5000 + 8 * sum(sent.parts for sent in sents)


WAITS = ("gil_wait_seconds", "lock_wait_seconds", "storage_wait_seconds", "sleep_seconds")


def slow_task(net, name, delay):
    """(the task's row, its report, seconds during which an answer was in the relay, the relay's port)"""
    from relay import Relay

    server = net[0]
    with Relay(server.port, delay_s=delay) as relay:
        if hasattr(work, name):
            call = (getattr(work, name), server.url("/a.bin", relay.port), [(i, 1000) for i in range(8)])
        else:
            call = (work.uproot_read, server.url("/nano0.root", relay.port), None if name == "default" else name)
        (row,), _, report = run(net, f"slow{name}", [call])
        assert relay.turns >= 8 and relay.held_seconds() >= 8 * delay
        return row, report, relay.held_seconds(), relay.port


@pytest.mark.parametrize("name", ["read_sync", pytest.param("read_callback", marks=pytest.mark.matrix), "default",
                                  "XRootDSource"])
def test_wait_for_a_slow_server(net, cell, name):
    delay = 0.15
    for _ in range(3):
        row, report, held, port = slow_task(net, name, delay)
        if max(row[other] for other in WAITS) <= 0.02 * held:
            break
    # While it waited for a core or the GIL it did not wait for the network. On a busy machine the
    # client's own threads also wait for cores, and each answer passes through two of them.
    in_line = row["gil_wait_seconds"] + row["runqueue_wait_seconds"]
    cell(TABLE, f"{name}: network_wait_seconds of a task behind a relay that holds answers back for {delay:g} s",
         "time during which an answer lay in the relay, to 5 %",
         (0.95 * held - in_line, row["wall_seconds"] - row["cpu_seconds"] - in_line + 0.005),
         row["network_wait_seconds"])
    for other in WAITS[1:]:
        cell(TABLE, f"{name}: {other} of the same task", "none but for the client's own threads", 0, row[other],
             tolerance=0.02 * held + 2 * in_line)
    (one,) = report["servers"]
    assert one["latency_sum_s"] >= one["requests"] * delay
    assert one["latency_max_s"] >= delay
    for quantile in ("latency_p50_s", "latency_p99_s"):
        least, most = one[quantile]
        assert least <= one["latency_max_s"] and delay <= most <= max(2 * least, delay)
    assert sum(b["requests"] for b in one["latency_buckets"]) == one["requests"]
    text = net[1].report().stdout
    assert "Servers: requests of all attempts" in text and f"root://127.0.0.1:{port}" in text


def test_wait_for_lines(net, cell):
    """The relay delays each answer: that is network wait, though the client's own threads receive it."""
    row, _, held, _ = slow_task(net, "read_lines", 0.15)
    in_line = row["gil_wait_seconds"] + row["runqueue_wait_seconds"]
    cell(TABLE, "readline: network_wait_seconds of a task behind a relay that holds answers back for 0.15 s",
         "time during which an answer lay in the relay, to 5 %",
         (0.95 * held - in_line, row["wall_seconds"] - row["cpu_seconds"] - in_line + 0.005),
         row["network_wait_seconds"])
    assert row["lock_wait_seconds"] <= 0.02 * held + 2 * in_line


def plain(net, function, *args):
    """The same in a separate Python without the preload."""
    code = f"import json, xrootd_jobs; print(json.dumps(xrootd_jobs.{function}(*json.loads(input()))))"
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(args), capture_output=True, text=True,
                          env={**net[1].env, "PYTHONPATH": str(Path(work.__file__).parent)}, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_behaves_as_before(net):
    server = net[0]
    (row,), (found,), _ = run(net, "behaviour", [(work.behaviour, server.url("/a.bin"))])
    truth = plain(net, "behaviour", server.url("/a.bin"))
    assert found == truth
    assert any("no such file" in each for each in found) and any("closed file" in each for each in found)
    assert row["network_read_bytes"] > 2 * SIZE


def test_server_killed_in_the_middle(net, tmp_path, homes):
    from xrootd import XRootD

    found = []
    with XRootD(tmp_path / "second", net[0].files) as second:
        for where in ("task", "plain"):
            folder = tmp_path / where
            folder.mkdir()

            def kill(folder=folder):
                while not (folder / "read").exists():
                    time.sleep(0.05)
                second.kill()
                (folder / "killed").touch()

            killer = threading.Thread(target=kill)
            killer.start()
            if where == "task":
                (row,), (result,), report = run(net, "outlive", [(work.outlive, second.url("/a.bin"), str(folder))])
            else:
                result = plain(net, "outlive", second.url("/a.bin"), str(folder))
            killer.join()
            found.append(json.loads(json.dumps(result)))
            second.start()
    assert found[0] == found[1]
    before, *after = found[0]
    assert before == [1000] * 4 and all("ok: True" not in str(each) for each in after)
    assert sum("ok: False" in str(each) for each in after) == 4 and "closed file" in after[1]
    assert row["network_read_bytes"] == 4 * (1000 + 8)
    (one,) = report["servers"]
    assert (one["requests"], one["failed_requests"], one["read_bytes"]) == (8, 4, 4000)


def test_what_the_client_does_by_itself(net, tmp_path, cell):
    """The client's own threads split lines and copies into requests, and read and write copies."""
    server, target = net[0], str(tmp_path / "copy.bin")
    calls = [(work.read_lines, server.url("/a.bin"), range(20)), (work.copy, server.url("/a.bin"), target),
             (work.only_stat, server.url("/a.bin")), (work.read_sync, server.url("/a.bin"), RANGES)]
    (lines, copy, stat, read), got, report = run(net, "itself", calls)
    assert got[:3] == [20 * 64, SIZE, SIZE]
    for name, row in (("readline", lines), ("FileSystem.copy", copy)):
        cell(TABLE, f"{name}: network_read_bytes of the task", TRACE, None, row["network_read_bytes"],
             unknown="the client does not tell its requests")
    for name in ("write_bytes", "read_bytes", "storage_write_bytes"):
        cell(TABLE, f"FileSystem.copy: {name} of the task", "the copy", None, copy[name],
             unknown="done by the client's own threads")
    for name, row in (("readline", lines), ("FileSystem.copy", copy), ("FileSystem.stat", stat), ("File.read", read)):
        cell(TABLE, f"{name}: network_write_bytes of the task", TRACE, None, row["network_write_bytes"],
             unknown="the client does not tell the sizes of requests")
    assert lines["read_bytes"] is not None and stat["network_read_bytes"] == 0
    assert report["metrics"]["network_write_bytes"] is None


def test_a_local_file_sends_nothing(net, data):
    """The client reads it by POSIX aio, in threads of libc's: unknown for its task, and for no other."""
    (row,), _, report = run(net, "local", [(work.read_sync, f"file://{data['zlib']}", RANGES)])
    assert (row["network_read_bytes"], row["network_write_bytes"]) == (0, 0)
    for name in ("read_calls", "read_bytes", "storage_read_bytes"):
        assert row[name] is None
    assert any("POSIX aio is in use" in note for note in report["completeness"]["notes"])
    (row,), _, _ = run(net, "notlocal", [(work.plain_read, data["zlib"])])
    assert row["read_bytes"] == 1000


def test_tls(net, cell):
    with net[0].tls() as server:
        since, before = server.mark(), unattributed(net)
        url = server.url("/a.bin").replace("root:", "roots:")
        (row,), (got,), report = run(net, "tls", [(work.read_sync, url, RANGES)])
        server.mark()
        sent = server.sent("/a.bin", since)
        rest = unattributed(net) - before
    assert got == sent.data
    cell(TABLE, "roots:// (TLS): network_read_bytes of the task", f"{TRACE}, without the TLS around it", sent.wire,
         row["network_read_bytes"])
    assert report["servers"][0]["scheme"] == "roots"
    # TLS records and handshakes
    assert 1000 < rest < 20_000


@pytest.mark.parametrize("scheme", ["root", "roots"])
def test_other_users_of_the_client(net, scheme):
    """What C++ code requests shows no task: unknown for those that run then. The Python classes stay exact before and after it,
    in the same worker."""
    with net[0].tls() as server:
        url, since = server.url("/a.bin").replace("root:", f"{scheme}:"), server.mark()
        (before,), _, _ = run(net, f"before{scheme}", [(work.read_callback, url, RANGES)])
        (row,), (got,), report = run(net, f"native{scheme}", [(work.read_native, url, RANGES)])
        (after,), _, _ = run(net, f"after{scheme}", [(work.vector_sync, url, RANGES)])
        server.mark()
        size = sum(size for _, size in RANGES)
        assert got == size and server.sent("/a.bin", since).data == 3 * size
    assert (row["network_read_bytes"], row["network_write_bytes"]) == (None, None)
    assert any("in native threads of its own" in note for note in report["completeness"]["notes"])
    assert before["network_read_bytes"] == size + 3 * 8
    assert after["network_read_bytes"] == size + 8 + 3 * 16


def test_reads_without_a_task(net, tmp_path):
    """The Python classes' own reads are no other user's: a task that runs meanwhile stays exact."""
    server, _, client = net
    kinds = (work.read_sync, work.read_callback, work.vector_sync, work.vector_callback, work.read_lines)

    def read_beside():
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        for kind in kinds:
            client.run(kind, server.url("/a.bin"), [(5, 1000), (7, 10)])  # on the worker's event loop
        (tmp_path / "read").touch()

    beside = threading.Thread(target=read_beside)
    beside.start()
    (row,), (got,), _ = run(net, "beside", [(work.read_when_told, server.url("/a.bin"), RANGES, str(tmp_path))])
    beside.join()
    assert row["network_read_bytes"] == got + len(RANGES) * 8
