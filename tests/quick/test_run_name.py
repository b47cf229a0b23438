"""`crema run --name`: from the command line through the library and its agent to the outputs that find and show a run; invalid names are ignored."""

import json
import os
import subprocess
import sys

import pytest
import test_reports  # sets the path to frames.py
import frames
from test_reports import ROOT
from test_worker import BUILD, HERE, spool

CREMA = BUILD / "crema"
# for each run: the names sent by its workers, and the run's name
RUNS = [(["ttbar"], "ttbar"), (["ttbar scan"], "ttbar scan"), (["muons"], "muons"), (["muons", "jets"], None), (["muons", None], None), ([None], None),
        (["x" * 101], None), (["\x1b[2J"], None), (["line\nbreak"], None), (["last"], None), (["\u202eturned"], None), (["caf\u00e9 " + "x" * 94], "caf\u00e9 " + "x" * 94)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A journal with a run for each row, one per hour."""
    folder = tmp_path_factory.mktemp("named")
    journal = frames.Journal(folder / "journal")
    for i, (names, _) in enumerate(RUNS):
        for k, name in enumerate(names):
            worker = bytes([65 + i, k]) * 8
            journal.worker(worker, host="node", pid=10 * i + k + 1, boot_ns=frames.BOOT_NS, real_ns=frames.BASE_NS + i * 3600 * 10**9,
                           stack=json.dumps({"worker_address": f"tcp://w{i}:{k}"}), **({"run_name": name} if name else {}))
            journal.task(1, f"work-{i}-{k}", 1000, 2000, worker, span=f"span-{i}", prefix="work", thread=1)
    journal.write()
    return folder


def report(folder, *options):
    done = subprocess.run([CREMA, "report", "--dir", folder, *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_who_has_a_name(folder):
    listed = json.loads(report(folder, "--list", "--json", "-")[1])["runs"]
    assert [run["name"] for run in listed] == [name for _, name in RUNS]
    text = report(folder, "--list")[1].splitlines()
    assert text[0].split()[-1] == "name" and text[2].endswith(" ttbar scan") and all(len(line) <= 80 for line in text)
    for i in (0, 3):
        shown = json.loads(report(folder, "--run", listed[i]["run"], "--json", "-")[1])
        assert shown["run_info"]["name"] == RUNS[i][1]
    assert "\n  name: ttbar scan\n" in report(folder, "--run", "scan")[1] and "name:" not in report(folder, "--run", "span-5")[1]


@pytest.mark.parametrize("options", [(), ("--read-whole", "1")])
def test_names_find_runs(folder, options):
    ids = [run["run"] for run in json.loads(report(folder, "--list", "--json", "-")[1])["runs"]]

    def found(which):
        status, text, why = report(folder, "--run", which, "--json", "-", *options)
        return json.loads(text)["run"] if not status else why

    assert [found(which) for which in ("ttbar", "scan", "muon", "caf\u00e9")] == [ids[i] for i in (0, 1, 2, 11)]
    assert f"'ttba' matches 2 runs: {ids[1]}, {ids[0]}\n" in found("ttba")
    assert "no run 'jets'" in found("jets")


@pytest.mark.parametrize("name, more, sent", [("ttbar, 50k chunks", {}, "ttbar, 50k chunks"), ("ttbar", {"CREMA_REDACT_KEYS": "on"}, None)])
def test_the_agent_sends_it(tmp_path, name, more, sent):
    for sub in ("data", "out", "home"):
        (tmp_path / sub).mkdir()
    env = {**os.environ, "CREMA_COLLECTOR": f"dir:{tmp_path / 'out'}", "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "home"), **more}
    subprocess.run([CREMA, "run", "--quiet", "--name", name, "--", sys.executable, HERE / "worker_job.py", tmp_path / "data", "alive", "0.1"],
                   env=env, check=True, capture_output=True, timeout=60)
    assert spool.wait(tmp_path / "out")[0]["hello"][-1]["run_name"] == sent


@pytest.mark.parametrize("bad", ["x" * 101, "a\nb", "last", "\x1b[2J"])
@pytest.mark.parametrize("way", ["option", "environment"])
def test_what_is_no_name_is_refused(bad, way):
    env = {**os.environ, **({"CREMA_RUN_NAME": bad} if way == "environment" else {})}
    done = subprocess.run([CREMA, "run", *(["--name", bad] if way == "option" else []), "--", "echo", "ran"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and "a name is 1 to 100 bytes" in done.stderr
