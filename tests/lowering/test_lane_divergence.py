"""Lane divergence: lanes that compute different things are evaluated class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.lowered import body, buffer, choice, group, index, loaded, pipeline, row
from support.lowered_values import assert_lowered_right, execute_body

from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Load, ResizeMask
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, ScalarType
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Placement
from tilesmith.scheduler.lowering.evaluation import Evaluation
from tilesmith.scheduler.lowering.lane_divergence import classes_of, picked, restricted, spread, together, truths
from tilesmith.scheduler.lowering.memory import store
from tilesmith.scheduler.lowering.residue_splitting import NeedRemainder

INLINED = Placement("g", INLINE, INLINE)
Golden = Callable[[str, str], None]
EVEN = (True, False) * 4


def test_even_and_odd_lanes_are_shuffled_together(golden: Golden) -> None:
    p = pipeline("select(x % 2 == 0, f(x // 2), f(x // 2) * 2)")
    golden("even_and_odd_lanes_are_shuffled_together.txt", body(p, [group("x.inner")]))


@pytest.mark.parametrize(
    ("align", "condition", "lanes"),
    [
        (2, "x % 2 == 0", EVEN),
        (2, "not x % 2 == 0", EVEN[1:] + EVEN[:1]),
        (4, "x % 4 < 2", (True, True, False, False) * 2),
        (4, "x % 4 == 1 or x % 2 == 0", (True, True, True, False) * 2),
        (4, "x % 4 != 1 and x % 2 == 0", EVEN),
        (4, "(x % 4 < 2) == (x % 2 == 0)", (True, False, False, True) * 2),
        (4, "(x % 4 < 2) != (x % 2 == 0)", (False, True, True, False) * 2),
        (4, "(x % 4 < 2) == (f(x, y) > 0)", None),
        (1, "x >= x - 1", (True,) * 8),
        (1, "y < y + 1", (True,)),
        (1, "x >= 3", None),
        (2, "x % 2 == 0 and x >= 3", None),
        (1, "y % 2 == 0", None),
        (1, "f(x, y) > 0", None),
        (1, "int32(f(x, y)) > 0", None),
        (1, "not f(x, y) > 0", None),
    ],
)
def test_conditions_of_places_are_true_in_the_same_lanes_of_every_vector(
    align: int, condition: str, lanes: Sequence[bool] | None
) -> None:
    ev, frame = row(align)
    assert truths(ev, choice(condition).condition, frame) == lanes


def test_a_remainder_of_what_no_lane_moves_is_asked_for() -> None:
    ev, frame = row(splits=True)
    with pytest.raises(NeedRemainder) as asked:
        truths(ev, choice("(y + 1) % 2 == 0").condition, frame)
    assert (asked.value.of, asked.value.by) == (sym("y"), 2)


@pytest.mark.parametrize(
    ("align", "text", "lanes"),
    [(4, "x % 4", (0, 1, 2, 3) * 2), (2, "1 - x % 2", (1, 0) * 4), (1, "x", None), (1, "y", None)],
)
def test_a_number_by_lane(align: int, text: str, lanes: Sequence[int] | None) -> None:
    ev, frame = row(align)
    assert picked(ev, index(text), frame) == lanes


@pytest.mark.parametrize(
    ("pattern", "classes"),
    [
        (tuple(range(8)), None),
        ((0, 0, 1, 1, 2, 2, 3, 3), [(0, 1, 2, 3)] * 2),
        ((0, 4, 1, 5, 2, 6, 3, 7), [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ((0, 0, 0, 0, 1, 1, 1, 1), [(0, 1)] * 4),
        ((0, 9, 0, 9, 0, 9, 0, 9), [None, None]),
        ((0, 2, 4, 6, 8, 10, 12, 14), None),
        ((0, 0, 0, 0, 0, 2, 0, 2), None),
    ],
)
def test_every_kth_lane_makes_a_vector_of_neighbours(
    pattern: tuple[int, ...], classes: list[tuple[int, ...] | None] | None
) -> None:
    found = classes_of([Lane(sym("x"), pattern), Lane(sym("y"))])
    assert (found and [lanes[0].pattern for lanes in found]) == classes
    assert not found or all(lanes[1] == Lane(sym("y")) for lanes in found)


def test_lanes_that_data_says_are_in_no_classes() -> None:
    assert classes_of([Lane(const(0), None, Value(INT32, 8, "at")), Lane(sym("x"), (0, 0, 1, 1, 2, 2, 3, 3))]) is None


def test_steps_of_a_transform_are_read_as_they_lie() -> None:
    """Butterflies of four points inside of those of a vector's: each vector lies in one block of the outer step."""
    inner = "f(x % 4 + 4 * (x // 4 // 2)) - f(x % 4 + 4 * (x // 4 // 2 + 2))"
    outer = "inner(x % 8 + 8 * (x // 8 // 2)) + inner(x % 8 + 8 * (x // 8 // 2 + 1))"
    p = loaded({"name": "inner", "dims": ["x"], "value": inner}, {"name": "out", "dims": ["x"], "value": outer})
    groups = [group("x.inner", [Placement("inner", INLINE, INLINE)])]
    assert "gather" not in body(p, groups)
    assert_lowered_right(p, groups, ((0, 64),), ((3, 50),))


