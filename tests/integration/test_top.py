"""crema top on a real terminal during a real run: its numbers, keys, sizes, ends, and hostile names."""

import concurrent.futures
import os
import re
import signal
import subprocess
import termios
import threading

import cluster
import jobs
import pytest
from distributed import Client
from terminal import Terminal

EVIL = "evil\x1b]0;title\x07\x1b[2J\u202e\u00e9"


@pytest.fixture(scope="module")
def site(tmp_path_factory, homes, data):
    """Two workers that read files until the tests have ended; the name of one contains the code that clears a screen."""
    with cluster.Cluster(tmp_path_factory.mktemp("top") / "cluster", homes) as procs:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker(nthreads=2)
        procs.start_worker(args=["--name", EVIL])
        stop = threading.Event()
        with Client(procs.address) as client, concurrent.futures.ThreadPoolExecutor(1) as other:
            client.wait_for_workers(2, timeout=120)

            def work():
                while not stop.is_set():
                    keys = [jobs.unique("read_" + EVIL) for _ in range(20)]
                    client.gather(client.map(jobs.read_whole, [data["zlib"]] * 20, key=keys))
                    stop.wait(0.2)  # leaves the cores to the tests beside it

            run = other.submit(work)
            yield procs
            stop.set()
            run.result(timeout=120)


def top(procs, *args):
    return [procs.build / "crema", "top", "--http", f"127.0.0.1:{procs.http_port}", *args]


def once(procs, *args, env=None):
    return subprocess.run([str(a) for a in top(procs, "--once", *args)], env={**procs.env, **(env or {})},
                          capture_output=True, timeout=60)


def number(text, pattern):
    found = re.search(pattern, text)
    return found and float(found.group(1).replace(",", ""))


def working(text):
    """Whether both workers are there and their reads are shown."""
    return "2 connected" in text and (number(text, r"read ([0-9.]+),") or 0) > 0 and text


