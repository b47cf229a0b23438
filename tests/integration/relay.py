"""A TCP relay for tests: sits in front of a server, counts the bytes that pass, and delays answers.

    with Relay(server.port, delay_s=0.05) as relay:
        ... clients connect to relay.port on 127.0.0.1 ...
        relay.down_bytes, relay.up_bytes, relay.turns, relay.held_seconds()

Each piece from the server is sent on delay_s after it arrived, whatever else is in transit, so
answers to requests that were sent together are delayed together. How long this made clients wait is known
in two ways: a client with one request at a time waits `turns` times delay_s, and no client waits longer
than held_seconds(), the time during which at least one answer was held here (parallel answers are
not counted twice).

Faults on the way, for open connections and for later ones:
    relay.up_delay_s = 0.2       each piece to the server is delayed this long, too
    relay.up_limit = 5000        a connection breaks after this many bytes to the server, at any point
    relay.reset(), relay.cut()   closes all connections now, with RST or in an orderly way
    relay.stop(), relay.go()     nothing passes, without any error; new connections are accepted
"""

import ctypes
import queue
import socket
import threading
import time


class Relay:
    def __init__(self, port, host="127.0.0.1", delay_s=0.0, source=None):
        """source: the address that the server sees."""
        self.server, self.delay_s, self.source = (host, port), delay_s, source and (source, 0)
        self.up_bytes = self.down_bytes = self.turns = self.connections = 0
        self._lock = threading.Lock()
        self._holding, self._since, self._held = 0, 0.0, 0.0
        self._pairs = []
        self._closed = False
        self.up_delay_s, self.up_limit = 0.0, None
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._closed = True
        self.go()
        _shut(self._listener)
        self.cut()

    def cut(self):
        """Closes every connection now; new ones are still accepted."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                _shut(each)

    def reset(self):
        """As cut(), but both ends see an error."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                # connect() to AF_UNSPEC aborts it even while a thread is in recv; close() would wait for that thread.
                ctypes.CDLL(None).connect(each.fileno(), bytes(16), 16)
                _shut(each)

    def stop(self):
        self._open.clear()

    def go(self):
        self._open.set()

    def held_seconds(self):
        with self._lock:
            return self._held + (time.monotonic() - self._since if self._holding else 0)

    def _accept(self):
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server, source_address=self.source)
            except OSError:
                client.close()
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _Connection(self, client, server)

    def _hold(self, change):
        with self._lock:
            now = time.monotonic()
            if self._holding:
                self._held += now - self._since
            self._holding, self._since = self._holding + change, now


class _Connection:
    def __init__(self, relay, client, server):
        self.relay, self.client, self.server = relay, client, server
        self.asked = False  # data went to the server since its last answer
        self.pieces = queue.SimpleQueue()
        with relay._lock:
            relay.connections += 1
            relay._pairs.append((client, server))
        for run in (self._up, self._down, self._deliver):
            threading.Thread(target=run, daemon=True).start()

    def _up(self):
        passed = 0
        for data in _pieces_of(self.client):
            with self.relay._lock:
                self.relay.up_bytes += len(data)
                self.asked = True
            if self.relay.up_delay_s:
                time.sleep(self.relay.up_delay_s)
            self.relay._open.wait()
            limit = self.relay.up_limit
            if limit is not None:
                data = data[:max(0, limit - passed)]
            passed += len(data)
            if not _send(self.server, data) or passed == limit:
                break
        _shut(self.server)
        if self.relay.up_limit is not None:
            _shut(self.client)

    def _down(self):
        for data in _pieces_of(self.server):
            with self.relay._lock:
                self.relay.down_bytes += len(data)
                self.relay.turns += self.asked
                self.asked = False
            self.relay._hold(1)
            self.pieces.put((time.monotonic() + self.relay.delay_s, data))
        self.pieces.put((0, b""))

    def _deliver(self):
        there = True
        while True:
            due, data = self.pieces.get()
            if not data:
                break
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self.relay._open.wait()
            there = there and _send(self.client, data)
            self.relay._hold(-1)
        _shut(self.client)


def _pieces_of(one):
    while True:
        try:
            data = one.recv(1 << 18)
        except OSError:
            return
        if not data:
            return
        yield data


def _send(one, data):
    try:
        one.sendall(data)
        return True
    except OSError:
        return False


def _shut(one):
    """shutdown() also wakes a thread that waits in recv or accept, which close() does not."""
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()
