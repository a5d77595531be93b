"""Index vectorisation: places of lanes, the clamps that vectors do without, and where these hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.lowered import LANES, evaluated, group, index, loaded, pipeline, row
from support.lowered_values import assert_evaluated_right, assert_lowered_right

from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.values import Lane
from tilesmith.scheduler.lowering.index_vectorization import NeedAlignment, NotUniformBound


def test_clamps_are_dropped_and_noted() -> None:
    lowered = evaluated(pipeline("f(clamp(x - 1, 0, 9))"))
    assert (
        "\n".join([lowered.text(), *lowered.required()]).splitlines()
        == """
%f_0 = load f[x - 1] : f32x8
-1*x+3
1*x+-1
""".strip().splitlines()
    )


TURNS = {
    "mirror_interior": "clamp(min((x - 1) % 38, 38 - (x - 1) % 38), 0, 19)",
    "mirror_image": "clamp(min((x - 1) % 40, 39 - (x - 1) % 40), 0, 19)",
    "repeat_image": "clamp((x - 1) % 20, 0, 19)",
    "mirror_interior from 3": "clamp(min((x - 4) % 38, 38 - (x - 4) % 38) + 3, 3, 22)",
}


@pytest.mark.parametrize("kind", TURNS)
def test_boundaries_of_constant_domains_are_dropped_and_noted(kind: str) -> None:
    lowered = evaluated(pipeline(f"f({TURNS[kind]})"))
    first, last = (3, 22) if "from" in kind else (0, 19)
    assert lowered.text() == "%f_0 = load f[x - 1] : f32x8"
    assert lowered.required() == [f"-1*x+{last - 6}", f"1*x+{-1 - first}"]


@pytest.mark.parametrize("kind", ["mirror_interior", "mirror_image", "repeat_image"])
@pytest.mark.parametrize("first", [0, -3])
def test_rows_around_boundaries_of_constant_domains(kind: str, first: int) -> None:
    turned = {"name": "turned", "dims": ["x"], "value": "f(x) * 2.0"}
    turned["boundary"] = {"kind": kind, "domain": [[first, 20]]}
    out = {"name": "out", "dims": ["x"], "value": "turned(x - 2) + turned(x + 3)"}
    for region in ((-3, 26),), ((-30, 90),):
        assert_lowered_right(
            loaded(turned, out), [replace(group("x.inner"), output="turned"), group("x.inner")], region
        )


@pytest.mark.parametrize("at", ["x // 16", "(x + 3) // 32", "x % 32", "31 - x % 32", "clamp(x // 16 - 1, 0, 2)"])
def test_vectors_that_lie_in_one_block_read_one_element_or_neighbours(at: str) -> None:
    """From rows that begin anywhere."""
    out = {"name": "out", "dims": ["x"], "value": f"f({at}) - f(x)"}
    regions = (((-3, 90),), ((0, 64),), ((5, 11),))
    assert_lowered_right(loaded(out), [group("x.inner")], *regions, sizes={"f": ((-8, 108),)})


@pytest.mark.parametrize(
    ("at", "near"),
    [
        ("x % 100 + 100 * (x // 1000)", True),  # a plane of a flat row of three
        ("(x // 50) % 20", True),
        ("x * 147 % 160", False),
        ("x % 5", False),
        ("x % 100 + int32(f(x)) % 3", False),
    ],
)
def test_remainders_of_flat_places_lie_near_each_other(at: str, near: bool) -> None:
    text = evaluated(pipeline(f"f({at})")).text()
    assert ("window_gather" in text) == near
    for first in (40, 96):
        assert_evaluated_right(pipeline(f"f({at})"), np.arange(-200, 200, dtype=np.float32) / 7, first)


@pytest.mark.parametrize(
    ("at", "load"),
    [
        ("clamp(x - 1, 0, 9)", "clamped_load f[x - 1] from 0 to min(f_x - 1, 9)"),
        ("min(max(x, -3), 9) + 3", "clamped_load f[x + 3] from 0 to min(f_x - 1, 12)"),
        ("max(min(max(x, 2), 9), 4)", "clamped_load f[x] from 4 to min(f_x - 1, 9)"),
        ("clamp(min(x + 1, 7), y, 9)", "clamped_load f[x + 1] from max(0, y) to min(f_x - 1, max(y, 7))"),
        ("max(x, 5)", "clamped_load f[x] from 5 to f_x - 1"),
    ],
)
def test_exact_neighbours_are_one_clamped_load(at: str, load: str) -> None:
    p = pipeline(f"f({at}, y)", dims=("x", "y"))
    assert load.replace("f[", "f_0[") in evaluated(p, exact=True).text()


def test_data_is_a_place_without_a_sign() -> None:
    p = pipeline("f(int32(f(x)) + 1)", type="uint8")
    assert (
        evaluated(p).text().splitlines()
        == """