@pytest.mark.parametrize(
    ("block", "whole"),
    [
        ("f(4 * u + i)", True),
        ("f(4 * u + i) * f(i) + f(clamp(4 * u + i - 1, 0, 63))", True),
        ("sum(f(4 * u + i + k) for k in range(0, 3))", True),
        ("f(u) * f(i)", False),
        ("f(4 * u + i) + f(16 * u)", False),
        ("f(4 * u + i) + f(clamp(int32(f(i)), 0, 63))", False),
    ],
)
def test_blocks_are_read_as_they_lie(block: str, whole: bool) -> None:
    stage = {"name": "block", "dims": ["i", "u"], "value": f"sqrt({block})"}
    p = loaded(stage, {"name": "out", "dims": ["x"], "value": "block(x % 4, x // 4)"})
    text = body(p, [group("x.inner", [Placement("block", INLINE, INLINE)])])
    calls = [line for line in text.splitlines() if "call sqrt" in line]
    assert (any(line.endswith(": f32x2") for line in calls), any(line.endswith(": f32x8") for line in calls)) == (
        not whole,
        whole,
    )


def test_a_frame_of_some_lanes() -> None:
    ev, frame = row(2)
    found = restricted(ev, frame, (1, 3, 5, 7)).env
    assert found["x"] == Lane(sym("q").scaled(2), (1, 3, 5, 7))
    assert found["y"] == frame.env["y"]
    assert restricted(ev, frame, (3,)).env["x"] == Lane(sym("q").scaled(2) + 3)


def written(
    build: Callable[[Evaluation, list[Value]], Value], parts: list[np.ndarray], type_: ScalarType
) -> np.ndarray:
    """What `build` makes of vectors of these elements (of one: scalars)."""
    ev, _ = row()
    b: Builder = ev.builder
    memory = [(buffer(f"part{n}", type_), a) for n, a in enumerate(parts)]
    mask = 8 if type_ == BOOL else 0
    values = [
        b.define(Load(m.pointer, const(0)), type_, len(a), mask_bits=mask if len(a) > 1 else 0) for m, a in memory
    ]
    value = build(ev, values)
    result = np.zeros(value.lanes, type_.numpy)
    out = buffer("out", type_)
    store(b, out, (Lane(const(0), tuple(range(value.lanes)) if value.lanes > 1 else None),), value)
    execute_body([s for scope in b.scopes for s in scope.statements], [*memory, (out, result)])
    return result


