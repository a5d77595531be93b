"""Vectors of integers divided by constants and by each other: every byte, and the ends of longer types."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.builds import HOST_BYTES
from support.native import WARNINGS
from support.tools import require_tool
from support.vectors import FLAGS, MACHINES

from tilesmith.scheduler.codegen.c import integer_division
from tilesmith.scheduler.codegen.c.emitter import FLAGS as FLAGS_OF_FILES
from tilesmith.scheduler.codegen.c.emitter import RELAXED
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.prelude import helpers_used
from tilesmith.scheduler.codegen.c.types import Symbols, scalar, short, words
from tilesmith.scheduler.ir.pipeline.types import ScalarType

pytestmark = pytest.mark.slow

TYPES = [ScalarType(kind, bits) for bits in (8, 16, 32) for kind in ("int", "uint")]

HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#define INLINE static inline __attribute__((unused))
#define SELDOM static __attribute__((noinline, cold, unused))
"""

PROGRAM = """
/* All of a byte; of what is longer, what is near to 0, to a multiple of the divisor, and to the ends of the type. */
static int64_t value(int n, int64_t k, int64_t least, int64_t most) {{
    static uint64_t seed = 1;
    const int64_t around = n / 4 % 64 - 32;
    if (most - least < 256) return least + n % 256;
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    switch (n % 4) {{
    case 0: return around;
    case 1: return (int64_t)(seed >> 33) % (most / (k < 0 ? -k : k ? k : 1) + 1) * k + around % 3;
    case 2: return around < 0 ? most + 1 + around : least + around;
    default: return (int64_t)(seed >> 31);
    }}
}}
{cases}
int main(void) {{
{calls}    return 0;
}}
"""

CASE = """
static int by_each_{name}(void) {{
    for (int64_t n = 0; n < 16384; n++) {{
        {v} a, b;
        for (int j = 0; j < {lanes}; j++) {{
            b[j] = ({t})value((int)(n / 64 * (n % 3 == 0 ? 77 : 1)), 3, {least}, {most});
            a[j] = ({t})value((int)n + j, (int64_t)b[j], {least}, {most});
            if (n % 4 == 1) a[j] = ({t})((uint64_t)b[j] * (uint64_t)(j % 3 - 1) + (uint64_t)(n % 5)); /* all near */
        }}
        const {v} q = {quotient}(a, b), r = {remainder}(a, b);
        for (int j = 0; j < {lanes}; j++)
            if (q[j] != ts_div_{short}(a[j], b[j]) || r[j] != ts_mod_{short}(a[j], b[j])) {{
                fprintf(stderr, "{name}: %lld by %lld\\n", (long long)a[j], (long long)b[j]);
                return 1;
            }}
    }}
    return 0;
}}
"""

BY = """
static int by_constants_{name}(void) {{
    static const struct {{ {t} k; {m} m;{rest} }} all[] = {{ {inverses} }};
    for (unsigned c = 0; c < sizeof all / sizeof *all; c++)
        for (int n = 0; n < 256; n++) {{
            {v} a;
            for (int j = 0; j < {lanes}; j++) a[j] = ({t})value(n + j, all[c].k, {least}, {most});
            const {v} q = {function}(a, all[c].m{shift});
            for (int j = 0; j < {lanes}; j++)
                if (q[j] != ts_div_{short}(a[j], all[c].k)) {{
                    fprintf(stderr, "{name}: %lld by %lld\\n", (long long)a[j], (long long)all[c].k);
                    return 1;
                }}
        }}
    return 0;
}}
"""


def constants(t: ScalarType) -> list[int]:
    """Divisors: of short types all that some machine could get wrong, as 1 / k has the longest rest there."""
    ends = [3, 5, 6, 7, 9, 10, 11, 13, 100, 125, 127, 255, 641, 1000, 32749, 65535, 46341, 1 << 30, (1 << 31) - 1]
    every = range(3, 128) if t.bits == 8 else []
    last = [t.max, t.max - 1, t.max // 2, t.max // 2 + 2, t.max // 3]
    return sorted({k for k in (*ends, *every, *last) if 2 < k <= t.max and k & (k - 1)})


@pytest.mark.parametrize(
    ("size", "flags", "compiler"),
    [*((*m, c) for m, c in zip(MACHINES, ("gcc", "clang", "clang", "gcc"), strict=True)), (*MACHINES[1], "gcc")],
)
def test_quotients_and_remainders(size: int, flags: tuple[str, ...], compiler: str, tmp_path: Path) -> None:
    """With the rounding of a scalar division, whatever reordering of floats is allowed."""
    if size > HOST_BYTES:
        pytest.skip("vectors are wider than this machine's")
    operands, cases, calls = Operands(Symbols({}), False, size, "x86_64"), [], []
    for t in TYPES:
        lanes = size // t.bytes
        same = {"name": t.name, "t": scalar(t), "v": operands.of(t, lanes), "lanes": lanes, "short": short(t)}
        same |= {"least": t.min if t.bits < 32 else "INT32_MIN", "most": f"{t.max}LL"}
        same |= {f: operands.function(f, t, lanes) for f in ("quotient", "remainder")}
        cases.append(CASE.format(**same))
        calls.append(f"by_each_{t.name}")
        if not integer_division.has(integer_division.BY_CONSTANT, t, lanes):
            continue
        function = operands.function(integer_division.BY_CONSTANT, t, lanes)
        inverses = ", ".join(f"{{{k}, {integer_division.inverse(t, k)}}}" for k in constants(t))
        m = "uint32_t" if t.bits == 32 else "int16_t" if t.name == "int8" else "uint16_t"
        shift, rest = ("", "") if t.bits == 8 else (", all[c].shift", " int shift;")
        cases.append(BY.format(**same, function=function, inverses=inverses, m=m, shift=shift, rest=rest))
        calls.append(f"by_constants_{t.name}")
    body = "".join(cases)
    program = PROGRAM.format(cases=body, calls="".join(f"    if ({c}()) return 1;\n" for c in calls))
    declared = operands.declarations(words(body))
    source, made = tmp_path / "all.c", tmp_path / "all"
    source.write_text("\n".join((HEAD, helpers_used(words(body)), declared, program)))
    built = [
        require_tool(compiler),
        *FLAGS_OF_FILES,
        *RELAXED,
        *WARNINGS,
        *FLAGS[compiler],
        "-march=native",
        *flags,
        source,
    ]
    done = subprocess.run([*map(str, built), "-o", str(made), "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    done = subprocess.run([str(made)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
