"""TaskVine, built from its source archive (CREMA_TEST_TASKVINE) into build/taskvine, once."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cluster

PLACE = cluster.BUILD / "taskvine"
PARTS = ("dttools", "taskvine", "poncho", "resource_monitor")


def archive():
    path = os.environ.get("CREMA_TEST_TASKVINE")
    return Path(path) if path else None


def execute(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-3000:]}"


def build():
    """Builds it; returns the folder in which it is installed."""
    source = archive()
    mark = hashlib.sha256(source.read_bytes()).hexdigest() + sys.version
    done = PLACE / "mark"
    if done.exists() and done.read_text() == mark:
        return PLACE / "installed"
    shutil.rmtree(PLACE, ignore_errors=True)
    (PLACE / "source").mkdir(parents=True)
    execute("tar", "-xJf", source, "-C", PLACE / "source", "--strip-components=1")
    prefix = PLACE / "installed"
    execute("./configure", "--prefix", prefix, "--with-base-dir", "/", "--with-python3-path", sys.base_prefix,
            "--with-swig-path", "/usr", cwd=PLACE / "source")
    for part in PARTS:
        execute("make", "-j2", "-C", f"{part}/src", cwd=PLACE / "source")
        execute("make", "-C", f"{part}/src", "install", cwd=PLACE / "source")
    done.write_text(mark)
    return prefix


def environment(prefix):
    """What manager and worker need: the module, and a PATH with this Python first."""
    purelib = next(prefix.glob("lib/python3*/site-packages"))
    path = os.pathsep.join([str(Path(sys.executable).parent), str(prefix / "bin"), os.environ["PATH"]])
    return {"PATH": path, "PYTHONPATH": os.pathsep.join([str(purelib), os.environ.get("PYTHONPATH", "")])}
