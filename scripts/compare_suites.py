"""Runs the tests of other projects with and without the preload, and compares how each test ends.

    compare_suites.py [--short] [--only NAME...] [--python PYTHON...] [--distributed TREE] [--project NAME TREE]...
                      [--with PYTHON] [--library LIB] [--output DIR]

CPython's own regression tests run in processes that are not workers: there the library must only do no harm.
The tests of distributed start Workers in the process that runs them, which is therefore armed and has an agent.
Neither its wheel nor its source package contains them, so they only run if a source tree of the installed
version is given. test_socket is left out: it hangs on some machines without any preload.

--project runs the files of TREE/tests, as coffea's and uproot's source packages have them: each test function runs as
a task of a worker and is measured (tests/integration/plugins/as_tasks.py), and so are the workers that tests start.
Of other suites only those of --only run then.

A test that ends differently is run again, up to twice, with and without: only a test that differs each time
counts. Status 0: no differences; 1: some, which are listed; 2: the suites could not run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRIES = 3
SECONDS = 1800  # only a limit for hangs
REFUSED = "skipped under any preload"  # decided by the test itself

CPYTHON = ["test_io", "test_os", "test_mmap", "test_threading", "test_subprocess", "test_zlib", "test_lzma",
           "test_bz2", "test_signal", "test_audit", "test_fork1", "test_thread", "test_queue", "test_fileio",
           "test_posix", "test_select", "test_interpreters", "test_lazy_import", "test_zstd", "test_concurrent_futures"]
# Managers communicate over sockets; these parts do not.
MULTIPROCESSING = [f"test_multiprocessing_{how}.test_{part}" for how in ("fork", "spawn", "forkserver")
                   for part in ("processes", "threads", "misc")]
DISTRIBUTED = ["test_spans", "test_worker_metrics", "test_nanny", "test_actor"]
SHORT = ["test_mmap", "test_zlib", "test_audit"]


class CannotRun(Exception):
    pass


def endings(path):
    """{test: passed, failed, error or skipped} of a JUnit file."""
    found = {}
    for case in xml.parse(path).iter("testcase"):
        inside = {child.tag: child.text or "" for child in case}
        how = next((tag for tag in ("error", "failure", "skipped") if tag in inside), "passed")
        how = REFUSED if how == "skipped" and "LD_PRELOAD" in inside["skipped"] else how
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        found[name] = max(how, found.get(name, ""))  # a test with subtests has a line for each that failed
    return found


def environment(library, directory):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CREMA") and k != "LD_PRELOAD"}
    if library:
        env.update(LD_PRELOAD=str(library), CREMA_COLLECTOR=f"dir:{directory / 'frames'}",
                   XDG_CONFIG_HOME=str(directory / "config"), XDG_STATE_HOME=str(directory / "state"))
    return env


def run(argv, directory, library):
    """The endings of one run of a suite, in a separate directory."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "frames").mkdir(parents=True)
    result = directory / "result.xml"
    with open(directory / "log", "wb") as log:
        try:
            subprocess.run([str(a) for a in argv(result)], cwd=directory, env=environment(library, directory),
                           stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"": "hangs"}
    if not result.exists():
        return {"": f"no result; see {directory / 'log'}"}
    return endings(result)


class Suite:
    """name: its displayed name; argv(result): the command that writes its JUnit file."""

    def __init__(self, name, argv, armed=False):
        self.name, self.argv, self.armed = name, argv, armed

    def compare(self, library, output):
        """(endings without, {test: (without, with)} that differ in every try)."""
        differing = None
        for number in range(TRIES):
            plain = run(self.argv, output / self.name / f"plain-{number}", None)
            preloaded = run(self.argv, output / self.name / f"preloaded-{number}", library)
            found = {test: (plain.get(test), preloaded.get(test)) for test in {*plain, *preloaded}
                     if plain.get(test) != preloaded.get(test) != REFUSED}
            differing = found if differing is None else {t: v for t, v in found.items() if t in differing}
            if not differing:
                break
        self.check_armed(output)
        return plain, differing

    def check_armed(self, output):
        """A suite that should have been measured but was not proves nothing."""
        frames = output / self.name / "preloaded-0" / "frames"
        if self.armed and not any(p.stat().st_size for p in frames.rglob("*") if p.is_file()):
            raise CannotRun(f"{self.name}: no worker of it was measured; see {frames.parent / 'log'}")


