"""Words of NumPy, SciPy, OpenCV, Halide and C, with what the language has for each, as hints of errors."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.types import TYPES as LANGUAGE

FUNCTIONS = {
    "clip": "write clamp(value, low, high)",
    "saturate": "write clamp(value, low, high)",
    "where": "write `a if condition else b`",
    "maximum": "write max(a, b)",
    "fmax": "write max(a, b)",
    "minimum": "write min(a, b)",
    "fmin": "write min(a, b)",
    "amax": "write max(f(x + i) for i in range(n))",
    "amin": "write min(f(x + i) for i in range(n))",
    "fabs": "write abs(value)",
    "absolute": "write abs(value)",
    "absdiff": "write absd(a, b)",
    "prod": "write product(f(x + i) for i in range(n))",
    "mean": "write sum(f(x + i) for i in range(n)) / n",
    "average": "write sum(f(x + i) for i in range(n)) / n",
    "square": "write value ** 2",
    "sqr": "write value ** 2",
    "hypot": "write sqrt(a * a + b * b)",
    "length": "write sqrt(a * a + b * b)",
    "log2": "write log(value) * 1.4426950408889634",
    "log10": "write log(value) * 0.4342944819032518",
    "log1p": "write log(1 + value)",
    "exp2": "write exp(value * 0.6931471805599453)",
    "expm1": "write exp(value) - 1",
    "cbrt": "write pow(value, 1.0 / 3), of numbers that are not negative",
    "reciprocal": "write 1 / value",
    "rsqrt": "write 1 / sqrt(value)",
    "sinh": "write (exp(value) - exp(-value)) / 2",
    "cosh": "write (exp(value) + exp(-value)) / 2",
    "sigmoid": "write 1 / (1 + exp(-value))",
    "relu": "write max(value, 0)",
    "sign": "write select(value > 0, 1, select(value < 0, -1, 0))",
    "copysign": "write select(b < 0, -abs(a), abs(a))",
    "degrees": "write value * 57.29577951308232",
    "rad2deg": "write value * 57.29577951308232",
    "radians": "write value * 0.017453292519943295",
    "deg2rad": "write value * 0.017453292519943295",
    "rint": "write round(value)",
    "nearbyint": "write round(value)",
    "fract": "write value - floor(value)",
    "mix": "write lerp(a, b, weight)",
    "step": "write float32(value >= edge)",
    "isnan": "write value != value",
    "fma": "write a * b + c",
    "arcsin": "write asin(value)",
    "arccos": "write acos(value)",
    "arctan": "write atan(value)",
    "popcnt": "write popcount(value)",
    "bit_count": "write popcount(value)",
    "clz": "write count_leading_zeros(value)",
    "ctz": "write count_trailing_zeros(value)",
    "bitwise_and": "write a & b",
    "bitwise_or": "write a | b",
    "bitwise_xor": "write a ^ b",
    "left_shift": "write a << b",
    "right_shift": "write a >> b",
    "power": "write pow(a, b), or a ** 2 with a whole exponent",
    "arctan2": "write atan2(y, x)",
    "cast": "a type is a function: write uint8(value)",
    "astype": "a type is a function: write uint8(value)",
    "u8_sat": "write uint8(clamp(value, 0, 255))",
    "saturate_cast": "write uint8(clamp(value, 0, 255))",
    "mod": "write a % b",
    "fmod": "write a - b * floor(a / b)",
    "floordiv": "write a // b",
    "logical_and": "write `a and b`",
    "logical_or": "write `a or b`",
    "logical_not": "write `not a`",
    "int": "write int32(value)",
    "float": "write float32(value)",
    "double": "write float64(value)",
    "uchar": "write uint8(value)",
    "median": "of three write max(min(a, b), min(max(a, b), c))",
    "std": "write sqrt(max(mean_of_squares - mean ** 2, 0))",
    "var": "write mean_of_squares - mean ** 2",
    "dot": "write sum(a(i) * b(i) for i in range(n))",
    "cumsum": "write an update with a domain that reads the point before",
    "len": "write input.extent.x, of an input and one of its dims",
    "convolve": "write sum(k(i) * f(x + i) for i in range(n))",
}
"""Functions by their last name: `np.clip` and `clip` are one."""

_MIRRORS = "mirror_image is cba|abc, with the edge twice; mirror_interior is cb|abc, with it once"
BOUNDARIES = {
    "mirror": _MIRRORS,
    "reflect": _MIRRORS,
    "reflect_101": "write mirror_interior",
    "reflect101": "write mirror_interior",
    "symmetric": "write mirror_image",
    "nearest": "write repeat_edge",
    "edge": "write repeat_edge",
    "replicate": "write repeat_edge",
    "clamp": "write repeat_edge",
    "clamp_to_edge": "write repeat_edge",
    "border": "write constant, with a value",
    "wrap": "write repeat_image",
    "grid-wrap": "write repeat_image",
    "circular": "write repeat_image",
    "periodic": "write repeat_image",
    "zero": "write constant, with the value 0",
    "zeros": "write constant, with the value 0",
}
"""Kinds of boundaries, less the prefix BORDER_ of OpenCV and in lower case."""

TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float32",
    "float16": "float32",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "short": "int16",
    "ushort": "uint16",
    "char": "int8",
    "uchar": "uint8",
    "byte": "uint8",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "f32": "float32",
    "f64": "float64",
    "cv_8u": "uint8",
    "cv_32f": "float32",
}


def function(name: str) -> str | None:
    """The hint for a function of another tool, None for one that is not known here."""
    last = name.rpartition(".")[2].lower()
    conversion = TYPES.get(last)
    return FUNCTIONS.get(last) or (f"a type is a function: write {conversion}(value)" if conversion else None)


def boundary(kind: str) -> str | None:
    """The hint for a kind of boundary of another tool, None for one that is not known here."""
    return BOUNDARIES.get(kind.rpartition(".")[2].lower().removeprefix("border_"))


def type_name(name: str) -> str | None:
    """The hint for a type of another tool, None for one that is not known here."""
    word = name.rpartition(".")[2].lower().removesuffix("_t")
    known = word if word in LANGUAGE else TYPES.get(word)
    return None if known is None else f"write {known}"
