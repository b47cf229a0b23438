"""Under crema.measure() all averages are over the client's block, including workers that join and leave before the first
task or after the last one."""

import time

import crema
import pytest
from distributed import Client


def nap(_):
    time.sleep(0.4)


@pytest.fixture
def block(new_cluster, monkeypatch):
    """One worker for the whole block and one for part of it, with the client's own record of their lifetimes."""
    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker()
    monkeypatch.setenv("CREMA_PROGRAM", str(procs.build / "crema"))
    with Client(procs.address) as client:
        client.wait_for_workers(1)
        with crema.measure(client, dir=procs.journal) as m:
            started = time.time()
            other = procs.start_worker()
            client.wait_for_workers(2)
            joined = time.time()
            client.run(time.sleep, 2.5)  # in their event loops
            client.gather(client.map(nap, range(6), pure=False))
            leaves = time.time()
            other.stop()
            left = time.time()
            time.sleep(1.5)
        m.least, m.most = leaves - joined, left - started
        yield m


def test_averages_are_over_the_block(block, capsys):
    """The second worker's lifetime contains the time in which the scheduler knew it, and is within its process's."""
    found, wall = block.get_metrics(), block.t_end - block.t_start
    assert found["wall_time"] == pytest.approx(wall) and found["averaged_seconds"] == pytest.approx(wall, rel=0.02)
    assert found["workers_wall_time"] < wall - 2.5
    assert wall + block.least <= found["avg_workers"] * wall * 1.001
    assert found["avg_workers"] * wall * 0.98 <= wall + block.most
    slept = sum(task["wall_seconds"] for task in block.run.json["tasks"])
    assert found["idle_thread_seconds"] == pytest.approx(found["avg_workers"] * wall - slept, rel=0.01)
    times = [moment.timestamp() for moment in block.tracking_data["worker_counts"]]
    assert times[0] == pytest.approx(block.start_time, abs=0.5) and times[-1] == pytest.approx(block.end_time, abs=0.5)
    block.print_summary()
    line = " ".join(capsys.readouterr().out.split("\n", 1)[1].split())
    assert " wall time " in line and "first to last task on the workers" not in line
    assert "averages of workers and memory are over the client's block" in line
    seen = [max(point["seconds"] for point in points) for points in block.run.json["tracking_data"]["worker_last_seen"].values()]
    assert len(seen) == 2 and min(seen) > 1.3, "both event loops were blocked for 2.5 s"
