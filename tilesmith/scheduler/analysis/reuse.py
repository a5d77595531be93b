"""Overlap: how much of what a consumer's iteration reads the next iteration reads again."""

from __future__ import annotations

from math import inf, lcm

from tilesmith.scheduler.analysis.access_functions import Span, furthest

FULL = inf
"""The overlap of a footprint that does not move with the loop at all."""


def overlap(span: Span) -> int:
    """Elements of one dim that two neighbouring iterations of the span's loop both read: the footprint's extent
    minus its step, at least 0; of a fractional rate the most over all alignments.

    `span` must be known and move (`span.var` is not None).
    """
    lo, hi, rate = span.lo, span.hi, span.rate
    assert lo is not None
    assert hi is not None
    if rate.denominator == lo.denominator == hi.denominator == 1:
        return max(0, hi.numerator - lo.numerator + 1 - abs(rate.numerator))
    k = lcm(rate.denominator, lo.denominator, hi.denominator)
    step, low, high = (x.numerator * (k // x.denominator) for x in (rate, lo, hi))
    return max(0, (furthest(step, low, k) + high - low - abs(step)) // k + 1)


def overlap_in(spans: tuple[Span, ...], dim: str) -> float:
    """Overlap in the consumer's loop over `dim` of an access with `spans`: FULL where no index moves with it.

    The footprint is a box: where two indices move with the loop, the smaller overlap of both counts.
    """
    moving = [overlap(s) for s in spans if s.var == dim]
    return min(moving) if moving else FULL
