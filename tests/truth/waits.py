"""Tasks that wait for a known time, or receive known bytes, and return the truth."""

import socket
import threading
import time

SECONDS = 0.3
BYTES = 300_000
REQUEST = b"GET /bytes"


def sleeps():
    start = time.perf_counter()
    time.sleep(SECONDS)
    return time.perf_counter() - start


def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lambda: (time.sleep(SECONDS), lock.release())).start()
    start = time.perf_counter()
    lock.acquire()
    return time.perf_counter() - start


def pair(send):
    """A connection whose peer is a thread that runs send(socket); returns our end."""
    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    listener.close()

    def run():
        with theirs:
            send(theirs)

    threading.Thread(target=run).start()
    return ours


def waits_for_peer():
    def late(peer):
        time.sleep(SECONDS)
        peer.sendall(b"x")

    with pair(late) as ours:
        start = time.perf_counter()
        ours.recv(1)
        return time.perf_counter() - start


def receives():
    """Sends a request, as a client does: the answer belongs to the task that wrote the request. The peer is a thread
    that the task starts, so its end of the connection belongs to the task, too."""
    def answer(peer):
        peer.recv(len(REQUEST))
        peer.sendall(bytes(BYTES))

    with pair(answer) as ours:
        ours.sendall(REQUEST)
        n = 0
        while data := ours.recv(1 << 16):
            n += len(data)
        return n + len(REQUEST)


async def sleeps_in_loop():
    import asyncio

    await asyncio.sleep(SECONDS)
