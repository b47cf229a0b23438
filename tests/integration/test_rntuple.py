# SPDX-License-Identifier: BSD-3-Clause
"""Pages of RNTuples, uproot's default when writing: those that tasks used, by task and by file, against
uproot's own page lists."""

import os
import shutil

import jobs
import pages
import pytest
import venvs
from distributed import Client, span

TABLE = "uproot's page_link_list"
SERIAL = "page_link_list of the pages read by a serial run without crema"
FIELDS = ["Weight_up", "flag"]


PAGES = [1, 3]  # for each column of a cluster


@pytest.fixture(scope="module")
def rntuples(disk):
    return {n: pages.write(disk / f"pages-{n}.root", n if n > 1 else None) for n in PAGES}


@pytest.fixture(scope="module")
def rntuple(rntuples):
    return rntuples[1]


def sum_weights(events):
    return {"events": len(events), "sum": float(events.Weight.up[events.Weight.up > 0.5].to_numpy().sum())}


def read(path, times=1):
    """Runs in a task: reads whole fields, each time from the file."""
    import uproot

    with uproot.open(path) as file:
        for _ in range(times):
            file["Events"].arrays(FIELDS, array_cache=None)


def row_of(report, path):
    return next(r for r in report["files"] if r["path"] == os.path.realpath(path))


def known(report, path):
    """Whether the lists of byte ranges have arrived."""
    rows = [r for r in report["files"] if r["path"] == os.path.realpath(path)]
    return rows and rows[0]["unique_basket_bytes"] is not None and rows[0]["reread_bytes"] is not None


