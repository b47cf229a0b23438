"""Tasks that use threads and processes in every way; run on a worker. Sizes are told by the caller."""

import os
import threading
import time
import zlib

import jobs


def barrier(directory, others):
    """Goes on once as many tasks as `others` are at this point, so that they overlap."""
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
    """A class of the user's own."""

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
    """Reads early itself; its thread reads late once somebody says so, after the task's end."""
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


def submit_late(go, path):
    from concurrent.futures import ThreadPoolExecutor

    wait_for(go)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(jobs.read_whole, path).result()


service = {}


def ask_service(path):
    """A thread that the first task needs and that serves all others too."""
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

def nested(inner_path, outer_path):
    from distributed import worker_client

    n = jobs.read_whole(outer_path)
    with worker_client() as client:
        return n, client.submit(jobs.read_whole, inner_path, pure=False, key=jobs.unique("inner")).result()


def nested_get_client(inner_path, outer_path):
    from distributed import get_client, rejoin, secede

    client = get_client()
    future = client.submit(jobs.read_whole, inner_path, pure=False, key=jobs.unique("inner"))
    n = jobs.read_whole(outer_path)
    secede()
    inner = future.result()
    rejoin()
    return n + jobs.read_whole(outer_path), inner


def seceded(path, go):
    """Leaves its pool and waits; whoever takes its place counts for itself."""
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
