"""Parsl beside the tests' own packages: a venv below build/, made once."""

import subprocess
import sys
import sysconfig

import cluster

PLACE = cluster.BUILD / "parsl"
LIST = cluster.ROOT / "tests" / "parsl.txt"


def python():
    """The interpreter that has both."""
    mark = PLACE / "mark"
    wanted = LIST.read_text() + sys.version
    if not mark.exists() or mark.read_text() != wanted:
        run(sys.executable, "-m", "venv", "--clear", PLACE)
        packages = next(PLACE.glob("lib/python3*/site-packages"))
        (packages / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")
        run(PLACE / "bin" / "pip", "install", "--quiet", "-r", LIST)
        mark.write_text(wanted)
    return PLACE / "bin" / "python"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{command}: {done.stderr[-3000:]}"
