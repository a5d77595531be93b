"""Functions of whole vectors: held to NumPy and the interpreter on all kinds of values, special ones among them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import here, machine
from support.native import build, source_of
from support.rows import rows
from support.turns import in_turn
from support.vectors import BUILDS, FLAGS, MACHINES, pairs

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.integer_functions import ABS, definition
from tilesmith.scheduler.codegen.c.prelude import entry_name
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

pytestmark = pytest.mark.slow

SPECIAL = np.array(
    [0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 255, -255.99, 88.7, 88.8, -87.4, -103.9, -105, 1e-45, 1e-40, 1e-38, 1e30, -1e30,
     2**24, 2**31, -(2.0**31), 2**31 - 128, 2**32 - 256, 2**32, np.inf, -np.inf, np.nan], np.float32,
)  # fmt: skip


def pointwise(value: str, types: Sequence[str], lanes: int, strict: bool = False) -> tuple[Pipeline, CSource]:
    """A row of `value` of inputs a, b, ... of these types, in vectors."""
    pipeline = load(
        {
            "format": 1,
            "name": "pointwise",
            "inputs": [{"name": n, "type": t, "dims": ["x"]} for n, t in zip("abc", types, strict=False)],
            "stages": [{"name": "out", "dims": ["x"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 4096]]},
        }
    )
    group = Group("out", ("x.inner",), (), None, Vector("x", lanes), (), ())
    return pipeline, source_of(pipeline, Schedule("pointwise", "by hand", (group,), strict), here())


def computed(compiler: str, pipeline: Pipeline, source: CSource, *columns: np.ndarray) -> np.ndarray:
    library = build(source, FLAGS[compiler], compiler)
    inputs = {n: Image(c, (0,)) for n, c in zip("abc", columns, strict=False)}
    status, got = call(library, source, pipeline, inputs, {}, {"out": ((0, len(columns[0])),)})
    assert status == 0
    return got["out"][0]


def floats(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special values, and ordinary ones of many magnitudes."""
    a, b = pairs(SPECIAL)
    size = np.exp(rng.uniform(-60, 60, 3000)) * rng.choice([-1, 1], 3000)
    a = np.concatenate([a, size, rng.uniform(-100, 100, 3000), rng.uniform(0, 4, 3000)])
    b = np.concatenate([b, rng.uniform(-1, 1, 3000), rng.uniform(-8, 8, 3000).round(), rng.uniform(-9, 9, 3000)])
    return a.astype(np.float32), b.astype(np.float32)


def holds(
    values: Sequence[str], columns: Mapping[str, np.ndarray], lanes: int, compiler: str, flags: tuple[str, ...]
) -> str:
    """The C of rows of all `values` of these inputs, in one library, which was held to the interpreter."""
    types = {name: column.dtype.name for name, column in columns.items()}
    pipeline, source = rows(values, types, lanes, here())
    inputs = {name: Image(column, (0,)) for name, column in columns.items()}
    regions = dict.fromkeys(pipeline.outputs, ((0, min(map(len, columns.values()))),))
    expected = interpreted(pipeline, inputs, {}, regions)
    status, got = call(build(source, flags, compiler), source, pipeline, inputs, {}, regions)
    assert status == 0
    for output, value in zip(pipeline.outputs, values, strict=True):
        np.testing.assert_array_equal(got[output][0], expected[output][0], err_msg=value)
    return source.code


@pytest.mark.parametrize("compiler", FLAGS)
def test_floats_become_integers(compiler: str) -> None:
    column, _ = floats(np.random.default_rng(2))
    column = np.concatenate([column, np.float32(1 << 31) * np.linspace(-1.1, 2.2, 999, dtype=np.float32)])
    types = ("int32", "uint32", "uint16", "int8")
    holds([f"{to}(a(x))" for to in types], {"a": column}, 16, compiler, FLAGS[compiler])


IDIOMS = (
    "sat_add(a(x), b(x))", "sat_sub(a(x), b(x))", "halving_add(a(x), b(x))", "rounding_halving_add(a(x), b(x))",
    "absd(a(x), b(x))", "sat_add(a(x), 5)", "min(a(x), b(x))", "max(b(x), a(x))", "popcount(a(x))",
    "count_leading_zeros(a(x))", "count_trailing_zeros(a(x))", "abs(a(x))",
)  # fmt: skip
SHIFTS = ("rounding_shift_right(a(x), 3)", "rounding_shift_right(a(x), 0)", "a(x) << 2", "a(x) >> 1")
COUNTED = ("a(x) << {}(b(x))", "a(x) >> {}(b(x))", "a(x) << x % 4 * 2", "a(x) >> x % 4 * 2", "a(x) >> int32(b(x) & 7)")


