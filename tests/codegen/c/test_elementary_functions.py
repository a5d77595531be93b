"""Elementary functions of whole vectors, held to the next longer precision: ordinary values and special ones."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import WARNINGS, build, source_of
from support.tools import require_tool
from support.vectors import BUILDS, FLAGS, pairs

from tilesmith.scheduler.codegen.c import neon
from tilesmith.scheduler.codegen.c.emitter import FLAGS as FLAGS_OF_FILES
from tilesmith.scheduler.codegen.c.emitter import RELAXED
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.types import Symbols, words
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, FLOAT64, INT32, UINT32, ScalarType
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

pytestmark = pytest.mark.slow

SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 4, 255, -255.99, 88.7, 88.8, -87.4, -103.9, -105, 1e-45, -1e-45, 1e-40,
     1e-38, 0.99999994, 1.0000001, -1.0000001, 1e30, -1e30, 3.4e38, -3.4e38, 2**23 + 1, -(2**23) - 1, 2**24, 2**24 + 2,
     2**31, -(2.0**31), 2**31 - 128, 2**32 - 256, 2**32, np.inf, -np.inf, np.nan], np.float32,
)  # fmt: skip

SPECIAL_DOUBLES = np.array(
    [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 4, 255, 709.7, 709.8, -745.1, -745.2, -708.4, 5e-324, -5e-324, 1e-310,
     2.3e-308, 1 - 2**-53, 1 + 2**-52, -1 - 2**-52, 1e300, -1e300, 1.7e308, -1.7e308, 2**52 + 1, 2**53, 2**53 + 2,
     -(2.0**53) - 2, 2**52 - 0.5, 2**63, 2**26, 2**20, np.pi, 0.41421356237309503, 0.625, np.inf, -np.inf, np.nan],
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A function in longer precision, the ulps that ours is within, and samples beside special values."""

    exact: np.ufunc
    ulps: float
    samples: Callable[[np.random.Generator], tuple[np.ndarray, ...]]


def magnitudes(rng: np.random.Generator, least: float, most: float) -> np.ndarray:
    """Values of all magnitudes from 2^least to 2^most, of both signs."""
    return np.exp2(rng.uniform(least, most, 20000)) * rng.choice([-1, 1], 20000)


def powers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: ordinary ones, and those whose power is at most just a float."""
    bases = [np.abs(magnitudes(rng, -149, 128)), rng.uniform(0.5, 2, 20000), 1 + magnitudes(rng, -23, -2)]
    exponents = [rng.uniform(-150, 128, 20000) / np.log2(b.astype(np.float32)) for b in bases]
    whole = rng.uniform(-9, 9, 20000).round()
    base = np.concatenate([*bases, rng.uniform(0, 1, 20000), rng.uniform(-20, 20, 20000)])
    return base, np.nan_to_num(np.concatenate([*exponents, rng.uniform(0, 3, 20000), whole]))


def circular(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Angles near and far, and those near multiples of pi / 2."""
    multiples = rng.integers(-80000, 80000, 50000) * (np.pi / 2)
    # the far ones are apart from the others, whose vectors they would share
    return multiples, rng.uniform(-10, 10, 50000), magnitudes(rng, -30, 17), magnitudes(rng, 17, 127)


CASES = {
    "exp(a(x))": Case(np.exp, 4, lambda rng: (rng.uniform(-110, 89, 50000),)),
    "log(a(x))": Case(np.log, 3, lambda rng: (np.abs(magnitudes(rng, -149, 128)), rng.uniform(0.5, 2, 50000))),
    "a(x) ** b(x)": Case(np.power, 4, powers),
    "a(x) ** float32(2.2)": Case(
        lambda a: np.power(a, np.float64(np.float32(2.2))), 4, lambda rng: (rng.random(50000),)
    ),
    "a(x) ** float32(0.33333334)": Case(
        lambda a: np.power(a, np.float64(np.float32(0.33333334))), 4, lambda rng: (np.abs(magnitudes(rng, -149, 128)),)
    ),
    "a(x) ** -3": Case(lambda a: a**-3.0, 4, lambda rng: (magnitudes(rng, -40, 40),)),
    "sin(a(x))": Case(np.sin, 4, circular),
    "cos(a(x))": Case(np.cos, 4, circular),
    "tan(a(x))": Case(np.tan, 4, circular),
    "asin(a(x))": Case(np.arcsin, 4, lambda rng: (rng.uniform(-1, 1, 50000), magnitudes(rng, -30, 0.1))),
    "acos(a(x))": Case(np.arccos, 4, lambda rng: (rng.uniform(-1, 1, 50000), magnitudes(rng, -30, 0.1))),
    "atan(a(x))": Case(np.arctan, 4, lambda rng: (magnitudes(rng, -60, 60), magnitudes(rng, -3, 3))),
    "atan2(a(x), b(x))": Case(np.arctan2, 4, lambda rng: (magnitudes(rng, -9, 9), magnitudes(rng, -9, 9))),
    "tanh(a(x))": Case(np.tanh, 4, lambda rng: (magnitudes(rng, -30, 5), rng.uniform(-2, 2, 50000))),
}


