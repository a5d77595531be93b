"""Sums of products of 16 bits: neighbours are multiplied and added by one operation."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import evaluated, pipeline
from support.lowered_values import assert_evaluated_right


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


@pytest.mark.parametrize(("places", "loads"), [((4, 5), 1), ((5, 4), 0), ((4, 6), 0)])
def test_factors_that_are_neighbours_are_one_load(places: tuple[int, int], loads: int) -> None:
    p = pipeline("int32(f(x)) * int32(f({})) + int32(f(x + 1)) * int32(f({}))".format(*places), type="int16")
    assert evaluated(p).text().count("load_pair") == loads
    assert_evaluated_right(p, EXTREMES["int16"])


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


EXTREMES = {
    "int8": np.array([-128, 127, 0, 1, -1, 77, -77, 5, 99, -128, -128, 127], np.int8),
    "uint8": np.array([255, 0, 1, 254, 128, 127, 3, 9, 200, 255, 255, 17], np.uint8),
    "int16": np.array([-32768, -32768, 32767, -1, 0, 1, 999, -999, -32768, 32767, 12, 5], np.int16),
}
SUMS = {
    "two by numbers": "int32(f(x)) * 3 + int32(f(x + 1)) * -5",
    "two by vectors": "int32(f(x)) * int32(f(x + 1)) + int32(f(x + 2)) * int32(f(x + 3))",
    "squares, which wrap in pairs": "int32(f(x)) * int32(f(x)) + int32(f(x + 1)) * int32(f(x + 1))",
    "a number and a vector": "int32(f(x)) * 7 + int32(f(x + 2)) * int32(f(x + 3))",
    "an odd one out": "int32(f(x)) * 3 + int32(f(x + 1)) * 5 + int32(f(x + 2)) * 7",
    "an odd one with a number": "int32(f(x)) * 3 + int32(f(x + 1)) * 5 + int32(f(x + 2)) * 7 + 100",
    "terms that are no products": "int32(f(x)) * 3 + int32(f(x + 1)) * 5 + int32(f(x + 3)) + x",
    "taken off": "int32(f(x)) * 3 - int32(f(x + 1)) * 5 + int32(f(x + 2)) * 2",
}


@pytest.mark.parametrize("type_", EXTREMES)
@pytest.mark.parametrize("value", SUMS.values(), ids=SUMS)
def test_sums_are_what_they_were(value: str, type_: str) -> None:
    assert_evaluated_right(pipeline(value, type=type_), EXTREMES[type_])


@pytest.mark.parametrize("name", [n for n in SUMS if n not in ("two by vectors", "taken off")])
def test_bytes_are_multiplied_in_pairs(name: str) -> None:
    assert "dot_pairs" in evaluated(pipeline(SUMS[name], type="uint8")).text()


def test_an_odd_number_of_products_has_a_number_for_partner() -> None:
    """The number 100 is 1 times 100, which makes four products of three."""
    text = evaluated(pipeline(SUMS["an odd one with a number"], type="uint8")).text()
    assert text.count("dot_pairs") == 2
    assert text.count(": i32x8") == 3


@pytest.mark.parametrize("type_", ["uint16", "int32"])
def test_what_has_more_than_16_bits_with_its_sign_is_multiplied_as_it_is(type_: str) -> None:
    p = pipeline("int32(f(x)) * 3 + int32(f(x + 1)) * 5", type=type_)
    assert "dot_pairs" not in evaluated(p).text()
    assert_evaluated_right(p, np.array([65535] * 9).astype(type_))
