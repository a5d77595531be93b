"""MLIR's operations on tensors, each against NumPy, as the reference interpreter computes what they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from support.modules import require_module

require_module("xdsl")

from tilesmith.scheduler.frontends.importer import ImportedPipeline  # noqa: E402
from tilesmith.scheduler.frontends.registry import importer_of, importers  # noqa: E402
from tilesmith.scheduler.interpreter.interpreter import Image, interpret  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "examples" / "mlir"
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def imported(text: str) -> ImportedPipeline:
    return importers()["mlir"].read(text.encode())  # type: ignore[attr-defined]


def computed(found: ImportedPipeline, *arrays: Array) -> list[Array]:
    """The outputs for arrays in the order of the function's arguments."""
    given = dict(zip((i.name for i in found.pipeline.inputs if i.name not in found.weights), arrays, strict=True))
    images = {name: Image(a, (0,) * a.ndim) for name, a in {**found.weights, **given}.items()}
    regions = {name: found.pipeline.estimate(name) or () for name in found.pipeline.outputs}
    results = interpret(found.pipeline, images, {}, regions)
    return [results[name][0] for name in found.pipeline.outputs]


def typed(array: Array) -> str:
    """The type of a tensor."""
    kind = {"f": "f", "i": "i", "b": "i", "u": "ui"}[array.dtype.kind]
    bits = 1 if array.dtype == np.bool_ else 8 * array.dtype.itemsize
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{kind}{bits}>"


def check(body: str, result: Array, *arrays: Array, near: float = 1e-4) -> None:
    """The body names its arguments %a, %b, ..., their types $a, $b, ..., and %out of the type $out what it returns."""
    for name, array in zip("abcd", arrays, strict=False):
        body = body.replace(f"${name}", typed(array))
    arguments = ", ".join(f"%{n}: {typed(a)}" for n, a in zip("abcd", arrays, strict=False))
    text = body.replace("$out", typed(result))
    found = imported(f"func.func @f({arguments}) -> {typed(result)} {{\n{text}\n  return %out : {typed(result)}\n}}")
    (got,) = computed(found, *arrays)
    assert got.dtype == result.dtype
    assert got.shape == result.shape
    if result.dtype.kind == "f":
        np.testing.assert_allclose(got, result, rtol=near, atol=near)
    else:
        np.testing.assert_array_equal(got, result)


def floats(*shape: int) -> Array:
    return (np.random.default_rng(len(shape)).random(shape, np.float32) * 4 - 2).astype(np.float32)


def whole(*shape: int, dtype: type = np.int32) -> Array:
    return np.random.default_rng(sum(shape)).integers(-100, 100, shape).astype(dtype)


ZERO = "%zero = arith.constant 0.0 : f32\n%empty = tensor.empty() : $out\n"
FILLED = ZERO + "%init = linalg.fill ins(%zero : f32) outs(%empty : $out) -> $out\n"
A, B = floats(5, 7), floats(7, 5).T.copy()

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "abs": np.abs, "negf": np.negative, "floor": np.floor, "ceil": np.ceil, "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
def test_elementwise_operations_of_two(op: str) -> None:
    body = f"%empty = tensor.empty() : $out\n%out = linalg.{op} ins(%a, %b : $a, $b) outs(%empty : $out) -> $out"
    check(body, BINARY[op](A, B), A, B)
    if op != "div":
        m, n = whole(4, 6), whole(6, 4).T.copy()
        check(body, BINARY[op](m, n), m, n)


@pytest.mark.parametrize("op", UNARY)
def test_elementwise_operations_of_one(op: str) -> None:
    body = f"%empty = tensor.empty() : $out\n%out = linalg.{op} ins(%a : $a) outs(%empty : $out) -> $out"
    check(body, UNARY[op](A), A)


