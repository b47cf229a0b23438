# SPDX-License-Identifier: BSD-3-Clause
"""docs/recipes.md, literally: what it describes as run or rendered is run and rendered here."""

import json
import os
import re
import subprocess
import sys

import cluster
import gateway
import jobs
import pytest
from distributed import Client
from recipes import beside, blocks, sections, without_collector

MARKS = ("Tested", "Configuration rendered", "Not tested")


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


def run_local_cluster(env, folder):
    commands, script = blocks("LocalCluster")
    (folder / "analysis.py").write_text(script)
    run, report = commands.splitlines()
    done = subprocess.run(["bash", "-c", run], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "55\n"), done.stderr[-2000:]
    return report


def test_local_cluster(procs, tmp_path):
    run_local_cluster(procs.env, tmp_path)
    found = jobs.settled(procs, lambda r: len(r["tasks"]) >= 10)
    assert len(found["tasks"]) == 10 and found["completeness"]["workers_seen"] == 2


def test_local_cluster_without_a_collector(tmp_path):
    """In an empty home: the report reads the files that the agents wrote there."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA", "LD_PRELOAD", "XDG"))}
    env |= {"HOME": str(tmp_path), "PATH": f"{cluster.BUILD}:{os.path.dirname(sys.executable)}:{env['PATH']}"}
    report = run_local_cluster(env, tmp_path)

    def ten():
        done = subprocess.run(["bash", "-c", f"{report} --json -"], env=env, capture_output=True, text=True)
        found = json.loads(done.stdout) if done.returncode == 0 else None
        return found if found and len(found["tasks"]) == 10 else None

    found = cluster.wait_until(ten, "the report of ten tasks", 60)
    assert {t["status"] for t in found["tasks"]} == {"ok"} and found["completeness"]["workers_seen"] == 2


def check_worker(procs, command, data, own=None):
    """Runs the job as the batch system would: without a collector's address except for the job's own."""
    env = without_collector(procs) | (own or {})
    job = cluster.Process("job", command, procs.directory / "job.log", env=env, cwd=procs.directory)
    procs.workers.append(job)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "recipe", jobs.read_whole, data["zstd"])
    assert task["read_bytes"] == n == os.path.getsize(data["zstd"])


GATEWAY_JOB = """
import sys
from dask_gateway import Gateway
def read(path):
    with open(path, "rb") as file:
        return len(file.read())
with Gateway(sys.argv[1], proxy_address=sys.argv[2], auth="basic") as gateway, gateway.new_cluster() as cluster:
    cluster.scale(1)
    with cluster.get_client() as client:
        client.wait_for_workers(1, timeout=60)
        print(client.submit(read, sys.argv[3], key="recipe-gateway").result())
"""


def test_gateway(procs, data, tmp_path):
    """Its workers have certificates that the collector cannot verify."""
    config, = blocks("dask-gateway")
    config = config.replace("collector.example.org:8990", procs.target)
    config += f"c.ClusterConfig.environment['CREMA_TOKEN_FILE'] = {procs.env['CREMA_TOKEN_FILE']!r}\n"
    place, env = gateway.environment(), without_collector(procs)
    env["PATH"] = f"{place}:{env['PATH']}"
    with gateway.Gateway(tmp_path / "gateway") as server:
        server.start(place, config, env)
        done = subprocess.run([place / "python", "-c", GATEWAY_JOB, server.address, server.tcp, data["zstd"]], env=env, capture_output=True,
                              text=True, timeout=180)
        assert done.returncode == 0, done.stderr[-2000:] + server.process.text()[-3000:]
        n = int(done.stdout)
        found = jobs.settled(procs, lambda r: r["tasks"])
    (task,) = [t for t in found["tasks"] if t["key"] == "recipe-gateway"]
    assert task["read_bytes"] == n == os.path.getsize(data["zstd"])
    assert found["completeness"]["records_lost"] == 0


# Instead of the operator: prints the recipe's cluster and its worker group without sending them.
OPERATOR = """
import inspect, json
import dask_kubernetes.operator as operator
from dask_kubernetes.operator.controller.controller import build_worker_deployment_spec
def show(**given):
    inspect.signature(real).bind(None, **given)
    worker = operator.make_cluster_spec(**given)["spec"]["worker"]["spec"]
    made = build_worker_deployment_spec("measured-default", "default", given["name"], "0a1b", worker, {}, {})
    print(json.dumps(made["spec"]["template"]["spec"]))
real, operator.KubeCluster = operator.KubeCluster.__init__, show
"""


@pytest.mark.matrix
def test_operator(procs, data):
    procs.start_scheduler()
    code = blocks("Kubernetes: operator")[0]
    done = subprocess.run([beside("operator") / "python", "-c", OPERATOR + code], env=procs.env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    (container,) = json.loads(done.stdout)["containers"]
    own = {entry["name"]: entry["value"] for entry in container["env"]}
    assert own["CREMA_COLLECTOR"] == "crema-collector:8990" and own["CREMA_TOKEN_FILE"] == "/tmp/crema-token"
    assert container["args"][:5] == ["crema", "run", "--", "dask", "worker"] and "command" not in container
    words = [re.sub(r"\$\((\w+)\)", lambda found: own[found[1]], word) for word in container["args"]]  # as the kubelet does
    own |= {"CREMA_COLLECTOR": procs.target, "CREMA_TOKEN_FILE": procs.env["CREMA_TOKEN_FILE"],
            "DASK_SCHEDULER_ADDRESS": procs.address}
    check_worker(procs, words, data, own)
