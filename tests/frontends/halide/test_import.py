"""Pipelines of Halide become documents that compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.modules import require_module

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

require_module("halide")

import halide as hl  # noqa: E402
from support.halide_users import CASES, Case, alike, picture  # noqa: E402

from benchmarks.problem import at_regions  # noqa: E402
from tilesmith.app.bench.to_halide import to_halide  # noqa: E402
from tilesmith.scheduler.frontends.halide import Imported, NotExpressible, from_halide  # noqa: E402

pytestmark = [pytest.mark.halide, pytest.mark.slow]

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


def interpreted(imported: Imported, case: Case) -> list[tuple[np.ndarray, ...]]:
    images = {i.name(): Image(a, (0,) * a.ndim) for i, a in case.images.items()}
    assert not imported.buffers  # they are tables
    params = {p.name(): v for p, v in case.params}
    outputs = imported.pipeline.outputs
    results = interpret(imported.pipeline, images, params, dict(zip(outputs, map(tuple, case.regions), strict=True)))
    return [results[name] for name in outputs]


@pytest.mark.parametrize("name", CASES)
def test_what_users_write(name: str) -> None:
    case = CASES[name]()
    imported = from_halide(case.outputs)
    alike(interpreted(imported, case), case.realised(), 1e-3 if name == "approximations" else 1e-5)


def test_what_the_documents_look_like() -> None:
    """Boundaries, reductions and updates are what they were, not what Halide made of them."""
    stages = {s.name: s for s in from_halide(CASES["equalise"]().outputs).pipeline.stages}
    assert list(stages) == ["hist", "cdf", "equal"]
    assert [r.name for r in stages["hist"].updates[0].domain] == ["rx", "ry"]
    unsharp = from_halide(CASES["unsharp"]().outputs).pipeline
    assert [s.name for s in unsharp.stages] == ["wide", "down", "smooth", "sharp"]
    boundary = unsharp.input("photo").boundary
    assert boundary is not None
    assert boundary.kind == "repeat_edge"
    assert [(p.name, p.default) for p in unsharp.params] == [("strength", 1.5)]
    text = from_halide(CASES["inline_reductions"]().outputs).document["stages"][-1]["value"]
    assert text.startswith("sum(wide(x + rx, y + ry) for ry in range(-2, 3) for rx in range(-2, 3) if ")
    assert len(from_halide(CASES["approximations"]().outputs).remarks) == 4


@pytest.mark.parametrize("name", pipelines.names())
def test_shipped_pipelines_there_and_back(name: str) -> None:
    pipeline = pipelines.load(name)
    there = to_halide(pipeline)
    for p in pipeline.params:
        if p.min is not None:
            there.params[p.name].set_min_value(_number(p.min, p.type))
        if p.max is not None:
            there.params[p.name].set_max_value(_number(p.max, p.type))
    estimates = {f: pipeline.estimate(n) for f, n in zip(there.outputs, pipeline.outputs, strict=True)}
    back = from_halide(there.pipeline, estimates, name).pipeline
    regions = {n: tuple((lo, min(size, 5)) for lo, size in pipeline.estimate(n) or ()) for n in pipeline.outputs}
    problem = at_regions(pipeline, regions, use_estimates=False)
    images = {n: Image(a, tuple(lo for lo, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    renamed = {m: regions[n] for n, m in zip(pipeline.outputs, back.outputs, strict=True)}
    before, after = (
        interpret(pipeline, images, problem.params, regions),
        interpret(back, images, problem.params, renamed),
    )
    for n, m in zip(pipeline.outputs, back.outputs, strict=True):
        for a, b in zip(before[n], after[m], strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def _number(value: float, type_: Any) -> Any:
    from tilesmith.app.bench.to_halide import constant

    return constant(value, type_)


def tuples(values: list[hl.Expr]) -> list[hl.Func]:
    """Few Funcs of many values: Halide takes its time for each."""
    parts = [values[k : k + 16] for k in range(0, len(values), 16)]
    return [one(hl.Tuple(p), name=f"f{k}", estimates=False) for k, p in enumerate(parts)]


def one(value: Any, *dims: hl.Var, name: str = "f", estimates: bool = True) -> hl.Func:
    f = hl.Func(name)
    f[dims or (x,)] = value
    if estimates:
        f.set_estimates([hl.Range(0, 64)] * max(len(dims), 1))
    return f


@pytest.mark.parametrize(
    "kind", ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant_exterior"]
)
@pytest.mark.parametrize("where", ["image", "beside", "func", "partly"])
def test_boundary_conditions(kind: str, where: str) -> None:
    """Of an image that is read through it alone, beside other reads, of a Func on a part, on one dim of two."""
    image = hl.ImageParam(hl.UInt(8), 2, "image")
    outside = [hl.u8(7)] if kind == "constant_exterior" else []
    make = getattr(hl.BoundaryConditions, kind)
    source: Any = image
    ranges = []
    if where == "func":
        source = hl.Func("source")
        source[x, y] = image[x, y] // 2
        ranges = [[(1, 9), (2, 5)]]
    elif where == "partly":
        ranges = [[(0, image.width())]]
    padded = make(source, *outside, *ranges)
    value = hl.cast(hl.UInt(16), padded[x - 4, y]) + padded[x + 5, y]
    if where != "partly":
        value += padded[x, 2 * y - 5]
    if where == "beside":
        value += image[x, y]
    case = Case([one(value, x, y, estimates=False)], {image: picture(np.uint8, 8, 13)}, [[(0, 13), (0, 8)]])
    imported = from_halide(case.outputs)
    alike(interpreted(imported, case), case.realised())
    merged = {"image": imported.pipeline.input("image").boundary is not None, "partly": True}
    if where in merged:
        assert imported.pipeline.input("image").boundary is not None
        assert len(imported.pipeline.stages) == 1


INTEGERS = [hl.Int(8), hl.Int(16), hl.Int(32), hl.UInt(8), hl.UInt(16), hl.UInt(32)]
OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a % b,
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: ~a, lambda a, b: a >> 3,
    lambda a, b: a << 2,
    lambda a, b: hl.abs(a) if not a.type().is_uint() else a, hl.absd, hl.min, hl.max,
    hl.saturating_add, hl.saturating_sub, hl.halving_add, hl.halving_sub, hl.rounding_halving_add,
    hl.widening_add, hl.widening_sub, hl.widening_mul, hl.div_round_to_zero, hl.mod_round_to_zero,
    lambda a, b: hl.rounding_shift_right(a, 2), lambda a, b: hl.rounding_mul_shift_right(a, b, 5),
    lambda a, b: hl.mul_shift_right(a, b, 5), lambda a, b: hl.saturating_cast(hl.UInt(8), a),
    lambda a, b: hl.cast(hl.Int(16), a), lambda a, b: hl.cast(hl.Float(32), a) / 3,
    lambda a, b: hl.select((a < b) & (a != 3) | ~(b >= 2), a, b),
    lambda a, b: hl.cast(hl.UInt(8), hl.cast(hl.Bool(), a)),
    lambda a, b: hl.cast(hl.UInt(8), hl.select((a < b) == (b > 7), 1, 2)), lambda a, b: hl.clamp(a, 3, 20),
    lambda a, b: hl.select(a > b, a, a == b, b, a + 1), lambda a, b: hl.mux(x % 3, [a, b, a - b]),
    lambda a, b: hl.reinterpret(hl.Int(a.type().bits()), a), lambda a, b: hl.likely(a) + b,
    lambda a, b: hl.unsafe_promise_clamped(a, a, a),
]  # fmt: skip
BITS = [
    lambda a, b: hl.popcount(a), lambda a, b: hl.count_leading_zeros(a), lambda a, b: hl.count_trailing_zeros(b),
    lambda a, b: hl.widen_right_add(hl.widening_mul(a, b), b),
    lambda a, b: hl.widen_right_sub(hl.widening_add(a, b), b),
    lambda a, b: hl.widen_right_mul(hl.widening_add(a, b), b), lambda a, b: hl.i16_sat(a),
    lambda a, b: hl.extract_bits(hl.UInt(8), hl.cast(hl.UInt(16), a), 3), lambda a, b: hl.rounding_shift_left(a, 1),
    lambda a, b: hl.concat_bits([hl.cast(hl.UInt(8), a), hl.cast(hl.UInt(8), b)]),
    lambda a, b: hl.rounding_shift_left(a, b % 4 - 2 if a.type().is_int() else 1),
    lambda a, b: hl.rounding_shift_right(a, b % 4 - 2 if a.type().is_int() else 1),
    lambda a, b: hl.rounding_shift_right(a, hl.cast(hl.Int(a.type().bits()), -3)),
    lambda a, b: hl.widening_shift_left(a, hl.cast(hl.UInt(a.type().bits()), 3)),
    lambda a, b: hl.select(hl.cast(hl.Bool(), a & 1), a, ~b ^ a),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_integer_operations(type_: hl.Type) -> None:
    numbers = np.random.default_rng(5).integers(-100, 100, (2, 64))
    numbers[1] |= 1  # dividing by zero to zero is undefined in Halide
    a, b = hl.ImageParam(type_, 1, "a"), hl.ImageParam(type_, 1, "b")
    dtype = f"{'u' if type_.is_uint() else ''}int{type_.bits()}"
    images = {a: numbers[0].astype(dtype), b: numbers[1].astype(dtype)}
    funcs = tuples([op(a[x], b[x]) for op in OPERATIONS + BITS])
    case = Case(funcs, images, [[(0, 64)]] * len(funcs))
    alike(interpreted(from_halide(funcs), case), case.realised())


FLOATS = [
    hl.sqrt, hl.exp, hl.sin, hl.cos, hl.tan, hl.atan, hl.tanh, hl.floor, hl.ceil, hl.round, hl.trunc, hl.fract, hl.erf,
    lambda a: hl.sinh(a - 2), lambda a: hl.cosh(a), lambda a: hl.asinh(a - 2), lambda a: hl.acosh(a + 1),
    lambda a: hl.atanh(a / 4.25),
    lambda a: hl.reinterpret(hl.Float(a.type().bits()), hl.reinterpret(hl.Int(a.type().bits()), a) + 1),
    lambda a: hl.div_round_to_zero(hl.cast(hl.Int(32), a * -50), 7),
    lambda a: hl.log(a + 1), lambda a: hl.pow(a, 1.5), lambda a: a % 0.3, lambda a: a**3,
    lambda a: hl.lerp(a, a + 1, 0.3), lambda a: hl.lerp(a, a - 1, hl.cast(hl.UInt(8), a * 60)),
    lambda a: hl.cast(hl.UInt(8), a * 60), lambda a: hl.hypot(a, 2), lambda a: hl.atan2(a, 0.4),
    lambda a: hl.select(hl.is_nan(a) | hl.is_inf(a) | ~hl.is_finite(a), 1, 2), lambda a: hl.min(a, a.type().max()),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type_", [hl.Float(32), hl.Float(64)], ids=str)
def test_float_operations(type_: hl.Type) -> None:
    a = hl.ImageParam(type_, 1, "a")
    functions = FLOATS if type_.bits() == 32 else [f for f in FLOATS if f is not hl.erf]
    funcs = tuples([op(a[x]) for op in functions])
    case = Case(funcs, {a: np.linspace(0, 4, 64).astype(f"float{type_.bits()}")}, [[(0, 64)]] * len(funcs))
    alike(interpreted(from_halide(funcs), case), case.realised(), 1e-4)


@pytest.mark.parametrize(("op", "name"), [(hl.sum, "weighted"), (hl.maximum, "greatest")])
def test_reductions_that_hl_was_given_a_name_for_stand_where_they_are_read(op: Any, name: str) -> None:
    """Their dims are in the order that the terms have them in: as a stage they would lie across what reads them."""
    image, kernel = hl.ImageParam(hl.Float(32), 2, "image"), hl.ImageParam(hl.Float(32), 2, "kernel")
    r, out = hl.RDom([(0, 4)], "r"), hl.Func("out")
    out[x, y] = op(kernel[y, r] * image[x, y + r], name) + 1.0
    out.set_estimates([(0, 20), (0, 10)])
    rng = np.random.default_rng(7)
    images = {image: rng.random((13, 20), np.float32), kernel: rng.random((4, 10), np.float32)}
    imported = from_halide(out)
    assert [s.name for s in imported.pipeline.stages] == ["out"]
    case = Case([out], images, [[(0, 20), (0, 10)]])
    alike(interpreted(imported, case), case.realised(), 1e-5)


def test_a_func_that_is_updated_stays_one_where_it_lies_as_it_is_read() -> None:
    image, r = hl.ImageParam(hl.Float(32), 2, "image"), hl.RDom([(0, 4)], "r")
    total, out = hl.Func("total"), hl.Func("out")
    total[x, y] = 0.0
    total[x, y] += image[x, y + r]
    out[x, y] = total[x, y] + 1.0
    out.set_estimates([(0, 20), (0, 10)])
    assert [s.name for s in from_halide(out).pipeline.stages] == ["total", "out"]


def test_an_rfactor_whose_parts_do_not_divide_the_domain() -> None:
    """Halide promises that its variables lie in the domain, and a condition keeps the promise."""
    image, r, w = hl.ImageParam(hl.Int(32), 2, "image"), hl.RDom([(0, 43)], "r"), hl.Var("w")
    total, outer, inner = hl.Func("total"), hl.RVar("outer"), hl.RVar("inner")
    total[y] = 0
    total[y] += image[r, y]
    total.update(0).split(r, outer, inner, 8).rfactor([(inner, w)])
    case = Case([total], {image: picture(np.int32, 9, 43)}, [[(0, 9)]])
    imported = from_halide(total)
    assert len(imported.pipeline.stages) == 2
    alike(interpreted(imported, case), case.realised())


def test_images_with_a_boundary_are_read_where_data_says() -> None:
    """As a warp by a field of vectors does: the boundary condition bounds the place."""
    image, field = hl.ImageParam(hl.UInt(8), 2, "image"), hl.ImageParam(hl.Float(32), 2, "field")
    near = hl.BoundaryConditions.mirror_interior(image)
    at = hl.cast(hl.Int(32), hl.floor(field[x, y] * 9))
    images = {image: picture(np.uint8, 11, 17), field: picture(np.float32, 11, 17)}
    case = Case([one(near[x + at, y - at], x, y, estimates=False)], images, [[(0, 17), (0, 11)]])
    alike(interpreted(from_halide(case.outputs), case), case.realised())


def test_values_of_params_are_those_of_their_types() -> None:
    image, a, b = hl.ImageParam(hl.Float(32), 1, "image"), hl.Param(hl.Float(32), "a", 0.1), hl.Param(hl.UInt(8), "b")
    a.set_range(hl.f32(-0.3), hl.f32(1e30))
    imported = from_halide(one(image[x] * a + b))
    found = {p.name: (p.default, p.min, p.max) for p in imported.pipeline.params}
    assert found == {
        "a": (float(np.float32(0.1)), float(np.float32(-0.3)), float(np.float32(1e30))), "b": (None, None, None),
    }  # fmt: skip


def test_storage_tuples_and_names() -> None:
    """Interleaved images, orders of storage, several Funcs of one name, names that are words of the language."""
    image = hl.ImageParam(hl.UInt(8), 3, "input")
    image.dim(0).set_stride(3)
    image.dim(2).set_stride(1)
    a, b, out = hl.Func("sum"), hl.Func("sum"), hl.Func("for")
    a[x, y, c] = hl.Tuple([image[x, y, c], hl.cast(hl.Int(16), x)])
    b[y, x] = a[x, y, 0][0] + hl.u8_sat(a[x, y, 1][1])
    a.reorder_storage(c, x, y)
    out[x, y] = b[y, x]
    out.set_estimates([(0, 20), (0, 10)])
    pipeline = from_halide(out).pipeline
    assert pipeline.input("input").storage == ("c", "x", "y")
    assert [s.name for s in pipeline.stages] == ["sum_", "sum__1", "for_"]
    assert pipeline.stage("sum_").storage == ("c", "x", "y")


def obstacles(func: hl.Func, **arguments: Any) -> list[str]:
    with pytest.raises(NotExpressible) as caught:
        from_halide(func, **arguments)
    return [str(o) for o in caught.value.obstacles]


def test_everything_that_cannot_be_expressed_is_named() -> None:
    half, whole = hl.ImageParam(hl.Float(16), 1, "half"), hl.ImageParam(hl.Int(32), 1, "whole")
    f, g = hl.Func("f"), hl.Func("g")
    f[x] = hl.cast(hl.Float(32), half[x])
    g[x] = f[x] + hl.cast(hl.Float(32), hl.print(whole[x], "is here"))
    found = obstacles(g)
    places = [re.sub(r"\$\d+", "", o.partition(":")[0]) for o in found]
    assert places == ["half", "g", "g"]
    for part, text in zip(["float16", "hl.print", "estimates"], found, strict=True):
        assert part in text


def test_an_expression_that_is_nested_too_deeply_is_named() -> None:
    e = hl.Expr(x)
    for k in range(2000):
        e = e * 3 + k
    assert "an expression of the Func deep is nested too deeply: make Funcs" in obstacles(one(e, name="deep"))[0]


def test_requirements_of_params_are_their_ranges() -> None:
    """Of values and of the pipeline, with constants on either side. What else is required is told."""
    image, step = hl.ImageParam(hl.Float(32), 1, "image"), hl.Param(hl.Int(32), "step", 3)
    gain, wide = hl.Param(hl.Float(32), "gain"), hl.Param(hl.UInt(8), "wide", 200)
    by = hl.require((step > 0) & (hl.Expr(8) >= step) & (image.dim(0).extent() > 3), step)
    f = one(image[x // by] * gain / hl.require(hl.Expr(wide) < 9, hl.cast(hl.Float(32), wide)))
    whole = hl.Pipeline([f])
    whole.add_requirement(gain > hl.f32(0.0))
    imported = from_halide(whole)
    found = {p.name: (p.default, p.min, p.max) for p in imported.pipeline.params}
    assert found["step"] == (3, 1, 8)
    assert found["wide"] == (None, None, 8)
    lowest = found["gain"][1]
    assert lowest is not None
    assert 0 < lowest < 1e-40
    assert list(imported.remarks) == ["the requirement (image.extent.0 > 3) is not checked"]


def test_extern_stages_are_named() -> None:
    e = hl.Func("theirs")
    e.define_extern("somebody_else", [], hl.Int(32), 1)
    told = re.sub(r"\$\d+", "", obstacles(one(e[x]))[0])
    assert "theirs: the extern stage 'somebody_else'" in told


def test_indices_without_bounds_are_named_with_their_func() -> None:
    image, table = hl.ImageParam(hl.Int(32), 1, "image"), hl.ImageParam(hl.Int(32), 1, "table")
    (found,) = obstacles(one(table[image[x]], name="looked_up"))
    found = re.sub(r"\$\d+", "", found)  # Halide numbers names that are taken in this process
    assert found.startswith("looked_up: Index 1 ('x') of 'table' depends on the values of 'image'")
    assert "clamp" in found


def test_arguments_that_are_no_pipeline() -> None:
    with pytest.raises(TypeError, match="not int"):
        from_halide(3)
    assert "no output, Func or image" in obstacles(one(x), estimates={"g": [(0, 3)]})[0]


def test_a_large_expression_with_shared_parts_becomes_stages() -> None:
    image = hl.ImageParam(hl.Int(32), 1, "image")
    e = image[x]
    for k in range(20):
        e = (e ^ (e >> 3)) + k
    case = Case([one(e, estimates=False)], {image: np.arange(64, dtype=np.int32)}, [[(0, 64)]])
    imported = from_halide(case.outputs)
    assert len(imported.pipeline.stages) > 1
    alike(interpreted(imported, case), case.realised())
