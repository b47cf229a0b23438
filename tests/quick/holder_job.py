"""A worker's process with two tasks that need the interpreter lock for a moment every millisecond, while the lock is held by
a third task on one line after the other, then by a thread without a task. Prints how long it was held on each line."""

import itertools
import json
import select
import sys
import threading
import time

import small_worker

unit = float(sys.argv[1])
spent = {}
done = threading.Event()


def hold():
    return sum(itertools.repeat(1, 5_000_000))  # LINE hold


def holders():
    return {
        0: lambda: sum(itertools.repeat(1, 5_000_000)),  # LINE 0
        1: lambda: sum(itertools.repeat(1, 6_000_000)),  # LINE 1
        2: lambda: sum(itertools.repeat(1, 7_000_000)),  # LINE 2
        3: lambda: sum(itertools.repeat(1, 8_000_000)),  # LINE 3
        4: lambda: max(itertools.repeat(1, 5_000_000)),  # LINE 4
        5: lambda: max(itertools.repeat(1, 6_000_000)),  # LINE 5
        6: lambda: max(itertools.repeat(1, 7_000_000)),  # LINE 6
        7: lambda: max(itertools.repeat(1, 8_000_000)),  # LINE 7
    }


def greedy():
    for line, function in holders().items():
        end = time.monotonic() + unit * (6 if line == 7 else 1)  # one line stands out
        while (begin := time.monotonic()) < end:
            function()
            spent[line] = spent.get(line, 0) + time.monotonic() - begin


def outside():
    begin = time.monotonic()
    while time.monotonic() < begin + unit:
        hold()
    spent["hold"] = time.monotonic() - begin


def needy():
    while not done.is_set():
        select.select([], [], [], 0.001)  # releases the lock, and then needs it again


worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
worker.run("settle-0", lambda: [sum(range(20_000)) for _ in range(1000)])  # samples after a pause are far apart
needing = [threading.Thread(target=worker.run, args=(f"needy-{i}", needy)) for i in range(2)]
for thread in needing:
    thread.start()
worker.run("greedy-1", greedy)
holder = threading.Thread(target=outside)
holder.start()
holder.join()
done.set()
for thread in needing:
    thread.join()
time.sleep(1)
print(json.dumps(spent), flush=True)
