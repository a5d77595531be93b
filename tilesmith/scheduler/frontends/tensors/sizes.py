"""Sizes of axes: numbers, or arithmetic of the extents of inputs that is only known at a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = "tuple[Size, ...]"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an axis: `estimate` as planned, `text` as an expression of the pipeline language."""

    estimate: int
    text: str

    @property
    def known(self) -> bool:
        """True if it is a number."""
        return self.text == str(self.estimate)

    def __add__(self, other: Size | int) -> Size:
        return _joined(self, "+", _size(other), neutral=0)

    def __sub__(self, other: Size | int) -> Size:
        return _joined(self, "-", _size(other), neutral=0)

    def __mul__(self, other: Size | int) -> Size:
        return _joined(self, "*", _size(other), neutral=1)

    def __floordiv__(self, other: Size | int) -> Size:
        return _joined(self, "//", _size(other), neutral=1)

    def __str__(self) -> str:
        return self.text


ONE = Size(1, "1")


def fixed(number: int) -> Size:
    """A size that is a number."""
    return Size(number, str(number))


def shape_of(numbers: Iterable[int]) -> Shape:
    """A shape of numbers."""
    return tuple(fixed(int(n)) for n in numbers)


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes, 1 of none."""
    result = ONE
    for size in sizes:
        result = size if result == ONE else result * size
    return result


def _size(value: Size | int) -> Size:
    return value if isinstance(value, Size) else fixed(value)


def _joined(left: Size, op: str, right: Size, neutral: int) -> Size:
    if right == fixed(neutral):
        return left
    a, b = left.estimate, right.estimate
    value = {"+": a + b, "-": a - b, "*": a * b, "//": a // b if b else 0}[op]
    return fixed(value) if left.known and right.known else Size(value, f"({left.text} {op} {right.text})")
