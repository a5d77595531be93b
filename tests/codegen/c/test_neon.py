"""Instructions of AArch64 for vectors of integers: their values, held to arithmetic of 128 bits in QEMU, and where
compilers have them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.machines import machine
from support.native import WARNINGS
from support.tools import require_tool

from tilesmith import platforms
from tilesmith.scheduler.codegen.c import neon
from tilesmith.scheduler.codegen.c.integer_functions import ABS, PACKED, definition, types_of, widening
from tilesmith.scheduler.codegen.c.types import vector
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType

pytestmark = pytest.mark.slow

COMPILER, EMULATOR, LIBRARIES = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
TYPES = [ScalarType(kind, bits) for bits in (8, 16, 32, 64) for kind in ("int", "uint")]
WIDER = [(a, b) for a in TYPES for b in TYPES if a.bits < b.bits]
REGISTERS = (8, 16)

EXACT = {
    "min": "x < y ? x : y",
    "max": "x > y ? x : y",
    "rounding_halving_add": "(x + y + 1) >> 1",
    "sat_add": "within(x + y, {least}, {most})",
    "sat_sub": "within(x - y, {least}, {most})",
}
"""The value of each function in x and y, in 128 bits."""
PACKED_TYPES = [t for t in TYPES if t.bits <= 16]

HEAD = """\
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define INLINE static inline __attribute__((unused))
#define LENGTH(a) (int)(sizeof a / sizeof *a)
typedef __int128 wide;
INLINE wide within(wide x, wide least, wide most) { return x < least ? least : x > most ? most : x; }
"""

PAIRS = """\
static int check_{name}(void) {{
    static const {t} ends[] = {{{ends}}};
    for (int i = 0; i < LENGTH(ends); i++)
        for (int j = 0; j < LENGTH(ends); j++) {{
            {t} a[{lanes}], b[{lanes}], got[{lanes}];
            {own} va, vb;
            for (int n = 0; n < {lanes}; n++) a[n] = ends[(i + n) % LENGTH(ends)];
            for (int n = 0; n < {lanes}; n++) b[n] = ends[(j + 3 * n) % LENGTH(ends)];
            memcpy(&va, a, sizeof va), memcpy(&vb, b, sizeof vb);
            const {own} found = {name}(va, vb);
            memcpy(got, &found, sizeof got);
            for (int n = 0; n < {lanes}; n++) {{
                const wide x = a[n], y = b[n];
                if (got[n] != ({exact})) return puts("{name}"), 1;
            }}
        }}
    return 0;
}}
"""

HALVES = """\
static int check_{name}(void) {{
    static const {s} ends[] = {{{ends}}};
    for (int i = 0; i < LENGTH(ends); i++) {{
        {s} a[{lanes}];
        {t} got[{lanes}];
        {taken} low, high;
        for (int n = 0; n < {lanes}; n++) a[n] = ends[(i + n) % LENGTH(ends)];
        memcpy(&low, a, sizeof low), memcpy(&high, a + {lanes} / 2, sizeof high);
        const {own} found = {name}(low, high);
        memcpy(got, &found, sizeof got);
        for (int n = 0; n < {lanes}; n++)
            if (got[n] != within(a[n], {least}, {most})) return puts("{name}"), 1;
    }}
    return 0;
}}
"""

ALONE = """\
static int check_{name}(void) {{
    static const {s} ends[] = {{{ends}}};
    for (int i = 0; i < LENGTH(ends); i++) {{
        {s} a[{lanes}];
        {t} got[{lanes}];
        {taken} va;
        for (int n = 0; n < {lanes}; n++) a[n] = ends[(i + n) % LENGTH(ends)];
        memcpy(&va, a, sizeof va);
        const {own} found = {name}(va);
        memcpy(got, &found, sizeof got);
        for (int n = 0; n < {lanes}; n++)
            if (got[n] != ({t})({exact})) return puts("{name}"), 1;
    }}
    return 0;
}}
"""


def ends(t: ScalarType) -> str:
    """All bytes; of wider types the values at the ends and some others."""
    unsigned = [*range(1 << t.bits)] if t.bits == 8 else [
        *(n % (1 << t.bits) for n in range(-3, 4)),
        *((1 << (t.bits - 1)) + n for n in range(-2, 3)),
        *((1 << (t.bits // 2)) + n for n in range(-2, 3)),
        0x123456789ABCDEF % (1 << t.bits),
    ]  # fmt: skip
    return ", ".join(f"({t.name}_t){n}u" + ("ll" if t.bits == 64 else "") for n in unsigned)


def program() -> str:
    """A program with every function that AArch64 has an instruction for; it prints what is wrong and fails."""
    declared: set[tuple[str, int, int]] = set()
    functions, names = [], []

    def add(name: str, t: ScalarType, lanes: int, check: str, **words: object) -> None:
        c_name, own = f"{name}_{t.name}x{lanes}", vector(t.kind, t.bits, lanes)
        declared.update((kind, t.bits, lanes) for kind in ("int", "uint"))
        declared.update(types_of(name, t, lanes))
        functions.append(definition(name, t, lanes, c_name, neon.ARCHITECTURE))
        assert neon.MACRO in functions[-1], "not an instruction"
        functions.append(check.format(name=c_name, lanes=lanes, own=own, t=f"{t.name}_t", **words))
        names.append(c_name)

    for size in REGISTERS:
        for t in TYPES:
            lanes = size // t.bytes
            least, most = (f"INT{t.bits}_MIN", f"INT{t.bits}_MAX") if t.kind == "int" else ("0", f"UINT{t.bits}_MAX")
            for name in EXACT if lanes > 1 else ():
                if t.bits < 64 or name.startswith("sat_"):
                    add(name, t, lanes, PAIRS, ends=ends(t), exact=EXACT[name].format(least=least, most=most))
        for s, t in WIDER:
            lanes = size // t.bytes
            if lanes > 1:
                declared.add((s.kind, s.bits, lanes))
                taken = vector(s.kind, s.bits, lanes)
                add(widening(s), t, lanes, ALONE, ends=ends(s), s=f"{s.name}_t", taken=taken, exact="a[n]")
        for t in TYPES:
            if t.kind == "int" and t.bits < 64:
                words = {"s": f"{t.name}_t", "taken": vector("int", t.bits, size // t.bytes)}
                exact = "a[n] < 0 ? -(wide)a[n] : a[n]"
                add(ABS, t, size // t.bytes, ALONE, ends=ends(t), exact=exact, **words)
    for t in PACKED_TYPES:
        lanes, source = 16 // t.bytes, ScalarType("int", 2 * t.bits)
        words = {"s": f"{source.name}_t", "taken": vector("int", source.bits, lanes // 2), "ends": ends(source)}
        add(PACKED, t, lanes, HALVES, least=t.min, most=t.max, **words)
    types = [
        f"typedef {kind}{bits}_t {vector(kind, bits, lanes)} __attribute__((vector_size({bits // 8 * lanes})));\n"
        for kind, bits, lanes in sorted(declared)
    ]
    calls = " | ".join(f"check_{n}()" for n in names)
    return f"{HEAD}{neon.HEADER}{''.join(types)}{''.join(functions)}int main(void) {{ return {calls}; }}\n"


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize(("level", "compiler"), [("-O0", "clang"), ("-O1", "gcc")])
def test_values(level: str, compiler: str, tmp_path: Path) -> None:
    """Every type, in whole registers and halves, at the ends of its range."""
    source, linked, object_ = tmp_path / "values.c", tmp_path / "values", tmp_path / "values.o"
    source.write_text(program())
    linker, emulator = require_tool(COMPILER), require_tool(EMULATOR)
    command = [linker] if compiler == "gcc" else [require_tool("clang"), "--target=aarch64-linux-gnu"]
    run(*command, "-std=gnu11", *WARNINGS, level, "-c", source, "-o", object_)
    run(linker, object_, "-o", linked)
    assert run(emulator, "-L", LIBRARIES, linked) == ""


INSTRUCTIONS = (
    ("min", "uint8", "umin"), ("max", "int32", "smax"), ("rounding_halving_add", "uint8", "urhadd"),
    ("rounding_halving_add", "int16", "srhadd"), ("sat_add", "uint16", "uqadd"), ("sat_add", "int64", "sqadd"),
    ("sat_sub", "uint8", "uqsub"), ("sat_sub", "int8", "sqsub"), (ABS, "int16", "abs"), (ABS, "int32", "abs"),
)  # fmt: skip


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_instructions(compiler: str, tmp_path: Path) -> None:
    """One instruction each, with both compilers."""
    texts, expected = ["#include <stdint.h>\n", neon.HEADER], {}
    for t in TYPES:
        for kind in ("int", "uint") if t.kind == "int" else ():
            own = vector(kind, t.bits, 16 // t.bytes)
            texts.append(f"typedef {kind}{t.bits}_t {own} __attribute__((vector_size(16)));\n")
    for name, type_, instruction in INSTRUCTIONS:
        t = next(t for t in TYPES if t.name == type_)
        c_name = f"{name}_{type_}"
        texts.append(definition(name, t, 16 // t.bytes, c_name, neon.ARCHITECTURE).replace("INLINE ", ""))
        expected[c_name] = [instruction]
    source, assembly = tmp_path / "functions.c", tmp_path / "functions.s"
    source.write_text("".join(texts))
    command = [require_tool(COMPILER)] if compiler == "gcc" else [require_tool("clang"), "--target=aarch64-linux-gnu"]
    run(*command, "-std=gnu11", "-O3", "-S", source, "-o", assembly)
    functions = re.findall(r"^(\w+):(.*?)^\t\.size\s", assembly.read_text(), re.MULTILINE | re.DOTALL)
    found = {name: re.findall(r"^\t([a-z]\w*)\s", body, re.MULTILINE) for name, body in functions}
    assert {name: [i for i in body if i != "ret"] for name, body in found.items()} == expected


def stencil() -> Pipeline:
    """Sums of 3x3 bytes, in 16 bits."""
    near = " + ".join(f"wide(x + {i}, y + {j})" for j in range(-1, 2) for i in range(-1, 2))
    return load(
        {
            "format": 1,
            "name": "stencil",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
            "stages": [
                {"name": "wide", "dims": ["x", "y"], "value": "uint16(a(x, y))"},
                {"name": "out", "dims": ["x", "y"], "value": f"uint8(({near}) >> 4)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 1024], [0, 512]]},
        }
    )


def loops(assembly: str) -> list[set[str]]:
    """The instructions of every loop without branches, from its label to the jump back: what the edges of rows need
    has some."""
    found = []
    for m in re.finditer(r"^(\.L\w+):", assembly, re.MULTILINE):
        inside = re.match(r"(?:[^\n]*\n(?!\t(?:b|bl|b\.?\w\w|[ct]bn?z)\s))*[^\n]*\n", assembly[m.end() :])
        back = assembly[m.end() + inside.end() :].split("\n", 1)[0] if inside else ""
        if inside and re.search(rf"\s{re.escape(m.group(1))}$", back):
            found.append(set(re.findall(r"^\t([a-z]\w*)\s", inside.group(), re.MULTILINE)))
    return found


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["cortex-a53", "graviton4"])
def test_bytes_of_a_stencil_do_not_pass_through_integer_registers(name: str, compiler: str, tmp_path: Path) -> None:
    platform = platforms.get(name)
    source = compile_pipeline(stencil(), platform).source
    (tmp_path / source.header_name).write_text(source.header)
    (tmp_path / "stencil.c").write_text(source.code)
    command = [require_tool(platform.compiler.command), *platform.compiler.flags]
    if compiler == "clang":
        command = [require_tool("clang"), "--target=aarch64-linux-gnu", "-O3"]
    run(*command, *source.flags, *WARNINGS, "-S", tmp_path / "stencil.c", "-o", tmp_path / "stencil.s")
    blocks = loops((tmp_path / "stencil.s").read_text())
    widened = [block for block in blocks if any(re.match("uxtl|ushll|uaddl|uaddw", i) for i in block)]
    assert widened
    assert not set().union(*widened) & {"umov", "ins"}


def test_other_machines_have_none_of_it() -> None:
    code = compile_pipeline(stencil(), machine(vector_bytes=16)).source.code
    assert "ts_from_u8_u16x8" in code
    assert neon.MACRO not in code
    assert "arm_neon" not in code
