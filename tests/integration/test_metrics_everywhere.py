"""contract/metrics.def is the only place where a metric is declared: each is in every output."""

import re

import pytest
from conftest import ROOT

LINE = re.compile(r'METRIC\((\w+), "(\w*)", "([^"]*)", (\w+), (\w+), (\w+), "([^"]*)", "((?:[^"\\]|\\.)*)"\)')


def declared():
    """[(id, alias, kind, rows)] of every line of the table."""
    text = (ROOT / "contract" / "metrics.def").read_text()
    found = [(m[1], m[2], m[4], m[7]) for m in LINE.finditer(text)]
    assert len(found) == sum(line.startswith("METRIC(") for line in text.splitlines())
    return found


METRICS = declared()
NAMES = [name for metric in METRICS for name in metric[:2] if name]


def missing(words):
    return [name for name in NAMES if name not in words]


def words(text):
    return set(re.findall(r"\w+", text))


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


def test_json(demo):
    assert missing(demo.json["metrics"]) == []


@pytest.fixture(scope="module")
def terminal(demo, shared):
    result = shared.procs.report("--all-metrics", "--run", demo.json["run"])
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_terminal(terminal):
    assert missing({line.split()[0] for line in terminal.splitlines() if line.startswith("  ")}) == []
    assert max(map(len, terminal.splitlines())) < 80


def test_documents():
    rows = [line for line in (ROOT / "docs" / "metrics.md").read_text().splitlines() if line.startswith("| `")]
    assert missing(words("\n".join(row.split("|")[1] for row in rows))) == []