row f_1 = @f + 1
%f_0 = load f[x] : u8x8
%f_2 = gather f_1[<0; %f_0> origin 0 stride 1] : u8x8
""".strip().splitlines()
    )


def test_data_moves_a_row_by_what_all_lanes_share() -> None:
    p = pipeline("f(int32(f(x, y)), y + 1)", type="uint8", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, y)
row f_2 = @f + mul(f_stride_y, y + 1)
%f_1 = load f_0[x] : u8x8
%f_3 = gather f_2[<0; %f_1> origin 0 stride 1] : u8x8
""".strip().splitlines()
    )


SHAPES = [
    (1, "x + 3", lambda x, y: x + 3),
    (1, "7 - 2 * x", lambda x, y: 7 - 2 * x),
    (1, "-x + y", lambda x, y: y - x),
    (1, "x * 4 // 4", lambda x, y: x),
    (1, "(4 * x + 6 + 8 * y) // 4", lambda x, y: (4 * x + 6 + 8 * y) // 4),
    (1, "(2 * x - 3) % 2", lambda x, y: 1),
    (2, "x // 2", lambda x, y: x // 2),
    (2, "(x - 3) // 2", lambda x, y: (x - 3) // 2),
    (2, "(x + 1) % 2", lambda x, y: (x + 1) % 2),
    (2, "2 * (x // 2) + 1 - x % 2", lambda x, y: 2 * (x // 2) + 1 - x % 2),
    (4, "(x - 1) // 4 + (x + 5) % 4", lambda x, y: (x - 1) // 4 + (x + 5) % 4),
    (8, "x // 8", lambda x, y: x // 8),
    (8, "x // 24", lambda x, y: x // 24),
    (8, "x % 16 + 16 * (x // 64)", lambda x, y: x % 16 + 16 * (x // 64)),
    (8, "((x + 32) % 64 + 8) % 16", lambda x, y: ((x + 32) % 64 + 8) % 16),
    (8, "(x - x % 16 + (x + 8) % 16) // 32", lambda x, y: (x - x % 16 + (x + 8) % 16) // 32),
    (8, "(x - x % 16 + (x + 8) % 16) % 32", lambda x, y: (x - x % 16 + (x + 8) % 16) % 32),
    (8, "(8 * y - x + 7) % 24", lambda x, y: (8 * y - x + 7) % 24),
    (8, "(2 * x + 1) // 48", lambda x, y: (2 * x + 1) // 48),
    (8, "max(x, x - 3)", lambda x, y: x),
]


@pytest.mark.parametrize(("align", "text", "value"), SHAPES, ids=[s[1] for s in SHAPES])
def test_every_lane_is_where_the_index_says(align: int, text: str, value) -> None:
    ev, frame = row(align)
    found = ev.lane(index(text), frame)
    assert found.vector is None
    for q in (-3, 0, 5):
        for y in (-2, 1):
            first = found.base.value({"q": q, "y": y})
            lanes = [first + p for p in found.pattern or (0,) * LANES]
            assert lanes == [value(align * q + n, y) for n in range(LANES)]


@pytest.mark.parametrize(
    ("align", "text", "need"),
    [
        (1, "x // 2", 2),
        (1, "x % 4", 4),
        (2, "(x + 1) // 8", 8),
        (1, "(6 * x) // 4", 2),
        (1, "x // 16", 8),
        (2, "2 * x % 48", 8),
    ],
)
def test_vectors_have_to_begin_where_an_index_has_one_shape(align: int, text: str, need: int) -> None:
    ev, frame = row(align)
    with pytest.raises(NeedAlignment) as asked:
        ev.lane(index(text), frame)
    assert asked.value.align == need
    ev, frame = row(need)
    assert ev.lane(index(text), frame).vector is None


@pytest.mark.parametrize("text", ["x // 3", "x % 12", "(x + 1) % 16", "(x + y) // 2"])
def test_what_no_alignment_helps_is_data(text: str) -> None:
    ev, frame = row()
    assert ev.lane(index(text), frame).vector is not None


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("clamp(x, 0, 9)", 0, 9 - 7),
        ("min(x + 2, 20)", None, 20 - 2 - 7),
        ("max(3, 2 * x)", 2, None),
        ("clamp(9 - x, 0, 9)", 0, 2),
    ],
)
def test_what_is_noted_holds_where_no_clamp_is_active(text: str, least: int | None, most: int | None) -> None:
    """`least` and `most` are the first and the last vector of which no lane is clamped."""
    ev, frame = row()
    ev.lane(index(text), frame)
    inside = [q for q in range(-30, 30) if all(c.value({"q": q}) >= 0 for c in ev.constraints)]
    assert inside == list(range(-30 if least is None else least, 30 if most is None else most + 1))


def test_the_same_is_noted_once() -> None:
    ev, frame = row()
    for text in ("clamp(x, 0, 9)", "clamp(x, 0, 9) + 1"):
        ev.lane(index(text), frame)
    assert len(ev.constraints) == 2


def test_a_clamp_by_an_inner_loop_cuts_no_row() -> None:
    ev, frame = row()
    with ev.builder.scope():
        inner = ev.builder.declare("j")
        with pytest.raises(NotUniformBound):
            ev.lane(index("min(x, y)"), ev.extended(frame, "y", Lane(inner)))


def test_of_an_inner_loop_with_known_ends_the_worse_end_counts() -> None:
    ev, frame = row()
    with ev.builder.scope():
        inner = ev.builder.declare("j", ends=(const(10), const(12)))
        ev.lane(index("min(x, y)"), ev.extended(frame, "y", Lane(inner)))
    assert [c.value({"q": 0}) for c in ev.constraints] == [10 - 7]


def test_a_uniform_clamp_that_is_never_active_is_no_index() -> None:
    ev, frame = row()
    inner = ev.builder.declare("j", ends=(const(1), const(8)))
    at = ev.extended(frame, "y", Lane(inner))
    assert ev.lane(index("clamp(y, 0, 8)"), at).base == inner
    assert ev.lane(index("clamp(y, 2, 8)"), at).base != inner


def test_frames_of_the_same_variables_are_one() -> None:
    ev, frame = row()
    assert ev.frame(dict(frame.env)) is frame
    assert ev.extended(frame, "k", Lane(const(1))) is ev.extended(frame, "k", Lane(const(1)))
    assert ev.extended(frame, "k", Lane(const(1))).number != ev.extended(frame, "k", Lane(const(2))).number


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("value", ["f(clamp(x - 2, 0, 30))", "f(abs(x - 4))", "f(x * x % 7)", "f(31 - x)", "f(x // 3)"])
def test_elements_are_those_of_the_index(value: str, exact: bool) -> None:
    """Vectors in the middle of the row; exact ones, at its ends as well."""
    image = np.arange(100, 132, dtype=np.int16)
    for at in (0, 24, 31 - LANES) if exact else (4, 11):
        assert_evaluated_right(pipeline(value, type="int16"), image, at, exact=exact)
