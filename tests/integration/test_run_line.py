"""The last line of `crema run`: which tasks it counts, and that it does not change how the command ends."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import cluster
import host
import jobs
import pytest
from distributed import Client, LocalCluster

CREMA = cluster.BUILD / "crema"
LINE = r"crema: (\d+) tasks? measured(?:, \d+ failed)?(?:, ([\d.]+ (?:k?Hz|tasks/s)))?(?:, (\d+) % CPU)?; details: crema report(.*)\n"
SCRIPT = """
import sys
from dask.distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        kept = []  # Dask forgets a group whose results nobody wants, and begins another for what comes next: two runs
        for _ in range(int(sys.argv[1])):
            client.gather((kept := kept + client.map(lambda x: sum(range(300_000)), range(7), pure=False)))
    sys.exit(3)
"""


def environment(home, **more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("CREMA_", "XDG_"))}, "HOME": str(home), **more}


def run(home, *command, options=(), **env):
    return subprocess.run([CREMA, "run", *options, "--", *map(str, command)], env=environment(home, **env), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=180)


def reported(home):
    return json.loads(subprocess.run([CREMA, "report", "--json", "-"], env=environment(home), capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("home with a space")
    (place / "analysis.py").write_text(SCRIPT)
    return place


def test_what_was_measured(home):
    first = run(home, sys.executable, home / "analysis.py", 1)
    assert first.returncode == 3
    found = re.search(LINE, first.stderr)
    assert found and first.stderr.endswith(found[0]), first.stderr
    assert (found[1], found[4]) == ("7", "") and 0 <= int(found[3]) <= 100
    report = reported(home)
    assert found[2] and float(found[2].split()[0]) == pytest.approx(7 / report["metrics"]["wall_time"], rel=1e-3)
    # only its own tasks, though the first run's are in the same place
    second = run(home, sys.executable, home / "analysis.py", 2)
    assert second.returncode == 3 and re.search(LINE, second.stderr)[1] == "14", second.stderr
    for quiet in (run(home, sys.executable, home / "analysis.py", 1, options=["--quiet"]),
                  run(home, "sh", "-c", "exit 3", CREMA_QUIET="on")):  # without it there would be a line, see below
        assert quiet.returncode == 3 and not re.search("^crema: ", quiet.stderr, re.M)
    elsewhere = run(home, sys.executable, home / "analysis.py", 1, CREMA_COLLECTOR=f"dir:{home}/elsewhere")
    assert elsewhere.returncode == 3 and "1 worker measured, but none of their tasks is in" in elsewhere.stderr


def test_no_task(home):
    """An analysis that fails before its first task: its workers' records are in the right place."""
    script = home / "fails.py"
    script.write_text(re.sub(r"for _ in .*\n.*", "sys.exit(4)", SCRIPT))
    done = run(home, sys.executable, script, 1)
    assert done.returncode == 4 and done.stderr.endswith("crema: 1 worker measured, but no task ran there\n"), done.stderr