def test_roots_and_logarithms() -> None:
    p = np.abs(A) + np.float32(0.5)
    for op, expected in {"sqrt": np.sqrt(p), "log": np.log(p), "rsqrt": 1 / np.sqrt(p)}.items():
        check(f"%e = tensor.empty() : $out\n%out = linalg.{op} ins(%a : $a) outs(%e : $out) -> $out", expected, p)


def generic(body: str, *, of: str = "f32", to: str = "f32", inputs: str = "%a, %b : $a, $b", count: int = 2) -> str:
    maps = ", ".join(["affine_map<(d0, d1) -> (d0, d1)>"] * (count + 1))
    arguments = "".join(f"%{n}: {of}, " for n in "xy"[:count])
    return f"""%empty = tensor.empty() : $out
      %out = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
        ins({inputs}) outs(%empty : $out) {{
        ^bb0({arguments}%o: {to}):
          {body}
          linalg.yield %v : {to}
      }} -> $out"""


M, N = whole(6, 9), np.where(whole(9, 6).T == 0, 3, whole(9, 6).T).astype(np.int32)
U, V = M.view(np.uint32), N.view(np.uint32)
INTEGERS: dict[str, Array] = {
    "arith.addi": M + N, "arith.subi": M - N, "arith.muli": M * N, "arith.andi": M & N, "arith.ori": M | N,
    "arith.xori": M ^ N, "arith.divsi": np.trunc(M / N).astype(np.int32), "arith.remsi": np.fmod(M, N),
    "arith.floordivsi": M // N, "arith.divui": (U // V).view(np.int32), "arith.remui": (U % V).view(np.int32),
    "arith.minsi": np.minimum(M, N), "arith.maxsi": np.maximum(M, N), "arith.minui": np.minimum(U, V).view(np.int32),
    "arith.maxui": np.maximum(U, V).view(np.int32),
}  # fmt: skip


@pytest.mark.parametrize("op", INTEGERS)
def test_arithmetic_of_integers(op: str) -> None:
    check(generic(f"%v = {op} %x, %y : i32", of="i32", to="i32"), INTEGERS[op], M, N)


@pytest.mark.parametrize(
    ("op", "expected"), {"shli": M << 3, "shrsi": M >> 3, "shrui": (U >> 3).view(np.int32)}.items()
)
def test_shifts(op: str, expected: Array) -> None:
    body = f"%s = arith.constant 3 : i32\n%v = arith.{op} %x, %s : i32"
    check(generic(body, of="i32", to="i32", inputs="%a : $a", count=1), expected, M)


COMPARISONS = {
    "eq": M == N, "ne": M != N, "slt": M < N, "sle": M <= N, "sgt": M > N, "sge": M >= N, "ult": U < V, "ule": U <= V,
    "ugt": U > V, "uge": U >= V,
}  # fmt: skip


@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons_of_integers(predicate: str) -> None:
    body = f"%c = arith.cmpi {predicate}, %x, %y : i32\n%v = arith.select %c, %x, %y : i32"
    check(generic(body, of="i32", to="i32"), np.where(COMPARISONS[predicate], M, N), M, N)


P = np.where(A > 1, np.float32("nan"), A)
UNORDERED = np.isnan(P) | np.isnan(B)
PREDICATES = {
    "oeq": P == B, "ogt": P > B, "oge": P >= B, "olt": P < B, "ole": P <= B, "one": (P < B) | (P > B),
    "ord": ~UNORDERED,
    "ueq": (P == B) | UNORDERED, "ugt": (P > B) | UNORDERED, "uge": (P >= B) | UNORDERED, "ult": (P < B) | UNORDERED,
    "ule": (P <= B) | UNORDERED, "une": P != B, "uno": UNORDERED, "true": P == P, "false": P != P,
}  # fmt: skip
PREDICATES["true"], PREDICATES["false"] = np.full(P.shape, True), np.full(P.shape, False)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_of_floats(predicate: str) -> None:
    body = f"%v = arith.cmpf {predicate}, %x, %y : f32"
    check(generic(body, to="i1"), PREDICATES[predicate], P, B)


