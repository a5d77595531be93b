"""Integer operators and idioms mean what they mean in Halide, on all pairs of interesting values."""

from __future__ import annotations

import numpy as np
import pytest
from support.modules import require_module

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, INT64, TYPES, UINT8, UINT16, UINT32

require_module("halide")

import halide as hl  # noqa: E402

pytestmark = pytest.mark.halide

NARROW = [t for t in TYPES.values() if t.is_integer and t.bits <= 32]


def interesting(t):
    near = {0, 1, 2, 3, 7, 100, -1, -2, -7, t.min, t.min + 1, t.max // 2, t.max - 1, t.max}
    return np.array(sorted(v for v in near if t.min <= v <= t.max), t.numpy)


def agree(a, b, in_halide, ours):
    """Both functions give the same for every pair of a value of `a` and one of `b`."""
    left, right = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(a, b))
    x, f = hl.Var("x"), hl.Func("f")
    f[x] = in_halide(hl.Buffer(left)[x], hl.Buffer(right)[x])
    theirs = np.array(f.realize([len(left)]))
    mine = ours(left, right)
    assert theirs.dtype == mine.dtype
    wrong = np.flatnonzero(theirs != mine)
    assert [(left[i], right[i], theirs[i], mine[i]) for i in wrong[:3]] == []


@pytest.mark.parametrize("t", [*NARROW, INT64], ids=str)
def test_division_and_remainder(t):
    a = interesting(t)
    agree(a, a, lambda p, q: p // q, lambda p, q: semantics.binary("//", p, q, t))
    agree(a, a, lambda p, q: p % q, lambda p, q: semantics.binary("%", p, q, t))


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_shifts(t):
    counts = np.arange(0 if t.kind == "uint" else 1 - t.bits, t.bits).astype(t.numpy)
    agree(interesting(t), counts, lambda p, q: p << q, lambda p, q: semantics.binary("<<", p, q, t))
    agree(interesting(t), counts, lambda p, q: p >> q, lambda p, q: semantics.binary(">>", p, q, t))


@pytest.mark.parametrize("t", NARROW, ids=str)
@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("sat_add", "saturating_add"), ("sat_sub", "saturating_sub"), ("halving_add", "halving_add"),
        ("rounding_halving_add", "rounding_halving_add"),
    ],
)  # fmt: skip
def test_sums(t, name, theirs):
    a = interesting(t)
    agree(a, a, getattr(hl, theirs), lambda p, q: semantics.call(name, (p, q), (t, t), t))


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_rounding_and_multiplying_shifts(t):
    a, counts = interesting(t), np.arange(t.bits).astype(t.numpy)
    agree(
        a, counts, hl.rounding_shift_right,
        lambda p, q: semantics.call("rounding_shift_right", (p, q), (t, t), t),
    )  # fmt: skip
    for n in (0, 1, t.bits - 1, t.bits):
        agree(
            a, a, lambda p, q, n=n: hl.mul_shift_right(p, q, hl.cast(hl.UInt(t.bits), n)),
            lambda p, q, n=n: semantics.call("mul_shift_right", (p, q, np.array(n, np.int32)), (t, t, INT32), t),
        )  # fmt: skip


@pytest.mark.parametrize("t", NARROW, ids=str)
@pytest.mark.parametrize("weight", [UINT8, UINT16, UINT32, FLOAT32], ids=str)
def test_lerp(t, weight):
    weights = np.array([0, 0.1, 0.5, 0.7, 0.999, 1], np.float32) if weight.is_float else interesting(weight)
    end = np.array(37, t.numpy)
    agree(
        interesting(t), weights, lambda p, q: hl.lerp(p, hl.cast(p.type(), 37), q),
        lambda p, q: semantics.call("lerp", (p, end, q), (t, t, weight), t),
    )  # fmt: skip
