"""Network bytes by task, exactly as a real nginx logged them as sent and received."""

import os
import time

import jobs
import pytest
from distributed import span

SIZES = {"a.bin": 300_000, "b.bin": 700_001, "c.bin": 1_234_567}
_kept = {}


# --- on a worker

def kept_get(port, path):
    """Requests over one connection of the process, whichever task opened it."""
    import http.client

    if port not in _kept:
        _kept[port] = http.client.HTTPConnection("127.0.0.1", port)
    _kept[port].request("GET", path)
    return len(_kept[port].getresponse().read())


def fsspec_get(url, count=1):
    """Uses fsspec's only loop and session for all tasks of the process: aiohttp with pooled connections."""
    import fsspec

    files = fsspec.filesystem("http")
    return sum(len(files.cat_file(url)) for _ in range(count))


def simplecache_get(url, folder):
    """The first task copies the file, the second one reads the copy."""
    import fsspec

    with fsspec.open(f"simplecache::{url}", "rb", simplecache={"cache_storage": folder}) as file:
        return len(file.read())


def wait_for(others, folder, name):
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < others:
        time.sleep(0.005)


def fsspec_get_together(url, folder, name):
    wait_for(2, folder, name)
    return fsspec_get(url)


def uproot_read(url, handler):
    import uproot

    options = {"handler": getattr(uproot, handler)} if handler else {}
    with uproot.open({url: "Events"}, **options) as tree:
        tree["MET_pt"].array(library="np")
        return tree.num_entries


def uproot_together(url, handler, folder, name):
    wait_for(2, folder, name)
    return uproot_read(url, handler)


def mixed(url, kind):
    if kind == "fsspec":
        return fsspec_get(url, 2)
    import urllib.request

    with urllib.request.urlopen(url) as answer:
        return len(answer.read())


def loop_sleeps():
    import asyncio

    asyncio.run(asyncio.sleep(0.6))


def loop_downloads(urls, between, beat):
    """In the task's own thread: one after the other over a kept connection, with sleeps in between, and a timer that
    fires repeatedly."""
    import asyncio

    import aiohttp

    async def all_of_them():
        async with aiohttp.ClientSession() as session:
            async def get(url):
                async with session.get(url) as answer:
                    return len(await answer.read())

            for url in urls:
                await asyncio.sleep(between)
                task = asyncio.create_task(get(url))
                while not task.done():
                    await asyncio.wait([task], timeout=beat)
                task.result()

    asyncio.run(all_of_them())


# --- the tests

@pytest.fixture(scope="module")
def net(tmp_path_factory, homes, data):
    import cluster
    from nginx import Nginx, served_files  # here: the workers import this module, too

    home = tmp_path_factory.mktemp("net")
    files = served_files(home, SIZES, data["zlib"])
    with Nginx(home / "nginx", files) as server, cluster.Cluster(home / "cluster", homes) as procs:
        with jobs.measured(procs, nthreads=4) as client:
            yield server, procs, client


def run(net, name, calls, in_turn=True):
    """Runs each (function, args) as a task with a separate prefix; returns their rows in order."""
    _, procs, client = net
    prefixes = [f"{name}{i}" for i in range(len(calls))]
    with span(name):
        futures = []
        for prefix, (function, *args) in zip(prefixes, calls):
            futures.append(client.submit(function, *args, pure=False, key=jobs.unique(prefix)))
            if in_turn:
                futures[-1].result(timeout=120)
        client.gather(futures)
    report = jobs.settled(procs, lambda r: all(jobs.tasks_of(r, p) for p in prefixes))
    rows = [jobs.tasks_of(report, p) for p in prefixes]
    assert all(len(r) == 1 for r in rows)
    return [r[0] for r in rows]


def check(net, rows, prefixes, sent=True):
    """Each task received (and sent) what nginx logged for its own URIs."""
    for row, prefix in zip(rows, prefixes):
        requests, out, received = net[0].of(prefix)
        assert requests > 0, prefix
        assert row["network_read_bytes"] == out, prefix
        if sent:
            assert row["network_write_bytes"] == received, prefix


def unattributed(net, name="network_read_bytes"):
    report = jobs.settled(net[1], lambda r: True)
    return sum(w["unattributed"][name] for w in report["workers"])


def test_kept_alive_in_turn_and_then_nobody(net):
    server, _, client = net
    names = list(SIZES)
    rows = run(net, "turn", [(kept_get, server.port, f"/turn{i}/{n}") for i, n in enumerate(names)])
    check(net, rows, [f"/turn{i}/" for i in range(3)])
    before = unattributed(net)
    client.run(kept_get, server.port, "/nobody/c.bin")
    assert unattributed(net) - before == server.of("/nobody/")[1]
    # One connection carried them all, and the last task has not grown.
    assert len({r[3] for r in server.rows() if r[0].startswith(("/turn", "/nobody"))}) == 1
    check(net, [jobs.tasks_of(jobs.settled(net[1], lambda r: True), "turn2")[0]], ["/turn2/"])


def test_pooled_aiohttp_in_turn_and_then_nobody(net):
    server, _, client = net
    calls = [(fsspec_get, server.url(f"/pool{i}/{n}"), i + 1) for i, n in enumerate(SIZES)]
    rows = run(net, "pool", calls)
    check(net, rows, [f"/pool{i}/" for i in range(3)])
    assert max(r[4] for r in server.rows() if r[0].startswith("/pool2/")) > 3, "no connection was used again"
    before = unattributed(net)
    client.run(fsspec_get, server.url("/poolnobody/c.bin"))
    assert unattributed(net) - before == server.of("/poolnobody/")[1]


