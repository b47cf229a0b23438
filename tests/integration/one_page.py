"""`crema page` over the directories of several collectors."""

import json
import re
import urllib.request

import cluster


class Page:
    """A running `crema page`."""

    def __init__(self, folder, dirs, env, *options):
        self.port = cluster.free_port()
        words = [word for dir in dirs for word in ("--dir", dir)]
        self.log = cluster.Process("page", [cluster.BUILD / "crema", "page", *words, "--http", f"127.0.0.1:{self.port}", *options],
                                   folder / f"page-{self.port}.log", env)

    def __enter__(self):
        self.wait(lambda: "status page" in self.log.text(), "the page")
        return self

    def __exit__(self, *_):
        assert self.log.stop() == 0, self.log.text()

    def wait(self, done, what):
        cluster.wait_until(done, what, 60, [self.log])

    def get(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=120) as answer:
            return answer.read().decode()

    def live(self):
        return json.loads(self.get("live.json"))

    def states(self):
        return [journal["state"] for journal in self.live()["journals"]]

    def read(self):
        """live.json once all journals were read."""
        self.wait(lambda: set(self.states()) == {"read"}, "the journals to be read")
        return self.live()

    def caught_up(self):
        """The same once lost records are known, ten seconds later."""
        self.read()
        self.wait(lambda: "\ncrema_records_lost_at_least_total " in self.get("metrics"), "lost records to be known")
        return self.live()

    def counters(self):
        """Those of workers and tasks in /metrics."""
        rows = (line.rsplit(" ", 1) for line in self.get("metrics").splitlines() if line[0] != "#")
        return {name: float(value) for name, value in rows if "_total" in name and not re.match("crema_(collector|journal|run)_", name)}
