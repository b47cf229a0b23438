"""A deployment shaped like coffea-casa: a JupyterHub whose users' servers have jupyter-server-proxy, a dask-gateway behind it
that lets in the hub's users and runs schedulers and workers in containers, and data by https. The user's notebook runs
the collector and the analysis; workers have its token and certificates as a secret, and no folder of the user's."""

import json
import os
import secrets
import signal
from pathlib import Path

import certificates
import cluster
import containers
import gateway
import jupyter_kernel
import jupyterhub
import venvs

PINS = [cluster.ROOT / "tests" / f"{name}.txt" for name in ("gateway", "notebook")]
PREFIX = "/services/dask-gateway"
PROGRAMS, SECRET, TRUST = "/opt/crema", "/etc/crema", "/etc/ssl/of-the-data.pem"  # in containers

HUB = """
c.JupyterHub.services = [{{"name": "dask-gateway", "url": "{origin}", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "user", "scopes": ["self", "access:services!service=dask-gateway"]}}]
c.Spawner.server_token_scopes = ["users:activity!user", "access:servers!server", "access:services!service=dask-gateway"]
c.Spawner.environment["DASK_GATEWAY__AUTH__TYPE"] = "jupyterhub"
c.Spawner.environment["DASK_GATEWAY__PROXY_ADDRESS"] = "{tcp}"
"""
GATEWAY = """
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.JupyterHubAuthenticator"
c.JupyterHubAuthenticator.jupyterhub_api_token = "{token}"
c.JupyterHubAuthenticator.jupyterhub_api_url = "{api}"
c.JupyterHubAuthenticator.jupyterhub_service_name = "dask-gateway"
c.LocalBackend.inherited_environment = []
c.LocalBackend.sigint_timeout = 60
c.ContainerBackend.start = {start!r}
c.ContainerBackend.entrypoint = {entrypoint!r}
"""
# A secret is readable by a group, which crema refuses.
ENTRYPOINT = ["/bin/sh", "-c", f'install -m 600 {SECRET}/token /tmp/crema-token && exec "$@"', "entrypoint"]


def image():
    """The bin directory of the Python that notebooks and workers have."""
    wanted = [word for pins in PINS for word in ("-r", pins)]
    return gateway.with_dask(venvs.make(venvs.VENVS / "casa", "", ["--no-deps", *wanted], "".join(p.read_text() for p in PINS)))


class Casa:
    """`run` runs a cell of the user's notebook, and `home` is the user's. trust: the authority of the data's server; root: of the
    containers. `config` is added to the gateway's configuration."""

    def __init__(self, place, root, trust, config):
        self.place, self.trust = Path(place), trust
        self.place.mkdir()
        self.port, self.http_port = cluster.free_port(), cluster.free_port()
        self.collector = None  # its pid
        self.make_secret()
        self.image, token = image(), secrets.token_hex(32)
        self.gateway = gateway.Gateway(self.place / "gateway", PREFIX)
        self.hub = jupyterhub.Hub(self.place / "hub", self.http_port, HUB.format(origin=self.gateway.origin, token=token, tcp=self.gateway.tcp))
        self.home = self.place / "hub" / jupyterhub.USER
        start = containers.command(root, containers.bind(cluster.ROOT), containers.bind(cluster.BUILD, PROGRAMS),
                                   containers.bind(self.secret, SECRET), containers.bind(trust, TRUST),
                                   f"--setenv=PATH={self.image}:{PROGRAMS}:/usr/bin:/bin", f"--setenv=SSL_CERT_FILE={TRUST}")
        self.config = GATEWAY.format(token=token, api=self.hub.api, start=start, entrypoint=ENTRYPOINT) + config

    def make_secret(self):
        """All but the token, which the user's collector makes. `own`: the collector's files."""
        self.secret = self.place / "secret"
        self.secret.mkdir()
        certificates.authority(self.place, "ca")
        for name in ("collector", "worker"):
            certificates.certificate(self.place, name, "ca")
        for name, source in {"ca": "ca.pem", "cert": "worker.pem", "key": "worker.key"}.items():
            (self.secret / f"{name}.pem").write_bytes((self.place / source).read_bytes())
        self.own = {"ca": self.place / "ca.pem", "cert": self.place / "collector.pem", "key": self.place / "collector.key"}

    def start(self):
        """The hub waits half a minute for its service, the gateway, which needs the hub later only."""
        self.gateway.start(self.image, self.config, {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, "casa_backend.ContainerBackend")
        self.hub.__enter__()
        kernels = self.home / ".local/share/jupyter/kernels/analysis"
        kernels.mkdir(parents=True)
        env = {"PATH": f"{self.image}:{cluster.BUILD}:{os.environ['PATH']}", "PYTHONPATH": f"{cluster.ROOT / 'python'}:{cluster.ROOT / 'examples'}",
               "DASK_GATEWAY__ADDRESS": f"http://127.0.0.1:{self.hub.port}{PREFIX}", "SSL_CERT_FILE": str(self.trust), "CREMA_QUIET": "on"}
        (kernels / "kernel.json").write_text(jupyter_kernel.spec(self.image / "python", env))
        self.run = jupyter_kernel.Kernel(self.hub, "analysis").run

    def share_token(self):
        """The user's token becomes a part of the secret, as `kubectl create secret` makes it."""
        (self.secret / "token").write_bytes((self.home / ".config/crema/token").read_bytes())
        (self.secret / "token").chmod(0o440)

    def report(self, run="last"):
        """What the user's notebook reads."""
        return json.loads(self.run(f"print(subprocess.run(['crema', 'report', '--run', {run!r}, '--json', '-'], check=True, capture_output=True, "
                                          "text=True).stdout)"))

    def settled(self, run, enough):
        def ready():
            found = self.report(run)
            return found if enough(found) else None

        return cluster.wait_until(ready, "the records", 90)

    def first_process(self, host):
        """Of the container with this name, as the machine sees it."""
        (starter,) = [pid for pid, _, _ in cluster.stats() if f"--machine={host}" in cluster.strings_of(pid, "cmdline")]
        (first,) = [pid for pid in cluster.children(starter) if numbers(pid)[-1:] == ["1"]]
        return first

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.gateway.__exit__()
        if self.collector:  # it outlives the notebook
            cluster.kill(self.collector, signal.SIGTERM)
        self.hub.__exit__()


def numbers(pid):
    """A process's ids in the namespaces that contain it, the innermost last."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    return next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
