"""A real HAProxy in front of several collectors, with the configuration of docs/admin.md."""

import os
import re
import shutil
import socket

import cluster

ADMIN = cluster.ROOT / "docs" / "admin.md"


def configuration():
    """The configuration in docs/admin.md."""
    text, = re.findall(r"^    # haproxy\.cfg\n((?:    .*\n|\n)+)", ADMIN.read_text(), re.M)
    return re.sub(r"^    ", "", text, flags=re.M)


class HAProxy:
    """Listens on `port`. servers: {name: port} instead of the document's; frontend: additional lines of it. A connection takes two
    descriptors, of which a test may have 20,000."""

    def __init__(self, directory, servers, frontend=()):
        self.port, self.socket = cluster.free_port(), directory / "haproxy.sock"
        text = configuration().rstrip().replace("maxconn 50000", "maxconn 9000") + "\n"
        text = text.replace("/run/haproxy/admin.sock", str(self.socket)).replace("*:8990", f"127.0.0.1:{self.port}")
        first, = re.findall(r"^ +server front-1 scheduler-node:8990 (.*)$", text, re.M)
        text = re.sub(r"^ +server .*\n", "", text, flags=re.M)
        text = text.replace("default_backend collectors\n", "default_backend collectors\n" + "".join(f"    {line}\n" for line in frontend))
        text += "".join(f"    server {name} 127.0.0.1:{port} {first}\n" for name, port in servers.items())
        path = directory / "haproxy.cfg"
        path.write_text(text)
        self.process = cluster.Process("haproxy", [shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"), "-db", "-f", path], directory / "haproxy.log")
        cluster.wait_until(self.socket.exists, "haproxy", 60, [self.process])
        cluster.wait_until(lambda: all(self.state(name).startswith("UP") for name in servers), "haproxy's checks", 60, [self.process])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()

    def ask(self, words):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.socket))
            s.sendall(words.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()

    def _rows(self):
        head, *rows = (line.split(",") for line in self.ask("show stat").lstrip("# ").splitlines() if line)
        return {row[head.index("svname")]: dict(zip(head, row)) for row in rows if row[0] == "collectors"}

    def state(self, name):
        return self._rows()[name]["status"]

    def connections(self, name):
        return int(self._rows()[name]["scur"])

    def drain(self, name):
        """New connections go to other collectors; open ones are closed, and their agents reconnect."""
        assert not self.ask(f"set server collectors/{name} state drain").strip()
        assert not self.ask(f"shutdown sessions server collectors/{name}").strip()
