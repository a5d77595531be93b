"""Bounds inference: intervals are never too small and are kept by inclusion, which is what sizes buffers."""

from __future__ import annotations

from random import Random

import pytest
from support.random_indices import Indices, number, value_of

from tilesmith.scheduler.analysis.bounds_inference import interval_of, required_boxes
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Cast, Const, Expr, Unary, Var
from tilesmith.scheduler.ir.pipeline.types import INT32, UINT8, UINT16

R = range(-2, 3)


Ends = tuple[int, int]


def ends_of(e: Expr, boxes: dict[str, Ends], symbols: dict[str, int], symbolic: bool) -> Ends:
    """The interval of `e` as numbers; with `symbolic`, from intervals between symbols."""
    env = {"r": (const(R.start), const(R.stop - 1))}
    known = dict(symbols)
    for name, (lo, hi) in boxes.items():
        known[f"{name}.lo"], known[f"{name}.hi"] = lo, hi
        env[name] = (sym(f"{name}.lo"), sym(f"{name}.hi")) if symbolic else (const(lo), const(hi))
    low, high = interval_of(e, env)
    known.update({f"param.{n}": v for n, v in symbols.items()})
    return low.value(known), high.value(known)


def _box(random: Random) -> Ends:
    lo = random.randint(-12, 12)
    return lo, lo + random.choice((0, 0, 1, 2, 5, 11))


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_index_stays_within_its_interval(depth: int, symbolic: bool) -> None:
    for seed in range(700):
        random = Random(seed)
        e = Indices(seed * 10 + depth, ("x", "y", "r")).draw(depth)
        boxes = {"x": _box(random), "y": _box(random)}
        symbols = {"n": random.randint(-9, 9), "image.min.x": random.randint(-9, 9), "image.extent.x": 4}
        low, high = ends_of(e, boxes, symbols, symbolic)
        for _ in range(40):
            at = {n: random.randint(*box) for n, box in boxes.items()}
            v = value_of(e, {**symbols, **at, "r": random.choice(R)}, random)
            assert low <= v <= high, (e, boxes, at)


def test_intervals_are_kept_by_inclusion() -> None:
    for seed in range(2500):
        random = Random(seed)
        e = Indices(seed, ("x", "y", "r")).draw(3)
        boxes = {"x": _box(random), "y": _box(random)}
        wide = {n: (lo - random.randint(0, 4), hi + random.randint(0, 4)) for n, (lo, hi) in boxes.items()}
        symbols = {"n": random.randint(-9, 9), "image.min.x": random.randint(-9, 9), "image.extent.x": 4}
        inner = ends_of(e, boxes, symbols, symbolic=False)
        for symbolic in (False, True):
            outer = ends_of(e, wide, symbols, symbolic)
            assert outer[0] <= inner[0], (e, boxes, wide)
            assert inner[1] <= outer[1], (e, boxes, wide)


BYTE = Access("bytes", (Var("x"),), 0, UINT8)


@pytest.mark.parametrize(
    ("e", "ends"),
    [
        (Cast(Binary("-", BYTE, number(1, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("+", BYTE, number(1, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("+", Cast(BYTE, UINT16), number(1, UINT16), UINT16), INT32), (1, 256)),
        (Cast(Unary("-", BYTE, UINT8), INT32), (0, 255)),
        (Cast(Binary("<<", BYTE, number(4, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("//", BYTE, number(2, UINT8), UINT8), INT32), (0, 127)),
    ],
    ids=["minus", "plus", "wide", "negated", "shifted", "halved"],
)
def test_arithmetic_of_narrow_types_wraps(e: Expr, ends: Ends) -> None:
    assert ends_of(e, {"x": (0, 9)}, {}, symbolic=False) == ends


def test_affine_indices_have_exact_ends() -> None:
    e = Binary("//", Binary("-", Binary("*", Const(3, INT32), Var("x"), INT32), number(2), INT32), number(2), INT32)
    assert ends_of(e, {"x": (-3, 5)}, {}, symbolic=True) == ((3 * -3 - 2) // 2, (3 * 5 - 2) // 2)


def test_bounds_stay_short_with_names() -> None:
    """A chain of stencils: every bound is one name, and each name a short sum."""
    document = {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x"]}],
        "stages": [
            {"name": f"s{n}", "dims": ["x"], "value": f"{f's{n - 1}' if n else 'input'}(x - 1) + 1"} for n in range(40)
        ],
        "outputs": ["s39"],
        "estimates": {"s39": [[0, 64]]},
    }
    named: dict[str, Index] = {}

    def name(value: Index, hint: str) -> Index:
        named[f"{hint}{len(named)}"] = value
        return sym(f"{hint}{len(named) - 1}")

    boxes = required_boxes(load(document), {"s39": ((sym("lo"), sym("hi")),)}, name)
    assert set(boxes) == {"input", *(f"s{n}" for n in range(40))}
    assert max(len(v.key) for v in named.values()) < 30
