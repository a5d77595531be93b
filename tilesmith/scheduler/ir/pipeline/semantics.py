"""Semantics of every operator and function of the pipeline language, on NumPy arrays.

The definition that generated code is held to: exact for integers, in the order written for floats.
All functions take arrays (or scalars) that already have the types that the checked tree gives them,
broadcast, and return arrays of the result's type. Nothing here warns: overflow, division by zero and
NaN all have a meaning below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.pipeline.pipeline import BoundaryKind
from tilesmith.scheduler.ir.pipeline.types import FLOAT64, ScalarType

Array: TypeAlias = NDArray[Any]

RANDOM_SEED = 0x9E3779B9


def constant(value: int | float | bool, type_: ScalarType) -> Array:
    """`value` as a 0-d array; integers wrap to the type."""
    if type_.is_integer:
        return np.asarray(_wrap(int(value), type_), type_.numpy)
    with np.errstate(all="ignore"):
        return np.asarray(value, type_.numpy)


def binary(op: str, a: Array, b: Array, type_: ScalarType) -> Array:
    """`a op b` in `type_`.

    - `+ - *` of integers wrap; `/` is of floats.
    - `//` and `%` of integers: the remainder lies in [0, |b|) and a == (a // b) * b + a % b; both are 0
      where b is 0; the smallest integer // -1 wraps to itself. Of floats: floor(a / b) and a - floor(a / b) * b.
    - `**` with an integer exponent is `power_by_squaring`; with a floating exponent it is C's pow.
    - `<<` and `>>` by a negative count shift the other way; bits that leave are lost; `>>` of a signed integer
      fills with its sign, so that a count of at least the width leaves 0, or -1 for negative integers.
    """
    with np.errstate(all="ignore"):
        match op:
            case "+":
                result = np.add(a, b)
            case "-":
                result = np.subtract(a, b)
            case "*":
                result = np.multiply(a, b)
            case "/":
                result = np.true_divide(a, b)
            case "//":
                result = np.floor(np.true_divide(a, b)) if type_.is_float else divide_integers(a, b)[0]
            case "%" if type_.is_float:
                result = np.subtract(a, np.multiply(np.floor(np.true_divide(a, b)), b))
            case "%":
                result = divide_integers(a, b)[1]
            case "**":
                result = _power(a, b, type_)
            case "&":
                result = np.bitwise_and(a, b)
            case "|":
                result = np.bitwise_or(a, b)
            case "^":
                result = np.bitwise_xor(a, b)
            case "<<":
                result = _shift(a, b, type_, left=True)
            case ">>":
                result = _shift(a, b, type_, left=False)
            case _:
                raise InternalError(f"no such operator: {op}")
    return np.asarray(result, type_.numpy)


def unary(op: str, a: Array, type_: ScalarType) -> Array:
    """`-a` (wraps), `~a`, `not a`."""
    with np.errstate(all="ignore"):
        match op:
            case "-":
                result = np.negative(a)
            case "~":
                result = np.invert(a)
            case "not":
                result = np.logical_not(a)
            case _:
                raise InternalError(f"no such operator: {op}")
    return np.asarray(result, type_.numpy)


def compare(op: str, a: Array, b: Array) -> Array:
    """A comparison as in C: with NaN only `!=` holds."""
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">=": np.greater_equal, ">": np.greater,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return np.asarray(functions[op](a, b), np.bool_)


def convert(a: Array, source: ScalarType, target: ScalarType, saturate: bool = False) -> Array:
    """`a` of type `source` as a `target`.

    Integers wrap, or go to the nearest value of the target where `saturate`. Floats are truncated
    towards zero; what is then out of the target's range goes to its nearest value and NaN to 0, saturating
    or not. Integers and wide floats are rounded to the nearest float, ties to even. Anything but zero is True.
    """
    with np.errstate(all="ignore"):
        if target.kind == "bool":
            return np.not_equal(a, 0)
        if source.is_float and target.is_integer:
            return _truncate(np.asarray(a), target)
        if saturate and target.is_integer and source.is_integer:
            a = np.clip(a, max(source.min, target.min), min(source.max, target.max))
        return np.asarray(a).astype(target.numpy)


def call(function: str, args: tuple[Array, ...], arg_types: tuple[ScalarType, ...], type_: ScalarType) -> Array:
    """The built-in `function` of `args`; its result has `type_`.

    - `min(a, b)` is `a if a < b else b` and `max(a, b)` is `a if a > b else b`, NaN and zeros' signs included;
      of more arguments, folded from the left. `clamp(v, lo, hi)` is max(min(v, hi), lo).
    - `abs`, `absd` are exact and then wrap to `type_`.
    - `mux(i, a, b, ...)`: the last one for every `i` that picks none.
    - the integer idioms (`sat_add`, `sat_sub`, `halving_add`, `rounding_halving_add`, `rounding_shift_right`,
      `mul_shift_right`) and `lerp` of integers are exact over all integers: see their scalar definitions below.
    - `lerp(a, b, t)` of floats is a + (b - a) * t; an unsigned t counts from 0 to its type's largest value.
    - `round` goes to the nearest integer, ties to even.
    - `popcount`, `count_leading_zeros`, `count_trailing_zeros` count the bits of the type; all of them are zeros of 0.
    - `as_float32(a)` and its like are the same bits of another type.
    - `opaque(a)` is `a`, rounded to its type: not in documents, but in loop programs.
    """
    with np.errstate(all="ignore"):
        result = _call(function, tuple(np.asarray(a) for a in args), arg_types, type_)
    return np.asarray(result, type_.numpy)


def random_float(args: tuple[Array, ...]) -> Array:
    """float32 in [0, 1): the top 24 bits of a 32-bit hash of the integers `args`, times 2**-24.

    The hash starts as RANDOM_SEED; for each argument in order, wrapped to 32 bits unsigned, h = mix(h ^ argument),
    where mix is MurmurHash3's finaliser: h ^= h >> 16; h *= 0x85EBCA6B; h ^= h >> 13; h *= 0xC2B2AE35; h ^= h >> 16.
    """
    with np.errstate(all="ignore"):
        h: Array = np.asarray(RANDOM_SEED, np.uint32)
        for a in args:
            h = np.bitwise_xor(h, np.asarray(a).astype(np.uint32))
            h = np.bitwise_xor(h, np.right_shift(h, np.uint32(16)))
            h = np.multiply(h, np.uint32(0x85EBCA6B))
            h = np.bitwise_xor(h, np.right_shift(h, np.uint32(13)))
            h = np.multiply(h, np.uint32(0xC2B2AE35))
            h = np.bitwise_xor(h, np.right_shift(h, np.uint32(16)))
        return np.asarray(np.right_shift(h, np.uint32(8)).astype(np.float32) * np.float32(2.0**-24))


def boundary_index(kind: BoundaryKind, i: Array, low: int, extent: int) -> Array:
    """The point in `low <= . < low + extent` (extent at least 1) that a reader of point `i` sees.

    repeat_edge      a b c  ->  a a a|a b c|c c c
    repeat_image     a b c  ->  a b c|a b c|a b c
    mirror_image     a b c  ->  c b a|a b c|c b a
    mirror_interior  a b c  ->  b c b|a b c|b a b   (one point: that point)
    constant         like repeat_edge: the reader replaces what lies outside.

    How far a point is from `low` is an int32, and wraps as these do, where it is repeated or mirrored.
    """
    offset = np.asarray(i, np.int64) - low
    if kind not in ("repeat_edge", "constant"):
        offset = offset.astype(np.int32).astype(np.int64)
    match kind:
        case "repeat_edge" | "constant":
            inside = np.clip(offset, 0, extent - 1)
        case "repeat_image":
            inside = np.remainder(offset, extent)
        case "mirror_image":
            folded = np.remainder(offset, 2 * extent)
            inside = np.where(folded >= extent, 2 * extent - 1 - folded, folded)
        case "mirror_interior":
            period = max(2 * (extent - 1), 1)
            folded = np.remainder(offset, period)
            inside = np.where(folded >= extent, period - folded, folded)
    return np.asarray(inside + low, np.int64)


def identity(op: str, type_: ScalarType) -> Array:
    """The value that a reduction by `op` starts from, which is its value over an empty domain."""
    match op:
        case "sum":
            return constant(0, type_)
        case "product":
            return constant(1, type_)
        case "any":
            return np.asarray(False)
        case "all":
            return np.asarray(True)
        case "min" | "argmin":
            return constant(np.inf if type_.is_float else type_.max, type_)
        case "max" | "argmax":
            return constant(-np.inf if type_.is_float else type_.min, type_)
        case _:
            raise InternalError(f"no such reduction: {op}")


def divide_integers(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient and remainder of integers of one type: the remainder is never negative, both are 0 where b is 0."""
    a, b = np.asarray(a), np.asarray(b)
    by_zero = b == 0
    safe = np.where(by_zero, b.dtype.type(1), b)
    quotient, remainder = np.floor_divide(a, safe), np.remainder(a, safe)
    low = remainder < 0  # only where b is negative: NumPy's remainder has the divisor's sign
    quotient = np.where(low, np.add(quotient, a.dtype.type(1)), quotient)
    remainder = np.where(low, np.subtract(remainder, safe), remainder)
    zero = a.dtype.type(0)
    return np.where(by_zero, zero, quotient), np.where(by_zero, zero, remainder)


def power_by_squaring(a: Array, exponent: int, type_: ScalarType) -> Array:
    """`a ** exponent` by squaring, lowest bit of the exponent first; 1 for exponent 0.

    For exponent 13 = 0b1101: a2 = a*a, a4 = a2*a2, a8 = a4*a4, result (a * a4) * a8. Of a negative
    exponent of a float it is 1 / (a ** -exponent); of an integer, the language's 1 // (a ** -exponent).
    """
    if exponent < 0:
        return binary(
            "/" if type_.is_float else "//", constant(1, type_), power_by_squaring(a, -exponent, type_), type_
        )
    result: Array | None = None
    square = np.asarray(a)
    while exponent:
        if exponent & 1:
            result = square if result is None else np.multiply(result, square)
        exponent >>= 1
        if exponent:
            square = np.multiply(square, square)
    return np.broadcast_to(constant(1, type_), np.shape(a)) if result is None else result


def _power(a: Array, b: Array, type_: ScalarType) -> Array:
    if np.asarray(b).dtype.kind == "f":
        return np.asarray(np.power(a, b))
    exponents = np.unique(np.asarray(b))
    if exponents.size != 1:
        raise InternalError("an integer exponent is a constant")
    return power_by_squaring(a, int(exponents[0]), type_)


def _shift(a: Array, count: Array, type_: ScalarType, *, left: bool) -> Array:
    a, count = np.asarray(a), np.asarray(count)
    bits = type_.bits
    info = np.iinfo(count.dtype)
    near = np.clip(count, max(-bits, info.min), min(bits, info.max)).astype(np.int64)
    near = near if left else -near
    up, down = np.clip(near, 0, bits), np.clip(-near, 0, bits)
    last = bits - 1
    # Shifting by `last` and then by one more: no single shift reaches the width, where C and NumPy differ.
    one = a.dtype.type(1)
    shifted = np.left_shift(a, np.minimum(up, last).astype(a.dtype))
    shifted = np.where(up == bits, np.left_shift(shifted, one), shifted)
    shifted = np.right_shift(shifted, np.minimum(down, last).astype(a.dtype))
    return np.asarray(np.where(down == bits, np.right_shift(shifted, one), shifted))


def _truncate(a: Array, target: ScalarType) -> Array:
    whole = np.trunc(a)
    low, above = a.dtype.type(target.min), a.dtype.type(2.0 ** (target.bits - (target.kind == "int")))
    inside = (whole >= low) & (whole < above)
    result = np.where(inside, whole, a.dtype.type(0)).astype(target.numpy)
    dtype = target.numpy.type
    result = np.where(whole >= above, dtype(target.max), result)
    return np.asarray(np.where(whole < low, dtype(target.min), result))


def _call(function: str, args: tuple[Array, ...], arg_types: tuple[ScalarType, ...], type_: ScalarType) -> Array:
    match function:
        case "min" | "max":
            result = args[0]
            for a in args[1:]:
                result = _lesser(result, a) if function == "min" else _greater(result, a)
            return result
        case "clamp":
            value, low, high = args
            return _greater(_lesser(value, high), low)
        case "opaque":
            return args[0]
        case "abs" if type_.is_float:
            return np.abs(args[0])
        case "abs":
            return _exactly(np.abs, type_, args, int64_bits=32)
        case "absd" if type_.is_float:
            return np.abs(np.subtract(args[0], args[1]))
        case "absd":
            return _exactly(lambda a, b: np.abs(a - b), type_, args, int64_bits=32)
        case "lerp":
            return _lerp(args, arg_types, type_)
        case "mux":
            result = args[-1]
            for i in reversed(range(len(args) - 2)):
                result = np.where(np.equal(args[0], i), args[1 + i], result)
            return result
        case "random":
            return random_float(args)
        case "popcount" | "count_leading_zeros" | "count_trailing_zeros":
            return _counted_bits(function, args[0], type_)
        case _ if function.startswith("as_"):
            return np.ascontiguousarray(args[0], arg_types[0].numpy).view(type_.numpy).reshape(args[0].shape)
        case _ if function in _IDIOMS:
            idiom, bits = _IDIOMS[function]
            return _exactly(
                lambda *numbers: np.minimum(np.maximum(idiom(*numbers), type_.min), type_.max), type_, args, bits
            )
        case _ if function in _FLOAT_FUNCTIONS:
            return np.asarray(_FLOAT_FUNCTIONS[function](*args))
        case _:
            raise InternalError(f"no such function: {function}")


def _counted_bits(function: str, a: Array, type_: ScalarType) -> Array:
    """Bits that are set, or zeros before the first one or after the last one."""
    bits = type_.bits
    words = np.asarray(a).astype(f"uint{bits}").astype(np.uint64)
    each = [np.bitwise_and(np.right_shift(words, np.uint64(k)), np.uint64(1)).astype(bool) for k in range(bits)]
    if function == "popcount":
        return np.asarray(np.sum(each, axis=0), type_.numpy)
    ordered = each if function == "count_trailing_zeros" else each[::-1]
    return np.asarray(np.where(np.any(ordered, axis=0), np.argmax(ordered, axis=0), bits), type_.numpy)


def _lesser(a: Array, b: Array) -> Array:
    return np.where(np.less(a, b), a, b)


def _greater(a: Array, b: Array) -> Array:
    return np.where(np.greater(a, b), a, b)


_FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip


# The integer idioms, on arrays of exact integers. Each result is then saturated to the result's type.

MOST_BITS = 128
"""As many shift every integer out, and saturate every type on the way up."""


def _rounding_shift_right(a: Array, count: Array) -> Array:
    """floor(a / 2**count + 1/2); a negative count multiplies by a power of two instead."""
    right = np.minimum(np.maximum(count, 1), MOST_BITS + 1)  # one more: half of it is more than any a
    return np.where(count > 0, (a + (1 << (right - 1))) >> right, _shift_up(a, -count))


def _mul_shift_right(a: Array, b: Array, count: Array) -> Array:
    """floor(a * b / 2**count); a negative count multiplies by a power of two instead."""
    right = np.minimum(np.maximum(count, 0), MOST_BITS)
    return np.where(count >= 0, (a * b) >> right, _shift_up(a * b, -count))


def _shift_up(a: Array, count: Array) -> Array:
    return np.left_shift(a, np.minimum(np.maximum(count, 0), MOST_BITS))


_IDIOMS: dict[str, tuple[Callable[..., Array], int]] = {
    "sat_add": (lambda a, b: a + b, 32),
    "sat_sub": (lambda a, b: a - b, 32),
    "halving_add": (lambda a, b: (a + b) >> 1, 32),
    "rounding_halving_add": (lambda a, b: (a + b + 1) >> 1, 32),
    "rounding_shift_right": (_rounding_shift_right, 0),
    "mul_shift_right": (_mul_shift_right, 0),
}
"""Each with the bits of arguments up to which it is exact in 64 bits."""


def _lerp(args: tuple[Array, ...], arg_types: tuple[ScalarType, ...], type_: ScalarType) -> Array:
    """Floats: a + (b - a) * t. Integers of n bits, M = 2**n - 1: the integer nearest to (a * (M - w) + b * w) / M.

    The weight w in 0..M is: of a floating t, trunc(M * t), saturated, in t's type (float64 where n > 16); of an
    unsigned t of m bits, t * (M / (2**m - 1)) where m < n, t // ((2**m - 1) / M) where m > n. Bool: b where w > M // 2.
    """
    a, b, t = args
    weight = arg_types[2]
    if type_.is_float:
        if weight.is_float:
            t = convert(t, weight, type_)
        else:
            wide = FLOAT64 if weight.bits > 16 else type_
            t = convert(np.true_divide(convert(t, weight, wide), constant(weight.max, wide)), wide, type_)
        return np.add(a, np.multiply(np.subtract(b, a), t))
    top = (1 << type_.bits) - 1
    if weight.is_float:
        wide = FLOAT64 if type_.bits > 16 else weight
        t = _truncate(np.multiply(convert(t, weight, wide), constant(top, wide)), ScalarType("uint", type_.bits))

        def rescale(t: Array) -> Array:
            return t
    elif weight.bits <= type_.bits:

        def rescale(t: Array) -> Array:
            return t * (top // weight.max)
    else:

        def rescale(t: Array) -> Array:
            return t // (weight.max // top)

    def between(a: Array, b: Array, t: Array) -> Array:
        w = rescale(t)
        return np.asarray((2 * (a * (top - w) + b * w) + top) // (2 * top))

    if type_.kind == "bool":
        return _exactly(lambda a, b, t: np.asarray(np.where(rescale(t) > top // 2, b, a)), type_, (a, b, t))
    return _exactly(between, type_, (a, b, t), int64_bits=16)


def _exactly(f: Callable[..., Array], type_: ScalarType, args: tuple[Array, ...], int64_bits: int = 0) -> Array:
    """`f` on arrays of exact integers; the results wrap to `type_`. They are Python's, which have no end and take many
    times as long, unless all types have `int64_bits` or fewer: of such numbers nothing in `f` goes beyond 64 bits."""
    shape = np.broadcast_shapes(*(np.shape(a) for a in args))
    fits = max(type_.bits, *(8 * a.dtype.itemsize for a in args)) <= int64_bits
    # of no dims they would be scalars, whose types NumPy chooses
    wide = (np.atleast_1d(a).astype(np.int64 if fits or a.dtype.kind == "b" else a.dtype) for a in args)
    found = f(*(a if fits else a.astype(object) for a in wide))
    if fits:
        return found.astype(type_.numpy).reshape(shape)
    if type_.kind == "bool":
        return np.reshape(found != 0, shape)
    bits = found & ((1 << type_.bits) - 1)
    return np.where(bits > type_.max, bits - (1 << type_.bits), bits).astype(type_.numpy).reshape(shape)


def _wrap(value: int, type_: ScalarType) -> int:
    if type_.kind == "bool":
        return int(value != 0)
    value &= (1 << type_.bits) - 1
    return value - (1 << type_.bits) if value > type_.max else value
