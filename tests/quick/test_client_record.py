# SPDX-License-Identifier: BSD-3-Clause
"""The client's record of itself (python/crema/client.py), in this process with fake modules, and under `crema run`."""

import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from crema import client

MODULE = "coffea.processor.executor"
SOURCE = """
import time

def accumulate(seconds, *, more=1):
    "adds up"
    time.sleep(seconds)
    return more

def _decompress(f, *args):
    return f(*args)

class Runner:
    def __call__(self, f):
        return f()
    def run(self, seconds):
        time.sleep(seconds)
        return accumulate(seconds)
    def preprocess(self, seconds):
        time.sleep(seconds)
        return accumulate(seconds)

class IterativeExecutor:
    def __call__(self, seconds):
        time.sleep(seconds)
        return accumulate(seconds)

class FuturesExecutor(IterativeExecutor):
    def __call__(self):
        raise KeyError("no")
"""


@pytest.fixture
def fake(monkeypatch):
    """The only module that is watched."""
    made = types.ModuleType(MODULE)
    exec(SOURCE, vars(made))
    monkeypatch.setattr(client, "HOOKS", {MODULE: client.HOOKS[MODULE]})
    monkeypatch.setitem(sys.modules, MODULE, made)
    return made


@pytest.fixture
def recorder(fake):
    made = client.Recorder(outside="own")
    made.install()
    yield made
    made.uninstall()


def seconds_of(recorder, function, *args):
    begin = recorder.mark()
    function(*args)
    found = recorder.record(begin, recorder.mark())
    waited = sum(e - b for b, e, _ in found["waits"])
    assert sum(found["seconds"].values()) + waited == pytest.approx(found["wall"], abs=1e-9)
    return {**{name: s for name, s in found["seconds"].items() if s > 0.01}, **({"wait": waited} if waited else {})}


def test_the_innermost_function_decides(fake, recorder):
    found = seconds_of(recorder, fake.Runner().run, 0.05)
    assert set(found) == {"graph", "gather"} and min(found.values()) >= 0.05


def test_preprocessing_and_waits_are_whole(fake, recorder):
    found = seconds_of(recorder, fake.Runner().preprocess, 0.05)
    assert set(found) == {"preprocess"} and found["preprocess"] >= 0.1
    found = seconds_of(recorder, fake.Runner(), lambda: fake.IterativeExecutor()(0.05))
    assert set(found) == {"wait"} and found["wait"] >= 0.1


def test_other_threads_pass_through(fake, recorder):
    def elsewhere():
        thread = threading.Thread(target=fake.accumulate, args=(0.05,))
        thread.start()
        thread.join()

    assert set(seconds_of(recorder, elsewhere)) == {"own"}


def test_exceptions_pass_through(fake, recorder):
    def fails():
        with pytest.raises(KeyError, match="no"):
            fake.FuturesExecutor()()
        time.sleep(0.05)

    assert seconds_of(recorder, fails)["own"] >= 0.05 and not recorder.stack


def test_functions_keep_their_names(fake, recorder):
    bound, original = fake.accumulate, fake.accumulate.__wrapped__
    assert bound(0, more=5) == 5 and bound.__doc__ == "adds up" and bound.__qualname__ == "accumulate"
    assert str(inspect.signature(bound)) == "(seconds, *, more=1)" and not hasattr(original, "__wrapped__")
    assert bound.__globals__["__name__"] == original.__module__


def test_bound_names_are_replaced_and_put_back(fake):
    other = types.ModuleType("other_analysis")
    other.add, before = fake.accumulate, dict(vars(fake))
    methods = dict(vars(fake.Runner))
    sys.modules["other_analysis"] = other
    recorder = client.Recorder(outside="own")
    try:
        recorder.install()
        assert set(seconds_of(recorder, other.add, 0.05)) == {"gather"}
    finally:
        recorder.uninstall()
        del sys.modules["other_analysis"]
    assert other.add is before["accumulate"] and vars(fake) == before and dict(vars(fake.Runner)) == methods
    assert sys.modules["importlib._bootstrap"]._find_and_load.__code__.co_argcount == 2


def test_a_missing_function_is_unknown(fake):
    del fake.Runner.preprocess
    recorder = client.Recorder(outside="own")
    recorder.install()
    recorder.uninstall()
    assert recorder.unseen == dict.fromkeys(("preprocess", "graph", "own"), f"{MODULE}.Runner.preprocess is missing")


def test_waits_beyond_the_table_are_unknown(fake, recorder, monkeypatch):
    monkeypatch.setattr(client, "MOST_WAITS", 2)
    for _ in range(3):
        fake.IterativeExecutor()(0)
    assert "wait" in recorder.unseen and len(recorder.waits) == 2


def test_keys_that_were_sent():
    assert client._first_keys([["a", ("b", 0)], {}, "c", "d", "e"], 4) == ["a", "('b', 0)", "c", "d"]
    assert client._first_keys(iter("abc"), 4) == []
    assert f"{client._hash('a'):x}" == "af63dc4c8601ec8c"


