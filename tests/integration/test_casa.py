"""The recipe for coffea-casa as one deployment (casa.py): JupyterHub, dask-gateway, TLS, and workers in containers without a shared
home. The tests are one user's session, in order."""

import collections
import json
import os
import shlex
import signal
import ssl
import urllib.error
import urllib.request

import browser
import casa
import certificates
import cluster
import containers
import jobs
import pytest
import recipes
import uproot
from nginx import Nginx, served_files
from relay import Relay

pytestmark = pytest.mark.further

SIZE = 1_234_567
CLOSE_NOTIFY = 24  # the last bytes of a TLS connection, which its client may leave unread

SETUP = """
import json, os, shlex, socket, subprocess, sys, time, urllib.request
import cloudpickle, crema, ttbar
from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import span
cloudpickle.register_pickle_by_value(ttbar)
NanoAODSchema.warn_missing_crossrefs = False
"""
COLLECT = """
collector = subprocess.Popen(shlex.split({command!r}), stdout=open("collect.log", "w"), stderr=subprocess.STDOUT)
print(collector.pid)
"""
WORKERS = """
cluster.scale(2)
client = cluster.get_client()
client.wait_for_workers(2, timeout=120)
def inside(*paths):
    return {{"host": socket.gethostname(), "pid": os.getpid(), "home": os.environ["HOME"], "sees": [path for path in paths if os.path.exists(path)]}}
seen = [client.run_on_scheduler(inside, {home!r}, {secret!r}), *client.run(inside, {home!r}, {secret!r}).values()]
print(json.dumps([seen, list(client.scheduler_info()["workers"])]))
"""
RUN = """
class Where(ttbar.TTbarProcessor):
    def process(self, events):
        return {{**super().process(events), "chunks": {{socket.gethostname(): 1}}}}
run = processor.Runner(processor.DaskExecutor(client=client, status=False), schema=NanoAODSchema, chunksize=20_000, savemetrics=True)
with crema.measure(client) as m:
    output, report = run({{"tt": {{"files": {{{url!r}: "Events"}}}}}}, processor_instance=Where())
    m.set_coffea_report(report)
print(json.dumps([m.run.id, output["events"]["tt"], output["chunks"], m.warning]))
"""
HOLD = """
def read_and_stay(url, host):
    urllib.request.urlopen(url).read()
    while socket.gethostname() == host:
        time.sleep(0.1)
    return socket.gethostname()
victim = {host!r}
(address,) = [a for a, host in client.run(socket.gethostname).items() if host == victim]
with span("held") as held:
    future = client.submit(read_and_stay, {url!r}, victim, workers=[address], allow_other_workers=True, key="read_and_stay")
print(held)
"""


class Session:
    """What the user's session has shown so far."""


def https(relay, path):
    return f"https://127.0.0.1:{relay.port}{path}"


@pytest.fixture(scope="module")
def session(tmp_path_factory, data):
    made = Session()
    home = tmp_path_factory.mktemp("casa")
    files = served_files(home, {"big.bin": SIZE}, data["zstd"])
    config, collect, cell = recipes.blocks("coffea-casa: JupyterHub, dask-gateway, TLS, containers")
    with Nginx(home / "nginx", files, tls=True) as made.nginx, Relay(made.nginx.tls_port) as made.relay, Relay(made.nginx.tls_port) as made.other, \
            containers.image(home / "root") as root, casa.Casa(home / "casa", root, made.nginx.home / "cert.pem", config) as made.casa:
        place, run = made.casa, made.casa.run
        run(SETUP)
        for name in ("ca", "cert", "key"):
            collect = collect.replace(f" {name}.pem", f" {shlex.quote(str(place.own[name]))}")
        place.collector = int(run(COLLECT.format(command=f"{collect.strip()} --listen 127.0.0.1:{place.port} --http 127.0.0.1:{place.http_port}")))
        made.log = place.home / "collect.log"
        cluster.wait_until(lambda: made.log.exists() and f":{place.port}" in made.log.read_text(), "crema collect", 60)
        place.share_token()
        run(cell.replace("notebook.example.org:8990", f"127.0.0.1:{place.port}"))
        made.places, made.addresses = json.loads(run(WORKERS.format(home=str(place.home), secret=str(place.secret))))
        made.hosts = {place["host"] for place in made.places[1:]}
        yield made


@pytest.fixture(scope="module")
def calm(session):
    """coffea's Runner over the file on the server."""
    session.run, session.events, session.chunks, session.warning = json.loads(session.casa.run(RUN.format(url=https(session.relay, "/casa/nano.root"))))
    session.received = session.relay.down_bytes
    return session


def test_nothing_is_shared_but_the_secret(session):
    """By the scheduler's container, and those of two workers."""
    assert len({place["host"] for place in session.places}) == 3
    for place in session.places:
        assert place["pid"] < 100 and place["home"] == containers.HOME and place["sees"] == []


