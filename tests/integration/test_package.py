# SPDX-License-Identifier: BSD-3-Clause
"""What `make package` makes, installed as a user would and run with real Dask. Wheels take minutes of pip and, for
the portable programs, of compiling, so they are matrix cells; a normal run tests the .deb and its unit."""

import configparser
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import cluster
import jobs
import packages
import pip_install
import pytest
import venvs
from distributed import Client
from test_golden import GOLDEN, says_what_it_said

PACKAGE = cluster.ROOT / "package"
BUILD_SECONDS = 3600  # a fresh build of the libraries on two busy cores


def done(command, **options):
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=options.pop("timeout", 300), **options)
    return result


def right(command, **options):
    result = done(command, **options)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def packer():
    """A Python with the tools that make wheels."""
    text = (PACKAGE / "requirements.txt").read_text()
    return venvs.make(venvs.VENVS / "package", "", ["-r", PACKAGE / "requirements.txt"], text) / "python"


def fresh(place, what):
    """A user's environment with Dask, in which pip installs `what`."""
    return venvs.make(place, "", ["--no-deps", what], install=pip_install.by_pip)


def run_job(procs, crema, python, path):
    """A real task on one worker below `crema run`, with the collector and the report of the same installation."""
    procs.start_collector()
    procs.start_scheduler()
    procs.dask = lambda *args: [python, "-m", "dask", *args]
    procs.start_worker(prefix=lambda output, env: ["env", f"CREMA_COLLECTOR={procs.target}", crema, "run", "--"],
                       shim=False)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "packaged", jobs.read_whole, path)
        (maps,) = client.run(jobs.mapped_files).values()
    assert task["read_bytes"] == n == os.path.getsize(path)
    return [name for name in maps if name.endswith("/libcrema.so")]


def package_bin(bin_dir):
    return next(bin_dir.parent.glob("lib/python3*/site-packages/crema/bin"))


def check_installed(procs, bin_dir, path):
    """The command in the environment runs the package's programs, and nothing of this tree."""
    procs.env["PATH"] = f"{bin_dir}:/usr/bin:/bin"
    procs.env["PYTHONPATH"] = os.pathsep.join(
        folder for folder in procs.env["PYTHONPATH"].split(os.pathsep) if folder != str(cluster.ROOT / "python"))
    procs.build = package_bin(bin_dir)
    loaded = run_job(procs, bin_dir / "crema", bin_dir / "python", path)
    assert loaded == [str(procs.build / "libcrema.so")]
    (agent,) = procs.agents()
    assert os.readlink(f"/proc/{agent}/exe") == str(procs.build / "crema-agent")
    found = right([bin_dir / "python", "-c", "from crema import program; print(program.find())"], env=procs.env)
    assert found.strip() == str(procs.build / "crema")


def check_pages(bin_dir):
    """man finds the environment's pages by its bin directory; the completions are where bash, zsh and fish search below a prefix."""
    share = bin_dir.parent / "share"
    for name in ("bash-completion/completions/crema", "zsh/site-functions/_crema", "fish/vendor_completions.d/crema.fish"):
        assert (share / name).read_text() == (cluster.BUILD / "completion" / Path(name).name).read_text()
    env = {name: value for name, value in os.environ.items() if name != "MANPATH"} | {"PATH": f"{bin_dir}:{os.environ['PATH']}"}
    for page in (cluster.ROOT / "man").glob("*.txt"):
        assert right(["man", "--where", "1", page.stem], env=env).strip() == str(bin_dir.parent / "share/man/man1" / f"{page.stem}.1")


@pytest.mark.matrix
def test_wheel_of_this_machine(packer, new_cluster, data, tmp_path):
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import make_wheel as m; from pathlib import Path; " \
           f"m.stage(Path({str(tmp_path / 'stage')!r}), Path({str(cluster.BUILD)!r}))"
    right([packer, "-c", code])
    right([packer, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, tmp_path / "stage"])
    (wheel,) = tmp_path.glob("crema_hep-*.whl")
    bin_dir = fresh(tmp_path / "venv", wheel)
    check_pages(bin_dir)
    check_installed(new_cluster(), bin_dir, data["zstd"])


