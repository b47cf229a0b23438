"""Schedulers and nannies that are forks for tests (forks.py) behave as those that a user starts, and so do the workers of such nannies."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import cluster
import forks
import jobs
import pytest


def traits():
    """What exec, the environment and the command line determine in this process."""
    def described():
        import os
        import signal
        import sys

        import dask

        handlers = {str(number): type(signal.getsignal(number)).__name__ + ":" + getattr(signal.getsignal(number), "name", "")
                    for number in signal.valid_signals()}
        files = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)}
        return {"argv": sys.argv, "path": sys.path, "environment": dict(os.environ), "folder": os.getcwd(), "handlers": handlers,
                "files": files, "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()], "config": dask.config.config,
                "main": sys.modules["__main__"].__file__, "ours": "libcrema.so" in open("/proc/self/maps").read()}

    return described


def leaves(value, name=""):
    """{path: value} of the innermost values."""
    if not isinstance(value, dict) or not value:
        return {name: value}
    return {k: v for key, each in value.items() for k, v in leaves(each, f"{name}.{key.replace('_', '-')}").items()}


@pytest.fixture(scope="module")
def both(tmp_path_factory, homes):
    """{forked: (traits of the scheduler, the nanny and the worker; their exit statuses)}"""
    found = {}
    for forked in (True, False):
        directory = tmp_path_factory.mktemp("forks") / "cluster"
        with cluster.Cluster(directory, {**homes, "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "0.61"}) as procs:
            if not forked:
                procs.forks = None
            with jobs.measured(procs) as client:
                assert isinstance(procs.scheduler, forks.Forked) == isinstance(procs.workers[0], forks.Forked) == forked
                traits_of = {"scheduler": client.run_on_scheduler(traits())}
                for who, nanny in (("nanny", True), ("worker", False)):
                    (traits_of[who],) = client.run(traits(), nanny=nanny).values()
                names = {str(directory): "DIRECTORY", procs.address: "ADDRESS", procs.target: "TARGET", sys.prefix: "VENV", os.path.realpath(sys.prefix): "VENV"}
            procs.workers[0].signal_group(signal.SIGKILL)
            ended = [procs.workers[0].wait(20), procs.scheduler.stop()]
        text = json.dumps(traits_of, sort_keys=True, default=str)
        for old, new in names.items():
            text = text.replace(old, new)
        found[forked] = json.loads(re.sub(r"(?<=space/scheduler-)\w{8}|(?<=space/worker-)\w{8}|(?<=PARENT_PID\": \")\d+", "", text)), ended
    return found


@pytest.mark.parametrize("who", ["scheduler", "nanny", "worker"])
def test_traits(both, who):
    fork, program = both[True][0][who], both[False][0][who]
    assert program["config"]["distributed"]["worker"]["memory"]["spill"] == 0.61
    # A nanny does not have the library, as it started before LD_PRELOAD was set; its worker has.
    assert (fork.pop("ours"), program.pop("ours")) == {"scheduler": (False, False), "nanny": (False, True), "worker": (True, True)}[who]
    fork, program = leaves(fork), leaves(program)
    assert {name: (fork.get(name), program.get(name)) for name in fork.keys() | program.keys() if fork.get(name) != program.get(name)} == {}


def test_status(both):
    assert both[True][1] == both[False][1] and both[True][1][0] == -signal.SIGKILL


SHOWN = """
import gc, json, sys
import distributed.cli.dask_worker, distributed.nanny, dask
print(json.dumps([dask.config.config, gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks),
                  sorted(n for n in sys.modules if n != "sitecustomize")], default=str))
"""


def test_quick_start():
    """A program that starts quickly has the same modules, the same configuration, and collects garbage."""
    shown = []
    for folders in ([], [str(Path(__file__).with_name("quick_start"))]):
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": os.pathsep.join(folders)}
        done = subprocess.run([sys.executable, "-c", SHOWN], env=env, capture_output=True, text=True, check=True, timeout=120)
        shown.append(json.loads(done.stdout))
    assert shown[0] == shown[1] and shown[1][1]
