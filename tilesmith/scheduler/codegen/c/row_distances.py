"""Distances of rows: how far a place in memory is from another, where that is short to say."""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

from tilesmith.scheduler.ir.index import Index, Terms

Products: TypeAlias = frozenset[tuple[frozenset[Terms], int]]


def products(x: Index) -> Products:
    """The products in a place, but for constants in them: places that `apart` tells apart have the same."""
    return frozenset([(frozenset([arg.terms for arg in a.args]), c) for a, c in x.terms if a.kind == "mul"])


def apart(a: Index, b: Index) -> Index | None:
    """The distance from `b` to `a`, where it is a multiple of one symbol, or a number."""
    total = a - b
    products = [(x, c) for x, c in total.terms if x.kind == "mul"]
    for (one, times), (other, back) in combinations(products, 2):
        for shared in one.args if times == -back else ():
            if shared in other.args:
                x, y = (p.args[p.args[0] == shared] for p in (one, other))
                if x.terms != y.terms:
                    return None
                rest = Index(total.const, tuple([t for t in total.terms if t[0] not in (one, other)]))
                total = rest + shared.scaled(times * (x.const - y.const))
                break
    return total if len(total.terms) <= 1 and all(x.kind == "sym" for x, _ in total.terms) else None
