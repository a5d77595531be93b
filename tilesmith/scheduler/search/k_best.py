"""The best k ways to take one of every list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol, TypeVar


class Priced(Protocol):
    """Anything that costs something."""

    @property
    def total(self) -> float:
        """The cost, in all."""


P = TypeVar("P", bound=Priced)


def best_combinations(choices: Sequence[Sequence[P]], top: int) -> Iterator[tuple[P, ...]]:
    """The `top` cheapest ways to take one of each list, the cheapest first. Every list has its cheapest first."""
    start = (0,) * len(choices)
    pending: list[tuple[float, tuple[int, ...]]] = [(_total(choices, start), start)]
    seen = {start}
    for _ in range(top):
        if not pending:
            return
        _, taken = heappop(pending)
        yield tuple(listed[n] for listed, n in zip(choices, taken, strict=True))
        for k in range(len(choices)):
            more = (*taken[:k], taken[k] + 1, *taken[k + 1 :])
            if more[k] < len(choices[k]) and more not in seen:
                seen.add(more)
                heappush(pending, (_total(choices, more), more))


def _total(choices: Sequence[Sequence[Priced]], taken: tuple[int, ...]) -> float:
    return sum(listed[n].total for listed, n in zip(choices, taken, strict=True))
