"""Between a real agent and its collector: a process that has the port but not the token learns nothing, keeps nothing, and
changes nothing; the records wait in the spool and arrive, each once, when the right collector answers."""

import json
import subprocess
import urllib.request

import cluster
import faults
import jobs
import middle
import pytest
from distributed import Client, span

NOT_KNOWN = "does not know the token; records are kept in '"


class Site:
    def __init__(self, procs, client, between, worker, log):
        self.procs, self.client, self.between, self.worker, self.log = procs, client, between, worker, log
        self.keys = []

    def tasks(self, n):
        """Runs n tasks in a separate span."""
        keys = [jobs.unique("stranger") for _ in range(n)]
        with span("strangers"):
            futures = [self.client.submit(faults.count_up, i, key=key, pure=False) for i, key in enumerate(keys)]
            assert self.client.gather(futures) == list(range(1, n + 1))
        self.keys = keys

    def once_each(self):
        """Each of the last tasks is in the report once, and nothing is missing."""
        def all_there(found):
            return {t["key"] for t in jobs.tasks_of(found, "stranger")} >= set(self.keys)  # not the run before

        found = jobs.settled(self.procs, all_there, seconds=30)
        assert sorted(t["key"] for t in jobs.tasks_of(found, "stranger")) == sorted(self.keys)
        assert all(t["counted"] and t["status"] == "ok" for t in jobs.tasks_of(found, "stranger"))
        faults.whole(found)

    def said(self, words):
        cluster.wait_until(lambda: self.log.exists() and words in self.log.read_text(), f"'{words}' in agent.log", 60)

    def refused(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.procs.http_port}/status.json", timeout=60) as answer:
            return json.load(answer)["refused"]


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes):
    state = tmp_path_factory.mktemp("state")
    with cluster.Cluster(tmp_path_factory.mktemp("strangers") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        between = middle.Middle(procs.port)
        worker = procs.start_worker(env={"CREMA_COLLECTOR": between.target, "XDG_STATE_HOME": str(state)})
        with Client(procs.address) as client:
            client.wait_for_workers(1, timeout=120)
            yield Site(procs, client, between, worker, state / "crema" / "spool" / "agent.log")
        worker.stop()
        for pid in cluster.agents_of(between.target):
            cluster.wait_until(lambda pid=pid: pid not in cluster.agents_of(between.target), "the agent's end", 60)
        between.close()


@pytest.mark.parametrize("way, rest, words", [
    ("squat", "wrong token", NOT_KNOWN), ("without_token", "wrong token", NOT_KNOWN),
    ("old_release", "", "the collector speaks versions 1 to 1 of the protocol, this agent 2; use the same release")])
def test_a_squatter_hears_a_nonce(site, way, rest, words):
    """No HELLO, no DATA, nothing sealed: only a version and a random number, and the reason why the agent leaves."""
    if site.log.exists():
        site.log.unlink()
    site.between.change(getattr(site.between, way))
    site.tasks(20)
    cluster.wait_until(lambda: [said for name, said in site.between.heard if name == "rest"], "the agent", 60)
    site.said(words)
    for name, said in list(site.between.heard):
        if name == "auth":
            assert said == ["nonce", "version"]
        elif rest:
            kind, payload = said[5], said[56:]
            assert kind == 6 and payload.endswith(rest.encode()) and len(said) < 100
        else:
            assert said == b""
    site.between.change(site.between.faithful)
    site.once_each()


@pytest.mark.parametrize("way", ["squat", "without_token"])
def test_the_doctor_says_it_too(site, way):
    """A collector with a wrong proof, and one without any token."""
    site.between.change(getattr(site.between, way))
    done = subprocess.run([site.procs.build / "crema", "doctor", "--json", "--http", f"127.0.0.1:{site.procs.http_port}"],
                          env=site.procs.env, capture_output=True, text=True, timeout=120)
    lines = [line["text"] for line in json.loads(done.stdout)["lines"] if line["level"] == "bad"]
    assert f"the collector at {site.between.target} does not know the token; records are kept in {site.log.parent}" in lines
    site.tasks(5)
    cluster.wait_until(lambda: any(site.log.parent.glob("*.crema")), "the spool", 60)
    site.between.change(site.between.faithful)
    site.once_each()


def test_somebody_elses_collector(site, tmp_path):
    """`crema collect --insecure` of another user, with another token, on the port."""
    (tmp_path / "token").write_text("another-token-that-is-long-enough\n")
    (tmp_path / "token").chmod(0o600)
    port = cluster.free_port()
    other = site.procs.start("squatter", [
        site.procs.build / "crema", "collect", "--insecure", "--listen", f"127.0.0.1:{port}", "--http",
        f"127.0.0.1:{cluster.free_port()}", "--dir", tmp_path / "state"],
        {**site.procs.env, "CREMA_TOKEN_FILE": str(tmp_path / "token")})
    cluster.wait_until(lambda: "status page" in other.text(), "the other collector", 60, [other])
    site.between.server_port = port
    site.between.change(site.between.faithful)
    site.tasks(50)
    cluster.wait_until(lambda: "wrong token" in other.text(), "the other collector's line", 60)
    site.between.server_port = site.procs.port
    site.between.cut()
    assert other.stop() == 0
    assert not any(b"stranger" in path.read_bytes() for path in (tmp_path / "state").rglob("*.crema"))
    site.once_each()


@pytest.mark.parametrize("kind, reason", [("changed", "bad_seal"), ("twice", "bad_seal"), ("left out", "bad_seal"),
                                          ("swapped", "bad_seal"), ("answer", None)])
def test_a_relay_changes_nothing(site, kind, reason):
    """Every change ends the connection, and the next connection continues from there."""
    before, faults_before = site.refused(), site.between.faults
    site.between.change(site.between.fault(kind))
    site.tasks(30)
    if reason:
        cluster.wait_until(lambda: site.refused()[reason] > before[reason] + 1, f"two times {reason}", 60)
    else:
        site.said("was changed on its way")
    assert site.between.faults > faults_before
    site.between.change(site.between.faithful)
    site.once_each()


def test_a_relay_cannot_speak(site):
    """It relays the whole handshake, and still cannot send anything that is accepted."""
    before = site.refused()
    site.between.forged = []
    site.between.change(site.between.speak_itself)
    site.tasks(20)
    cluster.wait_until(lambda: len(site.between.forged) >= 2, "two tries", 60)
    site.between.change(site.between.faithful)
    after = site.refused()
    assert after["bad_seal"] + after["too_large"] >= before["bad_seal"] + before["too_large"] + 2
    assert not any(b"stranger" in said or b"CRMF" in said for said in site.between.forged)
    site.once_each()


def test_nothing_can_be_read(site):
    """Names that are sent do not appear in the bytes that pass."""
    passed = []

    def tap(n, record):
        passed.append(record)
        return [record]

    site.between.change(lambda connection: site.between._relay(connection, tap, tap))
    site.tasks(30)
    site.once_each()
    whole = b"".join(passed)
    assert len(whole) > 5000
    assert not any(word in whole for word in (b"stranger", b"CRMF", b"worker_address", b"read_bytes", b"task_fields"))
