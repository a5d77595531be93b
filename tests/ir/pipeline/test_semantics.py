"""Every operator against Python's unbounded integers, or its closed form."""

import itertools
import math

import numpy as np
import pytest

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    TYPES,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)

INTEGERS = [t for t in TYPES.values() if t.is_integer]


def interesting(t):
    near = {0, 1, 2, 3, 7, 100, -1, -2, -3, -7, -100, t.min, t.min + 1, t.max, t.max - 1, t.max // 2, t.max // 2 + 1}
    return sorted(v for v in near if t.min <= v <= t.max)


def wrap(value, t):
    value %= 1 << t.bits
    return value - (1 << t.bits) if value > t.max else value


def saturate(value, t):
    return max(t.min, min(t.max, value))


def pairs(t, other=None):
    a, b = zip(*itertools.product(interesting(t), interesting(other or t)), strict=True)
    return a, b, np.array(a, t.numpy), np.array(b, (other or t).numpy)


def check(result, expected, t):
    assert result.dtype == t.numpy
    assert result.tolist() == list(expected)


@pytest.mark.parametrize("t", INTEGERS, ids=str)
class TestIntegers:
    @pytest.mark.parametrize(
        ("op", "exact"),
        [
            ("+", lambda a, b: a + b),
            ("-", lambda a, b: a - b),
            ("*", lambda a, b: a * b),
            ("&", lambda a, b: a & b),
            ("|", lambda a, b: a | b),
            ("^", lambda a, b: a ^ b),
        ],
    )
    def test_arithmetic_wraps(self, t, op, exact):
        a, b, va, vb = pairs(t)
        check(semantics.binary(op, va, vb, t), [wrap(exact(p, q), t) for p, q in zip(a, b, strict=True)], t)

    def test_division_leaves_a_remainder_that_is_never_negative(self, t):
        a, b, va, vb = pairs(t)
        quotients = semantics.binary("//", va, vb, t)
        remainders = semantics.binary("%", va, vb, t)
        assert quotients.dtype == remainders.dtype == t.numpy
        for p, q, quotient, remainder in zip(a, b, quotients.tolist(), remainders.tolist(), strict=True):
            if q == 0:
                assert (quotient, remainder) == (0, 0)
            else:
                assert 0 <= remainder < abs(q)
                assert wrap(quotient * q + remainder, t) == p
                assert quotient == wrap((p - remainder) // q, t)

    def test_shifts_by_any_count(self, t):
        for count_type in (t, INT8, UINT8, INT64, UINT64):
            a, c, va, vc = pairs(t, count_type)

            def shifted(value, count, t=t):
                return wrap(value << min(count, 200), t) if count >= 0 else value >> min(-count, 200)

            left = [shifted(p, q) for p, q in zip(a, c, strict=True)]
            right = [shifted(p, -q) for p, q in zip(a, c, strict=True)]
            check(semantics.binary("<<", va, vc, t), left, t)
            check(semantics.binary(">>", va, vc, t), right, t)

    def test_shifts_around_the_width(self, t):
        counts = list(range(-t.bits - 2, t.bits + 3))
        for value in (t.min, t.max, 1):
            a, c = np.full(len(counts), value, t.numpy), np.array(counts, np.int32)
            check(
                semantics.binary("<<", a, c, t),
                [wrap(value << n, t) if n >= 0 else value >> -n for n in counts], t,
            )  # fmt: skip

    def test_unary(self, t):
        values = interesting(t)
        array = np.array(values, t.numpy)
        check(semantics.unary("-", array, t), [wrap(-v, t) for v in values], t)
        check(semantics.unary("~", array, t), [wrap(~v, t) for v in values], t)
        check(semantics.call("abs", (array,), (t,), t), [wrap(abs(v), t) for v in values], t)

    def test_absd_is_exact_in_the_unsigned_type(self, t):
        unsigned = TYPES[f"uint{t.bits}"]
        a, b, va, vb = pairs(t)
        expected = [abs(p - q) for p, q in zip(a, b, strict=True)]
        check(semantics.call("absd", (va, vb), (t, t), unsigned), expected, unsigned)

    @pytest.mark.parametrize(
        ("name", "exact"),
        [
            ("sat_add", lambda a, b: a + b),
            ("sat_sub", lambda a, b: a - b),
            ("halving_add", lambda a, b: math.floor((a + b) // 2)),
            ("rounding_halving_add", lambda a, b: (a + b + 1) // 2),
        ],
    )
    def test_idioms_are_exact_and_saturate(self, t, name, exact):
        a, b, va, vb = pairs(t)
        expected = [saturate(exact(p, q), t) for p, q in zip(a, b, strict=True)]
        check(semantics.call(name, (va, vb), (t, t), t), expected, t)

    def test_counts_of_bits(self, t):
        a, _, va, _ = pairs(t)
        texts = [f"{p % (1 << t.bits):0{t.bits}b}" for p in a]
        for name, exact in (
            ("popcount", lambda text: text.count("1")),
            ("count_leading_zeros", lambda text: len(text) - len(text.lstrip("0"))),
            ("count_trailing_zeros", lambda text: len(text) - len(text.rstrip("0"))),
        ):
            check(semantics.call(name, (va,), (t,), t), [exact(text) for text in texts], t)

    def test_rounding_shift_right(self, t):
        a, c, va, vc = pairs(t, INT16)
        expected = []
        for p, q in zip(a, c, strict=True):
            exact = (p + 2 ** (q - 1)) // 2**q if q > 0 else p * 2**-q
            expected.append(saturate(exact, t))
        check(semantics.call("rounding_shift_right", (va, vc), (t, INT16), t), expected, t)

    def test_mul_shift_right(self, t):
        a, b, va, vb = pairs(t)
        for count in (-70, -3, 0, 1, 5, t.bits - 1, t.bits, 2 * t.bits, 100):
            expected = [
                saturate(p * q // 2**count if count >= 0 else p * q * 2**-count, t) for p, q in zip(a, b, strict=True)
            ]
            c = np.array(count, np.int16)
            check(semantics.call("mul_shift_right", (va, vb, c), (t, t, INT16), t), expected, t)

    def test_power(self, t):
        values = interesting(t)
        for exponent in (0, 1, 2, 3, 5, 13):
            result = semantics.binary("**", np.array(values, t.numpy), np.array(exponent, np.int32), t)
            check(result, [wrap(v**exponent, t) for v in values], t)

    def test_conversions_between_integers(self, t):
        for target in INTEGERS:
            values = interesting(t)
            array = np.array(values, t.numpy)
            check(semantics.convert(array, t, target), [wrap(v, target) for v in values], target)
            check(semantics.convert(array, t, target, saturate=True), [saturate(v, target) for v in values], target)

    def test_conversion_from_floats_truncates_and_saturates(self, t):
        values = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 99.99, -1e30, 1e30, math.inf, -math.inf, math.nan]
        values += [float(t.max), float(t.min), math.nextafter(float(t.max), 0), 2.0**t.bits, -(2.0**t.bits)]
        for source in (FLOAT32, FLOAT64):
            array = np.array(values, source.numpy)
            expected = []
            for v in array.tolist():
                if math.isnan(v):
                    expected.append(0)
                else:
                    expected.append(saturate(10**40 if v > 1e39 else -(10**40) if v < -1e39 else math.trunc(v), t))
            check(semantics.convert(array, source, t), expected, t)
            check(semantics.convert(array, source, t, saturate=True), expected, t)

    def test_conversion_to_bool_and_back(self, t):
        assert semantics.convert(np.array(interesting(t), t.numpy), t, BOOL).tolist() == [
            v != 0 for v in interesting(t)
        ]
        check(semantics.convert(np.array([True, False]), BOOL, t), [1, 0], t)

    def test_lerp_of_integers_is_the_nearest(self, t):
        top = 2**t.bits - 1
        for weight in (UINT8, UINT16, UINT32, UINT64):
            for a, b in ((t.min, t.max), (t.max, t.min), (3, 100), (100, 3), (t.max, t.max)):
                for w in (0, 1, 100, weight.max // 2, weight.max - 1, weight.max):
                    scaled = w * (top // weight.max) if weight.bits <= t.bits else w // (weight.max // top)
                    numerator = a * (top - scaled) + b * scaled
                    result = semantics.call(
                        "lerp", (np.array(a, t.numpy), np.array(b, t.numpy), np.array(w, weight.numpy)),
                        (t, t, weight), t,
                    )  # fmt: skip
                    assert abs(int(result) * top - numerator) * 2 < top
                    assert w not in (0, weight.max) or int(result) == (b if w else a)

    def test_lerp_of_integers_by_a_float(self, t):
        a, b = np.array([3, 3, 3, 3], t.numpy), np.array([103, 103, 103, 103], t.numpy)
        w = np.array([0, 0.5, 1, 7], np.float32)
        result = semantics.call("lerp", (a, b, w), (t, t, FLOAT32), t).tolist()
        assert result[0] == 3
        assert result[1] in (52, 53)
        assert result[2:] == [103, 103]

    def test_min_max_clamp(self, t):
        a, b, va, vb = pairs(t)
        check(semantics.call("min", (va, vb), (t, t), t), map(min, a, b), t)
        check(semantics.call("max", (va, vb), (t, t), t), map(max, a, b), t)
        low, high = np.array(2, t.numpy), np.array(9, t.numpy)
        check(semantics.call("clamp", (va, low, high), (t,) * 3, t), [max(min(p, 9), 2) for p in a], t)

    def test_identities(self, t):
        for op, value in {"sum": 0, "product": 1, "min": t.max, "max": t.min, "argmin": t.max, "argmax": t.min}.items():
            check(semantics.identity(op, t).reshape(1), [value], t)


class TestFloats:
    @pytest.mark.parametrize("t", [FLOAT32, FLOAT64], ids=str)
    def test_arithmetic_stays_in_its_type(self, t):
        a, b = np.array([1.1, -7.5, 5.0], t.numpy), np.array([3.3, 2.0, -3.0], t.numpy)
        for op, f in {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}.items():
            result = semantics.binary(op, a, b, t)
            assert result.dtype == t.numpy
            assert np.array_equal(result, f(a, b))

    def test_floor_division(self):
        a, b = np.array([7, -7, 7, -7], np.float32), np.array([2, 2, -2, -2], np.float32)
        assert semantics.binary("//", a, b, FLOAT32).tolist() == [3, -4, -4, 3]
        assert semantics.binary("%", a, b, FLOAT32).tolist() == [1, 1, -1, -1]

    def test_division_by_zero_is_infinite_or_nan(self):
        a = np.array([1, -1, 0], np.float32)
        result = semantics.binary("/", a, np.zeros(3, np.float32), FLOAT32)
        assert result.tolist()[:2] == [math.inf, -math.inf]
        assert math.isnan(result[2])

    def test_power_by_squaring_multiplies_in_the_order_stated(self):
        x = np.array([1.1, -0.37, 123.4], np.float32)
        x2 = x * x
        x4 = x2 * x2
        thirteen = (x * x4) * (x4 * x4)
        one = np.float32(1)
        assert np.array_equal(semantics.binary("**", x, np.array(13, np.int32), FLOAT32), thirteen)
        assert np.array_equal(semantics.binary("**", x, np.array(-13, np.int32), FLOAT32), one / thirteen)
        assert np.array_equal(semantics.binary("**", x, np.array(0, np.int32), FLOAT32), np.ones(3, np.float32))

    def test_power_with_a_floating_exponent(self):
        x = np.array([4.0, 2.0], np.float32)
        assert semantics.binary("**", x, np.array([0.5, -1.0], np.float32), FLOAT32).tolist() == [2.0, 0.5]

    def test_min_and_max_choose_the_second_where_nothing_compares(self):
        nan = np.float32(np.nan)
        a, b = np.array([nan, 1.0, 0.0], np.float32), np.array([1.0, nan, -0.0], np.float32)
        for name in ("min", "max"):
            result = semantics.call(name, (a, b), (FLOAT32, FLOAT32), FLOAT32)
            assert result[0] == 1.0
            assert np.isnan(result[1])
            assert np.signbit(result[2])

    def test_round_goes_to_even(self):
        x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4], np.float32)
        assert semantics.call("round", (x,), (FLOAT32,), FLOAT32).tolist() == [0, 2, 2, 0, -2, 2]

    @pytest.mark.parametrize(
        ("name", "f"),
        [
            ("sqrt", math.sqrt), ("exp", math.exp), ("log", math.log), ("sin", math.sin), ("cos", math.cos),
            ("tan", math.tan), ("asin", math.asin), ("acos", math.acos), ("atan", math.atan), ("tanh", math.tanh),
            ("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc),
        ],
    )  # fmt: skip
    def test_functions(self, name, f):
        x = np.array([0.1, 0.5, 0.999], np.float32)
        result = semantics.call(name, (x,), (FLOAT32,), FLOAT32)
        assert result.dtype == np.float32
        assert np.allclose(result, [f(float(v)) for v in x], rtol=1e-6)

    def test_functions_of_two(self):
        a, b = np.array([0.5, 2.0], np.float32), np.array([3.0, -1.0], np.float32)
        types = (FLOAT32, FLOAT32)
        assert semantics.call("pow", (a, b), types, FLOAT32).tolist() == [0.125, 0.5]
        expected = [math.atan2(0.5, 3), math.atan2(2, -1)]
        assert np.allclose(semantics.call("atan2", (a, b), types, FLOAT32), expected, rtol=1e-6)
        assert semantics.call("absd", (a, b), types, FLOAT32).tolist() == [2.5, 3.0]

    def test_lerp(self):
        a, b = np.array(2, np.float32), np.array(10, np.float32)
        half = np.array(0.5, np.float64)
        assert semantics.call("lerp", (a, b, half), (FLOAT32, FLOAT32, FLOAT64), FLOAT32) == 6
        for weight in (UINT8, UINT16, UINT32, UINT64):
            full = np.array(weight.max, weight.numpy)
            assert semantics.call("lerp", (a, b, full), (FLOAT32, FLOAT32, weight), FLOAT32) == 10
        quarter = np.array(51, np.uint8)
        assert np.isclose(semantics.call("lerp", (a, b, quarter), (FLOAT32, FLOAT32, UINT8), FLOAT32), 3.6)

    def test_rounding_of_wide_integers(self):
        a = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1], np.int32)
        assert semantics.convert(a, INT32, FLOAT32).tolist() == [2**24, 2**24 + 4, -(2**24)]

    def test_comparisons_with_nan(self):
        nan, one = np.array(np.nan, np.float32), np.array(1, np.float32)
        assert not any(semantics.compare(op, nan, one) for op in ("<", "<=", "==", ">=", ">"))
        assert semantics.compare("!=", nan, one)

    def test_identities(self):
        assert semantics.identity("min", FLOAT32) == math.inf
        assert semantics.identity("argmax", FLOAT64) == -math.inf
        assert not semantics.identity("any", BOOL)
        assert semantics.identity("all", BOOL)


def test_mux_takes_the_last_for_every_other_index():
    i = np.array([-1, 0, 1, 2, 3, 100], np.int32)
    choices = tuple(np.array(v, np.int16) for v in (10, 20, 30))
    assert semantics.call("mux", (i, *choices), (INT32, INT16, INT16, INT16), INT16).tolist() == [
        30,
        10,
        20,
        30,
        30,
        30,
    ]


def hash_in_python(*args):
    h = 0x9E3779B9
    for a in args:
        h ^= a % 2**32
        h ^= h >> 16
        h = h * 0x85EBCA6B % 2**32
        h ^= h >> 13
        h = h * 0xC2B2AE35 % 2**32
        h ^= h >> 16
    return (h >> 8) / 2**24


def test_random_is_the_hash_stated():
    x, y = np.arange(-50, 50, dtype=np.int32), np.arange(7, dtype=np.uint8).reshape(7, 1)
    result = semantics.random_float((x, y))
    assert result.dtype == np.float32
    assert result.tolist() == [[hash_in_python(p, q) for p in range(-50, 50)] for q in range(7)]


def test_random_is_spread_evenly():
    n = 1 << 14
    values = semantics.random_float((np.arange(n, dtype=np.int32), np.array(3, np.int32)))
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.bincount((values * 16).astype(int), minlength=16)
    assert abs(counts - n / 16).max() < 5 * math.sqrt(n / 16)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("repeat_edge", "aaaa abc cccc"),
        ("constant", "aaaa abc cccc"),
        ("repeat_image", "cabc abc abca"),
        ("mirror_image", "ccba abc cbaa"),
        ("mirror_interior", "abcb abc babc"),
    ],
)
def test_boundaries(kind, seen):
    low = 7
    points = semantics.boundary_index(kind, np.arange(low - 4, low + 7), low, 3)
    assert "".join("abc"[i - low] for i in points) == seen.replace(" ", "")


@pytest.mark.parametrize("kind", ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant"])
def test_one_point_is_its_own_surroundings(kind):
    assert semantics.boundary_index(kind, np.arange(-5, 6), 2, 1).tolist() == [2] * 11
