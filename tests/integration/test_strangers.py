"""Another user of the same machine: who may read the page, what the programs send to a port that is not the
collector's, and what can be put in the way of files and folders."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import cluster
import frames
import pytest
from strangers import NOBODY, NOT_ROOT, as_stranger

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason=NOT_ROOT)


@pytest.fixture
def common():
    """A folder that others can enter, as /tmp is; pytest's are private."""
    made = Path(tempfile.mkdtemp(prefix="crema-strangers-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


# --- files and folders

def journal(folder):
    made = frames.Journal(folder / "state" / "journal")
    made.worker()
    made.task(1, "one")
    return made.write().parent


def html(state, place, trace):
    """The temporary file of a report: (its flags, its name)."""
    done = subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", trace, cluster.BUILD / "crema", "report", "--dir", state,
                           "--html", place], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (found,) = re.findall(r'openat\(AT_FDCWD, "([^"]*\.report\.html\.[^"]*)", ([A-Z_|]+)', trace.read_text())
    return found[1], found[0]


def test_a_report_is_never_anothers_file(common, tmp_path):
    """Hundreds of names that a temporary file could have are there before it, in a folder like /tmp."""
    state, place = journal(tmp_path), common / "sticky"
    place.mkdir()
    place.chmod(0o1777)

    def make(first):
        os.umask(0)
        for pid in range(first, first + 400):
            with open(place / f".report.html.crema-{pid}", "w"):
                pass

    as_stranger(make, os.getpid())
    found = [html(state, place / "report.html", tmp_path / "trace") for _ in range(2)]
    assert all("O_EXCL" in flags and "O_CREAT" in flags for flags, _ in found)
    assert found[0][1] != found[1][1]
    made = (place / "report.html").stat()
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (0, 0o600)
    left = list(place.glob(".report*"))
    assert len(left) == 400 and all(each.stat().st_size == 0 for each in left)


def test_permissions_of_anothers_file_are_not_taken_over(common, tmp_path):
    state = journal(tmp_path)
    place = common / "report.html"
    place.write_text("")
    place.chmod(0o666)
    assert html(state, place, tmp_path / "trace") and stat.S_IMODE(place.stat().st_mode) == 0o666  # one's own
    os.chown(place, NOBODY, NOBODY)
    html(state, place, tmp_path / "trace")
    assert (place.stat().st_uid, stat.S_IMODE(place.stat().st_mode)) == (0, 0o644)


@pytest.mark.parametrize("how", ["another owner", "all may write", "a parent that all may write to"])
def test_folders_of_others_are_refused(common, homes, how):
    """By the collector with one line, before it listens; an agent keeps nothing there."""
    folder = common / "theirs"
    folder.mkdir()
    if how == "another owner":
        os.chown(folder, NOBODY, NOBODY)
    else:
        folder.chmod(0o777)
    given = folder / "below" if "parent" in how else folder
    done = subprocess.run([cluster.BUILD / "crema", "collect", "--listen", f"127.0.0.1:{cluster.free_port()}",
                           "--http", f"127.0.0.1:{cluster.free_port()}"],
                          env={**os.environ, **homes, "CREMA_DIR": str(given)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert str(folder) in done.stderr and ("belongs to another user" if how == "another owner" else "run: chmod") in done.stderr
    assert not list(folder.rglob("*.crema"))
