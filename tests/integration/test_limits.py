"""Workers in restricted environments: little space, few privileges, other namespaces, a user's mistakes. What can
be measured is; otherwise there is one line, and the worker does its work as without crema."""

import contextlib
import http.server
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import cluster
import host
import jobs
import pytest
from distributed import Client, span

SHM_FILE = re.compile(r"\S*/crema-[0-9a-f]{32}\b")
NOBODY = 60_000 + os.getpid() % 4_000  # a separate user: the kernel counts processes by user


# --- on a worker

def work(path, times=3):
    """Reads the file and inflates it: causes some counts of each kind."""
    import zlib

    total = 0
    for _ in range(times):
        with open(path, "rb", buffering=0) as file:
            total += sum(zlib.decompress(file.read()))
    return total


def count_up(n):
    return n + 1


def own_numbers():
    import os

    resident = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmRSS"))
    return {"pid": os.getpid(), "rss_bytes": resident,
            "preload": os.environ.get("LD_PRELOAD"), "maps": open("/proc/self/maps").read()}


def descriptors():
    """({kind: count} of all but TCP, which Dask opens and closes at any time; the ports that TCP is connected to)."""
    import contextlib
    import os
    import re

    peers, found = {}, {}
    for name in ("tcp", "tcp6"):
        rows = [line.split() for line in open(f"/proc/self/net/{name}")][1:]
        peers.update({f"socket:[{row[9]}]": int(row[2].rpartition(":")[2], 16) for row in rows})
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of this listing
            link = os.readlink(f"/proc/self/fd/{fd}")
            kind = "TCP" if link in peers else "file" if link.startswith("/") else re.sub("[0-9]+", "", link)
            found.setdefault(kind, []).append(peers.get(link))
    ports = set(found.pop("TCP"))
    return {kind: len(rows) for kind, rows in found.items()}, ports


def child_env():
    import subprocess

    done = subprocess.run(["env"], capture_output=True, text=True)
    return [line.partition("=")[2] for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")], done.stderr


def wait_for_any_child():
    """The result for a program that reaps all of its children; not for a process that has some."""
    import os

    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return "no child"


def read_in_children(path, how):
    """Children read the file, this process does not; returns what they read."""
    import multiprocessing
    import os
    import subprocess
    import sys

    code = "import sys; print(len(open(sys.argv[1], 'rb').read()))"
    if how == "subprocess":
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, close_fds=True)
        return int(done.stdout), done.stderr
    if how == "os.fork":
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                fd = os.open(path, os.O_RDONLY)
                os.write(write, str(len(os.read(fd, 1 << 30))).encode())
            finally:
                os._exit(0)
        os.close(write)
        text = os.read(read, 100)
        os.close(read)
        os.waitpid(pid, 0)
        return int(text), ""
    with multiprocessing.get_context(how).Pool(2) as pool:
        return len(pool.apply(read_all, (path,))), ""


def read_all(path):
    return Path(path).read_bytes()


# --- around a worker

