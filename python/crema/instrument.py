# SPDX-License-Identifier: BSD-3-Clause
"""Names for parts of your own code, measured by crema where a task runs on a measured worker.

    import crema

    with crema.section("jet_selection"):      # time, CPU, waits and bytes of this part
        with crema.section("btag"):           # is reported as "jet_selection/btag"
            ...

    @crema.section("histos")                  # or a whole function
    def fill(events): ...

    with crema.memory("unflatten"):           # the process's resident memory before and after
        ...

    crema.metric("selected_jets", len(jets))  # a number of your own: count, sum, smallest, largest

Elsewhere (a notebook, a test, a worker that is not measured) all of this does nothing and costs less than
a microsecond. In a task, nothing here raises an exception that it would not also raise elsewhere.

A section is for code that runs without interruption in one thread: inside an async function or a generator,
use it only around code that neither awaits nor yields. A suspended section counts as "broken" or "outside"
and is not measured.
"""

import functools
import inspect

# The library preloaded into a measured worker puts its functions here.
_begin = None
_begin_memory = None
_end = None
_value = None


class _Named:
    """Base of section and memory: an instance can be entered again while it is open."""

    __slots__ = ("name", "_tokens")

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name of a {type(self).__name__} is a str, not {type(name).__name__}")
        self.name = name
        self._tokens = None

    def __call__(self, function):
        if (inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
                or inspect.isasyncgenfunction(function)):
            raise TypeError(f"crema.{type(self).__name__} cannot measure an async function or a generator as a "
                            "whole: use it in a with statement around a part that neither awaits nor yields")
        kind, name = type(self), self.name

        @functools.wraps(function)
        def named(*args, **kwargs):
            with kind(name):
                return function(*args, **kwargs)

        return named

    def __exit__(self, *_):
        if self._tokens is not None:
            token, self._tokens = self._tokens
            _end(token)

    def __reduce__(self):
        return type(self), (self.name,)  # a copy elsewhere is not open


class section(_Named):
    """Time, CPU, waits and bytes of a part of a task; nested sections are reported by path."""

    __slots__ = ()

    def __enter__(self):
        if _begin is not None:
            self._tokens = (_begin(self.name), self._tokens)
        return self


class memory(_Named):
    """Resident memory of the process before and after a part of a task."""

    __slots__ = ()

    def __enter__(self):
        if _begin_memory is not None:
            self._tokens = (_begin_memory(self.name), self._tokens)
        return self


def metric(name, value):
    """Records a number; reported per name: count, sum, smallest and largest."""
    if _value is not None:
        _value(name, value)
