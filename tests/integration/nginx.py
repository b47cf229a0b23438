"""A real nginx on loopback whose access log is the truth: one line for each finished request."""

import shutil
import subprocess
import time
from pathlib import Path

import cluster

CONFIG = """
daemon off;
master_process off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 256; }}
http {{
    log_format bytes "$request_uri $bytes_sent $request_length $connection $connection_requests";
    access_log {home}/access.log bytes;
    client_body_temp_path {home}/t1;
    proxy_temp_path {home}/t2;
    fastcgi_temp_path {home}/t3;
    uwsgi_temp_path {home}/t4;
    scgi_temp_path {home}/t5;
    keepalive_requests 100000;
    keepalive_timeout 600s;
    server {{
        listen 127.0.0.1:{port};
        root {files};
        location ~ ^/slow/[^/]+/(.*)$ {{ limit_rate {rate}; alias {files}/$1; }}
        location ~ ^/[^/]+/(.*)$ {{ alias {files}/$1; }}
    }}
}}
"""


def unpacked():
    """The program out of Debian's package, without installing it: an installed nginx would start as
    a service of the machine."""
    place = cluster.BUILD / "nginx"
    program = place / "usr" / "sbin" / "nginx"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        download = ["apt-get", "download", "nginx"]
        if subprocess.run(download, cwd=place, capture_output=True).returncode:
            subprocess.run(["apt-get", "update"], capture_output=True)  # the lists may be old
            subprocess.run(download, cwd=place, check=True, capture_output=True)
        (package,) = place.glob("nginx_*.deb")
        subprocess.run(["dpkg", "-x", package, place], check=True)
    return program


def program():
    """Debian keeps it in /usr/sbin, which is not in every user's PATH."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/sbin")
    return found or unpacked()


class Nginx:
    """/NAME/FILE is FILE of the directory, /slow/NAME/FILE the same throttled: a NAME for each user
    keeps their lines in the log apart."""

    def __init__(self, home, files, rate="400k"):
        self.home, self.port = Path(home), cluster.free_port()
        self.home.mkdir(parents=True, exist_ok=True)
        config = self.home / "nginx.conf"
        config.write_text(CONFIG.format(home=self.home, port=self.port, files=files, rate=rate))
        argv = [program(), "-e", self.home / "error.log", "-p", self.home, "-c", config]
        self.process = cluster.Process("nginx", argv, self.home / "nginx.log")
        cluster.wait_until((self.home / "nginx.pid").exists, "nginx", 30, [self.process])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.signal_group(15)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.signal_group(9)
            self.process.wait()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def rows(self):
        """[(uri, bytes sent, bytes of the request, connection, its request number)]"""
        lines = (self.home / "access.log").read_text().splitlines()
        return [(line.split()[0], *map(int, line.split()[1:])) for line in lines]

    def of(self, prefix):
        """(requests, bytes sent, bytes of the requests) below a prefix, once no line follows: nginx
        writes it just after the last byte."""
        before = None
        while True:
            rows = [r for r in self.rows() if r[0].startswith(prefix)]
            if rows == before:
                return len(rows), sum(r[1] for r in rows), sum(r[2] for r in rows)
            before = rows
            time.sleep(0.2)
