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
    return FUNCTIONS.get(name.rpartition(".")[2].lower())


def boundary(kind: str) -> str | None:
    """The hint for a kind of boundary of another tool, None for one that is not known here."""
    return BOUNDARIES.get(kind.rpartition(".")[2].lower().removeprefix("border_"))


def type_name(name: str) -> str | None:
    """The hint for a type of another tool, None for one that is not known here."""
    word = name.rpartition(".")[2].lower().removesuffix("_t")
    known = word if word in LANGUAGE else TYPES.get(word)
    return None if known is None else f"write {known}"
