"""The recipes for batch systems, run by these: Debian's Slurm and HTCondor (batch.py) start the workers as docs/recipes.md says,
and kill a job while its task runs."""

import json
import os

import batch
import cluster
import jobs
import pytest
from recipes import beside, blocks, without_collector

pytestmark = pytest.mark.further


@pytest.fixture(params=batch.SYSTEMS)
def system(request, new_cluster, tmp_path):
    procs = new_cluster()
    env = without_collector(procs) | {"PATH": f"{procs.build}:{beside('jobqueue')}:{procs.env['PATH']}"}
    (tmp_path / "batch").mkdir()
    with batch.SYSTEMS[request.param](tmp_path / "batch", env) as made:
        procs.start_collector()
        yield made, procs


def recipe(made, procs, folder):
    file = folder / "recipe.py"
    text = blocks(made.title)[0].replace(made.address, procs.target)
    file.write_text(text.replace("/home/you/.config/crema/token", procs.env["CREMA_TOKEN_FILE"]))
    return file


def is_running(procs, key):
    """Whether its records have arrived: what a task did in the moment before its job is killed is lost."""
    done = procs.report("--json", "-")
    return done.returncode == 0 and any(t["key"] == key and t["read_bytes"] for t in json.loads(done.stdout)["tasks"])


def test_recipe_and_a_killed_job(system, data, tmp_path):
    made, procs = system
    mark, path = tmp_path / "held", data["zstd"]
    script = cluster.Process("script", [*made.as_user, "python", jobs.ROOT / "tests" / "integration" / "batch_job.py",
                                        recipe(made, procs, tmp_path), path, mark], tmp_path / "script.log", env=made.env, cwd=tmp_path)
    try:
        cluster.wait_until(lambda: mark.exists() and is_running(procs, "recipe-held"), "the second task", 180, [script])
        made.kill(mark.read_text())
        found = jobs.settled(procs, lambda r: len(r["tasks"]) == 3, seconds=120)
        mark.unlink()
        assert script.wait(180) == 0, script.text()
        n = os.path.getsize(path)
        assert script.text().split()[-2:] == [str(n)] * 2
        found = jobs.settled(procs, lambda r: all(w["goodbye"] or w["silent"] for w in r["workers"]))
    finally:
        script.stop()
    read, first, second = sorted(found["tasks"], key=lambda t: (t["key"] != "recipe-read", t["start"]))
    assert [t["read_bytes"] for t in (read, first, second)] == [n] * 3
    # lost: its agent was killed at the same time
    assert (read["status"], second["status"]) == ("ok", "ok") and first["status"] in made.killed
    ends = {w["worker"]: w["goodbye"] for w in found["workers"]}
    ended = ends.pop(first["worker"])
    assert (ended and ended["how"]) == {"killed": "killed", "lost": None}[first["status"]]
    assert ends and all(ends.values())
    assert found["state"]["state"] == "finished"
