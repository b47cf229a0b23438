"""A minimal worker, for jobs in which only the tasks matter. Import it before anything that crema patches."""

import threading
import types

import stack  # noqa: F401 (from here on its modules are found)

threading.Thread(target=int).start()  # every worker has started a thread before it imports Dask

import distributed.worker as dask
from dask._task_spec import Task

Space = types.SimpleNamespace


class Worker(dask.Worker):
    def __init__(self):
        self.scheduler, self.loop, self.handlers = Space(address="tcp://10.9.8.7:8786"), Space(), {"actor_execute": None}
        self.state = Space(tasks={}, actors={}, nthreads=3, executing_count=2, ready=[1], long_running=[], executed_count=5)
        self.memory_manager, self.nanny, self.address, self.name = Space(memory_limit=7654321), None, "tcp://10.1.1.1:4001", "w-1"

    def run(self, key, function):
        self.state.tasks[key] = Space(key=key, prefix=key.split("-")[0], span_id="the-span", annotations={}, priority=(0, 12, 0), dependencies=[])
        return dask._run_task(Task(function), {}, {"worker": self}, key).get("result")
