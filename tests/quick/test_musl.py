"""Programs of another C library behave under the preload as they do without it."""

import json
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


WAITS = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv("LD_PRELOAD") ? "preloaded" : "bare"); fflush(stdout); return getchar() == \'x\' ? 7 : 1; }\n'


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    """{compiler: a program that prints whether the variable is set and then waits for a character}"""
    folder = tmp_path_factory.mktemp("waits")
    (folder / "waits.c").write_text(WAITS)
    for compiler in ("musl-gcc", "gcc"):
        subprocess.run([compiler, "-o", folder / compiler, folder / "waits.c"], check=True)
    return {compiler: folder / compiler for compiler in ("musl-gcc", "gcc")}


@pytest.mark.parametrize("way", ["path", "name", "script", "script of a script"])
def test_crema_run_names_it_and_runs_it(waits, tmp_path, way):
    """One line, and the program runs; what it starts may be measured, so the variable stays."""
    musl, glibc = waits["musl-gcc"], waits["gcc"]
    for name, to in (("one", musl), ("two", tmp_path / "one"), ("fine", glibc)):
        (tmp_path / name).write_text(f"#! {to}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"/nowhere::{musl.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "CREMA_QUIET": "on"}

    def run(command):
        done = subprocess.run([cluster.BUILD / "crema", "run", "--", command], env=env, cwd="/", input="x", capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (7, "preloaded\n")
        return done.stderr

    said = run({"path": musl, "name": musl.name, "script": tmp_path / "one", "script of a script": tmp_path / "two"}[way])
    assert said == f"crema: run: '{musl}' is not measured, because it uses musl (Alpine): use a Python built for glibc\n"
    assert run({"path": glibc, "name": "./" + str(glibc), "script": tmp_path / "fine"}.get(way, glibc)) == ""


ENV = ["env {}", "env -S {}", "env -S{} -u", "env -S ONE=1 TWO=2 {} -u -c 'a b'"]


@pytest.mark.parametrize("line", ENV)
def test_a_script_whose_interpreter_env_finds(waits, tmp_path, line):
    """Named is the program that env finds in PATH. There, a folder of that name is none, as for execvp()."""
    (tmp_path / "first" / "any").mkdir(parents=True)
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/{line.format('any')}\n")
    script.chmod(0o755)
    for compiler, told in (("gcc", False), ("musl-gcc", True)):
        folder = tmp_path / compiler
        folder.mkdir()
        (folder / "any").symlink_to(waits[compiler])
        env = {"PATH": f"{tmp_path / 'first'}:{folder}:/usr/bin:/bin", "HOME": str(tmp_path), "CREMA_QUIET": "on"}
        for command in (script, "any"):
            done = subprocess.run([cluster.BUILD / "crema", "run", "--", command], env=env, input="x", capture_output=True, text=True, timeout=60)
            said = f"crema: run: '{folder / 'any'}' is not measured, because it uses musl (Alpine): use a Python built for glibc\n" * told
            assert (done.returncode, done.stdout, done.stderr) == (7, "preloaded\n", said)


@pytest.mark.parametrize("preload", [True, False])
def test_crema_doctor_names_it(waits, tmp_path, preload):
    """musl's loader loads the library, so the process looks measured."""
    env = {"HOME": str(tmp_path), **({"LD_PRELOAD": str(cluster.BUILD / "libcrema.so")} if preload else {})}
    with subprocess.Popen([waits["musl-gcc"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        done = subprocess.run([cluster.BUILD / "crema", "doctor", "--json", "--worker", str(process.pid)], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
        process.communicate(b"x")
    (line,) = (line for line in json.loads(done.stdout)["lines"] if line["about"] == "worker")
    assert done.returncode == 1 and line["text"] == f"{process.pid} is not measured: '{waits['musl-gcc']}' uses musl (Alpine)"
    assert line["advice"] == "use a Python built for glibc"
