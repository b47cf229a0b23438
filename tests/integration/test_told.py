# SPDX-License-Identifier: BSD-3-Clause
"""How many tasks crema.measure waits for: the scheduler's records against the client's and the worker's. A
scheduler and a worker in this process; nothing is measured."""

import threading
import time

import pytest
from crema.wait import NOTHING_TOLD, enough, is_missing, told_by_scheduler
from distributed import Client, LocalCluster, span, wait

STARTED = []  # the worker is in this process


def work(key, seconds=0, fails=False, after=None):
    STARTED.append(key)
    time.sleep(seconds)
    if fails:
        raise ValueError("as asked")
    return key


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local, Client(local) as found:
        yield found


@pytest.fixture
def block(client):
    """The test's own span, and the tasks that ran in it."""
    STARTED.clear()
    with span("told") as found:
        yield found
    client.cancel(list(client.futures))


def told(client, block, tasks):
    """The count once the scheduler has records of that many tasks."""
    limit = time.monotonic() + 20
    while (found := told_by_scheduler(client, block))["tasks"] != tasks and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def test_all_ran(client, block):
    client.gather([client.submit(work, i, key=f"all-{i}") for i in range(7)])
    found = told(client, block, len(STARTED))
    assert found == {"tasks": 7, "least": 7, "all_ran": True, "idle": False, "workers": list(client.scheduler_info()["workers"])} and len(STARTED) == 7


def test_released_tasks_count(client, block):
    """Results that no client holds any more, and that the scheduler has forgotten."""
    for i in range(5):
        client.submit(work, i, key=f"gone-{i}").result()
    found = told(client, block, 5)
    assert (found["tasks"], found["all_ran"]) == (5, True)


def test_cancelled_tasks_do_not_count(client, block):
    """One runs, the others are queued behind it and are cancelled."""
    first = client.submit(work, "first", 0.5, key="first")
    behind = [client.submit(work, i, key=f"behind-{i}") for i in range(6)]
    while not STARTED:
        time.sleep(0.01)
    client.cancel(behind)
    first.result()
    del behind
    time.sleep(0.3)
    found = told(client, block, 1)
    assert STARTED == ["first"] and (found["tasks"], found["all_ran"]) == (1, True)


def test_tasks_behind_a_failed_one_do_not_count(client, block):
    bad = client.submit(work, "bad", fails=True, key="bad")
    after = [client.submit(work, i, after=bad, key=f"after-{i}") for i in range(4)]
    wait(after)
    found = told(client, block, 1)
    assert STARTED == ["bad"] and (found["tasks"], found["all_ran"]) == (1, True)


def test_others_do_not_count(client, block):
    """Tasks that ran before the block, in another span, and from another client thread."""
    def beside():
        with span("another"):
            client.submit(work, "beside", key="beside").result()

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    client.submit(work, "mine", key="mine").result()
    assert STARTED == ["beside", "mine"] and told(client, block, 1)["tasks"] == 1


def test_a_short_log_does_not_tell(client, block):
    """The scheduler's log has no room for all records: a task that ended may not have run."""
    def shorten(dask_scheduler, length):
        log = dask_scheduler.transition_log
        dask_scheduler.transition_log = type(log)(log, maxlen=length)
        return log.maxlen

    first = client.submit(work, "long", 0.3, key="long")
    behind = [client.submit(work, i, key=f"cut-{i}") for i in range(3)]
    while not STARTED:
        time.sleep(0.01)
    client.cancel(behind)
    first.result()
    length = client.run_on_scheduler(shorten, length=2)
    try:
        found = told(client, block, 4)
        assert STARTED == ["long"] and (found["tasks"], found["all_ran"]) == (4, False)
        assert found["least"] <= 1
    finally:
        client.run_on_scheduler(shorten, length=length)


def test_nothing_told(client):
    assert told_by_scheduler(None, "x") == told_by_scheduler(client, None) == NOTHING_TOLD
    assert told_by_scheduler(client, "no such span")["tasks"] is None


def test_what_is_enough():
    def data(*statuses):
        return {"tasks": [{"key": str(i), "status": status} for i, status in enumerate(statuses)]}

    assert enough(data(), {"tasks": None, "all_ran": True})
    assert enough(data("ok", "erred"), {"tasks": 2, "all_ran": True})
    assert not enough(data("ok", "running", None), {"tasks": 2, "all_ran": True})
    assert not enough(data("ok", "erred"), {"tasks": 3, "all_ran": True})
    assert enough(data("ok", "erred"), {"tasks": 3, "all_ran": False})
    assert not enough(data("ok", "ok"), {"tasks": 3, "all_ran": False})


def test_what_is_missing():
    data = {"tasks": [{"key": str(i), "status": "ok"} for i in range(3)], "workers": [{"address": "a"}]}
    cut = {"tasks": 5, "least": 3, "all_ran": False, "workers": ["a"]}
    assert not is_missing(data, cut)
    assert is_missing(data, {**cut, "all_ran": True})
    assert is_missing(data, {**cut, "least": 4})
    assert is_missing(data, {**cut, "workers": ["a", "b"]})
