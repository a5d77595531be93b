"""Memory: loads of points, neighbours, some way apart, anywhere."""

from __future__ import annotations

from support.lowered import evaluated, pipeline


def test_every_other_element_is_picked_of_two_vectors() -> None:
    p = pipeline("f(2 * x + 1)")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[2*x + 1] : f32x8
%f_1 = load f[2*x + 8] : f32x8
%f_0_0 = shuffle %f_0, %f_1 [0, 2, 4, 6, 9, 11, 13, 15] : f32x8
""".strip().splitlines()
    )


def test_far_apart_elements_are_gathered() -> None:
    p = pipeline("f(100 * x)")
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + 100*x
%f_1 = gather f_0[<0; [0, 100, 200, 300, 400, 500, 600, 700]> origin 0 stride 1] : f32x8
""".strip().splitlines()
    )


def test_a_row_has_one_pointer() -> None:
    p = pipeline("f(x, y + 2) + f(x + 3, y + 2)", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, y + 2)
%f_1 = load f_0[x] : f32x8
%f_2 = load f_0[x + 3] : f32x8
%t_0 = %f_1 + %f_2 : f32x8
""".strip().splitlines()
    )


def test_columns_are_gathered_by_the_stride() -> None:
    p = pipeline("f(y, x)", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, x) + y
%f_1 = gather f_0[<0; [0, 1, 2, 3, 4, 5, 6, 7]> origin 0 stride f_stride_y] : f32x8
""".strip().splitlines()
    )


def test_clamps_of_rows_have_names() -> None:
    p = pipeline("f(x, clamp(y, 0, 9)) + f(x + 1, clamp(y, 0, 9))", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
let y_0 = max(0, min(y, 9))
row f_0 = @f + mul(f_stride_y, y_0)
%f_1 = load f_0[x] : f32x8
%f_2 = load f_0[x + 1] : f32x8
%t_0 = %f_1 + %f_2 : f32x8
""".strip().splitlines()
    )


def test_safe_loads_stay_inside_the_buffer() -> None:
    p = pipeline("f(x + 1)")
    assert (
        evaluated(p, exact=True, safe=True).text().splitlines()
        == """
%f_0 = clamped_load f[x + 1] from 0 to f_x - 1 : f32x8
""".strip().splitlines()
    )
