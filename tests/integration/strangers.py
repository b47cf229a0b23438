"""What another user of the same machine can try: functions that run as uid 65534, and that user's sockets."""

import contextlib
import os
import pickle
import signal
import socket
import threading

NOBODY = 65534
NOT_ROOT = "another user can be had as root only"


def child(function, *args):
    """Forks a process of another user and runs function(*args, the pipe's end) in it: (pid, our end)."""
    ours, its = os.pipe()
    pid = os.fork()
    if pid:
        os.close(its)
        return pid, ours
    status = 1
    try:
        signal.alarm(0)
        os.close(ours)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        function(*args, its)
        status = 0
    finally:
        os._exit(status)


def as_stranger(function, *args):
    """Returns what function(*args) returns when another user runs it."""
    def tell(end):
        os.write(end, pickle.dumps(function(*args)))

    pid, ours = child(tell)
    with os.fdopen(ours, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0 and told, status
    return pickle.loads(told)


class Squatter:
    """Another user's server on a port: keeps everything that it receives. It answers 401 with the `head` lines; with `to`
    it relays to the collector on that port, and also keeps the answers."""

    def __init__(self, port, head=(), to=None, answer=None):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port, self.to = port, to
        self.answer = answer or ("HTTP/1.1 401 Unauthorized\r\n" + "".join(f"{line}\r\n" for line in head)
                                 + "Content-Length: 0\r\n\r\n").encode()
        self.pid = None

    def __enter__(self):
        ready, told = os.pipe()

        def run(end):
            with socket.create_server(("127.0.0.1", self.port)) as listener:
                os.write(told, b"1")
                while True:
                    peer, _ = listener.accept()
                    threading.Thread(target=self.serve, args=(peer, end), daemon=True).start()

        self.pid, self.ours = child(run)
        os.close(told)
        assert os.read(ready, 1) == b"1"
        os.close(ready)
        return self

    def serve(self, peer, end):
        if self.to:
            with socket.create_connection(("127.0.0.1", self.to)) as real:
                threading.Thread(target=self.copy, args=(real, peer, end), daemon=True).start()
                self.copy(peer, real, end)
            return
        with contextlib.suppress(OSError):
            while data := peer.recv(65536):
                os.write(end, data)
                if b"\r\n\r\n" in data:
                    peer.sendall(self.answer)

    @staticmethod
    def copy(source, target, end):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                os.write(end, data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def __exit__(self, *_):
        """Afterwards `heard` has every byte."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        with os.fdopen(self.ours, "rb") as pipe:
            self.heard = pipe.read()
        self.listener.close()
