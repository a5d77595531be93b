"""Vectors wider than a register: the same values, and no vector of the C is wider than it may be."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import build, source_of, widest_vector
from support.random_cases import random_case

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

pytestmark = pytest.mark.slow

VALUES = {
    "widened": "int32(a(x)) * 3 - b(x)",
    "narrowed": "uint8((int32(a(x)) * 1000 + b(x)) // 7)",
    "saturated": "sat_uint8(int32(a(x)) - b(x))",
    "packed": "sat_uint16(int32(b(x)) * 5 - a(x))",
    "packed_with_sign": "sat_int16(int32(b(x)) * a(x))",
    "packed_twice": "sat_int8((int32(b(x)) * a(x)) >> 12)",
    "packed_bytes": "sat_uint8(b(x) >> 6)",
    "packed_signed_bytes": "sat_int8(b(x) >> 7)",
    "masked": "select(int32(a(x)) * 5 < b(x), a(x), uint8(b(x)))",
    "asked": "a(x) > 100 and float32(b(x)) * 0.5 < 30.0",
    "truth": "uint8(int64(a(x)) * b(x) > 999)",
    "floats": "uint8(float32(a(x)) * 0.5 + float32(b(x)))",
    "powered": "float32(b(x) & 7) ** (float32(a(x)) * 0.01)",
    "averaged": "rounding_halving_add(uint16(a(x)), uint16(b(x))) ^ rounding_halving_add(a(x), 7)",
    "doubles": "float64(a(x)) / 3 + b(x)",
    "every_other": "a(2 * x) + uint8(b(2 * x + 1))",
    "put_together": "select(x % 2 == 0, a(x // 2), uint8(b(x // 2)))",
    "by_four": "select(x % 4 == 1, int32(a(x // 4)), int32(b(x // 2)))",
    "by_data": "a(clamp(int32(b(x)) * 2, 0, 99))",
    "clamped": "c(x) + int32(c(x - 40)) * 2 - c(x + 9)",
    "placed": "uint8(x * 3)",
    "summed": "sum(int32(a(x + i)) * 3 for i in range(70))",
    "best": "argmax(a(x + i) for i in range(70))",
}


@pytest.mark.parametrize(
    ("lanes", "register", "stream", "compiler"),
    [
        (16, 0, False, "gcc"), (16, 8, True, "clang"), (32, 16, False, "gcc"), (32, 16, True, "clang"),
        (64, 32, True, "gcc"), (64, 64, False, "clang"), (64, 64, True, "gcc"), (128, 64, True, "clang"),
    ],
)  # fmt: skip
def test_values_are_the_same(lanes: int, register: int, stream: bool, compiler: str) -> None:
    """Where a vector would take more than four registers there are fewer lanes."""
    stages = [{"name": n, "dims": ["x"], "value": v} for n, v in VALUES.items()]
    pipeline = load(
        {
            "format": 1,
            "name": "wide",
            "inputs": [
                {"name": "a", "type": "uint8", "dims": ["x"]},
                {"name": "b", "type": "int16", "dims": ["x"]},
                {"name": "c", "type": "uint8", "dims": ["x"], "boundary": {"kind": "repeat_edge"}},
            ],
            "stages": stages,
            "outputs": list(VALUES),
            "estimates": {n: [[0, 4096]] for n in VALUES},
        }
    )
    groups = tuple(Group(n, ("x.inner",), (), None, Vector("x", lanes), (), (), (), stream) for n in VALUES)
    schedule = Schedule("wide", "by hand", groups)
    source = source_of(pipeline, schedule, machine(vector_bytes=register))
    assert widest_vector(source.header) == register
    rng = np.random.default_rng(1)
    inputs = {
        "a": Image(rng.integers(0, 256, 700).astype(np.uint8), (0,)),
        "b": Image(rng.integers(-(1 << 15), 1 << 15, 700).astype(np.int16), (0,)),
        "c": Image(rng.integers(0, 256, 200).astype(np.uint8), (5,)),
    }
    regions = dict.fromkeys(VALUES, ((3, 299),))
    expected = interpret(pipeline, inputs, {}, regions)
    status, got = call(build(source, ("-O1",), compiler, register), source, pipeline, inputs, {}, regions)
    assert status == 0
    for n in VALUES:
        for a, b in zip(got[n], expected[n], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-14, err_msg=n)


WIDER = (128, 256)
"""Bytes of the longest vectors that a machine may be said to have."""


@pytest.mark.parametrize("seed", range(12))
def test_no_vector_of_a_random_case_is_wider_than_a_register(seed: int) -> None:
    """Vectors for machines that nothing is compiled for: `compiled` looks at all that is."""
    case = random_case(seed)
    register = WIDER[seed % len(WIDER)]
    code = source_of(case.pipeline, case.schedule, machine(vector_bytes=register)).header
    assert widest_vector(code) <= register
