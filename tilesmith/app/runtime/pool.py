"""The embedded pool: jobs as `concurrent.futures` has them, that can be cancelled while they run.

Threads suffice: a job's heavy part is a child process, which is killed on time or on cancel, so that
no compiler and no program can hold a worker.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, ParamSpec, TypeVar

from tilesmith.app.runtime.errors import Cancelled
from tilesmith.app.runtime.sandbox import cancel_event

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(Executor):
    """A pool of at most `workers` jobs at a time; the others wait in order."""

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="worker")
        self._events: dict[Future[Any], Event] = {}
        self._lock = Lock()

    remote = False

    def lane(self, machine: str) -> str:
        """The lane of a machine: all jobs have the same one here."""
        return ""

    def room(self, running: Counter[str]) -> tuple[bool, frozenset[str]]:
        """Room for another job: who submits has as many threads as this."""
        return True, frozenset()

    def documents(self) -> Mapping[str, Any]:
        """Machines beside this one: none."""
        return {}

    def threads(self) -> Mapping[str, int]:
        """Threads elsewhere: none."""
        return {}

    def away(self, lane: str) -> bool:
        """Whoever does the jobs is here."""
        return False

    def remember(self, machines: Collection[str]) -> None:
        """Machines that may be away: there are none here."""

    def submit_to(self, lane: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits a call to the workers of one lane; else as `submit`."""
        return self.submit(fn, *args, **kwargs)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future of `fn(*args, **kwargs)`, in a copy of the caller's context; RuntimeError after shutdown."""
        event = Event()
        context = contextvars.copy_context()
        future = self._threads.submit(lambda: context.run(_cancellable, event, fn, *args, **kwargs))
        with self._lock:
            self._events[future] = event
        future.add_done_callback(self._forget)
        return future

    def cancel(self, future: Future[T]) -> bool:
        """Cancel a job of this pool: one that waits never starts; of one that runs the program is killed, and the
        future ends with `Cancelled`. False where it has ended already."""
        if future.cancel():
            return True
        with self._lock:
            event = self._events.get(future)
        if event is None or future.done():
            return False
        event.set()
        return True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; with `cancel_futures` cancel those that wait and those that run."""
        if cancel_futures:
            with self._lock:
                events = list(self._events.values())
            for event in events:
                event.set()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _forget(self, future: Future[T]) -> None:
        with self._lock:
            self._events.pop(future, None)


def _cancellable(event: Event, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`fn` with the programs that it runs bound to `event`."""
    if event.is_set():
        raise Cancelled
    token = cancel_event.set(event)
    try:
        return fn(*args, **kwargs)
    finally:
        cancel_event.reset(token)
