"""A program with several Dask Workers in its own process. Prints its results as JSON:

    many_workers.py FILE OTHER_FILE
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import jobs
import thread_jobs
from distributed import Client, LocalCluster, span


def digests_of(workers):
    """{"prefix activity": seconds}: what all Workers together report for their tasks."""
    total = {}
    for worker in workers:
        for key, value in worker.digests_total.items():
            if isinstance(key, tuple) and len(key) == 5 and key[0] == "execute" and key[4] == "seconds":
                name = f"{key[2]} {key[3]}"
                total[name] = total.get(name, 0) + value
    return total


def main():
    path, other = sys.argv[1:]
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None,
                      executor={"pool": pool}) as cluster, Client(cluster) as client:
        addresses = [w.address for w in cluster.workers.values()]
        out = {"addresses": addresses, "tasks": {}}

        def run(name, function, *args, worker):
            key = jobs.unique(name)
            future = client.submit(function, *args, key=key, pure=False, workers=[addresses[worker]])
            out["tasks"][key] = {"worker": addresses[worker], "result": future.result(timeout=60)}

        with span("many"):
            for worker in (0, 1):
                run("read", jobs.read_whole, path, worker=worker)
                run("read_async", thread_jobs.async_read, other, worker=worker)
                with dask.annotate(executor="pool"):
                    run("elsewhere", thread_jobs.read_and_tell, path, worker=worker)
            actor = client.submit(thread_jobs.Counter, actor=True, workers=[addresses[1]]).result()
            actor.read(path).result()
        out["nthreads"] = sum(w.state.nthreads for w in cluster.workers.values())
        jobs.time.sleep(1)  # for what the event loops still have to record
        out["digests"] = digests_of(cluster.workers.values())
        # One of them leaves: its counts remain.
        cluster.scale(1)
        client.wait_for_workers(1)
        jobs.time.sleep(1.5)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
