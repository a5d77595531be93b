"""Columns: the parts that stand at one place in all members of a generalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Column = tuple[T, ...]
"""The parts that stand at one place in the members, in the order of these."""


class Unlike(Exception):
    """Raised where members differ in more than names and numbers."""


def require(holds: bool) -> None:
    """Raises Unlike where it does not hold."""
    if not holds:
        raise Unlike


def each(several: Column[Any], name: str) -> Column[Any]:
    """An attribute of each."""
    return tuple([getattr(x, name) for x in several])


def require_same(several: Column[object], *names: str) -> None:
    """Raises Unlike where one of these attributes is not the same in all members."""
    require(all(getattr(x, name) == getattr(several[0], name) for x in several for name in names))


def zipped(several: Column[Sequence[T]]) -> list[Column[T]]:
    """The columns of sequences, which have one length. Raises Unlike."""
    require(len({len(x) for x in several}) == 1)
    return list(zip(*several, strict=True))


def paired(first: Sequence[T], other: Sequence[T], *tests: Callable[[T, T], bool]) -> list[T]:
    """The part of `other` that stands for each of `first`: by the first test that any of those left passes. Raises
    Unlike."""
    left, found = list(other), dict[int, T]()
    for is_partner in tests:
        for n, x in enumerate(first):
            at = next((k for k, y in enumerate(left) if is_partner(x, y)), None) if n not in found else None
            if at is not None:
                found[n] = left.pop(at)
    require(not left and len(found) == len(first))
    return [found[n] for n in range(len(first))]