@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A compressed file that every user may read, the result of work() on it, and its sizes."""
    directory = Path(tempfile.mkdtemp(prefix="limits-"))
    directory.chmod(0o755)
    text = bytes(range(256)) * 4000
    path = directory / "packed"
    path.write_bytes(zlib.compress(text, 1))
    path.chmod(0o644)
    yield {"path": str(path), "size": path.stat().st_size, "out": len(text), "result": 3 * sum(text)}
    shutil.rmtree(directory)


class Place:
    """One collector and one scheduler for all tests here; each test starts its own worker."""

    def __init__(self, procs, client, packed):
        self.procs, self.client, self.packed = procs, client, packed

    def names(self):
        return self.client.run_on_scheduler(lambda dask_scheduler: [str(w.name) for w in dask_scheduler.workers.values()])

    @contextlib.contextmanager
    def worker(self, nanny=True, args=(), **options):
        """A worker that lives until it is asked to end, and then ends normally. Without a nanny Dask
        sometimes waits forever for its scheduler then, so the exit status is checked only with one."""
        words = [*args] if nanny else ["--no-nanny", *args]
        worker = self.procs.start_worker(args=words, **options)
        try:
            cluster.wait_until(lambda: worker.name in self.names(), worker.name, 120, [worker])
            yield worker
            assert worker.poll() is None, worker.text()
            assert "killed by signal" not in worker.text(), worker.text()
            if nanny:
                assert self.end(worker) == 0, worker.text()
        finally:
            self.end(worker)
            cluster.wait_until(lambda: worker.name not in self.names(), f"{worker.name} to go", 120)

    def end(self, worker):
        worker.prefixed = worker.args[:1] == ["unshare"] and "-f" in worker.args
        return worker.stop(20 if "--no-nanny" not in worker.args else 3)

    def run(self, worker, function, *args, name="job", **options):
        """Returns only the result."""
        return self.client.submit(function, *args, key=jobs.unique(name), workers=[worker.name], **options).result(timeout=120)

    def numbers(self, worker):
        return self.run(worker, own_numbers)

    def unmeasured(self, worker, *words, wait=True):
        """The work is right, it is not measured, and one line reports that; the shared memory is removed."""
        assert self.run(worker, work, self.packed["path"]) == self.packed["result"]
        assert self.procs.agents() == []
        if wait:
            time.sleep(4)  # longer than the shim waits before it considers its agent dead
        assert self.run(worker, work, self.packed["path"]) == self.packed["result"]
        assert self.procs.agents() == []
        line, = said(worker)
        assert "unmeasured" in line
        for word in words:
            assert word in line, line
        for path in SHM_FILE.findall(self.numbers(worker)["maps"]):
            assert not os.path.exists(path), path

    def measured(self, worker, lines=0):
        """The work is right and its counts arrive."""
        assert len(said(worker)) == lines, said(worker)
        # Dask's prefixes contain only words of letters.
        name = "measured-" + "".join(chr(ord("a") + int(digit)) for digit in worker.name.rpartition("-")[2])
        result, (task,) = jobs.submit(self.procs, self.client, name, work, self.packed["path"], workers=[worker.name], totals=False)
        assert result == self.packed["result"]
        assert task["status"] == "ok" and task["counted"]
        assert task["read_bytes"] == 3 * self.packed["size"]
        assert (task["decompress_calls"], task["decompress_out_bytes"]) == (3, 3 * self.packed["out"])
        assert len(said(worker)) == lines, said(worker)
        return task


def said(worker):
    return [line for line in worker.text().splitlines() if line.startswith("crema")]


@pytest.fixture(scope="module")
def place(tmp_path_factory, homes, packed):
    # Workers import this file for its tasks, and therefore everything that it imports.
    paths = os.pathsep.join([str(jobs.ROOT / "scripts"), homes["PYTHONPATH"]])
    with cluster.Cluster(tmp_path_factory.mktemp("limits") / "cluster", {**homes, "PYTHONPATH": paths}) as procs:
        procs.start_collector()
        procs.start_scheduler()
        with Client(procs.address) as client:
            yield Place(procs, client, packed)


@pytest.fixture(autouse=True)
def nobody_measures(place):
    """Each test starts without agents of an earlier one, which may still be sending their last records."""
    cluster.wait_until(lambda: not place.procs.agents(), "earlier agents to end", 60)


def words_of(env):
    return ["env", *(f"{name}={value}" for name, value in env.items())]


def limits(*options):
    """The worker with these limits of prlimit."""
    return lambda _, env: ["prlimit", *options, *words_of(env)]


def mounted(script):
    """The worker with separate mounts, made by this shell script."""
    words = host.namespaces("-m")
    return lambda _, env: [*words, "sh", "-ec", script + '\nexec "$@"', "sh", *words_of(env)]


# --- space

def test_full_shm(place):
    """1 MiB is too little for the shared memory, which is then put into the temporary folder."""
    with tempfile.TemporaryDirectory() as temporary:
        env = {**place.procs.worker_env(), "TMPDIR": temporary}
        with place.worker(prefix=mounted("mount -t tmpfs -o size=1m none /dev/shm"), env=env) as worker:
            place.measured(worker)
            file, = set(SHM_FILE.findall(place.numbers(worker)["maps"]))
            assert os.path.dirname(file) == temporary and os.path.exists(file)
        cluster.wait_until(lambda: not os.path.exists(file), "the shared memory's file to be removed", 60)


def test_full_shm_and_temporary_folder(place):
    with tempfile.TemporaryDirectory() as temporary:
        script = f"mount -t tmpfs -o size=1m none /dev/shm; mount -t tmpfs -o size=1m none {temporary}"
        with place.worker(prefix=mounted(script), env={**place.procs.worker_env(), "TMPDIR": temporary}) as worker:
            place.unmeasured(worker, "/dev/shm")


def test_read_only_places(place):
    """/tmp and the agent's own folder are not writable: neither is needed."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as local:
        script = "mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp"
        env = {**place.procs.worker_env(), "XDG_STATE_HOME": "/proc/nothing", "DASK_TEMPORARY_DIRECTORY": local}
        with place.worker(prefix=mounted(script), env=env, args=["--local-directory", local]) as worker:
            assert place.run(worker, os.access, "/tmp", os.W_OK) is False
            place.measured(worker)


