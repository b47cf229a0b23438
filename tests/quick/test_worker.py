"""A worker's process with the preloaded library and its agent: worker_job.py, with modules that only look like Dask's and
coffea's. What arrives is compared with what the job did, and with the clocks that it read."""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import spool

ROOT, HERE = Path(__file__).resolve().parents[2], Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster

LINKED = tempfile.TemporaryDirectory(prefix="crema-tests-")
BUILD = cluster.preloadable(ROOT / os.environ.get("BUILD", "build"), Path(LINKED.name))
TEXT = (ROOT / "contract" / "counters.def").read_text()
TIMES, COUNTS = (re.findall(rf"^{kind}\((\w+),", TEXT, re.M) for kind in ("TIME", "COUNT"))
CHUNK, METRICS, MERGE, ACTOR, NESTED, CUT, PREPROCESSING, TREE, DIFFER, ELSEWHERE, SCATTER, USERS = (
    1 << n for n in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 14, 15))
MEBIBYTE = 1 << 20


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def start(folder, *arguments):
    for name in ("data", "out", "home"):
        (folder / name).mkdir()
    env = {**os.environ, "LD_PRELOAD": str(BUILD / "libcrema.so"), "CREMA_COLLECTOR": f"dir:{folder / 'out'}", "HOME": str(folder / "home"),
           "XDG_STATE_HOME": str(folder / "home")}
    before, used = time.clock_gettime_ns(time.CLOCK_BOOTTIME), cpu_of_children()
    done = subprocess.run([sys.executable, HERE / "worker_job.py", folder / "data", *arguments], env=env, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode in (0, -9), done.stderr
    used = cpu_of_children() - used
    found, numbers = spool.wait(folder / "out")
    return {"told": json.loads(done.stdout), "found": found, "numbers": numbers, "file": str(folder / "data" / "a.root"),
            "window": [before, time.clock_gettime_ns(time.CLOCK_BOOTTIME)], "tasks": {t["key"]: t for t in found["end"]}, "cpu_ns": used}


UNCOUNTED = {"network": {"network_read_bytes", "network_write_bytes"},
             "codecs": {n for n in COUNTS if n.startswith(("compress_", "decompress_"))},
             "baskets": {n for n in COUNTS if "basket" in n or n in ("page_calls", "clusters_used")}}


@pytest.mark.parametrize("module, unknown, note", [
    ("XRootD.client", UNCOUNTED["network"], "XRootD.client has no File that crema knows"),
    ("aiohttp.client_proto", UNCOUNTED["network"], "aiohttp has no ResponseHandler that crema knows"),
    ("httpcore._sync.http2", UNCOUNTED["network"], "httpcore has no HTTP/2 connection that crema knows"),
    ("grpc._channel", UNCOUNTED["network"], "gRPC has no calls that crema knows"),
    ("grpc.aio._call", UNCOUNTED["network"], "gRPC's asyncio has no calls that crema knows"),
    ("coffea.nanoevents.mapping.parquet", set(), "coffea has no ParquetSourceMapping that crema knows"),
    ("h5py._hl.dataset", UNCOUNTED["codecs"], "h5py has no Dataset that crema knows"),
    ("uproot.models.TBasket", UNCOUNTED["baskets"], "uproot has no Model_TBasket.read_members"),
    ("uproot.source.futures", set(COUNTS), "uproot.source.futures lacks a pool that crema knows"),
    ("multiprocessing.pool", set(COUNTS), "ThreadPool lacks a method that crema knows"),
    ("pages for a GPU", UNCOUNTED["baskets"], None)])
def test_what_cannot_be_seen_is_unknown(tmp_path, module, unknown, note):
    """A module of another version, or an unseen way to read: the affected counts are unknown from then on, with a note."""
    run = start(tmp_path, "lacking", module)
    task = run["tasks"]["plain-2"]
    assert {name for name in COUNTS if task[name] is None} == unknown
    assert task["cpu_ns"] > 0
    assert note is None or any(n.startswith(note) for n in run["found"]["totals"][-1]["notes"])


BY_RING = {f"{what}_{unit}" for what in ("read", "write", "other_read") for unit in ("calls", "bytes")} | {
    f"{what}_bytes" for what in ("storage_read", "storage_unsure", "storage_write", "network_read", "network_write", "late", "large_read", "cached", "readahead")}


@pytest.mark.parametrize("way", ["liburing", "syscall", "package", "itself", "uvloop"])
def test_what_io_uring_reads_is_unknown(tmp_path, way):
    """No call shows it: unknown for the tasks that run when a ring is made and for later ones. The process's storage is known."""
    library, file = tmp_path / ("uvloop.so" if way == "uvloop" else "rings.so"), tmp_path / "file"
    built = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "ring.c", "-luring"], capture_output=True, text=True)
    assert not built.returncode, built.stderr
    file.write_bytes(os.urandom(MEBIBYTE))
    with open(file) as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    run = start(tmp_path, "io_uring", way, library, file)
    assert way == "package" or run["told"]["got"] > 0, run["told"]
    assert way != "liburing" or run["told"]["got"] == MEBIBYTE
    before, ring, after = (run["tasks"][name] for name in ("plain-1", "ring", "plain-2"))
    unknown = set() if way == "uvloop" else BY_RING
    assert before["read_bytes"] == 1000 and before["storage_read_bytes"] is not None
    for task in (ring, after):
        assert {name for name in BY_RING if task[name] is None} == unknown and task["cpu_ns"] > 0
    totals = run["found"]["totals"][-1]
    assert {name for name in BY_RING if totals["tasks"][name] is None} == unknown
    assert sum(note.startswith("io_uring is in use: ") for note in totals["notes"]) == bool(unknown)
    assert totals["process"]["storage_read_bytes"] >= run["told"].get("charged", 0)  # by kernel threads, if /tmp is on a disk


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return start(tmp_path_factory.mktemp("worker"), "alive", "0.8")


