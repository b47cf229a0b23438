"""What test_findings.py runs on workers, and some of test_cause_first.py, without coffea: each function causes one finding."""

import contextlib
import hashlib
import importlib
import os
import socket
import subprocess
import sys
import threading
import time
import zlib


def cpu():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def spin(seconds):
    """Python code until this thread has used that much CPU."""
    n, end = 0, cpu() + seconds
    while cpu() < end:
        n += 1
    return n


def loop(steps):
    """Python code of that many steps."""
    n = 0
    for i in range(steps):
        n += i & 3
    return n


def rest(seconds):
    time.sleep(seconds)


def rest_until(path, seconds):
    """Waits at least that long, and until the file exists."""
    time.sleep(seconds)
    while not os.path.exists(path):
        time.sleep(0.05)


def wait_for_a_lock(seconds):
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(timeout=seconds)


shared_lock = threading.Lock()


def hold_lock(seconds, lock=True):
    """Holds a lock around code that only waits."""
    with shared_lock if lock else contextlib.nullcontext():
        time.sleep(seconds)


def ask(address, seconds):
    """Waits for a server that answers late."""
    with socket.create_connection(address) as s:
        s.sendall(b"GET /%f HTTP/1.1\r\nHost: x\r\n\r\n" % seconds)
        return len(s.recv(1000))


def ask_often(address, times, seconds):
    with socket.create_connection(address) as s:
        for _ in range(times):
            s.sendall(b"GET /%f HTTP/1.1\r\nHost: x\r\n\r\n" % seconds)
            s.recv(1000)


def download_beside(address, size):
    """Downloads in a thread that it starts directly."""
    def get():
        got = 0
        with socket.create_connection(address) as s:
            s.sendall(b"GET /size/%d HTTP/1.1\r\nHost: x\r\n\r\n" % size)
            while got < size:
                got += len(s.recv(1 << 20))

    thread = threading.Thread(target=get)
    thread.start()
    thread.join()


def share_one_core(seconds):
    """Computes without the interpreter lock, on the same core as all other threads that run this."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        data, end = bytes(4 << 20), cpu() + seconds
        while cpu() < end:
            hashlib.sha256(data)
    finally:
        os.sched_setaffinity(0, range(os.cpu_count()))


def stop_for(seconds):
    """Stops the whole process, as a debugger or a freezer does."""
    code = "sleep 0.2; kill -STOP $0; sleep $1; kill -CONT $0"
    child, end = subprocess.Popen(["sh", "-c", code, str(os.getpid()), str(seconds)]), time.monotonic() + seconds + 0.2
    while time.monotonic() < end:  # it is stopped in no call
        pass
    child.wait()


def unpack_lzma(seconds):
    import lzma

    data, end = lzma.compress(os.urandom(300_000) * 2), cpu() + seconds
    while cpu() < end:
        lzma.decompress(data)


def unpack_two(seconds):
    """Two codecs, so that the cost of the slow one can be computed from the speed of the other."""
    import lzma

    raw = os.urandom(250_000).hex().encode()  # of random bytes both only make copies
    fast = zlib.compress(raw, 1)
    for _ in range(40):
        zlib.decompress(fast)
    data, end = lzma.compress(raw, preset=0), cpu() + seconds
    while cpu() < end:
        lzma.decompress(data)


def pack(seconds):
    data, end = os.urandom(1 << 20), cpu() + seconds
    while cpu() < end:
        zlib.compress(data)


def unpack_noise(size):
    data = zlib.compress(os.urandom(1 << 20))
    for _ in range(size >> 20):
        zlib.decompress(data)


def read_small(path, calls, size):
    fd = os.open(path, os.O_RDONLY)
    try:
        return sum(len(os.pread(fd, size, i * size)) for i in range(calls))
    finally:
        os.close(fd)


def read_large(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def read_around_the_cache(path, seconds, size=4 << 20):
    """Waits for the disk repeatedly."""
    import mmap

    buffer, end = mmap.mmap(-1, size), time.monotonic() + seconds
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        while time.monotonic() < end:
            os.lseek(fd, 0, os.SEEK_SET)
            while os.readv(fd, [buffer]) > 0 and time.monotonic() < end:
                pass
    finally:
        os.close(fd)


def fail():
    raise ValueError("on purpose")


def fail_once(marker):
    if os.path.exists(marker):
        return
    open(marker, "w").close()
    raise ValueError("on purpose")


def hold(size):
    return os.urandom(size)


def use(data):
    return len(data)


def die_once(marker):
    if os.path.exists(marker):
        return
    open(marker, "w").close()
    os.kill(os.getpid(), 9)


async def asynchronous():
    return 1


def nothing(i):
    return i


def import_much(directory, first):
    """A module of 2 MB whose import takes 1.5 s."""
    if not first:
        return
    path = os.path.join(directory, "much_to_import.py")
    with open(path, "w") as f:
        f.write(f"import time\nTEXT = {'x' * 2_000_000!r}\ntime.sleep(1.5)\n")
    sys.path.insert(0, directory)
    importlib.import_module("much_to_import")


def ignore(_):
    return 0


def unpack(directory):
    """Runs in the scheduler, too, which pickles it again: it does not import."""
    if "CREMA_COLLECTOR" in os.environ:
        sys.path.insert(0, directory)
        importlib.import_module("needed_to_unpack")
    return NeedsModule(directory)


class NeedsModule:
    """Unpickling it imports a module of 2 MB that computes for 2.5 s. The worker unpickles it outside tasks."""

    def __init__(self, directory):
        self.directory = directory

    def make(self):
        with open(os.path.join(self.directory, "needed_to_unpack.py"), "w") as f:
            f.write(f"import time\nTEXT = {'x' * 2_000_000!r}\nend = time.process_time() + 2.5\nwhile time.process_time() < end:\n    pass\n")
        return self

    def __reduce__(self):
        return unpack, (self.directory,)


class Awkward:
    """An object that is slow to pickle."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __sizeof__(self):
        return 300_000_000  # so that Dask soon spills it

    def __reduce__(self):
        spin(self.seconds)
        return unpacked, (self.seconds,)


def unpacked(seconds):
    spin(seconds)
    return Awkward(seconds)


def make_awkward(seconds):
    return Awkward(seconds)


native = {}


def native_spin():
    """Makes a function of machine code that computes, as those of libraries' pools, and finds how fast it is."""
    import numba

    @numba.cfunc("int64(int64)")
    def spins(number):
        x = number
        for i in range(number):
            x = (x * 1103515245 + i) ^ (x >> 3)
        return x

    before = time.thread_time()
    spins.ctypes(50_000_000)
    native.update(spins=spins, rate=50_000_000 / (time.thread_time() - before))


def beside_a_native_thread(seconds):
    """Waits for a thread that computes, and that the library does not know to be of this task."""
    import ctypes

    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(native["spins"].address), ctypes.c_void_p(int(seconds * native["rate"])))
    libc.pthread_join(thread, None)


def child_spins(seconds):
    import sys

    subprocess.run([sys.executable, "-S", "-c", f"import time\nwhile time.process_time() < {seconds}: pass"], check=True)


kept = []


def leak(size):
    kept.append(os.urandom(size))


def fill(size, seconds):
    data = os.urandom(size)
    time.sleep(seconds)
    return len(data)


def ask_in_vain(address):
    """The server closes the connection instead of answering."""
    with socket.create_connection(address) as s:
        s.sendall(b"GET /close HTTP/1.1\r\nHost: x\r\n\r\n")
        return len(s.recv(100))


def resident():
    import resource

    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
