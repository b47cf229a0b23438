"""The words of the command line: help, suggestions for mistyped words, optional values, completion."""

import json
import os
import random
import re
import subprocess

import pytest

from test_reports import ROOT, made  # noqa: F401  (a fixture; sets the path to host.py)

import host

CREMA = ROOT / "build/crema"
COMMANDS = ("collect", "report", "compare", "run", "token", "top", "stuck", "doctor", "follow", "page")
FLAGS = re.findall(r'^OPTION\(\w+, \w+, "(--[\w-]+)"', (ROOT / "contract/options.def").read_text(), re.M)
TABLES = re.findall(r"^TABLE\((\w+),", (ROOT / "contract/tables.def").read_text(), re.M)


def crema(*args, **options):
    return subprocess.run([CREMA, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, **options)


def test_help_and_version():
    for command in COMMANDS:
        own = crema(command, "--help")
        assert own.returncode == 0 and own.stderr == "" and own.stdout == crema("help", command).stdout
        examples = own.stdout.split("\nexamples:\n")[1].split("\n\n")[0].splitlines()
        assert examples and all(f"crema {command}" in line for line in examples)
        assert max(map(len, own.stdout.splitlines())) < 110
    assert crema("help").stdout == crema("--help").stdout
    assert crema("version").stdout == crema("-V").stdout == crema("--version").stdout == crema("report", "-V").stdout
    assert "--read-whole" not in crema("report", "--help").stdout and "--read-whole" in crema("report", "--help-all").stdout


def test_run_without_true(tmp_path):
    """Some container images have no /bin/true to try the library with."""
    words = host.namespaces("-m")
    hide = "for f in /bin/true /usr/bin/true; do [ ! -x $f ] || mount --bind /dev/null $f || exit 99; done"
    look = f'{hide}; [ ! -x /bin/true ] || exit 98; exec "{CREMA}" run -- printenv LD_PRELOAD'
    done = subprocess.run([*words, "sh", "-c", look], env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "unmeasured" not in done.stderr and done.stdout.strip().endswith("libcrema.so"), done


@pytest.mark.parametrize("words,said", [(["reprot"], "did you mean 'crema report'?"), (["help", "tpo"], "did you mean 'crema top'?"),
                                        (["report", "--jsno"], "did you mean --json?"), (["xyzxyz"], "'crema help' lists them"),
                                        (["report", "--xyzxyz"], "--help lists the options")])
def test_did_you_mean(words, said):
    done = crema(*words)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("patience,status", [("5m", 0), ("0s", 2), ("soon", 2)])
def test_patience_is_a_time(made, patience, status):  # noqa: F811
    done = crema("report", "--dir", made.journal.parent, env={**os.environ, "CREMA_STALL_AFTER": patience})
    assert done.returncode == status
    assert done.stderr == ("" if not status else f"crema: CREMA_STALL_AFTER: '{patience}' is not a time, such as 30s or 5m\n")


def test_values_left_out(made, tmp_path):  # noqa: F811
    where = ("report", "--dir", made.journal.parent)
    plain = crema(*where, "--json", cwd=tmp_path)
    assert json.loads(plain.stdout) == made.json and plain.stderr == ""
    assert json.loads(crema(*where, "--list", "--json", cwd=tmp_path).stdout)["runs"]
    env = {name: value for name, value in os.environ.items() if name != "CREMA_QUIET"}
    done = crema(*where, "--html", "--csv", "--sqlite", "--perfetto", "--measurement", cwd=tmp_path, env=env)
    run = f"run-{made.json['run']}"
    names = [f"{run}{end}" for end in ("-measurement", "-csv", ".sqlite", ".html", ".trace.json")]
    assert done.returncode == 0 and done.stderr.splitlines() == [f"crema: wrote '{name}'" for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    quiet = crema(*where, "--html", "page.html", "--quiet", cwd=tmp_path, env=env)
    assert (quiet.returncode, quiet.stderr) == (0, "") and (tmp_path / "page.html").exists()
    assert crema(*where, "--html=", cwd=tmp_path).returncode == 1  # the given path is empty


def test_nothing_yet(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA_", "XDG_"))}
    for words in (["report"], ["report", "--list"]):
        done = crema(*words, env={**env, "HOME": str(tmp_path)})
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "crema: nothing was measured yet; try: crema run -- python your_analysis.py\n"
    assert f"'{tmp_path}/no'" in crema("report", "--dir", tmp_path / "no").stderr


def completed(line):
    """The completions that bash offers after the words of the line."""
    words = line.split(" ")
    script = (f"source '{ROOT}/build/completion/crema'; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); COMP_CWORD={len(words) - 1}; "
              f"_crema crema '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PATH": f"{CREMA.parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_nothing_but_damage(tmp_path):
    """A journal without a run is reported as damaged only if it is, and not if a frame is still being written."""
    (tmp_path / "journal").mkdir()
    path = tmp_path / "journal" / f"{1795821527979715:020}-journal.crema"
    for data, reason in ((random.Random(7).randbytes(100_000), f"'journal/{path.name}' in it is damaged"), (b"", "contain no tasks")):
        path.write_bytes(data)
        done = crema("report", "--dir", tmp_path)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and reason in done.stderr, done.stderr


def test_completion(made):  # noqa: F811
    assert completed("crema ") == {"help", "version", *COMMANDS}
    assert completed("crema re") == {"report"}
    assert completed("crema report --json --sq") == {"--sqlite"}
    help_all = set(re.findall(r"^  (--[\w-]+)", crema("report", "--help-all").stdout, re.M))
    assert completed("crema report --") == help_all and "--show" in help_all
    assert completed("crema report --show ") == {"all", *TABLES}
    assert completed("crema report --show files,cod") == {"files,codecs"}
    os.environ["CREMA_DIR"] = str(made.journal.parent)
    try:
        assert completed("crema report --run ") == {"last", made.json["run"]}
    finally:
        del os.environ["CREMA_DIR"]
    for name in ("_crema", "crema.fish"):
        text = (ROOT / "build/completion" / name).read_text()
        assert all(command in text for command in COMMANDS) and all(f" {table}" in text for table in TABLES)
        assert all(flag in text or f"-l {flag[2:]} " in text for flag in FLAGS)
