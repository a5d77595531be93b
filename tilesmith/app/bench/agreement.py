"""Agreement of two sets of outputs, as far as floats may be computed in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FLOAT_TOLERANCE = 1e-4
"""Relative to the output's largest magnitude. Halide reassociates and contracts as it likes, as do we."""


class ContenderError(Exception):
    """A contender failed, disagreed, or died; the message says how."""


def agreement(
    expected: Sequence[np.ndarray],
    got: Sequence[np.ndarray],
    cut: Sequence[bool] | None = None,
) -> float:
    """The largest difference of floats over the largest magnitude; 0 for integers, which have to be equal.

    Values that are not finite have to be so in both. Arrays for which `cut` says that their integers are cut from
    floats may be off by 1, and a hundredth of their values by more: what a table has, read at a place that is off by 1.
    Fewer than a row or a column has may be anything: what is beyond a threshold, or the greatest of near scores.
    Raises ContenderError where the two disagree.
    """
    if len(expected) != len(got):
        raise ContenderError(f"{len(got)} outputs, not {len(expected)}")
    worst = 0.0
    for a, b, rounded in zip(expected, got, cut or [False] * len(got), strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ContenderError(f"an output of {b.dtype} {b.shape}, not {a.dtype} {a.shape}")
        if a.dtype.kind != "f":
            if a.dtype == np.bool_:
                a, b = a.view(np.uint8), b.view(np.uint8)
            off = np.maximum(a, b) - np.minimum(a, b)
            wrong = int(np.count_nonzero(off > rounded))
            looked_up = wrong <= a.size // 100 and off.max() <= np.iinfo(off.dtype).max >> 8
            chosen = wrong < sorted((1, 1, *a.shape))[-2]
            if wrong and not (rounded and (looked_up or chosen)):
                raise ContenderError(f"disagrees in {wrong} of {a.size} values")
            continue
        finite = np.isfinite(a)
        if not np.array_equal(finite, np.isfinite(b)):
            raise ContenderError("disagrees in which values are finite")
        if finite.any():
            scale = float(np.abs(a[finite]).max()) or 1.0
            worst = max(worst, float(np.abs(a[finite].astype(np.float64) - b[finite]).max()) / scale)
    if worst > FLOAT_TOLERANCE:
        raise ContenderError(f"disagrees by {worst:.1e} of the largest magnitude")
    return worst
