"""What workers compress and decompress for each other is counted: Dask's own workers have the true values."""

import crema
import jobs
import pytest
from distributed import Client

ACTIVITIES = {"serialize": "serialization_time_seconds", "deserialize": "deserialization_time_seconds",
              "compress": "dask_compress_seconds", "decompress": "dask_decompress_seconds"}


def test_serialization_of_transfers(new_cluster, monkeypatch):
    def make(_, n):
        return [{"a": j, "b": str(j)} for j in range(n)]

    def join(*lists):
        return sum(map(len, lists))

    def told(dask_worker):
        sums = {}
        for key, value in dask_worker.digests_total.items():
            if isinstance(key, tuple) and key[-1] == "seconds":
                sums[key[-2]] = sums.get(key[-2], 0) + value
        return sums

    def done(before, after):
        return sum(after[w].get(activity, 0) - before[w].get(activity, 0) for w in after for activity in ("serialize", "deserialize"))

    procs = new_cluster()
    procs.start_collector()
    procs.start_scheduler()
    for _ in range(2):
        procs.start_worker()
    monkeypatch.setenv("CREMA_PROGRAM", str(procs.build / "crema"))
    with Client(procs.address) as client:
        client.wait_for_workers(2)
        one, two = client.scheduler_info()["workers"]

        def send(n):
            parts = [client.submit(make, i, n, workers=[one], pure=False) for i in range(3)]
            assert client.submit(join, *parts, workers=[two], pure=False).result() == 3 * n

        send(5000)  # what the workers did before the block does not belong to the run; a probe comes in between
        jobs.settled(procs, lambda r: len(r["tasks"]) >= 4)
        before = client.run(told)
        with crema.measure(client, dir=procs.journal) as m:
            after = before
            while done(before, after) < 1.5:  # the finding starts at 1 s, however fast the machine is
                send(10_000)
                after = client.run(told)
        found = m.get_metrics()
        for activity, metric in ACTIVITIES.items():
            truth = sum(after[w].get(activity, 0) - before[w].get(activity, 0) for w in after)
            assert found[metric] == pytest.approx(truth, rel=0.01, abs=0.01), activity
        assert found["transfer_serialize_seconds"] > 0.2 and found["transfer_deserialize_seconds"] > 0.05
        assert "serialization" in [finding["id"] for finding in m.run.json["findings"]]
