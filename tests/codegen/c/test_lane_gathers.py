"""Gathers lane by lane."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith.scheduler.codegen.c.lane_gathers import Form, Pairs, lane_gather, narrow_gather
from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8, ScalarType

LANES, STRIDE = 8, 50
HEAD = """
#include <stdint.h>
#define INLINE static inline
typedef {element} {place} __attribute__((vector_size({bytes})));
typedef int64_t i64x2 __attribute__((vector_size(16)));
typedef uint8_t u8x8 __attribute__((vector_size(8)));
"""
CALL = (
    "void all(const uint8_t *row, const {place} *a, const {place} *b, u8x8 *out) {{ *out = f(row, *a, 0, *b, 0, 50); }}"
)


def form_of(place: ScalarType) -> Form:
    a, b = (Value(place, LANES, name) for name in "ab")
    at = [LaneOffset(Lane(const(0), None, v), const(stride), const(0), None) for v, stride in ((a, 1), (b, STRIDE))]
    vector = f"{place.kind[0]}{place.bits}x{LANES}"
    found = lane_gather(
        Symbols({}), Value(UINT8, LANES, "r"), Gather(Pointer("row"), tuple(at)), "u8x8", {a: vector, b: vector}
    )
    assert found is not None
    return found[0]


@pytest.mark.parametrize(("kind", "bits"), [("int", 32), ("uint", 32), ("int", 16)])
def test_lanes_are_the_elements_at_their_places(kind: str, bits: int, tmp_path: Path) -> None:
    """Places of 32 bits with a sign, before the row's begin, too, are taken out of their vector two at a time."""
    place = ScalarType("int" if kind == "int" else "uint", bits)
    form = form_of(place)
    assert bool(form.types) == (place.name == "int32")
    head = HEAD.format(element=f"{place.name}_t", place=f"{kind[0]}{bits}x8", bytes=bits)
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    source.write_text("\n".join((head, form.definition("f"), CALL.format(place=f"{kind[0]}{bits}x8"))))
    subprocess.run([require_tool("gcc"), "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, 9 * STRIDE).astype(np.uint8)
    a, b = (rng.integers(-n if kind == "int" else 0, n, 128).astype(place.name) for n in (STRIDE // 2, 4))
    out = np.zeros(128, np.uint8)
    begins = [-v.ctypes.data % 64 // v.itemsize for v in (a, b, out)]
    a, b, out = (v[n : n + LANES] for v, n in zip((a, b, out), begins, strict=True))
    middle = 4 * STRIDE + STRIDE // 2
    pointers = (image[middle:], a, b, out)
    ctypes.CDLL(str(library)).all(*(ctypes.c_void_p(v.ctypes.data) for v in pointers))
    assert out.tolist() == image[middle + a.astype(int) + b.astype(int) * STRIDE].tolist()


NARROW = """
#include <stdint.h>
#include <string.h>
#define INLINE static inline
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef uint64_t u64x4 __attribute__((vector_size(32)));
typedef int64_t i64x2 __attribute__((vector_size(16)));
INLINE uint64_t pair(const float *a) { uint64_t two; memcpy(&two, a, 8); return two; }
"""


@pytest.mark.parametrize("command", ["gcc", "clang"])
@pytest.mark.parametrize("half", [None, 0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_offsets_wrap_on_the_way_to_32_bits(command: str, half: int | None, sign: int, tmp_path: Path) -> None:
    """Places and origins may have products beyond 32 bits, and strides be negative, as long as the sum fits."""
    first_row, first, stride = 2_000_000_000, -1_900_000_000, sign * STRIDE
    a, b = (Value(INT32, LANES, name) for name in "ab")
    at = (
        LaneOffset(Lane(const(0), None, a), const(1), const(first)),
        LaneOffset(Lane(const(0), None, b), const(stride), const(first_row)),
    )
    pairs = None if half is None else Pairs("pair", half)
    gather = Gather(Pointer("row"), at, narrow=True)
    form, arguments = narrow_gather(Symbols({}), Value(FLOAT32, LANES, "r"), gather, "f32x8", ("*a", "*b"), pairs)
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    call = "void all(const float *row, const i32x8 *a, const i32x8 *b, f32x8 *out) { *out = f(%s); }"
    source.write_text("\n".join((NARROW, form.definition("f"), call % arguments)))
    subprocess.run([require_tool(command), "-O1", "-w", "-shared", "-fPIC", "-o", library, source], check=True)
    rng = np.random.default_rng(1)
    image = rng.random(9 * STRIDE, np.float32)
    begin = 0 if sign > 0 else 8 * STRIDE
    x, y = rng.integers(0, STRIDE - 1, 128), rng.integers(0, 9, 128)
    columns, rows = (x + first).astype(np.int32), (y + first_row).astype(np.int32)
    out = np.zeros(128, np.float32)
    begins = [-v.ctypes.data % 64 // v.itemsize for v in (columns, rows, out)]
    x, y = x[begins[0] : begins[0] + LANES], y[begins[1] : begins[1] + LANES]
    columns, rows, out = (v[n : n + LANES] for v, n in zip((columns, rows, out), begins, strict=True))
    pointers = (image[begin:], columns, rows, out)
    ctypes.CDLL(str(library)).all(*(ctypes.c_void_p(v.ctypes.data) for v in pointers))
    places = begin + x + y * stride
    if half is None:
        assert out.tolist() == image[places].tolist()
    else:
        of_half = places[half * LANES // 2 :][: LANES // 2]
        assert out.tolist() == [v for p in of_half for v in image[p : p + 2].tolist()]
