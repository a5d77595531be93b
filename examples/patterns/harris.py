"""Harris in functional patterns: listings 1 to 3 of Koehler and Steuwer, "Towards a Domain-Extensible Compiler" (CGO
2021). What it makes is the shipped pipeline `harris`.

    tilesmith import python examples/patterns/harris.py:harris
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.python import patterns as p
from tilesmith.scheduler.frontends.python.frontend import Term, float32
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

Function = Callable[..., Any]

# Listing 1: operators on points


def map2d(f: Function) -> Function:
    return p.map(p.map(f))


def zip2d(a: p.Array, b: p.Array) -> p.Array:
    return p.zip(a, b) >> p.map(p.zip)


def dot(weights: list[float]) -> Function:
    return lambda values: p.zip(weights, values) >> p.map(p.mul) >> p.reduce(p.add, 0)


def grayscale(rgb: p.Array) -> p.Array:
    return rgb >> p.transpose >> p.map(p.transpose) >> map2d(dot([0.299, 0.587, 0.114]))


def times(a: p.Array, b: p.Array) -> p.Array:
    return zip2d(a, b) >> map2d(p.mul)


def coarsity(sxx: p.Array, sxy: p.Array, syy: p.Array, kappa: float) -> p.Array:
    def at(xx: Term, others: tuple[Term, Term]) -> Term:
        xy, yy = others
        det = p.let("det", xx * yy - xy * xy)
        trace = p.let("trace", xx + yy)
        return det - kappa * trace * trace

    return zip2d(sxx, zip2d(sxy, syy)) >> map2d(at)


# Listing 2: operators on windows


def slide2d(rows: int, columns: int) -> Function:
    return p.map(p.slide(columns)) >> p.slide(rows) >> p.map(p.transpose)


def stencil2d(rows: int, columns: int, f: Function) -> Function:
    return slide2d(rows, columns) >> map2d(f)


def differences(weights: list[int]) -> Function:
    """The dot product with weights of which there is a -k for each k, as harris has it: k * (b - a) for k * b - k * a.
    Floats make a difference of that."""
    up = [i for i, k in enumerate(weights) if k > 0]
    down = [i for i, k in enumerate(weights) if k < 0]

    def of(values: p.Array) -> Term:
        total: Any = 0
        for b, a in zip(up, down, strict=True):
            k = weights[b]
            total = total + values[b] - values[a] if k == 1 else total + k * (values[b] - values[a])
        return total

    return of


def conv3x3(weights: list[list[int]], scale: Term) -> Function:
    flat = [k for row in weights for k in row]
    return stencil2d(3, 3, lambda window: differences(flat)(p.join(window)) * scale)


sobel_x = conv3x3([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], float32(1.0) / 12)
sobel_y = conv3x3([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], float32(1.0) / 12)
sum3x3 = stencil2d(3, 3, lambda window: p.join(window) >> p.reduce(p.add, 0))


# Listing 3: the detector


def harris() -> Pipeline:
    """The pipeline, planned for the sizes of the shipped one."""
    n, m = p.Size("n"), p.Size("m")
    rgb = p.image("input", float32, 3, n + 4, m + 4)
    gray = p.let("gray", grayscale(rgb))
    ix = p.let("Ix", sobel_x(gray))
    iy = p.let("Iy", sobel_y(gray))
    ixx = p.let("Ixx", times(ix, ix))
    ixy = p.let("Ixy", times(ix, iy))
    iyy = p.let("Iyy", times(iy, iy))
    sxx = p.let("Sxx", sum3x3(ixx))
    sxy = p.let("Sxy", sum3x3(ixy))
    syy = p.let("Syy", sum3x3(iyy))
    output = coarsity(sxx, sxy, syy, 0.04)
    planned = {"output": [(3, 1530), (3, 2554)]}  # Halide's app leaves one more row and column at each side
    doc = pipelines.load("harris").doc
    return p.pipeline("harris", {"output": output}, sizes={n: 2556, m: 1532}, doc=doc, estimates=planned)
