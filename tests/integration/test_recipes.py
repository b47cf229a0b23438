# SPDX-License-Identifier: BSD-3-Clause
"""docs/recipes.md, word by word: what it says to have been run or rendered is run and rendered here."""

import os
import re
import shlex
import subprocess
import sys

import cluster
import jobs
import pytest
import venvs
from distributed import Client

JOBQUEUE = ["dask-jobqueue==0.9.0"]
MARKS = ("Run here", "Configuration rendered", "Not tried")


def sections():
    """{title: text} of the recipes."""
    parts = re.split(r"^## ", (cluster.ROOT / "docs" / "recipes.md").read_text(), flags=re.M)[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


def blocks(title):
    """The indented blocks of a recipe, as they would be typed."""
    found = re.findall(r"(?:^(?:    .*)?\n)+", sections()[title], re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") + "\n" for block in found if block.strip()]


def test_each_is_marked():
    for title, text in sections().items():
        assert text.strip().startswith(MARKS), title
    named = " ".join(sections()).lower()
    for what in ("localcluster", "dask worker", "slurm", "htcondor", "dask-gateway", "operator", "helm", "apptainer",
                 "coffea-casa"):
        assert what in named


@pytest.fixture
def procs(new_cluster):
    made = new_cluster()
    made.start_collector()
    made.env["CREMA_COLLECTOR"] = made.target
    made.env["PATH"] = f"{made.build}:{os.path.dirname(sys.executable)}:{made.env['PATH']}"
    return made


def test_local_cluster(procs, tmp_path):
    commands, script = blocks("LocalCluster")
    (tmp_path / "analysis.py").write_text(script)
    (run,) = [line for line in commands.splitlines() if "analysis.py" in line]
    run = run.replace("127.0.0.1:8990", procs.target)
    done = subprocess.run(["bash", "-c", run], cwd=tmp_path, env=procs.env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "55\n"), done.stderr[-2000:]
    found = jobs.settled(procs, lambda r: len(r["tasks"]) >= 10)
    assert len(found["tasks"]) == 10 and found["completeness"]["workers_seen"] == 2


@pytest.fixture(scope="module")
def jobqueue():
    """Python with dask-jobqueue beside all that is here."""
    return venvs.make(venvs.VENVS / "jobqueue", "", ["--no-deps", *JOBQUEUE], f"{JOBQUEUE}\n") / "python"


def rendered(python, title, env, scheduler):
    """The job that dask-jobqueue writes for the recipe's cluster, and its worker sent to our scheduler."""
    (code,) = blocks(title)
    show = "\nimport re\nprint(re.sub(r'tcp://[0-9.:]+', %r, cluster.job_script()))\ncluster.close()\n" % scheduler
    main = "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in (code + show).splitlines())
    done = subprocess.run([python, "-c", main], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check_worker(procs, command, data):
    """Run as the batch system would: in an environment that knows nothing of a collector."""
    env = {name: value for name, value in procs.env.items() if name != "CREMA_COLLECTOR"}
    job = cluster.Process("job", command, procs.directory / "job.log", env=env, cwd=procs.directory)
    procs.workers.append(job)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "recipe", jobs.read_whole, data["zstd"])
    assert task["read_bytes"] == n == os.path.getsize(data["zstd"])


def test_slurm(procs, jobqueue, data, tmp_path):
    procs.start_scheduler()
    script = rendered(jobqueue, "dask-jobqueue: Slurm", procs.env, procs.address)
    assert "#SBATCH --cpus-per-task=1" in script and "\ncrema run -- python -m distributed.cli.dask_worker" in script
    file = tmp_path / "job.sh"
    file.write_text(script.replace("login.example.org:8990", procs.target))
    check_worker(procs, ["bash", file], data)


@pytest.mark.matrix
def test_htcondor(procs, jobqueue, data):
    procs.start_scheduler()
    job = rendered(jobqueue, "dask-jobqueue: HTCondor", procs.env, procs.address)
    said = dict(line.split(" = ", 1) for line in job.splitlines() if " = " in line)
    # HTCondor's own rule for arguments in double quotes: single quotes hold a word together.
    words = shlex.split(said["Arguments"].strip().strip('"').replace('""', '"'))
    assert said["Executable"] == "/bin/sh" and words[0] == "-c" and len(words) == 2
    command = words[1].replace("submit.example.org:8990", procs.target)
    check_worker(procs, [said["Executable"], "-c", command], data)
