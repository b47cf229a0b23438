"""Run.to_otlp() of a real run, parsed with OpenTelemetry's own definition of its messages: each field exists there; and sent to a
real OpenTelemetry Collector, which sends on what it received."""

import json
import subprocess
import sys

import cluster
import jobs
import otel_collector
import pytest
import venvs
from otlp_receiver import Receiver

sys.path.insert(0, str(cluster.ROOT / "python"))

# Ids are hexadecimal in OTLP's JSON, but base64 in protobuf's. An unknown field is an error.
READ = """
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

for line in open(sys.argv[1]):
    body = json.loads(line)
    for spans in (scope["spans"] for each in body["resourceSpans"] for scope in each["scopeSpans"]):
        for span in spans:
            for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    for each in json_format.ParseDict(body, ExportTraceServiceRequest()).resource_spans:
        resource = {a.key: a.value.WhichOneof("value") for a in each.resource.attributes}
        for span in (span for scope in each.scope_spans for span in scope.spans):
            print(json.dumps({"name": span.name, "trace": span.trace_id.hex(), "parent": span.parent_span_id.hex(), "kind": Span.SpanKind.Name(span.kind),
                              "ns": span.end_time_unix_nano - span.start_time_unix_nano, "status": Status.StatusCode.Name(span.status.code),
                              "message": span.status.message, "events": [e.name for e in span.events], "resource": resource,
                              "counts": {a.key: a.value.int_value for a in span.attributes if a.value.WhichOneof("value") == "int_value"}}))
"""


def test_messages_of_opentelemetry(shared, tmp_path):
    import crema

    def work(i):  # defined here, as workers do not have this module
        if i == 3:
            raise ValueError("the fourth is bad")
        return i

    futures = shared.client.map(work, range(6), pure=False, key=[jobs.unique("otlp") for _ in range(6)])
    shared.client.gather(futures, errors="skip")
    report = shared.settled(lambda r: len(jobs.tasks_of(r, "otlp")) == 6)
    assert crema.run.Run(report).to_otlp(tmp_path / "run.otlp") == {"spans": len(report["tasks"]) + 1, "left_out": 0}
    python = venvs.beside("otlp", cluster.ROOT / "tests" / "otlp.txt") / "python"
    done = subprocess.run([python, "-c", READ, tmp_path / "run.otlp"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    root, *spans = [json.loads(line) for line in done.stdout.splitlines()]
    assert root["parent"] == "" and {s["trace"] for s in spans} == {root["trace"]} and len({s["parent"] for s in spans}) == 1
    assert sorted(s["name"] for s in spans) == sorted(t["prefix"] for t in report["tasks"])
    tasks, rows = [s for s in spans if s["name"] == "otlp"], jobs.tasks_of(report, "otlp")
    for task in tasks:
        assert task["kind"] == "SPAN_KIND_INTERNAL"
        assert task["resource"] == {"service.name": "string_value", "service.instance.id": "string_value", "host.name": "string_value", "process.pid": "int_value"}
    assert sorted(t["ns"] for t in tasks) == sorted(round(t["wall_seconds"] * 1e9) for t in rows)
    assert sorted((t["status"], t["message"], len(t["events"])) for t in tasks) == [
        *[("STATUS_CODE_ERROR", "erred: ValueError: the fourth is bad", 1)], *[("STATUS_CODE_OK", "", 0)] * 5]
    for name in ("read_calls", "comm_read_bytes", "voluntary_switches"):
        assert sum(t["counts"][f"crema.{name}"] for t in tasks) == sum(t[name] for t in rows)
    assert root["ns"] == pytest.approx((report["run_info"]["stop"] - report["run_info"]["start"]) * 1e9, abs=600)


LONG = {"intValue", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano"}


def said(bodies):
    """Each span with its resource, in one form: numbers of 64 bits are text or numbers, and what is empty may be left out."""
    def plain(value):
        if isinstance(value, list):
            return sorted(map(plain, value), key=str)
        if not isinstance(value, dict):
            return value
        found = {k: str(v) if k in LONG else plain(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if v not in ("", "0", 0, [], {}) or k == "intValue"}

    return sorted(((plain(each["resource"]), plain(scope["scope"]), plain(span)) for body in bodies for each in body["resourceSpans"]
                   for scope in each["scopeSpans"] for span in scope["spans"]), key=str)


@pytest.mark.matrix
def test_a_real_collector(shared, tmp_path):
    import crema

    jobs.submit(shared.procs, shared.client, "otlp-real", abs, -1, count=3)
    report = shared.settled(lambda r: jobs.tasks_of(r, "otlp-real"))
    run = crema.run.Run(report)
    written = run.to_otlp(tmp_path / "run.otlp")
    with Receiver() as receiver, otel_collector.running(tmp_path, receiver.url) as url:
        sent = run.to_otlp(url)
    assert sent == written and sent["spans"] == len(report["tasks"]) + 1 and sent["left_out"] == 0
    assert said(receiver.taken) == said([json.loads(line) for line in (tmp_path / "run.otlp").read_text().splitlines()])