S = np.abs(A) / 2 - np.float32(0.1)
FLOATS: dict[str, tuple[Array, str]] = {
    name: (array, f"%v = math.{name} %x : f32")
    for name, array in {
        "absf": np.abs(A), "ceil": np.ceil(A), "floor": np.floor(A), "trunc": np.trunc(A), "roundeven": np.round(A),
        "round": np.trunc(A + np.copysign(np.float32(0.5), A)), "exp": np.exp(A), "exp2": np.exp2(A), "sin": np.sin(A),
        "cos": np.cos(A), "tan": np.tan(A), "atan": np.arctan(A), "tanh": np.tanh(A),
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_floats(name: str) -> None:
    expected, body = FLOATS[name]
    check(generic(body, inputs="%a : $a", count=1), expected.astype(np.float32), A)


def test_functions_of_positive_floats_and_of_two() -> None:
    p = np.abs(A) + np.float32(0.25)
    for name, expected in {"log": np.log(p), "log2": np.log2(p), "log10": np.log10(p), "sqrt": np.sqrt(p),
                           "rsqrt": 1 / np.sqrt(p)}.items():  # fmt: skip
        check(generic(f"%v = math.{name} %x : f32", inputs="%a : $a", count=1), expected, p)
    check(generic("%v = math.powf %x, %y : f32"), p**B, p, B)
    check(generic("%v = math.atan2 %x, %y : f32"), np.arctan2(A, B), A, B)
    check(generic("%v = math.fma %x, %y, %x : f32"), A * B + A, A, B)
    check(generic("%v = math.copysign %x, %y : f32"), np.copysign(A, B), A, B)
    check(generic("%n = arith.negf %x : f32\n%v = arith.subf %n, %y : f32"), -A - B, A, B)


def test_conversions() -> None:
    def one(body: str, of: str, to: str, expected: Array, given: Array) -> None:
        check(generic(body, of=of, to=to, inputs="%a : $a", count=1), expected, given)

    small = whole(5, 6, dtype=np.int8)
    one("%v = arith.extsi %x : i8 to i32", "i8", "i32", small.astype(np.int32), small)
    one("%v = arith.extui %x : i8 to i32", "i8", "i32", small.view(np.uint8).astype(np.int32), small)
    one("%v = arith.sitofp %x : i8 to f32", "i8", "f32", small.astype(np.float32), small)
    one("%v = arith.uitofp %x : i8 to f32", "i8", "f32", small.view(np.uint8).astype(np.float32), small)
    one("%v = arith.trunci %x : i32 to i8", "i32", "i8", (M * 7).astype(np.int8), M * 7)
    one("%v = arith.trunci %x : i32 to i1", "i32", "i1", M % 2 == 1, M)
    one("%v = arith.fptosi %x : f32 to i32", "f32", "i32", A.astype(np.int32), A)
    one(
        "%v = arith.fptoui %x : f32 to i8", "f32", "i8", (np.abs(A) * 99).astype(np.uint8).view(np.int8), np.abs(A) * 99
    )
    one("%v = arith.extf %x : f32 to f64", "f32", "f64", A.astype(np.float64), A)
    one("%v = arith.truncf %x : f64 to f32", "f64", "f32", A, A.astype(np.float64))
    truth = A > 0
    one("%v = arith.extui %x : i1 to i32", "i1", "i32", truth.astype(np.int32), truth)
    one("%v = arith.extsi %x : i1 to i32", "i1", "i32", -truth.astype(np.int32), truth)
    one("%v = arith.uitofp %x : i1 to f32", "i1", "f32", truth.astype(np.float32), truth)


def test_indices() -> None:
    body = "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n%k = arith.subi %j, %i : index\n"
    body += "%v = arith.index_cast %k : index to i32"
    expected = np.arange(7, dtype=np.int32)[None, :] - np.arange(5, dtype=np.int32)[:, None]
    check(generic(body, to="i32", inputs="%a : $a", count=1), expected, A)


def conv(name: str, stride: int, dilation: int) -> str:
    attributes = f"{{dilations = dense<{dilation}> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    return FILLED + f"%out = linalg.{name} {attributes} ins(%a, %b : $a, $b) outs(%init : $out) -> $out"


def windows(image: Array, kernel: tuple[int, int], stride: int, dilation: int) -> Array:
    """(n, h, w, c) as (n, y, x, dy, dx, c)."""
    kh, kw = kernel
    oh = (image.shape[1] - (kh - 1) * dilation - 1) // stride + 1
    ow = (image.shape[2] - (kw - 1) * dilation - 1) // stride + 1
    y = np.arange(oh)[:, None, None, None] * stride + np.arange(kh)[None, None, :, None] * dilation
    x = np.arange(ow)[None, :, None, None] * stride + np.arange(kw)[None, None, None, :] * dilation
    return image[:, y, x, :]


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_convolutions(stride: int, dilation: int) -> None:
    image, filter_ = floats(2, 9, 10, 3), floats(3, 2, 3, 4)
    seen = windows(image, (3, 2), stride, dilation)
    expected = np.einsum("nyxabc,abcf->nyxf", seen, filter_)
    check(conv("conv_2d_nhwc_hwcf", stride, dilation), expected, image, filter_)
    fhwc = np.ascontiguousarray(filter_.transpose(3, 0, 1, 2))
    check(conv("conv_2d_nhwc_fhwc", stride, dilation), expected, image, fhwc)
    planes, fchw = (np.ascontiguousarray(a) for a in (image.transpose(0, 3, 1, 2), filter_.transpose(3, 2, 0, 1)))
    check(
        conv("conv_2d_nchw_fchw", stride, dilation), np.ascontiguousarray(expected.transpose(0, 3, 1, 2)), planes, fchw
    )
    deep = floats(3, 2, 3)
    expected = np.einsum("nyxabc,abc->nyxc", seen, deep)
    check(conv("depthwise_conv_2d_nhwc_hwc", stride, dilation), expected, image, deep)
    check(conv("depthwise_conv_2d_nchw_chw", stride, dilation), np.ascontiguousarray(expected.transpose(0, 3, 1, 2)),
          planes, np.ascontiguousarray(deep.transpose(2, 0, 1)))  # fmt: skip


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_poolings(kind: str, layout: str) -> None:
    if (kind, layout) == ("min", "nchw"):
        return  # linalg has none
    image, window = floats(2, 9, 10, 3), np.zeros((3, 2), np.float32)
    seen = windows(image, (3, 2), 2, 1)
    expected = np.asarray({"sum": np.sum, "max": np.max, "min": np.min}[kind](seen, axis=(3, 4)))
    start = {"sum": "0.0", "max": "0xFF800000", "min": "0x7F800000"}[kind]
    body = conv(f"pooling_{layout}_{kind}", 2, 1).replace("constant 0.0", f"constant {start}")
    if layout == "nchw":
        image, expected = (np.ascontiguousarray(a.transpose(0, 3, 1, 2)) for a in (image, expected))
    check(body, expected, image, window)


def test_contractions() -> None:
    def one(name: str, expected: Array, *given: Array) -> None:
        check(FILLED + f"%out = linalg.{name} ins(%a, %b : $a, $b) outs(%init : $out) -> $out", expected, *given)

    m, n = floats(5, 7), floats(7, 4)
    one("matmul", m @ n, m, n)
    one("matvec", m @ n[:, 0], m, n[:, 0].copy())
    one("vecmat", m[0] @ n, m[0].copy(), n)
    one("dot", np.asarray(m[0] @ n[:, 0]), m[0].copy(), n[:, 0].copy())
    one("batch_matmul", floats(3, 5, 7) @ floats(3, 7, 4), floats(3, 5, 7), floats(3, 7, 4))
    plane = floats(8, 9)
    seen = np.lib.stride_tricks.sliding_window_view(plane, (3, 2))
    one("conv_2d", np.einsum("yxab,ab->yx", seen, floats(3, 2)), plane, floats(3, 2))


def test_reductions_of_dimensions() -> None:
    body = (
        FILLED
        + """%out = linalg.reduce ins(%a : $a) outs(%init : $out) dimensions = [1]
        (%x: f32, %sum: f32) { %v = arith.addf %x, %sum : f32
          linalg.yield %v : f32 }"""
    )
    cube = floats(4, 5, 6)
    check(body, cube.sum(axis=1), cube)
    check(body.replace("addf", "mulf").replace("0.0", "2.0"), 2 * cube.prod(axis=1), cube)
    check(body.replace("dimensions = [1]", "dimensions = [0, 1, 2]"), np.asarray(cube.sum()), cube)


def test_reductions_that_are_no_operation_of_documents() -> None:
    """Horner's rule: the order of the loop matters."""
    body = (
        FILLED
        + """%half = arith.constant 0.5 : f32
      %out = linalg.reduce ins(%a : $a) outs(%init : $out) dimensions = [0, 2]
        (%x: f32, %sum: f32) { %s = arith.mulf %sum, %half : f32
          %v = arith.addf %x, %s : f32
          linalg.yield %v : f32 }"""
    )
    cube = floats(2, 3, 3)
    expected = np.zeros(3, np.float32)
    for i in range(2):
        for j in range(3):
            expected = expected * np.float32(0.5) + cube[i, :, j]
    check(body, expected, cube)


def test_shapes() -> None:
    cube = floats(4, 5, 6)
    init = "%e = tensor.empty() : $out\n"
    check(init + "%out = linalg.transpose ins(%a : $a) outs(%e : $out) permutation = [2, 0, 1]",
          np.ascontiguousarray(cube.transpose(2, 0, 1)), cube)  # fmt: skip
    check(init + "%out = linalg.broadcast ins(%a : $a) outs(%e : $out) dimensions = [1]",
          np.ascontiguousarray(np.broadcast_to(A[:, None, :], (5, 3, 7))), A)  # fmt: skip
    check("%out = tensor.extract_slice %a[1, 0, 2] [2, 5, 2] [1, 1, 3] : $a to $out", cube[1:3, :, 2::3].copy(), cube)
    check("%out = tensor.extract_slice %a[1, 0, 2] [1, 5, 2] [1, 1, 1] : $a to $out", cube[1, :, 2:4].copy(), cube)
    check("%out = tensor.collapse_shape %a [[0, 1], [2]] : $a into $out", cube.reshape(20, 6), cube)
    check("%out = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, 30] : $a into $out",
          cube.reshape(4, 30).reshape(2, 2, 30), cube.reshape(4, 30))  # fmt: skip
    check("%s = arith.constant 3.0 : f32\n%out = tensor.splat %s : $out", np.full((2, 3), 3, np.float32))
    check(init + "%out = linalg.copy ins(%a : $a) outs(%e : $out) -> $out", A, A)


def test_padding() -> None:
    body = """%five = arith.constant 5.0 : f32
      %out = tensor.pad %a low[1, 0] high[2, 3] { ^bb0(%i: index, %j: index):
        tensor.yield %five : f32 } : $a to $out"""
    check(body, np.pad(A, ((1, 2), (0, 3)), constant_values=5), A)


def test_constants() -> None:
    weights = floats(9, 9)
    dense = str(weights.tolist())
    body = f"%w = arith.constant dense<{dense}> : $a\n%e = tensor.empty() : $out\n"
    body += "%out = linalg.add ins(%a, %w : $a, $a) outs(%e : $out) -> $out"
    check(body, weights + floats(9, 9)[::-1], floats(9, 9)[::-1].copy())
    check(body.replace(dense, str(weights[:2, :3].tolist())), A[:2, :3] + weights[:2, :3], A[:2, :3].copy())
    check(body.replace(dense, "2.5"), A + np.float32(2.5), A)


def test_maps() -> None:
    init = "%e = tensor.empty() : $out\n"
    body = "(%x: f32, %y: f32) { %p = arith.mulf %x, %y : f32\n linalg.yield %p : f32 }"
    check(init + f"%out = linalg.map ins(%a, %b : $a, $b) outs(%e : $out) {body}", A * B, A, B)
    body = body.replace("%y: f32", "%y: f32, %o: f32")
    check(init + f"%out = linalg.map ins(%a, %b : $a, $b) outs(%e : $out) {body}", A * B, A, B)
    check(init + "%out = linalg.map { arith.addf } ins(%a, %b : $a, $b) outs(%e : $out)", A + B, A, B)


def test_several_results_and_results_that_are_no_stage() -> None:
    found = imported("""func.func @f(%a: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x4xf32>) {
      %e = tensor.empty() : tensor<3x4xf32>
      %b = linalg.exp ins(%a : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
      %c = tensor.extract_slice %b[1, 0] [2, 4] [1, 1] : tensor<3x4xf32> to tensor<2x4xf32>
      return %b, %b, %c : tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x4xf32> }""")
    a = floats(3, 4)
    for got, expected in zip(computed(found, a), (np.exp(a), np.exp(a), np.exp(a)[1:]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_scalar_arguments_are_params() -> None:
    found = imported("""func.func @f(%a: tensor<3x4xf32>, %gain: f32) -> tensor<3x4xf32> {
      %e = tensor.empty() : tensor<3x4xf32>
      %g = linalg.fill ins(%gain : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
      %b = linalg.mul ins(%a, %g : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %b : tensor<3x4xf32> }""")
    assert [(p.name, p.type.name) for p in found.pipeline.params] == [("gain", "float32")]
    assert [s.name for s in found.pipeline.stages] == ["b"]


def example(name: str) -> ImportedPipeline:
    path = str(EXAMPLES / f"{name}.mlir")
    importer = importer_of(path)
    assert importer is not None
    return importer.load(path)


def test_the_examples() -> None:
    image = floats(1536, 2560)
    padded = np.pad(image, 1)
    rows = padded[:-2] * 0.25 + padded[1:-1] * 0.5 + padded[2:] * 0.25
    np.testing.assert_allclose(
        computed(example("blur"), image)[0], rows[:, :-2] * 0.25 + rows[:, 1:-1] * 0.5 + rows[:, 2:] * 0.25, atol=1e-5
    )
    image = np.random.default_rng(0).random((1024, 1536), np.float32)

    def filtered(a: Array, weights: list[list[float]]) -> Array:
        h, w = a.shape[0] - 2, a.shape[1] - 2
        return np.asarray(sum(weights[j][i] * a[j : j + h, i : i + w] for j in range(3) for i in range(3)))

    ix, iy = filtered(image, [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]), filtered(image, [[-1, -2, -1], [0] * 3, [1, 2, 1]])
    xx, yy, xy = (filtered(p, [[1, 1, 1]] * 3) for p in (ix * ix, iy * iy, ix * iy))
    expected = xx * yy - xy * xy - np.float32(0.04) * (xx + yy) ** 2
    np.testing.assert_allclose(computed(example("harris"), image)[0], expected, atol=1e-4 * np.abs(expected).max())
    image, filter_, bias = floats(1, 128, 128, 8), floats(3, 3, 8, 16), floats(16)
    seen = windows(np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), 1, 1)
    layer = np.maximum(np.einsum("nyxabc,abcf->nyxf", seen, filter_, optimize=True) + bias, 0)
    expected = layer.reshape(1, 64, 2, 64, 2, 16).max(axis=(2, 4))
    np.testing.assert_allclose(
        computed(example("convolution"), image, filter_, bias)[0], expected, rtol=1e-4, atol=1e-4
    )
