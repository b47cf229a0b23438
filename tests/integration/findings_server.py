"""A server whose answer depends on the path: /SECONDS answers after that time, /size/N sends N bytes, /close closes the
connection without an answer, and other paths are files of a folder, with ranges."""

import http.server
import os
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def file(self, path):
        time.sleep(self.server.pause)
        data = self.server.files[path]
        wanted = self.headers.get("Range")
        if self.command == "HEAD" or not wanted:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Accept-Ranges", "bytes")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or len(data) - 1), len(data) - 1)
        self.answer(data[first:last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(data)}")

    def do_GET(self):
        path = self.path.strip("/")
        if path in self.server.files:
            self.file(path)
        elif path == "close":
            self.close_connection = True
        elif path.startswith("size/"):
            self.answer(bytes(int(path[5:])))
        else:
            time.sleep(float(path))
            self.answer(b"done")

    do_HEAD = do_GET


def start(files=(), pause=0):
    """The running server, which waits before each answer from a file; its address is server.server_address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.pause = True, pause
    server.files = {os.path.basename(path): open(path, "rb").read() for path in files}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