# --- under crema run


def run(tmp_path, text, *command, **env):
    """A script's output, and the records after it."""
    script = tmp_path / "analysis.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run([ROOT / "build" / "crema", "run", "--quiet", "--dir", tmp_path, "--", *command, sys.executable, script],
                          capture_output=True, text=True, timeout=60, env={**os.environ, **env})
    files = sorted((tmp_path / "clients").glob("*"))
    return done, [json.loads(file.read_text()) for file in files if file.suffix == ".json" and file.stat().st_size]


def test_a_plain_script(tmp_path):
    (tmp_path / "slow_import.py").write_text("import time\ntime.sleep(0.3)\n")
    done, (record,) = run(tmp_path, """
        import time
        begin = time.perf_counter()
        import slow_import
        middle = time.perf_counter()
        time.sleep(0.2)
        print(middle - begin, time.perf_counter() - middle)
        """)
    imports, own = map(float, done.stdout.split())
    seconds = record["seconds"]
    assert done.returncode == 0 and set(seconds) == {"start", "imports", "own"} and record["waits"] == []
    assert imports <= seconds["imports"] and own <= seconds["own"] and seconds["start"] > 0
    assert sum(seconds.values()) == pytest.approx(record["wall"], abs=1e-9)
    assert abs(record["begin_utc"] + record["wall"] - time.time()) < 60 and record["ended"]


def test_a_client_that_is_killed(tmp_path):
    """Its work after its last wait is in no record, and the record shows that something is missing."""
    done, (record,) = run(tmp_path, """
        import os, signal, _crema_client
        _crema_client.recorder.after_wait()
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    assert done.returncode == -signal.SIGKILL and record["ended"] is False


def test_tracebacks_are_the_same(tmp_path):
    (tmp_path / "fails.py").write_text("def f():\n    raise ValueError('x')\nf()\n")
    text = """
        import sys, traceback
        for name in ("fails", "not.there", "not_there"):
            try:
                __import__(name)
            except Exception:
                traceback.print_exc()
        import fails
        """
    done, records = run(tmp_path, text)
    plain = subprocess.run([sys.executable, tmp_path / "analysis.py"], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.stdout, done.returncode) == (plain.stderr, plain.stdout, plain.returncode)
    assert "fails.py" in done.stderr and len(records) == 1


def test_children_write_nothing(tmp_path):
    """Neither does a forked child that ends half a second after the client."""
    done, (record,) = run(tmp_path, """
        import os, subprocess, sys, time
        begin, parent = time.perf_counter(), os.getpid()
        subprocess.run([sys.executable, "-c", "import json"])
        if not os.fork():
            while os.getppid() == parent:
                time.sleep(0.05)
            time.sleep(0.5)
            print(time.perf_counter() - begin)
        """)
    assert 0 < record["seconds"]["own"] < float(done.stdout)
    _, records = run(tmp_path, "pass", "sh", "-c", '"$@"; true', "sh")
    assert len(records) == 1, "the command was a shell"


def test_old_records_go(tmp_path):
    (tmp_path / "clients").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    for i in range(210):
        (tmp_path / "clients" / f"{1000 + i}.000-7.json").touch()
    _, (record,) = run(tmp_path, "pass")
    names = sorted(file.name for file in (tmp_path / "clients").iterdir())
    assert len(names) == 200 and names[0] == "1011.000-7.json" and record["wall"] > 0


CELLS = {"first": """
def helper(n):
    return [(lambda x: x + 1)(i) for i in range(n)]

def heavy(n):
    return n
""", "second": """

class P:
    @staticmethod
    def quick():
        return 1

    @functools.wraps(helper)
    def process(self):
        def inner():
            return 2
        return inner

def heavy(n):
    return 2 * n
run = lambda: 3
"""}


def test_functions_sent_by_value():
    """Of a function that was defined again only the latest; also those that have no name in their module."""
    module = types.ModuleType("cells")
    module.functools = __import__("functools")
    running = [compile(text, file, "exec") for file, text in CELLS.items()]
    for code in running:
        exec(code, vars(module))
    found = {file: {(name.split(".")[-1], first) for name, first, _ in rows} for file, rows in client._functions(module, running).items()}
    inlined = {("<listcomp>", 3)} if sys.version_info < (3, 12) else set()
    assert found == {"first": {("helper", 2), ("<lambda>", 3), *inlined},
                     "second": {("quick", 4), ("process", 8), ("inner", 10), ("heavy", 14), ("<lambda>", 16)}}
    lines = {name.split(".")[-1]: last for name, _, last in client._functions(module)["second"]}
    assert (lines["quick"], lines["process"], lines["inner"], lines["heavy"]) == (6, 12, 11, 15)
    module.heavy = vars(module)["run"] = 3  # no function any more
    assert "heavy" in {name for name, _, _ in client._functions(module, running)["first"]}
