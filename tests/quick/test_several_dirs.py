"""The journals of several collectors read as one: whatever frames each of them has, and in whatever order they are given, the
reports equal those of one collector that has all of them, and a record that two of them have counts once."""

import json
import re
import subprocess

import pytest
import test_footers  # sets the path to frames.py
import cluster
from frames import CHECKPOINT, DATA, HEAD
from stores import DAY, Store, tasks
from test_footers import SELECTED, said, store, truth  # noqa: F401 (fixtures)

FILES = re.compile(r'\\"files_read\\": \d+')
WAYS = {
    # (which collectors get frame i of n): the worker moved, and unacknowledged frames were sent again; it moves back and forth;
    # all frames were sent twice; one collector has nothing but the worker's hello
    "moved": lambda i, n: {0} if i < n // 2 else {1},
    "moved early, sent again": lambda i, n: {0} if i < n // 5 else {0, 1} if i < n // 3 else {1},
    "moved late, sent again": lambda i, n: {0} if i < 4 * n // 5 else {0, 1} if i < 9 * n // 10 else {1},
    "to and fro": lambda i, n: {i % 2},
    "in threes": lambda i, n: {i % 3},
    "all twice": lambda i, n: {0, 1},
    "nothing": lambda i, n: {1},
}


class Several(Store):
    """The directories of several collectors, as one."""

    def __init__(self, folder, parts, env):
        self.parts, self.env, self.dir = parts, env, parts[0].dir

    def crema(self, command, *args):
        dirs = [word for part in self.parts for word in ("--dir", part.dir)]
        return subprocess.run([cluster.BUILD / "crema", command, *dirs, *args], env=self.env, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)


def whole_frames(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        size = HEAD.size + HEAD.unpack_from(data, at)[9]
        yield HEAD.unpack_from(data, at)[2], data[at:at + size]
        at += size


def split(store, folder, way, n=2):
    """n state directories with segments of the same names, each with its header and hellos, and with those of the other frames
    that `way` assigns to it."""
    parts = [Store(folder / str(k)) for k in range(n) if not (folder / str(k)).mkdir()]
    count = sum(kind == DATA for path in test_footers.segments(store) for kind, _ in whole_frames(path))
    i = 0
    for path in test_footers.segments(store):
        files = [b""] * n
        for kind, frame in whole_frames(path):
            if kind != CHECKPOINT:  # it covers all frames of one collector
                files = [file + (frame if kind != DATA or k in way(i, count) else b"") for k, file in enumerate(files)]
            i += kind == DATA
        for part, file in zip(parts, files):
            part.journal.mkdir(exist_ok=True)
            (part.journal / path.name).write_bytes(file)
    assert i == count > 20
    return parts


def same(several, truth, first):
    """Equal to the truth, except for the names of directories and the number of files."""
    names = "', '".join(str(part.dir) for part in several.parts)
    for is_now, was in zip(said(several, *SELECTED), truth, strict=True):
        assert FILES.sub("", json.dumps(is_now).replace(names, str(first))) == FILES.sub("", json.dumps(was))


@pytest.mark.parametrize("way", WAYS)
def test_as_one(store, truth, tmp_path, way):  # noqa: F811
    parts = split(store, tmp_path, WAYS[way], 3 if way == "in threes" else 2)
    same(Several(tmp_path, parts, store.env), truth, store.dir)
    same(Several(tmp_path, parts[::-1], store.env), truth, store.dir)


@pytest.mark.parametrize("way", ["moved early, sent again", "to and fro"])
def test_by_footers_and_totals(store, truth, tmp_path, way):  # noqa: F811
    """Each collector's footers and totals cover only its own records: for a run that two of them have, neither's totals are used."""
    parts = split(store, tmp_path, WAYS[way])
    for part in parts:
        with part.collect() as collector:
            cluster.wait_until(lambda: len(test_footers.footers(part)) == len(test_footers.segments(part)) - 1, "footers", 60, [collector.log])
            cluster.wait_until(lambda: test_footers.known(part), "totals", 60, [collector.log])
    several = Several(tmp_path, parts, store.env)
    same(several, truth, store.dir)
    runs = json.loads(several.crema("report", "--list", "--json", "-").stdout)["runs"]
    assert runs == truth[0]


def test_one_directory_twice(store, truth, tmp_path):  # noqa: F811
    same(Several(tmp_path, [store, store], store.env), truth, store.dir)


def test_what_fails_is_named(store, tmp_path):  # noqa: F811
    class Missing:
        dir = tmp_path / "missing"

    for command, words in (("report", ()), ("report", ("--list",)), ("compare", ("span-a", "span-c"))):
        done = Several(tmp_path, [store, Missing], store.env).crema(command, *words)
        assert done.returncode == 1 and f"cannot read '{Missing.dir}': no such file or directory" in done.stderr
        assert not done.stdout
    done = subprocess.run([cluster.BUILD / "crema", "report", *["--dir", store.dir] * 65], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "crema: --dir: given more than 64 times\n"


def test_segments_of_the_same_time(tmp_path):
    """One collector's segment contains the run, the other's of the same time does not: only the latter is left out."""
    parts = []
    for k, span in enumerate(("span-a", "span-b")):
        (tmp_path / str(k)).mkdir()
        parts.append(Store(tmp_path / str(k)))
        parts[k].now = parts[0].now
        parts[k].segment(DAY, tasks(DAY - 10 - 1000 * k, span, first=10 * k + 1), test_footers.second(DAY))
        parts[k].segment(100)
        with parts[k].collect() as collector:
            cluster.wait_until(lambda: test_footers.footers(parts[k]), "footers", 60, [collector.log])
    assert parts[0].journal / test_footers.segments(parts[1])[0].name == test_footers.segments(parts[0])[0]
    for order in (parts, parts[::-1]):
        several = Several(tmp_path, order, parts[0].env)
        for span in ("span-a", "span-b"):
            done = several.crema("report", "--run", span, "--json", "-", *SELECTED)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["metrics"]["num_tasks"] == 3


def test_what_one_has_dropped(tmp_path):
    """What a collector dropped is missing only in its own journal, and its list of dropped runs is shown."""
    parts, old = [], []
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        parts.append(Store(tmp_path / str(k)))
        old.append(parts[k].segment((5 + k) * DAY, tasks((5 + k) * DAY - 10, f"old-{k}", first=10 * k + 1)))
        parts[k].segment(4 * DAY)
        parts[k].segment(1000 + k, tasks(990, f"new-{k}", first=10 * k + 101))
    with parts[0].collect("--keep", "3d") as collector:
        cluster.wait_until(lambda: (parts[0].journal / f"{0:020}-dropped.crema").exists(), "the old run to be dropped", 60, [collector.log])
    assert not old[0].exists() and old[1].exists()
    runs = {k: parts[k].list() for k in range(2)}
    assert [len(found) for found in runs[0]] == [1, 1] and [len(found) for found in runs[1]] == [2, 0]
    for order in (parts, parts[::-1]):
        several = Several(tmp_path, order, parts[0].env)
        listed, dropped = several.list()
        assert sorted(listed) == sorted(runs[0][0] + runs[1][0]) and dropped == runs[0][1]
        assert several.report("old-1")["metrics"]["num_tasks"] == 3
