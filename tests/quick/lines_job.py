"""A worker's process whose tasks compute 1 : 2 : 4 on three lines, sleep on a fourth and wait for a lock on a fifth. Before that they compute
for as long as samples after a pause are far apart. Prints the seconds on each line by its own clocks."""

import json
import os
import sys
import threading
import time

import small_worker

unit = float(sys.argv[1])
spent = {}


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
        function()  # LINE work
        spent.setdefault(function.__name__, [0, 0])
        spent[function.__name__][0] += time.monotonic() - wall
        spent[function.__name__][1] += time.thread_time() - cpu


worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
began = time.monotonic()
worker.run("work-1", work)
wall = time.monotonic() - began
time.sleep(1)
print(json.dumps({"pid": os.getpid(), "wall": wall, "spent": spent}), flush=True)
