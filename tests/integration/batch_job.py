"""A user's script with a recipe's cluster: batch_job.py RECIPE FILE HELD. Two jobs; a task reads FILE, and a second one reads it,
too, writes its worker's job to HELD and stays until that job has been killed; Dask then runs it again. The cluster is closed
when HELD has been removed."""

import os
import pathlib
import runpy
import sys
import time

from dask.distributed import Client, get_worker


def read(path):
    with open(path, "rb") as file:
        return len(file.read())


def job():
    """The name of a worker's job."""
    if "SLURM_JOB_ID" in os.environ:
        return os.environ["SLURM_JOB_ID"]
    said = dict(line.split(" = ", 1) for line in pathlib.Path(os.environ["_CONDOR_JOB_AD"]).read_text().splitlines() if " = " in line)
    return f"{said['ClusterId']}.{said['ProcId']}"


def held(path, mark, jobs):
    """The first attempt stays until it is killed."""
    n = read(path)
    try:
        file = open(mark, "x")
    except FileExistsError:
        return n
    with file:
        file.write(jobs[get_worker().address])
    while True:
        time.sleep(0.05)


def main(recipe, path, mark):
    cluster = runpy.run_path(recipe)["cluster"]
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=120)
        first = client.submit(read, path, key="recipe-read", pure=False)
        second = client.submit(held, path, mark, client.run(job), key="recipe-held", pure=False, retries=2)
        print(*client.gather([first, second]), flush=True)
        while os.path.exists(mark):
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
