"""A worker's process whose tasks compute 1 : 2 : 4 on three lines, sleep on a fourth and wait for a lock on a fifth. Before that they compute
for as long as looks after a pause are far apart. Prints the seconds that its own clocks saw on each."""

import json
import os
import sys
import threading
import time
import types

import stack  # first: from here on its modules are found

threading.Thread(target=int).start()  # as every worker has started one before it imports Dask

import distributed.worker as dask
from dask._task_spec import Task

Space = types.SimpleNamespace
unit = float(sys.argv[1])
spent = {}


class Worker(dask.Worker):
    def __init__(self):
        self.scheduler, self.loop, self.handlers = Space(address="tcp://10.9.8.7:8786"), Space(), {"actor_execute": None}
        self.state = Space(tasks={}, actors={}, nthreads=3, executing_count=2, ready=[1], long_running=[], executed_count=5)
        self.memory_manager, self.nanny, self.address, self.name = Space(memory_limit=7654321), None, "tcp://10.1.1.1:4001", "w-1"

    def run(self, key, function):
        self.state.tasks[key] = Space(key=key, prefix=key.split("-")[0], span_id="the-span", annotations={}, priority=(0, 12, 0), dependencies=[])
        dask._run_task(Task(function), {}, {"worker": self}, key)


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))  # LINE spin


def settle():
    spin(0.4)  # LINE settle


def one():
    spin(unit)  # LINE one


def two():
    spin(2 * unit)  # LINE two


def four():
    spin(4 * unit)  # LINE four


def asleep():
    time.sleep(2 * unit)  # LINE asleep


def locked():
    held.acquire(timeout=unit)  # LINE locked


held = threading.Lock()
held.acquire()


def work():
    for function in (settle, one, two, four, asleep, locked):
        wall, cpu = time.monotonic(), time.thread_time()
        function()
        spent.setdefault(function.__name__, [0, 0])
        spent[function.__name__][0] += time.monotonic() - wall
        spent[function.__name__][1] += time.thread_time() - cpu


worker = Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process then
began = time.monotonic()
worker.run("work-1", work)
wall = time.monotonic() - began
time.sleep(1)
print(json.dumps({"pid": os.getpid(), "wall": wall, "spent": spent}), flush=True)
