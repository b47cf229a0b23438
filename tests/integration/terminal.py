"""A program on a real pseudo-terminal. pyte, a terminal emulator in Python, interprets its screen (TERM=linux: pyte lacks
some of xterm's sequences)."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte


class Terminal:
    def __init__(self, argv, lines=30, columns=100, env=None):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""  # everything that the program has written
        self.fd, other = pty.openpty()
        self._set_size(lines, columns)
        self.modes = termios.tcgetattr(self.fd)
        self.process = subprocess.Popen(
            [str(a) for a in argv], stdin=other, stdout=other, stderr=subprocess.PIPE,
            # ignore what another terminal left in the environment
            env={**os.environ, "TERM": "linux", "COLUMNS": "80", "LINES": "24", **(env or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(other)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.fd)

    def _set_size(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.screen.resize(lines, columns)
        self._set_size(lines, columns)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, seconds=0.2):
        """Reads what arrives within this time."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the program has ended
                return
            self.bytes += data
            self.stream.feed(data)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def until(self, ready, what, seconds=90):
        """Reads until ready(text of the screen) and returns it."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.read()
            value = ready(self.text())
            if value:
                return value
            if self.process.poll() is not None:
                break
        raise AssertionError(f"no {what} on the screen:\n{self.text()}\n{self.process.poll()}")

    def end(self, seconds=30):
        """The exit status; reads the remaining output meanwhile."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < limit:
            self.read()
        self.read()
        return self.process.poll()
