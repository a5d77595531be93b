"""Progress of a job, told from wherever it runs: the pool that runs it passes on what is said."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

telling: ContextVar[Callable[[str], None] | None] = ContextVar("telling", default=None)
"""The listener of the job that this context does."""


def tell(phase: str) -> None:
    """Tells who waits for the job what it is at; nobody may listen."""
    listener = telling.get()
    if listener is not None:
        listener(phase)
