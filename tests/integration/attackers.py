"""Hostile peers of a collector: half-open connections, slow ones, and peers that have the token but send malicious frames."""

import selectors
import socket
import time
import zlib

import frames
import sealed

WORKER = b"attacker" * 2
ZEROS = zlib.compress(bytes(4 << 20), 9)

# {name: (why it is refused, the frame)}: sent by a peer that has the token
TRAPS = {
    "more_than_it_says": ("bad_payload", frames.sealed(frames.DATA, ZEROS, WORKER, 0, 1, flags=1, raw_bytes=1000)),
    "nothing_but_zeros": ("bad_payload", frames.sealed(frames.DATA, ZEROS, WORKER, 0, 1, flags=1, raw_bytes=4 << 20)),
    "four_gigabytes": ("too_large", frames.sealed(frames.DATA, ZEROS, WORKER, 0, 1, flags=1, raw_bytes=2**32 - 1)),
    "no_zlib": ("bad_payload", frames.sealed(frames.DATA, b"\x91" * 1000, WORKER, 0, 1, flags=1, raw_bytes=1000)),
    "many_messages": ("bad_payload", frames.sealed(frames.DATA, b"\xdd\xff\xff\xff\xff", WORKER, 0, 2**32 - 1)),
    "long_text": ("bad_payload", frames.sealed(frames.DATA, b"\x91\x92\x03\xdb\xff\xff\xff\xff", WORKER, 0, 1)),
    "deep": ("bad_payload", frames.sealed(frames.DATA, b"\x91\x92\x03" + b"\x91" * 100_000 + b"\xc0", WORKER, 0, 1)),
    "text_for_a_number": ("bad_payload", frames.frame(frames.DATA, [["end", 1]], WORKER, 0, 1)),
    "map_for_messages": ("bad_payload", frames.frame(frames.DATA, {"a": 1}, WORKER, 0, 1)),
    "of_another_worker": ("bad_order", frames.frame(frames.DATA, [[3, 1]], b"somebody" * 2, 0, 1)),
    "beyond_all_numbers": ("bad_order", frames.frame(frames.DATA, [[3, 1]], WORKER, 2**64 - 1, 1)),
    "no_frame": ("bad_frame", b"CRMF" + bytes(200)),
}
LARGE_CLAIM = bytearray(frames.sealed(frames.AUTH, b""))
LARGE_CLAIM[48:52] = (2**30).to_bytes(4, "little")  # its stored bytes, which never arrive
LARGE_CLAIM = ("too_large", bytes(LARGE_CLAIM))


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def proved(port, token):
    """A connection on which a real agent's messages were exchanged, up to WELCOME."""
    agent = sealed.Agent(port, token, WORKER)
    agent.send(frames.frame(frames.HELLO, {"facts": {}, "task_fields": frames.names()}, WORKER))
    agent.expect(frames.WELCOME)
    return agent


def spring(port, token, trap):
    """Sends one malicious frame; the collector must refuse it and close the connection."""
    peer = proved(port, token) if token else sealed.Peer(connect(port))
    with peer.socket as s:
        try:
            peer.send(trap)
            while s.recv(4096):
                pass
        except ConnectionError:
            pass  # closed before everything was sent


class HalfOpen:
    """Silent connections, and slow ones that send one byte per second of a frame that never ends."""

    def __init__(self, port, n, slow):
        self.silent, self.slow = [connect(port) for _ in range(n)], [connect(port) for _ in range(slow)]
        self.frame = frames.sealed(frames.AUTH, bytes(1000))

    def until_dropped(self, seconds):
        """Waits until the collector has closed all of them; returns how many are still open."""
        open_ones, limit, at = set(self.silent + self.slow), time.monotonic() + seconds, 0
        with selectors.DefaultSelector() as selector:
            for s in open_ones:
                s.setblocking(False)
                selector.register(s, selectors.EVENT_READ)
            while open_ones and time.monotonic() < limit:
                for s in open_ones.intersection(self.slow):
                    try:
                        s.send(self.frame[at:at + 1])
                    except OSError:
                        pass
                at += 1
                second = time.monotonic() + 1
                while open_ones and time.monotonic() < second:
                    for key, _ in selector.select(0.2):
                        if ended(key.fileobj):
                            selector.unregister(key.fileobj)
                            open_ones.discard(key.fileobj)
        return len(open_ones)

    def close(self):
        for s in self.silent + self.slow:
            s.close()


def ended(s):
    try:
        return not s.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True
