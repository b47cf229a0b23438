"""A real NATS server with JetStream, and the contents of its streams, through NATS' own text protocol."""

import base64
import json
import os
import shutil
import socket

import cluster


class Server:
    def __init__(self, directory):
        self.directory, self.port = directory, cluster.free_port()
        self.start()

    def start(self):
        program = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = cluster.Process("nats-server", [program, "-js", "-sd", self.directory / "nats", "-a", "127.0.0.1", "-p", str(self.port)],
                                       self.directory / "nats-server.log")
        cluster.wait_until(self.answers, "nats-server", 60, [self.process])

    def answers(self):
        try:
            return b"INFO" in socket.create_connection(("127.0.0.1", self.port), 1).recv(4)
        except OSError:
            return False

    def ask(self, *requests):
        """The answers to (subject, value for JSON), in order."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as s, s.makefile("rb") as lines:
            lines.readline()
            s.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB inbox 1\r\n')
            for subject, what in requests:
                payload = json.dumps(what).encode()
                s.sendall(b"PUB %s inbox %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
                while not (line := lines.readline()).startswith(b"MSG "):
                    assert line.startswith((b"PING", b"INFO")), line
                yield json.loads(lines.read(int(line.split()[-1]) + 2))

    def state(self, stream):
        (said,) = self.ask((f"$JS.API.STREAM.INFO.{stream}", {}))
        return said.get("state")

    def messages(self, stream):
        """(Nats-Msg-Id, data) of each, in order."""
        for said in self.ask(*((f"$JS.API.STREAM.MSG.GET.{stream}", {"seq": n}) for n in range(1, self.state(stream)["last_seq"] + 1))):
            message = said["message"]
            heads = dict(line.split(": ", 1) for line in base64.b64decode(message["hdrs"]).decode().split("\r\n") if ": " in line)
            yield heads["Nats-Msg-Id"], base64.b64decode(message["data"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()
