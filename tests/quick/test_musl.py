"""Programs of another C library behave under the preload as they do without it."""

import subprocess

import pytest
from test_footers import cluster

JOB = cluster.ROOT / "tests" / "quick" / "musl_job.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("musl") / "job"
    subprocess.run(["musl-gcc", "-o", made, JOB], check=True)
    assert b"ld-musl" in made.read_bytes()
    return made


@pytest.mark.parametrize("more", [{}, {"CREMA_COLLECTOR": "dir:/nowhere"}, {"CREMA": "off"}], ids=["bare", "collector", "off"])
def test_a_program_with_musl(program, more):
    def run(preload):
        return subprocess.run([program], env={**more, **({"LD_PRELOAD": str(cluster.BUILD / "libcrema.so")} if preload else {})}, capture_output=True, text=True, timeout=60)

    with_it, without = run(True), run(False)
    assert (with_it.returncode, with_it.stdout, with_it.stderr) == (without.returncode, without.stdout, without.stderr) == (0, without.stdout, "")
    assert without.stdout.split()[1:] == ["30", "3", "3"] and int(without.stdout.split()[0]) > 0
