"""Inline reductions: short ones are written out, long ones are loops around accumulators."""

from __future__ import annotations

from support.lowered import evaluated, pipeline


def test_few_terms_are_written_out() -> None:
    p = pipeline("sum(f(x + k) for k in range(3))")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : f32x8
%f_1 = load f[x + 1] : f32x8
%t_0 = %f_0 + %f_1 : f32x8
%f_2 = load f[x + 2] : f32x8
%t_1 = %t_0 + %f_2 : f32x8
""".strip().splitlines()
    )


def test_many_terms_are_a_loop() -> None:
    p = pipeline("sum(f(x + k) for k in range(100))")
    assert (
        evaluated(p).text().splitlines()
        == """
%sum_0 = accumulator 0.0:f32 : f32x8
for k_1 = 0 to 99 step 1 {
  %f_1 = load f[k_1 + x] : f32x8
  %t_0 = %sum_0 + %f_1 : f32x8
  assign %sum_0 = %t_0
}
%t_1 = copy %sum_0 : f32x8
""".strip().splitlines()
    )


def test_where_is_a_choice_in_every_lane() -> None:
    p = pipeline("max(f(x + k) for k in range(2) if f(x + k) > 0)")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : f32x8
%t_0 = %f_0 > 0.0:f32 : b8x8m32
%t_1 = select %t_0, %f_0, -inf:f32 : f32x8
%f_1 = load f[x + 1] : f32x8
%t_2 = %f_1 > 0.0:f32 : b8x8m32
%t_3 = select %t_2, %f_1, -inf:f32 : f32x8
%t_4 = call max(%t_1, %t_3) : f32x8
""".strip().splitlines()
    )


def test_components_of_argmin_are_computed_together() -> None:
    p = pipeline("float32(argmin(f(x + k) for k in range(2))[0]) + argmin(f(x + k) for k in range(2))[1]")
    assert (
        evaluated(p, lanes=1).text().splitlines()
        == """
%f_0 = load f[x] : f32
%t_0 = %f_0 < inf:f32 : b8
%t_1 = select %t_0, 0:i32, 0:i32 : i32
%t_2 = select %t_0, %f_0, inf:f32 : f32
%f_1 = load f[x + 1] : f32
%t_3 = %f_1 < %t_2 : b8
%t_4 = select %t_3, 1:i32, %t_1 : i32
%t_5 = select %t_3, %f_1, %t_2 : f32
%t_6 = cast %t_4 : f32
%t_7 = %t_6 + %t_5 : f32
""".strip().splitlines()
    )


def test_a_loop_over_a_variable_that_is_divided_is_two() -> None:
    p = pipeline("float32(argmax(f(x + 16 * (k // 9) + k % 9) for k in range(81))[0])")
    assert (
        evaluated(p).text().splitlines()
        == """
%argmax_0 = accumulator 0:i32 : i32x8
%argmax_1 = accumulator -inf:f32 : f32x8
for k_outer_0 = 0 to 8 step 1 {
  for k_1 = 0 to 8 step 1 {
    %f_1 = load f[k_1 + 16*k_outer_0 + x] : f32x8
    %t_0 = %f_1 > %argmax_1 : b8x8m32
    %x_0 = from_index k_1 + 9*k_outer_0 : i32
    %t_1 = select %t_0, %x_0, %argmax_0 : i32x8
    %t_2 = select %t_0, %f_1, %argmax_1 : f32x8
    assign %argmax_0 = %t_1
    assign %argmax_1 = %t_2
  }
}
%t_3 = copy %argmax_0 : i32x8
%t_4 = copy %argmax_1 : f32x8
%t_5 = cast %t_3 : f32x8
""".strip().splitlines()
    )


def test_a_loop_stays_one_whose_trips_are_no_multiple_of_the_divisor() -> None:
    p = pipeline("sum(f(x + 16 * (k // 9) + k % 9) for k in range(80))")
    assert evaluated(p).text().count("for ") == 1
