"""Sums of products of 16 bits: neighbours are multiplied and added by one operation."""

from __future__ import annotations

from support.lowered import evaluated, pipeline


def test_two_products_are_one_operation() -> None:
    p = pipeline("int32(f(x)) * 3 + int32(f(x + 1)) * 5", type="int16")
    assert (
        evaluated(p).text().splitlines()
        == """
%t_0 = cast 3:i32 : i16
%t_1 = cast 5:i32 : i16
%t_2 = cast %t_0 : u16
%t_3 = cast %t_2 : u32
%t_4 = cast %t_1 : u16
%t_5 = cast %t_4 : u32
%t_6 = %t_5 << 16:u32 : u32
%t_7 = %t_3 | %t_6 : u32
%t_8 = cast %t_7 : i32
%f_0 = load f[x] : i16x8
%f_1 = load f[x + 1] : i16x8
%both_0 = shuffle %f_0, %f_1 [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15] : i16x16
%madd_0 = dot_pairs %both_0, %t_8 : i32x8
""".strip().splitlines()
    )


def test_factors_may_be_vectors() -> None:
    p = pipeline("int32(f(x)) * int32(f(x + 1)) + int32(f(x + 2)) * int32(f(x + 3))", type="int16")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : i16x8
%f_1 = load f[x + 1] : i16x8
%f_2 = load f[x + 2] : i16x8
%f_3 = load f[x + 3] : i16x8
%both_0 = shuffle %f_1, %f_3 [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15] : i16x16
%both_1 = shuffle %f_0, %f_2 [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15] : i16x16
%madd_0 = dot_pairs %both_1, %both_0 : i32x8
""".strip().splitlines()
    )


def test_one_product_stays_as_it_is() -> None:
    p = pipeline("int32(f(x)) * 3 + int32(f(x + 1))", type="int16")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[x] : i16x8
%f_1 = cast %f_0 : i32x8
%t_0 = %f_1 * 3:i32 : i32x8
%f_2 = load f[x + 1] : i16x8
%f_3 = cast %f_2 : i32x8
%t_1 = %t_0 + %f_3 : i32x8
""".strip().splitlines()
    )


def test_scalars_are_multiplied_one_by_one() -> None:
    p = pipeline("int32(f(x)) * 3 + int32(f(x + 1)) * 5", type="int16")
    assert (
        evaluated(p, lanes=1).text().splitlines()
        == """
%f_0 = load f[x] : i16
%f_1 = cast %f_0 : i32
%t_0 = %f_1 * 3:i32 : i32
%f_2 = load f[x + 1] : i16
%f_3 = cast %f_2 : i32
%t_1 = %f_3 * 5:i32 : i32
%t_2 = %t_0 + %t_1 : i32
""".strip().splitlines()
    )