def test_two_at_once_one_throttled(net, tmp_path):
    server = net[0]
    rows = run(net, "two", [(fsspec_get_together, server.url("/slow/two/b.bin"), str(tmp_path), "x"),
                            (fsspec_get_together, server.url("/two/c.bin"), str(tmp_path), "y")], in_turn=False)
    check(net, rows, ["/slow/two/", "/two/"])


def test_simplecache(net, tmp_path):
    """Bytes of the network, then of the copy: each counted where it was read. fsspec first checks whether
    the file is a folder and drops the answer: nginx has sent more of it than was received."""
    url = net[0].url("/cache/c.bin")
    first, second = run(net, "cache", [(simplecache_get, url, str(tmp_path))] * 2)
    requests, sent, received = net[0].of("/cache/")
    assert requests == 2 and first["network_write_bytes"] == received
    assert SIZES["c.bin"] < first["network_read_bytes"] <= sent
    copies = jobs.by_file(jobs.settled(net[1], lambda r: True), "read_bytes")
    assert [n for path, n in copies.items() if path.startswith(str(tmp_path))] == [2 * SIZES["c.bin"]]
    assert (second["read_bytes"], second["network_read_bytes"]) == (SIZES["c.bin"], 0)


@pytest.mark.parametrize("handler", [None, "HTTPSource"])
def test_uproot(net, tmp_path, handler):
    server, name = net[0], f"uproot{handler}"
    calls = [(uproot_together, server.url(f"/{name}{i}/nano.root"), handler, str(tmp_path), str(i)) for i in range(2)]
    rows = run(net, name, calls, in_turn=False)
    check(net, rows, [f"/{name}{i}/" for i in range(2)])


def test_forty_mixed_on_four_threads(net):
    server, names = net[0], list(SIZES)
    calls = [(mixed, server.url(f"/m{i}/{names[i % 3]}"), "fsspec" if i % 2 else "urllib") for i in range(40)]
    check(net, run(net, "mixed", calls, in_turn=False), [f"/m{i}/" for i in range(40)])


def test_wait_of_a_throttled_download(net):
    server = net[0]
    (row,) = run(net, "wait", [(mixed, server.url("/slow/wait/c.bin"), "urllib")])
    check(net, [row], ["/slow/wait/"])
    known = row["wall_seconds"] - row["cpu_seconds"] - row["runqueue_wait_seconds"]
    assert known > 1
    assert row["network_wait_seconds"] >= 0.95 * known


def test_a_loops_timer_is_sleep_and_its_slow_server_network(net):
    server = net[0]
    fast = [server.url(f"/kept/{name}") for name in SIZES]
    slow = [server.url("/slow/beats/c.bin")]
    sleeps, kept, beats = run(net, "timer", [(loop_sleeps,), (loop_downloads, fast, 0.4, 5), (loop_downloads, slow, 0, 0.02)])
    assert sleeps["sleep_seconds"] == pytest.approx(0.6, abs=0.1) and sleeps["network_wait_seconds"] < 0.02
    assert kept["sleep_seconds"] == pytest.approx(1.2, abs=0.2)
    assert kept["network_wait_seconds"] <= kept["wall_seconds"] - kept["cpu_seconds"] - kept["sleep_seconds"] + 0.05
    assert server.of("/kept/")[0] == 3 and len({r[3] for r in server.rows() if r[0].startswith("/kept")}) == 1
    known = beats["wall_seconds"] - beats["cpu_seconds"] - beats["runqueue_wait_seconds"]
    assert known > 1
    assert beats["network_wait_seconds"] >= 0.95 * known and beats["sleep_seconds"] < 0.05 * known


@pytest.mark.parametrize("handler", [None, "HTTPSource"])
def test_amplification_of_a_file_on_a_server(net, data, handler):
    """What nginx sent for the chunks, divided by the baskets that they used; certificates are not data files."""
    server, procs, client = net
    uri = f"/amplified{handler}/nano.root"
    jobs.run_coffea(client, [server.url(uri)], handler=handler)
    sent = server.of(uri)[1]
    report = jobs.settled(procs, lambda r: len(r["chunks"]) == 4 and jobs.sampled_bytes(r["stacks"]["stacks"]) > 0.9 * sent)
    others = sum(t["network_read_bytes"] for t in report["tasks"] if not t["basket_bytes"])
    metrics = report["metrics"]
    assert len(report["chunks"]) == 4 and metrics["basket_bytes"] > 1e6
    assert metrics["read_amplification"] == pytest.approx((sent - others) / metrics["basket_bytes"], rel=1e-9)
    assert 1 < metrics["read_amplification"] < 1.5
    assert metrics["outside_basket_bytes"] == sent - others - metrics["basket_bytes"]
    # whichever thread received them: for the line of the processor that made the array
    stacks = [row for row in report["stacks"]["stacks"] if row["sampled_network_read_bytes"]]
    assert jobs.sampled_bytes(stacks) + report["stacks"]["not_sampled_network_read_bytes"] == sent
    assert jobs.sampled_bytes(row for row in stacks if any(frame.endswith(" TTbarProcessor.process") for frame in row["frames"])) > 0.8 * sent
    assert not any(row["without"] for row in stacks)
    (row,) = [f for f in report["files"] if f["basket_bytes"]]
    assert row["read_amplification"] == pytest.approx(sent / row["basket_bytes"], rel=1e-9)
    # the size comes from the file's own header, without a request for it
    truth = os.path.getsize(data["zlib"])
    assert row["size_bytes"] == truth and metrics["per_file"][row["path"]]["size_bytes"] == truth
    assert metrics["avg_bytes_read_percent"] == pytest.approx(100 * row["unique_basket_bytes"] / truth, rel=1e-9)
    assert row["unique_basket_bytes"] == row["basket_bytes"]
    assert [f["path"] for f in report["files"] if f["read_bytes"] and not f["path"].startswith("/tmp/")] == []
