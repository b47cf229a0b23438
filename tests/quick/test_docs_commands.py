"""Every shell command in the documents: run here over a recorded journal, or listed with the test that runs it, or with the reason why
none does."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_reports import ROOT, made  # noqa: F401  (a fixture)
from test_footers import cluster

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "man").glob("*.txt"))]
WORDS = r"(?:crema|make|scripts/\S+|python3?|pip|sudo|ssh|apptainer|dask|\.venv/\S+)(?=\s|$)"
INTEGRATION = ROOT / "tests" / "integration"
# Commands that another test runs: (pattern, file, text that the test must contain).
ELSEWHERE = [
    (r"crema run -- dask worker tcp://scheduler:8786", "test_package.py", '"run", "--"'),
    (r"apptainer exec .*", "test_container.py", 'recipes.blocks("Apptainer")'),
    (r"crema run -- python examples/tutorial\.py --step \d", "test_tutorial.py", "(crema run .* --step {step})"),
    (r"crema collect --tls-ca-file .*", "test_tls.py", "--tls-ca-file"),
    (r"crema top( --http \S+| --once \| head)?", "test_top.py", '"top"'),
    (r"crema stuck( --longer \d+)?", "test_stuck.py", '"stuck"'),
    (r"crema follow .*", "test_follow_live.py", '"follow"'),
    (r"crema page .*", "one_page.py", '"page"'),
    (r"crema doctor( .*)?", "test_doctor.py", '"doctor"'),
    (r"make compare-roastcoffea", "test_roastcoffea.py", "CREMA_COMPARE_OUT"),
    (r"sudo systemctl enable --now crema-collect", "test_systemd.py", "systemctl"),
    (r"scripts/demo", "test_scripts.py", "demo"),
    (r"python analysis\.py", "test_recipes.py", "analysis.py"),
]
NOT_RUN = {
    r"make && make install PREFIX=.*": "every test uses what make builds; test_package.py and test_preloads.py install it",
    r"scripts/test": "it runs this test",
    r"sudo cat /var/lib/crema/token": "needs the installed service",
    r"ssh -L .*": "docs/recipes.md says that it is not tested: there is no second machine",
}


def commands(path):
    """The commands of a document's blocks, without comments."""
    text = re.sub(r"^```\w*\n(.*?)^```", lambda m: re.sub(r"^", "    ", m[1], flags=re.M), path.read_text(), flags=re.M | re.S)
    for line in re.findall(rf"^    ({WORDS}.*)$", text, re.M):
        yield re.split(r"\s{2,}|\s#", line)[0].removesuffix(" on the workers").strip()


ALL = sorted({command for path in DOCUMENTS for command in commands(path)})


def matching(command, patterns):
    return next((p for p in patterns if re.fullmatch(p, command)), None)


HERE = [c for c in ALL if not matching(c, NOT_RUN) and not matching(c, [p for p, *_ in ELSEWHERE])]


def test_the_lists_are_in_use():
    assert len(ALL) > 30 and len(HERE) > 15
    for pattern, file, text in ELSEWHERE:
        assert text in (INTEGRATION / file).read_text(), file
    for pattern in [*NOT_RUN, *(pattern for pattern, *_ in ELSEWHERE)]:
        assert any(re.fullmatch(pattern, command) for command in ALL), pattern


@pytest.fixture
def home(made, tmp_path):  # noqa: F811
    """A user's home with a recorded journal, in the places that the documents name."""
    for place in ("state/crema", "fixed-workers", "autoscaled", "front-1", "front-2"):
        shutil.copytree(made.journal, tmp_path / place / "journal")
    (tmp_path / "analysis.py").write_text("print('analysis')\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA", "LD_PRELOAD"))}
    bin_of = f"{ROOT / 'build'}:{os.path.dirname(sys.executable)}:{env['PATH']}"
    return tmp_path, {**env, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "PATH": bin_of}


def shell(command, folder, env):
    return subprocess.run(["bash", "-euc", command], cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def collected(command, folder, env):
    """A collector on its own ports, with a token, running until it is stopped."""
    ports = [cluster.free_port(), cluster.free_port()]
    added = f"exec {command} --listen 127.0.0.1:{ports[0]} --http 127.0.0.1:{ports[1]}"
    running = subprocess.Popen(["bash", "-euc", added], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        token = Path(env["XDG_CONFIG_HOME"]) / "crema/token"
        while not token.exists() or subprocess.run(["bash", "-c", f"true < /dev/tcp/127.0.0.1/{ports[1]}"], capture_output=True).returncode:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr.read()
            time.sleep(0.1)
        assert token.stat().st_mode & 0o777 == 0o600
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()
        running.stderr.close()


@pytest.mark.parametrize("command", HERE)
def test_command(command, home, made):  # noqa: F811
    folder, env = home
    if command.startswith("crema collect"):
        return collected(command, folder, env)
    if command.startswith("make"):
        folder = ROOT
    run = made.json["run"]
    command = command.replace("/shared/a", f"{folder}/fixed-workers").replace("/shared/b:7c2e", f"{folder}/autoscaled:{run}")
    known = iter([run, f"{folder}/autoscaled"])
    command = re.sub(r"\b20\d{6}-\d{6}-[0-9a-f]{4}\b|\b7e2c\b|\b1f90\b|\bRUN\b", lambda m: next(known), command)
    if command.startswith("crema token"):  # the token is made by a collector
        collected("crema collect", folder, env)
    done = shell(command, folder, env)
    assert done.returncode == 0, done.stderr
    written = re.findall(r"--(?:json|html|csv|sqlite) ([a-z]\S+)", command)
    assert done.stdout or written
    for name in written:
        assert (folder / name).exists(), name
