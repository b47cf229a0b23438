"""A director of a Pelican federation: discovery over TLS, and for each object the caches (header Link) or, where its client wants no
cache, the origin. Counts what it answers."""

import http.server
import json
import ssl
import threading


class Director:
    def __init__(self, home, caches, origin):
        """home: where cert.pem and key.pem are. caches, the nearest first, and origin: URLs of servers that have the same paths."""
        self.answers, director = 0, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                director.answers += 1
                if self.path == "/.well-known/pelican-configuration":
                    return self.answer(200, json.dumps({"director_endpoint": "https://" + self.headers["Host"]}).encode())
                direct = self.path.startswith("/api/v1.0/director/origin/")
                path = self.path.removeprefix("/api/v1.0/director/origin") if direct else self.path
                places = [origin] if direct else caches
                links = ", ".join(f'<{place}{path}>; rel="duplicate"; pri={n}; depth=1' for n, place in enumerate(places, 1))
                self.answer(307, b"", Location=places[0] + path, Link=links,
                            **{"X-Pelican-Namespace": f"namespace=/pelican, require-token=false, collections-url={origin}"})

            do_HEAD = do_GET

            def answer(self, code, body, **headers):
                self.send_response(code)
                for name, value in {**headers, "Content-Length": len(body)}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(home / "cert.pem", home / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
