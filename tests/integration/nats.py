"""A real NATS server with JetStream, and the contents of its streams, through NATS' own text protocol."""

import base64
import json
import os
import shutil
import socket
import ssl

import cluster


class Server:
    """login: "user:password" or a token; tls: with the certificate of certificates.self_signed() in the directory."""

    def __init__(self, directory, login=None, tls=False):
        self.directory, self.port, self.login, self.tls = directory, cluster.free_port(), login, tls
        self.config = directory / "nats.conf"
        user, _, password = (login or "").partition(":")
        who = f"user: {user}, password: {password}" if password else f"token: {user}"
        self.config.write_text((f"authorization {{ {who} }}\n" if login else "")
                               + (f"tls {{ cert_file: '{directory}/cert.pem', key_file: '{directory}/key.pem' }}\n" if tls else ""))
        self.start()

    def start(self):
        program = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = cluster.Process("nats-server", [program, "-c", self.config, "-js", "-sd", self.directory / "nats", "-a", "127.0.0.1", "-p", str(self.port)],
                                       self.directory / "nats-server.log")
        cluster.wait_until(self.answers, "nats-server", 60, [self.process])

    def answers(self):
        try:
            return b"INFO" in socket.create_connection(("127.0.0.1", self.port), 1).recv(4)
        except OSError:
            return False

    def connected(self):
        s = socket.create_connection(("127.0.0.1", self.port), 60)
        if not self.tls:
            return s
        while s.recv(1) != b"\n":  # INFO comes before the handshake
            pass
        return ssl.create_default_context(cafile=self.directory / "cert.pem").wrap_socket(s, server_hostname="127.0.0.1")

    def ask(self, *requests):
        """The answers to (subject, value for JSON), in order."""
        user, _, password = (self.login or "").partition(":")
        hello = {"verbose": False, "pedantic": False, **({"user": user, "pass": password} if password else {"auth_token": user} if user else {})}
        with self.connected() as s, s.makefile("rb") as lines:
            if not self.tls:
                lines.readline()
            s.sendall(b"CONNECT %s\r\nSUB inbox 1\r\n" % json.dumps(hello).encode())
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
