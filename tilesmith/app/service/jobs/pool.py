"""The pool of a service, as its runner of jobs sees it: threads here, or a Dask cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, Protocol


class Pool(Protocol):
    """The pool that does the work: concurrent.futures, and `cancel`, which also stops what a running future runs. A
    `lane` is a kind of machine that a job has to be done on, or any."""

    remote: bool
    """True if what is submitted runs in other processes, with data folders of their own."""

    def lane(self, machine: str) -> str: ...

    def room(self, running: Counter[str]) -> tuple[bool, frozenset[str]]: ...

    def documents(self) -> Mapping[str, Any]:
        """The platforms of the machines that are there, by name."""
        ...

    def threads(self) -> Mapping[str, int]:
        """Threads of workers elsewhere that take jobs, by kind of machine."""
        ...

    def away(self, lane: str) -> bool:
        """True if nobody is there to do jobs of that lane."""
        ...

    def remember(self, machines: Collection[str]) -> None:
        """There are machines of these kinds, though they may be away: jobs for them wait."""
        ...

    def submit_to(self, lane: str, fn: Callable[..., Any], /, *args: Any) -> Future[Any]: ...

    def cancel(self, future: Future[Any]) -> bool: ...

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None: ...
