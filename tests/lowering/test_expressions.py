"""Expressions to values: a point, or a vector of neighbours along the axis."""

from __future__ import annotations

from support.lowered import evaluated, pipeline


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
