"""Run.to_otlp(): a receiver of OTLP/HTTP gets what the run's JSON contains, once, whatever it answers."""

import email.utils
import json
import sys
import time

from fractions import Fraction

import pytest
import test_reports  # sets the path to frames.py and tables.py
import test_sheets

sys.path.insert(0, str(test_reports.ROOT / "python"))
import crema
from crema import otlp
from otlp_receiver import Receiver

made = test_sheets.made
RESOURCE = {"service.instance.id": "worker_id", "host.name": "host", "process.pid": "pid"}
NAMED = {"thread": "thread.id", "function": "code.function.name"}


def plain(value):
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [plain(each) for each in inner["values"]]
    return int(inner) if kind == "intValue" else inner


def attributes(node):
    found = {each["key"]: plain(each["value"]) for each in node.get("attributes", ())}
    assert len(found) == len(node.get("attributes", ()))
    return found


def spans_of(requests):
    """[(resource's attributes, span)]"""
    return [(attributes(each["resource"]), span) for request in requests for each in request["resourceSpans"]
            for scope in each["scopeSpans"] for span in scope["spans"]]


@pytest.fixture(scope="module")
def run(made):
    """With one attempt that is still running."""
    first, second, *others = made.json["tasks"]
    others.append({**second, "cpu_seconds": 0})  # the JSON has 0.0
    return crema.run.Run({**made.json, "tasks": [*others, {**first, "attempt": 99, "status": "running", "stop": None, "wall_seconds": None}, first]})


@pytest.fixture(scope="module")
def sent(run):
    with Receiver() as receiver, pytest.MonkeyPatch.context() as patch:
        patch.setattr(otlp, "SPANS", 3)
        told = run.to_otlp(receiver.url, headers={"Authorization": "Bearer x"})
    return told, receiver


def test_requests(sent, run):
    told, receiver = sent
    assert len(receiver.taken) > 2 and {path for path, _ in receiver.asked} == {"/v1/traces"}
    for _, headers in receiver.asked:
        assert (headers["Content-Type"], headers["Content-Encoding"], headers["Authorization"]) == ("application/json", "gzip", "Bearer x")
    sizes = [len(spans_of([request])) for request in receiver.taken]
    assert max(sizes) == 3 and sizes[:-1] == [3] * (len(sizes) - 1)
    spans = spans_of(receiver.taken)
    assert told == {"spans": len(spans), "left_out": len(run.json["tasks"]) - len(spans) + 1} and told["left_out"] == 1
    ids = [span["spanId"] for _, span in spans]
    assert len(set(ids)) == len(ids) and {len(each) for each in ids} == {16}
    assert len({span["traceId"] for _, span in spans}) == 1 and len(spans[0][1]["traceId"]) == 32


def test_each_attempt(sent, run):
    spans = {(resource["service.instance.id"], attributes(span)["crema.attempt"]): (resource, span) for resource, span in spans_of(sent[1].taken)[1:]}
    ended = [t for t in run.json["tasks"] if t["start"] is not None and (t["stop"] is not None or t["wall_seconds"] is not None)]
    assert spans.keys() == {(t["worker_id"], t["attempt"]) for t in ended} and {t["status"] for t in ended} > {"ok"}
    root = spans_of(sent[1].taken)[0][1]["spanId"]
    chunks = {(c["worker_id"], c["attempt"]): c for c in run.json["chunks"]}
    assert len(chunks) > 3 and {"dataset", "filename", "entrystart"} <= set().union(*chunks.values())
    for task in ended:
        resource, span = spans[task["worker_id"], task["attempt"]]
        assert resource == {"service.name": "dask", **{name: task[column] for name, column in RESOURCE.items() if task[column] is not None}}
        assert span["parentSpanId"] == root and span["name"] == task["prefix"]
        begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert 0 <= Fraction(task["start"]) * 10**9 - begin < 1
        if task["wall_seconds"] is not None:
            assert end - begin == round(task["wall_seconds"] * 1e9)
        found = attributes(span)
        chunk = chunks.get((task["worker_id"], task["attempt"]), {})
        assert (found.pop("crema.key"), found.pop("crema.status")) == (task["key"], task["status"])
        if "crema.sections" in found:  # each is JSON
            found["crema.sections"] = [json.loads(each) for each in found["crema.sections"]]
        assert found == {NAMED.get(name, f"crema.{name}"): value for name, value in {**task, **chunk}.items()
                         if value is not None and name not in otlp.SPAN_COLUMNS and name not in RESOURCE.values()}
        assert span["status"]["code"] == (1 if task["status"] == "ok" else 2)
        events = [attributes(event) for event in span.get("events", ())]
        assert events == ([{k: v for k, v in {"exception.type": task["error_type"], "exception.message": task["error_text"]}.items() if v is not None}]
                          if task["error_type"] else [])


