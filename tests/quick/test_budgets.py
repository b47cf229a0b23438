# SPDX-License-Identifier: BSD-3-Clause
"""The last lines of `make bench`: each budget that was missed, or that all were met."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import bench
import budgets


@pytest.mark.parametrize("figure, error, said", [
    (15, 0, ""), (15.1, 0, "budget missed: task: 15.1 us, goal 15; read docs/cost.md\n"),
    (82, 37, "budget undecided: task: 82 +- 37 us, goal 15; read docs/cost.md\n"), (90, 37, "budget missed: task: 90 us, goal 15; read docs/cost.md\n"),
    (14, 37, "")])
def test_twice_the_error_decides(figure, error, said, capsys):
    budgets.judge("task", figure, 15, "us", "docs/cost.md", error)
    assert capsys.readouterr().out == said


def benches(monkeypatch, **programs):
    monkeypatch.setattr(bench, "BENCHES", {name: [sys.executable, "-c", text] for name, text in programs.items()})


def test_the_end_repeats_what_was_missed(monkeypatch, capsys):
    benches(monkeypatch, a="print('figures'); print('budget missed: x')", b="print('budget undecided: y'); print('more')")
    assert bench.main([]) == 0
    assert capsys.readouterr().out.endswith("\n== budgets\nbudget missed: x\nbudget undecided: y\n")


def test_the_end_says_that_all_held(monkeypatch, capsys):
    benches(monkeypatch, a="print('a budget of 3')")
    assert bench.main([]) == 0
    assert capsys.readouterr().out.endswith("\n== budgets\nall budgets held\n")


def test_a_benchmark_that_failed_is_no_success(monkeypatch, capsys):
    benches(monkeypatch, a="raise SystemExit(3)", b="print()")
    assert bench.main([]) == 1
    assert "exited with 3" in capsys.readouterr().out.splitlines()[-1]
