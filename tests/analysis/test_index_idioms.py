"""Idioms of indices: what bounds inference says is what small random regions enumerate."""

from __future__ import annotations

import numpy as np
import pytest
from support.places import assert_exact, document, inferred

EXACT = (
    "x - x % 8", "x + 3 - (x + 3) % 8", "x // 4 * 4 + x % 4", "x + y - x % 4", "3 - (x - x % 5)", "x * 2 + (y & 1)",
    "x & -4", "x >> 2", "x << 1", "(x >> 1) + (y & 3)", "abs(x - 9)", "absd(x, 9)", "~x", "clamp(x - 3, 0, 40)",
    "max(x, y)", "x * 3 // 2", "x % 7 + y", "(x + y) // 2 - 1", "p * x - 3", "x // q", "min(x, p * 2) + q",
    "x // int32(k + 1)", "x + int32(w % 7)", "x * int32(k - 9)", "x - int32(int8(k))", "y // (x % 3 + 1)",
    "int32(uint32(abs(x)))", "20 - int32(uint32(absd(x - 3, 20)))", "x if b else 5 - x", "select(p > k, x + 9, -x)",
    "x * 2 if b and not p <= 0 or q == 3 else y", "select(p != 1, x, y)",
)  # fmt: skip
CLOSE = {"x ^ 1": 1, "x | 3": 3, "x ^ 5": 7, "x & -3": 3, "x % 4 + x % 2": 1}
"""Of what is told not exactly, how far beyond what is read the ends are, at most."""
PARAMS = [
    {"name": "p", "type": "int32", "default": 2},
    {"name": "q", "type": "int32", "default": 3, "min": 1, "max": 5},
    {"name": "k", "type": "uint8", "default": 255},
    {"name": "w", "type": "uint32", "default": 9},
    {"name": "b", "type": "bool", "default": False},
]


def regions(count: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    rng = np.random.default_rng(5)
    ends = rng.integers((-40, 9, -40, 9), (40, 30, 40, 30), (count, 4))
    return [((int(x), int(w)), (int(y), int(h))) for x, w, y, h in ends]


@pytest.mark.parametrize("index", EXACT)
def test_what_is_read_is_required(index: str) -> None:
    of = document({"out": f"image({index}, y)"}, {"image": "uint8"}, PARAMS)
    for region in regions(12):
        shift, odd = region[0][0] % 5, region[0][1] % 2
        assert_exact(
            of,
            region,
            {"p": shift - 2, "q": 3, "k": (0, 1, 128, 254, 255)[shift], "w": 2**31 + shift, "b": odd == 1},
            {},
        )


@pytest.mark.parametrize("index", CLOSE)
def test_what_is_told_not_exactly_is_never_too_little(index: str) -> None:
    of = document({"out": f"image({index}, y)"}, {"image": "uint8"}, PARAMS)
    for region in regions(12):
        ((lo, extent), _) = inferred(of, region, {"p": 1, "q": 3, "k": 0, "w": 0, "b": True}, {})["image"]
        (x, w), _ = region
        values = [eval(index, {"x": n}) for n in range(x, x + w)]
        assert lo <= min(values) <= lo + CLOSE[index]
        assert lo + extent - 1 - CLOSE[index] <= max(values) <= lo + extent - 1


def test_jitter_stays_below_its_range() -> None:
    of = document({"out": "image(x + int32(random(x, y) * 8.0), y)"}, {"image": "uint8"})
    assert inferred(of, ((0, 64), (0, 48)), {}, {})["image"] == ((0, 71), (0, 48))