def test_a_whole_run(calm, data):
    """Against the relay in front of the data's server, the server's log, and the file."""
    assert calm.warning is None
    found = calm.casa.settled(calm.run, lambda r: jobs.finished(r) and len(r["chunks"]) == 10)
    with uproot.open(data["zstd"]) as file:
        assert calm.events == found["metrics"]["total_events"] == file["Events"].num_entries
    hosts = {worker["worker"]: worker["host"] for worker in found["workers"]}
    assert collections.Counter(hosts[chunk["worker"]] for chunk in found["chunks"]) == calm.chunks and set(calm.chunks) == calm.hosts
    received = sum(task["network_read_bytes"] for task in found["tasks"])
    assert calm.received - CLOSE_NOTIFY * calm.relay.connections <= received <= calm.received
    assert received > 0.1 * os.path.getsize(data["zstd"])
    (server,) = [s for s in found["servers"] if s["server"] == f"127.0.0.1:{calm.relay.port}"]
    assert (server["scheme"], server["requests"], server["failed_requests"]) == ("https", calm.nginx.of("/casa/")[0], 0)
    whole(found)


def whole(found):
    done = found["completeness"]
    assert done["records_lost"] == done["records_refused"] == done["tasks_refused"] == 0


def let_in(port, **options):
    """Whether a server talks to a TLS client with these certificates."""
    try:
        return certificates.spoken_to(port, **options)[1].startswith(b"CRMF")
    except (ssl.SSLError, ConnectionError):
        return False


def test_all_connections_use_tls(session):
    """crema's by its own authority, Dask's by the gateway's."""
    place = session.casa
    (gateways,) = (place.gateway.home / "clusters").glob("*/.certs")
    of_dask = (gateways / "dask.crt", gateways / "dask.pem")
    assert let_in(place.port, cert=(place.secret / "cert.pem", place.secret / "key.pem"))
    assert not let_in(place.port) and not let_in(place.port, cert=of_dask)
    assert len(session.addresses) == 2
    for address in session.addresses:
        port = int(address.rpartition(":")[2])
        assert certificates.spoken_to(port, cert=of_dask)[0] == "TLSv1.3"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            certificates.spoken_to(port)


def page_status(opener, url):
    """The status of an answer, and whether it is the page."""
    try:
        with opener.open(url, timeout=60) as answer:
            return answer.status, b'id="data"' in answer.read(), answer.url
    except urllib.error.HTTPError as error:
        return error.code, b'id="data"' in error.read(), error.url


def test_page_through_the_hub(calm, tmp_path):
    """Nobody but the user gets to the collector, and the user needs a link."""
    place = calm.casa
    stranger = urllib.request.build_opener()
    status, shown, where = page_status(stranger, place.hub.url)
    assert not shown and "/hub/login" in where, (status, where)
    at = f"127.0.0.1:{place.http_port}"
    link = place.run(f"print(subprocess.run(['crema', 'token', '--link', '--http', '{at}'], check=True, capture_output=True, text=True).stdout)").strip()
    link = link.replace(f"http://{at}/", place.hub.url)
    assert not page_status(stranger, link)[1]
    assert page_status(place.hub.web, place.hub.url)[:2] == (403, False)
    found = place.report(calm.run)
    with browser.Browser(tmp_path / "chromium") as tab:
        place.hub.let_in(tab)
        tab.open(link)
        tab.wait("document.querySelectorAll('main > section.panel').length >= 15")
        tab.wait("/0 running on 2 workers/.test(document.getElementById('live-text').textContent)")
        tab.open(f"{place.hub.url}?run={calm.run}")
        tab.wait("document.querySelectorAll('main > section.panel').length >= 15")
        tab.wait(f"document.querySelector('#chart-stream').getAttribute('aria-label').includes('{len(found['tasks'])} tasks')")
        assert calm.run in tab.run("document.body.textContent") and tab.problems == []


def test_a_killed_container(calm):
    """With all its processes at once, by the machine: its worker, and the agent inside."""
    place = calm.casa
    victim = sorted(calm.hosts)[0]
    held = place.run(HOLD.format(host=victim, url=https(calm.other, "/held/big.bin"))).strip()
    cluster.wait_until(lambda: calm.nginx.of("/held/")[0] == 1, "the task's request")

    received = calm.other.down_bytes

    def is_known():
        rows = jobs.tasks_of(place.report(held), "read_and_stay")
        return rows and received - CLOSE_NOTIFY <= rows[0]["network_read_bytes"] <= received

    cluster.wait_until(is_known, "the task's progress", 60)
    os.kill(place.first_process(victim), signal.SIGKILL)
    took_over = place.run("print(future.result(timeout=120))").strip()
    assert took_over != victim
    found = place.settled(held, lambda r: jobs.finished(r) and len(jobs.tasks_of(r, "read_and_stay")) == 2)
    lost, done = sorted(jobs.tasks_of(found, "read_and_stay"), key=lambda t: t["start"])
    assert (lost["status"], done["status"]) == ("lost", "ok")
    assert received - CLOSE_NOTIFY <= lost["network_read_bytes"] <= received and received > SIZE
    workers = {worker["host"]: worker for worker in found["workers"]}
    assert workers[victim]["goodbye"] is None and workers[victim]["silent"] and not workers[took_over]["silent"]
    (finding,) = [f for f in found["findings"] if f["id"] == "killed_work"]
    assert workers[victim]["worker"] in finding["sentence"]


def test_at_the_end_each_worker_says_goodbye(calm):
    place = calm.casa
    place.run("cluster.shutdown()")
    found = place.settled(calm.run, lambda r: any(w["goodbye"] for w in r["workers"]))
    assert {w["host"] for w in found["workers"]} == calm.hosts
    assert [w["goodbye"]["how"] for w in found["workers"] if not w["silent"]] == ["exit"]
