"""Roots and roundings of whole vectors: one instruction by GCC, and the C library's values."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.builds import HOST_BYTES
from support.tools import require_compiler

from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.c.elementary_functions import FLOAT_FUNCTIONS, by_lanes
from tilesmith.scheduler.codegen.c.vector_functions import _WHOLE
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, FLOAT64

NAMES = ("sqrt", "floor", "ceil", "round", "trunc")
PROGRAM = """\
#include <math.h>
#include <stdio.h>
#define INLINE static inline __attribute__((unused))
typedef float f32x{f} __attribute__((vector_size({bytes})));
typedef double f64x{d} __attribute__((vector_size({bytes})));
{functions}
int main(void) {{
    int wrong = 0;
    for (int n = -4000; n < 4000; n++) {{
        f32x{f} a; f64x{d} b;
        for (int k = 0; k < {f}; k++) a[k] = (float)(n * 0.25 + k * 1e-3);
        for (int k = 0; k < {d}; k++) b[k] = n * 0.25 + k * 1e-6;
{checks}
    }}
    return wrong;
}}
"""


@pytest.mark.parametrize("size", [n for n in (16, 32, 64) if n <= HOST_BYTES])
def test_values_are_those_of_the_library(size: int, tmp_path: Path) -> None:
    require_compiler("gcc")
    functions, checks = [_WHOLE], []
    for t, v in ((FLOAT32, "a"), (FLOAT64, "b")):
        lanes = size // t.bytes
        for name in NAMES:
            text = by_lanes(name, t, lanes)
            functions.append(text)
            call = f"{text.split('(')[0].split()[-1]}({v})"
            one = f"{FLOAT_FUNCTIONS[name]}{'f' if t.bits == 32 else ''}({v}[k])"
            checks.append(f"for (int k = 0; k < {lanes}; k++) wrong |= {call}[k] != {one} && !isnan({one});")
    source = tmp_path / "program.c"
    values = {"f": size // 4, "d": size // 8, "bytes": size}
    source.write_text(PROGRAM.format(functions="\n".join(functions), checks="\n".join(checks), **values))
    program = tmp_path / "program"
    flags = [*host().compiler.flags, "-Wno-psabi", "-fno-tree-vectorize", "-fno-math-errno"]
    subprocess.run(["gcc", "-O1", *flags, "-o", program, source, "-lm"], check=True)
    assert subprocess.run([program], check=False).returncode == 0