def fnv(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def part(name):
    return format(fnv(name) % 2**32, "x")


ITEM = {"dataset": "set-1", "filename": "/data/1.root", "treename": "Events", "entrystart": 1000, "entrystop": 2500}
READ = {"dataset": "a-set", "filename": "/data/t.root", "treename": "dir/Events", "entrystart": 100, "entrystop": 250}
CONSUMED = min(map(fnv, ("k-1", "k-2", "k-3")))
CHUNK_1 = f".12c{CONSUMED % 2**32:x}"
NO_ITEM = dict.fromkeys([*ITEM, "events", "columns", "coffea_bytesread", "coffea_processtime", "tree_reads"])
EXPECTED = {
    "plain-1": {"function": "work", "span": "the-span", "consumes": 0},
    "old-1": {"prefix": "kind of old-1"},
    "old-no-kind": {"prefix": None},
    "failing-1": {"function": "fails", "status": "erred", "error_type": "ValueError", "error_text": None, "error_cause": None},
    "failing-2": {"function": "fails_because", "status": "erred", "error_type": "ValueError", "error_text": "one line", "error_cause": "OSError: the disk"},
    "tree": {**READ, "flags": CHUNK | TREE, "tree_reads": 2},
    "tree-differs": {**READ, "flags": CHUNK | TREE | DIFFER, "tree_reads": 2, "entrystart": None, "entrystop": None},
    "tree-fails": {**READ, "flags": CHUNK | TREE, "tree_reads": 1, "entrystart": -5, "events": 0},
    "chunk-1": {**ITEM, "flags": CHUNK | METRICS, "events": 1500, "coffea_bytesread": 987654, "coffea_processtime": 2.75,
                "columns": "a\nb", "consumes": CONSUMED, "span": "the-span" + CHUNK_1, "function": "_work_function"},
    "only-bytesread": {**ITEM, "flags": CHUNK | METRICS, "coffea_bytesread": 11, "span": "the-span.12c"},
    "only-processtime": {**ITEM, "flags": CHUNK | METRICS, "coffea_processtime": 0.5, "span": "the-span.12c"},
    "only-entries": {**ITEM, "flags": CHUNK | METRICS, "events": 13, "span": "the-span.12c"},
    "chunk-2": {**ITEM, "flags": CHUNK, "span": f"the-span.12c{part('chunk')}", "consumes": 0},
    "meta-7": {"flags": PREPROCESSING, "dataset": "set-2", "filename": "/data/2.root", "treename": "Runs", "span": f"the-span.12p{part('meta')}"},
    "merge": {"flags": MERGE, "consumes": fnv("chunk-1"), "span": f"the-span.12m{part('the-span' + CHUNK_1)}", "function": "_reduce"},
    "total-1": {"consumes": fnv("('bag-1', 0)"), "span": f"first.0u{part('first.12c')}"},
    "total-2": {"consumes": fnv("('bag-1', 0)"), "span": f"first.0u{part('second.12c')}"},
    "total-fetched": {"consumes": fnv("('bag-1', 7)"), "span": f"first.0u{part('second.12c')}"},
    "total-of-nothing": {"consumes": fnv("('bag-2', 0)"), "span": "third"},
    "total-of-total": {"span": f"third.0u{part('first.12c')}"},
    "spread": {"flags": SCATTER, "span": f"the-span.12s{part('spread')}"},
    "chunk-block": {**ITEM, "flags": CHUNK | USERS, "span": "block-1"},
    "chunk-moved": {**ITEM, "flags": CHUNK | USERS, "span": "block-1.0bblock-2"},
    "chunk-alone": {**ITEM, "flags": CHUNK | USERS, "span": "the-span.0bblock-2"},
    "chunk-outside": {**ITEM, "flags": CHUNK, "span": "block-1.12c"},
    "by-a-task": {"span": "block-1"},
    "chunk-own": {**ITEM, "flags": CHUNK | USERS, "span": "own-span"},
    **{f"chunk-own-{name}": {**ITEM, "flags": CHUNK | USERS | METRICS, "span": "own-span", "events": 77, "columns": "a", "coffea_bytesread": 5,
                             "coffea_processtime": 1.5} for name in ("report", "pair", "itself")},
    **{f"chunk-own-{name}": {**ITEM, "flags": CHUNK | USERS, "span": "own-span", "events": events} for name, events in (
        ("half", None), ("other", None), ("error", 0))},
    "far-1": {"flags": ELSEWHERE, "prefix": "far", "span": "far-span", "wall_ns": 2_500_000_000, "function": None},
    "far-2": {"flags": ELSEWHERE, "prefix": "far", "span": "far-span", "status": "erred", "function": None},
    "add": {"flags": ACTOR, "prefix": None, "span": None, "function": None, "consumes": None},
    "x" * 95: {"flags": CUT, "key_hash": fnv("x" * 200)},
}


@pytest.mark.parametrize("key", EXPECTED)
def test_what_a_task_is(run, key):
    expected = {"status": "ok", "flags": 0, "prefix": "a-prefix", "worker_address": "tcp://10.1.1.1:4001", "worker_name": "w-1",
                "thread": run["told"]["pid"], "key_hash": fnv(key), **NO_ITEM, **EXPECTED[key]}
    assert {name: run["tasks"][key][name] for name in expected} == expected


def test_tasks_are_numbered(run):
    ends = run["found"]["end"]
    assert len(ends) - 1 == len(run["tasks"]) == len(run["told"]["tasks"]) + 3  # one key twice; the tasks of other executors, and the actor's
    assert sorted(t["attempt"] for t in ends) == list(range(1, len(ends) + 1))
    here = [t["thread_sequence"] for t in ends if t["thread"] == run["told"]["pid"]]
    assert sorted(here) == list(range(1, len(ends))) and run["tasks"]["within-pool"]["thread_sequence"] == 1


def test_times_of_tasks(run):
    for key, (before, after) in run["told"]["tasks"].items():
        task = run["tasks"][key[:95]]
        assert before["boot"] <= task["start_boot_ns"] <= task["stop_boot_ns"] <= after["boot"]
        assert abs(task["stop_boot_ns"] - task["start_boot_ns"] - task["wall_ns"]) <= after["boot"] - before["boot"] - task["wall_ns"]
        assert 0 < task["cpu_ns"] <= after["cpu"] - before["cpu"]
        for name, outside in (("rss_start_bytes", before), ("rss_stop_bytes", after)):
            assert abs(task[name] - outside["resident"]) < MEBIBYTE and task[name] % resource.getpagesize() == 0
        assert max(task["rss_start_bytes"], task["rss_stop_bytes"]) <= task["rss_peak_bytes"] <= run["told"]["most"] + MEBIBYTE
        if task["pool_segments"]:
            continue  # and its threads'
        assert task["voluntary_switches"] <= after["voluntary"] - before["voluntary"]
        assert task["involuntary_switches"] <= after["involuntary"] - before["involuntary"]
    far = run["tasks"]["far-1"]
    assert far["stop_boot_ns"] - far["start_boot_ns"] == far["wall_ns"]


def test_a_task_that_looks_itself(run):
    task, (before, after) = run["tasks"]["measured"], run["told"]["measured"]
    outer = run["told"]["tasks"]["measured"]
    passed = {name: after[name] - before[name] for name in before}
    whole = {name: outer[1][name] - outer[0][name] for name in before}
    assert passed["cpu"] <= task["cpu_ns"] <= whole["cpu"]
    assert passed["boot"] <= task["wall_ns"] <= whole["boot"]
    assert passed["voluntary"] <= task["voluntary_switches"] <= whole["voluntary"]
    assert passed["involuntary"] <= task["involuntary_switches"] <= whole["involuntary"]
    assert passed["voluntary"] > 0
    assert 50_000_000 <= task["sleep_ns"] + task["runqueue_ns"] <= whole["boot"] - passed["cpu"]
    assert sum(task[f"{name}_ns"] for name in TIMES) <= task["wall_ns"] * 1.01 + 100_000
    assert all(task[f"pool_{name}_ns"] == 0 for name in TIMES)


def test_a_task_within_another(run):
    """The inner task's work is its own; the outer one continues unchanged."""
    around, within = run["tasks"]["around"], run["tasks"]["within"]
    assert (around["flags"], within["flags"]) == (0, NESTED)
    assert around["cpu_ns"] >= 20_000_000 and within["cpu_ns"] >= 10_000_000
    outer = run["told"]["tasks"]["around"]
    assert around["cpu_ns"] + within["cpu_ns"] <= outer[1]["cpu"] - outer[0]["cpu"]
    assert around["pool_cpu_ns"] == around["pool_segments"] == around["pool_wall_ns"] == 0


def test_nothing_is_known_of_what_ran_elsewhere(run):
    for key in ("far-1", "far-2"):
        assert not [name for name in [*COUNTS, *(f"{n}_ns" for n in TIMES)] if run["tasks"][key][name] is not None]


def test_codecs(run):
    told, task = run["told"]["codecs"], run["tasks"]["codecs"]
    rows = {r["function"]: r for r in run["found"]["codec"] if r["span"] == "the-span"}  # the last row of each
    expected = {"zlib.decompress": (1, told["packed"], 100_000), "zlib.decompressobj().decompress": (2, told["packed"], told["stream"]),
                "zlib.compress": (2, 100_000 + (1 << 22), told["packed"] + told["big"])}
    for function, values in expected.items():
        assert tuple(rows[function][name] for name in ("calls", "in_bytes", "out_bytes")) == values, function
    assert rows["zlib.compress"]["direction"] == "compress" and rows["zlib.decompress"]["direction"] == "decompress"
    assert told["stream"] == 100_000
    for kind in ("compress", "decompress"):
        of_kind = [r for r in rows.values() if r["direction"] == kind]
        for name in ("calls", "in_bytes", "out_bytes", "cpu_ns", "wall_ns"):
            assert task[f"{kind}_{name}"] == sum(r[name] for r in of_kind)
        assert task[f"{kind}_cpu_ns"] <= task["cpu_ns"] and task[f"{kind}_wall_ns"] <= task["wall_ns"]
        assert task[f"{kind}_wall_ns"] >= task[f"{kind}_cpu_ns"] * 0.9
    assert task["compress_cpu_ns"] >= told["cpu"] * 0.9


def test_frames_of_threads_that_work_for_nobody(run):
    """They may belong to a reader; a task that read nothing is known not to have decompressed them."""
    found = [run["tasks"][key] for key in ("unpacked-elsewhere", "unpacked-for-others")]
    assert [[task[f"decompress_{name}"] for name in ("calls", "out_bytes", "in_bytes")] for task in found] == [[None] * 3, [0] * 3]
    assert [task["compress_calls"] for task in found] == [0, 0]


def test_http2_is_shared(run):
    """The network bytes of a task that uses such a connection are unknown, and a note gives the reason."""
    task = run["tasks"]["http2"]
    assert (task["network_write_bytes"], task["network_read_bytes"]) == (None, None)
    assert any(note.startswith("HTTP/2 serves several tasks over one connection") for note in run["found"]["totals"][-1]["notes"])


def test_an_event_loop_of_the_task(run):
    task = run["tasks"]["by-asyncio"]
    assert (task["network_write_bytes"], task["network_read_bytes"], run["told"]["by_asyncio"]) == (1000 + 3000, 3000 + 1000, [])


def test_codecs_of_other_shapes(run):
    """(bytes in, bytes out) of each: a returned length is the bytes out, and in a returned pair the second value is the bytes in."""
    task = run["tasks"]["codecs-shapes"]
    rows = {r["function"]: (r["calls"], r["in_bytes"], r["out_bytes"]) for r in run["found"]["codec"] if r["span"] == "codecs"}
    assert rows == {"cramjam.cramjam.snappy.decompress_into": (1, 5, 4), "cramjam.cramjam.snappy.compress_into": (1, 9, 4),
                    "lz4.frame._frame.decompress": (1, 4, 2)}
    assert [task[f"decompress_{name}"] for name in ("calls", "in_bytes", "out_bytes")] == [2, 9, 6]
    assert [task[f"compress_{name}"] for name in ("calls", "in_bytes", "out_bytes")] == [1, 9, 4]


def test_codecs_that_cannot_be_counted_are_unknown(run):
    """Only the counts of that direction are unknown, compared with a task that calls none."""
    plain = run["tasks"]["plain-1"]
    for key, unknown in run["told"]["unseen"].items():
        task, unknown = run["tasks"][f"unseen-{key}"], ("decompress", "compress") if unknown == "both" else (unknown,)
        assert {name for name in COUNTS if task[name] is None and plain[name] is not None} == {n for n in COUNTS if n.split("_")[0] in unknown}, key
    assert set(run["told"]["unseen"].values()) == {"", "both", "decompress", "compress"}


def test_what_modules_unpack_while_they_are_imported(run):
    """One inside another, by name, and one that fails; the task's own decompression is separate."""
    task = run["tasks"]["importing"]
    assert (task["import_decompress_calls"], task["import_decompress_out_bytes"]) == (4, 4000)
    assert (task["decompress_calls"], task["decompress_out_bytes"]) == (1, 1000)
    assert run["told"]["lines"] == ["importing", "<module>"]  # a traceback is the same as without crema


def test_baskets_and_the_bytes_of_their_file(run):
    task = run["tasks"]["baskets"]
    named = {"basket_calls": 3, "page_calls": 1, "basket_bytes": 10_600, "basket_raw_bytes": 20_640}
    far = {"basket_calls": 4, "page_calls": 0, "basket_bytes": 20_000, "basket_raw_bytes": 4 * 9_070}
    assert {name: task[name] for name in named} == {name: named[name] + far[name] for name in named}
    assert task["embedded_baskets"] == task["clusters_used"] == 1
    rows = {r["path"]: r for r in run["found"]["file"] if r["span"] == "the-span" and r.get("basket_bytes")}
    assert task["repeated_basket_bytes"] == sum(r["basket_bytes"] - r["unique_basket_bytes"] for r in rows.values()) > 0
    row = [r for r in run["found"]["file"] if r["path"] == run["file"] and r["span"] == "the-span"][-1]
    expected = {**named, "read_calls": 1, "read_bytes": 10_000, "size_bytes": 20_000, "write_bytes": 0, "extent_bytes": 10_000,
                "unique_bytes": 10_000, "basket_extent_bytes": 10_600, "unique_basket_bytes": 5_600, "read_basket_bytes": 5_000,
                "ranges": [0, 10_000], "basket_ranges": [300, 5_000, 4_700, 600], "kind": "data"}
    assert {name: row[name] for name in expected} == expected
    outside = [r for r in run["found"]["file"] if r["path"] == run["file"] and r["span"] is None][-1]
    assert (outside["write_calls"], outside["write_bytes"]) == (1, 20_000)


def test_places_of_inputs_that_are_copied_to_one_name(run):
    """A place that the task used in an earlier input may have other bytes: whether it is used again is unknown then, and only then."""
    found = {key.removeprefix("staged-"): (task["repeated_basket_bytes"], task["clusters_used"]) for key, task in run["tasks"].items() if key.startswith("staged-")}
    assert found == {"first": (501, 2), "next": (501, 1), "both": (None, None), "apart": (501, 3), **{f"one-{i}": (501, 1) for i in range(20)}}
    row = [r for r in run["found"]["file"] if (r["path"] or "").endswith(".staged")][-1]
    assert (row["unique_bytes"], row["unique_basket_bytes"], row["ranges"]) == (None, None, None)


def test_sizes_of_files_on_servers(run):
    """From the file's header as uproot read it; unknown without it, or if the value is not a size."""
    rows = {r["path"]: r for r in run["found"]["file"] if "example.org" in (r["path"] or "")}
    assert {path.rsplit("/")[-1]: (r["size_bytes"], r["basket_bytes"]) for path, r in rows.items()} == {
        "told.root": (123_456, 5_000), "untold.root": (None, 5_000), "negative.root": (None, 5_000), "text.root": (None, 5_000)}


def test_clusters_are_counted_once_for_each_file(run):
    """Far apart and adjacent; unknown if a page does not name its cluster."""
    assert (run["tasks"]["clusters"]["clusters_used"], run["tasks"]["clusters"]["page_calls"]) == (4, 5)
    task = run["tasks"]["cluster-unknown"]
    assert (task["clusters_used"], task["page_calls"], task["basket_calls"], task["basket_bytes"], task["embedded_baskets"]) == (None, 1, 1, 1, 0)


def test_a_basket_at_no_place_of_a_file(run):
    """Whether it was read before is unknown, but its bytes are known."""
    task = run["tasks"]["basket-far-behind"]
    assert (task["repeated_basket_bytes"], task["basket_calls"], task["basket_bytes"]) == (None, 1, 5000)


def test_threads_that_a_task_starts(run):
    """Their work is the task's own, and they have their original run() afterwards; failing to restore it has no effect."""
    assert run["told"]["threads"] == [False, True, []]
    task = run["tasks"]["threads"]
    assert task["pool_segments"] == 3 and 30_000_000 <= task["pool_cpu_ns"] <= task["pool_wall_ns"] * 1.01
    assert task["cpu_ns"] < 30_000_000


def test_work_in_a_thread_pool(run):
    task, within = run["tasks"]["pooled"], run["tasks"]["within-pool"]
    assert task["pool_segments"] == 2 and 100_000_000 <= task["pool_cpu_ns"] <= task["pool_wall_ns"] * 1.01
    assert task["cpu_ns"] < 100_000_000  # it imports the module
    assert within["flags"] == NESTED and within["cpu_ns"] >= 10_000_000 and within["pool_segments"] == 0
    assert not any(note.startswith("ThreadPool") for note in run["found"]["totals"][-1]["notes"])


def test_turns_of_the_interpreter(run):
    task = run["tasks"]["contend"]
    for prefix in ("", "pool_"):
        assert task[f"{prefix}gil_wait_ns"] >= 20_000_000
    assert task["lock_wait_ns"] <= run["told"]["contend"] + 5_000_000 and task["pool_lock_wait_ns"] <= 5_000_000


FIRST, SECOND = "root://a.example:1094//store/x.root", "root://b.example:1095//store/y.root"


def test_requests_by_xrootd(run):
    """To the byte: the data, 8 bytes for each answer and 16 for each chunk; times as measured by the client."""
    told, task = run["told"]["remote"], run["tasks"]["remote"]
    assert told["answers"] == [[True, 305], [True, 2000]]
    assert task["network_read_bytes"] == 1000 + 100 + 7 + 2000 + 305 + 5 * 8 + (3 + 1 + 2) * 16
    assert (task["network_write_bytes"], task["read_calls"], task["read_bytes"]) == (None, 0, 0)
    servers = {r["server"]: r for r in run["found"]["server"] if r["span"] == "remote"}
    files = {r["path"]: r for r in run["found"]["file"] if r["span"] == "remote" and r["kind"] == "remote"}
    assert (set(servers), set(files)) == ({"a.example:1094", "b.example:1095"}, {FIRST, SECOND})
    for server, file, times, requests, failed, sent in (("a.example:1094", FIRST, told["file"], 4, 1, 1107), ("b.example:1095", SECOND, told["other"], 3, 1, 2305)):
        row = servers[server]
        assert (row["scheme"], row["requests"], row["failed"], row["read_bytes"]) == ("root", requests, failed, sent)
        assert (files[file]["requests"], files[file]["network_read_bytes"]) == (requests, sent)
        for r in (row, files[file]):
            assert sum(times) * 0.999 - 2_000_000 <= r["latency_sum_ns"] <= sum(times) + 20_000_000
            assert 20_000_000 <= r["latency_max_ns"] <= max(times) + 10_000_000
        assert sum(row["latency"]) == requests


def test_calls_by_grpc(run):
    """By server, with the bytes of their messages, and those of a stream added up; a call without a status is not counted. Waits meanwhile are the
    network's."""
    told, task = run["told"]["rpcs"], run["tasks"]["rpcs"]
    rows = {r["server"]: r for r in run["found"]["server"] if r["span"] == "rpcs"}
    assert {name: (r["scheme"], r["requests"], r["failed"], r["read_bytes"]) for name, r in rows.items()} == {
        "a.example:8001": ("grpc", 2, 1, 1000), "10.0.0.1:8001": ("grpc", 1, 0, 534)}
    assert 20_000_000 <= rows["a.example:8001"]["latency_max_ns"] <= told["all"] and 30_000_000 <= rows["10.0.0.1:8001"]["latency_max_ns"] <= told["waited"] + 5_000_000
    assert (task["network_read_bytes"], task["network_write_bytes"]) == (None, None)
    assert 12_000_000 <= task["network_wait_ns"] <= told["waited"] * 1.01
    # also from the status until the message after it
    assert 30_000_000 <= task["lock_wait_ns"] <= told["locked"] + told["late"] + 5_000_000 and task["sleep_ns"] >= 18_000_000
    assert {name for name in COUNTS if run["tasks"]["rpcs_of_a_loop"][name] is None} == UNCOUNTED["network"]


def test_waits_for_answers_by_xrootd(run):
    """Meanwhile the task's own thread waits on a lock: that is network wait, except for its own CPU and its wait for a core."""
    told, task = run["told"]["remote"], run["tasks"]["remote"]
    assert 10_000_000 <= task["network_wait_ns"] <= told["waits"] * 1.01
    assert task["lock_wait_ns"] <= 2_000_000
    assert task["sleep_ns"] >= 86_000_000  # 90 ms less the error of short waits (runqueue.h)


@pytest.mark.parametrize("key, unknown", [("line", {"network_read_bytes"}), ("asked", set())] + [(key, {
    "network_read_bytes", "read_calls", "read_bytes", "write_calls", "write_bytes", "storage_read_bytes", "storage_write_bytes"}) for key in ("copy", "copies")])
def test_what_xrootd_does_not_tell_is_unknown(run, key, unknown):
    task, plain = run["tasks"][f"remote-{key}"], run["tasks"]["plain-1"]
    assert {name for name in COUNTS if task[name] is None and plain[name] is not None} == unknown | {"network_write_bytes"}


@pytest.mark.parametrize("key, kind", [("read", "decompress"), ("array", "decompress"), ("direct", "decompress"), ("set", "compress"),
                                       ("write", "compress"), ("seen", None)])
def test_hdf5_filters_are_unknown(run, key, kind):
    task = run["tasks"][f"hdf5-{key}"]
    for direction in ("decompress", "compress"):
        due = None if direction == kind else 0
        assert [task[f"{direction}_{name}"] for name in ("calls", "in_bytes", "out_bytes", "cpu_ns", "wall_ns")] == [due] * 5
    assert task["read_calls"] == 0


def test_sections(run):
    last = {r["path"]: r for r in run["found"]["section"]}
    task = run["tasks"]["sections"]
    outer, inner = last["outer"], last["outer/inner"]
    for row in (outer, inner):
        assert (row["span"], row["prefix"], row["thread"], row["source"]) == ("the-span", "a-prefix", "task", "crema")
        assert (row["begun"], row["count"], row["broken"]) == (1, 1, 0)
    assert 20_000_000 <= inner["counters"]["cpu_ns"] <= outer["counters"]["cpu_ns"] <= task["cpu_ns"]
    assert inner["counters"]["cpu_ns"] <= inner["wall_ns"] * 1.01 <= outer["wall_ns"] * 1.02 <= task["wall_ns"] * 1.03
    assert task["sections"] == f"0 t 1 {inner['wall_ns']} 11 outer/inner t 1 {outer['wall_ns']} 5 outer"
    found = {"@track_metrics": 1.25e9, "jets": 0.5e9, "trig": 0.125e9}
    assert {p: last[p]["wall_ns"] for p in found} == found
    assert all(last[p]["source"] == "roastcoffea" and last[p]["span"] == "the-span" + CHUNK_1 for p in found)
    chunk = "0 f 1 1250000000 14 @track_metrics f 1 500000000 4 jets f 1 125000000 4 trig"
    assert [t["sections"] for t in run["tasks"].values() if "jets" in (t["sections"] or "")] == [chunk] and run["tasks"]["plain-1"]["sections"] == "0"
    # found in a chunk's output, so its dataset is known; the other task has none
    assert {p: (last[p]["dataset"], "beyond" in last[p]) for p in (*found, "outer")} == {**dict.fromkeys(found, ("set-1", False)), "outer": (None, False)}
    for path in (*found, "outer", "outer/inner"):
        row = last[path]
        first, *counts = row["wall_buckets"]
        assert row["wall_min_ns"] == row["wall_max_ns"] == row["wall_ns"] and counts == [1]
        assert 1024 * 2 ** ((first - 1) / 4) <= row["wall_ns"] < 1024 * 2 ** (first / 4)


def test_gauges(run):
    last = {(r["path"], r["kind"]): r for r in run["found"]["gauge"]}
    assert last["jets", "value"]["stats"][0] == [3, 12.75, -2.0, 9.25, 9.25]
    assert ("bad", "value") not in last
    before, after, more, peak = last["grown", "memory"]["stats"]
    assert before[0] == after[0] == more[0] == 1 and after[1] - before[1] == more[1]
    assert abs(more[1] - run["told"]["grown"]) < MEBIBYTE
    assert peak[0] in (0, 1) and peak[1] <= run["told"]["most"] + MEBIBYTE
    memory = {"@track_metrics": 7.5 * MEBIBYTE, "jets": 3.0 * MEBIBYTE, "lep": 0.5e9}
    for path, change in memory.items():
        assert last[path, "memory"]["stats"][2] == [1, *[pytest.approx(change, abs=1)] * 4]
    assert last["jets", "bytes"]["stats"][0] == [1, *[4321.0] * 4] and last["yield", "value"]["stats"][0] == [1, *[77.5] * 4]


def test_totals(run):
    last, tasks, told = run["found"]["totals"][-1], run["found"]["end"], run["told"]
    assert last["tasks_started"] == last["tasks_done"] == len(tasks)
    assert last["tasks_refused"] == last["records_refused"] == last["files_refused"] == last["threads_refused"] == 0
    for name in [*COUNTS, *(f"{n}_ns" for n in TIMES)]:
        if last["tasks"][name] is not None:
            # for the task with HTTP/2 its own connection's bytes are in the totals only; its server is in the task as well
            own = {"network_write_bytes": 1000 + 3000 + 3000, "network_read_bytes": 3000 + 1000 + 1000}.get(name, 0)
            assert last["tasks"][name] == own + sum(t[name] or 0 for t in tasks), name
    assert last["tasks"]["cpu_ns"] and last["tasks"]["read_bytes"] == 12_600  # and 100 of each staged input
    assert last["unmeasured"] == {"outside": 0, "refused": 0, "values": 1, "columns": 0}
    assert told["end"]["boot"] <= last["snapshot_boot_ns"] <= run["window"][1]  # taken at the exit
    children = round(told["children"] * 1e9)
    assert told["ended"] - told["armed"][2] <= last["process"]["cpu_ns"] <= run["cpu_ns"] - children - told["armed"][1]
    assert last["tasks"]["cpu_ns"] <= last["seen"]["cpu_ns"] <= last["process"]["cpu_ns"]
    assert children - told["first_child_ns"] <= last["children"]["cpu_ns"] <= children  # the first child: used to find the agent


def test_hello(run):
    hello = run["found"]["hello"][-1]
    info = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    expected = {"pid": run["told"]["pid"], "host": os.uname().nodename, "kernel": os.uname().release, "cores": os.cpu_count(),
                "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "redacted": False,
                "memory_bytes": 1024 * int(info["MemTotal"].split()[0]), "cpu_model": model.group(1) if model else None,
                "net_namespace": os.stat("/proc/self/ns/net").st_ino, "python": sys.version.split()[0]}
    assert {name: hello[name] for name in expected} == expected
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert abs(hello["real_ns"] - hello["boot_ns"] - offset) < 50_000_000
    assert run["window"][0] <= hello["boot_ns"] <= run["window"][1]
    stack = json.loads(hello["stack"])
    assert (stack["worker_address"], stack["nthreads"], stack["memory_limit_bytes"]) == ("tcp://10.1.1.1:4001", 3, 7654321)
    ticks = os.sysconf("SC_CLK_TCK")
    assert run["window"][0] - 1e9 / ticks <= hello["start_ticks"] * 1e9 / ticks <= run["told"]["armed"][0]["boot"]


def test_samples(run):
    samples, told = run["found"]["sample"], run["told"]
    assert len(samples) >= 2
    assert 0.9e9 <= samples[1]["boot_ns"] - samples[0]["boot_ns"] <= 3e9
    for sample in samples:
        assert run["window"][0] <= sample["boot_ns"] <= run["window"][1]
        if sample["boot_ns"] > told["end"]["boot"] and None in (sample["cpu_seconds"], sample["rss_bytes"]):
            continue  # the process had ended before the agent looked at it
        assert 0 < sample["cpu_seconds"] <= run["cpu_ns"] / 1e9 - told["children"] and 0 < sample["rss_bytes"] <= told["most"] + MEBIBYTE
    stops = [task["stop_boot_ns"] for task in run["found"]["end"]]
    for sample, later in zip(samples, [*samples[1:], {"boot_ns": run["window"][1]}]):
        least = sum(stop < sample["boot_ns"] - 50_000_000 for stop in stops)
        assert least <= sample["tasks_done"] <= sum(stop < later["boot_ns"] for stop in stops)
        assert least < len(stops) or sample["tasks_running"] == 0
    texts = [(boot_ns, json.loads(text)) for boot_ns, text in run["found"]["dask"]]
    assert texts[-1][1]["executing"] == 2 and texts[-1][1]["tasks"] == len(run["tasks"]) - 1  # the actor's is not one of Dask's tasks
    assert told["snapshot"][0] <= texts[-1][0] <= told["snapshot"][1]


def test_all_arrived_in_order(run):
    next_seq = 0
    for seq, count in run["numbers"]:
        assert seq == next_seq
        next_seq += count
    goodbye = run["found"]["goodbye"][0]
    assert (goodbye["how"], goodbye["tasks_in_flight"], goodbye["cause"]) == ("exit", 0, None)
    assert goodbye["evidence"] == ["exit handlers ran"]
    assert run["told"]["end"]["boot"] <= goodbye["boot_ns"] <= run["window"][1]


def test_a_worker_that_is_killed_in_a_task(tmp_path):
    run = start(tmp_path, "killed", "0.7")
    goodbye, task = run["found"]["goodbye"][0], run["tasks"]["killed"]
    assert (goodbye["how"], goodbye["tasks_in_flight"], goodbye["evidence"][0]) == ("killed", 1, "no exit handler ran")
    assert (task["status"], task["key"], task["rss_stop_bytes"]) == ("killed", "killed", None)
    assert 800_000_000 <= task["wall_ns"] <= run["window"][1] - task["start_boot_ns"]
    assert 100_000_000 <= task["cpu_ns"] <= 300_000_000
    assert task["stop_boot_ns"] - task["start_boot_ns"] == pytest.approx(task["wall_ns"], abs=2_000_000)
    assert run["found"]["progress"] and run["found"]["progress"][-1]["status"] == "running"
    assert run["found"]["start"][-1]["attempt"] == task["attempt"]
    assert run["found"]["totals"][-1]["tasks_done"] == 0 and run["found"]["totals"][-1]["tasks_started"] == 1


def test_coffea_without_dask(tmp_path, monkeypatch):
    """A task for each chunk, named after it; a repeated chunk starts another run."""
    monkeypatch.setenv("CREMA_BLOCKED_MS", "banana")
    run = start(tmp_path, "executor")
    *fetched, first, second, again, metadata = sorted(run["found"]["end"], key=lambda t: t["attempt"])
    for task, begin, number, key in ((first, 0, 1, "first"), (second, 100, 1, "second"), (again, 0, 2, "again")):
        expected = {"key": f"set-1:/data/1.root:Events:{begin}-{begin + 100}", "flags": CHUNK | METRICS, "dataset": "set-1", "events": 100,
                    "filename": "/data/1.root", "treename": "Events", "entrystart": begin, "entrystop": begin + 100, "status": "ok",
                    "coffea_bytesread": 11 + begin, "coffea_processtime": None, "function": "_work_function",
                    "span": f"coffea-{fnv('a pickle'):x}.{number}", "worker_address": None}
        assert {name: task[name] for name in expected} == expected
        before, after = run["told"]["tasks"][key]
        assert before["boot"] <= task["start_boot_ns"] <= task["stop_boot_ns"] <= after["boot"]
        assert 0 < task["cpu_ns"] <= after["cpu"] - before["cpu"]
    expected = {"key": "set-2:/data/2.root:Runs:metadata", "flags": PREPROCESSING, "prefix": "metadata", "function": "metadata_fetcher"}
    assert {name: metadata[name] for name in expected} == expected
    assert [t["key"] for t in fetched] == ["set-before:/data/2.root:Runs:metadata", "set-after:/data/2.root:Runs:metadata"]
    spans = [t["span"] for t in (*fetched, metadata)]  # metadata after the chunks is another fetch
    assert spans == ["coffea-metadata.0", "coffea-metadata.0", "coffea-metadata.1"]
    stack = json.loads(run["found"]["hello"][-1]["stack"])
    assert stack["python"] == sys.version.split()[0]
    notes = run["found"]["totals"][-1]["notes"]
    assert "isal.isal_zlib has no function that crema knows: (de)compressed bytes of tasks are unknown" in notes
    assert "CREMA_BLOCKED_MS is not a number of milliseconds; 20 is used" in notes
    assert first["decompress_calls"] is second["compress_out_bytes"] is None and first["read_calls"] == 0


IN_FILES = BY_RING - {"network_read_bytes", "network_write_bytes"}
GPU_NOTES = {"libcuda.so.1": "CUDA is loaded: ", "libcufile.so.0": "cuFile is loaded (KvikIO uses it): ", "libnvcomp.so.6": "nvCOMP is loaded: "}


@pytest.mark.parametrize("way", ["open", "syscall"])
def test_what_gpus_do_is_named(tmp_path, way):
    """Libraries of GPUs are named when they are loaded; what nvCOMP decompresses, and what GPUDirect Storage reads, is unknown from then on:
    the shim sees its device being opened, or the agent that it is open."""
    folder = tmp_path / "gpu"
    folder.mkdir()
    for name in GPU_NOTES:
        built = subprocess.run(["cc", "-shared", "-o", folder / name, "-x", "c", "/dev/null"], capture_output=True, text=True)
        assert not built.returncode, built.stderr
    run = start(tmp_path, "gpu", way, *(folder / name for name in GPU_NOTES))
    names = ["none", *GPU_NOTES, *(["device"] if not os.geteuid() else [])]
    unknown = [{name for name in COUNTS if run["tasks"][f"{task}-1"][name] is None} for task in names]
    assert unknown[:4] == [set(), set(), set(), UNCOUNTED["codecs"]] and unknown[4:] in ([], [UNCOUNTED["codecs"] | IN_FILES])
    totals = run["found"]["totals"][-1]
    assert {name for name in COUNTS if totals["tasks"][name] is None} == unknown[-1]
    due = [*GPU_NOTES.values(), *["GPUDirect Storage is in use: "] * len(unknown[4:])]
    assert [sum(note.startswith(text) for note in totals["notes"]) for text in due] == [1] * len(due)


def test_the_agent_gets_the_workers_options_and_refuses_words(tmp_path, monkeypatch):
    text = (ROOT / "contract" / "options.def").read_text()
    names = set(re.findall(r'OPTION\(\w+, (?:WORKER|NAMES|NAMED|ALL), "[^"]*", "(CREMA\w*)"', text))
    assert {"CREMA_INSECURE", "CREMA_REDACT_KEYS", "CREMA_TLS", "CREMA"} < names
    values = {name: "banana" for name in ("CREMA_INSECURE", "CREMA_REDACT_KEYS", "CREMA_TLS", "CREMA_STUCK", "CREMA_HEAP", "CREMA")}
    values |= {"CREMA_SPOOL_BYTES": "24k", "CREMA_RUN_NAME": "a name", "CREMA_SAMPLE_HZ": "50", "CREMA_TOKEN_FILE": str(tmp_path / "token"), "CREMA_DIR": str(tmp_path / "state"),
               "CREMA_CALIBRATION": str(tmp_path / "calibration")}
    told_otherwise = {"CREMA_COLLECTOR", "CREMA_LARGE_BYTES", "CREMA_AGENT", "CREMA_BLOCKED_MS", "CREMA_ASK_SCHEDULER"}  # sent on its command line, or used by the library
    assert names == set(values) | told_otherwise
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nenv >{tmp_path}/env\nexec {BUILD}/crema-agent "$@" 2>{tmp_path}/said\n')
    agent.chmod(0o755)
    for name, value in {**values, "CREMA_AGENT": str(agent)}.items():
        monkeypatch.setenv(name, value)
    assert start(tmp_path, "alive", "0.1")["tasks"]  # unknown values stop nothing
    environment = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert {name: environment.get(name) for name in values} == values
    said = (tmp_path / "said").read_text().splitlines()
    assert sorted(said) == sorted(f"crema-agent: {name}: 'banana' is neither on nor off; use on|off, yes|no, true|false or 1|0"
                                  for name in ("CREMA_INSECURE", "CREMA_REDACT_KEYS", "CREMA_TLS", "CREMA_STUCK", "CREMA_HEAP", "CREMA"))
