"""Throttling of unknown tokens: so many a minute from an address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

WINDOW_S = 60.0
ADDRESSES = 10_000
"""The most addresses that are remembered; those that failed longest ago are forgotten first."""


class Failures:
    """Counts of unknown tokens by client address, each within a minute of the first."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, client: str) -> float:
        """The time until the client may send another unknown token, s; 0 where it may now."""
        with self._lock:
            began, count = self._windows.get(client, (0.0, 0))
        left = began + WINDOW_S - self._clock()
        return left if count >= self._most and left > 0 else 0.0

    def add(self, client: str) -> None:
        """The client has sent an unknown token."""
        now = self._clock()
        with self._lock:
            began, count = self._windows.pop(client, (now, 0))
            self._windows[client] = (began, count + 1) if now - began < WINDOW_S else (now, 1)
            while len(self._windows) > ADDRESSES:
                self._windows.popitem(last=False)
