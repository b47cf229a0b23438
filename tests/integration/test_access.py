"""What leaves the workers and who may read it: hidden names, file modes, and secrets that must not appear anywhere. One real
cluster under umask 0, with canaries in its token, environments and arguments; all its output is searched."""

import os
import stat
import subprocess
import urllib.request
import zlib
from pathlib import Path

import cluster
import jobs
import pytest
from distributed import Client
from frames import HEAD

TOKEN = "canary_token_1d4e9a7b33c0"
ENVIRONMENT = "canary_environment_9f27"
ARGUMENT = "canary_argument_51c8"
NAME, KEY = "canary_file_77aa", "canary_key_08bb"
SIZE = 1_000_003
PAGES = ("", "status.json", "live.json", "metrics", "data.json", "report.json", "report.txt", "runs.json")


def inflated(path):
    """The payloads of a file of frames, decompressed."""
    data, at, out = path.read_bytes(), 0, []
    while at + HEAD.size <= len(data):
        fields = HEAD.unpack(data[at:at + HEAD.size])
        stored = data[at + HEAD.size:at + HEAD.size + fields[9]]
        out.append(zlib.decompress(stored) if fields[3] & 1 else stored)
        at += HEAD.size + fields[9]
    assert out and at == len(data), path
    return b"".join(out)


def fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value.to_bytes(8, "big")


class Ran:
    pass


@pytest.fixture(scope="module")
def ran(tmp_path_factory, homes):
    base = tmp_path_factory.mktemp("access")
    token = base / "config" / "token"
    token.parent.mkdir(mode=0o700)
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    env = {**homes, "CREMA_TOKEN_FILE": str(token), "XDG_STATE_HOME": str(base / "home"), "SECRET": ENVIRONMENT}
    made, before = Ran(), os.umask(0)
    try:
        with cluster.Cluster(base / "cluster", env) as procs:
            made.procs, made.base = procs, base
            procs.collector = procs.start("collect", [
                procs.build / "crema", "collect", "--redact-keys", "--listen", procs.target,
                "--http", f"127.0.0.1:{procs.http_port}", "--dir", procs.journal, "--keep", "14d"])
            cluster.wait_until(lambda: "status page" in procs.collector.text(), "crema collect", 60, [procs.collector])
            procs.start_scheduler()
            made.file = base / f"{NAME}.bin"
            made.file.write_bytes(os.urandom(SIZE))
            hidden = {"CREMA_REDACT_KEYS": "on"}
            for _ in range(2):
                procs.start_worker(env=hidden, args=["--resources", f"{ARGUMENT}=1"])
            with Client(procs.address) as client:
                client.wait_for_workers(2, timeout=120)
                workers = list(client.scheduler_info()["workers"])
                for i, worker in enumerate(workers):
                    future = client.submit(jobs.read_whole, str(made.file), key=f"analyse-{KEY}-{i}", workers=[worker])
                    future.result(timeout=120)
                made.found = jobs.settled(procs, lambda r: len(r["tasks"]) == 2)
                made.shm = [Path(words[words.index("--shm") + 1]) for words in
                            (cluster.strings_of(pid, "cmdline") for pid in procs.agents())]
                made.shared = b"".join(path.read_bytes() for path in made.shm)
                made.shm_modes = {stat.S_IMODE(path.stat().st_mode) for path in made.shm}
                url = f"http://127.0.0.1:{procs.http_port}/"
                made.pages = {page: urllib.request.urlopen(url + page, timeout=60).read() for page in PAGES}
                made.top = crema(made, "top", "--once", "--http", f"127.0.0.1:{procs.http_port}").stdout.encode()
                # a worker whose names are not hidden is refused, and keeps its records
                procs.start_worker(env={"XDG_STATE_HOME": str(base / "open"), "SECRET": ENVIRONMENT})
                client.wait_for_workers(3, timeout=120)
                other = next(w for w in client.scheduler_info()["workers"] if w not in workers)
                client.submit(jobs.read_whole, str(made.file), key=f"analyse-{KEY}-open", workers=[other]).result(timeout=120)
                made.spool = base / "open" / "crema" / "spool"
                cluster.wait_until(lambda: list(made.spool.glob("*.crema")) and (made.spool / "agent.log").exists(),
                                   "the spool of the refused one", 90)
            made.out = base / "exports"
            made.out.mkdir(mode=0o700)
            for option, name in (("--json", "r.json"), ("--html", "r.html"), ("--csv", "csv"), ("--sqlite", "r.sqlite"),
                                 ("--perfetto", "trace.json"), ("--measurement", "measured")):
                done = crema(made, "report", "--dir", procs.journal, option, made.out / name)
                assert done.returncode == 0, done.stderr
            made.tables = crema(made, "report", "--full", "--dir", procs.journal).stdout.encode()
        yield made
    finally:
        os.umask(before)


def crema(made, *args):
    return subprocess.run([made.procs.build / "crema", *args], env=made.procs.env, capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


def everything(ran):
    """{what: bytes} of everything that crema wrote or printed, except what the refused agent keeps."""
    found = {f"page /{name}": text for name, text in ran.pages.items()}
    found.update({"top": ran.top, "tables": ran.tables, "collect.log": ran.procs.collector.text().encode()})
    for path in (*ran.procs.journal.rglob("*"), *ran.out.rglob("*"), *(ran.base / "home").rglob("*")):
        if path.is_file():
            found[str(path)] = inflated(path) if path.suffix == ".crema" else path.read_bytes()
    assert sum(name.endswith("-journal.crema") for name in found) >= 1
    return found


def test_names_are_hidden_everywhere(ran):
    """The names are in the spool of the refused agent, so the search would find them."""
    for what, text in everything(ran).items():
        assert NAME.encode() not in text and KEY.encode() not in text, what
        assert not any(fnv1a(f"analyse-{KEY}-{i}") in text for i in range(2)), what
    kept = b"".join(inflated(path) for path in ran.spool.glob("*.crema"))
    assert NAME.encode() in kept and f"{KEY}-open".encode() in kept and fnv1a(f"analyse-{KEY}-open") in kept


def test_sums_stay(ran):
    """Two workers read one file: it has one row, and its name is not a plain hash."""
    (row,) = [f for f in ran.found["files"] if f["read_bytes"] >= SIZE]
    assert row["read_bytes"] == 2 * SIZE and row["path"].startswith("file-") and len(row["path"]) == 21
    keys = {task["key"] for task in ran.found["tasks"]}
    assert len(keys) == 2 and all(key.startswith("key-") and len(key) == 20 for key in keys)
    assert {task["prefix"] for task in ran.found["tasks"]} == {"analyse"}


def test_secrets_are_nowhere(ran):
    places = {**everything(ran), "/dev/shm": ran.shared}
    for path in (ran.base / "open").rglob("*"):
        if path.is_file():
            places[str(path)] = inflated(path) if path.suffix == ".crema" else path.read_bytes()
    for what, text in places.items():
        for secret in (TOKEN, ENVIRONMENT, ARGUMENT):
            assert secret.encode() not in text, (secret, what)
    assert KEY.encode() in ran.shared  # proves that the search works
    worker = ran.procs.workers[0]
    assert any(ARGUMENT in word for word in worker.args)


def test_nobody_else_may_read(ran):
    assert ran.shm_modes == {0o600}
    for top in (ran.procs.journal, ran.base / "open", ran.out):
        for path in (top, *top.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))


def test_refused_with_a_line_on_both_sides(ran):
    words = "names are not hidden: start the workers with CREMA_REDACT_KEYS=on"
    assert words in ran.procs.collector.text() and words in (ran.spool / "agent.log").read_text()