def test_one_type_for_each_name(sent):
    kinds = {}
    for _, span in spans_of(sent[1].taken):
        for each in span["attributes"]:
            kinds.setdefault(each["key"], set()).add(*each["value"])
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


def test_the_run(sent, run):
    resource, root = spans_of(sent[1].taken)[0]
    info = run.json["run_info"]
    assert resource == {"service.name": "dask"} and "parentSpanId" not in root
    assert (int(root["startTimeUnixNano"]), int(root["endTimeUnixNano"])) == (pytest.approx(info["start"] * 1e9, abs=300), pytest.approx(info["stop"] * 1e9, abs=300))
    found = attributes(root)
    assert found["crema.run"] == run.id
    for name, value in run.metrics.items():
        if isinstance(value, (bool, int, float, str)):
            assert found[f"crema.run.{name}"] == value
        else:
            assert f"crema.run.{name}" not in found


def test_sent_again_it_is_the_same(run, tmp_path):
    """To a file and to a URL, with equal lines."""
    assert run.to_otlp(tmp_path / "a") == run.to_otlp(tmp_path / "b")
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    with Receiver() as receiver:
        run.to_otlp(receiver.url + "/own/path")
    assert receiver.asked[0][0] == "/own/path"
    assert receiver.taken == [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_busy_receiver_is_asked_again(run, monkeypatch):
    pauses = []
    monkeypatch.setattr(otlp.time, "sleep", pauses.append)
    with Receiver((429, {"Retry-After": 7}, b""), (503, {"Retry-After": 86_400}, b""), (503, {"Retry-After": "soon"}, b""), (200, {}, b"{}")) as receiver:
        run.to_otlp(receiver.url)
    assert pauses == [7, 30, 4] and len(receiver.asked) == 4 and len(receiver.taken) == 1


@pytest.mark.parametrize("answer, said", [
    ((503, {}, b"full"), "HTTP 503: full"), ((400, {}, b"proto: bad"), "HTTP 400: proto: bad"), ((404, {}, b""), "HTTP 404: Not Found"),
    ((0, {}, b""), "cannot send the run to 'http"), ((200, {}, b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}'), "rejected 3 of"),
    ((200, {}, b'{"partialSuccess": {"rejectedSpans": 2}}'), "no reason given")], ids=["busy", "bad", "missing", "closed", "partial", "no reason"])
def test_what_the_receiver_does_not_take(run, monkeypatch, answer, said):
    monkeypatch.setattr(otlp.time, "sleep", lambda seconds: None)
    with Receiver(answer) as receiver, pytest.raises(crema.CremaError) as error:
        run.to_otlp(receiver.url)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert len(receiver.asked) == (5 if answer[0] in (503, 0) else 1)


def test_a_receiver_that_hangs_up_is_asked_again(run, monkeypatch):
    pauses = []
    monkeypatch.setattr(otlp.time, "sleep", pauses.append)
    with Receiver((0, {}, b""), (0, {}, b""), (200, {}, b"{}")) as receiver:
        assert run.to_otlp(receiver.url)["spans"] == len(spans_of(receiver.taken))
    assert pauses == [1, 2] and len(receiver.asked) == 3 and len(receiver.taken) == 1


def test_a_request_has_a_bounded_size(run, monkeypatch):
    """As many spans as fit, whatever their size; one that does not fit is sent alone."""
    ended = [task for task in run.json["tasks"] if task["stop"]]
    changed = {"tasks": [{**task, "function": "x" * 100_000} if task is ended[2] else task for task in ended], "chunks": []}
    with Receiver() as all_in_one:
        crema.run.Run({**run.json, **changed}).to_otlp(all_in_one.url)
    monkeypatch.setattr(otlp, "BYTES", 20_000)
    with Receiver() as receiver:
        told = crema.run.Run({**run.json, **changed}).to_otlp(receiver.url)
    sizes = sorted((sum(len(json.dumps(span)) for _, span in spans_of([request])), len(spans_of([request]))) for request in receiver.taken)
    assert all(size <= 20_000 for size, _ in sizes[:-1]) and sizes[-1][0] > 100_000 and sizes[-1][1] == 1 and max(n for _, n in sizes) > 1
    assert spans_of(receiver.taken) == spans_of(all_in_one.taken) and len(all_in_one.taken) == 1 and told["spans"] == len(spans_of(receiver.taken))


def test_what_had_arrived_is_told(run, monkeypatch):
    monkeypatch.setattr(otlp, "SPANS", 2)
    with Receiver((200, {}, b"{}"), (200, {}, b"{}"), (400, {}, b"full")) as receiver, pytest.raises(crema.CremaError, match="; 4 spans were taken before$"):
        run.to_otlp(receiver.url)
    assert len(receiver.taken) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(run, status):
    """The request would lose its body and still seem accepted, and another host would get the token."""
    with Receiver() as other, Receiver((status, {"Location": other.url + "/login"}, b"")) as receiver, pytest.raises(crema.CremaError) as error:
        run.to_otlp(receiver.url, headers={"Authorization": "Bearer secret"})
    assert f"HTTP {status}" in str(error.value) and f"'{other.url}/login'" in str(error.value) and other.asked == []


@pytest.mark.parametrize("headers, text", [({"Content-Length": 500}, b"short"), ({"Transfer-Encoding": "chunked"}, b"50\r\nshort"), ({}, b"\x1b[31mred\r\nand a second\x00line \xff")], ids=["short", "broken off", "hostile"])
def test_an_error_is_one_printable_line(run, headers, text):
    with Receiver((400, headers, text)) as receiver, pytest.raises(crema.CremaError, match="HTTP 400") as error:
        run.to_otlp(receiver.url)
    assert str(error.value).isprintable()


def test_a_rejection_is_one_printable_line(run):
    with Receiver((200, {}, b'{"partialSuccess": {"rejectedSpans": 1, "errorMessage": "a\\n\\u001b[31mb"}}')) as receiver, pytest.raises(crema.CremaError) as error:
        run.to_otlp(receiver.url)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("tail, path", [("", "/v1/traces"), ("/", "/v1/traces"), ("?key=1", "/v1/traces?key=1"), ("/own?key=1", "/own?key=1")])
def test_paths(run, tail, path):
    with Receiver() as receiver:
        run.to_otlp(receiver.url + tail)
    assert [asked for asked, _ in receiver.asked] == [path]


def test_a_date_to_come_again(run, monkeypatch):
    pauses = []
    monkeypatch.setattr(otlp.time, "sleep", pauses.append)
    when = email.utils.formatdate(time.time() + 12, usegmt=True)
    with Receiver((503, {"Retry-After": when}, b""), (503, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, b""), (200, {}, b"{}")) as receiver:
        run.to_otlp(receiver.url)
    assert 8 < pauses[0] <= 12 and pauses[1] == 0


@pytest.mark.parametrize("answer", [b"", b"thank you", b"[]", b'{"partialSuccess": {}}', b'{"partialSuccess": null}'])
def test_success_in_any_words(run, answer):
    with Receiver((200, {}, answer)) as receiver:
        assert run.to_otlp(receiver.url)["spans"] == len(spans_of(receiver.taken))


def test_nowhere(run, tmp_path):
    for where in ("http://127.0.0.1:1", "http://[", "http://no such host/"):
        with pytest.raises(crema.CremaError, match="cannot send the run to"):
            run.to_otlp(where)
    with pytest.raises(crema.CremaError, match="cannot write '/nowhere/run.json': no such file or directory"):
        run.to_otlp("/nowhere/run.json")
    with pytest.raises(crema.CremaError, match="there is nothing to send"):
        crema.run.Run({**run.json, "run_info": {**run.json["run_info"], "start": None}}).to_otlp(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
