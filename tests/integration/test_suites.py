"""CPython's own tests end in the same way with and without the preload. All of them: make compare-suites."""

import signal
import subprocess
import sys

import jobs
import pytest
import venvs

SECONDS = 7200
PROGRAM = jobs.ROOT / "scripts" / "compare_suites.py"
BROKEN = "#include <errno.h>\nint msync(void *a, unsigned long n, int f) { errno = EIO; return -1; }\n"


def compare(tmp_path, *options):
    return subprocess.run([sys.executable, PROGRAM, "--output", tmp_path, *options], capture_output=True, text=True)


def interpreter(version):
    return venvs.interpreter(version) or pytest.skip("no such Python on this machine")


@pytest.mark.further
@pytest.mark.parametrize("version", venvs.each())
def test_some_suites(tmp_path, version):
    done = compare(tmp_path, "--short", "--python", interpreter(version))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_difference_is_found(tmp_path):
    """A library that breaks something is detected; otherwise the comparison would prove nothing."""
    source, library = tmp_path / "broken.c", tmp_path / "broken.so"
    source.write_text(BROKEN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    done = compare(tmp_path, "--only", "test_mmap", "--library", library)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "passed without, error with the preload" in done.stdout


@pytest.mark.matrix
@pytest.mark.parametrize("version", venvs.each())
def test_all_suites(tmp_path, version):
    signal.alarm(SECONDS)  # instead of the usual hang limit
    done = compare(tmp_path, "--python", interpreter(version))
    assert done.returncode == 0, done.stdout + done.stderr
