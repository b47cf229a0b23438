# SPDX-License-Identifier: BSD-3-Clause
"""A run as an OpenTelemetry trace, in the JSON of OTLP: the run is the root span, each ended attempt at a task is a child.

Ids are digests of the run's id and of worker and attempt, so a run that is sent again is the same trace. Unknown numbers are
left out. Names follow OpenTelemetry's conventions if there is one; the others are `crema.` and the report's name.
"""

import email.utils
import gzip
import hashlib
import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal

from crema.program import CremaError

SPANS, BYTES = 1000, 4_000_000  # in a request, before compression
TRIES, LONGEST_PAUSE_S, TIMEOUT_S = 5, 30, 60
BUSY = {429, 502, 503, 504}  # the receiver requests a retry
HUNG_UP = (ConnectionResetError, BrokenPipeError)  # a proxy that restarts; duplicate spans have the same ids
SPAN_COLUMNS = {"start", "stop", "key", "status", "error_type", "error_text"}
RESOURCE_COLUMNS = {"worker_id": "service.instance.id", "host": "host.name", "pid": "process.pid"}
NAMES = {"thread": "thread.id", "function": "code.function.name", "run": "crema.run"}
REAL = ("_seconds", "_gb")
OK, ERROR = 1, 2


def _digest(*parts, size):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:2 * size]


def _value(name, value):
    """The type depends on the name: JSON has 0 for 0.0."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and name.endswith(REAL):
        value = float(value)
    if isinstance(value, int):
        return {"intValue": str(value)} if -2**63 <= value < 2**63 else {"doubleValue": float(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(name, each) for each in value if each is not None]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def _attributes(values):
    return [{"key": name, "value": _value(name, value)} for name, value in values.items() if value is not None]


def _ns(seconds):
    """Whole nanoseconds of exactly that double: a product of doubles would be up to 128 ns off."""
    return int(Decimal(seconds) * 10**9)


def _task(run, trace, root, task):
    begin = _ns(task["start"])
    # The duration is exact to the nanosecond; the start is a double of seconds since 1970, exact to 0.24 us.
    end = begin + round(task["wall_seconds"] * 1e9) if task["wall_seconds"] is not None else _ns(task["stop"])
    span = {"traceId": trace, "spanId": _digest(run, task["worker_id"], task["attempt"], size=8), "parentSpanId": root,
            "name": task["prefix"] or "task", "kind": 1, "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end),
            "attributes": _attributes({"crema.key": task["key"], "crema.status": task["status"],
                                       **{NAMES.get(name, f"crema.{name}"): value for name, value in task.items()
                                          if name not in SPAN_COLUMNS and name not in RESOURCE_COLUMNS}})}
    error = {"exception.type": task["error_type"], "exception.message": task["error_text"]}
    if task["status"] == "ok":
        span["status"] = {"code": OK}
    else:
        span["status"] = {"code": ERROR, "message": ": ".join(filter(None, [task["status"], *error.values()]))}
    if task["error_type"]:
        span["events"] = [{"name": "exception", "timeUnixNano": str(end), "attributes": _attributes(error)}]
    return span


def _root(data, trace, root):
    info, state = data["run_info"], data.get("state") or {}
    return {"traceId": trace, "spanId": root, "name": info["name"] or f"run {data['run']}", "kind": 1,
            "startTimeUnixNano": str(_ns(info["start"])), "endTimeUnixNano": str(_ns(info["stop"])),
            "attributes": _attributes({"crema.run": data["run"], "crema.state": state.get("state"),
                                       **{f"crema.run.{name}": float(value) if isinstance(value, int) and not isinstance(value, bool) else value
                                          for name, value in data["metrics"].items() if isinstance(value, (bool, int, float, str))}}),
            "status": {"code": ERROR, "message": state["text"]} if state.get("state") in ("failed", "interrupted", "stalled") else {"code": OK}}


def _resource(**attributes):
    return json.dumps({"attributes": _attributes({"service.name": "dask", **attributes})})


class _Request:
    """A request being built: spans as texts, those of a resource together."""

    def __init__(self):
        self.resources, self.spans, self.bytes = [], 0, 0

    def has_room(self, span):
        """Whether one more fits; an empty request takes any."""
        return not self.spans or (self.spans < SPANS and self.bytes + len(span) <= BYTES)

    def add(self, resource, span):
        if not self.resources or self.resources[-1][0] != resource:
            self.resources.append((resource, []))
        self.resources[-1][1].append(span)
        self.spans += 1
        self.bytes += len(span)

    def text(self):
        parts = (f'{{"resource": {resource}, "scopeSpans": [{{"scope": {{"name": "crema"}}, "spans": [{", ".join(spans)}]}}]}}' for resource, spans in self.resources)
        return f'{{"resourceSpans": [{", ".join(parts)}]}}'


def requests_of(data):
    """(requests, attempts left out): a generator of requests with at most SPANS spans and about BYTES, the root in the first."""
    run = data["run"]
    trace, root = _digest("run", run, size=16), _digest("root", run, size=8)
    if data["run_info"]["start"] is None or data["run_info"]["stop"] is None:
        raise CremaError(f"run {run} has no task whose time is known: there is nothing to send")
    ended = [t for t in data["tasks"] if t["start"] is not None and (t["stop"] is not None or t["wall_seconds"] is not None)]
    ended.sort(key=lambda task: (task["worker_id"], task["attempt"]))
    chunks = {(chunk["worker_id"], chunk["attempt"]): chunk for chunk in data["chunks"]}

    def bodies():
        request, worker, resource = _Request(), None, None
        request.add(_resource(), json.dumps(_root(data, trace, root)))
        for task in ended:
            span = json.dumps(_task(run, trace, root, {**task, **chunks.get((task["worker_id"], task["attempt"]), {})}))
            if task["worker_id"] != worker:
                worker = task["worker_id"]
                resource = _resource(**{name: task[column] for column, name in RESOURCE_COLUMNS.items()})
            if not request.has_room(span):
                yield request
                request = _Request()
            request.add(resource, span)
        yield request

    return bodies(), len(data["tasks"]) - len(ended)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected request would lose its body, look accepted, and show the headers to another host."""

    def redirect_request(self, *_):
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _line(text):
    """A receiver's text as a part of a line: it may contain anything."""
    return "".join(c if c.isprintable() else " " for c in text[:200]).strip()


