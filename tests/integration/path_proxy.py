"""An nginx that serves a collector's HTTP pages below another path, as jupyter-server-proxy does."""

import urllib.request
from pathlib import Path

import cluster
import nginx

CONFIG = """
daemon off;
master_process off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log {home}/access.log;
    client_body_temp_path {home}/t1;
    proxy_temp_path {home}/t2;
    fastcgi_temp_path {home}/t3;
    uwsgi_temp_path {home}/t4;
    scgi_temp_path {home}/t5;
    server {{
        listen 127.0.0.1:{port};
        location /user/me/proxy/8991/ {{
            proxy_pass http://127.0.0.1:{to}/;
            proxy_set_header Host {host};
        }}
    }}
}}
"""


class PathProxy(nginx.Server):
    """`host`: the Host header that the collector receives."""

    def __init__(self, home, to, host="hub.example.org"):
        self.home, self.port = Path(home), cluster.free_port()
        self.home.mkdir(parents=True, exist_ok=True)
        config = self.home / "nginx.conf"
        config.write_text(CONFIG.format(home=self.home, port=self.port, to=to, host=host))
        self.serve(config)
        self.prefix = "/user/me/proxy/8991/"
        self.url = f"http://127.0.0.1:{self.port}{self.prefix}"

    def let_in(self, _):
        """Everybody is."""

    def open(self, url):
        return urllib.request.urlopen(url, timeout=30)

    def requests(self):
        return [line.split('"')[1].split()[1] for line in (self.home / "access.log").read_text().splitlines()]
