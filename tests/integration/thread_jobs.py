"""Tasks that use threads and processes in every way; run on a worker. The caller passes the sizes."""

import os
import threading
import time
import zlib

import jobs


def barrier(directory, others):
    """Continues once `others` tasks have reached this point, so that they overlap."""
    open(os.path.join(directory, f"{os.getpid()}-{threading.get_ident()}"), "w").close()
    while len(os.listdir(directory)) < others:
        time.sleep(0.01)


def read_and_unpack(path, packed, directory, others):
    barrier(directory, others)
    return jobs.read_whole(path, 1 << 16), len(zlib.decompress(packed))


def in_thread(function, *args):
    """The result of function, called in a thread that is started for it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*args)))
    thread.start()
    thread.join()
    return found[0]


class Reader(threading.Thread):
    """A class defined by the user."""

    def __init__(self, path):
        super().__init__()
        self.path, self.count = path, 0

    def run(self):
        self.count = jobs.read_whole(self.path)


def in_own_class(path):
    thread = Reader(path)
    before = thread.run
    thread.start()
    thread.join()
    assert thread.run == before and "run" not in vars(thread)
    return thread.count


def in_nested_threads(path):
    return in_thread(in_thread, jobs.read_whole, path)


def in_thread_pool(path, times):
    from multiprocessing.pool import ThreadPool

    with ThreadPool(2) as pool:
        return sum([*pool.map(jobs.read_whole, [path] * times), pool.apply(jobs.read_whole, (path,)),
                    *pool.imap(jobs.read_whole, [path]), *pool.imap_unordered(jobs.read_whole, [path])])


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def read_when(go, path):
    wait_for(go)
    return jobs.read_whole(path)


def late_thread(early, late, go):
    """Reads `early`; its thread reads `late` once a file appears, after the task's end."""
    threading.Thread(target=read_when, args=(go, late), daemon=True).start()
    return jobs.read_whole(early)


pools = []


def late_pool(early, late, go):
    from concurrent.futures import ThreadPoolExecutor

    pools.append(ThreadPoolExecutor(1))
    pools[-1].submit(read_when, go, late)
    return jobs.read_whole(early)


def late_timer(early, late, go):
    def again():
        if os.path.exists(go):
            jobs.read_whole(late)
        else:
            timer()

    def timer():
        threading.Timer(0.05, again).start()

    timer()
    return jobs.read_whole(early)


def submit_late_from_loop(go, path):
    """An event loop keeps the task's context and submits work long after the task has ended."""
    import asyncio

    async def later():
        while not os.path.exists(go):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(jobs.read_whole, path)

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(later(), loop)


service = {}


def ask_service(path):
    """A thread that the first task needs and that serves all other tasks too."""
    import queue

    def serve():
        while True:
            name, answer = service["questions"].get()
            answer.put(jobs.read_whole(name))

    if not service:
        service["questions"] = queue.Queue()
        threading.Thread(target=serve, daemon=True).start()
    answer = queue.Queue()
    service["questions"].put((path, answer))
    return answer.get()


# --- tasks that leave their thread

def sleep_and_read(path):
    time.sleep(0.5)
    return jobs.read_whole(path)


def nested(inner_path, outer_path):
    from distributed import worker_client

    n = jobs.read_whole(outer_path)
    with worker_client() as client:
        return n, client.submit(sleep_and_read, inner_path, pure=False, key=jobs.unique("inner")).result()


def nested_get_client(inner_path, outer_path):
    from distributed import get_client, rejoin, secede

    client = get_client()
    future = client.submit(sleep_and_read, inner_path, pure=False, key=jobs.unique("inner"))
    n = jobs.read_whole(outer_path)
    secede()
    inner = future.result()
    rejoin()
    return n + jobs.read_whole(outer_path), inner


def seceded(path, go):
    """Leaves its pool and waits; the tasks that run in its place count for themselves."""
    from distributed import secede

    secede()
    return read_when(go, path)


async def async_read(path):
    import asyncio

    await asyncio.sleep(0.1)
    return jobs.read_whole(path)


class Counter:
    def __init__(self):
        self.n = 0

    def read(self, path):
        self.n += jobs.read_whole(path)
        return self.n

    async def read_async(self, path):
        import asyncio

        await asyncio.sleep(0.1)
        return jobs.read_whole(path)

    def fail(self):
        raise ValueError("told so")


# --- tasks with processes

def read_in_child(path, status):
    """Returns what a forked child read, which ends without Python's shutdown, and the child's exit status."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(jobs.read_whole(path)).encode())
        os._exit(status)
    os.close(write)
    count = int(os.read(read, 100))
    os.close(read)
    return count, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_with(method, early, path, processes):
    """Reads one file itself and lets processes read the other."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    n = jobs.read_whole(early)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context(method)) as pool:
        return n, sum(pool.map(jobs.read_whole, [path] * processes))


def spin_in_child(seconds):
    """CPU time of a forked child, measured by the child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        while time.process_time() < seconds:
            pass
        os.write(write, repr(time.process_time()).encode())
        os._exit(0)
    os.close(write)
    used = float(os.read(read, 100))
    os.close(read)
    os.waitpid(pid, 0)
    return used


def read_and_tell(path):
    return jobs.read_whole(path), os.getpid()


def spin_threads(n, seconds):
    """CPU of native threads that no Python code starts: numba's."""
    import numba
    import numpy

    numba.set_num_threads(n)

    @numba.njit(parallel=True)
    def work(rounds):
        out = numpy.zeros(n)
        for i in numba.prange(n):
            x = 0.0
            for k in range(rounds):
                x += (k % 7) * 1e-9
            out[i] = x
        return out.sum()

    work(10)
    started = time.process_time(), time.thread_time()
    while time.process_time() - started[0] < seconds:
        work(5_000_000)
    return time.process_time() - started[0], time.thread_time() - started[1]