# --- limits

def test_file_size(place):
    """Below the size of the shared memory; beyond the limit the kernel sends SIGXFSZ."""
    with place.worker(prefix=limits(f"--fsize={1 << 20}")) as worker:
        place.unmeasured(worker, "ulimit -f")


def test_file_size_of_the_agent(place, tmp_path):
    """The limit is inherited: when the agent's file reaches it, the agent continues with what it has."""
    env = {**place.procs.worker_env(), "CREMA_COLLECTOR": f"dir:{tmp_path}"}
    target = env["CREMA_COLLECTOR"]
    with place.worker(env=env) as worker:
        agent, = cluster.wait_until(lambda: cluster.agents_of(target), "the agent")
        with span("sized"):
            done = [place.run(worker, work, place.packed["path"])]
            file, = cluster.wait_until(lambda: [p for p in tmp_path.iterdir() if p.stat().st_size > 2000], "frames in the file")
            before = resource.prlimit(agent, resource.RLIMIT_FSIZE)
            resource.prlimit(agent, resource.RLIMIT_FSIZE, (file.stat().st_size + 100, before[1]))
            done += [place.run(worker, work, place.packed["path"], 1) for _ in range(50)]
        time.sleep(3)  # it writes at least every second
        assert done == [place.packed["result"], *50 * [place.packed["result"] // 3]]
        assert cluster.agents_of(target) == [agent]
        resource.prlimit(agent, resource.RLIMIT_FSIZE, before)
        found = jobs.settled(place.procs, lambda r: len(jobs.tasks_of(r, "job")) == 51, directory=tmp_path)
        assert len([t for t in jobs.tasks_of(found, "job") if t["counted"]]) == 51


@pytest.mark.parametrize("option", ["--nofile=64", pytest.param("--as=3000000000", marks=pytest.mark.further)])
def test_limits_that_leave_room(place, option):
    with place.worker(prefix=limits(option)) as worker:
        place.measured(worker)


# --- another user

def closed_above(path):
    """The highest folder in path that other users cannot enter, or None."""
    for parent in reversed(Path(path).resolve().parents):
        if not parent.stat().st_mode & 1:
            return parent
    return None


def opened_script(hold):
    """Shell lines that make our programs readable for other users, whatever private home they are in: in
    separate mounts the worker sees an otherwise empty folder there that contains only them."""
    lines, closed = [f"mount -t tmpfs none {hold}"], {}
    for path in {str(Path(p).resolve()) for p in (jobs.ROOT, sys.prefix, sys.base_prefix)}:
        if closed_above(path):
            closed.setdefault(closed_above(path), []).append(path)
    for n, paths in enumerate(closed.values()):
        for i, path in enumerate(paths):
            lines.append(f"mkdir -p {hold}/{n}.{i}; mount --bind '{path}' {hold}/{n}.{i}")
    for n, (top, paths) in enumerate(closed.items()):
        lines.append(f"mount -t tmpfs -o mode=755 none '{top}'")
        for i, path in enumerate(paths):
            lines.append(f"mkdir -p '{path}'; mount --bind {hold}/{n}.{i} '{path}'")
    return "\n".join(lines)


@pytest.fixture
def nobody(place, homes):
    """(prefix, env, home) for a worker of an unprivileged user. Without root, the user who runs the tests
    already is one."""
    home = Path(tempfile.mkdtemp(prefix="nobody-"))
    for name in ("hold", "local", "config"):
        (home / name).mkdir()
    token = shutil.copy(homes["CREMA_TOKEN_FILE"], home / "config" / "token")
    env = {**place.procs.worker_env(), "HOME": str(home), "TMPDIR": str(home / "local"), "CREMA_TOKEN_FILE": token,
           "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config"),
           "DASK_TEMPORARY_DIRECTORY": str(home / "local")}
    become = []
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        words = host.namespaces("-m")
        become = [*words, "sh", "-ec", opened_script(home / "hold") + f'\ncd {home}; exec "$@"', "sh",
                  "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    yield become, env, home
    shutil.rmtree(home)


def test_user_without_rights(place, nobody):
    become, env, home = nobody
    with place.worker(prefix=lambda _, e: [*become, *words_of(e)], env=env, args=["--local-directory", home / "local"]) as worker:
        assert place.run(worker, os.geteuid) == (NOBODY if os.geteuid() == 0 else os.geteuid())
        task = place.measured(worker)
        found = jobs.settled(place.procs, lambda r: True)
        assert task["cpu_seconds"] > 0
        assert task["runqueue_wait_seconds"] is not None
        mine, = [w for w in found["workers"] if w["name"] == worker.name]
        assert mine["unseen"]["storage_read_bytes"] == 0
        assert mine["rusage"]["cpu_seconds"] > 0


# --- the agent's program

def not_executable(directory):
    path = directory / "crema-agent"
    path.write_text("no program\n")
    return path


def no_program(directory):
    path = not_executable(directory)
    path.chmod(0o755)
    return path


AGENTS = {"missing": lambda d: d / "no" / "such", "not executable": not_executable, "no program": no_program,
          "a folder": lambda d: d}


def test_agents_that_cannot_start(place, tmp_path):
    """One worker for each mistake, all at the same time."""
    with contextlib.ExitStack() as stack:
        for i, (kind, make) in enumerate(AGENTS.items()):
            (tmp_path / str(i)).mkdir()
            path = str(make(tmp_path / str(i)))
            worker = stack.enter_context(place.worker(nanny=False, env={**place.procs.worker_env(), "CREMA_AGENT": path}))
            place.unmeasured(worker, "CREMA_AGENT", path, wait=kind == "missing")
        for worker in place.procs.workers[-len(AGENTS):]:
            assert len(said(worker)) == 1, said(worker)


# --- kinds of workers

def test_without_nanny(place):
    with place.worker(nanny=False) as worker:
        place.measured(worker)
        assert len(place.procs.agents()) == 1
        assert place.run(worker, child_env) == ([str(place.procs.build / "libcrema.so")], "")
        assert place.numbers(worker)["preload"] == str(place.procs.build / "libcrema.so")


def first_process(_, env):
    return [*host.namespaces("-p", "-f", "--mount-proc"), *words_of(env)]


def test_worker_is_process_one(place):
    """It would have to reap the agent, so there is none, which is reported once."""
    with place.worker(prefix=first_process, nanny=False) as worker:
        assert place.numbers(worker)["pid"] == 1
        place.unmeasured(worker, "init")


def test_nanny_is_process_one(place):
    """As in a container: the worker below it is measured."""
    with place.worker(prefix=first_process) as worker:
        assert place.numbers(worker)["pid"] > 1
        place.measured(worker)


def test_worker_is_a_subreaper(place, tmp_path):
    preload = tmp_path / "reaper.py"
    preload.write_text("import ctypes\nassert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n")
    with place.worker(args=["--preload", preload], nanny=False) as worker:
        place.unmeasured(worker, "init")


WORKERS_IN_ONE = """
import json, resource, sys
from distributed import Client, LocalCluster, span

def used():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime, r.ru_inblock * 512

def work(n):
    import zlib
    with open(sys.argv[1], "rb", buffering=0) as file:
        return len(zlib.decompress(file.read())) + n

if __name__ == "__main__":
    before = used()
    with LocalCluster(n_workers=3, threads_per_worker=2, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        begun = used()
        with span("many"):
            out = client.gather(client.map(work, range(300), key=[f"many-{i:032x}" for i in range(300)]))
        ended = used()
    closed = used()
    print(json.dumps({"sum": sum(out), "least": ended[0] - begun[0], "most": closed[0] - before[0]}))
"""


def test_several_workers_in_one_process(new_cluster, packed, tmp_path):
    """They share one set of numbers, those of the process."""
    procs = new_cluster()
    procs.start_collector()
    script = tmp_path / "many.py"
    script.write_text(WORKERS_IN_ONE)
    done = subprocess.run([sys.executable, script, packed["path"]], env={**procs.env, **procs.worker_env()},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "crema" not in re.sub(r"\S*/\S*", "", done.stderr), done.stderr
    truth = jobs.json.loads(done.stdout)
    assert truth["sum"] == 300 * packed["out"] + sum(range(300))
    found = jobs.settled(procs, lambda r: len(jobs.tasks_of(r, "many")) == 300)
    tasks = jobs.tasks_of(found, "many")
    assert len(tasks) == 300 and all(t["counted"] for t in tasks)
    assert jobs.total(tasks, "read_bytes") == 300 * packed["size"]
    assert jobs.total(tasks, "decompress_calls") == 300
    worker, = found["workers"]
    assert worker["tasks"]["read_bytes"] == 300 * packed["size"]
    for name in ("cpu_seconds", "storage_read_bytes"):
        parts = sum(worker[part][name] for part in ("tasks", "unattributed", "unseen"))
        assert parts == pytest.approx(worker["rusage"][name], abs=0 if name.endswith("bytes") else 1e-6)
    # The program's own measurement; the shim starts to count when its first worker starts, and reads
    # the counts for the last time when the program ends.
    assert truth["least"] <= worker["rusage"]["cpu_seconds"] <= truth["most"] + 5
    assert worker["unseen"]["storage_read_bytes"] == 0
    assert found["completeness"]["tasks_refused"] == found["completeness"]["records_lost"] == 0


# --- mistakes

@pytest.mark.parametrize("value", ["dir:relative", pytest.param("x" * 600 + ":8990", marks=pytest.mark.further)], ids=range(2))
def test_wrong_collector(place, value):
    """All others are in tests/quick/test_wrong_collector.py."""
    with place.worker(nanny=False, env={**place.procs.worker_env(), "CREMA_COLLECTOR": value}) as worker:
        place.unmeasured(worker, "CREMA_COLLECTOR", wait=False)


@pytest.mark.parametrize("name, value, lines", [("CREMA", "off", 0), ("CREMA_COLLECTOR", "", 1)])
def test_not_measured_on_purpose(place, data, name, value, lines):
    """coffea's job is done by a worker that has no agent."""
    with place.worker(nanny=False, env={**place.procs.worker_env(), name: value}) as worker:
        output, _ = jobs.run_coffea(place.client, [data["zstd"]], maxchunks=1)
        assert output["events"] == {"nano_zstd.v1": 50_000}
        assert place.procs.agents() == []
        assert len(said(worker)) <= lines and all("CREMA_COLLECTOR" in line for line in said(worker))


class Web(http.server.BaseHTTPRequestHandler):
    asked = 0

    def handle(self):
        type(self).asked += 1
        super().handle()

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("where", ["unresolvable", "http", "closed"])
def test_collector_that_is_none(place, web, tmp_path, where):
    """The agent keeps its records and logs why; the worker does not notice."""
    target = {"unresolvable": "no-such-host.invalid:8990", "http": web, "closed": f"127.0.0.1:{cluster.free_port()}"}[where]
    env = {**place.procs.worker_env(), "CREMA_COLLECTOR": target, "XDG_STATE_HOME": str(tmp_path)}
    log = tmp_path / "crema" / "spool" / "agent.log"
    with place.worker(env=env) as worker:
        agent, = cluster.wait_until(lambda: cluster.agents_of(target), "the agent")
        assert place.run(worker, work, place.packed["path"]) == place.packed["result"]
        cluster.wait_until(log.exists, "the agent's log", 60)
        assert cluster.agents_of(target) == [agent]
    assert said(worker) == []
    assert len(log.read_text().splitlines()) == 1, log.read_text()
    assert "records are kept in" in log.read_text()
    found = jobs.settled(place.procs, lambda r: jobs.tasks_of(r, "job"), directory=log.parent)
    cluster.kill(agent, signal.SIGKILL)  # it would wait for a collector for a while
    assert [t["read_bytes"] for t in jobs.tasks_of(found, "job")] == [3 * place.packed["size"]]


# --- what a task sees

def busy(place, worker):
    """Runs 500 tasks; returns the worker's numbers."""
    out = place.client.gather(place.client.map(count_up, range(500), workers=[worker.name], pure=False))
    assert out == list(range(1, 501))
    for _ in range(4):
        place.run(worker, work, place.packed["path"])
    return place.numbers(worker)


def test_descriptors_and_memory(place):
    """The worker's own: as many descriptors as without crema (libunwind would keep its pipe), and little more memory."""
    env = {**place.procs.worker_env(), "CREMA_BLOCKED_MS": "0"}
    with place.worker(shim=False) as plain, place.worker(env=env) as worker:
        without, with_it = busy(place, plain), busy(place, worker)
        assert len(place.procs.agents()) == 1
        assert with_it["rss_bytes"] - without["rss_bytes"] <= 8 << 20
        (usual, _), (found, ports) = place.run(plain, descriptors), place.run(worker, descriptors)
        assert found == usual and sum(found.values()) > 5
        assert int(place.procs.address.rpartition(":")[2]) in ports and place.procs.port not in ports


COUNT_SIGNALS = """
import signal
seen = []
signal.signal(signal.SIGCHLD, lambda number, frame: seen.append(number))
signal.crema_test_seen = seen
"""


def signals_seen():
    import signal

    return len(signal.crema_test_seen)


def test_agent_is_no_child(place, tmp_path):
    """Neither its start nor its end is visible to the program, and neither is the next agent's."""
    preload = tmp_path / "count.py"
    preload.write_text(COUNT_SIGNALS)
    with place.worker(nanny=False, shim=False, args=["--preload", preload]) as plain, \
            place.worker(nanny=False, args=["--preload", preload]) as worker:
        first, = cluster.wait_until(place.procs.agents, "the agent")
        # Dask itself starts one child, at its start.
        usual = place.run(plain, signals_seen)
        assert place.run(worker, wait_for_any_child) == "no child"
        assert place.run(worker, signals_seen) == usual
        cluster.kill(first, signal.SIGKILL)
        cluster.wait_until(lambda: set(place.procs.agents()) - {first}, "the next agent")
        assert place.run(worker, wait_for_any_child) == "no child"
        assert place.run(worker, signals_seen) == usual
        place.measured(worker)


def test_children_are_not_measured(place):
    """A child behaves as without crema; its reads are not counted for the worker."""
    kinds = ["subprocess", "os.fork", "fork", "spawn", "forkserver"]
    env = {**place.procs.worker_env(), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    with place.worker(env=env) as worker:
        with span("children"):
            for how in kinds:
                assert place.run(worker, read_in_children, place.packed["path"], how, name="children") == (place.packed["size"], "")
                assert len(place.procs.agents()) == 1
        found = jobs.settled(place.procs, lambda r: len(jobs.tasks_of(r, "children")) == len(kinds))
        for task in jobs.tasks_of(found, "children"):
            assert task["counted"]
            assert task["read_bytes"] < place.packed["size"], task
        assert place.packed["path"] not in jobs.by_file(found, "read_bytes")
        assert said(worker) == []