@pytest.mark.parametrize("type_", [FLOAT32, BOOL])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_lanes_of_several_vectors_together(count: int, type_: ScalarType) -> None:
    rng = np.random.default_rng(count)
    parts = [rng.integers(0, 2 if type_ == BOOL else 99, 4).astype(type_.numpy) for _ in range(count)]
    picks = [(int(rng.integers(count)), int(rng.integers(4))) for _ in range(8)]
    found = written(lambda ev, values: together(ev.builder, values, picks, 4), parts, type_)
    assert found.tolist() == [parts[part][lane] for part, lane in picks]


def test_scalars_stand_for_all_lanes() -> None:
    parts = [np.array([5], np.int32), np.arange(4, dtype=np.int32)]
    picks = [(0, 0), (1, 1), (0, 2), (1, 3)]
    assert written(lambda ev, values: together(ev.builder, values, picks, 4), parts, INT32).tolist() == [5, 1, 5, 3]


def test_one_scalar_stays_one() -> None:
    ev, _ = row()
    one = Value(INT32, 1, "one")
    assert together(ev.builder, [one], [(0, 0)] * 8, 8) is one


def test_masks_are_as_wide_as_the_widest() -> None:
    ev, _ = row()
    masks = [Value(BOOL, 4, f"mask{bits}", None, bits) for bits in (8, 32)]
    assert together(ev.builder, masks, [(0, 0), (1, 1), (0, 2), (1, 3)], 4).mask_bits == 32
    (resized,) = (
        s.op for s in ev.builder.scopes[0].statements if isinstance(s, Define) and isinstance(s.op, ResizeMask)
    )
    assert resized.a == masks[0]


def test_parts_are_spread_in_turn() -> None:
    parts = [np.arange(4, dtype=np.int32), np.arange(10, 14, dtype=np.int32)]
    assert written(lambda ev, values: spread(ev, values, 8), parts, INT32).tolist() == [0, 10, 1, 11, 2, 12, 3, 13]
    same = written(lambda ev, values: spread(ev, [values[0], values[0]], 8), parts[:1], INT32)
    assert same.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


DIVERGENT = {
    "even and odd": "select(x % 2 == 0, f(x // 2, y) + f(x // 2 + 1, y), f(x // 2, y) * 2)",
    "of four": "mux(x % 4, f(x // 4, y), f(x // 4 + 1, y) * 2, f(x, y))",
    "beyond the choices": "mux(x % 4 - 1, f(x, y), f(x + 1, y) * 2)",
    "unlike sizes of classes": "select(x % 4 == 3, f(x, y), f(x + 1, y) * 2)",
    "truths": "select(select(x % 2 == 0, f(x // 2, y) > 0, f(x // 2, y) < 1), f(x, y), 2.0)",
    "truths of other widths": "select(select(x % 2 == 0, f(x // 2, y) > 0, int8(f(x // 2, y)) < 1), f(x, y), 2.0)",
    "few lanes that gain, of many": "select(x % 4 != 3, f(x // 2, y), f(x // 4, y) * 2)",
    "numbers": "select(x % 2 == 0, f(x, y), 3.0)",
    "neighbours anyway": "select(x % 2 == 0, f(x, y), f(x + 1, y))",
    "up by 4": "g(x // 4, y) * (4 - x % 4) + g(x // 4 + 1, y) * (x % 4)",
    "up from the left": "g((x - 3) // 2, y)",
}


@pytest.mark.parametrize("value", DIVERGENT.values(), ids=DIVERGENT)
def test_rows_are_right_wherever_they_begin(value: str) -> None:
    """Shorter than a vector, at odd places, below 0."""
    p = pipeline(value, ("g", "f(x, y) * f(x + 1, y)"), dims=("x", "y"))
    inlined = [INLINED] if "g(" in value else []
    p = p if inlined else pipeline(value, dims=("x", "y"))
    places = ((0, 24), (0, 1)), ((-5, 21), (1, 2)), ((3, 1), (0, 1)), ((1, 7), (0, 1)), ((7, 10), (0, 1))
    assert_lowered_right(p, [group("x.inner y.inner", inlined)], *places)
