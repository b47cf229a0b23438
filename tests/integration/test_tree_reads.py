# SPDX-License-Identifier: BSD-3-Clause
"""Chunks without coffea's Runner: the arguments of uproot's read_tree, in tasks of uproot's own readers."""

import jobs
import pytest
import tree_reads
from distributed import span

FIELDS = ("dataset", "filename", "treename", "tree_reads", "entrystart", "entrystop", "events")


@pytest.fixture(scope="module")
def chunks(shared, data):
    zlib, zstd = data["zlib"], data["zstd"]
    wanted = {
        "one": [(zlib, 50_000, 100_000)],
        "step": [(zlib, 1, 4, "step")],
        "again": [(zlib, 0, 1000), (zlib, 0, 1000)],
        "ranges": [(zlib, 0, 1000), (zlib, 1000, 3000)],
        "files": [(zlib, 0, 1000), (zstd, 0, 1000)],
        "forgiven": [(zlib, 0, 1000)],
        "fails": [(zlib, 0, 1000)],
    }
    options = {"one": {"dataset": "ttbar"}, "forgiven": {"fails": True, "forgiven": True}, "fails": {"fails": True}}
    with span("tree reads"):
        tasks = {name: shared.client.submit(tree_reads.read, parts, key=jobs.unique(name), pure=False,
                                            **options.get(name, {})) for name, parts in wanted.items()}
        entries = {name: task.result() for name, task in tasks.items() if name != "fails"}
        with pytest.raises(OSError, match="on purpose"):
            tasks["fails"].result()
    report = shared.settled(lambda r: len(r["tasks"]) >= len(wanted))
    rows = {c["prefix"]: {field: c[field] for field in FIELDS} for c in report["chunks"]}
    return {"rows": rows, "entries": entries, "zlib": zlib}


def test_result_is_uprootss(chunks):
    assert chunks["entries"] == {"one": 50_000, "step": 50_000, "again": 2000, "ranges": 3000, "files": 2000, "forgiven": 0}


def expected(chunks, name):
    row = {"dataset": None, "filename": chunks["zlib"], "treename": "Events", "tree_reads": 1,
           "entrystart": 0, "entrystop": 1000, "events": 1000}
    return {**row, **{
        "one": {"dataset": "ttbar", "entrystart": 50_000, "entrystop": 100_000, "events": 50_000},
        "step": {"entrystart": 50_000, "entrystop": 100_000, "events": 50_000},
        "again": {"tree_reads": 2},
        # Different reads are not one chunk: values in which they differ are unknown.
        "ranges": {"tree_reads": 2, "entrystart": None, "entrystop": None, "events": None},
        "files": {"tree_reads": 2, "filename": None, "entrystart": None, "entrystop": None, "events": None},
        "forgiven": {"events": 0},
        "fails": {"events": 0},
    }[name]}


@pytest.mark.parametrize("name", ["one", "step", "again", "ranges", "files", "forgiven", "fails"])
def test_chunk(chunks, name):
    assert chunks["rows"][name] == expected(chunks, name)
