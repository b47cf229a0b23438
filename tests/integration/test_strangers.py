"""Another user of the same machine: who may read the page, what the programs send to a port that another
user has taken, and files and folders that another user prepared."""

import base64
import http.client
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import cluster
import frames
import pytest
from strangers import NOBODY, NOT_ROOT, Squatter, as_stranger

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason=NOT_ROOT)


@pytest.fixture
def common():
    """A folder that other users can enter, such as /tmp; pytest's are private."""
    made = Path(tempfile.mkdtemp(prefix="crema-strangers-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


# --- files and folders

def journal(folder):
    made = frames.Journal(folder / "state" / "journal")
    made.worker()
    made.task(1, "one")
    return made.write().parent


def html(state, place, trace):
    """The report's temporary file: (its flags, its name)."""
    done = subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", trace, cluster.BUILD / "crema", "report", "--dir", state,
                           "--html", place], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (found,) = re.findall(r'openat\(AT_FDCWD, "([^"]*\.report\.html\.[^"]*)", ([A-Z_|]+)', trace.read_text())
    return found[1], found[0]


def test_a_report_is_never_anothers_file(common, tmp_path):
    """Hundreds of possible names of the temporary file already exist, in a folder like /tmp."""
    state, place = journal(tmp_path), common / "sticky"
    place.mkdir()
    place.chmod(0o1777)

    def make(first):
        os.umask(0)
        for pid in range(first, first + 400):
            with open(place / f".report.html.crema-{pid}", "w"):
                pass

    as_stranger(make, os.getpid())
    found = [html(state, place / "report.html", tmp_path / "trace") for _ in range(2)]
    assert all("O_EXCL" in flags and "O_CREAT" in flags for flags, _ in found)
    assert found[0][1] != found[1][1]
    made = (place / "report.html").stat()
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (0, 0o600)
    left = list(place.glob(".report*"))
    assert len(left) == 400 and all(each.stat().st_size == 0 for each in left)


def test_permissions_of_anothers_file_are_not_taken_over(common, tmp_path):
    state = journal(tmp_path)
    place = common / "report.html"
    place.write_text("")
    place.chmod(0o666)
    assert html(state, place, tmp_path / "trace") and stat.S_IMODE(place.stat().st_mode) == 0o666  # the user's own
    os.chown(place, NOBODY, NOBODY)
    html(state, place, tmp_path / "trace")
    assert (place.stat().st_uid, stat.S_IMODE(place.stat().st_mode)) == (0, 0o644)


@pytest.mark.parametrize("how", ["another owner", "all may write", "a parent that all may write to"])
def test_folders_of_others_are_refused(common, homes, how):
    """The collector refuses them with one line, before it listens."""
    folder = common / "theirs"
    folder.mkdir()
    if how == "another owner":
        os.chown(folder, NOBODY, NOBODY)
    else:
        folder.chmod(0o777)
    given = folder / "below" if "parent" in how else folder
    done = subprocess.run([cluster.BUILD / "crema", "collect", "--listen", f"127.0.0.1:{cluster.free_port()}",
                           "--http", f"127.0.0.1:{cluster.free_port()}"],
                          env={**os.environ, **homes, "CREMA_DIR": str(given)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert str(folder) in done.stderr and ("belongs to another user" if how == "another owner" else "run: chmod") in done.stderr
    assert not list(folder.rglob("*.crema"))


# --- who may read the page

PAGES = ("", "status.json", "live.json", "metrics", "data.json", "report.json", "report.txt", "runs.json")


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes):
    """A collector whose journal has one run."""
    base = tmp_path_factory.mktemp("site")
    with cluster.Cluster(base / "cluster", homes) as procs:
        made = frames.Journal(procs.journal / "journal")
        made.worker()
        made.task(1, "one")
        made.write()
        procs.start_collector()
        yield procs


@pytest.mark.parametrize("option", ["--csv", "--measurement"])
@pytest.mark.parametrize("how", ["another owner", "all may write"])
def test_reports_into_folders_of_others_are_refused(site, common, option, how):
    """One line, and nothing of the run is written there."""
    folder = common / "theirs"
    folder.mkdir()
    os.chown(folder, *((NOBODY, NOBODY) if how == "another owner" else (-1, -1)))
    folder.chmod(0o755 if how == "another owner" else 0o777)
    done = crema(site, "report", "--dir", site.journal, option, folder)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and str(folder) in done.stderr
    assert ("belongs to another user" if how == "another owner" else "run: chmod") in done.stderr
    assert not list(folder.iterdir())


def token_of(procs):
    return Path(procs.env["CREMA_TOKEN_FILE"]).read_text().strip()


def crema(procs, *args):
    return subprocess.run([procs.build / "crema", *map(str, args)], env=procs.env, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)


def get(port, path, *head, times=1):
    """(status, headers, body) of the last of `times` requests over a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(times):
        connection.putrequest("GET", f"/{path}")
        for line in head:
            connection.putheader(*line)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def statuses(port, *head):
    return {page: get(port, page, *head)[0] for page in PAGES}


def test_the_page_is_its_users(site):
    """On loopback the kernel tells who is at the other end; a proxy's header cancels that."""
    port, token = site.http_port, token_of(site)
    assert set(statuses(port).values()) == {200}
    assert set(as_stranger(statuses, port).values()) == {401}
    assert set(as_stranger(statuses, port, ("Authorization", f"Bearer {token}")).values()) == {401}
    assert set(statuses(port, ("X-Forwarded-For", "10.0.0.1")).values()) == {403}
    assert as_stranger(get, port, "nothing")[0] == 401 and get(port, "nothing")[0] == 404


def test_root_may_read_a_users_page_and_others_not(site, common, homes):
    """A user's own collector serves that user and root."""
    folder, port = common / "his", cluster.free_port()
    folder.mkdir(mode=0o700)
    user = NOBODY - 1
    os.chown(folder, user, user)
    program = shutil.copy(site.build / "crema", common)
    os.chmod(program, 0o755)
    with open(common / "log", "wb") as log:
        collector = subprocess.Popen(
            [program, "collect", "--listen", f"127.0.0.1:{cluster.free_port()}", "--http", f"127.0.0.1:{port}"],
            env={**os.environ, "HOME": str(folder), "CREMA_DIR": str(folder)}, stdout=log, stderr=log,
            user=user, group=user, extra_groups=[])
    try:
        cluster.wait_until(lambda: "status page" in (common / "log").read_text(), "crema collect", 60)
        assert get(port, "status.json")[0] == 200
        assert as_stranger(get, port, "status.json")[0] == 401
    finally:
        collector.terminate()
        collector.wait(60)


def test_a_link_lets_another_user_in_once(site):
    """The cookie that it sets is of no use to a third user."""
    port = site.http_port
    link = crema(site, "token", "--link", "--http", f"127.0.0.1:{port}").stdout.strip()
    path = link.removeprefix(f"http://127.0.0.1:{port}/")
    assert path.startswith("?code=") and token_of(site) not in link
    status, head, _ = as_stranger(get, port, path)
    assert status == 303 and head["Location"] == "./" and "code" not in head["Location"]
    cookie = ("Cookie", head["Set-Cookie"].partition(";")[0])
    assert {"HttpOnly", "SameSite=Strict"} <= set(head["Set-Cookie"].split("; "))
    assert set(as_stranger(statuses, port, cookie).values()) == {200}
    assert as_stranger(get, port, path)[0] == 401
    assert as_stranger(get, port, "status.json")[0] == 401
    # another user who has got the cookie, as through another port of this host
    other = "X-Forwarded-For", "10.0.0.1"
    assert get(port, "status.json", cookie, other)[0] == 403
    assert token_of(site) not in site.collector.text()


def test_bearer_over_plain_http_is_an_option(tmp_path, homes):
    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        bearer = None
        for option in ([], ["--http-bearer"]):
            collector = procs.start("collect", [
                procs.build / "crema", "collect", "--listen", procs.target, "--http", f"0.0.0.0:{procs.http_port}",
                "--dir", procs.journal, *option])
            try:
                cluster.wait_until(lambda n=len(option): collector.text().count("status page") > n, "crema collect", 60, [collector])
                bearer = "Authorization", f"Bearer {token_of(procs)}"
                assert get(procs.http_port, "metrics")[0] == 401
                assert get(procs.http_port, "metrics", bearer)[0] == (200 if option else 401)
            finally:
                collector.stop()


# --- what the programs send to a port that is not the collector's

def clients(procs, port):
    """crema top and crema doctor against a port."""
    return [crema(procs, "top", "--once", "--http", f"127.0.0.1:{port}"),
            crema(procs, "doctor", "--json", "--collector", f"127.0.0.1:{cluster.free_port()}", "--http", f"127.0.0.1:{port}")]


def page_line(done):
    (line,) = [line for line in json.loads(done.stdout)["lines"] if line["about"] == "page"]
    return line


def secrets_of(token):
    raw = token.encode()
    return [raw, raw.hex().encode(), base64.b64encode(raw).rstrip(b"="), bytes.fromhex(token) if len(token) % 2 == 0 else raw]


NONCE = "00" * 32
ANSWERS = {"bearer": ["WWW-Authenticate: Bearer"], "basic": ['WWW-Authenticate: Basic realm="x"'],
           "proof": [f"WWW-Authenticate: Crema nonce={NONCE}"], "both": [f"WWW-Authenticate: Crema nonce={NONCE}, Bearer"]}


@pytest.mark.parametrize("asks", ANSWERS)
def test_a_squatter_hears_nothing_of_use(site, asks):
    """The squatter requests credentials in each way; everything that it received is tried on the real collector."""
    with Squatter(cluster.free_port(), head=ANSWERS[asks]) as squatter:
        top, doctor = clients(site, squatter.port)
    assert top.returncode == 1 and top.stderr.count("\n") == 1, top
    assert page_line(doctor)["level"] == "unknown"
    assert squatter.heard.count(b"GET /live.json") >= 2  # both programs sent requests
    for secret in secrets_of(token_of(site)):
        assert secret not in squatter.heard
    proofs = re.findall(rb"Authorization: ([^\r]*)", squatter.heard)
    assert bool(proofs) == ("Crema" in ANSWERS[asks][0])
    for proof in proofs:  # also after the collector has sent a nonce on this connection
        for times in (1, 2):
            head = "Authorization", proof.decode()
            assert as_stranger(lambda n=times, h=head: get(site.http_port, "live.json", h, times=n))[0] == 401


@pytest.mark.parametrize("what", ["plain", "sealed"])
def test_a_squatters_numbers_are_not_shown(site, what):
    body = json.dumps({"version": "0.1.0", "workers": {"connected": 4711, "silent": 0}, "worker_rows": [],
                       "worker_rows_cut": 0}).encode()
    if what == "sealed":
        body += bytes(48)
    kind = "application/vnd.crema.sealed" if what == "sealed" else "application/json"
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with Squatter(cluster.free_port(), answer=answer) as squatter:
        top, doctor = clients(site, squatter.port)
    assert top.returncode == 1 and "4711" not in top.stdout and f"another user (uid {NOBODY})" in top.stderr
    assert page_line(doctor)["level"] == "unknown" and "4711" not in doctor.stdout


def test_a_relay_reads_nothing(site):
    """It relays what the programs and the real collector send: they succeed, and it sees only sealed data."""
    with Squatter(cluster.free_port(), to=site.http_port) as relay:
        top, doctor = clients(site, relay.port)
    assert top.returncode == 0 and "0 connected" in top.stdout, top.stderr
    assert page_line(doctor)["level"] == "ok"
    assert relay.heard.count(b"vnd.crema.sealed") == 2
    assert b"uptime" not in relay.heard and b"connected" not in relay.heard and b"{" not in relay.heard.partition(b"sealed")[0]
    for secret in secrets_of(token_of(site)):
        assert secret not in relay.heard


def test_python_asks_no_page(site, tmp_path):
    """crema.measure() and crema.load() read the journal: they make no connections."""
    script = "import crema\nwith crema.measure(wait_seconds=0.5):\n    pass\nprint(len(crema.load('last').tasks))"
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-e", "trace=connect", "-o", trace, sys.executable, "-W", "ignore", "-c", script],
                          env={**site.env, "CREMA_DIR": str(site.journal), "PATH": f"{site.build}:{os.environ['PATH']}"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "1", done.stderr
    assert "exited with 0" in trace.read_text() and "sin_port" not in trace.read_text() and "sin6_port" not in trace.read_text()