def values_of(type_: str) -> np.ndarray:
    info = np.iinfo(type_)
    if info.bits == 8:
        return np.arange(info.min, info.max + 1).astype(type_)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 7, info.max // 2, info.max // 2 + 1]
    some = np.random.default_rng(3).integers(info.min, info.max, 50, dtype=type_, endpoint=True)
    return np.concatenate([np.array(ends, type_), some])


def holds_of_pairs(values: Sequence[str], type_: str, lanes: int, size: int, flags: tuple[str, ...]) -> str:
    """The C of all `values` of a(x) and b(x) in vectors, in one pipeline, which was held to the interpreter: on every
    pair of bytes, of wider types on those at the ends."""
    pipeline, source = rows(values, dict.fromkeys("ab", type_), lanes, machine(vector_bytes=size))
    a, b = pairs(values_of(type_))
    inputs, regions = {"a": Image(a, (0,)), "b": Image(b, (0,))}, {o: ((0, len(a)),) for o in pipeline.outputs}
    expected = interpreted(pipeline, inputs, {}, regions)
    status, got = call(build(source, ("-O1", *flags), vector_bytes=size), source, pipeline, inputs, {}, regions)
    assert status == 0
    for output, value in zip(pipeline.outputs, values, strict=True):
        np.testing.assert_array_equal(got[output][0], expected[output][0], err_msg=value)
    return source.code