def test_workers_of_others(home):
    """The client of a cluster that runs elsewhere is measured."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0") as elsewhere:
        client = "import sys; from dask.distributed import Client; print(Client(sys.argv[1]).submit(sum, (1, 2)).result())"
        done = run(home, sys.executable, "-c", client, elsewhere.scheduler_address)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert done.stderr.endswith("crema: the client was measured, but this command did not start its workers: see 'crema report' where their collector runs\n")


@pytest.mark.parametrize("command,status", [("exit 0", 0), ("exit 5", 5), ("kill -KILL $$", -9), ("kill -TERM $$", -15)])
def test_nothing_measured(home, command, status):
    done = run(home, "sh", "-c", command)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("crema: nothing was measured: ") and "'crema report' where" in done.stderr and "crema doctor" in done.stderr and done.stderr.count("\n") == 1
    assert not list(home.parent.glob("crema-run-*"))


def test_one_line_where_nothing_can_be_preloaded(home, tmp_path):
    alone = tmp_path / "crema"
    shutil.copy(CREMA, alone)
    done = subprocess.run([alone, "run", "--", "sh", "-c", "echo runs"], env=environment(home), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "runs\n", 1) and "running unmeasured" in done.stderr


def test_spaces_everywhere(home, tmp_path):
    """The dynamic linker accepts no path with a space: a link replaces it if the state directory's path has none."""
    folder = tmp_path / "of a user"
    folder.mkdir()
    for name in ("crema", "crema-agent", "libcrema.so"):
        shutil.copy(cluster.BUILD / name, folder)
    command = [folder / "crema", "run", "--", "sh", "-c", "echo $LD_PRELOAD"]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "\n", 1)
    assert "running unmeasured" in done.stderr and "set XDG_STATE_HOME to one that has none" in done.stderr, done.stderr
    done = subprocess.run(command, env=environment(home, XDG_STATE_HOME=str(tmp_path / "state")), capture_output=True, text=True, timeout=60)
    assert os.path.samefile(done.stdout.strip(), folder / "libcrema.so") and " " not in done.stdout.strip()


def test_what_does_not_start(home):
    done = run(home, "/nonexistent/program")
    assert done.returncode == 127 and done.stderr.count("\n") == 1 and "cannot execute" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL])
