"""Tasks behave under the preload as they do without: results, exceptions, children, threads."""

import asyncio

import jobs
import pytest
from distributed import Client, span


def add(a, b):
    return a + b


def fail(text):
    raise ValueError(text)


def missing_file():
    import os

    try:
        open("/nonexistent")
    except OSError as error:
        found = [error.errno]
    try:
        os.pread(9999, 1, 0)
    except OSError as error:
        found.append(error.errno)
    return found


def run_children():
    import subprocess

    done = subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True, close_fds=True)
    return done.returncode, done.stdout, done.stderr, "crema" in subprocess.run(["env"], capture_output=True, text=True).stderr


def fork_child():
    import os

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, b"child")
        os._exit(7)
    os.close(write)
    text = os.read(read, 100)
    os.close(read)
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def use_threads():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(lambda i: i * i, range(100)))


def take_signal():
    """Tasks do not run in the main thread, so the signal goes to a child with a handler."""
    import subprocess
    import sys

    code = "import os, signal; signal.signal(signal.SIGUSR1, lambda *a: print('got')); os.kill(os.getpid(), signal.SIGUSR1)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout


async def nap():
    await asyncio.sleep(0.2)
    return "awake"


def nested():
    from distributed import worker_client

    with worker_client() as client:
        return client.submit(sum, [1, 2, 3]).result()


def big_write(path, size):
    with open(path, "wb") as file:
        return file.write(b"x" * size)


TASKS = {
    "children": (run_children, (3, "out\n", "err\n", False)),
    "fork": (fork_child, (b"child", 7)),
    "errno": (missing_file, [2, 9]),
    "threads": (use_threads, sum(i * i for i in range(100))),
    "signal": (take_signal, "got\n"),
    "nested": (nested, 6),
}


@pytest.mark.parametrize("name", TASKS)
def test_result(shared, name):
    function, expected = TASKS[name]
    result, attempts = jobs.submit(shared.procs, shared.client, name, function, totals=False)
    assert result == expected
    assert [t["status"] for t in attempts] == ["ok"]


def test_exception_is_the_users(shared):
    with span("erred"):
        future = shared.client.submit(fail, "told so", key=jobs.unique("erred"))
        with pytest.raises(ValueError, match="^told so$"):
            future.result(timeout=60)
    found = shared.settled(lambda r: jobs.tasks_of(r, "erred"))
    (task,) = jobs.tasks_of(found, "erred")
    assert task["status"] == "erred"
    assert not task["counted"]


def test_async_task(shared):
    result, (task,) = jobs.submit(shared.procs, shared.client, "async", nap, totals=False)
    assert result == "awake"
    assert task["async"]
    assert task["wall_seconds"] >= 0.2
    assert task["cpu_seconds"] is None


def test_written_bytes(shared, disk):
    path = disk / "written"
    result, (task,) = jobs.submit(shared.procs, shared.client, "write", big_write, str(path), 1 << 20, totals=False)
    assert result == path.stat().st_size == 1 << 20
    assert task["storage_write_bytes"] is None or task["storage_write_bytes"] >= 1 << 20


def test_same_key_in_two_runs(shared):
    """A key is only a label: both runs have it, each with its own attempt."""
    ids = []
    for _ in range(2):
        with span("twice"):
            future = shared.client.submit(add, 1, 2, key="twice-0001")
            assert future.result(timeout=60) == 3
            del future
        found = shared.settled(lambda r: jobs.tasks_of(r, "twice") and r["run"] not in ids)
        ids.append(found["run"])
        (task,) = jobs.tasks_of(found, "twice")
        assert task["counted"]
    assert len(set(ids)) == 2


def test_python_dev_mode(new_cluster, data):
    """Other allocators and more checks. Without coffea, as awkward cannot be imported in this mode."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(env={"PYTHONDEVMODE": "1"})
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        n, (task,) = jobs.submit(procs, client, "dev-mode", jobs.read_whole, data["zstd"])
    worker.stop()
    assert "Fatal Python error" not in worker.text()
    assert task["read_bytes"] == n


def limited(_output, env):
    """A file size limit smaller than any shared memory, for the worker only."""
    return ["prlimit", "--fsize=1000000", "env", *(f"{name}={value}" for name, value in env.items())]


def test_file_size_limit(new_cluster, data):
    """The worker continues, with at most one line about it."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    worker = procs.start_worker(prefix=limited)
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=120)
        output, _ = jobs.run_coffea(client, [data["zstd"]], maxchunks=1)
    assert output["events"] == {"nano_zstd.v1": 50_000}
    assert len([line for line in worker.text().splitlines() if line.startswith("crema")]) <= 1


# Processes: as in test_run_state.py and test_wall.py, which run the same kind of cluster.
@pytest.mark.parametrize("processes", [pytest.param(True, marks=pytest.mark.further), False])
def test_local_cluster(new_cluster, data, serial, tmp_path, processes):
    """LocalCluster in a program that runs under the preload, with workers as processes or threads."""
    import subprocess
    import sys

    procs = new_cluster()
    procs.start_collector()
    script = tmp_path / "local.py"
    script.write_text(f"""
import sys
sys.path[:0] = [{str(jobs.ROOT / 'examples')!r}, {str(jobs.ROOT / 'tests' / 'integration')!r}]
import jobs
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers={2 if processes else 1}, threads_per_worker=1, processes={processes},
                      dashboard_address=None) as cluster, Client(cluster) as client:
        out, _ = jobs.run_coffea(client, [{data['zstd']!r}])
        print(out["events"])
""")
    done = subprocess.run([sys.executable, script], env={**procs.env, **procs.worker_env()},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "{'nano_zstd.v1': 200000}\n"
    found = jobs.settled(procs, lambda r: len(r["chunks"]) == 4)
    assert found["metrics"]["total_events"] == 200_000
    assert found["completeness"]["workers_seen"] == (2 if processes else 1)
    rows = [r for r in found["codecs"] if r["codec"] == "zstd"]
    assert jobs.total(rows, "out_bytes") == serial["codecs"]["zstd"]["out_bytes"]
