"""Tables that are products: one number or factor of each row times one of each column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import gcd, lcm
from typing import Final

from tilesmith.scheduler.analysis.linear_combinations import ONE
from tilesmith.scheduler.ir.pipeline.expressions import Expr
from tilesmith.scheduler.ir.pipeline.printer import to_text

_PLAIN: Final = 64
"""Numbers that are multiples of one another, up to so many times, are kept as whole numbers and a factor."""

Products = tuple[Fraction, list[Fraction], list[Fraction]]


def number_products(table: Sequence[Sequence[Fraction]], tolerance: Fraction) -> Products | None:
    """`table` = scale * u v^T, if it has rank one. Whole numbers where they are small ones, and always where they have
    to be; else one of them has the scale."""
    denominator = lcm(*(n.denominator for row in table for n in row))
    numbers = [[n.numerator * (denominator // n.denominator) for n in row] for row in table]
    at = list(product(range(len(table)), range(len(table[0]))))
    j, i = max(at, key=lambda p: abs(numbers[p[0]][p[1]]))
    top = numbers[j][i]
    slack = tolerance.numerator * top * top
    if any(abs(numbers[a][b] * top - numbers[a][i] * numbers[j][b]) * tolerance.denominator > slack for a, b in at):
        return None
    pivot = Fraction(top, denominator)
    u, v = [Fraction(row[i], top) for row in numbers], [Fraction(n, top) for n in numbers[j]]
    scale, whole = pivot, tolerance == 0
    u, by_u = _plain(u, whole)
    v, by_v = _plain(v, whole)
    scale *= by_u * by_v
    if any(n.denominator != 1 for n in v):
        return ONE, u, [n * scale for n in v]
    if any(n.denominator != 1 for n in u):
        return ONE, [n * scale for n in u], v
    if scale < 0 and min(v) < 0:
        return -scale, u, [-n for n in v]
    return (-scale, [-n for n in u], v) if scale < 0 and min(u) < 0 else (scale, u, v)


def _plain(numbers: list[Fraction], whole: bool) -> tuple[list[Fraction], Fraction]:
    """The least whole numbers in the same proportions, and what they have to be multiplied by; as they are where these
    are not small, unless `whole`."""
    denominator = lcm(*(n.denominator for n in numbers))
    wholes = [n.numerator * (denominator // n.denominator) for n in numbers]
    common = gcd(*wholes)
    if not whole and max(map(abs, wholes)) > _PLAIN * common:
        return numbers, ONE
    return [Fraction(n // common) for n in wholes], Fraction(common, denominator)


Factors = tuple[Expr, ...]


def factor_products(table: Sequence[Sequence[Factors]]) -> tuple[Factors, list[Factors], list[Factors]] | None:
    """Products of coefficients that are no numbers (see `number_products`): each entry is a factor that all share,
    times one of its row, times one of its column."""
    if not any(entry for row in table for entry in row):
        return (), [()] * len(table), [()] * len(table[0])
    counted = [[Counter(entry) for entry in row] for row in table]
    corner = counted[0][0]
    across = _least(counted[0])
    down = _least([row[0] for row in counted])
    v = [entry - across for entry in counted[0]]
    u = [row[0] - down for row in counted]
    shared = across + down
    if any(shared[f] < n for f, n in corner.items()):
        return None
    shared = shared - corner
    if any(counted[a][b] != shared + u[a] + v[b] for a in range(len(u)) for b in range(len(v))):
        return None
    return _listed(shared), [*map(_listed, u)], [*map(_listed, v)]


def _least(entries: Sequence[Counter[Expr]]) -> Counter[Expr]:
    least = entries[0]
    for entry in entries[1:]:
        least = least & entry
    return least


def _listed(factors: Counter[Expr]) -> Factors:
    return tuple(sorted(factors.elements(), key=to_text))
