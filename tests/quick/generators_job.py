"""A worker's process whose only task loops over two generators: each step suspends and resumes both. Prints the CPU time of the loop."""

import json
import sys
import time

import small_worker

seconds = float(sys.argv[1])


def numbers():
    k = 0
    while True:
        k += 1
        yield k


def loop():
    begin = time.thread_time()
    total = 0
    for a, b in zip(numbers(), numbers()):
        total += a * b
        if not a % 1000 and time.thread_time() - begin > seconds:
            break
    return time.thread_time() - begin


worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
spent = []
worker.run("work-1", lambda: spent.append(loop()))
time.sleep(1)
print(json.dumps({"cpu": spent[0]}), flush=True)
