# SPDX-License-Identifier: BSD-3-Clause
"""The package `crema` when something is missing or fails: without the program, a collector, measured workers, pandas or
Dask; with a block that raises and outputs that contain garbage. test_roastcoffea.py tests it in a measured run."""

import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile

import cluster
import pytest

PACKAGE = cluster.ROOT / "python"
sys.path.insert(0, str(PACKAGE))
import crema


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A collector's folder in which nothing was measured."""
    monkeypatch.setenv("CREMA_PROGRAM", str(cluster.BUILD / "crema"))
    monkeypatch.setenv("CREMA_DIR", str(tmp_path / "journal"))
    (tmp_path / "journal").mkdir()


def bare(code, **env):
    """Runs code in a Python that has only this package."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\n{code}"],
                          env={"PATH": "/nonexistent", **env}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_the_standard_library():
    out = bare("import crema; print(sorted({m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))")
    assert out.strip() == "['__main__', 'crema']"


def test_wheel(tmp_path):
    source = shutil.copytree(PACKAGE, tmp_path / "source")  # setuptools leaves files in the folder that it builds
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check",
                           "-w", tmp_path, source], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("crema_hep-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    modules = {name for name in names if ".dist-info/" not in name}
    assert modules == {"crema_hep.py", *(f"crema/{p.name}" for p in (PACKAGE / "crema").glob("*.py"))}


MUSIC = {"__init__.py": "from .version import version\nfrom . import models\n", "version.py": "version = '0.2.0'\n", "analyze.py": "", "models/__init__.py": ""}


@pytest.mark.parametrize("last", ["ours", "theirs"])
def test_music_library_of_the_same_name(tmp_path, last):
    """The registry's `crema` in the same site-packages: one clear line, from the package or, if its files were overwritten, the command."""
    shutil.copytree(PACKAGE, tmp_path / "site")
    for name, text in MUSIC.items():
        file = tmp_path / "site" / "crema" / name
        if last == "theirs" or not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    (tmp_path / "site/crema/bin").mkdir()
    (tmp_path / "site/crema/bin/crema").symlink_to(cluster.BUILD / "crema")
    line = f"'{tmp_path / 'site/crema'}' also contains the music library 'crema': run 'pip uninstall crema', then install the wheel of crema-hep with --force-reinstall"
    python = [sys.executable, "-I", "-S", "-c"]
    at = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); sys.argv[1:] = ['--version']; import "
    imported = subprocess.run([*python, at + "crema"], capture_output=True, text=True)
    assert imported.stderr.splitlines()[-1:] == ([f"ImportError: {line}"] if last == "ours" else [])
    command = subprocess.run([*python, at + "crema_hep; crema_hep.main()"], capture_output=True, text=True)
    assert command.returncode == 0 and command.stdout.startswith("crema 0.") and command.stderr == f"crema: {line}\n"


def test_alone_there_is_no_clash():
    assert bare("import crema, crema_hep; print(crema_hep.clash())") == "None\n"


def test_no_program():
    out = bare("""
import crema
try:
    crema.load()
except RuntimeError as error:
    print(type(error).__name__, error)
""", CREMA_PROGRAM="/nonexistent/crema")
    assert out == "CremaError CREMA_PROGRAM is '/nonexistent/crema', which is not an executable program\n"


def test_program_beside_the_source_tree():
    assert bare("from crema.program import find; print(find())").strip() == str(cluster.BUILD / "crema")


def test_no_pandas(tmp_path):
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"run": "r", "metrics": {"num_tasks": 1}, "tasks": [{"key": "k"}], "chunks": []}))
    out = bare(f"""
import crema
run = crema.load({str(file)!r})
print(run.metrics, run)
for table in ("tasks", "nonsense"):
    try:
        run.table(table)
    except Exception as error:
        print(type(error).__name__, error)
""")
    assert out.splitlines() == [
        "{'num_tasks': 1} <crema run r: 1 attempts, 0 at chunks, 0 findings>",
        "ImportError tables of crema.load() need pandas (pip install pandas); .json has the same as lists",
        'KeyError "the run has no table \'nonsense\'; there are tasks, chunks"']


def test_nothing_measured(empty):
    """One warning that tells the user what to do; the block and its result are unaffected."""
    with pytest.warns(RuntimeWarning, match="nothing was measured.*crema run -- dask worker") as caught:
        with crema.measure(wait_seconds=0.1) as m:
            m.set_coffea_report({"entries": 1})
            result = {"n": 1}
    assert len(caught) == 1 and result == {"n": 1}
    with pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match="nothing was measured"):
        m.get_metrics()


def test_summary_says_why(empty, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with crema.measure(wait_seconds=0.1) as m:
            pass
        m.print_summary()
    assert capsys.readouterr().out.startswith("crema: nothing was measured: ")


def test_warnings_as_errors_do_not_reach_the_analysis(empty, caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with crema.measure(wait_seconds=0.1):
            result = 1
    assert result == 1 and "nothing was measured" in caplog.text


def test_the_bodys_error_is_its_own(empty):
    with pytest.raises(KeyError, match="mine"):
        with crema.measure():
            raise KeyError("mine")


class Garbage:
    """An object in place of a client and a processor, none of whose methods work."""
    __slots__ = ()

    def run_on_scheduler(self, *_, **__):
        raise OSError("gone")


def test_a_broken_client(empty):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with crema.measure(Garbage(), processor_instance=Garbage(), wait_seconds=0.1) as m:
            m.set_coffea_report(object())
            m.extract_metrics_from_output(object())
    with warnings.catch_warnings(), pytest.raises(crema.CremaError):
        warnings.simplefilter("ignore")
        m.get_metrics()


def test_before_the_end(empty):
    with crema.measure(wait_seconds=0) as m:
        with pytest.raises(crema.CremaError, match="after the with block"):
            m.get_metrics()


def test_flags_of_the_processor_are_restored(empty):
    class P:
        pass

    p = P()
    p._roastcoffea_collect_metrics = "outer"
    with crema.measure(processor_instance=p, wait_seconds=0):
        assert p._roastcoffea_collect_metrics is True and P._roastcoffea_collect_metrics is True
    assert vars(p) == {"_roastcoffea_collect_metrics": "outer"} and not hasattr(P, "_roastcoffea_collect_metrics")


def test_unmeasured_workers(empty):
    """Real Dask, no preload: the result is there, and the reason within seconds."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local, Client(local) as client:
        with pytest.warns(RuntimeWarning, match="nothing was measured"):
            with crema.measure(client) as m:
                result = client.submit(sum, [1, 2]).result()
        assert m.span_id
    assert result == 3


def test_backend():
    with pytest.raises(ValueError, match="Unsupported backend: taskvine"):
        crema.MetricsCollector(None, backend="taskvine")


def test_report_options(empty):
    """--client-wall and --client-start accept only seconds, and the latter requires the former."""
    for text in ("", "x", "-1", "0", "nan", "inf", "1s"):
        done = subprocess.run([cluster.BUILD / "crema", "report", "--client-wall", text], env=os.environ,
                              capture_output=True, text=True)
        assert done.returncode in (1, 2) and done.stderr.count("\n") == 1, text
        assert text == "" or "is not a number of seconds" in done.stderr
    for extra, line in (([], "--client-start needs --client-wall"), (["--client-wall", "1"], "is not a number of seconds")):
        done = subprocess.run([cluster.BUILD / "crema", "report", "--client-start", "1e9" if not extra else "x", *extra],
                              env=os.environ, capture_output=True, text=True)
        assert done.returncode == 2 and line in done.stderr
