"""Params are what they are declared to be: the compiled code relies on it, and refuses others at its entry."""

from __future__ import annotations

import ctypes
import math
from functools import cache

import numpy as np
import pytest
from support.buffers import E_ARGUMENT, E_REGION, OK, invoke, query, view
from support.machines import here
from support.native import build

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

C = {
    "bool": ctypes.c_uint8,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"int{n}": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
}
N = 40


@cache
def compiled(type_: str, ends: tuple[tuple[str, float], ...]) -> tuple[Pipeline, ctypes.CDLL, CSource]:
    """The input times a param, read where the param says if it is an integer with both ends."""
    integer, value = type_.startswith(("int", "uint")), {"bool": "int32(p)"}.get(type_, "p")
    index = "x + int32(p)" if integer and len(ends) == 2 else "x"
    pipeline = load(
        {
            "format": 1,
            "name": "scaled",
            "params": [{"name": "p", "type": type_, **dict(ends)}],
            "inputs": [{"name": "input", "type": "float64", "dims": ["x"]}],
            "stages": [{"name": "out", "dims": ["x"], "value": f"input({index}) * float64({value})"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, N]]},
        }
    )
    source = compile_pipeline(pipeline, here()).source
    return pipeline, build(source), source


CASES = [
    ("int32", {"min": -3, "max": 5}, (-3, 0, 5), (-4, 6, 2**31 - 1, -(2**31))),
    ("uint8", {"min": 2, "max": 200}, (2, 200), (0, 1, 201, 255)),
    ("uint8", {"min": 0, "max": 255}, (0, 255), ()),
    ("int8", {"max": -1}, (-128, -1), (0, 127)),
    ("uint16", {"min": 1}, (1, 65535), (0,)),
    ("int64", {"min": -(2**40)}, (-(2**40), 2**62), (-(2**40) - 1,)),
    ("uint64", {"max": 2**63}, (0, 2**63), (2**63 + 1, 2**64 - 1)),
    ("uint32", {}, (0, 2**32 - 1), ()),
    ("float32", {"min": -0.5, "max": 0.1}, (-0.5, 0.1, 0.0, -0.0), (0.1001, -0.5001, math.inf, -math.inf, math.nan)),
    ("float32", {"min": 0}, (0.0, -0.0, 3e38, math.inf), (-1e-45, -math.inf, math.nan)),
    ("float64", {"max": 1e300}, (1e300, -math.inf), (1.0000000001e300, math.inf, math.nan)),
    ("float64", {}, (math.inf, math.nan, -1.0), ()),
    ("bool", {}, (0, 1), (2, 255)),
]


@pytest.mark.parametrize(("type_", "ends", "good", "bad"), CASES, ids=lambda v: str(v) if isinstance(v, str) else None)
def test_only_what_is_declared_is_taken(type_: str, ends: dict, good: tuple, bad: tuple) -> None:
    pipeline, library, source = compiled(type_, tuple(ends.items()))
    data = np.arange(1.0, N + 21)
    image = {"input": Image(data, (-10,))}
    for value in good:
        out = np.zeros(N)
        assert invoke(library, source, [view(data, (-10,)), C[type_](value), view(out, (0,))]) in (OK, E_REGION)
        if type_ not in ("uint8", "uint64"):  # their regions are others
            expected = interpret(pipeline, image, {"p": value}, {"out": ((0, N),)})["out"][0]
            np.testing.assert_array_equal(out, expected)
    for value in bad:
        out = np.full(N, 7.0)
        assert invoke(library, source, [view(data, (-10,)), C[type_](value), view(out, (0,))]) == E_ARGUMENT, value
        assert invoke(library, source, [query(((0, 1),)), C[type_](value), view(out, (0,))]) == E_ARGUMENT, value
        assert (out == 7).all()
        with pytest.raises(ArgumentError, match="param p"):
            interpret(pipeline, image, {"p": value}, {"out": ((0, N),)})


def test_the_header_says_what_is_taken() -> None:
    lines = [
        next(x for x in compiled(t, tuple(e.items()))[2].header.splitlines() if "param p" in x) for t, e, *_ in CASES
    ]
    assert lines == [
        "/* param p: int32, -3 to 5 */",
        "/* param p: uint8, 2 to 200 */",
        "/* param p: uint8, 0 to 255 */",
        "/* param p: int8, at most -1 */",
        "/* param p: uint16, at least 1 */",
        "/* param p: int64, at least -1099511627776 */",
        "/* param p: uint64, at most 9223372036854775808 */",
        "/* param p: uint32 */",
        "/* param p: float32, -0.5 to 0.1 */",
        "/* param p: float32, at least 0.0 */",
        "/* param p: float64, at most 1e+300 */",
        "/* param p: float64 */",
        "/* param p: bool, 0 or 1 */",
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.5, 2**31])
def test_an_integer_param_is_an_integer(value: float) -> None:
    pipeline = compiled("int32", (("min", -3), ("max", 5)))[0]
    with pytest.raises(ArgumentError, match="param p"):
        interpret(pipeline, {"input": Image(np.zeros(60), (-10,))}, {"p": value}, {"out": ((0, N),)})