@pytest.mark.further
def test_the_same_wheel_twice(packer, tmp_path):
    """Other folders, another umask, another order and another time give the same bytes."""
    code = "import os, sys; sys.path.insert(0, sys.argv[1]); import make_wheel as m; from pathlib import Path; os.umask(int(sys.argv[4], 8)); " \
           "m.stage(Path(sys.argv[2]), Path(sys.argv[3])); print(m.pack(Path(sys.argv[2]), Path(sys.argv[2] + '-out'), 'manylinux2014_x86_64'))"
    wheels = []
    for name, umask, age in (("one", "022", 0), ("other/folder", "077", 86_400 * 400)):
        programs = tmp_path / name / "programs"
        programs.mkdir(parents=True)
        for program in ("crema", "crema-agent", "libcrema.so")[::-1 if age else 1]:
            shutil.copy(cluster.BUILD / program, programs)
            os.utime(programs / program, (time.time() - age,) * 2)
        stage = str(tmp_path / name / "stage")
        wheels.append(Path(right([packer, "-c", code, PACKAGE, stage, programs, umask]).splitlines()[-1]).read_bytes())
    assert wheels[0] == wheels[1] and len(wheels[0]) > 100_000


def test_programs_that_name_their_folder(packer, tmp_path):
    """Programs with such a path would have other bytes if they were made elsewhere."""
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("crema/bin/crema", b"\0built in " + os.fsencode(cluster.ROOT / "build") + b"\0")
        wheel.writestr("crema/bin/libcrema.so", b"\0built in /usr\0")
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import make_wheel as m; print(m.naming_this_folder(sys.argv[1]))"
    assert right([packer, "-c", code, tmp_path / "x.whl"]) == "['crema/bin/crema']\n"


@pytest.mark.matrix
def test_programs_for_new_machines_only_are_refused(packer, tmp_path):
    """auditwheel refuses programs that need this machine's libraries under a name that promises old nodes."""
    result = done([packer, PACKAGE / "make_wheel.py", "--programs", cluster.BUILD, "--arch", os.uname().machine,
                   "--glibc", "2.17", "--out", tmp_path])
    assert result.returncode == 1 and "not on manylinux_2_17" in result.stderr
    assert "libmsgpackc" in result.stderr
    assert not list(tmp_path.iterdir())


RENDER = """
import json, sys
import rattler_build
(variant,) = rattler_build.Stage0Recipe.from_file(sys.argv[1]).render()
print(json.dumps(variant.recipe.to_dict()))
"""


@pytest.mark.matrix
def test_conda_recipe_is_rendered():
    """Its version is the program's, and its source is a wheel with the name that make_wheel.py uses."""
    python = venvs.beside("conda", cluster.ROOT / "tests" / "conda.txt") / "python"
    found = json.loads(right([python, "-c", RENDER, PACKAGE / "conda" / "recipe.yaml"]))
    version = right([cluster.BUILD / "crema", "--version"]).split()[1]
    assert found["package"] == {"name": "crema-hep", "version": version}
    (source,) = found["source"]
    assert (PACKAGE / "conda" / source["path"]).resolve() == cluster.BUILD / "package"
    assert fnmatch.fnmatch(f"crema_hep-{version}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", *source["filter"])
    assert found["tests"][1]["script"][0] == "crema --version"


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    """The .deb, unpacked."""
    place = tmp_path_factory.mktemp("deb")
    right([PACKAGE / "make-deb", place])
    (file,) = place.glob("*.deb")
    right(["dpkg", "-x", file, place / "tree"])
    return file, place / "tree"


