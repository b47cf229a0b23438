"""A real nginx on loopback whose access log is the reference: one line for each finished request."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import certificates
import cluster
import packages

CONFIG = """
daemon off;
master_process off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 256; }}
http {{
    log_format bytes "$request_uri $bytes_sent $request_length $connection $connection_requests $request_time";
    log_format answers "$request_uri $request_method $status $body_bytes_sent $http_range";
    access_log {home}/access.log bytes;
    access_log {home}/answers.log answers;
    client_body_temp_path {home}/t1;
    proxy_temp_path {home}/t2;
    fastcgi_temp_path {home}/t3;
    uwsgi_temp_path {home}/t4;
    scgi_temp_path {home}/t5;
    keepalive_requests 100000;
    keepalive_timeout 600s;
    server {{
        listen 127.0.0.1:{port};
        {tls}
        root {files};
        location ~ ^/slow/[^/]+/(.*)$ {{ limit_rate {rate}; alias {files}/$1; }}
        location ~ ^/[^/]+/(.*)$ {{ alias {files}/$1; }}
    }}
}}
"""


TLS = """
        listen 127.0.0.1:{tls_port} ssl;
        listen 127.0.0.1:{h2_port} ssl http2;
        ssl_protocols TLSv1.3;
        ssl_certificate {home}/cert.pem;
        ssl_certificate_key {home}/key.pem;
"""


def program():
    """Debian installs it in /usr/sbin, which is not in every user's PATH."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/sbin")
    return found or packages.unpacked("nginx", "nginx") / "usr/sbin/nginx"


def served_files(home, sizes, root_file):
    """A folder with random files of these sizes, {name: bytes}, and nano.root."""
    files = home / "files"
    files.mkdir()
    for name, size in sizes.items():
        (files / name).write_bytes(os.urandom(size))
    (files / "nano.root").symlink_to(root_file)
    return files


class Server:
    """An nginx in the folder `home`, running until the end of a with block."""

    def serve(self, config):
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


class Nginx(Server):
    """/NAME/FILE is FILE of the directory, /slow/NAME/FILE the same but throttled: with a NAME for each
    user their lines in the log are separate. With tls also on tls_port, and on h2_port, which speaks HTTP/2;
    the self-signed certificate is cert.pem in `home`."""

    def __init__(self, home, files, rate="400k", tls=False):
        self.home, self.port = Path(home), cluster.free_port()
        self.home.mkdir(parents=True, exist_ok=True)
        config = self.home / "nginx.conf"
        text = ""
        if tls:
            self.tls_port, self.h2_port = cluster.free_port(), cluster.free_port()
            certificates.self_signed(self.home)
            text = TLS.format(home=self.home, tls_port=self.tls_port, h2_port=self.h2_port)
        config.write_text(CONFIG.format(home=self.home, port=self.port, files=files, rate=rate, tls=text))
        self.serve(config)

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def rows(self):
        """[(uri, bytes sent, bytes of the request, connection, number of the request in it)]"""
        return [(uri, *map(int, numbers)) for uri, *numbers, _ in self.log()]

    def log(self):
        return [line.split() for line in (self.home / "access.log").read_text().splitlines()]

    def answers(self, prefix):
        """[(method, status, bytes of the body, Range of the request)] below a prefix, once the logs stop growing."""
        self.of(prefix)
        rows = [line.split() for line in (self.home / "answers.log").read_text().splitlines()]
        return [(method, int(status), int(body), asked) for uri, method, status, body, asked in rows if uri.startswith(prefix)]

    def seconds(self, prefix):
        """The sum over requests: from the first byte of the request to the last one of its answer."""
        return sum(float(row[-1]) for row in self.log() if row[0].startswith(prefix))

    def of(self, prefix):
        """(requests, bytes sent, bytes of the requests) below a prefix, once the log stops growing: nginx
        writes a line just after the last byte."""
        before = None
        while True:
            rows = [r for r in self.rows() if r[0].startswith(prefix)]
            if rows == before:
                return len(rows), sum(r[1] for r in rows), sum(r[2] for r in rows)
            before = rows
            time.sleep(0.2)
