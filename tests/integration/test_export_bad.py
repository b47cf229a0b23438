"""Bad input: hostile names, numbers too large for other programs, journals of other versions, runs without
contents. Each export gives the right output or one line."""

import json
import os
import resource
import sqlite3
import subprocess

import frames
import hostile
import jobs
import pytest
from distributed import span
from tables import TABLES, check, read_csv, read_sql, records
from test_export_trace import checked, compare

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class Out:
    pass


def export(procs, directory, run, folder):
    """All exports of a run."""
    out = Out()
    out.text = procs.report("--run", run, directory=directory)
    done = procs.report("--run", run, "--json", folder / "run.json", "--csv", folder / "csv", "--sqlite", folder / "run.sqlite",
                        "--perfetto", folder / "run.trace", directory=directory)
    assert (out.text.returncode, done.returncode, done.stderr) == (0, 0, "")
    out.report = json.loads((folder / "run.json").read_bytes().decode("utf-8"))
    out.trace = json.loads((folder / "run.trace").read_bytes().decode("utf-8"))
    out.csv = folder / "csv"
    out.db = sqlite3.connect(folder / "run.sqlite")
    return out


def check_all(out):
    checked(out.trace["traceEvents"])
    for table in TABLES:
        check(out.report, table, read_sql(out.db, table))
        check(out.report, table, read_csv(out.csv, table))
        for row in records(out.csv / f"{table}.csv"):
            assert not any(text.startswith(FORMULAS) for text, quoted in row if quoted), row
    for line in out.text.stdout.split("\n"):
        assert not any(ord(c) < 0x20 or ord(c) == 0x7f for c in line), line


@pytest.fixture(scope="module")
def journal_of_hostile_names(shared, data, disk, tmp_path_factory):
    paths = hostile.files(disk / "hostile", data["zstd"])
    with span("hostile"):
        hostile.read_all(shared.client, paths)
    report = shared.settled(lambda r: len(r["tasks"]) == len(hostile.TEXTS))
    out = export(shared.procs, shared.procs.journal, report["run"], tmp_path_factory.mktemp("hostile"))
    out.paths = paths
    return out


def test_hostile_keys_and_files(journal_of_hostile_names):
    """Dask's keys and real files: complete in every export, truncated only where the record is."""
    out = journal_of_hostile_names
    check_all(out)
    keys = {t["key"] for t in out.report["tasks"]}
    for name, text in hostile.TEXTS.items():
        if len(text.encode()) <= 95:
            assert text in keys, name
        else:
            cut = [t for t in out.report["tasks"] if t["key_cut"] and text.startswith(t["key"].rstrip("\ufffd")[:20])]
            assert len(cut) == 1 and len(cut[0]["key"].encode()) <= 95 + 2, name
    assert {str(p) for p in out.paths.values()} <= {f["path"] for f in out.report["files"]}
    compare(out.trace, out.report)


def test_hostile_datasets(shared, disk, journal_of_hostile_names, tmp_path):
    """coffea's datasets have the names of the files."""
    paths = [journal_of_hostile_names.paths[name] for name in ("formula", "quotes", "html", "sql")]
    jobs.run_coffea(shared.client, paths, chunksize=200_000)
    report = shared.settled(lambda r: len(r["chunks"]) == 4)
    out = export(shared.procs, shared.procs.journal, report["run"], tmp_path)
    check_all(out)
    compare(out.trace, out.report)
    assert {c["filename"] for c in report["chunks"]} == {str(p) for p in paths}
    assert {c["dataset"] for c in report["chunks"]} == {p.stem for p in paths}
    assert out.db.execute("SELECT COUNT(*) FROM chunks WHERE dataset LIKE '=cmd%'").fetchone() == (1,)


@pytest.fixture
def made(tmp_path):
    journal = frames.Journal(tmp_path / "made")
    journal.worker()
    return journal


def test_bytes_that_are_no_text(shared, made, tmp_path):
    """NUL ends a name; bytes that are not UTF-8 are replaced, in the same way in every export."""
    for i, (name, raw) in enumerate(hostile.RAW.items(), 1):
        made.task(i, raw.decode("utf-8", "surrogateescape"), i * 1000, i * 1000 + 500, function=name)
    out = export(shared.procs, made.write(), "last", tmp_path)
    check_all(out)
    keys = {t["function"]: t["key"] for t in out.report["tasks"]}
    assert keys["not_utf8"].count("\ufffd") >= 6 and "(" in keys["not_utf8"] and keys["cut_utf8"] == "\ufffd\ufffd"
    assert keys["nul"].startswith("before")


def test_numbers_beyond_doubles_and_sqlite(shared, made, tmp_path):
    """2^53 + 1 and its sums are exact everywhere; numbers too large for SQLite are NULL there, and counted."""
    large, most, too_large = 2**53 + 1, 2**63 - 1, 2**64 - 1
    for i, n in enumerate((large, large, most, too_large), 1):
        made.task(i, f"task-{i}", i * 1000, i * 1000 + 500, read_bytes=n, decompress_in_bytes=0)
    out = export(shared.procs, made.write(), "last", tmp_path)
    assert [t["read_bytes"] for t in out.report["tasks"]] == [large, large, most, too_large]
    assert [t["read_bytes"] for t in read_csv(out.csv, "tasks")] == [large, large, most, too_large]
    assert [t["read_bytes"] for t in read_sql(out.db, "tasks")] == [large, large, most, None]
    assert out.db.execute("SELECT SUM(read_bytes) FROM tasks WHERE attempt < 3").fetchone() == (2 * large,)
    assert out.db.execute("SELECT value FROM meta WHERE name = 'integers_too_large'").fetchone()[0] >= 1


