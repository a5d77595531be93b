"""Expressions to values: a point, or a vector of neighbours along the axis."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.lowered import LANES, Lowered, evaluated, pipeline
from support.lowered_values import assert_evaluated_right

from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.lowering.expressions import Evaluator


def test_a_vector_loads_neighbours_once() -> None:
    p = pipeline("f(x) + f(x + 1) * f(x)")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : f32x8
%f_1 = load f[x + 1] : f32x8
%t_0 = %f_1 * %f_0 : f32x8
%t_1 = %f_0 + %t_0 : f32x8
""".strip().splitlines()
    )


def test_without_an_axis_values_are_scalars() -> None:
    p = pipeline("f(x) + f(x + 1)")
    assert (
        evaluated(p, lanes=1).text().splitlines()
        == """
%f_0 = load f[x] : f32
%f_1 = load f[x + 1] : f32
%t_0 = %f_0 + %f_1 : f32
""".strip().splitlines()
    )


def test_inlined_stages_are_evaluated_where_they_are_read() -> None:
    p = pipeline("g(x) * g(x + 1)", ("g", "f(x) + 1.0"))
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : f32x8
%t_0 = %f_0 + 1.0:f32 : f32x8
%f_1 = load f[x + 1] : f32x8
%t_1 = %f_1 + 1.0:f32 : f32x8
%t_2 = %t_0 * %t_1 : f32x8
""".strip().splitlines()
    )


@pytest.mark.parametrize(
    "value",
    ["(g(x) - floor(g(x))) * 2.0", "floor(g(x)) + g(x)", "g(x) - float32(int32(g(x)))", "f(floor(g(x))) + g(x)"],
)
def test_what_is_rounded_for_a_place_is_the_value_too(value: str) -> None:
    """Else what places are made of would be computed twice, functions among it: as it is written, and fused."""
    value = value.replace("f(floor(g(x)))", "f(clamp(int32(floor(g(x))), 0, 9))")
    text = evaluated(pipeline(value, ("g", "exp(f(x) * 2.0 + 1.0) * 3.0 + 1.0"))).text()
    assert text.count("call exp") == 1
    assert text.count("* 3.0") == 1


def test_powers_are_squared_and_multiplied() -> None:
    p = pipeline("f(x) ** 5")
    assert (
        evaluated(p, lanes=1).text().splitlines()
        == """
%f_0 = load f[x] : f32
%t_0 = %f_0 * %f_0 : f32
%t_1 = %t_0 * %t_0 : f32
%t_2 = %f_0 * %t_1 : f32
""".strip().splitlines()
    )


def test_a_choice_that_differs_by_row_picks_by_the_index() -> None:
    p = pipeline("mux(y, f(x, y), f(x, y) * 2, 0.0)", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
%x_0 = from_index y : i32
%t_0 = %x_0 == 1:i32 : b8
row f_0 = @f + mul(f_stride_y, y)
%t_3 = %x_0 == 0:i32 : b8
%f_1 = load f_0[x] : f32x8
%t_1 = %f_1 * 2.0:f32 : f32x8
%t_2 = select %t_0, %t_1, 0.0:f32 : f32x8
%t_4 = select %t_3, %f_1, %t_2 : f32x8
""".strip().splitlines()
    )


NUMBERS = np.linspace(-3.0, 3.0, 24, dtype=np.float32)
WHOLE = np.array([-128, 127, 0, 1, -1, 5, -5, 100, -100, 77, -77, 3, 2, -2, 60, -128, 127, 9], np.int8)
BEYOND = np.array(
    [np.nan, np.inf, -np.inf, 255.5, 256.0, -0.5, -1.0, 127.9, 128.0, -128.9, -129.0, 1e30] * 2, np.float32
)
VALUES = {
    "a float to a byte": ("uint8(f(x))", BEYOND),
    "a float to a byte with a sign": ("int8(f(x))", BEYOND),
    "a float of a byte to a byte": ("uint8(float32(f(x)) * 0.5 - 3.0)", WHOLE),
    "a power below 0": ("f(x) ** -3", NUMBERS),
    "to the power of 0": ("f(x) ** 0", NUMBERS),
    "a clamp of values": ("clamp(f(x), -1.0, f(x + 1))", NUMBERS),
    "a clamp with ends the wrong way round": ("clamp(f(x), 2.0, -2.0)", NUMBERS),
    "a choice by values": ("select(f(x) > f(x + 1), f(x), f(x + 2) * 2)", NUMBERS),
    "a choice by a condition of no value": ("select(x > 5 or not x == 3, f(x), f(x + 1))", NUMBERS),
    "a mux": ("mux(x, f(x), f(x + 1), f(x + 2))", NUMBERS),
    "a mux by data, beyond its choices": ("mux(int32(f(x)), f(x), f(x + 1), -f(x + 2))", NUMBERS),
    "logic": ("select((f(x) > 0 and f(x + 1) < 1) or not f(x + 2) > 0, 1.0, 2.0)", NUMBERS),
    "wrapped": ("f(x) * f(x + 1) + f(x + 2)", WHOLE),
    "saturated": ("sat_uint8(f(x))", WHOLE),
    "floored": ("f(x) // 3 + f(x) % 3", WHOLE),
    "the least of many": ("min(f(x), f(x + 1), f(x + 2), 7)", WHOLE),
    "shifted": ("(int32(f(x)) << 3) >> 1", WHOLE),
    "where it is": ("float32(x) * 0.5 + f(x)", NUMBERS),
}


