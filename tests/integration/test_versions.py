# SPDX-License-Identifier: BSD-3-Clause
"""The same analysis under the versions that people run: coffea 0.7.22 to 2026.9 with the Dask of its
time, by Runner, apply_to_fileset and uproot.dask. An environment takes minutes to install, so these
are cells of "make accuracy"; two of them always run if their environments already exist."""

import ast
import json
import os
import subprocess

import jobs
import pytest
import strace_reads
import venvs
from accuracy import COFFEA, STRACE
from dask.utils import key_split

JOB = venvs.LISTS / "job.py"
SERIAL = "uproot's decompressors counted, serial job in the same environment without crema"
RANGES = [(start, start + 50_000) for start in range(0, 200_000, 50_000)]
# environment: (how, always?)
MATRIX = {
    "coffea-0.7.22": [("runner", True)],
    "coffea-2024.6": [("closed", False), ("fileset", False)],
    "coffea-2025.3": [("closed", False), ("fileset", False)],
    "coffea-2025.9": [("runner", False), ("fileset", False)],
    "coffea-2026.9-dask-awkward": [(how, False) for how in ("runner", "fileset", "closed", "opened", "steps")],
    "coffea-2026.9-3.13": [("runner", True)],
    "coffea-2026.9-3.14t": [("runner", False)],
    "coffea-newest-3.14": [("runner", "further")],
}


def cases():
    for name, hows in MATRIX.items():
        for how, always in hows:
            marks = [pytest.mark.further] if always == "further" else [] if always and venvs.is_made(name) else [pytest.mark.matrix]
            yield pytest.param(name, how, marks=marks, id=f"{name}-{how}")


def run_job(bin_dir, how, files, output, env, *extra):
    done = subprocess.run([bin_dir / "python", JOB, how, *(f"{n}={p}" for n, p in files.items()), "--output", output,
                           *extra], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(output.read_text())


def versions_of(bin_dir):
    code = "import json, sys; from importlib.metadata import version; print(json.dumps({n: version(n) for n in sys.argv[1:]}))"
    done = subprocess.run([bin_dir / "python", "-c", code, "dask", "distributed", "coffea", "uproot"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name,how", list(cases()))
def test_version(new_cluster, data, tmp_path, cell, name, how):
    bin_dir = venvs.environment(name)
    files = {"ttbar": data["zlib"], "wjets": data["lzma"]}
    procs = new_cluster()
    procs.dask = lambda *args: [bin_dir / "dask", *args]
    truth = run_job(bin_dir, how, files, tmp_path / "serial.json", procs.env)
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(prefix=strace_reads.prefix)
    found = run_job(bin_dir, how, files, tmp_path / "measured.json", procs.env, "--scheduler", procs.address)
    assert found["out"] == truth["out"]
    report = jobs.settled(procs, lambda r: len(r["chunks"]) >= 8)
    check_chunks(report, files, how)
    check_worker(report, bin_dir, found["python"])
    for dataset, row in truth["out"].items():
        assert row["events"] == 200_000
    cell("versions", f"{name}, {how}, events", "both files", 400_000, report["metrics"]["total_events"])
    reads = strace_reads.count(worker.log.with_suffix(".strace"))
    for dataset, path in files.items():
        cell("versions", f"{name}, {how}, read_bytes, {dataset}", STRACE, reads[path]["bytes"],
             jobs.by_file(report, "read_bytes").get(path, 0))
    # Without spans (distributed before 2023.12) the rows cover the worker's whole lifetime.
    spans = all(c["span"] for c in report["chunks"])
    others = {} if spans else report["completeness"]["unattributed"]
    for codec, row in truth["codecs"].items():
        rows = [r for r in report["codecs"] if r["codec"] == codec and not r["library"].startswith("lz4.frame")]
        for unit in ("calls", "in_bytes", "out_bytes"):
            cell("versions", f"{name}, {how}, decompress_{unit}, {codec}", SERIAL, row[unit], jobs.total(rows, unit),
                 others.get(f"decompress_{unit}", 0))
    if found["report"]:
        check_coffea(cell, f"{name}, {how}", found["report"], report["metrics"])


def check_chunks(report, files, how):
    keys = {t["key"]: ast.literal_eval(t["key"]) if t["key"].startswith("(") else t["key"] for t in report["tasks"]}
    assert keys and all(t["prefix"] == key_split(keys[t["key"]]) for t in report["tasks"])
    chunks = sorted((c["filename"], c["entrystart"], c["entrystop"], c["events"]) for c in report["chunks"])
    assert chunks == sorted((path, *r, 50_000) for path in files.values() for r in RANGES)
    assert {c["treename"] for c in report["chunks"]} == {"Events"}
    names = {path: name if how in ("runner", "fileset") else None for name, path in files.items()}
    assert {c["filename"]: c["dataset"] for c in report["chunks"]} == names
    assert {c["tree_reads"] for c in report["chunks"]} == ({None} if how == "runner" else {1})


def check_worker(report, bin_dir, python):
    (worker,) = report["workers"]
    assert {name: worker[name] for name in ("dask", "distributed", "coffea", "uproot")} == versions_of(bin_dir)
    assert worker["python"] == python
    missing = [note for note in worker["notes"] if "crema knows" in note or " has no " in note]
    if worker["uproot"].startswith("4."):  # its RNTuples are not measured
        assert [note.partition(" that")[0] for note in missing] == ["uproot has no read_locator and read_page"]
    else:
        assert not missing
    assert report["completeness"]["unseen"]["storage_read_bytes"] == 0


def check_coffea(cell, name, theirs, ours):
    for word, metric in (("bytesread", "total_bytes_read_coffea"), ("entries", "total_events"), ("chunks", "num_chunks")):
        cell("versions", f"{name}, {word}", COFFEA, theirs[word], ours[metric])
    cell("versions", f"{name}, processtime", COFFEA, theirs["processtime"], ours["total_cpu_time"],
         1e-6 * theirs["processtime"])