def powers_of_doubles(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: those whose power is at most just a float64, and ordinary ones."""
    bases = [np.abs(magnitudes(rng, -1074, 1024)), 1 + magnitudes(rng, -52, -2)]
    exponents = [rng.uniform(-1080, 1026, 20000) / np.log2(b) for b in bases]
    whole = rng.uniform(-9, 9, 20000).round()
    base = np.concatenate([*bases, rng.uniform(0, 1, 20000), rng.uniform(-20, 20, 20000)])
    return base, np.nan_to_num(np.concatenate([*exponents, rng.uniform(0, 3, 20000), whole]))


def circular_doubles(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Angles near and far; those near multiples of pi / 2 are no further than an exact result can be told from."""
    multiples = rng.integers(-500, 500, 20000) * (np.pi / 2) + magnitudes(rng, -8, -1)
    return multiples, rng.uniform(-10, 10, 20000), magnitudes(rng, -30, 3)


DOUBLES = {
    "exp(a(x))": Case(np.exp, 4, lambda rng: (rng.uniform(-760, 710, 20000),)),
    "log(a(x))": Case(np.log, 2, lambda rng: (np.abs(magnitudes(rng, -1074, 1024)), rng.uniform(0.5, 2, 20000))),
    "a(x) ** b(x)": Case(np.power, 2, powers_of_doubles),
    "sin(a(x))": Case(np.sin, 4, circular_doubles),
    "cos(a(x))": Case(np.cos, 4, circular_doubles),
    "tan(a(x))": Case(np.tan, 4, circular_doubles),
    "asin(a(x))": Case(np.arcsin, 4, lambda rng: (rng.uniform(-1, 1, 20000), magnitudes(rng, -60, 0.1))),
    "acos(a(x))": Case(np.arccos, 4, lambda rng: (rng.uniform(-1, 1, 20000), magnitudes(rng, -60, 0.1))),
    "atan(a(x))": Case(np.arctan, 4, lambda rng: (magnitudes(rng, -60, 60), magnitudes(rng, -3, 3))),
    "atan2(a(x), b(x))": Case(np.arctan2, 4, lambda rng: (magnitudes(rng, -9, 9), magnitudes(rng, -9, 9))),
    "tanh(a(x))": Case(np.tanh, 4, lambda rng: (magnitudes(rng, -60, 5), rng.uniform(-2, 2, 20000))),
}

CASES_OF = {"float32": CASES, "float64": DOUBLES}
OTHER = {"gcc": "clang", "clang": "gcc"}
EVERY = [(*build, "float64") for build in BUILDS] + [(*m, OTHER[compiler], "float32") for *m, compiler in BUILDS]
"""Compilers take turns: each machine has both, for floats of different lengths."""
LONGER = {"float32": np.float64, "float64": np.longdouble}


def columns_of(case: Case, binary: bool, of: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Special values, every pair of them for functions of two, and the samples of a case."""
    samples, special = case.samples(np.random.default_rng(1)), SPECIAL if of == "float32" else SPECIAL_DOUBLES
    if binary:
        return tuple(np.concatenate(c).astype(of) for c in zip(pairs(special), samples, strict=True))
    column = np.concatenate([special, *samples]).astype(of)
    return column, column


def row(values: list[str], types: dict[str, str]) -> Pipeline:
    """A row of each of these values of inputs."""
    outputs = [f"s{n}" for n in range(len(values))]
    return load(
        {
            "format": 1,
            "name": "row",
            "inputs": [{"name": n, "type": t, "dims": ["x"]} for n, t in types.items()],
            "stages": [{"name": o, "dims": ["x"], "value": v} for o, v in zip(outputs, values, strict=True)],
            "outputs": outputs,
            "estimates": {o: [[0, 4096]] for o in outputs},
        }
    )


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in floats of what we got from a value in longer precision that is no special one."""
    with np.errstate(all="ignore"):
        return np.abs(got.astype(exact.dtype) - exact) / np.spacing(np.abs(exact).astype(got.dtype)).astype(exact.dtype)


def assert_near(got: np.ndarray, exact: np.ndarray, most: float, arguments: tuple[np.ndarray, ...], name: str) -> None:
    """Infinities, NaN and zeros are those of the longer precision, signs included; all else is near."""
    info = np.finfo(got.dtype)
    least, largest = exact.dtype.type(info.smallest_subnormal), exact.dtype.type(info.max) * 1.002
    with np.errstate(all="ignore"):
        expected = exact.astype(got.dtype)
    tiny = np.abs(exact) < least * most  # may be 0, too
    special = ~np.isfinite(expected) & (np.abs(exact) > largest) | np.isnan(exact) | (exact == 0)
    wrong = np.where(special, ~((got == expected) | np.isnan(got) & np.isnan(expected)), ulps(got, exact) > most)
    wrong &= ~tiny | (np.abs(got) > least * 2 * most)
    wrong |= (np.signbit(got) != np.signbit(exact)) & ~np.isnan(exact)
    wrong |= np.isnan(got) != np.isnan(exact)
    at = np.flatnonzero(wrong)[:5]
    assert not at.size, f"{name} of {[*zip(*(a[at] for a in arguments), strict=True)]}: {got[at]}, not {exact[at]}"


@pytest.mark.parametrize(("size", "flags", "compiler", "of"), EVERY)
def test_functions_of_vectors(size: int, flags: tuple[str, ...], compiler: str, of: str) -> None:
    """All functions, of rows of their own, in vectors of one register."""
    cases = CASES_OF[of]
    names = {f"a{n}": of for n in range(len(cases))} | {f"b{n}": of for n in range(len(cases))}
    values = [v.replace("a(", f"a{n}(").replace("b(", f"b{n}(") for n, v in enumerate(cases)]
    pipeline = row(values, {n: t for n, t in names.items() if any(f"{n}(" in v for v in values)})
    lanes = size // np.dtype(of).itemsize
    groups = tuple(Group(o, ("x.inner",), (), None, Vector("x", lanes), (), ()) for o in pipeline.outputs)
    source = source_of(pipeline, Schedule("row", "by hand", groups), machine(vector_bytes=size))
    assert not re.search(rf"\b(exp|log|pow|a?cos|a?tan|atan2|tanh)f?\(a\[{lanes - 1}\]", _but_each(source.header))
    columns = [columns_of(c, "b(" in v, of) for v, c in cases.items()]
    inputs = {f"{'ab'[k]}{n}": Image(both[k], (0,)) for n, both in enumerate(columns) for k in range(2)}
    regions = {o: ((0, len(both[0])),) for o, both in zip(pipeline.outputs, columns, strict=True)}
    library = build(source, (*FLAGS[compiler], *flags), compiler, size)
    status, got = call(library, source, pipeline, inputs, {}, regions)
    assert status == 0
    for (name, case), output, both in zip(cases.items(), pipeline.outputs, columns, strict=True):
        arguments = both[: 2 if "b(" in name else 1]
        with np.errstate(all="ignore"):
            exact = case.exact(*(a.astype(LONGER[of]) for a in arguments))
        assert_near(got[output][0], exact, case.ulps, arguments, name)


def _but_each(text: str) -> str:
    """C code without the functions that stand for vectors with an angle too far from 0."""
    return re.sub(r"^SELDOM .*?^}", "", text, flags=re.MULTILINE | re.DOTALL)


HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define INLINE static inline __attribute__((unused))
#define SELDOM static __attribute__((noinline, cold, unused))
"""

PROGRAM = """\
{declarations}
int main(int count, char **words) {{
    {vector} a, b, r;
    const int function = count > 1 ? atoi(words[1]) : 0;
    while (fread(&a, sizeof a, 1, stdin) == 1 && fread(&b, sizeof b, 1, stdin) == 1) {{
        switch (function) {{
{cases}        default: return 1;
        }}
        fwrite(&r, sizeof r, 1, stdout);
    }}
    return 0;
}}
"""


@pytest.mark.parametrize(("compiler", "of"), [(c, FLOAT32) for c in FLAGS] + [("clang", FLOAT64)])
def test_functions_of_aarch64(compiler: str, of: ScalarType, tmp_path: Path) -> None:
    """All functions, in QEMU."""
    named = {name: case for name, case in CASES_OF[of.name].items() if "float32(" not in name and "-3" not in name}
    operands, texts = Operands(Symbols({}), strict=False, register_bytes=16, architecture=neon.ARCHITECTURE), []
    lanes = 16 // of.bytes
    for n, name in enumerate(named):
        function = "pow" if "**" in name else name.partition("(")[0]
        numbers = f", {operands.numbers(FLOAT32, 4)}" if function == "exp" and of == FLOAT32 else ""
        more = ", b" if "b(" in name else numbers
        texts.append(f"        case {n}: r = {operands.function(function, of, lanes)}(a{more}); break;\n")
    program_text = PROGRAM.replace("{vector}", operands.of(of, lanes))
    declared = operands.declarations(words(program_text + "".join(texts)))
    program = linked(HEAD + program_text.format(declarations=declared, cases="".join(texts)), compiler, tmp_path)
    for n, (name, case) in enumerate(named.items()):
        both = [c[: len(c) // lanes * lanes] for c in columns_of(case, "b(" in name, of.name)]
        rows = np.concatenate([c.reshape(-1, lanes) for c in both], axis=1)
        got = np.frombuffer(run(*program, n, given=rows.tobytes()), of.name)
        arguments = tuple(both[: 2 if "b(" in name else 1])
        with np.errstate(all="ignore"):
            exact = case.exact(*(a.astype(LONGER[of.name]) for a in arguments))
        assert_near(got, exact, case.ulps, arguments, name)


@pytest.mark.parametrize("compiler", FLAGS)
def test_conversions_of_aarch64(compiler: str, tmp_path: Path) -> None:
    """To double precision, in QEMU."""
    operands, texts = Operands(Symbols({}), strict=False, register_bytes=16, architecture=neon.ARCHITECTURE), []
    for t in (INT32, UINT32, FLOAT32):
        ends = "2.5f, -3e38f" if t.is_float else f"{t.min}, {t.max}" if t == UINT32 else "INT32_MIN, INT32_MAX"
        texts.append(
            f"    const {operands.of(t, 2)} a_{t.name} = {{{ends}}};\n"
            f"    const f64x2 b_{t.name} = {operands.function('to_f64', t, 2)}(a_{t.name});\n"
            f"    if (b_{t.name}[0] != a_{t.name}[0] || b_{t.name}[1] != a_{t.name}[1]) return 1;\n"
        )
    text = f"{operands.declarations(words(''.join(texts)))}\nint main(void) {{\n{''.join(texts)}    return 0;\n}}\n"
    assert text.count(f"#if defined {neon.MACRO} && ") == 3, "not an instruction"
    run(*linked(HEAD + text, compiler, tmp_path))


def linked(text: str, compiler: str, folder: Path) -> tuple[object, ...]:
    """The command that runs a program for AArch64."""
    linker, emulator = require_tool("aarch64-linux-gnu-gcc"), require_tool("qemu-aarch64")
    source, compiled, program = folder / "program.c", folder / "program.o", folder / "program"
    source.write_text(text)
    command = [linker] if compiler == "gcc" else [require_tool("clang"), "--target=aarch64-linux-gnu"]
    run(*command, *FLAGS_OF_FILES, *RELAXED, *WARNINGS, *FLAGS[compiler], "-c", source, "-o", compiled)
    run(linker, compiled, "-o", program, "-lm")
    return emulator, "-L", "/usr/aarch64-linux-gnu", program


def run(*command: object, given: bytes = b"") -> bytes:
    done = subprocess.run(list(map(str, command)), input=given, capture_output=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr.decode()[-3000:]}"
    return done.stdout


def test_strict_functions_are_those_of_the_c_library() -> None:
    pipeline = row(["exp(a(x))"], {"a": "float32"})
    group = Group("s0", ("x.inner",), (), None, Vector("x", 16), (), ())
    source = source_of(pipeline, Schedule("row", "by hand", (group,), strict=True), machine())
    assert "expf(a[3])" in source.header


def test_a_point_has_one_value_in_vectors_and_beyond_them() -> None:
    """Beyond its edges an image has the values of the edges: functions of them are the same, to the last bit."""
    stage = {"name": "soft", "dims": ["x"], "value": "1.0 / (1.0 + exp(-image(x)))"}
    row = {"name": "image", "type": "float32", "dims": ["x"], "boundary": {"kind": "repeat_edge"}}
    pipeline = load({
        "format": 1, "name": "sigmoids", "inputs": [row], "stages": [stage], "outputs": ["soft"],
        "estimates": {"soft": [[-1, 66]], "image": [[0, 64]]},
    })  # fmt: skip
    schedule = Schedule("sigmoids", "by hand", (Group("soft", ("x.inner",), (), None, Vector("x", 8), (), ()),))
    source = source_of(pipeline, schedule, machine(vector_bytes=32))
    assert "expf(" not in source.code
    library = build(source, FLAGS["gcc"])
    for seed in range(20):
        image = np.random.default_rng(seed).uniform(-4, 4, 64).astype(np.float32)
        _, found = call(library, source, pipeline, {"image": Image(image, (0,))}, {}, {"soft": ((-1, 66),)})
        (soft,) = found["soft"]
        assert (soft[0], soft[-1]) == (soft[1], soft[-2])