@pytest.mark.parametrize(("size", "flags"), MACHINES)
@pytest.mark.parametrize("type_", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64"])
def test_integer_idioms(type_: str, size: int, flags: tuple[str, ...]) -> None:
    unsigned = "u" + type_.removeprefix("u")
    values = IDIOMS + SHIFTS + tuple(value.format(unsigned) for value in COUNTED)
    code = holds_of_pairs(values, type_, size // np.dtype(type_).itemsize, size, flags)
    assert not re.search(r"[ab]_\d+\[\d+\]", code), "lane by lane"


@pytest.mark.parametrize("part", [4, 8])
@pytest.mark.parametrize("type_", ["uint8", "int8", "uint16", "int16", "int32", "uint32"])
def test_integer_idioms_of_parts_of_a_register(type_: str, part: int) -> None:
    lanes = part // np.dtype(type_).itemsize
    for size, flags in MACHINES if lanes > 1 else ():
        holds_of_pairs(IDIOMS, type_, lanes, size, flags)


@pytest.mark.parametrize("name", ["min", "max", "sat_add", "sat_sub", "mulhi", ABS])
def test_parts_of_a_register_have_instructions(name: str) -> None:
    """Eight bytes go through one instruction, as rows of bytes whose results are four times as wide do."""
    t, lanes = ScalarType("int", 16), 4
    types = [f"typedef {kind}16_t {kind[0]}16x4 __attribute__((vector_size(8)));\n" for kind in ("int", "uint")]
    head = f"#include <stdint.h>\n#define INLINE static inline\n{''.join(types)}"
    call = "of(*a)" if name == ABS else "of(*a, *b)"
    text = f"{head}{definition(name, t, lanes, 'of', 'x86_64')}i16x4 f(i16x4 *a, i16x4 *b) {{ return {call}; }}\n"
    command = ["gcc", "-O2", "-msse4.1", "-Wno-psabi", "-xc", "-S", "-o-", "-"]
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    body = [line.split()[0] for line in out.split("f:\n")[1].splitlines() if re.match(r"\t[a-z]", line)]
    assert sum(i.startswith("p") for i in body) == 1, body


@pytest.mark.parametrize("count", ["int32", "uint64"])
def test_vectors_are_shifted_by_params(count: str) -> None:
    types = ["uint8", "int16", "uint32", "int64"]
    shifts = {f"{op}_{t}": f"of_{t}(x) {sign} n" for op, sign in (("left", "<<"), ("right", ">>")) for t in types}
    pipeline = load(
        {
            "format": 1,
            "name": "shifted",
            "params": [{"name": "n", "type": count}],
            "inputs": [{"name": f"of_{t}", "type": t, "dims": ["x"]} for t in types],
            "stages": [{"name": name, "dims": ["x"], "value": value} for name, value in shifts.items()],
            "outputs": list(shifts),
            "estimates": {name: [[0, 64]] for name in shifts},
        }
    )
    groups = tuple(Group(o, ("x.inner",), (), None, Vector("x", 4), (), ()) for o in shifts)
    source = source_of(pipeline, Schedule("shifted", "by hand", groups), here())
    assert "ts_shift_u8(u" not in source.code.split("x_step_0")[1].split("}")[0], "lane by lane"
    library = build(source, ("-O1",))
    rng, regions = np.random.default_rng(1), dict.fromkeys(shifts, ((0, 33),))
    inputs = {
        f"of_{t}": Image(rng.integers(np.iinfo(t).min, np.iinfo(t).max, 33, dtype=t, endpoint=True), (0,))
        for t in types
    }
    for n in (0, 3, 7, 8, 31, 40, 64, *((-1, -8, -40) if count == "int32" else (1 << 63,))):
        expected = interpreted(pipeline, inputs, {"n": n}, regions)
        status, got = call(library, source, pipeline, inputs, {"n": n}, regions)
        assert status == 0
        for name in shifts:
            np.testing.assert_array_equal(got[name][0], expected[name][0], err_msg=f"{name} by {n}")


@pytest.mark.parametrize(("size", "flags", "compiler"), BUILDS)
def test_integers_become_wider(size: int, flags: tuple[str, ...], compiler: str) -> None:
    """Every two types of integers, all of them in one function, in vectors of one register."""
    names = [f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in ("int", "uint")]
    wider = [(a, b) for a in names for b in names if np.dtype(a).itemsize < np.dtype(b).itemsize]
    pipeline = load(
        {
            "format": 1,
            "name": "wider",
            "inputs": [{"name": n[0] + n[-2:], "type": n, "dims": ["x"]} for n in names],
            "stages": [
                {"name": f"{a}_{b}", "dims": ["x"], "value": f"{b}({a[0] + a[-2:]}(x))"} for a, b in wider
            ],
            "outputs": [f"{a}_{b}" for a, b in wider],
            "estimates": {f"{a}_{b}": [[0, 4096]] for a, b in wider},
        }
    )  # fmt: skip
    groups = tuple(
        Group(f"{a}_{b}", ("x.inner",), (), None, Vector("x", size // np.dtype(b).itemsize), (), ()) for a, b in wider
    )
    source = source_of(pipeline, Schedule("wider", "by hand", groups), machine(vector_bytes=size))
    rng = np.random.default_rng(7)
    columns = {n: np.frombuffer(rng.bytes(70 * np.dtype(n).itemsize), n) for n in names}
    inputs = {n[0] + n[-2:]: Image(c, (0,)) for n, c in columns.items()}
    regions = dict.fromkeys(pipeline.outputs, ((0, 70),))
    status, got = call(build(source, ("-O1", *flags), compiler, size), source, pipeline, inputs, {}, regions)
    assert status == 0
    for a, b in wider:
        np.testing.assert_array_equal(got[f"{a}_{b}"][0], columns[a].astype(b), err_msg=f"{a} to {b}")


@pytest.mark.parametrize(("size", "flags", "compiler"), BUILDS)
def test_values_become_float64(size: int, flags: tuple[str, ...], compiler: str) -> None:
    """Every type that has no digits that are lost, and what a comparison gives."""
    names = [*(f"{kind}{bits}" for bits in (8, 16, 32) for kind in ("int", "uint")), "float32"]
    values = {n: f"float64({n[0]}{n[-2:]}(x))" for n in names} | {"bool": "float64(i32(x) > 0) + float64(f32(x) > 1)"}
    pipeline = load(
        {
            "format": 1,
            "name": "double",
            "inputs": [{"name": n[0] + n[-2:], "type": n, "dims": ["x"]} for n in names],
            "stages": [{"name": f"of_{n}", "dims": ["x"], "value": v} for n, v in values.items()],
            "outputs": [f"of_{n}" for n in values],
            "estimates": {f"of_{n}": [[0, 4096]] for n in values},
        }
    )
    groups = tuple(Group(o, ("x.inner",), (), None, Vector("x", size // 8), (), ()) for o in pipeline.outputs)
    source = source_of(pipeline, Schedule("double", "by hand", groups), machine(vector_bytes=size))
    assert not re.search(r"[ab]_\d+\[\d+\]", source.code), "lane by lane"
    rng = np.random.default_rng(7)
    columns = {n: floats(rng)[0] if n == "float32" else values_of(n) for n in names}
    inputs = {n[0] + n[-2:]: Image(np.resize(c, 1500), (0,)) for n, c in columns.items()}
    regions = dict.fromkeys(pipeline.outputs, ((0, 1500),))
    expected = interpreted(pipeline, inputs, {}, regions)
    status, got = call(build(source, ("-O1", *flags), compiler, size), source, pipeline, inputs, {}, regions)
    assert status == 0
    for output in pipeline.outputs:
        np.testing.assert_array_equal(got[output][0], expected[output][0], err_msg=output)


def test_random_numbers_are_the_same_in_vectors() -> None:
    column = np.random.default_rng(4).integers(-(1 << 31), 1 << 31, 300, dtype=np.int64).astype(np.int32)
    pipeline, source = pointwise("random(7, a(x), 3, x)", ["int32"], 16)
    expected = interpreted(pipeline, {"a": Image(column, (0,))}, {}, {"out": ((0, 300),)})["out"][0]
    np.testing.assert_array_equal(computed("gcc", pipeline, source, column), expected)


PRODUCTS = {
    "int32(a(x)) * int32(b(x)) + int32(c(x)) * int32(a(x))": 1,
    "n + int32(a(x)) * 300 + int32(b(x)) * -7 + int32(c(x)) * 32767 + 99": 2,
    "int32(a(x)) * int32(b(x)) + int32(c(x)) * 5 + int32(b(x)) * int32(b(x)) + n": 1,
    "int32(a(x)) * 3 + int32(b(x)) * 70000": 0,
    "int32(a(x)) * int32(b(x)) + int32(m) * int32(a(x + 1))": 1,
    "int32(m) * int32(m) + int32(a(x)) + int32(b(x)) * int32(m)": 0,
}
"""Sums, and how many pairs of their products are made at once."""


@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize(("size", "flags", "compiler"), BUILDS)
def test_sums_of_products(size: int, flags: tuple[str, ...], lanes: int, compiler: str) -> None:
    """Products of 16 bits are multiplied and added by pairs, and wrap as they do one by one."""
    stages = [{"name": f"s{n}", "dims": ["x"], "value": v} for n, v in enumerate(PRODUCTS)]
    pipeline = load(
        {
            "format": 1,
            "name": "products",
            "params": [{"name": "n", "type": "int32", "default": 3}, {"name": "m", "type": "int16", "default": -9}],
            "inputs": [{"name": n, "type": "uint8" if n == "c" else "int16", "dims": ["x"]} for n in "abc"],
            "stages": stages,
            "outputs": [s["name"] for s in stages],
            "estimates": {s["name"]: [[0, 4096]] for s in stages},
        }
    )
    groups = tuple(Group(o, ("x.inner",), (), None, Vector("x", lanes), (), ()) for o in pipeline.outputs)
    source = source_of(pipeline, Schedule("products", "by hand", groups), machine(vector_bytes=size))
    vectors = len(re.findall(r"\bts_madd_i32x\d+\(", source.code))
    whole = sum(PRODUCTS.values()) * max(1, min(4, lanes * 4 // size))
    assert vectors == whole
    a, b = pairs(values_of("int16"))
    a, b = np.append(a, [-(1 << 15)] * 2).astype(np.int16), np.append(b, [-(1 << 15)] * 2).astype(np.int16)
    c = np.random.default_rng(9).integers(0, 256, len(a)).astype(np.uint8)
    inputs = {n: Image(v, (0,)) for n, v in zip("abc", (a, b, c), strict=True)}
    regions, params = dict.fromkeys(pipeline.outputs, ((0, len(a) - 1),)), {"n": -(1 << 31) + 5, "m": -(1 << 15)}
    expected = interpreted(pipeline, inputs, params, regions)
    library = build(source, ("-O1", *flags), compiler, vector_bytes=size)
    status, got = call(library, source, pipeline, inputs, params, regions)
    assert status == 0
    for output, value in zip(pipeline.outputs, PRODUCTS, strict=True):
        np.testing.assert_array_equal(got[output][0], expected[output][0], err_msg=value)


@pytest.mark.parametrize("compiler", FLAGS)
def test_rows_beside_each_other_have_what_exp_takes(compiler: str) -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "rows",
            "inputs": [{"name": n, "type": "float32", "dims": ["x"]} for n in "ab"],
            "stages": [{"name": f"{n}_exp", "dims": ["x"], "value": f"exp({n}(x))"} for n in "ab"]
            + [{"name": "out", "dims": ["x"], "value": "a_exp(x) + exp(-b_exp(x))"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 4096]]},
        }
    )
    groups = tuple(Group(n, ("x.inner",), (), None, Vector("x", 16), (), ()) for n in ("a_exp", "b_exp", "out"))
    source = source_of(pipeline, Schedule("rows", "by hand", groups), here())
    assert len(set(re.findall(r" (\w+) = ts_exp_numbers_f32x\d+\(1\)", source.code))) == 3
    a, b = (np.random.default_rng(n).random(77).astype(np.float32) for n in (1, 2))
    np.testing.assert_allclose(computed(compiler, pipeline, source, a, b), np.exp(a) + np.exp(-np.exp(b)), rtol=1e-5)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("lanes", [1, 8])
def test_bits_of_floats(lanes: int, bits: int) -> None:
    """Of every value, NaN among them, of scalars and of vectors."""
    column = SPECIAL.astype(f"float{bits}")
    flipped = f"as_float{bits}(as_uint{bits}(a(x)) ^ (uint{bits}(1) << {bits - 1}))"
    pipeline, source = pointwise(f"{flipped} * 2.0", [f"float{bits}"], lanes)
    np.testing.assert_array_equal(computed("gcc", pipeline, source, column), column * -2)


@pytest.mark.parametrize("compiler", FLAGS)
@pytest.mark.parametrize("type_", ["int64", "uint64"])
def test_scalars_of_64_bits_have_the_type_of_vectors(type_: str, compiler: str) -> None:
    """Clang makes no vector of a `long long` where elements are `long`."""
    document = {
        "format": 1,
        "name": "scalars",
        "params": [{"name": "k", "type": type_, "default": 5}],
        "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
        "stages": [
            {
                "name": "out",
                "dims": ["x"],
                "value": f"max(product({type_}(a(r)) * k for r in range(0, a.extent.x)), {type_}(3))",
            }
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 128]], "a": [[0, 2]]},
    }
    pipeline = load(document)
    schedule = Schedule("scalars", "by hand", (Group("out", ("x.inner",), (), None, Vector("x", 4), (), ()),))
    source = source_of(pipeline, schedule, here())
    library = build(source, FLAGS[compiler], compiler)
    inputs = {"a": Image(np.array([1, 2], np.uint8), (0,))}
    for k in (0, 1 << 20):
        status, got = call(library, source, pipeline, inputs, {"k": k}, {"out": ((0, 9),)})
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], np.full(9, max(2 * k * k, 3), type_))


def test_quotients_are_no_calls_in_code_of_any_size() -> None:
    """Whatever GCC weighs: out of line in large functions, each call spilled the registers of a loop."""
    source = pointwise(" + ".join(f"a(x) // (b(x) + {n})" for n in range(60)), ("int32", "int32"), 8)[1]
    symbols = subprocess.run(["nm", build(source, ("-Os",))._name], capture_output=True, text=True, check=True).stdout
    assert source.code.count("ts_quotient") >= 60
    assert "ts_quotient" not in symbols


SHORT = [f"{kind}{bits}" for bits in (8, 16, 32) for kind in ("uint", "int")]
WEIGHTS = ("uint8", "uint16", "uint32", "float32")


def integers(type_: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two columns: all pairs of some that are near the ends of the type, then others."""
    ends = np.iinfo(type_)
    some = np.array([ends.min, ends.min + 1, 0, 1, ends.max // 2, ends.max - 1, ends.max], type_)
    more = (rng.integers(ends.min, ends.max, 3000, type_, endpoint=True) for _ in range(2))
    first, second = (np.concatenate([v, m]) for v, m in zip(pairs(some), more, strict=True))
    return first, second


@pytest.mark.parametrize(("type_", "compiler"), in_turn(SHORT, ("gcc", "clang", "clang", "gcc")))
def test_integers_between_two_are_the_interpreters_and_in_vectors(type_: str, compiler: str) -> None:
    """By weights of every type. Compilers take turns."""
    rng = np.random.default_rng(0)
    a, b = integers(type_, rng)
    columns = {"a": a, "b": b}
    for weight in WEIGHTS:
        if weight == "float32":
            edges = np.array([0, 1, 0.5, 0.999, 1e-3, -1, 2, np.nan], np.float32)
            c = np.concatenate([edges, rng.uniform(0, 1, len(a) - len(edges)).astype(np.float32)])
        else:
            c = rng.choice(np.array([0, 1, np.iinfo(weight).max], weight), len(a))
            c[::2] = rng.integers(0, np.iinfo(weight).max, len(c[::2]), endpoint=True)
        columns[f"c_{weight}"] = c
    values = [f"lerp(a(x), b(x), c_{weight}(x))" for weight in WEIGHTS]
    assert "ts_lerp" not in holds(values, columns, 32, compiler, FLAGS[compiler])


@pytest.mark.parametrize("type_", SHORT)
def test_products_that_are_shifted_are_the_interpreters_and_in_vectors(type_: str) -> None:
    """By any count that is not negative, a constant or one of data."""
    rng, n = np.random.default_rng(0), np.iinfo(type_).bits
    a, b = integers(type_, rng)
    columns = {"a": a, "b": b}
    for count in ("uint8", "uint32"):
        c = rng.integers(0, 70, len(a)).astype(count)
        c[::9] = np.iinfo(count).max
        columns[f"c_{count}"] = c
    counts = (0, 1, n - 1, n, 2 * n - 1, 2 * n, 120, "c_uint8(x)", "c_uint32(x)")
    code = holds([f"mul_shift_right(a(x), b(x), {by})" for by in counts], columns, 32, "gcc", FLAGS["gcc"])
    assert "ts_scaled(" not in code.partition(entry_name("rows"))[2]


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("clang", ("-march=native",)), ("gcc", ("-march=x86-64-v3",)), ("gcc", ("-march=x86-64",)),
     ("clang", ("-march=x86-64",))],
    ids=lambda v: v if isinstance(v, str) else v[0][7:],
)  # fmt: skip
def test_floats_of_64_bits_become_integers_in_vectors(compiler: str, flags: tuple[str, ...]) -> None:
    """Truncated, the nearest end beyond it, 0 for NaN."""
    special = [np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**31, 2.0**32, -(2.0**31) - 1, 2.0**52 + 1, 5e-324]
    rng = np.random.default_rng(0)
    columns = {}
    for type_ in SHORT:
        ends = np.iinfo(type_)
        steps = (-1.5, -1, -0.999, -0.5, -0.0, 0.25, 0.5, 0.999, 1, 2)
        near = [end + d for end in (ends.min, 0, ends.max) for d in steps]
        columns[f"a_{type_}"] = np.concatenate([near, special, rng.uniform(1.1 * ends.min - 9, 1.1 * ends.max, 1000)])
    values = [f"{type_}(a_{type_}(x))" for type_ in SHORT]
    code = holds(values, columns, 32, compiler, (*flags, "-O2", "-Wno-psabi"))
    assert not re.search(r"ts_f64_to_\w+\([^;]*\[1\]", code)


@pytest.mark.parametrize(
    ("type_", "size", "flags"),
    [
        (t, *m)
        for k, m in enumerate(MACHINES)
        for t in (("int8", "uint16", "int32"), ("uint8", "int16", "uint32"))[k % 2]
    ],
)
def test_products_of_64_bits_of_what_had_32(type_: str, size: int, flags: tuple[str, ...]) -> None:
    """Factors of both kinds of 64 bits, and numbers. Machines take turns: each has factors of both signs."""
    values = [f"{t}(a(x)) * {t}(b(x))" for t in ("int64", "uint64")]
    values += [f"int64(a(x)) * int64({n})" for n in (-(2**31), 2**31 - 1, 2**32 - 1, 2**32)]
    assert "ts_product32_" in holds_of_pairs(values, type_, size // 8, size, flags)


@pytest.mark.parametrize(("size", "flag"), [(16, "-mssse3"), (32, "-mavx2"), (64, "-mavx512bw")])
@pytest.mark.parametrize(("bits", "instruction"), [(8, "pabsb"), (16, "pabsw"), (32, "pabsd")])
def test_magnitudes_are_one_instruction(bits: int, instruction: str, size: int, flag: str, tmp_path: Path) -> None:
    lanes = 8 * size // bits
    types = (
        f"typedef {k}_t {k[0]}{bits}x{lanes} __attribute__((vector_size({size})));"
        for k in (f"int{bits}", f"uint{bits}")
    )
    text = definition(ABS, ScalarType("int", bits), lanes, "magnitudes", "x86_64").replace("INLINE ", "")
    source = tmp_path / "magnitudes.c"
    source.write_text("\n".join(("#include <stdint.h>", *types, text)))
    command = ["gcc", "-O2", flag, "-S", "-o", "-", source]
    assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [i for i in re.findall(r"^\t([a-z]\w*)\s", assembly, re.MULTILINE) if i != "ret"] == [
        f"v{instruction}" if size > 16 else instruction
    ]
