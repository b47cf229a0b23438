"""`crema doctor` and the workers of two users: each sees its own, and --all-users shows all of them. In a separate PID namespace,
because root's doctor would contact the collectors of the workers that other tests run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CREMA = Path(__file__).resolve().parents[2] / "build" / "crema"
OTHER = 65533
MADE = ["unshare", "--pid", "--fork", "--mount-proc"]


def worker(uid):
    """A process of that user whose command line is that of `dask worker --no-nanny`."""
    return subprocess.Popen(["python", "-c", "echo ready; read line", "dask", "worker", "--no-nanny"], executable="/bin/bash", user=uid, group=uid,
                            extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")


def agent(uid):
    """An agent of that user, which outlives its worker: recognized by its name and its mapped file."""
    hold = ("import mmap, sys, tempfile\nwith tempfile.NamedTemporaryFile(prefix='crema-', dir='/dev/shm') as shm:\n  shm.write(bytes(4096))\n  shm.flush()\n"
            "  held = mmap.mmap(shm.fileno(), 4096)\nprint('ready', flush=True)\nsys.stdin.readline()")
    return subprocess.Popen(["/opt/crema/crema-agent", "-c", hold], executable="/usr/bin/python3", user=uid, group=uid, extra_groups=[],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")


def doctor(home, uid, *args):
    """The pids of the reported workers, and the text of the lines."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "CREMA_COLLECTOR": "dir:/nowhere"}
    with open(CREMA, "rb") as program:  # other users may have no access to its folder
        done = subprocess.run([f"/proc/self/fd/{program.fileno()}", "doctor", "--json", *args], env=env, user=uid, group=uid, extra_groups=[], cwd="/",
                              pass_fds=[program.fileno()], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    text = "\n".join(f"{line['about']}: {line['text']}" for line in json.loads(done.stdout)["lines"])
    return set(map(int, re.findall(r"^worker: (\d+) ", text, re.M))), text


@pytest.mark.skipif(os.geteuid() != 0 or subprocess.run([*MADE, "true"], capture_output=True).returncode != 0, reason="another user can be had as root only")
def test_each_sees_its_own_workers(tmp_path):
    done = subprocess.run([*MADE, sys.executable, __file__, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"root": ["root"], "root, all": ["other", "root"], "other": ["other"], "other, all": ["other", "root"],
                                       "one": ["other"], "hidden": True}


@pytest.mark.skipif(subprocess.run([*MADE, "true"], capture_output=True).returncode != 0, reason="no separate PID namespace")
def test_a_program_in_a_folder_named_crema(tmp_path):
    """Only a file named as counters are makes a process a worker, not a folder such as /opt/crema-0.1."""
    folder = tmp_path / "crema-0.1"
    folder.mkdir()
    shutil.copy(CREMA, folder / "crema")
    done = subprocess.run([*MADE, folder / "crema", "doctor", "--json"], env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
                          capture_output=True, text=True, timeout=120)
    lines = [line["text"] for line in json.loads(done.stdout)["lines"] if line["about"] == "worker"]
    assert lines == ["no Dask worker runs on this machine now"]


def main(home):
    started, agents = {"root": worker(0), "other": worker(OTHER)}, [agent(0), agent(OTHER)]
    for one in [*started.values(), *agents]:
        assert one.stdout.readline() == b"ready\n"

    def named(uid, *args):
        shown, text = doctor(home, uid, *args)
        assert shown <= {one.pid for one in started.values()}
        return sorted(name for name, one in started.items() if one.pid in shown), text

    text = named(OTHER, "--all-users")[1]
    print(json.dumps({
        "root": named(0)[0], "root, all": named(0, "--all-users")[0], "other": named(OTHER)[0], "other, all": named(OTHER, "--all-users")[0],
        "one": named(0, "--worker", str(started["other"].pid))[0],
        "hidden": f"worker: {started['root'].pid} belongs to user 0: its memory and environment are hidden" in text}))
    for one in [*started.values(), *agents]:
        one.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
