"""`crema report` on a terminal: one screen, as wide as the terminal, through a pager; plain text in a pipe."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys

import pytest

import test_reports  # sets the path to frames.py and terminal.py
from test_reports import ROOT, made  # noqa: F401  (a fixture)

import terminal

SCREEN = ["How fast", "What held it back", "What to change", "Bytes", "Completeness", "more:"]


def argv(made, *options):
    return [ROOT / "build/crema", "report", "--dir", made.journal.parent, *options]


def piped(made, *options, **env):
    return subprocess.run(argv(made, *options), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, **env})


def on_terminal(made, *options, columns=80, lines=45, **env):
    """The output without colours, as lines."""
    env = {"PAGER": "cat", **env}
    with terminal.Terminal(argv(made, *options), lines=lines, columns=columns, env=env) as tty:
        assert tty.end() == 0
        text = tty.bytes.decode()
    assert "\r\n" in text
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip("\r") for line in text.split("\n")]


def test_first_screen(made):
    text = piped(made).stdout
    lines = text.splitlines()
    assert len(lines) <= 30 and all(len(line) < 80 for line in lines)
    at = [next(i for i, line in enumerate(lines) if line.startswith(part)) for part in SCREEN]
    assert at == sorted(at)
    m = made.json["metrics"]
    assert lines[0].startswith(f"run {made.json['run']} ")
    assert f"{m['total_events']:,} events in {m['num_chunks']} chunks" in text
    assert "4 tasks measured, 1 attempt failed or repeated; 2 workers, 3 threads each" in text
    budget = m["budget"]
    bar, parts = lines[at[1] + 1].strip(), [v for k, v in budget.items() if k not in ("wall_seconds", "threads", "thread_seconds")]
    assert sum(parts) == pytest.approx(budget["thread_seconds"])
    whole = sum(max(v, 0) for v in parts)  # the waits of this run exceed its time: clocks differ
    assert len(bar) == 77
    for mark, part in (("#", "cpu"), ("=", "runqueue"), (".", "idle")):
        assert abs(bar.count(mark) - 77 * budget[part] / whole) < 1, part


def test_all_tables(made):
    full, brief = piped(made, "--full").stdout, piped(made).stdout
    assert len(full.splitlines()) > 100 > len(brief.splitlines())
    named = piped(made, "--show", "files,timing").stdout
    titles = [line for line in named.splitlines()[1:] if line and line[0] != " "]
    assert [title.split()[0] for title in titles] == ["Timing:", "Data"]
    for part in named.split("\n\n")[1:]:
        assert part.strip() in full
    wrong = piped(made, "--show", "files,tables")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    names = re.findall(r"^TABLE\((\w+),", (ROOT / "contract/tables.def").read_text(), re.M)
    assert len(names) > 20 and wrong.stderr == f"crema: --show: there is no table 'tables'; use all, {', '.join(names)}\n"
    assert piped(made, "--show", "all").stdout == full


@pytest.mark.parametrize("columns", [80, 160])
def test_as_wide_as_the_terminal(made, columns):
    for options in ((), ("--full",)):
        lines = on_terminal(made, *options, columns=columns)
        widest = max(map(len, lines))
        assert widest < columns
        assert widest > 60 if columns == 80 else widest > 90 or options
    assert len(on_terminal(made, columns=columns)) <= 31
    # the terminal's width is used, not COLUMNS; in a pipe it is 80
    assert max(map(len, piped(made, "--full", COLUMNS="200").stdout.splitlines())) < 80


def test_pager(made, tmp_path, monkeypatch):
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\nprintf 'LESS=%s\\n' \"$LESS\"\nexec {shlex.quote(sys.executable)} -c 'import sys; print(\"<\" + sys.stdin.read() + \">\")'\n")
    pager.chmod(pager.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("LESS", raising=False)
    env = {"PAGER": str(pager)}
    shown = "\n".join(on_terminal(made, **env))
    assert shown.startswith("LESS=FRX\n<run ") and shown.rstrip().endswith(">")
    assert "\n".join(on_terminal(made, "--full", **env)).startswith("LESS=FRX\n<run ")
    # neither in a pipe nor for machine-readable output
    assert piped(made, **env).stdout.startswith("run ")
    assert "".join(on_terminal(made, "--json", "-", **env)).startswith("{")
    # a pager that quits early or is missing changes nothing
    with terminal.Terminal(argv(made, "--full"), env={"PAGER": "exec sh -c 'read line; echo \"$line\"'"}) as tty:
        assert tty.end() == 0 and b"run " in tty.bytes
    with terminal.Terminal(argv(made), columns=80, env={"PATH": str(tmp_path)}) as tty:
        tty.end()
        assert tty.process.returncode == 0 and b"How fast" in tty.bytes


def test_the_command_for_more(made, tmp_path):
    """The screen's last line shows more of the same run, also if its directory is not the usual one."""
    assert "\nmore: the same command with --full | --show files,completeness | --html\n" in piped(made).stdout
    shutil.copytree(made.journal.parent, tmp_path / "home/crema")
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "home")}
    for options in [], ["--run", made.json["run"]]:
        done = subprocess.run([ROOT / "build/crema", "report", *options], capture_output=True, text=True, check=True, env=env)
        command = shlex.split(done.stdout[done.stdout.index("\nmore: "):].removeprefix("\nmore: ").partition(" | ")[0])
        assert command == ["crema", "report", *options, "--full"]
        more = subprocess.run([ROOT / "build/crema", *command[1:]], capture_output=True, text=True, check=True, env=env).stdout
        assert more.startswith(f"run {made.json['run']} ") and len(more.splitlines()) > 100