def map_often(path, length, times):
    """Runs on a worker: maps far more than its memory, and touches none of it."""
    import mmap

    with open(path, "rb") as file:
        for _ in range(times):
            mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ).close()
    return length * times


def test_a_real_sum_beyond_doubles(shared, disk, tmp_path):
    """A sparse file, mapped until a double can no longer represent the sum to the byte."""
    path, length, times = disk / "sparse", 2**43 + 1, 1025
    with open(path, "wb") as file:
        file.truncate(length)
    total, (task,) = jobs.submit(shared.procs, shared.client, "map_often", map_often, str(path), length, times)
    assert total > 2**53 and int(float(total)) != total and task["mapped_bytes"] == total
    out = export(shared.procs, shared.procs.journal, jobs.newest(shared.procs), tmp_path)
    assert out.db.execute("SELECT SUM(mapped_bytes) FROM tasks").fetchone() == (total,) == (out.report["metrics"]["mapped_bytes"],)
    assert out.db.execute("SELECT SUM(mapped_bytes) FROM files WHERE kind = 'data'").fetchone() == (total,)
    assert sum(t["mapped_bytes"] for t in read_csv(out.csv, "tasks")) == total


def test_one_task(shared, made, tmp_path):
    made.task(1, "only")
    out = export(shared.procs, made.write(), "last", tmp_path)
    check_all(out)
    assert [t["key"] for t in out.report["tasks"]] == ["only"]


def test_no_tasks(shared, made, tmp_path):
    """A worker that did nothing: one line, and no file."""
    done = shared.procs.report("--csv", tmp_path / "csv", "--sqlite", tmp_path / "db", directory=made.write())
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "contain no tasks" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


def test_journal_of_a_newer_version(shared, tmp_path):
    """A file in a newer format is not interpreted; of newer frames only the known ones are read."""
    newer = frames.Journal(tmp_path / "format", format=2)
    newer.worker()
    newer.task(1, "kept")
    done = shared.procs.report(directory=newer.write())
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "written by a newer crema" in done.stderr

    mixed = frames.Journal(tmp_path / "frames")
    mixed.worker()
    mixed.task(1, "known")
    mixed.task(2, "unknown", version=2)
    done = shared.procs.report("--json", "-", directory=mixed.write())
    assert [t["key"] for t in json.loads(done.stdout)["tasks"]] == ["known"] and done.returncode == 0
    assert len(done.stderr.splitlines()) == 1 and "written by a newer crema" in done.stderr


@pytest.mark.parametrize("text, words", [("{not json", "is not JSON"), ("[1, 2]", "is not a coffea report"), ("", "is not JSON"),
                                         ('{"entries": "many", "chunks": null}', "lacks entries, chunks"),
                                         ('{"entries": 5}', "lacks chunks")])
def test_bad_coffea_reports(shared, made, tmp_path, text, words):
    made.task(1, "only")
    (tmp_path / "report.json").write_text(text)
    done = shared.procs.report("--coffea-report", tmp_path / "report.json", directory=made.write())
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr, done.stderr
    assert "only" in done.stdout or "1 of 1" in done.stdout


def test_a_full_disk_leaves_nothing(shared, demo, tmp_path):
    """A write that fails: one line, the old file unchanged, no temporary file. A limit on file sizes simulates
    the full disk."""
    old = tmp_path / "csv"
    for option, target in (("--sqlite", tmp_path / "db"), ("--perfetto", tmp_path / "trace"), ("--csv", old)):
        if option == "--csv":
            old.mkdir()
            (old / "tasks.csv").write_text("old")
        else:
            target.write_text("old")
        done = subprocess.run([shared.procs.build / "crema", "report", "--dir", shared.procs.journal, "--run", demo.json["run"],
                               option, target], capture_output=True, text=True, env=shared.procs.env, preexec_fn=small_files)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and str(tmp_path) in done.stderr, done.stderr
    assert [p.read_text() for p in (tmp_path / "db", tmp_path / "trace", old / "tasks.csv")] == ["old"] * 3
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["csv", "db", "tasks.csv", "trace"]


def small_files():
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_links_and_special_files(shared, demo, tmp_path):
    """A symbolic link is followed, and a device is never replaced."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    run = ("--run", demo.json["run"])
    assert shared.procs.report(*run, "--sqlite", link).returncode == 0
    assert link.is_symlink() and real.read_bytes().startswith(b"SQLite format 3\0")
    device = os.stat("/dev/null")
    assert shared.procs.report(*run, "--perfetto", "/dev/null").returncode == 0
    done = shared.procs.report(*run, "--sqlite", "/dev/null")
    assert done.returncode == 1 and "regular file" in done.stderr
    assert os.stat("/dev/null").st_ino == device.st_ino
    done = shared.procs.report(*run, "--perfetto", "-")
    assert json.loads(done.stdout)["traceEvents"]
