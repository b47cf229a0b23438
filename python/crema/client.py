# SPDX-License-Identifier: BSD-3-Clause
"""Records what the client's thread does from the start of an analysis to its end: seconds by part.

Each moment belongs to one part: that of the innermost running function in HOOKS on the thread; inside "preprocess" and "wait",
inner functions do not count. Outside of all of them it is "own", the analysis' own code. The times of waits are kept:
the report divides them by what the workers did meanwhile (collector/report/wall.c). Time is CLOCK_MONOTONIC; a record has one pair with UTC.

`crema run` executes this text inside the client before its first line (shim/python/py_client.c); `crema.measure` imports it. A hook
calls the original with its arguments, on any thread, whatever happens here. If a hooked name is missing in its module,
these parts are unknown (`unseen`). Functions are replaced after the import of their module, and so are names that other modules
bound before. A record also has the functions that are sent to workers without the name of their file. It uses only the standard
library, and at the start only modules that Python has loaded already.
"""
import sys
import time
from _thread import get_ident

FORMAT = 1
MOST_WAITS = 10000
MOST_KEYS = 512
MOST_CELLS, MOST_FUNCTIONS = 500, 20000  # with code that is sent by value
KEYS_OF_A_CALL = 4
SAVE_SECONDS = 1.0  # between two writes of the file
OPTIMIZED = 1  # a flag of functions, which modules and classes do not have
WHOLE = ("preprocess", "wait")  # calls inside do not count separately
# module: ((name, part or a function that returns it), ...)
HOOKS = {
    "dask.base": (("compute", "graph"), ("persist", "graph"), ("optimize", "graph")),
    "distributed.utils": (("sync", "_part_of_sync"),),
    "distributed.client": (
        ("Client.map", "graph"), ("Client.submit", "graph"), ("Client.get", "graph"), ("Client.compute", "graph"),
        ("Client.persist", "graph"), ("Client._graph_to_futures", "_send"), ("Client.scatter", "send"),
        ("Client.__init__", "workers"), ("Client.close", "close"), ("Client.wait_for_workers", "workers"),
        ("as_completed.__next__", "wait")),
    "distributed.deploy.spec": (("SpecCluster.__init__", "workers"),),
    "distributed.deploy.cluster": (("Cluster.close", "close"),),
    "dask_awkward.lib.core": (
        ("map_partitions", "graph"), ("_map_partitions", "graph"), ("new_array_object", "graph"),
        ("non_trivial_reduction", "graph"), ("Array.__getitem__", "graph"), ("Array.__getattr__", "graph"),
        ("Array.__array_ufunc__", "graph")),
    "uproot._dask": (("dask", "graph"),),
    "coffea.dataset_tools.apply_processor": (("apply_to_dataset", "graph"), ("apply_to_fileset", "graph")),
    "coffea.dataset_tools.preprocess": (("preprocess", "preprocess"),),
    "coffea.processor.executor": (
        ("Runner.__call__", "graph"), ("Runner.run", "graph"), ("Runner.preprocess", "preprocess"), ("IterativeExecutor.__call__", "wait"),
        ("FuturesExecutor.__call__", "wait"), ("accumulate", "gather"), ("_decompress", "gather")),
}
_SYNC = {**dict.fromkeys(("_wait_for_workers", "_start", "_correct_state", "__aenter__"), "workers"),
         "_close": "close", "_shutdown": "close", "_scatter": "send"}
_WRAPPER = """def hook(*args, **kwargs):
    if thread() != on.thread:
        return original(*args, **kwargs)
    depth = enter(part, args)
    try:
        return original(*args, **kwargs)
    finally:
        leave(depth)
"""
# Under the name of importlib's file, so that these frames are left out of tracebacks, as its own are.
_IMPORT = """def _find_and_load(name, import_):
    if thread() != on.thread:
        return original(name, import_)
    depth = enter("imports", ())
    try:
        return original(name, import_)
    finally:
        leave(depth)
        imported(name)
"""


def _part_of_sync(args):
    return _SYNC.get(getattr(args[1], "__name__", None), "wait") if len(args) > 1 else "wait"