def test_signals_reach_the_command(home, number, tmp_path):
    """Sent only to `crema run`, as a batch system does; the command dies even with SIGKILL, which crema cannot catch."""
    ready = tmp_path / "pid"
    script = "import os, signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(17))\n"
    script += f"open({str(ready)!r} + '.new', 'w').write(str(os.getpid())); os.rename({str(ready)!r} + '.new', {str(ready)!r})\n"
    script += "time.sleep(600)"
    process = subprocess.Popen([CREMA, "run", "--", sys.executable, "-c", script], env=environment(home), stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        cluster.wait_until(ready.exists, "the command", 60)
        pid = int(ready.read_text())
        process.send_signal(number)
        assert process.wait(60) == {signal.SIGTERM: 17, signal.SIGINT: -2}.get(number, -number)
        cluster.wait_until(lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split(")")[1].split()[0] == "Z",
                           "the end of the command", 60)
    finally:
        process.kill()
        process.wait()


COUNTS = """
import os, signal, sys, time
if sys.argv[1] == "own group":
    os.setpgid(0, 0)
got = []
signal.signal(signal.SIGTERM, lambda *_: got.append(1))
print(flush=True)
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.05)
print(len(got))
"""


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
@pytest.mark.parametrize("send,group", [(os.kill, "same"), (os.killpg, "same"), (os.kill, "own group"), (os.killpg, "own group")])
def test_a_signal_arrives_once(home, send, group, quiet):
    """Batch systems, systemd and shells send to a whole group; Dask takes a second SIGTERM as a request to end at once."""
    process = subprocess.Popen([CREMA, "run", *quiet, "--", sys.executable, "-c", COUNTS, group], env=environment(home), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    process.stdout.readline()
    for count in (1, 2):
        send(process.pid, signal.SIGTERM)
        time.sleep(0.2)
    assert (process.communicate(timeout=60)[0], process.returncode) == ("2\n", 0)


# The collector is stopped once the task's worker has nothing left to do but to end.
LAST = """
import os, signal, sys
from dask.distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(lambda: 1).result()
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
    open("ended", "x")
"""


def test_waits_for_the_last_records(new_cluster, tmp_path):
    """When a job's first process ends, batch systems and containers kill all that is left of it, agents too."""
    procs = new_cluster()
    procs.start_collector()
    command = [CREMA, "run", "--quiet", "--", sys.executable, "-c", LAST, str(procs.collector.pid)]
    script = cluster.Process("script", command, tmp_path / "script.log", env={**procs.env, "CREMA_COLLECTOR": procs.target}, cwd=tmp_path)
    try:
        cluster.wait_until((tmp_path / "ended").exists, "the command", 120, [script])
        time.sleep(1)
        assert script.poll() is None and procs.agents()
        procs.collector.send_signal(signal.SIGCONT)
        assert script.wait(60) == 0 and not procs.agents()
    finally:
        procs.collector.send_signal(signal.SIGCONT)
        script.stop()
    found = procs.report_json()
    assert [t["status"] for t in found["tasks"]] == ["ok"] and all(w["goodbye"] for w in found["workers"])


def test_nobody_is_waited_for_without_a_collector(tmp_path):
    """The agents wait half a minute for one; their records are in files by then."""
    done = run(tmp_path, sys.executable, "-c", SCRIPT.replace("sys.exit(3)", "open(sys.argv[2], 'x')"), 1, tmp_path / "ended")
    assert time.time() - (tmp_path / "ended").stat().st_mtime < 6 and re.search(LINE, done.stderr)[1] == "7", done.stderr
    found = reported(tmp_path)
    assert len(found["tasks"]) == 7 and [w["goodbye"]["how"] for w in found["workers"]] == ["exit"]


def test_first_process_of_a_container(tmp_path):
    """Orphans, as agents are, become its children; a worker in that place is not measured, and the kernel kills all others when it ends."""
    own = host.namespaces("--pid", "--fork", "--mount-proc", "--kill-child")
    (tmp_path / "analysis.py").write_text(SCRIPT)
    done = subprocess.run([*own, CREMA, "run", "--", sys.executable, tmp_path / "analysis.py", "1"], env=environment(tmp_path), capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=180)
    assert done.returncode == 3 and re.search(LINE, done.stderr)[1] == "7", done.stderr
    found = reported(tmp_path)
    assert [w["goodbye"]["how"] for w in found["workers"]] == ["exit"]


def test_what_a_command_leaves_behind(new_cluster, tmp_path):
    """It is not waited for: neither another program, nor a worker, which is still measured."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = shlex.join([str(word) for word in procs.dask("worker", procs.address, "--no-dashboard", "--local-directory", tmp_path)])
    ready = shlex.join([sys.executable, "-c", f"from distributed import Client; Client({procs.address!r}).wait_for_workers(1, timeout=120)"])
    command = f"sleep 600 >/dev/null 2>&1 & echo $!; {worker} >/dev/null 2>&1 & echo $!; {ready}; touch {tmp_path}/ended; exit 3"
    process = subprocess.Popen([CREMA, "run", "--quiet", "--", "sh", "-c", command], env={**procs.env, "CREMA_COLLECTOR": procs.target},
                               text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    left = [int(process.stdout.readline()) for _ in range(2)]
    try:
        assert process.wait(180) == 3
        assert time.time() - (tmp_path / "ended").stat().st_mtime < 6  # agents are waited for 10 s
        assert procs.agents()
        with Client(procs.address) as client:
            assert client.submit(abs, -1).result(timeout=60) == 1
        assert [t["status"] for t in jobs.settled(procs, lambda r: r["tasks"])["tasks"]] == ["ok"]
    finally:
        process.stdout.close()
        for pid in left:
            os.kill(pid, signal.SIGTERM)


def test_ignored_signals_stay_ignored(home):
    done = run(home, "sh", "-c", f"trap '' HUP; exec '{CREMA}' run -- sh -c 'kill -HUP $$; echo lives'")
    assert done.stdout == "lives\n"


def test_failed_tasks_are_counted(home):
    (home / "fails.py").write_text(SCRIPT.replace("client.gather(", "client.gather(errors='skip', futures=").replace(
        "sum(range(300_000))", "1 // (x % 3)"))
    done = run(home, sys.executable, home / "fails.py", 1)
    assert done.returncode == 3
    assert re.search(r"crema: 4 tasks measured, 3 failed, [\d.]+ tasks/s, \d+ % CPU; details: crema report\n", done.stderr), done.stderr