@pytest.mark.further
def test_deb_runs(deb, new_cluster, data):
    _, tree = deb
    procs = new_cluster()
    procs.build = tree / "usr" / "bin"
    loaded = run_job(procs, tree / "usr/bin/crema", sys.executable, data["zstd"])
    assert loaded == [str(tree / "usr/lib/crema/libcrema.so")]
    (agent,) = procs.agents()
    assert os.readlink(f"/proc/{agent}/exe") == str(tree / "usr/libexec/crema/crema-agent")


def test_deb_control(deb):
    """Every library that the programs need is in a package that the .deb depends on."""
    file, tree = deb
    depends = {word.split()[0] for word in right(["dpkg-deb", "-f", file, "Depends"]).strip().split(", ")}
    owners = set()
    for program in ("usr/bin/crema", "usr/libexec/crema/crema-agent"):
        needed = [line.split("[")[1].split("]")[0] for line in right(["readelf", "-d", tree / program]).splitlines()
                  if "(NEEDED)" in line]
        for line in right(["ldd", tree / program]).splitlines():
            if line.split()[0] in needed:
                path = os.path.realpath(line.split()[2])
                owner = done(["dpkg", "-S", path])
                owner = owner if owner.returncode == 0 else done(["dpkg", "-S", path.removeprefix("/usr")])
                owners.add(owner.stdout.split(":")[0])
    assert len(owners) > 8 and owners <= depends
    assert right(["dpkg-deb", "-f", file, "Version"]).strip() == \
        right([tree / "usr/bin/crema", "--version"]).split()[1]
    names = right(["dpkg-deb", "-c", file])
    for page in (cluster.ROOT / "man").glob("*.txt"):
        assert f"/man1/{page.stem}.1.gz" in names
    assert not [line for line in names.splitlines() if line.split()[1] != "root/root"]


def test_version_says_what_is_left_out(deb):
    """The linked libraries show what was built in."""
    program = deb[1] / "usr/bin/crema"
    said, needed = right([program, "--version"]), right(["readelf", "-d", program])
    for library in ("uring", "deflate"):
        assert (f"[lib{library}.so" in needed) != (f"without {'io_' if library == 'uring' else 'lib'}{library}" in said)
    assert ("without" in said or "portable" in said) == (len(said.splitlines()) > 1)


def debian(file, place, *more):
    """A fresh Debian of this machine's release with the .deb's dependencies and these packages."""
    depends = [word.split()[0] for word in right(["dpkg-deb", "-f", file, "Depends"]).strip().split(", ")]
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    lists = [p for p in (*Path("/etc/apt/sources.list.d").glob("debian.sources"), Path("/etc/apt/sources.list"))
             if p.exists()]
    program = packages.unpacked("mmdebstrap", "mmdebstrap") / "usr/bin/mmdebstrap"
    right([program, "--variant=minbase", f"--include={','.join([*depends, *more])}", release["VERSION_CODENAME"], place,
           lists[0]], timeout=1500)
    return place