def check(cell, name, how, expected, report, path):
    row, tasks = row_of(report, path), report["tasks"]
    for number, value in pages.sums(expected).items():
        cell("basket_bytes", f"RNTuple, {name}, {number}", how, value, jobs.total(tasks, number))
        assert row[number] == value, number
    cell("basket_bytes", f"RNTuple, {name}, each page once", how, pages.once(expected), row["unique_basket_bytes"])
    assert row["read_basket_bytes"] == row["unique_basket_bytes"]
    assert row["unique_bytes"] == row["read_basket_bytes"] + row["outside_basket_bytes"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("split", PAGES)
def test_whole_fields(shared, rntuples, cell, times, split):
    rntuple, name = rntuples[split], f"whole fields {times} x, {split} pages a column and cluster"
    assert len(pages.all_pages(rntuple, FIELDS)) == len(FIELDS) * pages.CLUSTERS * split
    with span(name):
        shared.client.submit(read, rntuple, times, key=jobs.unique("read"), pure=False).result(timeout=120)
    found = shared.settled(lambda r: known(r, rntuple))
    check(cell, name, TABLE, times * pages.all_pages(rntuple, FIELDS), found, rntuple)
    (task,) = jobs.tasks_of(found, "read")
    cell("basket_bytes", f"RNTuple, {name}, clusters used", TABLE, pages.CLUSTERS, task["clusters_used"])
    # Of these pages those of bits are not compressed; nor are the page lists, header and footer that uproot writes.
    packed = [p for p in times * pages.all_pages(rntuple, FIELDS) if p[1] < p[2]]
    cell("decompress_calls", f"RNTuple, {name}", TABLE, len(packed), task["decompress_calls"])
    cell("decompress_out_bytes", f"RNTuple, {name}", TABLE, sum(p[2] for p in packed), task["decompress_out_bytes"])
    assert task["basket_calls"] == task["page_calls"] and task["embedded_baskets"] == 0


@pytest.mark.parametrize("chunks", [1, 4])
@pytest.mark.parametrize("split", PAGES)
def test_coffea(shared, rntuples, cell, chunks, split):
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    rntuple = rntuples[split]
    name, size = f"coffea, {chunks} chunks, {split} pages a column and cluster", pages.CLUSTERS * pages.EVENTS // chunks
    with pages.logged() as log:
        processor.Runner(processor.IterativeExecutor(status=False), schema=NanoAODSchema, chunksize=size)(
            {"serial": {"files": {rntuple: "Events"}}}, processor_instance=sum_weights)
    with span(name):
        out, report = jobs.run_coffea(shared.client, [rntuple], chunksize=size, processor_instance=sum_weights)
    found = shared.settled(lambda r: len(r["chunks"]) >= chunks and known(r, rntuple))
    assert len(found["chunks"]) == report["chunks"] == chunks and out["events"] == pages.CLUSTERS * pages.EVENTS
    check(cell, name, SERIAL, log, found, rntuple)
    metrics, row = found["metrics"], row_of(found, rntuple)
    assert metrics["basket_bytes"] == sum(c["basket_bytes"] for c in found["chunks"]) == sum(p[1] for p in log)
    assert metrics["outside_basket_bytes"] == sum(c["read_bytes"] for c in found["chunks"]) - metrics["basket_bytes"]
    assert 0 < metrics["outside_basket_percent"] < 100 and metrics["read_amplification"] > 1
    assert row["page_calls"] == found["bytes"]["datasets"][0]["page_calls"] == len(log)
    assert metrics["per_file"][row["path"]]["compression_ratio"] == metrics["basket_raw_bytes"] / metrics["basket_bytes"]


def start(new_cluster, rename):
    procs = new_cluster()
    env = {"PYTHONPATH": f"{venvs.LISTS / 'rename'}:{procs.env['PYTHONPATH']}", "CREMA_TEST_RENAME": rename}
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker(env=procs.worker_env(env=env))
    return procs


@pytest.fixture(scope="module", params=["http", "root"])
def remote(request, tmp_path_factory, rntuple):
    """(URL of the RNTuple on a server, what it has sent since the last call and the number of its requests)"""
    folder = tmp_path_factory.mktemp(f"pages-{request.param}")
    (folder / "files").mkdir()
    file = folder / "files" / "pages.root"
    shutil.copy(rntuple, file)
    file.chmod(0o644)
    if request.param == "http":
        from nginx import Nginx

        with Nginx(folder / "nginx", folder / "files") as server:
            before = [0, 0]

            def sent():
                requests, now, _ = server.of("/x/")
                found = requests - before[0], now - before[1]
                before[:] = requests, now
                return found

            yield server.url("/x/pages.root"), sent
    else:
        from xrootd import XRootD

        with XRootD(folder / "server", folder / "files") as server:
            since = [server.mark()]

            def sent():
                mark = server.mark()
                found = server.sent("/pages.root", since[0])
                since[0] = mark
                return found.requests, found.told

            yield server.url("/pages.root"), sent


def test_remote(shared, rntuple, remote, cell):
    """The pages that a task used, and the bytes that it received, from servers."""
    url, sent = remote
    name = f"RNTuple, {url.split(':')[0]}"
    with span(name):
        shared.client.submit(read, url, key=jobs.unique("far"), pure=False).result(timeout=120)
    found = shared.settled(lambda r: jobs.tasks_of(r, "far"))
    (task,), requests_and_bytes = jobs.tasks_of(found, "far"), sent()
    expected = pages.all_pages(rntuple, FIELDS)
    for number, value in pages.sums(expected).items():
        cell("basket_bytes", f"{name}, {number}", TABLE, value, task[number])
    cell("network", f"{name}, network_read_bytes", "the server's log", requests_and_bytes[1], task["network_read_bytes"])
    (file,) = [f for f in found["files"] if f["path"].endswith("/pages.root") and "://" in f["path"]]
    assert file["requests"] == requests_and_bytes[0]
    assert (file["basket_bytes"], file["basket_raw_bytes"]) == (task["basket_bytes"], task["basket_raw_bytes"])


def test_pages_that_cannot_be_seen(new_cluster, rntuple, data):
    """An uproot that reads pages in another way: unknown from the first RNTuple on, but not before."""
    procs = start(new_cluster, "uproot.models.RNTuple:read_locator:read_place")
    with Client(procs.address) as client:
        jobs.run_coffea(client, [data["zlib"]], chunksize=200_000)
        trees = jobs.settled(procs, lambda r: len(r["chunks"]) == 1)
        assert trees["metrics"]["basket_bytes"] > 0
        jobs.run_coffea(client, [rntuple], chunksize=3000, processor_instance=sum_weights)
        found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
    for chunk in found["chunks"]:
        assert chunk["basket_bytes"] is None and chunk["page_calls"] is chunk["clusters_used"] is None and chunk["basket_calls"] is None
        assert chunk["decompress_out_bytes"] > 0 and chunk["read_bytes"] > 0
    assert found["metrics"]["outside_basket_percent"] is None
    assert "metadata_reread" not in {f["id"] for f in found["findings"]}
    text = "1 of 1 workers: uproot has no read_locator and read_page that crema knows"
    assert [n for n in found["completeness"]["notes"] if n.startswith(text)]
    assert text in procs.report().stdout
