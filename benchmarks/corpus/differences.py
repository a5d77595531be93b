"""Differences of two results of one case, told in a sentence."""

from __future__ import annotations

import numpy as np


def difference(expected: np.ndarray, got: np.ndarray, within: float, apart: float) -> str:
    """In what two results differ: by more than the part `within` of the largest magnitude in more than the share
    `apart` of the values."""
    if expected.shape != got.shape:
        return f"its shape is {expected.shape}, ours {got.shape}"
    one, other = expected.astype(np.float64), got.astype(np.float64)
    off = np.abs(one - other)
    scale = float(np.abs(one).max()) or 1.0
    far = np.count_nonzero(~(off <= within * scale))
    if far <= apart * off.size:
        return ""
    return f"{far} of {off.size} values are off by up to {np.nanmax(off) / scale:.1e} of the largest"
