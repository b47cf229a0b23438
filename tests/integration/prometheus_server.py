"""A real Prometheus on loopback that scrapes collectors each second, and its promtool."""

import json
import subprocess
import urllib.parse
import urllib.request

import cluster
import packages

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
scrape_configs:
  - job_name: crema
    static_configs: [{{targets: {targets}}}]
"""


def program(name):
    return packages.unpacked("prometheus", "prometheus") / "usr/bin" / name


def promtool(*args, **options):
    return subprocess.run([program("promtool"), *args], capture_output=True, text=True, timeout=60, **options)


class Prometheus:
    def __init__(self, home, *target_ports):
        self.port = cluster.free_port()
        home.mkdir()
        config = home / "prometheus.yml"
        config.write_text(CONFIG.format(targets=json.dumps([f"127.0.0.1:{port}" for port in target_ports])))
        self.process = cluster.Process("prometheus", [
            program("prometheus"), "--config.file", config, "--storage.tsdb.path", home / "data",
            "--web.listen-address", f"127.0.0.1:{self.port}"], home / "log")
        cluster.wait_until(lambda: self.try_get("/-/ready"), "prometheus", processes=[self.process])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return answer.read()

    def try_get(self, path):
        try:
            return self.get(path)
        except OSError:
            return None

    def query(self, text):
        """[(labels, value or values)] of an instant query."""
        answer = json.loads(self.get("/api/v1/query?" + urllib.parse.urlencode({"query": text})))
        assert answer["status"] == "success", answer
        return [(row["metric"], row.get("value", row.get("values"))) for row in answer["data"]["result"]]

    def value(self, text):
        """The value of the only series; None if there is none."""
        rows = self.query(text)
        assert len(rows) <= 1, rows
        return float(rows[0][1][1]) if rows else None

    def has_scraped_since(self, seconds):
        """Whether a scrape began after this time of day (s)."""
        return (self.value("timestamp(crema_build_info)") or 0) > seconds