def has_module(python, name):
    """Whether the test exists; before 3.12 test_interpreters is left out: with 3.11.7 it hangs without any preload."""
    return subprocess.run([python, "-c", f"import importlib.util as u, sys; "
                           f"sys.exit(not u.find_spec('test.{name}') or ('{name}' == 'test_interpreters' and sys.version_info < (3, 12)))"],
                          stderr=subprocess.DEVNULL).returncode == 0


def cpython_suites(pythons, names):
    """Each module with the first Python that ships it; prints the modules that none ships."""
    for name in names:
        python = next((p for p in pythons if has_module(p, name)), None)
        if python is None:
            print(f"{name}: not shipped with {' or '.join(map(str, pythons))}, left out")
            continue
        # A module inside a package is only found by its full name.
        module = f"test.{name}" if "." in name else name
        yield Suite(name, lambda result, p=python, m=module: [
            p, "-m", "test", "--timeout", "300", "--junit-xml", result, m])


def distributed_suites(names, tree, python):
    for name in names:
        yield Suite(f"distributed-{name}", lambda result, f=tree / "distributed" / "tests" / f"{name}.py": [
            python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tree, "-c", tree / "pyproject.toml",
            "--color=no", "--junit-xml", result, f], armed=True)


def project_suites(projects, python):
    plugins = ROOT / "tests" / "integration" / "plugins"
    for name, tree in projects:
        yield Suite(name, lambda result, tree=Path(tree).absolute(): [
            "env", "-C", tree, f"PYTHONPATH={plugins}", python, "-m", "pytest", "-q", "-p", "as_tasks", "-p", "no:cacheprovider", "--color=no",
            "--timeout=120", "--rootdir", tree, "--junit-xml", result, tree / "tests"], armed=True)


def other_pythons():
    """Other CPythons on this machine that come with multiprocessing's tests."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return sorted(root.glob("versions/3.1[0-9].*/bin/python3"), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="some quick ones only")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these modules only, as test_io or distributed-test_nanny")
    parser.add_argument("--python", nargs="+", type=Path, help="interpreters for CPython's tests")
    parser.add_argument("--distributed", metavar="TREE", type=Path, help="source tree of distributed, for its tests")
    parser.add_argument("--project", nargs=2, action="append", default=[], metavar=("NAME", "TREE"), help="source tree of a project, for its tests")
    parser.add_argument("--with", dest="python_distributed", metavar="PYTHON", default=sys.executable,
                        help="the Python that has distributed, pytest and pytest-timeout")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "libcrema.so")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "suites")
    args = parser.parse_args()
    pythons = [p.absolute() for p in args.python or [Path(sys.executable), *other_pythons()]]
    args.output = args.output.absolute()
    args.output.mkdir(parents=True, exist_ok=True)
    names = SHORT if args.short else CPYTHON + MULTIPROCESSING
    armed = DISTRIBUTED if args.distributed else []
    if args.only:
        names = [n for n in args.only if not n.startswith("distributed-")]
        armed = [n.removeprefix("distributed-") for n in args.only if n.startswith("distributed-")]
    elif args.project:
        names = []
    elif not args.distributed:
        print("tests of distributed: left out, no source tree is given")
    total = bad = 0
    suites = [*cpython_suites(pythons, names), *distributed_suites(armed, args.distributed, args.python_distributed),
              *project_suites(args.project, args.python_distributed)]
    for suite in suites:
        plain, differing = suite.compare(args.library.resolve(), args.output)
        counts = ", ".join(f"{list(plain.values()).count(how)} {how}" for how in sorted(set(plain.values())))
        print(f"{suite.name}: {counts}; {len(differing)} differ", flush=True)
        for test, (before, after) in sorted(differing.items()):
            print(f"    {test}: {before} without, {after} with the preload")
        if "" in plain or not plain:
            raise CannotRun(f"{suite.name}: {plain.get('', 'no test ran')}")
        total, bad = total + len(plain), bad + len(differing)
    print(f"{total} tests, {bad} differ")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRun as error:
        print(f"compare-suites: {error}", file=sys.stderr)
        sys.exit(2)
