"""A real dask-gateway server on loopback. Its clusters run with the environment that also has dask-gateway, as in an image."""

import urllib.request
from pathlib import Path

import cluster
import venvs

PINS = cluster.ROOT / "tests" / "gateway.txt"

CONFIG = """
c.DaskGateway.backend_class = {backend!r}
c.LocalBackend.clusters_directory = {clusters!r}
c.DaskGateway.address = "127.0.0.1:{api}"
c.Proxy.address = "127.0.0.1:{proxy}"
c.Proxy.tcp_address = "127.0.0.1:{tcp}"
c.Proxy.prefix = {prefix!r}
"""


def environment():
    """The bin directory of a Python with dask-gateway in addition to all that is here."""
    return with_dask(venvs.beside("gateway", PINS))


def with_dask(place):
    """Adds the command `dask` of that Python."""
    (place / "dask").write_text(f"#!/bin/sh\nexec '{place}/python' -m dask \"$@\"\n")
    (place / "dask").chmod(0o755)
    return place


class Gateway:
    """The server, in the folder `home`, once started."""

    def __init__(self, home, prefix=""):
        self.home, self.prefix = Path(home), prefix
        self.ports = {name: cluster.free_port() for name in ("api", "proxy", "tcp")}
        self.origin = f"http://127.0.0.1:{self.ports['proxy']}"
        self.address, self.tcp = self.origin + prefix, f"tls://127.0.0.1:{self.ports['tcp']}"
        self.process = None

    def start(self, place, config, env, backend="dask_gateway_server.backends.local.UnsafeLocalBackend"):
        """config: the text of its configuration file, without addresses."""
        (self.home / "clusters").mkdir(parents=True)
        (self.home / "config.py").write_text(config + CONFIG.format(
            backend=backend, clusters=str(self.home / "clusters"), prefix=self.prefix, **self.ports))
        self.process = cluster.Process("gateway", [place / "dask-gateway-server", "-f", self.home / "config.py"], self.home / "log",
                                       env=env, cwd=self.home)
        cluster.wait_until(lambda: "Dask-Gateway server started" in self.process.text(), "the gateway", 60, [self.process])
        cluster.wait_until(self.answers, "the gateway's routes", 60, [self.process])

    def answers(self):
        """Whether the proxy answers: it learns its routes from the server after both have started."""
        try:
            with urllib.request.urlopen(f"{self.address}/api/health", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stop()
