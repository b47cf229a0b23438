"""What the page shows: its charts read back through their own axes, its tables, texts and cursors, each against the numbers in
the page's data. The page is `crema report --html` of the run of test_exports.py; some tests change its data."""

import copy
import json
import re

import pytest
import test_exports
import test_reports  # sets the path to browser.py
import browser
import frames
from test_exports import human

DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)
CLASSES = {"cpu": "CPU", "runqueue": "waiting for a core", "gil": "waiting for the interpreter lock", "lock": "waiting for other locks",
           "network": "waiting for the network", "storage": "waiting for storage", "sleep": "asleep", "unclassified": "not classified"}
SHORT = [(0, "0"), (0.0123, "0.012"), (0.0994, "0.099"), (0.0995, "0.100"), (0.25, "0.250"), (9.9994, "9.999"), (9.9996, "10.00"), (99.994, "99.99"),
         (99.996, "100.0"), (999.94, "999.9"), (999.96, "1000"), (99999.4, "99999"), (99999.5, "100,000"), (1234567, "1,234,567")]
FORMATS = {
    "short": [*SHORT, *((-x, f"-{text}") for x, text in SHORT[1:] if x != 99999.5)],
    "as.number": [*SHORT, (None, "unknown"), ("7.5", "7.500")],
    "as.count": [(0, "0"), (999, "999"), (1000, "1,000"), (1234567.4, "1,234,567"), (None, "unknown"), ("x", "unknown")],
    "as.bytes": [(0, "0 B"), (1, "1 B"), (999, "999 B"), (999.9, "999.9 B"), (1000, "1.000 kB"), (999949, "999.9 kB"), (999950, "1.000 MB"), (1.5e6, "1.500 MB"),
                 (2.5e9, "2.500 GB"), (3e12, "3.000 TB"), (4e15, "4.000 PB"), (5e18, "5000 PB"), (-2e6, "-2.000 MB"), (None, "unknown")],
    "as.hz": [(12, "12 Hz"), (2500, "2.500 kHz"), (2.5e6, "2.500 MHz"), (7e9, "7.000 GHz"), (None, "unknown")],
    "as.gbps": [(1.25, "1.250 Gbit/s"), (None, "unknown")],
    "as.times": [(1.234, "1.23x"), (10, "10.00x"), (None, "unknown")],
    "as.percent": [(12.34, "12.3 %"), (100, "100.0 %"), (-0.04, "0.0 %"), (-0.06, "-0.1 %"), (None, "unknown")],
    "as.seconds": [(0, "0 s"), (2.5e-6, "2.500 us"), (0.0009994, "999.4 us"), (0.00099951, "1.000 ms"), (0.9994, "999.4 ms"), (0.9996, "1.000 s"), (119.9, "119.9 s"),
                   (119.96, "1 m 60.0 s"), (125.25, "2 m 05.3 s"), (3599.4, "59 m 59.4 s"), (3600, "1 h 00 m"), (9000, "2 h 30 m"), (-2.5, "-2.500 s"), (None, "unknown")],
    "as.text": [("x", "x"), (0, "0"), ("", "unknown"), (None, "unknown")],
    "onAxis(as.bytes)": [(1.5e6, "1.5 MB"), (2e6, "2 MB"), (100, "100 B")],
    "onAxis(short)": [(0.25, "0.25"), (1, "1"), (10.5, "10.5"), (100, "100")],
}


def seconds(value):
    if value is None or value < 119.95:
        return human(value, "s")
    return f"{value // 60:.0f} m {value % 60:04.1f} s" if value < 3599.5 else f"{value // 3600:.0f} h {value % 3600 // 60:02.0f} m"


def size(value):
    return human(value, "B")


def count(value):
    return human(value, "n")


def percent(part, whole):
    return "unknown" if None in (part, whole) else human(100 * part / whole, "%")


def rate(value):
    return "unknown" if value is None else test_reports.short(value, "Gbit/s") if value >= 0.0995 else f"{value:.2g} Gbit/s"


TIP = """(([head, ...lines]) => `${head}: ${lines.join(", ")}`)([...svg.nextElementSibling.children].map((e) => e.textContent))"""


class Page:
    """A page with other data; its contents are read in the browser."""

    def __init__(self, tab, html, folder):
        self.tab, self.html, self.folder = tab, html, folder
        self.given, self.open = json.loads(DATA.search(html)[2]), False

    def show(self, change=lambda d: None):
        data = copy.deepcopy(self.given)
        change(data)
        if self.open:
            self.tab.run(f"cursors.clear(); navShown = ''; draw(prepare({json.dumps(data)}))")
        else:
            self.load(data)
        self.tab.run("document.querySelectorAll('details').forEach((e) => { e.open = true; e.dispatchEvent(new Event('toggle')); })")
        return data

    def load(self, data):
        path = self.folder / "page.html"
        path.write_text(DATA.sub(lambda m: m[1] + json.dumps(data).replace("<", "\\u003c") + m[3], self.html))
        self.tab.look()
        self.tab.open(path.as_uri())
        assert not self.tab.problems
        self.open = not data.get("live")

    def texts(self, selector):
        return self.tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def rows(self, selector):
        return self.tab.run(f"[...document.querySelectorAll({json.dumps(selector + ' tbody tr')})].map((r) => [...r.children].map((c) => c.textContent))")

    def head(self, selector):
        return self.texts(selector + " thead th")

    def chart(self, name):
        return Chart(self.tab.run(f"""(() => {{
            const svg = document.getElementById("chart-{name}"), all = (s) => [...svg.querySelectorAll(s)];
            const place = (e) => e.getAttribute("transform").match(/-?[\\d.]+/g).map(Number);
            const attributes = (e) => Object.fromEntries([...e.attributes].map((a) => [a.name, a.value]));
            return {{ width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height, label: svg.getAttribute("aria-label"),
                axes: all(".axis").map((g) => [...g.querySelectorAll(".tick")].map((t) => [...place(t), t.textContent])),
                frame: all(".axis").map((g) => place(g)), texts: all("text").filter((e) => !e.closest(".axis, .grid")).map((e) => [e.getAttribute("class"), e.firstChild.data, attributes(e)]),
                shapes: all("path, rect, circle, line").filter((e) => !e.closest(".axis, .grid")).map((e) => ({{ ...attributes(e), tag: e.tagName, title: e.textContent }})) }};
        }})()"""))

    def legend(self, panel):
        return self.texts(f"#panel-{panel} .legend li")

    def cursor(self, name, *keys):
        """The text at the cursor after these keys."""
        return self.tab.run(f"""(() => {{ const svg = document.getElementById("chart-{name}");
            for (const key of {json.dumps(keys)}) svg.dispatchEvent(new KeyboardEvent("keydown", {{ key, cancelable: true }}));
            return [{TIP}, svg.getAttribute("aria-valuetext"), +svg.getAttribute("aria-valuenow"), +svg.getAttribute("aria-valuemax")]; }})()""")

    def point(self, name, x, y):
        """The text at the pointer's position, in the chart's pixels."""
        return self.tab.run(f"""(() => {{ const svg = document.getElementById("chart-{name}"), r = svg.getBoundingClientRect(), k = r.width / svg.viewBox.baseVal.width;
            svg.dispatchEvent(new PointerEvent("pointermove", {{ clientX: r.left + {x} * k, clientY: r.top + {y} * k }}));
            return {TIP}; }})()""")


