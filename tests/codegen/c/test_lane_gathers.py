"""Gathers lane by lane."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith.scheduler.codegen.c.lane_gathers import Form, lane_gather
from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import UINT8, ScalarType

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
