"""Fair queue: of those that wait, the client whose work has taken the least time is next, with a lane for short work.

Start-time fair queueing (Goyal, Vin and Cheng, 1996) with times that are known afterwards: what is started is charged
with an expected time, and set right when it has ended. A client that comes (back) begins where the others are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

EXPECTED_S = {True: 0.05, False: 1.0}
"""The time that short and other work is charged with while it runs."""


@dataclass(slots=True)
class _Client(Generic[T]):
    """The work of one client: what waits, by lane and with its number, how much there is with what runs, the time that
    it has taken and what runs is charged with, s."""

    waiting: dict[bool, deque[tuple[int, T]]] = field(default_factory=lambda: {True: deque(), False: deque()})
    active: int = 0
    used_s: float = 0.0
    charged_s: float = 0.0


class FairQueue(Generic[T]):
    """Work of clients, of which some is short. Not safe to use from several threads."""

    def __init__(self) -> None:
        self._clients: dict[str, _Client[T]] = {}
        self._numbers = count()

    def active(self, client: str) -> int:
        """The work of a client that waits or runs."""
        found = self._clients.get(client)
        return found.active if found is not None else 0

    def __len__(self) -> int:
        return sum(len(lane) for c in self._clients.values() for lane in c.waiting.values())

    def push(self, client: str, work: T, short: bool) -> None:
        """Queues work. It has to be ended once it was popped."""
        if client not in self._clients:
            self._clients[client] = _Client(used_s=min((c.used_s for c in self._clients.values()), default=0.0))
        found = self._clients[client]
        found.active += 1
        found.waiting[short].append((next(self._numbers), work))

    def pop(self, only_short: bool, suits: Callable[[T], bool] = lambda _: True) -> T | None:
        """The next work of the client whose turn it is, the first that suits; None where none waits (of the short lane,
        if only that is wanted), or none suits."""
        heads = [
            (c.used_s + c.charged_s, lane[0][0], short, c)
            for c in self._clients.values()
            for short, lane in c.waiting.items()
            if lane and (short or not only_short)
        ]
        if not heads:
            return None
        _, _, short, chosen = min(heads, key=lambda head: head[:2])
        lane = chosen.waiting[short]
        place = next((n for n, (_, work) in enumerate(lane) if suits(work)), None)
        if place is None:
            return None
        _, found = lane[place]
        del lane[place]
        chosen.charged_s += EXPECTED_S[short]
        return found

    def end(self, client: str, short: bool, seconds: float) -> None:
        """Work that was popped has ended and took so long. Clients without any are forgotten."""
        found = self._clients[client]
        found.active -= 1
        found.charged_s -= EXPECTED_S[short]
        found.used_s += seconds
        if found.active == 0:
            del self._clients[client]
