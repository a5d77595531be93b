"""Wide gathers: vectors of elements at any places, of one row or of two dims, and four neighbours at a time."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith.scheduler.codegen.c.gathers import (
    FAR,
    FOURS,
    NEAR,
    SHARED,
    called,
    definition,
    is_gather,
    is_gathered,
    shared_places,
)
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.program import Define, Loop
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, FLOAT64, INT32, UINT8, UINT32, ScalarType

TYPES = """
#include <stdint.h>
#define INLINE static inline
typedef {E} {T}x16 __attribute__((vector_size(64)));
typedef {E} {T}x8 __attribute__((vector_size(32)));
typedef {E} {T}x4 __attribute__((vector_size(16)));
typedef {T}x4 {T}x4_at __attribute__((aligned(1), may_alias));
typedef int64_t i64x8 __attribute__((vector_size(64)));
{more}
static inline i64x8 {wide}(i32x8 a) {{ return __builtin_convertvector(a, i64x8); }}
"""
SIGNED = """
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
"""
CALLS = {
    NEAR: "*out = f(row, *a);",
    FAR: "*out = f(row, *a, 1, *b, step);",
    FOURS: "for (int n = 0; n < 4; n++) out[n] = f(row, *a, 1, *b, step, n);",
}
NAMES = {"float32": ("float", "f32"), "int32": ("int32_t", "i32"), "uint32": ("uint32_t", "u32")}


def aligned(elements: int, type_: str) -> np.ndarray:
    memory = np.zeros(elements * 4 + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + elements * 4].view(type_)


@pytest.mark.parametrize("type_", [FLOAT32, INT32, UINT32], ids=lambda t: t.name)
@pytest.mark.parametrize("form", [NEAR, FAR, FOURS])
def test_lanes_are_the_elements_at_their_places(form: str, type_: ScalarType, tmp_path: Path) -> None:
    element, short = NAMES[type_.name]
    wide = "unused" if form == NEAR else _wide(form, type_)
    more = SIGNED if short != "i32" else ""
    head = TYPES.format(E=element, T=short, more=more, wide=wide)
    call = f"void all(const {element} *row, const i32x16 *a, const i32x16 *b, long step, {short}x16 *out)"
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    source.write_text("\n".join((head, definition(form, type_, "f"), f"{call} {{ {CALLS[form]} }}")))
    gcc = require_tool("gcc")
    subprocess.run([gcc, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    rng, step = np.random.default_rng(1), 50
    row = rng.integers(0, 1000, 9 * step).astype(type_.name)
    a, b, out = aligned(16, "int32"), aligned(16, "int32"), aligned(64, type_.name)
    a[:], b[:] = rng.integers(0, step - 4, 16), rng.integers(0, 8, 16)
    pointers = (ctypes.c_void_p(x.ctypes.data) for x in (row, a, b))
    ctypes.CDLL(str(library)).all(*pointers, ctypes.c_long(step), ctypes.c_void_p(out.ctypes.data))
    at = a if form == NEAR else a + b * step
    if form == FOURS:
        expected = [row[at[n + 4 * k] + j] for n in range(4) for k in range(4) for j in range(4)]
        assert out.tolist() == expected
    else:
        assert out[:16].tolist() == row[at].tolist()


def _wide(form: str, type_: ScalarType) -> str:
    """The name of the function that widens, as the definition calls it."""
    assert called(form)
    return definition(form, type_, "f").split("(__builtin_shufflevector(a")[0].split()[-1].split("(")[-1]


def test_what_is_gathered_at_once() -> None:
    assert is_gathered(FLOAT32, 16)
    assert is_gathered(UINT32, 16)
    assert not is_gathered(FLOAT32, 8)
    assert not is_gathered(FLOAT64, 8)
    assert not is_gathered(UINT8, 64)
    assert not is_gathered(BOOL, 64)
    assert all(map(is_gather, (NEAR, FAR, FOURS)))
    assert not is_gather("lookup_1")
    assert called(NEAR) == []


def gathers(name: str, times: int) -> list[Define]:
    at = LaneOffset(Lane(const(0), None, Value(INT32, 16, name)), const(1), const(0), None)
    return [Define(Value(FLOAT32, 16, f"{name}_{n}"), Gather(Pointer(f"row_{n}"), (at,))) for n in range(times)]


def test_places_that_many_gathers_share_are_taken_apart_once() -> None:
    """Wherever they stand."""
    many, few = gathers("many", SHARED), gathers("few", SHARED - 1)
    row = Loop("x", const(0), const(9), const(1), (*many[1:], *few))
    assert shared_places((many[0], row)) == {"many"}
    assert shared_places(()) == frozenset()


def test_places_in_two_dims_are_shared_by_none() -> None:
    at = LaneOffset(Lane(const(0), None, Value(INT32, 16, "at")), const(1), const(0), None)
    both = [Define(Value(FLOAT32, 16, f"v{n}"), Gather(Pointer("row"), (at, at))) for n in range(SHARED)]
    assert shared_places(tuple(both)) == frozenset()
