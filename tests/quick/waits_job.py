"""A worker's process whose tasks wait long on known lines, for delays that they ask for, some in pool threads. Prints {LINE: seconds of each wait by a
clock around it}."""

import concurrent.futures
import contextlib
import ctypes
import itertools
import json
import os
import queue
import socket
import sys
import threading
import time

import small_worker

orders, spent, unit, numbers = queue.SimpleQueue(), {}, float(sys.argv[1]), itertools.count()


def serve():
    while True:
        delay, function = orders.get()
        time.sleep(delay)
        function()


def later(delay, function, *args):
    """A thread that belongs to no task does it."""
    orders.put((delay, lambda: function(*args)))  # LINE holds


@contextlib.contextmanager
def clock(line):
    begin = time.monotonic()
    yield
    spent.setdefault(line, []).append(time.monotonic() - begin)


def receives():
    near, far = socket.create_connection(listener.getsockname()), listener.accept()[0]
    for _ in range(3):
        later(unit, far.send, b"!")
        with clock("silent"):
            near.recv(1)  # LINE silent
    near.close(), far.close()


def locked():
    lock = threading.Lock()
    lock.acquire()
    for _ in range(2):
        later(unit, lock.release)
        with clock("locked"):
            lock.acquire()  # LINE locked


def asleep():
    for _ in range(4):
        with clock("asleep"):
            time.sleep(unit)  # LINE asleep


def reads():
    later(unit, os.write, pipe[1], b"!")
    with clock("piped"):
        os.read(pipe[0], 1)  # LINE piped


def in_library():
    later(unit, orders_of_task.put, 1)
    with clock("library"):
        orders_of_task.get()  # LINE library


def pooled():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        part = pool.submit(time.sleep, unit)  # LINE submitted
        with clock("result"):
            part.result()  # LINE result
        spent["submitted"] = [unit]


def wants_gil():
    later(0, ctypes.PyDLL(None).usleep, round(unit * 1e6))  # holds it
    with clock("wanted"):
        time.sleep(unit / 4 if unit > 0.2 else 0.015)  # LINE wanted


class Mutex:
    """A pthread mutex, through ctypes, which releases the interpreter lock in a call."""
    libc = ctypes.CDLL(None)

    def __init__(self, kind=0):
        self.bytes, attributes = ctypes.create_string_buffer(64), ctypes.create_string_buffer(16)
        self.libc.pthread_mutexattr_init(attributes)
        self.libc.pthread_mutexattr_settype(attributes, kind)
        self.libc.pthread_mutex_init(self.bytes, attributes)

    def lock(self):
        self.libc.pthread_mutex_lock(self.bytes)  # LINE mutex

    def unlock(self):
        self.libc.pthread_mutex_unlock(self.bytes)


def in_two_tasks(first, second):
    """The second begins when the first reports that it holds its lock."""
    held = threading.Event()
    thread = threading.Thread(target=worker.run, args=(f"{first.__name__}-1", lambda: first(held)))
    thread.start()
    held.wait()
    worker.run(f"{second.__name__}{next(numbers)}-1", second)
    thread.join()


def mutexes():
    """Each wait by another task; the thread that holds the mutex sleeps, and holds another one."""
    for kind in (0, 1, 2) * int(os.environ.get("TIMES", 4)):  # normal, recursive, error checking
        mutex, inner = Mutex(kind), Mutex()

        def holding(held):
            mutex.lock()
            inner.lock()  # nobody waits for it
            held.set()
            time.sleep(unit)  # LINE holding
            inner.unlock()
            mutex.unlock()
            time.sleep(unit / 4)  # LINE after

        def wanting():
            mutex.lock()
            mutex.unlock()

        in_two_tasks(holding, wanting)


@contextlib.contextmanager
def acquired(lock):
    lock.acquire()
    yield
    lock.release()


def taken(lock):
    return lock  # for a `with` of the lock itself


def in_turn(name, wanted, hold, want, pause=time.sleep):
    def holding(held):
        with unrelated, contextlib.suppress(KeyError), hold(wanted):
            for _ in range(2):
                with unrelated_too:
                    held.set()
                    pause(unit / 2)  # LINE in_with
        with unrelated:
            time.sleep(unit / 4)  # LINE after_with

    def wanting():
        with want(wanted):  # LINE with
            pass

    unrelated, unrelated_too = threading.Lock(), threading.RLock()
    wanting.__name__ = f"wanting_{name}"
    in_two_tasks(holding, wanting)


def python_locks():
    """The same with locks of Python's: each is taken in another way."""
    for _ in range(int(os.environ.get("TIMES", 1))):
        in_turn("with", threading.Lock(), taken, taken)
        in_turn("with", threading.Lock(), taken, acquired, pause=threading.Event().wait)
        in_turn("recursive", threading.RLock(), taken, acquired)
        in_turn("recursive", threading.RLock(), acquired, taken)
        in_turn("condition", threading.Condition(), taken, taken)


def unnamed():
    in_turn("unnamed", threading.Lock(), acquired, taken)


def notified():
    """While one thread waits in `wait` within its `with`, another holds the lock."""
    lock = threading.Lock()
    condition, waits = threading.Condition(lock), threading.Event()

    def waiting():
        with lock:
            waits.set()
            condition.wait()

    waiter = threading.Thread(target=worker.run, args=("waiting-1", waiting))
    waiter.start()
    waits.wait()

    def holding(held):
        lock.acquire()
        held.set()
        time.sleep(unit)
        condition.notify()
        lock.release()

    def wanting():
        with lock:
            pass

    in_two_tasks(holding, wanting)
    waiter.join()


def moving():
    mutex = Mutex()

    def holding(held):
        mutex.lock()
        held.set()
        time.sleep(unit / 4)  # LINE shortly
        time.sleep(unit)  # LINE moved
        mutex.unlock()

    def wanting():
        mutex.lock()
        mutex.unlock()

    in_two_tasks(holding, wanting)


def orphaned():
    """The thread that holds the mutex has ended."""
    mutex = Mutex()

    def ending(held):
        mutex.lock()
        held.set()

    thread = threading.Thread(target=ending, args=(threading.Event(),))
    thread.start()
    thread.join()
    later(unit, mutex.unlock)
    worker.run("orphaned-1", mutex.lock)


def branch(way, depth):
    if not depth:
        time.sleep(unit)  # LINE branch
    elif way & 1:
        branch(way >> 1, depth - 1)
    else:
        branch(way >> 1, depth - 1)


def many():
    """Each wait from another stack."""
    for way in range(256):
        with clock("branch"):
            branch(way, 8)


def deep():
    with clock("branch"):
        branch(0, 120)


threading.Thread(target=serve, daemon=True).start()
listener, pipe, orders_of_task = socket.create_server(("127.0.0.1", 0)), os.pipe(), queue.Queue()
worker = small_worker.Worker()
worker.start_unsafe()
time.sleep(0.5)  # its agent reads this process in that time
for task in [globals()[name] for name in sys.argv[2:]] or (receives, locked, asleep, reads, in_library, pooled, wants_gil):
    if task in (mutexes, python_locks, unnamed, notified, moving, orphaned):
        worker.run("warm-1", lambda: time.sleep(1))  # samples follow each other from then on
        task()
    else:
        worker.run(f"{task.__name__}-1", task)
time.sleep(0.5)
print(json.dumps(spent), flush=True)