def _said(error):
    try:
        return _line(error.read(800).decode(errors="replace")) or _line(error.reason)
    except (OSError, http.client.HTTPException):
        return _line(error.reason)  # its text was truncated


def _refused(url, error):
    if 300 <= error.code < 400:
        return CremaError(f"cannot send the run to '{url}': HTTP {error.code}: it is now at '{_line(error.headers.get('Location') or 'an unknown place')}'; "
                          "give that URL, if you trust that host with your headers")
    return CremaError(f"cannot send the run to '{url}': HTTP {error.code}: {_said(error)}; "
                      "is it the traces endpoint of an OTLP/HTTP receiver that takes JSON?")


def _pause(named, attempt):
    """Seconds until the next retry: the receiver names seconds or a date."""
    if named.isdecimal() and named.isascii():
        return min(int(named), LONGEST_PAUSE_S)
    try:
        seconds = email.utils.parsedate_to_datetime(named).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        seconds = 2.0 ** attempt
    return min(max(seconds, 0), LONGEST_PAUSE_S)


def _post(url, text, headers):
    """The response's bytes. Retries if the receiver is busy (after the time it names) or hangs up."""
    packed = gzip.compress(text.encode(), 5)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **headers}
    for attempt in range(TRIES):
        try:
            with _opener.open(urllib.request.Request(url, packed, headers, method="POST"), timeout=TIMEOUT_S) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in BUSY or attempt + 1 == TRIES:
                    raise _refused(url, error) from None
                pause = _pause(error.headers.get("Retry-After") or "", attempt)
        except (OSError, ValueError, http.client.HTTPException) as error:
            error = getattr(error, "reason", error)
            if not isinstance(error, HUNG_UP) or attempt + 1 == TRIES:
                raise CremaError(f"cannot send the run to '{url}': {_line(str(error))}; check the address and that the receiver runs") from None
            pause = 2.0 ** attempt
        time.sleep(pause)


def _rejected(answer):
    """(spans, why) that the receiver rejected."""
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess") or {}
        return int(partial.get("rejectedSpans") or 0), _line(str(partial.get("errorMessage") or "no reason given"))
    except (ValueError, AttributeError):
        return 0, ""  # success, but the text is not JSON


def _to_url(url, requests, headers):
    try:
        parts = urllib.parse.urlsplit(url)
        url = parts._replace(path="/v1/traces" if parts.path in ("", "/") else parts.path).geturl()
    except ValueError as error:
        raise CremaError(f"cannot send the run to '{url}': {error}; give a URL such as http://host:4318") from None
    sent = rejected = 0
    why = ""
    for request in requests:
        try:
            answer = _post(url, request.text(), headers)
        except CremaError as error:
            raise CremaError(f"{error}; {sent} spans were taken before" if sent else str(error)) from None
        count, reason = _rejected(answer)
        sent += request.spans
        rejected, why = rejected + count, reason if count else why
    if rejected:
        raise CremaError(f"the receiver at '{url}' rejected {rejected} of {sent} spans: {why}")
    return sent


def _to_file(path, requests):
    """Writes one request per line, as OpenTelemetry's file exporter and receiver do; the file is complete or absent."""
    scratch, sent = f"{path}.{socket.gethostname()}.{os.getpid()}", 0
    try:
        with open(scratch, "w") as out:
            for request in requests:
                out.write(request.text() + "\n")
                sent += request.spans
        os.replace(scratch, path)
    except OSError as error:
        raise CremaError(f"cannot write '{path}': {error.strerror.lower()}") from None
    finally:
        if os.path.exists(scratch):
            os.unlink(scratch)
    return sent


def send(data, where, headers=None):
    """{"spans": sent, "left_out": attempts without an end or a known time}; `where` is a URL or a file."""
    requests, left_out = requests_of(data)
    where = os.fspath(where)
    sent = _to_url(where, requests, headers or {}) if where.startswith(("http://", "https://")) else _to_file(where, requests)
    return {"spans": sent, "left_out": left_out}
