"""A receiver of OTLP/HTTP with prepared answers."""

import gzip
import http.server
import json
import threading


class Receiver(http.server.ThreadingHTTPServer):
    """Sends the given answers, and repeats the last one; keeps the requests that it accepted."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.taken = list(answers) or [(200, {}, b"{}")], [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, text = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        self.server.asked.append((self.path, dict(self.headers)))
        if status == 0:
            return self.connection.close()
        if status == 200:
            self.server.taken.append(json.loads(gzip.decompress(body)))
        self.send_response(status)
        for name, value in {"Content-Length": len(text), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass
