"""Sizes of axes: numbers, or polynomials in sizes that are only known at a call, as the extents of inputs are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TypeAlias

Shape: TypeAlias = "tuple[Size, ...]"
Terms: TypeAlias = "tuple[tuple[tuple[str, ...], int], ...]"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an axis: `estimate` as planned; `terms` the polynomial, (symbols of a product, coefficient) each, in
    order. Equal polynomials are equal sizes."""

    estimate: int
    terms: Terms

    @property
    def known(self) -> bool:
        """True if it is a number."""
        return all(not symbols for symbols, _ in self.terms)

    @property
    def text(self) -> str:
        """An expression of the pipeline language."""
        if self.known:
            return str(self.estimate)
        parts = [
            " * ".join([*symbols, *([str(c)] if c != 1 or not symbols else [])]) for symbols, c in self.terms[::-1]
        ]
        return parts[0] if len(parts) == 1 and " " not in parts[0] else f"({' + '.join(parts)})"

    def __add__(self, other: Size | int) -> Size:
        right = _size(other)
        return _of(self.estimate + right.estimate, [*self.terms, *right.terms])

    def __sub__(self, other: Size | int) -> Size:
        return self + _size(other) * -1

    def __mul__(self, other: Size | int) -> Size:
        right = _size(other)
        products = [(tuple(sorted((*a, *b))), p * q) for a, p in self.terms for b, q in right.terms]
        return _of(self.estimate * right.estimate, products)

    def __floordiv__(self, other: Size | int) -> Size:
        """The quotient rounded down: term by term where the divisor divides them."""
        right = _size(other)
        if len(right.terms) != 1:
            return self._quotient(right)
        ((symbols, number),) = right.terms
        whole = [(s, c) for s, c in self.terms if c % number == 0 and _without(s, symbols) is not None]
        if symbols and len(whole) < len(self.terms):
            return self._quotient(right)
        rest = _of(0, [t for t in self.terms if t not in whole])
        divided = [(_without(s, symbols) or (), c // number) for s, c in whole]
        value = self.estimate // right.estimate if right.estimate else 0
        if rest.known:
            constant = sum(c for _, c in rest.terms)
            return _of(value, [*divided, ((), constant // number)])
        return _of(value, [*divided, ((f"({rest.text} // {number})",), 1)])

    def _quotient(self, other: Size) -> Size:
        value = self.estimate // other.estimate if other.estimate else 0
        known = self.known and other.known
        return fixed(value) if known else symbol(f"({self.text} // {other.text})", value)

    def __str__(self) -> str:
        return self.text


def fixed(number: int) -> Size:
    """A size that is a number."""
    return Size(number, (((), number),) if number else ())


def symbol(text: str, estimate: int) -> Size:
    """A size that an expression gives at a call."""
    return Size(estimate, (((text,), 1),))


def shape_of(numbers: Iterable[int]) -> Shape:
    """A shape of numbers."""
    return tuple(fixed(int(n)) for n in numbers)


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes, 1 of none."""
    return reduce(mul, sizes, ONE)


def _of(estimate: int, terms: Iterable[tuple[tuple[str, ...], int]]) -> Size:
    total: dict[tuple[str, ...], int] = {}
    for symbols, coefficient in terms:
        total[symbols] = total.get(symbols, 0) + coefficient
    left = tuple(sorted((s, c) for s, c in total.items() if c))
    return Size(estimate, left) if any(s for s, _ in left) else fixed(sum(c for _, c in left))


def _without(symbols: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...] | None:
    """A product without factors of it; None where it has them not."""
    left = list(symbols)
    for one in gone:
        if one not in left:
            return None
        left.remove(one)
    return tuple(left)


def _size(value: Size | int) -> Size:
    return value if isinstance(value, Size) else fixed(value)


ONE = fixed(1)
