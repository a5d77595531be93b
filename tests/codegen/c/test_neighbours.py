"""Lanes across two registers of AVX-512: every distance, in every width of elements, is what the definition says."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.c.neighbours import JOINED, definition, joins, neighbours, types_of
from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.ir.pipeline.types import ScalarType

REGISTER = 64
FLAGS = ("-mavx512f", "-mavx512bw")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_every_distance(bits: int, compiler: str, tmp_path: Path) -> None:
    require_tool(compiler)
    if platform.machine() != "x86_64":
        pytest.skip("its compiler knows no AVX-512")
    type_, lanes = ScalarType("uint", bits), REGISTER * 8 // bits
    own, words = vector("uint", bits, lanes), vector(*types_of("from1", type_, lanes)[0])
    text = [
        "#include <stdint.h>",
        "#define INLINE static inline",
        f"typedef uint{bits}_t {own} __attribute__((vector_size({REGISTER})));",
        f"typedef int32_t {words} __attribute__((vector_size({REGISTER})));",
    ]
    for first in range(1, lanes):
        name = neighbours(tuple(range(first, first + lanes)), type_)
        assert name is not None
        text.append(definition(name, type_, lanes, f"f{first}"))
    calls = "".join(f"    out[{n}] = f{n}(*a, *b);\n" for n in range(1, lanes))
    text.append(f"void all(const {own} *a, const {own} *b, {own} *out) {{\n{calls}}}")
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    source.write_text("\n".join(text))
    subprocess.run([compiler, "-O2", *FLAGS, "-shared", "-fPIC", "-o", library, source], check=True)
    if host().vector_bytes < REGISTER:
        pytest.skip("compiled, but not run: this machine has no AVX-512")
    memory = np.zeros(REGISTER * (lanes + 3), "uint8")
    begin = -memory.ctypes.data % REGISTER
    registers = memory[begin : begin + REGISTER * (lanes + 2)].view(f"uint{bits}").reshape(-1, lanes)
    registers[:2] = np.random.default_rng(bits).integers(0, 2**bits, (2, lanes))
    ctypes.CDLL(str(library)).all(*(ctypes.c_void_p(registers[n:].ctypes.data) for n in range(3)))
    both = registers[:2].ravel()
    for first in range(1, lanes):
        np.testing.assert_array_equal(registers[2 + first], both[first : first + lanes])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_floats_are_moved_without_a_vector_of_places(compiler: str, tmp_path: Path) -> None:
    require_tool(compiler)
    if platform.machine() != "x86_64":
        pytest.skip("its compiler knows no AVX-512")
    own, words = vector("float", 32, 16), vector("int", 32, 16)
    source = tmp_path / "moved.c"
    source.write_text(
        "#include <stdint.h>\n#define INLINE static inline\n"
        f"typedef float {own} __attribute__((vector_size({REGISTER})));\n"
        f"typedef int32_t {words} __attribute__((vector_size({REGISTER})));\n"
        f"{definition('from3', ScalarType('float', 32), 16, 'moved')}"
        f"{own} taken({own} a, {own} b) {{ return moved(a, b) * a; }}\n"
    )
    done = subprocess.run(
        [compiler, "-O2", *FLAGS, "-S", "-o", "-", source], check=True, capture_output=True, text=True
    )
    assert "valignd" in done.stdout
    assert "vperm" not in done.stdout


@pytest.mark.parametrize(("size", "flags", "found"), [(32, ("-mavx2",), "vinserti128"), (64, FLAGS, "vinserti64x4")])
def test_halves_are_put_together_with_one_from_memory(
    size: int, flags: tuple[str, ...], found: str, tmp_path: Path
) -> None:
    require_tool("gcc")
    if platform.machine() != "x86_64":
        pytest.skip("its compiler knows no AVX2")
    type_, half = ScalarType("uint", 8), size // 2
    assert joins(tuple(range(size)), type_)
    own, part = vector("uint", 8, size), vector("uint", 8, half)
    text = [
        "#include <stdint.h>",
        "#define INLINE static inline",
        f"typedef uint8_t {own} __attribute__((vector_size({size})));",
        f"typedef uint8_t {part} __attribute__((vector_size({half}), aligned(1)));",
        definition(JOINED, type_, size, "joined"),
        f"void all(const {part} *a, const {part} *b, {own} *out) {{ *out = joined(*a, *b); }}",
    ]
    source, code = tmp_path / "all.c", tmp_path / "all.s"
    source.write_text("\n".join(text))
    subprocess.run(["gcc", "-O2", *flags, "-S", "-o", code, source], check=True)
    loads = [line for line in code.read_text().splitlines() if "(%rdi)" in line or "(%rsi)" in line]
    assert [found in line for line in loads] == [False, True]


def test_halves_of_longer_elements_are_left_to_compilers() -> None:
    assert not joins(tuple(range(8)), ScalarType("float", 32))
    assert not joins(tuple(range(16)), ScalarType("uint", 8))