class Recorder:
    """One per process; all calls are on the thread that it records."""

    def __init__(self, begin=None, outside="start"):
        self.thread = get_ident()
        self.since = time.perf_counter() if begin is None else begin
        self.stack, self.keys, self.unseen, self.replaced = [], [], {}, []
        self.outside = outside  # the part while no hooked function is running
        self.seconds = {}       # by part, without waits
        self.waits = []         # [begin, end, when something was sent since the previous one]
        self.sent_at = None
        self.local = None       # whether the scheduler has this machine's clock
        self.after_wait = self.client = self.ahead = None
        self.main = {}          # code of the main module that has called hooked functions, by id
        self.start = self.mark(self.since)

    def turn(self, now):
        part = self.stack[-1] if self.stack else self.outside
        if part != "wait":
            self.seconds[part] = self.seconds.get(part, 0.0) + now - self.since
        elif self.waits and self.waits[-1][1] == self.since:
            self.waits[-1][1] = now
        elif len(self.waits) < MOST_WAITS:
            self.waits.append([self.since, now, self.sent_at])
            self.sent_at = None
        else:  # its position is lost, so its time is unattributed
            self.unseen["wait"] = f"more than {MOST_WAITS} waits"
        self.since = now

    def mark(self, now=None):
        """A point in time at which a record may begin or end."""
        now = time.perf_counter() if now is None else now
        self.turn(now)
        return now, dict(self.seconds), len(self.waits)

    def enter(self, part, args):
        depth = len(self.stack)
        try:
            if self.stack and self.stack[-1] in WHOLE:
                part = self.stack[-1]
            else:
                self.turn(time.perf_counter())
                if not depth and part != "imports":
                    self.called_by(sys._getframe(2))
                if part == "_send":
                    part = "send"
                    self.sent(*args[:3])
                elif part == "_part_of_sync":
                    part = _part_of_sync(args)
            self.stack.append(part)
        except Exception as error:
            self.failed(error)
        return depth

    def called_by(self, frame):
        """Keeps the code of the main script, or of the notebook's cell."""
        main = getattr(sys.modules.get("__main__"), "__dict__", None)
        while frame is not None and (frame.f_globals is not main or frame.f_code.co_flags & OPTIMIZED):
            frame = frame.f_back
        if frame is not None and len(self.main) < MOST_CELLS:
            self.main[id(frame.f_code)] = frame.f_code

    def leave(self, depth):
        try:
            stack = self.stack
            outer = depth and stack[depth - 1] in WHOLE
            if len(stack) > depth:
                waited = stack[depth] == "wait" and not outer
                if not outer:
                    self.turn(time.perf_counter())
                del stack[depth:]
                if waited and self.after_wait:
                    self.after_wait()
        except Exception as error:
            self.failed(error)

    def failed(self, error):
        self.unseen.setdefault("own", f"{type(error).__name__}: {error}")

    def sent(self, client, graph=None, keys=()):
        """A call's first keys: the run that has them is the one that this client submitted."""
        address = str(getattr(getattr(client, "scheduler", None), "address", ""))
        host = address.partition("://")[2].rpartition(":")[0]
        here = address.startswith("inproc://") or host in ("127.0.0.1", "localhost", "[::1]")
        self.client = client if self.after_wait and not here and self.ahead is None else None
        self.local = here if self.local is None else self.local and here
        now = self.sent_at = time.perf_counter()
        for key in _first_keys(keys, KEYS_OF_A_CALL):
            if len(self.keys) >= MOST_KEYS:
                del self.keys[MOST_KEYS // 2]
            self.keys.append((now, key))

    def ask(self):
        """Queries the scheduler's clock, once, in the client's event loop: this thread does not wait for the response."""
        client, self.client = self.client, None
        if client is None:
            return

        async def question():
            try:
                before = time.time()
                there = await client._run_on_scheduler(time.time)
                self.ahead = there - (before + time.time()) / 2
            except Exception:  # closed by now: the clock stays unknown
                pass

        client.loop.add_callback(question)

    # --- hooks

    def install(self):
        from importlib import _bootstrap

        try:
            self.replace(vars(_bootstrap), "_find_and_load", _bootstrap._find_and_load, "imports", _IMPORT,
                         "<frozen importlib._bootstrap>")
        except Exception as error:
            self.unseen["imports"] = f"{type(error).__name__}: {error}"
        for name in HOOKS:
            self.imported(name)
        self.replace_bound()

    def uninstall(self):
        for space, name, hook, original in reversed(self.replaced):
            if (space if isinstance(space, dict) else vars(space)).get(name) is hook:
                _put(space, name, original)
        self.replaced = []

    def imported(self, name):
        try:
            if name not in HOOKS or name not in sys.modules:
                return
            module = sys.modules[name]
            if getattr(getattr(module, "__spec__", None), "_initializing", False):
                return
            for path, part in HOOKS[name]:
                self.hook(module, path, part)
        except Exception as error:
            self.failed(error)

    def hook(self, module, path, part):
        owner, _, name = path.rpartition(".")
        space = getattr(module, owner, None) if owner else module
        original = vars(space).get(name) if space is not None else None
        if not callable(original) or type(original).__name__ != "function":
            for unknown in (part.replace("_part_of_sync", "wait").lstrip("_"), "graph", "own"):
                self.unseen[unknown] = f"{module.__name__}.{path} is missing"
        elif not any(made is original for _, _, made, _ in self.replaced):
            self.replace(space if owner else vars(space), name, original, part, _WRAPPER, "<crema>")

    def replace(self, space, name, original, part, text, file):
        """The function keeps its names; tools that skip the frames of its module also skip the hook's."""
        inside = {"__name__": original.__module__, "original": original, "part": part, "thread": get_ident, "on": self,
                  "enter": self.enter, "leave": self.leave, "imported": self.imported}
        exec(compile(text, file, "exec"), inside)
        hook = inside["_find_and_load" if text is _IMPORT else "hook"]
        for field in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            setattr(hook, field, getattr(original, field))
        vars(hook).update(vars(original))
        if text is not _IMPORT:
            hook.__wrapped__ = original
        _put(space, name, hook)
        self.replaced.append((space, name, hook, original))

    def replace_bound(self):
        """Replaces names that other modules bound before: from dask import compute."""
        hooks = {id(original): (hook, original) for space, _, hook, original in self.replaced if isinstance(space, dict)}
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            for name, value in list(space.items()) if type(space) is dict else ():
                hook, original = hooks.get(id(value), (None, None))
                if hook is not None and value is original:
                    space[name] = hook
                    self.replaced.append((space, name, hook, original))

    # --- the record

    def record(self, begin, end, clock_ahead=None, ended=True):
        """From one mark() to a later one, for `crema report --client-record`; `ended`: it is complete."""
        (b, before, first), (e, after, last) = begin, end
        utc = time.time() - (time.perf_counter() - b)
        if clock_ahead is None and self.local is not False:
            clock_ahead = 0.0
        seconds = {part: value - before.get(part, 0.0) for part, value in after.items() if value != before.get(part)}
        waits = [[max(w, b) - b, min(x, e) - b, sent and sent - b] for w, x, sent in self.waits[max(first - 1, 0):last] if x > b and w < e]
        return {"format": FORMAT, "begin_utc": utc, "wall": e - b, "clock_ahead": clock_ahead, "seconds": seconds, "waits": waits,
                "keys": [f"{_hash(key):x}" for at, key in self.keys if b <= at <= e], "unseen": dict(self.unseen), "ended": ended,
                "code": _sent_by_value(list(self.main.values()))}


def _put(space, name, value):
    if isinstance(space, dict):
        space[name] = value
    else:
        setattr(space, name, value)


def _first_keys(keys, most):
    """Consumes no iterator."""
    found = []
    for key in keys if isinstance(keys, (list, set, frozenset)) else [keys]:
        if len(found) >= most:
            break
        if isinstance(key, list):
            found += _first_keys(key, most - len(found))
        elif isinstance(key, (str, tuple)) and key:
            found.append(str(key))
    return found


def _hash(key):
    """The same hash as the shim's: FNV-1a, 64 bits."""
    found = 0xCBF29CE484222325
    for byte in key.encode("utf-8", "surrogatepass"):
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found


def _sent_by_value(running):
    """[[file, [[function, first line, last line], ...]], ...] of the main script, a notebook's cells, and modules that are
    registered for it: newer cloudpickle sends their code without the file's name (collector/report/code_names.h). `running`:
    code of the main module that has called a hooked function."""
    try:
        registered = getattr(sys.modules.get("cloudpickle.cloudpickle"), "_PICKLE_BY_VALUE_MODULES", ())
        cells, found = _cells(), []
        for name, module in list(sys.modules.items()):
            if name == "__main__" or any(name == known or name.startswith(known + ".") for known in registered):
                of = _functions(module, running if name == "__main__" else ())
                found += [[f"In[{cells[file]}]" if file in cells else file, sorted(rows)] for file, rows in of.items() if rows]
        return found if sum(len(rows) for _, rows in found) <= MOST_FUNCTIONS else []
    except Exception:  # lines keep the name that they have
        return []


def _functions(module, running=()):
    """{file: functions} of the module. Of its variables only functions and classes are touched."""
    function, files, latest = type(_take), {}, {}
    for name, value in list(vars(module).items()):
        for one in [value, *(list(vars(value).values()) if issubclass(type(value), type) else [])]:
            if type(one) in (staticmethod, classmethod):
                one = one.__func__
            if type(one) is not function or one.__module__ != module.__name__:
                continue
            for each in (one, vars(one).get("__wrapped__")):
                file = each.__code__.co_filename if type(each) is function else "<dynamic-code>"
                if file != "<dynamic-code>":  # the client's own copy of what it sent
                    latest.setdefault(name, set()).add(file)
                    _take(each.__code__, files.setdefault(file, set()))
    for code in running:  # a cell that was changed and run again has replaced what the first one defined
        file, rows = code.co_filename, set()
        _take(code, rows)
        files.setdefault(file, set()).update(row for row in rows if file in latest.get(row[0].split(".")[0], (file,)))
    return files


def _take(code, found):
    """Adds it and the functions within it."""
    lines = [line for _, _, line in code.co_lines() if line]
    if lines and code.co_flags & OPTIMIZED:
        found.add((getattr(code, "co_qualname", code.co_name), code.co_firstlineno, max(lines)))
    for inner in code.co_consts:
        if hasattr(inner, "co_lines"):
            _take(inner, found)


def _cells():
    """{file: number} of a notebook's cells."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return dict(getattr(getattr(shell, "compile", None), "_filename_map", {}))


def running():
    """The recorder that `crema run` has started in this process, or None."""
    return getattr(sys.modules.get("_crema_client"), "recorder", None)


# --- for `crema run`


def start(path, begin_ns):
    """Records this thread from `begin_ns` (CLOCK_MONOTONIC) to the end of Python. The file is written after waits and at the end:
    if the client is killed, it has the record until the last write."""
    import atexit
    import os

    recorder = Recorder(begin_ns / 1e9)
    recorder.turn(time.perf_counter())
    recorder.outside = "own"
    process, saved = os.getpid(), [0.0]

    def save(ended):
        import json

        if os.getpid() == process:  # not a forked child
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(recorder.record(recorder.start, recorder.mark(), recorder.ahead, ended), file)
            os.replace(f"{path}.new", path)
            saved[0] = time.perf_counter()

    def after_wait():
        recorder.ask()
        if time.perf_counter() > saved[0] + SAVE_SECONDS:
            save(False)

    def at_exit():
        try:
            save(True)
        except Exception:  # a full disk must not fail the analysis
            pass

    recorder.after_wait = after_wait
    module = type(sys)("_crema_client")
    vars(module).update(globals(), recorder=recorder)
    sys.modules["_crema_client"] = module
    recorder.install()
    atexit.register(at_exit)