@pytest.fixture(scope="module")
def system(deb, tmp_path_factory):
    """A function that runs a command in a fresh Debian, as its first process, and the system's folder."""
    if os.geteuid():
        pytest.skip("a throw-away system needs root")
    place = debian(deb[0], tmp_path_factory.mktemp("system") / "root")

    def inside(*command):
        return done(["unshare", "--mount", "--pid", "--fork", f"--root={place}", "--wd=/", "--mount-proc", "env", "-i",
                     "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command])

    yield inside, place
    shutil.rmtree(place)


def files_of(place):
    """{name: (mode, size)} of a system's files, without dpkg's own records."""
    found = {}
    for path in place.rglob("*"):
        name = path.relative_to(place)
        if name.parts[0] in ("proc", "sys", "dev") or str(name).startswith(("var/lib/dpkg", "var/log/dpkg.log")):
            continue
        status = path.lstat()
        found[str(name)] = (status.st_mode, 0 if path.is_dir() else status.st_size)
    return found


@pytest.mark.matrix
def test_deb_in_a_fresh_system(deb, system):
    """dpkg -i, a report, crema doctor, dpkg -r: nothing is left."""
    signal.alarm(BUILD_SECONDS)
    inside, place = system
    (place / "tmp/journal").mkdir()
    (place / "tmp/journal" / f"{'0' * 20}-journal.crema").write_bytes(GOLDEN.read_bytes())
    shutil.copy(deb[0], place / "tmp/crema.deb")
    before = files_of(place)
    installed = inside("dpkg", "-i", "/tmp/crema.deb")
    assert installed.returncode == 0 and "Setting up crema" in installed.stdout, installed.stdout + installed.stderr
    assert inside("dpkg", "--audit").stdout == ""
    says = inside("crema", "--version")
    assert (says.returncode, says.stdout) == (0, right([deb[1] / "usr/bin/crema", "--version"])), says.stderr
    told = inside("crema", "report", "--dir", "/tmp", "--json", "-")
    assert told.returncode == 0 and not told.stderr, told.stderr
    says_what_it_said(json.loads(told.stdout))
    doctor = inside("crema", "doctor")
    assert doctor.returncode == 0 and doctor.stdout.startswith("0 problems, "), doctor.stdout
    assert "/usr/lib/crema/libcrema.so can be preloaded" in doctor.stdout and "crema-agent" in doctor.stdout
    removed = inside("dpkg", "-r", "crema")
    assert removed.returncode == 0 and "warning" not in removed.stderr, removed.stdout + removed.stderr
    after = files_of(place)
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} == set()


@pytest.fixture
def unit(deb, tmp_path):
    """The unit, with the unpacked program's path."""
    text = (deb[1] / "usr/lib/systemd/system/crema-collect.service").read_text()
    file = tmp_path / "crema-collect.service"
    file.write_text(text.replace("/usr/bin/crema", str(deb[1] / "usr/bin/crema")))
    return file


def test_unit_is_in_order(unit):
    result = done(["systemd-analyze", "verify", "--man=no", unit])
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    lines = right(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit]).splitlines()
    (overall,) = [line for line in lines if "Overall exposure" in line]
    assert float(overall.split(":")[1].split()[0]) < 2


def test_unit_starts_a_collector(unit, tmp_path):
    """The command in its ExecStart and Environment, with systemd's variables filled in, listens and keeps its files in its folder."""
    text = configparser.ConfigParser(strict=False, interpolation=None)
    text.optionxform = str
    text.read(unit)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    name, _, value = text["Service"]["Environment"].partition("=")
    command = text["Service"]["ExecStart"].replace("${STATE_DIRECTORY}", str(state)).split()
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    env = {"PATH": "/usr/bin", name: value.replace("/var/lib/crema", str(state))}
    process = cluster.Process("unit", command, tmp_path / "log", env=env)
    try:
        cluster.wait_until(lambda: "127.0.0.1:" in process.text(), "the unit's collector", 60, [process])
    finally:
        assert process.stop() == 0
    assert (state / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.matrix
def test_portable_wheel(new_cluster, data, tmp_path):
    """The programs for old nodes, built from Debian's sources, in a fresh environment."""
    signal.alarm(BUILD_SECONDS)  # instead of the usual hang limit
    right([cluster.ROOT / "scripts" / "package", "wheel"], timeout=BUILD_SECONDS)
    (wheel,) = (cluster.BUILD / "package").glob(f"*_{os.uname().machine}.whl")
    assert "manylinux_2_17" in wheel.name and "manylinux2014" in wheel.name
    bin_dir = fresh(tmp_path / "venv", wheel)
    check_pages(bin_dir)
    for name in ("crema", "crema-agent", "libcrema.so"):
        versions = {line.split("GLIBC_")[1].split()[0].strip("()") for line in
                    right(["readelf", "-VW", package_bin(bin_dir) / name]).splitlines() if "Name: GLIBC_" in line}
        assert versions and max(tuple(map(int, v.split("."))) for v in versions) <= (2, 17)
    said = right([bin_dir / "crema", "--version"])
    assert all(text in said for text in ("no https", "without io_uring", "without libdeflate", "without NATS")), said
    check_installed(new_cluster(), bin_dir, data["zstd"])
