"""A built library in this process: loaded once, called with the GIL released.

Threads are those of the library's OpenMP. Those of GCC do not survive a fork: a child of a process that has called one
computes on one thread, where it would wait forever for threads that it has not.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from tilesmith.app.runtime.build import BuiltLibrary
from tilesmith.app.runtime.errors import RunError


class _Forks:
    """`called`: a library was called in this process or one that it was forked from; `child`: in one of those."""

    called = False
    child = False


def _after_fork() -> None:
    _Forks.child = _Forks.called


os.register_at_fork(after_in_child=_after_fork)


class Library:
    """The loaded library. Raises RunError where it cannot be loaded."""

    __slots__ = ("_entry", "_get_threads", "_set_threads", "path")

    def __init__(self, built: BuiltLibrary) -> None:
        try:
            loaded = ctypes.CDLL(str(built.path))
        except OSError as error:
            raise RunError("run_failure", f"the compiled library cannot be loaded: {error}") from None
        self.path = built.path
        self._entry = loaded[f"{built.entry}_argv"]
        self._entry.argtypes, self._entry.restype = (ctypes.c_void_p,), ctypes.c_int32
        self._get_threads: Callable[[], int] | None = getattr(loaded, "omp_get_max_threads", None)
        self._set_threads: Callable[[int], object] | None = getattr(loaded, "omp_set_num_threads", None)

    def call(self, address: int, threads: int | None) -> int:
        """The entry's answer to the array of pointers at `address`, on so many threads; None: as many as OpenMP has."""
        if _Forks.child:
            threads = 1
        _Forks.called = True
        if threads is None or self._get_threads is None or self._set_threads is None:
            answer: int = self._entry(address)
            return answer
        before = self._get_threads()
        self._set_threads(threads)
        try:
            answer = self._entry(address)
        finally:
            self._set_threads(before)
        return answer
