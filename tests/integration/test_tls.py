"""The agents' connections with the certificates of a Dask cluster with TLS: real workers, real refusals."""

import json
import re
import socket
import ssl
import subprocess
import urllib.request

import cluster
import jobs
import pytest
import yaml
from certificates import RSA, authority, certificate, spoken_to
from distributed import Client
from distributed.security import Security

PEERS = ("scheduler", "worker", "stranger", "late")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """One cluster's certificates in Dask's configuration; a stranger's from another authority; an expired one."""
    home = tmp_path_factory.mktemp("certificates")
    authority(home, "ca")
    authority(home, "other")
    certificate(home, "scheduler", "ca", key=RSA)
    certificate(home, "worker", "ca")
    certificate(home, "stranger", "other")
    certificate(home, "late", "ca", days="-1")
    both = home / "both.pem"  # certificate and key in one file
    both.write_text((home / "worker.pem").read_text() + (home / "worker.key").read_text())
    tls = {"ca-file": str(home / "ca.pem"), "scheduler": {"cert": str(home / "scheduler.pem"), "key": str(home / "scheduler.key")},
           "worker": {"cert": str(both)}, "client": {"cert": str(both)}}
    (home / "dask").mkdir()
    (home / "dask" / "tls.yaml").write_text(yaml.safe_dump(
        {"distributed": {"comm": {"tls": tls, "default-scheme": "tls", "require-encryption": True}}}))
    return home


@pytest.fixture(scope="module")
def tls(certificates, tmp_path_factory, homes):
    env = {**homes, "DASK_CONFIG": str(certificates / "dask")}
    with cluster.Cluster(tmp_path_factory.mktemp("tls") / "cluster", env) as procs:
        procs.start_collector()
        procs.start_scheduler()
        yield procs


def test_a_cluster_with_certificates(tls, certificates, tmp_path):
    """Both ends find them in Dask's configuration; the run arrives complete; nothing is sent in plain text."""
    assert "(TLS)" in tls.collector.text()
    tls.start_worker()
    security = Security(tls_ca_file=str(certificates / "ca.pem"), tls_client_cert=str(certificates / "both.pem"),
                        require_encryption=True)
    assert tls.address.startswith("tls://")
    with Client(tls.address, security=security) as client:
        client.wait_for_workers(1, timeout=120)
        (tmp_path / "file").write_bytes(b"x" * 1_000_001)
        _, (task,) = jobs.submit(tls, client, "undertls", jobs.read_whole, str(tmp_path / "file"))
    assert task["read_bytes"] == 1_000_001
    cert = (certificates / "worker.pem", certificates / "worker.key")
    version, bytes_got = spoken_to(tls.port, cert=cert)
    assert version == "TLSv1.3" and bytes_got.startswith(b"CRMF")
    assert spoken_to(tls.port, cert=cert, most=ssl.TLSVersion.TLSv1_2)[0] == "TLSv1.2"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", ["no certificate", "another authority", "an expired one", "an old version", "no TLS"])
def test_others_are_refused(tls, certificates, how):
    before = refused(tls)
    if how == "no TLS":
        with socket.create_connection(("127.0.0.1", tls.port), 30) as plain:
            plain.sendall(b"CRMF" + bytes(100))
            assert b"CRMF" not in plain.recv(4096)
    else:
        peer = {"another authority": "stranger", "an expired one": "late"}.get(how)
        options = {"cert": (certificates / f"{peer}.pem", certificates / f"{peer}.key")} if peer else {}
        if how == "an old version":
            options = {"least": ssl.TLSVersion.TLSv1, "most": ssl.TLSVersion.TLSv1_1}
        with pytest.raises((ssl.SSLError, ConnectionError)):
            assert spoken_to(tls.port, **options)[1] == b"", "it was let in"
            raise ConnectionError
    cluster.wait_until(lambda: refused(tls) > before, "the refusal", 60)
    # One line per ten seconds: from the first of these tests, whichever that is.
    assert re.search("dropped 127.0.0.1:[0-9]+: .*(no TLS connection: |certificate is not accepted: )", tls.collector.text())


def refused(procs):
    with urllib.request.urlopen(f"http://127.0.0.1:{procs.http_port}/status.json", timeout=30) as answer:
        return json.load(answer)["refused"]["bad_tls"]


@pytest.mark.parametrize("wrong,words", [
    ({"CREMA_TLS_CA_FILE": "other.pem", "CREMA_TLS_CERT": "both.pem"}, "peer's certificate is not accepted"),
    pytest.param({"CREMA_TLS_CA_FILE": "ca.pem", "CREMA_TLS_CERT": "late.pem", "CREMA_TLS_KEY": "late.key"}, "expired",
                 marks=pytest.mark.matrix),
    ({"CREMA_TLS": "off"}, "requires TLS"),
    pytest.param({"CREMA_TLS_CA_FILE": "ca.pem", "CREMA_TLS_CERT": "nowhere.pem"}, "cannot use the certificate",
                 marks=pytest.mark.matrix),
])
def test_an_agent_says_why(tls, certificates, tmp_path, wrong, words):
    """Its records stay in the spool, and its log has the reason; the worker does not notice."""
    state = tmp_path / "state"
    files = {name: value if name == "CREMA_TLS" else str(certificates / value) for name, value in wrong.items()}
    worker = tls.start_worker(env={**files, "XDG_STATE_HOME": str(state)})
    log = state / "crema" / "spool" / "agent.log"
    cluster.wait_until(lambda: log.exists() and words in log.read_text(), f"'{words}' in the agent's log", 60)
    assert worker.poll() is None
    cluster.wait_until(lambda: list((state / "crema" / "spool").glob("*.crema")), "records in the spool", 60)
    worker.stop()


def test_given_certificates_and_a_page_for_others(certificates, tmp_path, homes):
    """By options, and https if the page is reachable from other machines. Wrong ones end the start with one line."""
    given = ["--tls-ca-file", certificates / "ca.pem", "--tls-cert", certificates / "scheduler.pem"]
    key = ["--tls-key", certificates / "scheduler.key"]
    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        crema = procs.build / "crema"
        collect = [crema, "collect", "--listen", procs.target, "--http", f"0.0.0.0:{procs.http_port}", "--dir", procs.journal]
        done = subprocess.run([*collect, *given], capture_output=True, text=True, timeout=60, env=procs.env)
        assert done.returncode == 1 and "private key" in done.stderr and done.stderr.count("\n") == 1
        done = subprocess.run([*collect, *given[2:]], capture_output=True, text=True, timeout=60, env=procs.env)
        assert done.returncode == 1 and "--tls-ca-file" in done.stderr and done.stderr.count("\n") == 1
        procs.collector = procs.start("collect", [*collect, *given, *key])
        cluster.wait_until(lambda: "https://" in procs.collector.text(), "crema collect", 60, [procs.collector])
        token = subprocess.run([crema, "token"], capture_output=True, text=True, env=procs.env).stdout.strip()
        trusting = ssl.create_default_context(cafile=certificates / "ca.pem")
        trusting.check_hostname = False
        url = f"https://127.0.0.1:{procs.http_port}/status.json"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=30, context=trusting) as answer:
            assert answer.status == 200
        with pytest.raises(OSError):
            urllib.request.urlopen(url.replace("https", "http"), timeout=30)
