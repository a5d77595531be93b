"""Graceful drain: the service ends when the jobs that run have ended, or their time is over."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn


class DrainingServer(uvicorn.Server):
    """A server that goes on answering after the first SIGTERM while `drain` waits for jobs, and ends when that returns.
    The second SIGTERM, and SIGINT at any time, end it at once."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The server's handlers of signals for a while. uvicorn raises those that came anew, which ends the process
        before it has deleted its temporary files: here who runs the server ends it."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The handler of signals, in the main thread."""
        if sig != signal.SIGTERM or self._draining:
            super().handle_exit(sig, frame)
            return
        self._draining = True
        threading.Thread(target=self._end, args=(sig, frame), name="tilesmith-drain", daemon=True).start()

    def _end(self, sig: int, frame: FrameType | None) -> None:
        try:
            self._drain()
        finally:
            super().handle_exit(sig, frame)
