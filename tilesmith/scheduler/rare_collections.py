"""Rare collections: the garbage collector while a pipeline is compiled.

Nearly all that a compilation makes lives until its end and is freed by reference counts then. Python's collector looks
at it again and again meanwhile, after every few hundred new objects, and so takes a tenth of the time and more."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from threading import Lock

MOST_YOUNG = 1_000_000
"""New objects, less those that were freed, after which the collector looks at them: more than most compilations keep.
Of these nearly all live until the end, so that looking at them earlier finds some MB of garbage at most."""


class _RareCollections(ContextDecorator):
    """While anyone is inside, in whichever thread, collections are rare. Whoever leaves collects what is young: no
    garbage is left to who comes next. The last one puts the threshold back; a collector that is switched off stays
    that."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before = 0, 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = young, *others = gc.get_threshold()
                gc.set_threshold(max(young, MOST_YOUNG) if young else 0, *others)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        if gc.isenabled():
            gc.collect(_due())
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.set_threshold(*self._before)


def _due() -> int:
    """The oldest generation that Python would collect now: it does so on its own only when there are many young objects
    again, and compilation after compilation leaves none."""
    older = zip((1, 2), gc.get_count()[1:], gc.get_threshold()[1:], strict=True)
    return max((n for n, count, most in older if count > most), default=0)


rare_collections = _RareCollections()
