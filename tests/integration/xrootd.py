"""A real XRootD server on loopback whose own trace is the reference: one line for each answer that it sent."""

import os
import re
import subprocess
import time
from pathlib import Path

import certificates
import cluster
import packages

PACKAGES = """xrootd-server-plugins xrootd-plugins libxrdserver3 libxrdutils3 libxrdcl3 libxrdapputils2
libxrdcrypto2 libxrdcryptolite2 libxrdxml3 xrootd-server""".split()

CONFIG = """
xrd.port {port}
xrd.network nodnr
xrd.adminpath {home}/admin
all.pidpath {home}/admin
oss.localroot {files}
all.export /
xrootd.trace all
{more}
"""

# Header of an answer, and of each chunk in the answer to a vector read.
ANSWER, CHUNK = 8, 16
LINE = re.compile(r" (\S+) Xrootd_(Protocol|Response): (\w{4}) (.*)")
SENT = re.compile(r"(?:sending|sendfile) (\d+) data bytes")


def certificate(folder):
    """A self-made (key, certificate), in the home of a server that has not started yet."""
    folder.mkdir()
    certificates.self_signed(folder)
    return folder / "key.pem", folder / "cert.pem"


class XRootD:
    """Exports a directory. As root it runs as nobody, who must be able to read and write there."""

    def __init__(self, home, files, more=""):
        self.home, self.files, self.port = Path(home), Path(files), cluster.free_port()
        self.log = self.home / "test" / "server.log"
        usr = packages.unpacked("xrootd", *PACKAGES) / "usr"
        (self.home / "admin").mkdir(parents=True, exist_ok=True)
        self._config = self.home / "xrootd.cfg"
        self._config.write_text(CONFIG.format(home=self.home, port=self.port, files=files, more=more))
        self._argv = [usr / "bin" / "xrootd", "-n", "test", "-c", self._config, "-l", self.home / "server.log"]
        self._env = {**os.environ, "LD_LIBRARY_PATH": str(next((usr / "lib").glob("*-linux-gnu")))}
        if os.getuid() == 0:
            self._argv += ["-R", "nobody"]
            subprocess.run(["chown", "-R", "nobody", self.home], check=True)
            for each in (self.home, *self.home.parents):  # pytest's folders are private
                each.chmod(each.stat().st_mode | 0o11)
        self.start()

    def start(self):
        lines = len(self.lines())
        self.process = cluster.Process("xrootd", self._argv, self.home / "xrootd.out", env=self._env,
                                       cwd=self.home)
        cluster.wait_until(lambda: any("initialization completed" in line and f":{self.port}" in line
                                       for line in self.lines()[lines:]), "xrootd", 30, [self.process])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.signal_group(9)
        self.process.wait()

    def url(self, path, port=None):
        return f"root://127.0.0.1:{port or self.port}/{path}"  # path: /NAME

    def lines(self):
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []

    def mark(self):
        """The current end of the trace, once it stops growing."""
        before = None
        while (now := len(self.lines())) != before:
            before = now
            time.sleep(0.3)
        return now

    def answers(self, since=0):
        """[(path, request, its line, bytes requested, chunks, bytes of the answer's body)] of the reads,
        in order. A read that ends early, or that requests more than the server's buffer holds, is
        answered in parts: two or more with the same line."""
        asked, opened, answers = {}, {}, []
        for number, line in enumerate(self.lines()):
            match = LINE.search(line)
            if not match:
                continue
            link, side, stream, text = match.groups()
            files = opened.setdefault(link, {})
            if side == "Response":
                request = asked.get((link, stream))
                body = SENT.match(text)
                if request and number >= since and (body or text == "sending OK"):
                    answers.append((*request, int(body[1]) if body else 0))
            elif text.startswith("req="):
                asked.pop((link, stream), None)
            elif text.startswith("open "):
                files[next(i for i in range(len(files) + 1) if i not in files)] = "/" + text.split()[-1].lstrip("/")
            elif match := re.search(r"fh=(\d+) close", text):
                files.pop(int(match[1]), None)
            elif match := re.search(r"fh=(\d+) (read|readV) (\d+)@", text):
                _, _, first, named, chunks = asked.get((link, stream), (None, None, number, 0, 0))
                asked[link, stream] = (files.get(int(match[1])), match[2], first, named + int(match[3]),
                                       chunks + (match[2] == "readV"))
        return answers

    def sent(self, path, since=0, named=None):
        """The answers to a file's reads, or only to those that request that many bytes."""
        return Sent([a for a in self.answers(since) if a[0] == path and named in (None, a[3])])


class Sent:
    """The server's answers to the reads of a file: requests, further parts of answers, data bytes, and
    the total on the wire."""

    def __init__(self, answers):
        chunks = {line: chunks for _, _, line, _, chunks, _ in answers}
        self.requests, self.parts = len(chunks), len(answers) - len(chunks)
        self.wire = sum(body + ANSWER for *_, body in answers)
        self.data = self.wire - ANSWER * len(answers) - CHUNK * sum(chunks.values())

    @property
    def told(self):
        """The bytes that a client knows from its requests: each answer's first header, not those of further parts."""
        return self.wire - ANSWER * self.parts