def rows(text):
    """The table's rows below its titles."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("WORKER"))
    return [line for line in lines[start + 1:] if line]


def test_the_screen_shows_the_run(site):
    with Terminal(top(site)) as terminal:
        text = terminal.until(working, "run")
        assert re.search(r"^workers  2 connected, 3 threads; 0 silent, 0 lost", text, re.MULTILINE)
        assert re.search(r"^memory   [0-9.]+ MB of [0-9.]+ GB, fullest worker [0-9.]+ %", text, re.MULTILINE)
        assert re.search(r"^threads  [0-9]+ idle, cpu [0-9.]+(, (core|GIL|lock|network|storage|sleep) [0-9.]+)*$", text, re.MULTILINE)
        assert number(text, r"threads  ([0-9.]+) idle") == max(0, number(text, r"connected, ([0-9.]+) threads") - number(text, r"tasks +([0-9.]+) running"))
        assert len(rows(text)) == 2
        done = number(text, r"([0-9,]+) done")
        terminal.until(lambda now: number(now, r"([0-9,]+) done") > done, "more tasks")
        terminal.type("q")
        assert terminal.end() == 0


def test_the_terminal_is_as_before(site):
    with Terminal(top(site)) as terminal:
        terminal.until(working, "run")
        assert not termios.tcgetattr(terminal.fd)[3] & termios.ECHO
        terminal.type("q")
        assert terminal.end() == 0
        assert termios.tcgetattr(terminal.fd)[3] & termios.ECHO
        assert termios.tcgetattr(terminal.fd) == terminal.modes
        assert terminal.process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(site, number):
    with Terminal(top(site)) as terminal:
        terminal.until(working, "run")
        os.kill(terminal.process.pid, number)
        assert terminal.end() == 0
        assert termios.tcgetattr(terminal.fd)[3] & termios.ECHO


def test_keys_sort_turn_round_and_help(site):
    with Terminal(top(site), columns=130) as terminal:
        terminal.until(lambda now: working(now) and "READ Gb/s*" in now, "run, sorted by what is read")  # its lines are drawn from the top
        for _ in range(20):  # move to the first column, the name
            if "WORKER*" in terminal.text():
                break
            before = terminal.text()
            terminal.type("s")
            terminal.until(lambda now, before=before: titles(now) != titles(before), "another column")
        # The titles are drawn before the rows.
        terminal.until(lambda now: len(set(first(now))) == 2 and first(now) == sorted(first(now)), "the workers by name")
        names = first(terminal.text())
        terminal.type("r")
        terminal.until(lambda now: first(now) == names[::-1], "the other order")
        terminal.type("S")
        terminal.until(lambda now: "WORKER*" not in now, "the column before")
        terminal.type("h")
        terminal.until(lambda now: "sort by the next column" in now and "WORKER" not in now, "help")
        terminal.type("x")
        terminal.until(lambda now: "WORKER" in now, "the table again")


def first(text):
    return [row.split()[0] for row in rows(text)]


def titles(text):
    return next((line for line in text.split("\n") if line.startswith("WORKER")), None)


def fits_80(line):
    return len(line) <= 80 and "READ Gb/s" in line and line.endswith("WAITS FOR")


def test_any_size(site):
    with Terminal(top(site)) as terminal:
        terminal.until(working, "run")
        terminal.resize(24, 80)
        # until it redraws, the screen shows the old text, truncated
        terminal.until(lambda now: working(now) and fits_80(titles(now) or ""), "80 columns")
        terminal.resize(40, 160)
        terminal.until(lambda now: "UNPACKED" in now and "NETWORK" in now, "more columns")
        for lines, columns in ((5, 20), (1, 10), (2, 300)):
            terminal.resize(lines, columns)
            for _ in range(3):
                terminal.read()
            assert terminal.process.poll() is None
        terminal.resize(24, 80)
        terminal.until(working, "the run again")
        terminal.type("q")
        assert terminal.end() == 0


def test_names_do_not_steer_the_terminal(site):
    with Terminal(top(site), columns=130) as terminal:
        terminal.until(lambda now: working(now) and "evil?]0;title" in now, "the worker's name")
        assert b"\x1b]0;title" not in terminal.bytes
        assert terminal.screen.title == ""
    plain = once(site)
    assert plain.returncode == 0 and b"evil?]0;title?" in plain.stdout
    assert re.fullmatch(rb"[\n\x20-\x7e]*", plain.stdout)


def test_once_is_plain_text(site):
    done = once(site)
    text = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert "2 connected, 3 threads" in text and len(rows(text)) == 2
    assert max(map(len, text.split("\n"))) <= 120


def test_no_collector_is_one_line(site, tmp_path):
    nobody = f"127.0.0.1:{cluster.free_port()}"
    done = subprocess.run([site.build / "crema", "top", "--once", "--http", nobody], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and f"no collector at {nobody}" in done.stderr and "crema collect" in done.stderr
    piped = subprocess.run([str(a) for a in top(site)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert piped.returncode == 2 and "use --once" in piped.stderr


def test_a_terminal_that_is_not_known_is_one_line(site):
    with Terminal(top(site), env={"TERM": "no-such-terminal"}) as terminal:
        assert terminal.end() == 1
        assert terminal.process.stderr.read().decode() == (
            "crema: top: the terminal 'no-such-terminal' is not known; set TERM, or use --once\n")


def test_a_collector_that_stops_is_named_until_it_is_back(tmp_path, homes):
    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        procs.start_collector()
        with Terminal(top(procs)) as terminal:
            terminal.until(lambda now: "0 connected" in now, "the collector")
            procs.collector.stop()
            terminal.until(lambda now: "no collector at" in now and "0 connected" in now, "what is wrong")
            procs.start_collector()
            terminal.until(lambda now: "no collector at" not in now and "version" in now, "the collector again")


def test_the_token_is_proven_where_it_is_asked_for(tmp_path, homes):
    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        token = tmp_path / "token"
        port = cluster.free_port()
        collector = procs.start("collect", [
            procs.build / "crema", "collect", "--listen", procs.target, "--http", f"0.0.0.0:{port}",
            "--dir", procs.journal, "--token-file", token])
        try:
            cluster.wait_until(lambda: "status page" in collector.text(), "crema collect", processes=[collector])
            procs.http_port = port
            assert once(procs, "--token-file", token).returncode == 0
            other = tmp_path / "other"
            for text, said in ((None, "no token file"), ("another token of good length", "has a different token")):
                if text:
                    other.write_text(text)
                    other.chmod(0o600)
                done = once(procs, "--token-file", other)
                assert done.returncode == 1 and done.stderr.count(b"\n") == 1
                assert said in done.stderr.decode() and token.read_text().strip() not in done.stderr.decode()
        finally:
            collector.stop()


def test_https_by_the_clusters_certificates(tmp_path, homes):
    """No further request to a page with another authority's certificate: no token is sent to it."""
    import test_tls

    for name in ("ca", "other"):
        test_tls.authority(tmp_path, name)
    test_tls.certificate(tmp_path, "scheduler", "ca")

    def files(authority):
        return {"CREMA_TLS_CA_FILE": str(tmp_path / f"{authority}.pem"), "CREMA_TLS_CERT": str(tmp_path / "scheduler.pem"),
                "CREMA_TLS_KEY": str(tmp_path / "scheduler.key")}

    with cluster.Cluster(tmp_path / "cluster", homes) as procs:
        procs.collector = procs.start("collect", [
            procs.build / "crema", "collect", "--listen", procs.target, "--http", f"0.0.0.0:{procs.http_port}",
            "--dir", procs.journal], {**procs.env, **files("ca")})
        cluster.wait_until(lambda: "https://" in procs.collector.text(), "crema collect", 60, [procs.collector])
        argv = [str(procs.build / "crema"), "top", "--once", "--http", f"https://127.0.0.1:{procs.http_port}"]
        done = subprocess.run(argv, env={**procs.env, **files("ca")}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "0 connected" in done.stdout, done.stderr
        done = subprocess.run(argv, env={**procs.env, **files("other")}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "certificate" in done.stderr and done.stderr.count("\n") == 1


def test_a_server_that_is_no_collector_cannot_steer_the_terminal():
    import http.server
    import json

    name = "a\x1b[31mb\u00e9\u202e\x07"
    row = {"id": "x", "worker": None, "name": None, "host": name, "pid": 7, "state": "connected"}
    lost = {"records_lost": None, "records_lost_at_least": 7, "records_refused": None, "records_refused_at_least": 3}
    body = json.dumps({"version": name, "worker_rows": [row], "worker_rows_cut": 0, "completeness": lost}).encode()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run([cluster.BUILD / "crema", "top", "--once", "--http", f"127.0.0.1:{server.server_port}"],
                              capture_output=True, timeout=60)
        server.shutdown()
    assert done.returncode == 0 and b"a?[31mb??" in done.stdout
    assert b"at least 7 lost, at least 3 refused" in done.stdout
    assert re.fullmatch(rb"[\n\x20-\x7e]*", done.stdout)
