"""Tables of bytes: the function that looks up a vector of places has the elements that these are."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.c.lookup_tables import definition, is_lookup, lookup, types_of

LANES = 64
TYPES = """
#include <stdint.h>
#include <string.h>
#define INLINE static inline
typedef uint8_t u8x64 __attribute__((vector_size(64)));
typedef u8x64 u8x64_at __attribute__((aligned(1), may_alias));
typedef uint16_t u16x32 __attribute__((vector_size(64)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
"""
CALLS = {
    1: "void all(const uint8_t *t, int whole, const u8x%d *at, u8x%d *out) { *out = f(t, whole, *at); }",
    2: "void all(const uint8_t *t, int whole, const u16x%d *at, u8x%d *out) { *out = f(t, whole, at[0], at[1]); }",
}
WAYS = {
    "any": (),
    "avx2": ("-mavx2",),
    "words": ("-mavx512f", "-mavx512bw"),
    "vbmi": ("-mavx512f", "-mavx512bw", "-mavx512vbmi"),
}


def aligned(bytes_: int) -> np.ndarray:
    memory = np.zeros(bytes_ + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + bytes_]


@pytest.mark.parametrize("tool", ["gcc", "clang"])
@pytest.mark.parametrize(("way", "lanes"), [("any", 64), ("avx2", 32), ("words", 64), ("vbmi", 64)])
@pytest.mark.parametrize(("parts", "indices"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (5, 2)])
def test_every_place_has_its_element(parts: int, indices: int, way: str, lanes: int, tool: str, tmp_path: Path) -> None:
    """With whole parts, and with a table that ends before the last of them does."""
    flags = WAYS[way]
    runs = not flags or (host().vector_bytes >= lanes and (way != "vbmi" or _has_vbmi()))
    if not runs:
        pytest.skip("this machine has no instruction for tables of bytes")
    name = lookup(parts, indices)
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    call = CALLS[indices] % (lanes // indices, lanes)
    source.write_text("\n".join((TYPES, definition(name, lanes, "f"), call)))
    compiler = require_tool(tool)
    subprocess.run([compiler, "-O1", *flags, "-shared", "-fPIC", "-o", library, source], check=True)
    rng = np.random.default_rng(parts)
    table = rng.integers(0, 256, parts * 128, dtype=np.uint8)
    places, out = aligned(128), aligned(lanes)
    for whole, size in ((1, parts * 128), (0, parts * 128 - 100)):
        given = table[:size].copy()
        at = rng.integers(0, min(size, 256 if indices == 1 else size), lanes)
        typed = at.astype(np.uint8 if indices == 1 else np.uint16)
        places[: typed.nbytes] = typed.view(np.uint8)
        ctypes.CDLL(str(library)).all(
            ctypes.c_void_p(given.ctypes.data),
            whole,
            ctypes.c_void_p(places.ctypes.data),
            ctypes.c_void_p(out.ctypes.data),
        )
        assert out.tolist() == given[at].tolist()


def _has_vbmi() -> bool:
    cpu = Path("/proc/cpuinfo")
    return cpu.exists() and "avx512vbmi" in cpu.read_text()


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5, 16])
def test_parts_are_chosen_by_pairs(parts: int) -> None:
    """Each part is looked up once, and one choice less joins them all into the first."""
    text = definition(lookup(parts, 2), LANES, "f")
    assert len(re.findall(r"bytes found\d+ = \(bytes\)__builtin_shuffle", text)) == parts
    joined = re.findall(r"found(\d+) = __builtin\S+\(found(\d+), found(\d+), upper(\d+)\)", text)
    assert len(joined) == parts - 1
    assert {int(other) for _, _, other, _ in joined} == set(range(1, parts))
    assert all(into == own and int(other) - int(own) == int(bit) for into, own, other, bit in joined)


@pytest.mark.parametrize(("lanes", "parts", "pieces"), [(32, 1, 8), (32, 2, 16), (64, 2, 16), (64, 3, 0), (32, 3, 0)])
def test_sixteen_elements_are_picked_at_a_time_of_few(lanes: int, parts: int, pieces: int) -> None:
    text = definition(lookup(parts, 1), lanes, "f")
    assert len(re.findall(r"= PICK\(", text)) == pieces
    assert len(re.findall(r"= CHOOSE\(\w+, \w+, upper", text)) == max(0, pieces - 1)


def test_names_say_which_function_it_is() -> None:
    names = {lookup(parts, indices) for parts in (1, 2, 16) for indices in (1, 2)}
    assert len(names) == 6
    assert all(map(is_lookup, names))
    assert not is_lookup("gather")
    assert types_of(64) == [("uint", 16, 32)]