UNITS = {"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "s": 1, "ms": 1e-3, "us": 1e-6, "min": 60, "h": 3600, "k": 1e3}


def amount(text):
    number, unit = re.fullmatch(r"(-?[\d.,]+(?:e-?\d+)?) ?(\w*)", text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


class Chart:
    """The drawn chart; D3 shifts the line of a tick by half a pixel."""

    def __init__(self, drawn):
        self.__dict__.update(drawn)
        self.x, self.y = ([(t[i] - 0.5, amount(t[2])) for t in self.axes[i] if t[2]] for i in (0, 1)) if len(self.axes) == 2 else (
            [(t[0] - 0.5, amount(t[2])) for t in self.axes[0]] if self.axes else None, None)
        for ticks in filter(None, (self.x, self.y)):
            assert len(ticks) >= 3
            for px, value in ticks:
                assert self.value(ticks, px) == pytest.approx(value, abs=0.02 * abs(ticks[-1][1] - ticks[0][1]))

    @staticmethod
    def value(ticks, px):
        (a, u), (b, v) = ticks[0], ticks[-1]
        return u + (px - a) * (v - u) / (b - a)

    def of(self, **wanted):
        return [s for s in self.shapes if all(s.get(k.replace("_", "-")) == v for k, v in wanted.items())]

    def span(self, path, x):
        """The values at which horizontal lines of the path cross x."""
        points = [tuple(map(float, p)) for p in re.findall(r"(-?[\d.e-]+),(-?[\d.e-]+)", path["d"])]
        px = self.x[0][0] + (x - self.x[0][1]) * (self.x[-1][0] - self.x[0][0]) / (self.x[-1][1] - self.x[0][1])
        closed = [*zip(points, points[1:]), (points[-1], points[0])] if path["d"].endswith("Z") else zip(points, points[1:])
        return sorted(self.value(self.y, a[1]) for a, b in closed if a[1] == b[1] and min(a[0], b[0]) < px < max(a[0], b[0]))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    found = test_exports.Made()
    found.folder = tmp_path_factory.mktemp("charts")
    journal = frames.Journal(found.folder / "journal")
    test_exports.fill(journal)
    journal.write()
    found.journal = found.folder / "journal"
    test_reports.report(found, "--html", found.folder / "run.html")
    with browser.Browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield Page(tab, (found.folder / "run.html").read_text(), found.folder)


@pytest.fixture(scope="module")
def shown(page):
    return page.show(rich)


def series(n, *of):
    return [test_reports.number(*of, i) for i in range(n)]


def rich(d):
    """More of everything than the journal has, with a different value for each number."""
    d["run"].update(running=1234)
    d["levels"] = {"bin": 400_000, "tasks": series(9, "t"), "workers": series(9, "w"), "threads": series(9, "h"),
                   "classes": {name: series(9, "level", name) if name != "sleep" else [0] * 9 for name in CLASSES}}
    d["levels"]["classes"]["unclassified"][3] = -500
    for name in d["timeline"]["layers"]:
        d["timeline"]["layers"][name] = [10**9 + 1000 * v for v in series(4, "layer", name)]
    d["timeline"]["layers"].update(mapped_bytes=[None] * 4, network_read_bytes=[0] * 4)
    d["timeline"]["layers"]["read_bytes"][1] = None
    d["memory"] = {"total": 20, "workers": [
        {"worker": f"w-{k}", "peak_bytes": 10**9 + number, "limit_bytes": 4 * 10**9, "points": [[500_000 * i + 1000 * k, 10**9 + 10**8 * ((i * 7 + k) % 5)] for i in range(7 if not k else 2)]}
        for k, number in enumerate((123456, 654321))]}
    d["scatter"] = {"total": 1000, "datasets": [[f"set-{i}", 100 + i, None if i == 2 else 10**6 * (i + 2)] for i in range(9)], "points": [
        [1000 * i + 500, 10**6 * (1 + i * 7 % 11) + 1234, i, 400_000 * i] for i in range(9)] + [[None, 5_000_000, 0, 3_000_000], [100, None, 1, 0], [7, 8, 1, None]]}
    d["codecs"].update(total=5, rows=[
        {"codec": "zlib", "library": "lz4.frame._frame", "calls": 1200, "in_bytes": 3_000_000, "out_bytes": 9_000_000, "cpu_seconds": 0.75, "compress_in_bytes": 777},
        {"codec": "lz4", "library": None, "calls": 34, "in_bytes": 20_000, "out_bytes": None, "cpu_seconds": 1.5, "compress_in_bytes": 0},
        {"codec": "lzma", "library": "x", "calls": 5, "in_bytes": 0, "out_bytes": 8, "cpu_seconds": 0, "compress_in_bytes": None}])
    names = [column["name"] for column in d["files"]["columns"]]
    d["files"].update(total=5000, rows=[{
        **{name: test_reports.number(name, i) for name in names}, "path": f"/data/{'a-very-long-name' * 6 * (i == 1)}{i}.root",
        "read_bytes": None if i == 3 else 10**8 - 10**6 * i, "reread_bytes": None if i == 2 else 10**7 * (3 - i % 3), "outside_basket_bytes": 10**6 * i, "network_read_bytes": 5 * 10**7,
        "read_amplification": None if i == 2 else 3.5 - i / 5, "filesystem": "nfs" if i else None,
        "opened_at": f"/x/a.py:{i} f" if i else None} for i in range(14)])
    for table, key in (("datasets", "dataset"), ("balance", "worker")):
        d[table] = {"total": 33, "rows": [
            {key: f"{key}-{i}", "host": f"node-{i}", "chunks": 20 + i, "tasks": 40 + i, "threads": 3 + i, "events": 10_000 + i, "wall_seconds": 30.5 - i, "cpu_seconds": 9.25 - i / 2,
             "cpu_seconds_per_event": 0.001 * (i + 1), "read_amplification": 1.5 + i, "silent": i == 1, "end": ["exit", "killed", None][i],
             **{f"{n}_bytes": test_reports.number(table, n, i) for n in ("requested", "read", "storage_read")},
             "classes": {name: (2.25 + i + k / 4 if name != "sleep" else None) for k, name in enumerate(CLASSES)}} for i in range(3)]}
    d["blocking"] = {"known": True, "threshold_seconds": 0.025, "total": 1500, "rows": [
        {"frames": ["read", "load", "main"], "wait": "storage", "object": "a.root", "prefix": "work", "calls": 12, "seconds": 3.25, "longest_seconds": 0.75, "line": "an.py:42 load"},
        {"frames": [], "wait": "lock", "object": None, "prefix": None, "calls": 3000, "seconds": 0.5, "longest_seconds": 0.125, "line": None}]}
    d["servers"].update(total=70, rows=[
        {"scheme": "root", "server": "a:1094", "requests": 6000, "failed_requests": 7, "read_bytes": 123456, "latency_sum_s": 750, "latency_max_s": 2.5}])
    d["columns"].update(total=90, rows=[
        {"kind": kind, "column": column, "dataset": dataset, "calls": 7, "tasks": 5, "preload_tasks": 3, "requests": None if kind == "rest" else 11, "requested_bytes": 1500,
         "basket_bytes": 1400, "basket_raw_bytes": 2800, "wall_seconds": 2.5, "cpu_seconds": 1.5, "network_wait_seconds": 0.5, "storage_wait_seconds": 0.25,
         "lines": ["/home/an.py:42 process", "/home/b/an.py:43 f"] if kind == "column" else [], "more_lines": kind == "column"}
        for kind, column, dataset in (("column", "Jet_pt", "ttbar"), ("together", None, "ttbar"), ("beyond", None, None), ("rest", None, "ttbar"))])
    sections = [{"section": name, "prefix": "work", "thread": thread, "dataset": dataset, "beyond": beyond, "count": 1200 + i, "wall_seconds": 60.5 - i, "cpu_seconds": 9.25 - i,
                 "wall_min_seconds": 0.25 + i / 8, "wall_median_seconds": None if i == 2 else 1.5 + i, "wall_max_seconds": 20.5 + i}
                for i, (name, thread, dataset, beyond) in enumerate([("jets", "task", "ttbar", False), ("jets", "pool", "wjets", False), (None, "task", None, True)])]
    d["sections"].update(total=1002, rows=[{**row, "dataset": None, "beyond": False} for row in sections[:2]])
    d["sections_by_dataset"].update(total=2003, rows=sections)
    d["completeness"].update({f"{part}_{what}": test_reports.number(part, what) / (1000 if "cpu" in what else 1) for part in ("tasks", "unattributed", "unseen", "process")
                              for what in ("cpu_seconds", "storage_bytes")}, workers_seen=11, records_refused=22, records_lost=33, records_bad=44, files_read=55,
                             files_torn=66, notes=["one note", "another"], notes_total=9)
    d["findings"]["rows"] = [
        {"id": "small", "severity": "note", "sentence": "a note", "advice": "nothing", "evidence": [
            {"name": "n", "value": None, "unit": ""}, {"name": "f", "value": 1.23456789, "unit": "s"}, {"name": "i", "value": 12345, "unit": "B"}, {"name": "t", "value": "x", "unit": ""}]},
        {"id": "large", "severity": "high", "sentence": "a sentence", "advice": "an advice", "cost": "costs about 3.8 of 7.9 s", "evidence": []}]


def test_formats(page, shown):
    asked = [(name, value, text) for name, cases in FORMATS.items() for value, text in cases]
    found = page.tab.run("[" + ", ".join(f"{name}({json.dumps(value)})" for name, value, _ in asked) + "]")
    assert [(name, value, text) for (name, value, _), text in zip(asked, found)] == asked
    assert page.tab.run("[share(1, 4), share(1, 0), share(null, 4), share(1, null), share(1, -2)]") == [25, None, None, None, None]
    cuts = page.tab.run("[fit('abcdefghij', 100, 10), fit('abcdefghijk', 100, 10), fit('abcdefghij', 1, 10)]")
    assert cuts == ["abcdefghij", "abcd\u2026ghijk", "ab\u2026hij"]
    assert page.tab.run("[shownOf(3, 3, 'x'), shownOf(2, 3000, 'x').textContent]") == [None, "shown 2 of 3,000 x"]


def test_head(page, shown):
    run = shown["run"]
    assert page.texts("#run, #facts, title")[:3] == [
        f"crema: {run['id']}", f"run {run['id']}", f"began 2026-11-18 11:06:40 UTC \u00b7 1,234 tasks still running \u00b7 Python {run['python']} \u00b7 Dask {run['dask']} \u00b7 "
        f"coffea {run['coffea']} \u00b7 uproot {run['uproot']}"]
    assert run["state"] == "failed" and page.texts("#outcome.failed") == [run["state_text"]]
    assert run["state_text"].startswith("failed: 1 task failed, first work-9, dataset set1")
    assert shown["version"] in page.texts("#made")[0]
    titles = page.texts("main > section h2")[3:]
    assert len(titles) == len(page.texts("nav a")) == 20


def texts_of(d):
    return {m["id"]: m["text"] if m.get("text") is not None else "unknown" for m in d["metrics"]}


def held_back(d):
    """The largest part of the threads' time, the other parts, and the total."""
    b = d["time"]["budget"]
    whole, names = b["thread_seconds"], {**CLASSES, "unmeasured": "not measured", "idle": "no task"}
    assert sum(b[name] or 0 for name in names) == pytest.approx(whole)
    parts = sorted((name for name in names if b[name] and b[name] > 0), key=lambda name: -b[name])
    said = [f"{names[name]} {percent(b[name], whole)}" for name in parts]
    return (f"{names[parts[0]]}: {percent(b[parts[0]], whole)} of the threads\u2019 time",
            ", ".join(text for name, text in zip(parts[1:], said[1:]) if b[name] >= whole / 100))


def test_answers(page, shown):
    m = {x["id"]: x["value"] for x in shown["metrics"] if isinstance(x.get("value"), (int, float))}
    text, time = texts_of(shown), shown["time"]
    lead, others = held_back(shown)
    assert time["budget"]["thread_seconds"] == pytest.approx(6 * 3.95)
    assert m["event_rate_wall_khz"] == pytest.approx(511 / 3.95e3)
    assert page.texts(".answer .lead") == ["129.4 events/s", lead, "an advice"]
    assert page.texts(".answer p:not(.lead)") == [
        "511 events in 3.950 s", f"read {text['read_rate_mbs']}, from storage {text['storage_read_rate_mbs']}, decompressed {text['decompressed_rate_mbs']}",
        others, "of 23.70 s: 6 threads for 3.950 s", "a sentence", "costs about 3.8 of 7.9 s"]
    figures = page.tab.run("[...document.querySelectorAll('.figures > div')].map((e) => [e.dataset.metric, e.querySelector('dd').textContent])")
    assert len(figures) == 18 and figures == [[name, text[name]] for name, _ in figures]
    assert dict(figures)["num_tasks"] == "5" and dict(figures)["wall_time"] == "3.950 s"


def test_not_measured(page):
    """Tasks of which only the wall time is known: a part of the threads' time and of the tasks'."""
    def some(d):
        b = d["time"]["budget"]
        b.update(unmeasured=b["idle"], idle=0)
        d["time"]["classes"]["unmeasured"] = 1.25

    d = page.show(some)
    assert page.texts(".answer .lead")[1] == held_back(d)[0] and held_back(d)[0].startswith("not measured: ")
    assert page.texts(".answer p:not(.lead)")[2] == held_back(d)[1]
    assert page.rows("#table-time")[len(CLASSES)] == ["not measured", seconds(1.25), percent(1.25, 4.2)]
    drawn, = (s for s in page.chart("time").of(tag="rect") if s.get("data-name") == "not measured")
    assert (float(drawn["data-value"]), drawn["fill"]) == (1.25, "var(--s5)")


def other(d):
    """A fast run, mostly CPU, all attempts, no events, no advice."""
    d["time"].update(all_attempts=True, classes={**d["time"]["classes"], "cpu": 3.9, "gil": None})
    b = d["time"]["budget"]
    b.update(cpu=b["cpu"] + b["idle"] + b["gil"], idle=0, gil=None)
    for m in d["metrics"]:
        m.update({"event_rate_wall_khz": {"value": 23.456}, "total_cpu_time_true_all": {"value": None}}.get(m["id"], {}))
    d["findings"]["rows"] = d["findings"]["rows"][:0]
    d["findings"]["gaps"] = []
    d["codecs"]["rows"], d["files"]["rows"], d["datasets"]["rows"], d["balance"]["rows"], d["blocking"]["rows"] = [], [], [], [], []
    d["blocking"].update(known=True, threshold_seconds=0.025)
    d["scatter"]["points"] = [[5, None, 0, 1]]
    d["memory"]["workers"] = []
    d["completeness"]["notes"] = []
    d["waste"] = None
    d["servers"]["rows"] = d["sections"]["rows"] = []
    d["run"].update(start_time=None, python=None)
    d["levels"]["bin"] = 0


def test_what_is_not_there(page):
    d = page.show(other)
    f = d["findings"]
    assert page.texts(".answer .lead") == ["23,460 events/s", held_back(d)[0], "no findings"]
    assert page.texts(".answer p:not(.lead)")[2:] == [
        held_back(d)[1], "of 23.70 s: 6 threads for 3.950 s",
        f"{f['made']} of {f['checks']} checks could be made, {f['idle']} did not apply"]
    assert page.texts("#panel-findings p") == ["No findings.", f"shown 0 of {f['total']} findings", f"{f['made']} of {f['checks']} checks were made, {f['idle']} did not apply to this run."]
    for panel, text in (("codecs", "No codec call was counted."), ("files", "No data file was read."), ("datasets", "No counted chunk."), ("balance", "No worker has run a task."),
                        ("waits", "No wait of a task was longer than 25.00 ms."), ("scatter", "No chunk whose time is known."),
                        ("memory", "This run has no sample of a worker\u2019s memory.")):
        assert page.texts(f"#panel-{panel} p")[-1] == text
    assert page.texts("#panel-servers, #panel-sections, #panel-overtime") == [] and page.texts("#panel-completeness ul") == []
    assert page.texts("#facts")[0].startswith("began at an unknown time \u00b7 Dask 2026.1")
    assert page.texts("#panel-time .what")[-1].startswith("Less than half")
    assert page.rows("#table-time")[2][1:] == ["unknown", "unknown"]
    assert "all attempts" in page.chart("time").label
    answers = page.tab.run("""[fast(prepare({ run: {}, metrics: [{ id: "wall_time", value: 4 }, { id: "num_tasks", value: 10 }] }))[0],
        fast(prepare({ run: {}, metrics: [{ id: "wall_time", value: 4 }, { id: "num_tasks", value: 10 }] }))[1][0], fast(prepare({ run: {}, metrics: [] }))[0],
        heldBack({ byId: new Map(), time: { classes: {}, wall_seconds: null } })[0], toChange({ findings: null })[0],
        toChange({ findings: { rows: [{ severity: "note", advice: "rest" }], made: 1, checks: 2, idle: 3 } })[0]]""")
    assert answers == ["2.500 tasks/s", "10 tasks in 4.000 s", "unknown", "unknown", "unknown", "rest"]
    for rate, events, wall, lead, done in ((9.9994, 1, 5, "9999 events/s", "1 events in 5.000 s"), (10, 2, 5, "10,000 events/s", "2 events in 5.000 s"),
                                           (10.505, 3, 5, "10,510 events/s", "3 events in 5.000 s"), (0.0125, 4, 5, "12.50 events/s", "4 events in 5.000 s"),
                                           (7, 0, 5, "2.000 tasks/s", "10 tasks in 5.000 s"), (7, 0, 0, "unknown", "10 tasks in 0 s"),
                                           (None, 7, 1, "10.00 tasks/s", "7 events in 1.000 s")):
        values = {"event_rate_wall_khz": rate, "total_events": events, "wall_time": wall, "num_tasks": 10}
        metrics = json.dumps([{"id": name, "value": value} for name, value in values.items() if value is not None])
        assert page.tab.run(f"(([lead, more]) => [lead, more[0]])(fast(prepare({{ run: {{}}, metrics: {metrics} }})))") == [lead, done]
    ends = "[[1000, 1003.5], [null, 1003.5], [1000, null]].map(([start, stop]) => prepare({ run: { start, stop }, metrics: [] }).wall)"
    assert page.tab.run(ends) == [3.5, 0, 0]
    page.show(lambda d: (rich(d), d["blocking"].update(known=False, rows=[]), d.update(findings=None)))
    assert page.texts("#panel-waits .what") == ["Long waits were not recorded."] and page.texts("#panel-findings .what") == ["The findings are unknown."]


def test_findings(page, shown):
    page.show(rich)
    f = shown["findings"]
    assert page.texts(".findings > li > p") == ["notea note", "nothing", "higha sentence", "costs about 3.8 of 7.9 s", "an advice"]
    assert page.rows("#finding-small") == [["n", "unknown", " "], ["f", "1.23457", "s"], ["i", "12345", "B"], ["t", "x", " "]]
    gaps = ", ".join(f"{g['id']} ({g['unknown']})" for g in f["gaps"])
    assert page.texts("#panel-findings .shown") == [f"shown 2 of {f['total']} findings", f"{f['made']} of {f['checks']} checks were made, {f['idle']} did not apply to this run, "
                                                    f"{len(f['gaps'])} lacked an input: {gaps}."]


def bars(chart, names, rows, form):
    """Each segment's position and width match its value; rows: [{segment: value}], names: the rows' names"""
    scale, ends = set(), []
    for i, row in enumerate(rows):
        drawn, at = chart.of(data_row=str(i)), None
        assert [(s["data-name"], float(s["data-value"]), s["title"]) for s in drawn] == [(n, v, f"{names[i]}: {n} {form(v)}") for n, v in row.items() if v and v > 0]
        for s in drawn:
            assert at is None or float(s["x"]) == pytest.approx(at)
            at = float(s["x"]) + float(s["width"])
            scale.add(float(s["width"]) / float(s["data-value"]))
        ends.append(at or 0)
    assert len({float(chart.of(data_row=str(i))[0]["x"]) for i, row in enumerate(rows) if chart.of(data_row=str(i))}) == 1
    assert max(scale) == pytest.approx(min(scale), rel=1e-4) and 0.5 * chart.width < max(ends) == pytest.approx(chart.width - 92)  # space for the sums
    tops = [float(chart.of(data_row=str(i))[0]["y"]) for i in range(len(rows)) if chart.of(data_row=str(i))]
    assert tops == sorted(tops) and len(set(tops)) == len(tops)


def labels(chart, which):
    return [text for name, text, _ in chart.texts if name == which]


def test_time_in_total(page, shown):
    time, chart = shown["time"], page.chart("time")
    values = {title: time["classes"][name] for name, title in CLASSES.items()}
    bars(chart, ["counted tasks"], [values], seconds)
    assert labels(chart, "value") == ["4.200 s"] and labels(chart, "rowname") == ["counted tasks"]
    assert page.legend("time") == [f"{name}{seconds(v)} ({percent(v, 4.2)})" for name, v in values.items()]
    assert page.rows("#table-time") == [*([name, seconds(v), percent(v, 4.2)] for name, v in values.items()), ["wall time of tasks", "4.200 s", "100.0 %"],
                                        ["CPU of pool threads (not included)", seconds(time["pool_cpu_seconds"]), percent(time["pool_cpu_seconds"], 4.2)]]
    fills = {s["data-name"]: s["fill"] for s in chart.of(tag="rect")}
    assert fills == {CLASSES[name]: f"var(--{name})" for name in CLASSES if time["classes"][name] > 0}


def curve(chart, name, width, values, end=None):
    path, = chart.of(data_name=name)
    for i, value in enumerate(values):
        if value is not None:
            assert chart.span(path, (i + 0.4) * width) == [pytest.approx(value, rel=1e-6, abs=1e-9)], (name, i)
        else:
            assert not chart.span(path, (i + 0.4) * width)
    last = max(float(p) for p in re.findall(r"(-?[\d.e-]+),", path["d"]))
    if values[-1] is not None:
        assert chart.value(chart.x, last) == pytest.approx(end or len(values) * width, rel=1e-3)


def stack(chart, width, layers):
    for i in range(len(next(iter(layers.values())))):
        over, under = 0, 0
        for name, values in layers.items():
            found = chart.span(chart.of(data_name=name)[0], (i + 0.4) * width)
            base = over if values[i] >= 0 else under
            assert found == [pytest.approx(v, abs=1e-6) for v in sorted((base, base + values[i]))], (name, i)
            over, under = over + max(values[i], 0), under + min(values[i], 0)


def test_over_time(page, shown):
    levels = {name: [v / 1000 for v in values] for name, values in shown["levels"].items() if name in ("tasks", "workers", "threads")}
    chart = page.chart("overtime")
    layers = {CLASSES[name]: [v / 1000 for v in shown["levels"]["classes"][name]] for name in CLASSES if name != "sleep"}
    stack(chart, 0.4, layers)
    curve(chart, "threads of the workers", 0.4, levels["threads"])
    assert page.legend("overtime") == [*layers, "threads of the workers"]
    top = chart.value(chart.y, 8)
    assert 1 < top / max(sum(max(v[i], 0) for v in layers.values()) for i in range(9)) < 1.5
    rows = [[*map(lambda v: human(v, "").strip() if v < 99999.5 else count(v), [v[i] for v in layers.values()]), human(levels["threads"][i], "").strip()] for i in range(9)]
    assert page.rows("#table-overtime") == [[seconds(0.4 * i), *row] for i, row in enumerate(rows)]
    assert page.head("#table-overtime") == ["from the start", *layers, "threads of the workers"]
    chart = page.chart("levels")
    stack(chart, 0.4, {"running tasks": levels["tasks"]})
    curve(chart, "workers", 0.4, levels["workers"])
    curve(chart, "threads", 0.4, levels["threads"])
    assert page.legend("levels") == ["running tasks", "workers", "threads"]
    assert [row[1:] for row in page.rows("#table-levels")] == [[human(levels[n][i], "").strip() for n in ("tasks", "workers", "threads")] for i in range(9)]


def test_what_is_small_or_unknown(page):
    """Fractions of a thread, a class far below one thread, codecs with unknown CPU, the number columns."""
    def small(d):
        rich(d)
        d["time"]["budget"]["threads"] = 2.3456
        d["levels"]["classes"]["gil"] = [2] * 9
        d["codecs"]["rows"][0]["cpu_seconds"], d["codecs"]["rows"][1]["cpu_seconds"] = None, 0.5

    page.show(small)
    assert [text for text in page.texts(".answer p:not(.lead)") if "threads for" in text] == ["of 23.70 s: 2.35 threads for 3.950 s"]
    assert CLASSES["gil"] in page.legend("overtime")
    assert [row[0] for row in page.rows("#table-codecs")][0] == "lz4 (unknown)"
    kinds = page.tab.run("[...document.querySelectorAll('#table-codecs tr')].map((row) => [...row.children].map((cell) => cell.className))")
    assert kinds == [["name", *["number"] * 8]] * 4


def test_nothing_but_zeros(page):
    """The axis ends at 1; a task whose classes are all unknown has no highest class."""
    def zeros(d):
        rich(d)
        for name in ("tasks", "workers", "threads"):
            d["levels"][name] = [0] * 9
        for bar in d["stream"]["bars"]:
            bar[7:] = [0] * len(bar[7:])

    page.show(zeros)
    chart = page.chart("levels")
    assert chart.value(chart.y, 8) == pytest.approx(1, abs=0.01)
    drawn = {path["data-name"]: len(pieces(path)) for path in page.chart("stream").of(tag="path") if path.get("class") == "class"}
    assert drawn == {**dict.fromkeys(CLASSES, 0), "unclassified": 6}


def test_samples_before_the_start(page):
    """The axis starts with them; three or more are drawn as a line without dots, fewer as dots."""
    def early(d):
        rich(d)
        d["memory"]["workers"][0]["points"] = [[-1_500_000, 10**9], [1_000_000, 10**9 + 5], [2_000_000, 10**9 + 9]]

    page.show(early)
    chart = page.chart("memory")
    assert len(chart.of(tag="circle")) == 2
    first = [s for s in chart.of(tag="path") if s["class"] == "curve"][0]
    assert chart.value(chart.x, float(re.match(r"M(-?[\d.]+),", first["d"])[1])) == pytest.approx(-1.5, abs=1e-6)
    assert page.cursor("memory", "Home")[0].startswith("-1.500 s: w-0 1.000 GB")
    page.show(lambda d: (rich(d), [w.update(points=[[(2 + i) * 10**6, 10**9] for i in range(3)]) for w in d["memory"]["workers"]]))
    assert min(page.chart("memory").x)[1] == 0  # also if they come late


def test_a_redraw_keeps_what_is_open(page):
    page.show(rich)
    before = page.rows("#table-codecs")
    assert len(before) == 3
    page.tab.run("draw(current)")
    assert page.rows("#table-codecs") == before
    page.tab.run("document.querySelectorAll('details').forEach((e) => { e.open = false; }); draw(current)")
    assert page.rows("#table-codecs") == []


def test_more_datasets_than_bars(page):
    def many(d):
        rich(d)
        d["datasets"]["rows"] = [{**d["datasets"]["rows"][0], "dataset": f"set-{i}"} for i in range(14)]

    page.show(many)
    assert page.texts("#panel-datasets .shown") == ["shown 12 of 33 datasets with the most time"]
    assert labels(page.chart("datasets"), "rowname") == [f"set-{i}" for i in range(12)] and len(page.rows("#table-datasets")) == 14


def test_a_sliver_below_zero_has_no_axis(page):
    def with_rest(value):
        page.show(lambda d: (rich(d), d["levels"]["classes"]["unclassified"].__setitem__(3, value)))
        return max(page.chart("overtime").y)[1]  # the lowest tick

    assert with_rest(-20_000) == 0 and with_rest(-900_000) < 0


def test_gbps(page, shown):
    t, chart = shown["timeline"], page.chart("gbps")
    names = {"read_bytes": "read from files", "storage_read_bytes": "from storage", "storage_write_bytes": "written to storage",
             "decompress_in_bytes": "compressed input", "decompress_out_bytes": "decompressed"}
    rates = {name: [None if v is None else v * 8e-9 / (1 if i < 3 else 0.95) for i, v in enumerate(t["layers"][name])] for name in names}
    for name, title in names.items():
        curve(chart, title, 1, rates[name], end=3.95)
    assert page.legend("gbps") == list(names.values()) and page.texts("#panel-gbps .shown") == ["unknown: mapped"]
    assert page.rows("#table-gbps") == [[seconds(i), *(rate(rates[name][i]) for name in names)] for i in range(4)]
    text = f"2.000 s: {', '.join(f'{title} {rate(rates[name][2])}' for name, title in names.items())}"
    assert page.cursor("gbps", "Home", "ArrowRight", "ArrowUp") == [text, text, 2, 3]
    assert page.cursor("gbps", "End")[2] == page.cursor("gbps", "ArrowRight")[2] == 3 and page.cursor("gbps", "ArrowLeft", "ArrowDown")[2] == 1
    assert page.cursor("overtime", "Home", "PageDown")[2] == 0 and page.cursor("overtime", "PageUp")[2] == 8
    px = [p for p, v in chart.x if v == 2][0]
    assert page.point("gbps", px + 5, 50) == text and page.point("gbps", px - 5, 50).startswith("1.000 s: ")
    line, = [s for s in page.chart("gbps").of(tag="line") if s["class"] == "cursor"]
    assert chart.value(chart.x, float(line["x1"])) == pytest.approx(1.5) == chart.value(chart.x, float(line["x2"])) and line["visibility"] == "visible"


def test_a_number_that_the_page_has_no_colour_of(page):
    """A class and a layer of a newer contract/counters.def are drawn with the names in the data."""
    def newer(d):
        rich(d)
        d["classes"].insert(1, {"id": "tape", "name": "waiting for a tape"})
        d["layers"].insert(1, {"id": "tape_bytes", "name": "from tape"})
        d["timeline"]["layers"]["tape_bytes"] = [3 * 10**9] * 4
        d["levels"]["classes"]["tape"] = [7] * 9
        for part in (d["time"], *d["slowest"]["rows"], *d["datasets"]["rows"], *d["balance"]["rows"]):
            part["classes"]["tape"] = 1.5
        for bar in d["stream"]["bars"]:
            bar.insert(-len(CLASSES) + 1, 1_500_000)

    page.show(newer)
    assert "waiting for a tape1.500 s (35.7 %)" in page.legend("time") and page.legend("gbps")[1] == "from tape"
    assert [s["fill"] for s in page.chart("time").of(tag="rect") if s["data-name"] == "waiting for a tape"] == ["var(--s5)"]
    assert [s["stroke"] for s in page.chart("gbps").of(tag="path") if s.get("data-name") == "from tape"] == ["var(--s5)"]
    assert page.legend("stream")[1] == page.head("#table-stream")[5] == "waiting for a tape"
    page.show(rich)


def test_memory(page, shown):
    m, chart = shown["memory"], page.chart("memory")
    paths = [s for s in chart.of(tag="path") if s["class"] == "curve"]
    for worker, path in zip(m["workers"], paths, strict=True):
        points = [(chart.value(chart.x, float(x)), chart.value(chart.y, float(y))) for x, y in re.findall(r"([\d.e-]+),([\d.e-]+)", path["d"])]
        assert points == [(pytest.approx(t / 1e6, abs=1e-6), pytest.approx(v, rel=1e-6)) for t, v in worker["points"]]
    assert [path["stroke"] for path in paths] == ["var(--s0)", "var(--s1)"]
    dots = [(chart.value(chart.x, float(s["cx"])), chart.value(chart.y, float(s["cy"]))) for s in chart.of(tag="circle")]
    assert dots == [(pytest.approx(t / 1e6), pytest.approx(v)) for t, v in m["workers"][1]["points"]]
    assert not [s for s in chart.of(tag="line") if s["class"] == "limit"] and labels(chart, "label") == []
    assert page.legend("memory") == ["w-0", "w-1"] and page.texts("#panel-memory .shown") == ["Each limit is 4.000 GB.", "shown 2 of 20 workers with the most memory"]
    assert page.rows("#table-memory") == [[w["worker"], size(w["peak_bytes"]), size(4e9), percent(w["peak_bytes"], 4e9)] for w in m["workers"]]
    times = sorted({p[0] for w in m["workers"] for p in w["points"]})
    at = [[([v for t, v in w["points"] if t <= time] or [None])[-1] for w in m["workers"]] for time in times]
    for i, (a, b) in enumerate(at):
        assert page.cursor("memory", "Home", *["ArrowRight"] * i)[0] == f"{seconds(times[i] / 1e6)}: w-0 {size(a)}, w-1 {size(b)}"
    px = [p for p, v in chart.x if v == 2][0]
    assert page.point("memory", px + 3, 9).startswith(seconds(min(t for t in times if t > 2e6 + 1000) / 1e6))
    x_end, y_end = chart.value(chart.x, chart.width - 8), chart.value(chart.y, 8)
    assert x_end == pytest.approx(3.95, rel=1e-3) and 1.4e9 < y_end < 1.55e9
    most = max(v for w in m["workers"] for _, v in w["points"])
    for of_limit, near in ((0.41, True), (0.39, False)):
        page.show(lambda d, at=most / of_limit: (rich(d), [w.update(limit_bytes=at) for w in d["memory"]["workers"]]))
        chart = page.chart("memory")
        drawn = [s for s in chart.of(tag="line") if s["class"] == "limit"]
        assert len(drawn) == near and (chart.value(chart.y, 8) > most / of_limit) == near
        assert all(chart.value(chart.y, float(s[y])) == pytest.approx(most / of_limit) for s in drawn for y in ("y1", "y2"))
        assert labels(chart, "label") == [f"limit {size(most / of_limit)}"] * near
    page.show(lambda d: (rich(d), d["memory"]["workers"][0].update(limit_bytes=None)))
    assert page.texts("#panel-memory .shown")[0] == "The limits differ; the table has each." and labels(page.chart("memory"), "label") == []
    page.show(lambda d: (rich(d), [w.update(limit_bytes=None) for w in d["memory"]["workers"]]))
    assert page.texts("#panel-memory .shown")[0] == "The limit is unknown."


def test_chunks(page):
    """Each dataset has a row with its own axis; from the seventh on they share the last one."""
    s = page.show(rich)["scatter"]
    chart, points = page.chart("scatter"), s["points"][:10]
    rows = [[(t[0] - 0.5, amount(t[2])) for t in ticks] for ticks in chart.axes[1:]]
    one = (chart.height - 22 - 4) / 7
    assert len(rows) == 7 and all(len(ticks) >= 2 for ticks in rows)
    seconds_at = [lambda py, i=i: chart.value([(p, v) for _, p, v in ticks_of(chart, 1 + i)], py - one * i) for i in range(7)]
    drawn = [(chart.value(chart.x, float(c["cx"])), seconds_at[int(float(c["cy"]) // one)](float(c["cy"])), c["fill"]) for c in chart.of(**{"class": "point"})]
    assert drawn == [(pytest.approx(begin / 1e6, abs=0.01), pytest.approx(us / 1e6, rel=1e-3), f"var(--s{min(k, 6)})") for _, us, k, begin in points]
    assert {(c["r"], c["fill-opacity"]) for c in chart.of(**{"class": "point"})} == {("3", "0.85")}
    medians = {line["stroke"]: seconds_at[0](float(line["y1"])) for line in chart.of(**{"class": "median"})}
    assert medians == {f"var(--s{i})": pytest.approx(i + 2, rel=1e-3) for i in range(6) if i != 2}
    assert labels(chart, "rowname") == [*(f"set-{i}: {100 + i} chunks, median {'unknown' if i == 2 else seconds(i + 2)}" for i in range(6)), "3 more"]
    assert page.texts("#panel-scatter .shown") == ["shown 12 of 1,000 chunks: the slowest, and an even sample of the others"]
    assert page.rows("#table-scatter") == [[s["datasets"][k][0], count(n), *("unknown" if us is None else seconds(us / 1e6) for us in (begin, wall))] for n, wall, k, begin in s["points"]]
    for i, (n, us, k, begin) in enumerate(points):
        text = f"set-{k}: {seconds(us / 1e6)} from {seconds(begin / 1e6)}, {count(n)} events"
        assert page.cursor("scatter", "Home", *["ArrowRight"] * i)[0] == text
        c = chart.of(**{"class": "point"})[i]
        assert page.point("scatter", float(c["cx"]) + 2, float(c["cy"]) - 2) == text
        ring, = page.chart("scatter").of(**{"class": "ring"})
        assert (ring["cx"], ring["cy"]) == (c["cx"], c["cy"])
    page.show(lambda d: (rich(d), d["scatter"].update(points=[[1, 10**6, 0, 10**6]], datasets=[["a", 1, 10**6]])))
    assert labels(page.chart("scatter"), "rowname") == ["a: 1 chunks, median 1.000 s"]


def test_keys(page):
    """One point or ten at a time, in either direction, and never beyond the ends."""
    d = page.show(lambda d: (rich(d), d["scatter"].update(points=[[n + 1, 10**6, 0, (n + 1) * 10**5] for n in range(35)])))
    points = [f"{d['scatter']['datasets'][0][0]}: 1.000 s from {seconds((n + 1) / 10)}, {n + 1} events" for n in range(35)]
    for key, at in (("Home", 0), ("PageUp", 10), ("PageUp", 20), ("ArrowRight", 21), ("ArrowUp", 22), ("ArrowLeft", 21), ("ArrowDown", 20), ("PageDown", 10),
                    ("x", 10), ("PageDown", 0), ("PageDown", 0), ("ArrowLeft", 0), ("End", 34), ("PageUp", 34), ("PageDown", 24), ("PageUp", 34), ("ArrowDown", 33)):
        assert page.cursor("scatter", key) == [points[at], points[at], at, 34], key


def ticks_of(chart, i):
    return [(t[0], t[1] - 0.5, amount(t[2])) for t in chart.axes[i]]


def pieces(path):
    return [tuple(map(float, p)) for p in re.findall(r"M(-?[\d.]+),(-?[\d.]+)h(-?[\d.]+)v(-?[\d.]+)", path["d"])]


def test_stream(page):
    d = page.show(rich)
    s, chart = d["stream"], page.chart("stream")
    assert chart.label == f"Task stream: {s['in_lanes']} tasks on {len(s['lanes'])} threads"
    pitch = chart.height - 24 - 6
    row = pitch / len(s["lanes"])
    shapes = {path["data-name"]: pieces(path) for path in chart.of(tag="path") if path.get("class") == "class"}
    kinds = {path["data-name"]: pieces(path) for path in chart.of(tag="path") if path.get("class") == "kind"}
    lost = pieces([p for p in chart.of(tag="path") if p.get("stroke") == "var(--high)"][0])
    assert len(lost) == 1 and sum(map(len, kinds.values())) == len(kinds["processing"]) == len(s["bars"]) == 6

    def time(px):
        return chart.value(chart.x, px)

    for key, lane, begin, wall, state, counted, kind, *classes in s["bars"]:
        whole = sum(max(0, c) for c in classes)
        (x, y, w, h), = [p for p in kinds["processing"] if time(p[0]) == pytest.approx(begin / 1e6, abs=0.01) and p[1] // row == lane]
        assert time(x + w) - time(x) == pytest.approx(wall / 1e6, abs=0.015) or wall < 60_000
        tall, at = 0, None
        for name, c in zip(CLASSES, classes):
            found = [p for p in shapes[name] if p[0] == x and p[1] // row == lane]
            assert len(found) == (c > 0), (key, name)
            for part in found:
                assert part[2] == w and (at is None or part[1] + part[3] == pytest.approx(at, abs=0.11))
                tall, at = tall + part[3], part[1]
        assert 0.6 * row < tall < row
        for name, c in zip(CLASSES, classes):
            if c > 0:
                (part,) = [p for p in shapes[name] if p[0] == x and p[1] // row == lane]
                assert part[3] == pytest.approx(tall * c / whole, abs=0.15)
    failed = next(bar for bar in s["bars"] if bar[4] == "erred")
    assert time(lost[0][0]) == pytest.approx(failed[2] / 1e6, abs=0.01) and lost[0][1] // row == failed[1]
    assert page.legend("stream") == [*CLASSES.values(), "processing"]
    for i, (key, lane, begin, wall, state, counted, kind, *classes) in enumerate(s["bars"]):
        told = ", ".join(f"{title} {seconds(c / 1e6)}" for title, c in zip(CLASSES.values(), classes) if c)
        text = f"{key}: on {s['lanes'][lane]}, processing, {state}{'' if counted else ', not counted'}, from {seconds(begin / 1e6)}, {seconds(wall / 1e6)}, {told}"
        assert page.cursor("stream", "Home", *["ArrowRight"] * i)[0] == text
        (x, y, w, _), = [p for p in kinds["processing"] if time(p[0]) == pytest.approx(begin / 1e6, abs=0.01) and p[1] // row == lane]
        assert page.point("stream", x + w / 2, y - row / 2) == text or key in ("work-5", "work-2", "work-3", "work-9")
        ring, = page.chart("stream").of(**{"class": "ring"})
        assert ring["visibility"] == "visible"
        page.cursor("stream", "Home", *["ArrowRight"] * i)
        ring, = page.chart("stream").of(**{"class": "ring"})
        assert time(float(ring["x"])) == pytest.approx(begin / 1e6, abs=1e-4) and float(ring["y"]) // row == lane
    slow = d["slowest"]
    assert page.rows("#table-stream") == [
        [r["key"], r["worker"], f"{r['status']}, {r['waste_reason']}" if r["waste_reason"] else r["status"], seconds(r["wall_seconds"]),
         *(seconds(r["classes"][c]) for c in CLASSES), count(r["events"]), size(r["read_bytes"])] for r in slow["rows"]]
    assert page.texts("#table-stream caption") == [f"The {len(slow['rows'])} slowest of {slow['total']} tasks"]


def test_the_pointer_finds_the_nearest_task(page):
    """The nearest task in the pointer's row, however short tasks and pauses are; each task has its own row."""
    def narrow(d):
        rich(d)
        some = d["stream"]["bars"][0]
        bars = [[f"work-{i}", 0, i * 200_000, 100_000, *some[4:]] for i in range(15)] + [["alone", 1, 0, 100_000, *some[4:]]]
        d["stream"].update(bars=bars, lanes=["w-0", "w-1"], total=16, in_lanes=16)

    bars = page.show(narrow)["stream"]["bars"]
    chart = page.chart("stream")
    row = (chart.height - 30) / 2
    px = {seconds_: chart.x[0][0] + (seconds_ - chart.x[0][1]) * (chart.x[-1][0] - chart.x[0][0]) / (chart.x[-1][1] - chart.x[0][1]) for seconds_ in
          [begin / 1e6 + d for _, _, begin, *_ in bars for d in (0.05, 0.12, 0.17)]}
    for i, (key, lane, begin, *_) in enumerate(bars):
        found = [page.point("stream", px[begin / 1e6 + d], row * lane + row / 2).split(":")[0] for d in (0.05, 0.12, 0.17)]
        assert found == ([key] * 3 if key in ("alone", "work-14") else [key, key, f"work-{i + 1}"])
    assert page.point("stream", px[bars[14][2] / 1e6 + 0.05], row * 1.5).startswith("alone:")


def celled(d):
    rich(d)
    lanes = [f"w-{i // 2}" for i in range(4)]
    d["stream"].update(lanes=lanes, lanes_total=2000, total=30_000, in_lanes=5000, cell=500_000, bars=d["stream"]["bars"][:2], cells=[
        [100 * (1 + (lane + i * 3 + k) % 4) if k < 3 else 0 for i in range(8) for k in range(8)] for lane in range(4)])
    for bar, (lane, kind) in zip(d["stream"]["bars"], ((2, 1), (3, 2))):
        bar[1], bar[6] = lane, kind


def test_stream_of_cells(page):
    s = page.show(celled)["stream"]
    chart = page.chart("stream")
    row = (chart.height - 30) / 4
    shapes = {path["data-name"]: pieces(path) for path in chart.of(tag="path") if path.get("class") == "class"}
    full = 0.7 * row
    for k, name in enumerate(CLASSES):
        expected = [(0.5 * i, lane, s["cells"][lane][8 * i + k]) for lane in range(4) for i in range(8) if s["cells"][lane][8 * i + k]]
        assert len(shapes[name]) == len(expected)
        for (x, y, w, h), (begin, lane, value) in zip(shapes[name], expected):
            assert (chart.value(chart.x, x), y // row) == (pytest.approx(begin, abs=0.003), lane)
            assert chart.value(chart.x, x + w) == pytest.approx(min(3.95, begin + 0.5), abs=0.005) and full * value / 1000 < h < row * value / 1000
    assert page.texts("#panel-stream .shown") == [
        "shown 5,000 of 30,000 tasks, on 4 of 2,000 threads (those with the longest tasks), added up in cells of 500.0 ms, each task spread evenly over its duration; the cursor finds the 2 longest"]
    assert page.legend("stream") == list(CLASSES.values()) and not any(pieces(p) for p in chart.of(tag="path") if p.get("class") == "kind")
    assert labels(chart, "rowname") == ["w-0", "w-1"]
    page.show(lambda d: (celled(d), d["stream"].update(bars=[])))  # nothing to select with keys
    assert page.tab.run("['min', 'max', 'now'].map((name) => document.getElementById('chart-stream').getAttribute(`aria-value${name}`))") == ["0", "0", "0"]
    page.show(lambda d: (rich(d), d["stream"].update(total=70_000, lanes_total=9)))
    assert page.texts("#panel-stream .shown") == ["shown 6 of 70,000 tasks, on 2 of 9 threads, those with the longest tasks"]


def test_codecs_and_files(page):
    d = page.show(rich)
    c = sorted(d["codecs"]["rows"], key=lambda r: -r["cpu_seconds"])
    cpu = next(m["value"] for m in d["metrics"] if m["id"] == "total_cpu_time_true_all")
    chart = page.chart("codecs")
    names = ["lz4 (unknown)", "zlib (lz4.frame)", "lzma (x)"]
    bars(chart, names, [{"decompression CPU": r["cpu_seconds"]} for r in c], seconds)
    assert labels(chart, "rowname") == names and labels(chart, "value") == [seconds(r["cpu_seconds"]) for r in c]
    assert page.rows("#table-codecs") == [
        [names[0], "34", "20.00 kB", "unknown", "1.500 s", "unknown", percent(1.5, cpu), "unknown", "0 B"],
        [names[1], "1,200", "3.000 MB", "9.000 MB", "750.0 ms", "3.00x", percent(0.75, cpu), "12.00 MB/s", "777 B"],
        [names[2], "5", "0 B", "8 B", "0 s", "unknown", "0.0 %", "unknown", "unknown"]]
    assert page.texts("#panel-codecs .shown") == ["shown 3 of 5 codecs"]
    f, chart = d["files"]["rows"], page.chart("files")
    bars(chart, [r["path"] for r in f[:12]], [{"read (not classified)": r["read_bytes"], "from the network": 5 * 10**7} if i in (2, 3) else
         {"baskets": r["read_bytes"] - r["reread_bytes"] - r["outside_basket_bytes"], "outside baskets": r["outside_basket_bytes"], "read again": r["reread_bytes"]}
         for i, r in enumerate(f[:12])], size)
    assert labels(chart, "value") == [size(5 * 10**7 if r["read_bytes"] is None else r["read_bytes"]) for r in f[:12]]
    assert page.texts("#panel-files .shown") == ["shown 12 of 5,000 files, those with the most bytes read again or outside baskets"]
    assert page.legend("files") == ["baskets", "read again", "outside baskets", "read (not classified)", "from the network"]
    assert labels(chart, "rowname")[0] == "\u2026/0.root" and "name1.root" in labels(chart, "rowname")[1] and len(labels(chart, "rowname")[1]) < 60
    assert page.tab.run("[distinct(['/a/b/x', '/a/b/c/y']), distinct(['/a/x']), distinct(['x', 'y']), distinct(['root://a//d/x', 'root://a//d/y'])]") == [
        ["\u2026/x", "\u2026/c/y"], ["/a/x"], ["x", "y"], ["\u2026/x", "\u2026/y"]]
    titles = {column["title"]: column["name"] for column in d["files"]["columns"]}
    order = [titles[title] for title in page.head("#table-files")]
    assert order[:2] == ["path", "read_amplification"] and order[-1] == "filesystem" and sorted(order) == sorted(titles.values()) and len(order) > 10
    way = {"path": str, "read_amplification": lambda v: human(v, "x"), "filesystem": lambda v: v or "unknown", "opened_at": lambda v: v or "unknown"}
    assert page.rows("#table-files") == [[way.get(name, size if name.endswith("_bytes") else count)(r[name]) for name in order] for r in f]
    assert page.texts("#table-files caption") == ["14 of 5,000 files, all attempts"]


def test_files_that_were_only_written_have_no_bar(page):
    """Logs have none; but files for which a number is unknown or data came from the network have one."""
    def logs(d):
        rich(d)
        like = {**d["files"]["rows"][5], "read_bytes": 0, "reread_bytes": 0, "outside_basket_bytes": 0, "network_read_bytes": None, "mapped_bytes": 0}
        d["files"]["rows"][:0] = [{**like, "path": "/a/log"}, {**like, "path": "/a/remote", "network_read_bytes": 1}, {**like, "path": "/a/mapped", "mapped_bytes": 1},
                                  {**like, "path": "/a/unknown", "read_bytes": None}]
    page.show(logs)
    assert labels(page.chart("files"), "rowname")[:4] == ["/a/remote", "/a/mapped", "/a/unknown", "/data/0.root"]
    assert len(page.rows("#table-files")) == 18


def test_datasets_and_workers(page):
    d = page.show(rich)
    for table, key in (("datasets", "dataset"), ("balance", "worker")):
        rows, chart = d[table]["rows"], page.chart(table)
        bars(chart, [r[key] for r in rows], [{CLASSES[n]: v for n, v in r["classes"].items()} for r in rows], seconds)
        assert labels(chart, "value") == [seconds(r["wall_seconds"]) for r in rows] and labels(chart, "rowname") == [r[key] for r in rows]
    assert page.rows("#table-datasets") == [
        [r["dataset"], count(r["chunks"]), count(r["events"]), seconds(r["wall_seconds"]), seconds(r["cpu_seconds"]), seconds(r["cpu_seconds_per_event"]), size(r["requested_bytes"]),
         size(r["read_bytes"]), size(r["storage_read_bytes"]), human(r["read_amplification"], "x")] for r in d["datasets"]["rows"]]
    assert page.rows("#table-balance") == [
        [r["worker"], r["host"], count(r["threads"]), count(r["tasks"]), count(r["events"]), seconds(r["wall_seconds"]), seconds(r["cpu_seconds"]), size(r["read_bytes"]),
         size(r["storage_read_bytes"]), end] for r, end in zip(d["balance"]["rows"], ("exit", "silent", "none yet"))]
    assert page.texts("#panel-datasets .shown") == ["shown 3 of 33 datasets with the most time"] and page.texts("#table-datasets caption") == ["3 of 33 datasets, counted chunks"]
    assert page.texts("#panel-balance .shown") == ["shown 3 of 33 workers, the busiest and the least busy"]
    assert page.rows("#panel-waits") == [["an.py:42 load", "read", "load < main", "storage", "a.root", "work", "12", "3.250 s", "750.0 ms"],
                                         ["none", "no symbols", "none", "lock", "none", "unknown", "3,000", "500.0 ms", "125.0 ms"]]
    assert page.texts("#panel-waits caption") == ["Waits longer than 25.00 ms by call site: 2 of 1,500 places"]
    assert page.rows("#panel-servers") == [["root://a:1094", "6,000", "7", "123.5 kB", "2.500 s", "125.0 ms"]] and page.texts("#panel-servers caption") == ["1 of 70 servers"]
    sums = ["1.500 kB", "1.400 kB", "2.800 kB", "2.500 s", "1.500 s", "500.0 ms", "250.0 ms"]
    assert page.rows("#panel-columns") == [[name, dataset, "7", "5", "3", "unknown" if name == "(outside columns)" else "11", *sums, "an.py:42 process, an.py:43 f, ..." if name == "Jet_pt" else "none"]
                                            for name, dataset in (
        ("Jet_pt", "ttbar"), ("(several at once)", "ttbar"), ("(columns beyond the table)", "none"), ("(outside columns)", "ttbar"))]
    assert page.texts("#panel-columns caption") == ["4 of 90 columns"]


def test_sections(page):
    rows = page.show(rich)["sections_by_dataset"]["rows"]
    numbers = [[count(r["count"]), *(seconds(r[f"{name}_seconds"]) if r[f"{name}_seconds"] is not None else "unknown" for name in ("wall", "cpu", "wall_min", "wall_median", "wall_max"))] for r in rows]
    assert page.rows("#panel-sections") == [["jets", "work", *numbers[0]], ["jets (pool)", "work", *numbers[1]], ["jets", "ttbar", *numbers[0]], ["jets (pool)", "wjets", *numbers[1]],
                                            ["(beyond the table)", "(beyond the table)", *numbers[2]]]
    assert page.texts("#panel-sections caption") == ["2 of 1,002 sections, most time first", "3 of 2,003 by dataset, most time first"]
    page.show(lambda d: (rich(d), [r.update(dataset=None) for r in d["sections_by_dataset"]["rows"]]))
    assert page.texts("#panel-sections caption") == ["2 of 1,002 sections, most time first"]


def test_completeness_and_metrics(page):
    d = page.show(rich)
    c = d["completeness"]
    assert page.texts("#panel-completeness > p") == [
        "Work not attributable to any task, and missing data.",
        "5 of 6 attempts counted; 11 workers seen; 22 records refused, 33 lost, 44 not understood; 55 files read, 66 damaged.", "shown 2 of 9 notes"]
    d = page.show(lambda d: (rich(d), d["completeness"].update(records_refused=None, records_refused_at_least=None, records_lost=None, records_lost_at_least=33)))
    assert "unknown records refused, at least 33 lost, 44 not understood" in page.texts("#panel-completeness > p")[1]
    assert page.rows("#table-completeness") == [[title, *(form(c[f"{part}_{what}"]) for part in ("tasks", "unattributed", "unseen", "process"))]
                                                for title, form, what in (("CPU", seconds, "cpu_seconds"), ("from storage", size, "storage_bytes"))]
    assert page.texts("#panel-completeness li") == ["one note", "another"]
    assert page.rows("#panel-completeness > .scroll") == [[reason, count(w["attempts"]), seconds(w["wall_seconds"]), seconds(w["cpu_seconds"])] for reason, w in d["waste"].items() if w["attempts"]]
    rows = [[f"{m['id']} ({m['alias']})" if m.get("alias") else m["id"], m["text"] if m.get("text") is not None else "unknown", m["unit"] or " ", m["source"], m["help"]] for m in d["metrics"]]
    assert page.rows("#panel-metrics") == rows


LIVE = {"tasks": {"known": 400, "done": 1234, "running": 7, "remaining": 50}, "rates": {"tasks_per_second": 2.5, "events_per_second": 12345, "bytes_per_second": {"read": 2.5e9}},
        "activity": {"since": 5, "done": 30}, "progress": {"total": None, "done": 30, "text": "30 done, 2.5/s"}, "workers": {"connected": 3}, "journal_error": None, "journal_over": None}


def live(page, now, missing=False):
    answers = json.dumps({"live.json": now, "data.json": None if missing else page.given})
    script = page.tab.call("Page.addScriptToEvaluateOnNewDocument", source=f"""const answers = {answers}; window.asked = [];
        window.fetch = async (name) => {{ window.asked.push(name); const found = answers[name.split("?")[0]];
            return {{ ok: found !== null, status: 404, json: async () => found, text: async () => "no run yet" }}; }};""")["identifier"]
    try:
        page.load({"live": True})
        page.tab.wait("live.timer !== null")
    finally:
        page.tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    return page.texts("#live-text")[0]


def test_live(page):
    assert live(page, LIVE) == ("30 done, 2.5/s \u00b7 7 running on 3 workers \u00b7 12345 events/s \u00b7 read 20.00 Gbit/s")
    assert page.tab.run("document.getElementById('live-bar').hidden")  # the number of waiting tasks is unknown
    assert page.tab.run("[asked, "
                        "document.querySelectorAll('main > section').length > 15, document.getElementById('live-journal').textContent, live.failures]") == [
        ["live.json", "data.json"], True, "", 0]
    pressed = page.tab.run("(() => { const b = document.getElementById('pause'), found = [b.textContent]; for (let i = 0; i < 2; i++) { b.click(); found.push(b.textContent, live.paused, asked.length); } return found; })()")
    assert pressed == ["Pause", "Resume", True, 2, "Pause", False, 3]  # resuming sends a request at once
    known = {**LIVE, "progress": {"total": 120, "done": 31, "text": "31 of 120 chunks, 1.7/s, about 52 s left"}}
    assert live(page, known).startswith("31 of 120 chunks, 1.7/s, about 52 s left \u00b7 7 running")
    assert page.tab.run("(() => { const b = document.getElementById('live-bar'); return [b.hidden, b.value, b.max, b.getBoundingClientRect().width > 200]; })()") == [
        False, 31, 120, True]
    still = {**LIVE, "activity": {"since": None, "done": 0}, "progress": None, "journal_over": "the disk is full"}
    assert live(page, still) == "idle; 1,234 tasks done \u00b7 7 running on 3 workers"
    assert page.tab.run("document.getElementById('live-journal').textContent") == "the disk is full"
    live(page, {**still, "journals_trouble": "1 of 2 journals cannot be read"})
    assert page.tab.run("document.getElementById('live-journal').textContent") == "1 of 2 journals cannot be read"
    stuck = {**LIVE, "tasks": {**LIVE["tasks"], "remaining": None}, "rates": {**LIVE["rates"], "bytes_per_second": {"read": None}}, "journal_error": "EIO"}
    assert live(page, stuck).endswith("read unknown")
    stalled = {**LIVE, "state": {"state": "stalled", "text": "stalled for 40 s"}}
    assert live(page, stalled).startswith("stalled for 40 s \u00b7 30 done, 2.5/s")
    assert page.tab.run("document.getElementById('stuck').hidden")
    evil = "<img src=x onerror=document.title='evil'>"
    hanging = {**LIVE, "worker_rows": [{"name": "w1", "paused": True, "rss_bytes": 84, "limit_bytes": 100}, {"name": "w2", "paused": False}, {"name": "w3", "paused": True, "rss_bytes": 84}],
               "doing": [{"key": evil, "worker": "tcp://w2:1", "call": "recv", "kind": "peer", "object": "10.0.0.7:1094", "line": "a.py:3 f", "seconds": 23, "through": ["read_more (_ssl)", "SSL_read (libssl.so.3)"]},
                         {"key": "short", "call": "poll", "seconds": 1.9}, {"key": "runs", "call": None, "seconds": None}]}
    live(page, hanging)
    assert page.texts("#stuck caption") == ["Stuck now: 3"]
    assert page.rows("#stuck") == [["\u2013", "w1", "paused by Dask", "at 84 % of its memory limit", "unknown", "\u2013", "\u2013"],
                                   ["\u2013", "w3", "paused by Dask", "unknown", "unknown", "\u2013", "\u2013"],
                                   [evil, "tcp://w2:1", "recv", "peer 10.0.0.7:1094", "23.00 s", "a.py:3 f", "read_more (_ssl), SSL_read (libssl.so.3)"]]
    live(page, stuck)
    assert page.texts("#live-journal")[0].startswith("The collector cannot write its journal (EIO)")
    live(page, LIVE, missing=True)
    assert page.texts("main .state") == [
        "no run yet \u2013 the first tasks are shown as soon as they arrive.", "For the workers: crema run -- python analysis.py, or crema run -- dask worker SCHEDULER"]


def test_list_of_runs(page):
    """Requested when it is opened, the latest first, each with its link; the run's other formats have relative links."""
    assert live(page, LIVE)
    run = page.given["run"]["id"]
    links = "[...document.querySelectorAll('#links a')].map((e) => [e.textContent, e.getAttribute('href')])"
    assert page.tab.run(links) == [["this run", f"?run={run}"], ["as text", f"report.txt?run={run}"], ["as JSON", f"report.json?run={run}"], ["metrics", "metrics"]]
    rows = [{"run": f"2026-{i}", "kind": "coffea", "wall_time": 2.5 * i or None, "num_tasks": 1000 + i, "num_chunks": i, "total_events": 5000, "running_attempts": i} for i in range(3)]
    page.tab.run(f"answers['runs.json'] = {json.dumps({'runs': rows})}; document.getElementById('runs').open = true")
    page.tab.wait("document.querySelector('#runs tbody tr') !== null")
    assert page.rows("#runs") == [[f"2026-{i}", "coffea", seconds(2.5 * i or None), f"{1000 + i:,}", str(i), "5,000", str(i)] for i in (2, 1, 0)]
    assert page.tab.run("[...document.querySelectorAll('#runs a')].map((e) => e.getAttribute('href'))") == [f"?run=2026-{i}" for i in (2, 1, 0)]
    page.tab.run("document.getElementById('table-runs-by-0').click()")
    assert [row[0] for row in page.rows("#runs")] == ["2026-0", "2026-1", "2026-2"]
    page.tab.run("document.getElementById('runs').open = false; answers['runs.json'] = null")
    page.tab.run("document.getElementById('runs').open = true")
    page.tab.wait("document.querySelector('#runs .what') !== null && !/Reading/.test(document.querySelector('#runs').textContent)")
    assert "The list is not available: no run yet." in page.texts("#runs")[0]


def test_axes_of_time(page):
    """For a day, an hour, minutes and milliseconds: each with its unit."""
    for wall, unit in ((90_000, "h"), (7200, "h"), (7000, "min"), (301, "min"), (290, "s"), (0.005, "ms")):
        page.show(lambda d, wall=wall: (rich(d), d["levels"].update(bin=round(wall / 9 * 1e6))))
        chart = page.chart("levels")
        assert {t[2].split()[1] for t in chart.axes[0]} == {unit}
        assert chart.value(chart.x, chart.width - 8) == pytest.approx(round(wall / 9 * 1e6) * 9 / 1e6, rel=0.01)


def test_sorted_tables(page):
    """A click on a title sorts by the values; unknown comes last in both directions; the order survives a redraw."""
    page.show(rich)

    def click(column):
        page.tab.run(f"document.getElementById('table-chart-rows-by-{column}'.replace('chart', 'codecs')).click()")
        return [row[0] for row in page.rows("#table-codecs")]

    lz4, zlib, lzma = "lz4 (unknown)", "zlib (lz4.frame)", "lzma (x)"
    assert [row[0] for row in page.rows("#table-codecs")] == [lz4, zlib, lzma]
    assert click(1) == [zlib, lz4, lzma] and click(1) == [lzma, lz4, zlib]  # 1,200 34 5: not sorted as texts
    assert click(3) == [zlib, lzma, lz4] and click(3) == [lzma, zlib, lz4]  # 9 MB, 8 B, unknown
    assert click(0) == [lz4, lzma, zlib] and click(0) == [zlib, lzma, lz4]
    aria = "[...document.querySelectorAll('#table-codecs th[aria-sort]')].map((e) => [e.textContent, e.getAttribute('aria-sort')])"
    assert page.tab.run(aria) == [["codec (library)", "descending"]]
    page.show(rich)
    assert [row[0] for row in page.rows("#table-codecs")] == [zlib, lzma, lz4] and page.tab.run(aria)
    page.tab.run("orders.clear()")
    page.show(rich)


def test_stream_zoom_and_search(page):
    """Buttons, keys, the wheel and dragging change the axis' range; a search marks its matches and scrolls to them."""
    d = page.show(rich)
    bars = d["stream"]["bars"]

    def part():
        chart = page.chart("stream")
        left = min(210, chart.width * 0.22)
        return tuple(pytest.approx(chart.value(chart.x, px), abs=0.002) for px in (left, chart.width - 8))

    def event(kind, made):
        page.tab.run(f"(() => {{ const svg = document.getElementById('chart-stream'), r = svg.getBoundingClientRect(); svg.dispatchEvent(new {kind}({made})); }})()")

    def click(name):
        page.tab.run(f"document.getElementById('chart-stream-{name}').click()")

    def key(name, shift="false"):
        event("KeyboardEvent", f"'keydown', {{ key: '{name}', shiftKey: {shift}, bubbles: true, cancelable: true }}")

    try:
        whole = part()
        assert (0, 3.95) == whole
        click("in")
        assert (3.95 / 4, 3.95 * 3 / 4) == part()
        status = "#panel-stream .tools span[role=status]"
        assert page.texts(status) == [f"{seconds(3.95 / 4)} to {seconds(3.95 * 0.75)}"]
        page.show(rich)  # a redraw keeps it
        assert (3.95 / 4, 3.95 * 3 / 4) == part()
        for path in page.chart("stream").of(**{"class": "class"}):
            assert all(210 - 60 < x and x + w <= page.chart("stream").width - 8 + 0.1 for x, _, w, _ in pieces(path))
        key("ArrowRight", "true")
        assert (3.95 * 3 / 8, 3.95 * 7 / 8) == part()
        key("ArrowLeft", "true"), key("ArrowLeft", "true"), key("ArrowLeft", "true")
        assert (0, 3.95 / 2) == part()  # not before the start
        key("+")
        key("-"), key("-"), key("-")
        assert (0, 3.95) == part() and page.texts(status) == [""]
        chart = page.chart("stream")
        left, right = min(210, chart.width * 0.22), chart.width - 8
        event("WheelEvent", f"'wheel', {{ deltaY: -100, ctrlKey: true, clientX: r.left + {left}, bubbles: true, cancelable: true }}")
        begin, end = (a.expected for a in part())
        assert begin == pytest.approx(0, abs=0.002) and end == pytest.approx(3.95 * 2.718281828 ** -0.5, abs=0.01)
        event("WheelEvent", f"'wheel', {{ deltaY: -100, clientX: r.left + {left}, bubbles: true, cancelable: true }}")  # without Ctrl the page scrolls
        assert (begin, end) == part()
        for turned, at in ((-300, end / 2.718281828), (1000, end)):  # one turn zooms by at most e
            event("WheelEvent", f"'wheel', {{ deltaY: {turned}, ctrlKey: true, clientX: r.left + {left}, bubbles: true, cancelable: true }}")
            assert (begin, at) == part()
        event("PointerEvent", f"'pointerdown', {{ button: 0, buttons: 1, clientX: r.left + {right}, bubbles: true }}")
        event("PointerEvent", f"'pointermove', {{ buttons: 1, clientX: r.left + {left}, bubbles: true }}")
        event("PointerEvent", "'pointerup', { bubbles: true }")
        assert (3.95 - end, 3.95) == part()  # not beyond the end
        click("all")
        assert (0, 3.95) == part()
        click("in")
        sought = bars[0][0].upper()
        page.tab.run(f"(() => {{ const e = document.getElementById('chart-stream-search'); e.value = '{sought}'; e.dispatchEvent(new Event('input')); }})()")
        found = [bar for bar in bars if bars[0][0] in bar[0]]
        assert page.texts(status) == [f"{len(found)} of {len(bars)} tasks"] and page.tab.run("document.querySelectorAll('#chart-stream .class.faint').length") == 8
        cursor = "document.getElementById('chart-stream').getAttribute('aria-valuenow')"
        page.tab.run("document.getElementById('chart-stream-search').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))")
        assert bars[int(page.tab.run(cursor))] == found[0]
        middle = found[0][2] / 1e6  # it was out of view: half of the range is on either side, as far as the run reaches
        assert not (3.95 / 4 <= middle <= 3.95 * 3 / 4) and (max(0, middle - 3.95 / 4), max(0, middle - 3.95 / 4) + 3.95 / 2) == part()
        hits, = page.chart("stream").of(**{"class": "hits"})
        assert len(pieces(hits)) >= 1  # now it is in view
        click("all")
        assert len(pieces(page.chart("stream").of(**{"class": "hits"})[0])) == len(found)
    finally:
        page.tab.run("views.clear(); cursors.clear()")


def test_tip(page):
    """At the pointer, inside the window; hidden when the pointer leaves."""
    page.show(rich)
    shown = "(() => { const e = document.querySelector('#panel-gbps .tip'), r = e.getBoundingClientRect(); return [e.hidden, r.left, r.top, r.right, r.bottom, innerWidth, innerHeight]; })()"
    assert page.tab.run(shown)[0]
    page.tab.run("document.getElementById('chart-gbps').scrollIntoView()")
    page.point("gbps", 200, 50)
    x, y = page.tab.run("(() => { const r = document.getElementById('chart-gbps').getBoundingClientRect(); return [r.left + 200, r.top + 50]; })()")
    hidden, left, top, right, bottom, width, height = page.tab.run(shown)
    assert not hidden and x < left < x + 40 and abs(top - y) < 40 and right <= width and bottom <= height
    page.point("gbps", page.chart("gbps").width - 10, 50)
    assert page.tab.run(shown)[3] <= width
    page.show(rich)
    page.tab.run("document.getElementById('chart-gbps').dispatchEvent(new PointerEvent('pointerleave'))")
    assert page.tab.run(shown)[0]
    page.cursor("gbps", "End")
    assert not page.tab.run(shown)[0]
    page.cursor("gbps", "Escape")
    assert page.tab.run(shown)[0]


def test_a_run_that_ended_well(page):
    page.show(lambda d: d["run"].update(state="finished", state_text="finished"))
    assert page.texts("#outcome.finished") == ["finished"]


def test_frames_that_all_stacks_begin_with(page):
    """One cell for them, as wide as what is below it; stacks that branch off earlier stay next to it, and it never includes a user's frame."""
    frames = [{"text": f"{name} ({name}.py:1)", "user": name in ("mine", "other")} for name in ("a", "b", "c", "mine", "other", "d")]

    def sampled(d):
        zeros = [0.0] * (len(d["classes"]) - 1)
        rows = [([0, 1, 2, 3], 60), ([0, 1, 2, 4, 5], 38), ([0, 5], 2)]
        kinds = [{"name": "from files", "wait": 1}, {"name": "received", "wait": 2}]
        d["stacks"] = {"samples": 100, "seconds": 1.0, "wall_seconds": 1.0, "total": 3, "frames": frames, "workers": [], "kinds": kinds, "memories": ["allocated", "kept"],
                       "memory_least_bytes": 1048576, "rows": [
            {"prefix": "P", "dataset": None, "pool": False, "without": None, "samples": n, "seconds": [n / 100, *zeros], "frames": at,
             "bytes": [[1000 * (100 - n), n, 2500.0], [0, 0, 0]], "memory": [None, -1 if n == 60 else 10**6 * n]} for at, n in rows]}

    page.show(sampled)
    drawn = page.tab.run("""[...document.querySelectorAll("#chart-flame g.cell")].map((g) =>
        [g.dataset.name, Math.round(100 * g.querySelector("rect").getAttribute("width") / document.getElementById("chart-flame").getAttribute("width")), g.querySelector("title").textContent])""")
    assert [(name, width) for name, width, _ in drawn] == [
        ("all tasks", 100), ("P", 100), ("a \u2026 c (3 frames)", 98), ("mine (mine.py:1)", 60), ("other (other.py:1)", 38), ("d (d.py:1)", 38), ("d (d.py:1)", 2)]
    assert drawn[2][2].splitlines()[2:] == ["a (a.py:1)", "b (b.py:1)", "c (c.py:1)"]
    page.tab.run("""(() => { const e = document.getElementById("flame-search"); e.value = "b.py"; e.dispatchEvent(new Event("input")); })()""")
    assert page.texts("#flame-found") == ["98.0 % of the time"] and page.texts("#chart-flame g.cell:not(.faint) title")[0].startswith("a \u2026 c")
    page.tab.run("""(() => { const e = document.getElementById("flame-search"); e.value = ""; e.dispatchEvent(new Event("input")); })()""")
    assert page.texts("#flame-time option") == ["all time", f"only {page.texts('#flame-time option')[1][5:]}", "bytes from files", "memory kept"]
    page.tab.run("""(() => { const e = document.getElementById("flame-time"); e.value = "m1"; e.dispatchEvent(new Event("change")); })()""")
    drawn = [text.splitlines()[0] for text in page.texts("#chart-flame g.cell title")]
    assert drawn[0] == "all tasks: 40.00 MB, 100.0 %" and "other (other.py:1): 38.00 MB, 95.0 %" in drawn and not any(text.startswith("mine") for text in drawn)
    assert any("Memory: allocations of 1.049 MB or more by tasks, exact." in text for text in page.texts("p.shown"))
    page.tab.run("""(() => { const e = document.getElementById("flame-time"); e.value = "b0"; e.dispatchEvent(new Event("change")); })()""")
    drawn = page.texts("#chart-flame g.cell title")
    page.tab.run("""(() => { const e = document.getElementById("flame-time"); e.value = "all"; e.dispatchEvent(new Event("change")); })()""")
    assert [text.splitlines()[0] for text in drawn if text.startswith("mine")] == ["mine (mine.py:1): 40.00 kB +- 111.2 B, 20.0 % (60 samples)"]


CLIENT = {"imports": 5.0, "own code": 0.0, "building the graph": 68.0, "sending the graph": None, "steady state": 15.0, "rest": 2.0}


def test_wall_time_of_the_client(page):
    """A bar of all parts; an unknown one is listed, and without a client's record there is no panel."""
    def given(d):
        d["client"] = {"wall_seconds": 90.0, "parts": [{"name": n, "seconds": s} for n, s in CLIENT.items()], "unseen": "x.y is missing"}

    page.show()
    assert not page.texts("#panel-client h2")
    page.show(given)
    chart, parts = page.chart("client"), {n: s for n, s in CLIENT.items() if s != 0}
    bars(chart, ["client"], [parts], seconds)
    assert labels(chart, "value") == ["90.00 s"]
    assert page.legend("client") == [f"{n}{seconds(s)}{'' if s is None else f' ({percent(s, 90)})'}" for n, s in parts.items()]
    assert page.rows("#table-client") == [*([n, seconds(s), percent(s, 90)] for n, s in parts.items()), ["all", "90.00 s", "100.0 %"]]
    assert "Unknown parts are in the rest: x.y is missing" in page.texts("#panel-client .shown")
