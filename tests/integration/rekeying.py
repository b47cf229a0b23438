"""A web server with TLS 1.3 that changes its keys in the middle of each answer and requests the same of its client (RFC 8446, 4.6.3).

Python's ssl has no call for it: libssl's own gets the connection that an SSLSocket holds.
"""

import ctypes
import socket
import ssl
import threading

REQUESTED = 1
POINTER = 24  # of the SSL in a _ssl._SSLSocket: after the object's head and its socket


class Server:
    def __init__(self, home, size):
        """home: where cert.pem and key.pem are; each answer has `size` bytes."""
        self.size, self.answers, self.client_updates = size, 0, 0
        self.lib = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libssl" in line))
        for name in ("SSL_key_update", "SSL_get_version"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p] + [ctypes.c_int] * (name == "SSL_key_update")
        self.lib.SSL_get_version.restype = ctypes.c_char_p
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.load_cert_chain(home / "cert.pem", home / "key.pem")
        self.context._msg_callback = self.count
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def count(self, conn, direction, version, content_type, msg_type, data):
        self.client_updates += direction == "read" and getattr(msg_type, "name", "") == "KEY_UPDATE"

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=[self.listener.accept()[0]], daemon=True).start()
        except OSError:
            pass  # closed

    def serve(self, plain):
        with plain, self.context.wrap_socket(plain, server_side=True) as client:
            connection = ctypes.c_void_p.from_address(id(client._sslobj) + POINTER)
            assert self.lib.SSL_get_version(connection) == b"TLSv1.3"
            file = client.makefile("rb")
            while file.readline():
                while file.readline().strip():
                    pass
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.size + bytes(self.size // 2))
                assert self.lib.SSL_key_update(connection, REQUESTED) == 1
                client.sendall(bytes(self.size - self.size // 2))
                self.answers += 1
