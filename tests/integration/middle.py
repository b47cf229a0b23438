"""A hostile process between agents and their collector: it has the port and sees every byte, but lacks the token.

    middle = Middle(port)         agents connect to middle.port
    middle.way = middle.squat     how new connections are handled; middle.cut() closes the open ones

A way is called with the agent's connection. After AUTH and PROOF everything that passes is records: their length is
visible, their contents are not.
"""

import os
import socket
import threading

import frames
import sealed


class Middle:
    def __init__(self, port):
        self.server_port, self.way, self.lock = port, self.faithful, threading.Lock()
        self.heard, self.open, self.closed, self.faults = [], [], False, 0
        self.forged = []  # the collector's answers to forged frames
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.closed = True
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            ends, self.open = self.open, []
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def change(self, way):
        """Handles all connections from now on in this way; does not wait."""
        self.way = way
        self.heard = []
        self.cut()

    def _accept(self):
        while not self.closed:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.open.append(connection)
            threading.Thread(target=self._serve, args=(connection, self.way), daemon=True).start()

    def _serve(self, connection, way):
        try:
            way(connection)
        except (OSError, ConnectionError, sealed.Forged):
            pass
        connection.close()

    def _upstream(self):
        server = socket.create_connection(("127.0.0.1", self.server_port), timeout=60)
        with self.lock:
            self.open.append(server)
        return server

    # --- ways that pose as a collector: everything that the agent sent goes to `heard`

    def _listen(self, connection, proof, newest=sealed.PROTOCOL):
        peer = sealed.Collector(connection, newest=newest)
        said = b""
        if newest == sealed.PROTOCOL:
            self.heard.append(("auth", sorted(peer.auth())))
            peer.send(frames.frame(frames.PROOF, {"mac": proof}))
        while part := connection.recv(65536):
            said += part
        self.heard.append(("rest", said))

    def squat(self, connection):
        self._listen(connection, os.urandom(32))

    def without_token(self, connection):
        self._listen(connection, None)

    def old_release(self, connection):
        self._listen(connection, None, newest=1)

    # --- ways of a relay

    def _plain(self, source, sink):
        whole = source.read(frames.HEAD.size)
        whole += source.read(frames.HEAD.unpack(whole)[9])
        sink.socket.sendall(whole)

    def _handshake(self, connection):
        """Passes on what a relay must, so that both sides accept each other."""
        up, down = sealed.Peer(connection), sealed.Peer(self._upstream())
        self._plain(down, up)  # CHALLENGE
        self._plain(up, down)  # AUTH
        self._plain(down, up)  # PROOF
        return up, down

    def _record(self, source):
        length = source.read(4)
        if length == b"CRMF":  # a plain frame with the reason why one of them leaves
            head = length + source.read(frames.HEAD.size - 4)
            return head + source.read(frames.HEAD.unpack(head)[9])
        return length + source.read(int.from_bytes(length, "little"))

    def _pump(self, source, sink, change):
        """Until either side closes: replaces record number n of this direction by change(n, record)."""
        try:
            n = 0
            while True:
                for record in change(n, self._record(source)):
                    sink.socket.sendall(record)
                n += 1
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _relay(self, connection, up_change, down_change):
        agent, collector = self._handshake(connection)
        back = threading.Thread(target=self._pump, args=(collector, agent, down_change), daemon=True)
        back.start()
        self._pump(agent, collector, up_change)
        back.join()

    def faithful(self, connection):
        self._relay(connection, lambda n, record: [record], lambda n, record: [record])

    def fault(self, kind):
        """A way: the fourth record (after the agent's PROOF, HELLO and a CLOCK or DATA) of each connection is
        changed, sent twice, left out, or swapped with the next; "answer": one of the collector's is changed."""
        def way(connection):
            kept = []

            def change(n, record):
                if kind == "swapped" and n == 4:
                    return [record, *kept]
                if n != 3:
                    return [record]
                self.faults += 1
                bit = bytearray(record)
                bit[len(bit) // 2] ^= 4
                kept.append(record)
                return {"changed": [bytes(bit)], "answer": [bytes(bit)], "twice": [record, record], "left out": [],
                        "swapped": []}[kind]

            same = lambda n, record: [record]  # noqa: E731
            self._relay(connection, *((same, change) if kind == "answer" else (change, same)))
        return way

    def speak_itself(self, connection):
        """Lets both sides complete the handshake, then sends the collector frames, plain or sealed with another
        key; the answers go to `forged`."""
        agent, collector = self._handshake(connection)
        for _ in range(2):  # the agent's PROOF and HELLO
            collector.socket.sendall(self._record(agent))
        welcome = self._record(collector)
        data = frames.frame(frames.DATA, [[frames.TASK_END, 1]], b"w" * 16, 0, 1)
        collector.socket.sendall(data if len(self.forged) % 2 else sealed.Direction(os.urandom(32)).seal(data))
        rest = b""
        while part := collector.socket.recv(65536):
            rest += part
        self.forged.append(welcome + rest)