@pytest.mark.parametrize("lanes", [1, 2, LANES])
@pytest.mark.parametrize(("value", "image"), VALUES.values(), ids=VALUES)
def test_values_at_points_and_in_vectors(value: str, image: np.ndarray, lanes: int) -> None:
    for at in (0, 3):
        assert_evaluated_right(pipeline(value, type=image.dtype.name), image, at, lanes=lanes)


@pytest.mark.parametrize(
    ("value", "asks"),
    [
        ("uint8(f(x))", ["min", "max"]),  # 0 of NaN is that of the clamp
        ("int8(f(x))", ["==", "min", "max"]),
        ("int8(clamp(f(x), -3.0, 9e9))", ["min", "max", "min"]),
        ("uint16(float32(uint8(f(x))) * 1.35 - 0.5)", ["min", "max"]),  # what lies above -1 becomes 0
    ],
)
def test_floats_that_become_short_integers_are_clamped_where_they_may_be_beyond(value: str, asks: list[str]) -> None:
    text = evaluated(pipeline(value)).text()
    assert re.findall("==|call min|call max", text) == [a if a == "==" else f"call {a}" for a in asks]


@pytest.mark.parametrize("value", ["int8(clamp(f(x), -3.0, 900.0))", "uint8(clamp(f(x), -9.0, 600.0) * 1.35 + 0.5)"])
def test_floats_that_fit_32_bits_saturate_as_these_integers(value: str) -> None:
    text = evaluated(pipeline(value)).text()
    assert len(re.findall("call min|call max", text)) == 2, "those of the clamp"
    assert re.search(r"truncate .* : i32x\d+\n.* = cast .* saturate", text)


def test_a_constant_boundary_is_not_asked_for_inside() -> None:
    """The vector relies on it being inside, and says so."""
    lowered = evaluated(pipeline("select(x - 2 >= 0 and x - 2 <= 20, f(x - 2), 9.0)"))
    assert lowered.text() == "%f_0 = load f[x - 2] : f32x8"
    assert lowered.required() == ["-1*x+15", "1*x+-2"]


def test_exact_boundaries_are_asked_for_lane_by_lane() -> None:
    p = pipeline("select(x - 2 >= 0 and x - 2 <= 3, f(x), 9.0)")
    assert "select" in evaluated(p, exact=True).text()
    assert_evaluated_right(p, NUMBERS, exact=True)


def test_a_choice_of_one_condition_is_no_boundary() -> None:
    p = pipeline("select(x >= 2, f(x), 9.0)")
    assert evaluated(p).required() == []
    assert_evaluated_right(p, NUMBERS)


def test_a_condition_that_no_row_moves_is_asked_once() -> None:
    p = pipeline("select(y >= 3 and x >= 0, f(x, y), 1.0)", dims=("x", "y"))
    assert evaluated(p).text().splitlines()[:2] == ["%x_0 = from_index y : i32", "%t_0 = %x_0 >= 3:i32 : b8"]
    assert "select %t_0, %f_1, 1.0:f32 : f32x8" in evaluated(p).text()


def test_stages_inlined_without_end_are_refused() -> None:
    """Each doubles the places of the one before it: the thirteenth is read at 8192."""
    stages = [(f"s{n}", f"s{n - 1}(x) + s{n - 1}(x + {2**n})" if n else "f(x) * 2") for n in range(13)]
    p = pipeline("s12(x) + s12(x + 8192)", *stages)
    with pytest.raises(IllegalSchedule, match="would be computed inline at more than 4000 places"):
        evaluated(p)


def test_what_is_the_same_in_all_terms_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, read = [], Evaluator._read
    monkeypatch.setattr(Evaluator, "_read", lambda ev, e, frame: reads.append(e.name) or read(ev, e, frame))
    p = pipeline("sum(select(g(x) > 1.0, g(x + r), 2.0) for r in range(0, 4))", ("g", "f(x) * 3.0"))
    evaluated(p)
    assert (reads.count("g"), reads.count("f")) == (1 + 4, 4)
    assert_evaluated_right(p, NUMBERS)


def test_what_is_known_is_forgotten_with_the_block_that_has_it() -> None:
    """An expression that a block has computed is computed anew outside of it."""
    lowered = Lowered(pipeline("f(x) * 2"))
    ev, value = lowered.evaluator, lowered.stages["out"].values[0]
    with lowered.builder.condition() as inside:
        first = ev.value(value, lowered.frame)
        assert ev.value(value, lowered.frame) is first
    assert any(isinstance(s, Define) for s in inside)
    second = ev.value(value, lowered.frame)
    assert second != first
    assert [s.result for s in lowered.inside if isinstance(s, Define)][-1] == second
