"""Small pipelines for tests of analysis and search, built from expressions directly (no document, no parser)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, BinaryOp, Call, Const, Expr, Reduce, RVar, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, ScalarType


@dataclass(frozen=True)
class E:
    """An expression with operators: integers meet INT32, the rest takes the type of the other side."""

    e: Expr

    def _binary(self, op: BinaryOp, other: E | float) -> E:
        right = other.e if isinstance(other, E) else Const(other, self.e.type)
        return E(Binary(op, self.e, right, self.e.type))

    def __add__(self, other: E | float) -> E:
        return self._binary("+", other)

    def __sub__(self, other: E | float) -> E:
        return self._binary("-", other)

    def __mul__(self, other: E | float) -> E:
        return self._binary("*", other)

    def __truediv__(self, other: E | float) -> E:
        return self._binary("/", other)

    def __floordiv__(self, other: E | float) -> E:
        return self._binary("//", other)

    def __mod__(self, other: E | float) -> E:
        return self._binary("%", other)


class F:
    """A stage or input to read: `F("f")(x + 1, y)`."""

    def __init__(self, name: str, type: ScalarType = FLOAT32) -> None:
        self.name, self.type = name, type

    def __call__(self, *indices: E | int) -> E:
        exprs = tuple(i.e if isinstance(i, E) else Const(i, INT32) for i in indices)
        return E(Access(self.name, exprs, 0, self.type))


x, y, c, k = (E(Var(n)) for n in "xyck")


def total(terms: Sequence[E]) -> E:
    """The terms added up, left to right."""
    result = terms[0]
    for t in terms[1:]:
        result = result + t
    return result


def exp(e: E) -> E:
    return E(Call("exp", (e.e,), e.e.type))


def clamp(e: E, lo: int, hi: int) -> E:
    return E(Call("clamp", (e.e, Const(lo, INT32), Const(hi, INT32)), INT32))


def mux(*choices: E) -> E:
    """One of the choices, by the dim c."""
    return E(Call("mux", (Var("c"), *(choice.e for choice in choices)), FLOAT32))


def summed(body: E, **domain: tuple[int, int]) -> E:
    """`sum(body for r in range(lo, lo + extent))`."""
    rvars = tuple(RVar(n, Const(lo, INT32), Const(extent, INT32)) for n, (lo, extent) in domain.items())
    return E(Reduce("sum", body.e, rvars, None, 0, body.e.type))


def stage(name: str, dims: str, value: E, updates: tuple[Update, ...] = ()) -> Stage:
    return Stage(name, tuple(dims), (value.e,), updates, None, tuple(dims))


def pipeline(
    name: str,
    stages: Sequence[Stage],
    outputs: dict[str, Sequence[int]],
    inputs: dict[str, str] | None = None,
    type: ScalarType = FLOAT32,
) -> Pipeline:
    """`outputs` maps names to extents (mins are 0), `inputs` names to dims; `stages` are in topological order."""
    images = {"input": "xy"} if inputs is None else inputs
    return Pipeline(
        name,
        "",
        (),
        tuple(Input(n, type, tuple(d), None, tuple(d)) for n, d in images.items()),
        tuple(stages),
        tuple(outputs),
        tuple(sorted((n, tuple((0, e) for e in extents)) for n, extents in outputs.items())),
    )


def blur(width: int = 1536, height: int = 2560, type: ScalarType = FLOAT32) -> Pipeline:
    """METHOD's 3x3 blur: blur_x along x, blur_y along y."""
    source, blur_x = F("input", type), F("blur_x", type)
    stages = [
        stage("blur_x", "xy", (source(x, y) + source(x + 1, y) + source(x + 2, y)) // 3),
        stage("blur_y", "xy", (blur_x(x, y) + blur_x(x, y + 1) + blur_x(x, y + 2)) // 3),
    ]
    return pipeline("blur", stages, {"blur_y": (width, height)}, type=type)


def _sobel(f: F, along: str) -> E:
    def at(a: int, b: int) -> E:
        return f(x + a, y + b) if along == "x" else f(x + b, y + a)

    return total([at(s, t) * (s * w / 12) for t, w in ((-1, 1.0), (0, 2.0), (1, 1.0)) for s in (-1, 1)])


def harris(width: int = 1530, height: int = 2554) -> Pipeline:
    """Multi-consumer stencils: gray, two Sobels, three products, three 3x3 sums, determinant, trace, response."""
    source, gray = F("input"), F("gray")
    stages = [stage("gray", "xy", source(x, y, 0) * 0.299 + source(x, y, 1) * 0.587 + source(x, y, 2) * 0.114)]
    stages += [stage("Ix", "xy", _sobel(gray, "x")), stage("Iy", "xy", _sobel(gray, "y"))]
    pairs = {"xx": ("Ix", "Ix"), "yy": ("Iy", "Iy"), "xy": ("Ix", "Iy")}
    stages += [stage(f"I{n}", "xy", F(a)(x, y) * F(b)(x, y)) for n, (a, b) in pairs.items()]
    around = [(a, b) for b in (-1, 0, 1) for a in (-1, 0, 1)]
    stages += [stage(f"S{n}", "xy", total([F(f"I{n}")(x + a, y + b) for a, b in around])) for n in pairs]
    sxx, syy, sxy = (F(f"S{n}")(x, y) for n in ("xx", "yy", "xy"))
    stages += [stage("det", "xy", sxx * syy - sxy * sxy), stage("trace", "xy", sxx + syy)]
    det, trace = F("det")(x, y), F("trace")(x, y)
    stages.append(stage("harris", "xy", det - trace * trace * 0.04))
    return pipeline("harris", stages, {"harris": (width, height)}, {"input": "xyc"})


def unsharp(width: int = 1536, height: int = 2560) -> Pipeline:
    """A Gaussian kernel computed by a stage, gray, blur in y and x, sharpened, applied to three channels."""
    source, kernel, gray, blur_y, blur_x = (F(n) for n in ("input", "kernel", "gray", "blur_y", "blur_x"))
    sharpen, ratio = F("sharpen"), F("ratio")
    index = E(Call("float32", (Var("k"),), FLOAT32))
    stages = [
        stage("kernel", "k", exp(index * index * -0.2) / 3.76),
        stage("gray", "xy", source(x, y, 0) * 0.299 + source(x, y, 1) * 0.587 + source(x, y, 2) * 0.114),
        stage(
            "blur_y",
            "xy",
            kernel(0) * gray(x, y) + total([kernel(n) * (gray(x, y - n) + gray(x, y + n)) for n in (1, 2, 3)]),
        ),
        stage(
            "blur_x",
            "xy",
            kernel(0) * blur_y(x, y) + total([kernel(n) * (blur_y(x - n, y) + blur_y(x + n, y)) for n in (1, 2, 3)]),
        ),
        stage("sharpen", "xy", gray(x, y) * 2.0 - blur_x(x, y)),
        stage("ratio", "xy", sharpen(x, y) / gray(x, y)),
        stage("unsharp", "xyc", ratio(x, y) * source(x, y, c)),
    ]
    return pipeline("unsharp", stages, {"unsharp": (width, height, 3)}, {"input": "xyc"})


def pyramid(levels: int = 10, width: int = 1536, height: int = 2560) -> Pipeline:
    """Down and up again, as in the interpolate pipeline: downsampled[l] feeds the next level and the way back."""
    down = [F(f"down{n}") for n in range(levels)]
    source = F("input")
    stages = [stage("down0", "xyc", source(x, y, c) * source(x, y, 3))]
    for n in range(1, levels):
        f, downx = down[n - 1], F(f"downx{n}")
        stages.append(stage(f"downx{n}", "xyc", _half(f(x * 2 - 1, y, c), f(x * 2, y, c), f(x * 2 + 1, y, c))))
        stages.append(
            stage(f"down{n}", "xyc", _half(downx(x, y * 2 - 1, c), downx(x, y * 2, c), downx(x, y * 2 + 1, c)))
        )
    above = down[-1]
    for n in reversed(range(levels - 1)):
        upx, up, here = F(f"upx{n}"), F(f"up{n}"), down[n]
        stages.append(stage(f"upx{n}", "xyc", (above(x // 2, y, c) + above((x + 1) // 2, y, c)) * 0.5))
        stages.append(stage(f"up{n}", "xyc", (upx(x, y // 2, c) + upx(x, (y + 1) // 2, c)) * 0.5))
        blend = here(x, y, c) + (E(Const(1.0, FLOAT32)) - here(x, y, 3)) * up(x, y, c)
        stages.append(stage(f"interpolated{n}", "xyc", blend))
        above = F(f"interpolated{n}")
    stages.append(stage("normalized", "xyc", above(x, y, c) / above(x, y, 3)))
    return pipeline("pyramid", stages, {"normalized": (width, height, 3)}, {"input": "xyc"})


def _half(a: E, b: E, d: E) -> E:
    return (a + b * 2.0 + d) * 0.25


def chain(stages: int, taps: int = 3, width: int = 1536, height: int = 2560) -> Pipeline:
    """`stages` weighted stencils of `taps` rows and columns, each reading the one before."""
    found: list[Stage] = []
    source = F("input")
    for n in range(stages):
        terms = [source(x + a, y + b) * (a + b + 1.0) for b in range(taps) for a in range(taps)]
        found.append(stage(f"s{n}", "xy", total(terms)))
        source = F(f"s{n}")
    return pipeline("chain", found, {f"s{stages - 1}": (width, height)})
