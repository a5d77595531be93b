"""Stencils, solvers and contractions as PolyBench has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import gray, i, j, k, m, stage, total, window, x, y, z
from tilesmith.language import Image, Range, Stage, float32, float64, repeat_edge, rsum, sqrt


@case(x=4_000_000)
def jacobi_1d() -> Made:
    """Eight steps of a stencil of three points on a line."""
    a = Image("a", float64, x, boundary=repeat_edge)
    now: Image | Stage = a
    for step in range(8):
        now = stage(f"step{step}", 0.33333 * (now[x - 1] + now[x] + now[x + 1]), x)
    assert isinstance(now, Stage)
    return now


@case(x=2000, y=2000)
def jacobi_2d() -> Made:
    """Six steps of a cross of five points."""
    now: Image | Stage = gray(type=float64)
    for step in range(6):
        now = stage(f"step{step}", 0.2 * window(now, [[0, 1, 0], [1, 1, 1], [0, 1, 0]]))
    assert isinstance(now, Stage)
    return now


@case(x=256, y=256, z=128)
def heat_3d() -> Made:
    """Two steps of the heat equation in a volume."""
    now: Image | Stage = Image("a", float32, x, y, z, boundary=repeat_edge)
    for step in range(2):
        mid = 2.0 * now[x, y, z]
        terms = [now[x + 1, y, z] - mid + now[x - 1, y, z], now[x, y + 1, z] - mid + now[x, y - 1, z]]
        terms.append(now[x, y, z + 1] - mid + now[x, y, z - 1])
        now = stage(f"step{step}", 0.125 * total(terms) + now[x, y, z], x, y, z)
    assert isinstance(now, Stage)
    return now


@case(x=1600, y=1600)
def seidel_2d() -> Made:
    """A sweep in which each point is the mean of neighbours of which some are new already."""
    a = gray(type=float64)
    p, q = Range("p", 1, a.extent.x - 1), Range("q", 1, a.extent.y - 1)
    swept = stage("swept", a[x, y])
    swept[p, q] = total(swept[p + d, q + e] for e in (-1, 0, 1) for d in (-1, 0, 1)) / 9.0
    return swept, a


@case(x=2000, y=1600)
def fdtd_2d() -> Made:
    """Two steps of Maxwell's equations in two dims."""
    ex, ey, hz = ({0: gray(name)} for name in ("ex", "ey", "hz"))
    for step in (1, 2):
        e, f, h = ex[step - 1], ey[step - 1], hz[step - 1]
        ey[step] = stage(f"ey{step}", f[x, y] - 0.5 * (h[x, y] - h[x, y - 1]))  # type: ignore[assignment]
        ex[step] = stage(f"ex{step}", e[x, y] - 0.5 * (h[x, y] - h[x - 1, y]))  # type: ignore[assignment]
        e, f = ex[step], ey[step]
        curl = e[x + 1, y] - e[x, y] + f[x, y + 1] - f[x, y]
        hz[step] = stage(f"hz{step}", h[x, y] - 0.7 * curl)  # type: ignore[assignment]
    return ex[2], ey[2], hz[2]


@case(lambda a, b, d: (a @ b) @ d, within=1e-3, i=512, j=512, k=512, m=512)
def two_products() -> Made:
    """The product of three matrices (2mm)."""
    a, b, d = Image("a", float32, k, j), Image("b", float32, m, k), Image("d", float32, i, m)
    p, q = Range("p", 0, a.extent.k), Range("q", 0, b.extent.m)
    first = stage("first", rsum(a[p, j] * b[m, p], p), m, j)
    return stage("result", rsum(first[q, j] * d[i, q], q), i, j), a, b, d


@case(lambda a: a @ a.T, within=1e-3, i=600, j=600, k=800)
def symmetric_rank_k() -> Made:
    """A matrix times its transposed one (syrk)."""
    a = Image("a", float32, k, j)
    p = Range("p", 0, a.extent.k)
    return stage("result", rsum(a[p, i] * a[p, j], p), i, j), a


@case(lambda a, v: a.T @ (a @ v), within=1e-3, i=3000, k=2600)
def atax() -> Made:
    """A matrix, transposed, times itself times a vector."""
    a, v = Image("a", float32, i, k), Image("v", float32, i)
    p, q = Range("p", 0, a.extent.i), Range("q", 0, a.extent.k)
    inner = stage("inner", rsum(a[p, k] * v[p], p), k)
    return stage("outer", rsum(a[i, q] * inner[q], q), i), a, v


@case(lambda a, p_, r_: (a @ p_, a.T @ r_), within=1e-3, i=3000, k=2600)
def bicg() -> Made:
    """A matrix times a vector, and transposed times another (the kernel of BiCG)."""
    a, v, w = Image("a", float32, i, k), Image("p_", float32, i), Image("r_", float32, k)
    p, q = Range("p", 0, a.extent.i), Range("q", 0, a.extent.k)
    one = stage("one", rsum(a[p, k] * v[p], p), k)
    return one, stage("other", rsum(a[i, q] * w[q], q), i), a, v, w


@case(lambda a, b, v: 1.5 * (a @ v) + 1.2 * (b @ v), within=1e-3, i=2800, k=2800)
def gesummv() -> Made:
    """The sum of two matrices times a vector."""
    a, b, v = Image("a", float32, i, k), Image("b", float32, i, k), Image("v", float32, i)
    p = Range("p", 0, a.extent.i)
    return stage("result", 1.5 * rsum(a[p, k] * v[p], p) + 1.2 * rsum(b[p, k] * v[p], p), k), a, b, v


@case(lambda a, b: np.einsum("mjk,ki->mji", a, b, optimize=True), within=1e-3, i=128, j=150, k=128, m=140)
def doitgen() -> Made:
    """A matrix along the first dim of a tensor."""
    a, b = Image("a", float32, k, j, m), Image("b", float32, i, k)
    p = Range("p", 0, a.extent.k)
    return stage("result", rsum(a[p, j, m] * b[i, p], p), i, j, m), a, b


def _centred(a: Any) -> Any:
    return a - a.mean(0)


@case(lambda a: _centred(a).T @ _centred(a) / (len(a) - 1), within=1e-3, i=500, j=500, k=1000)
def covariance() -> Made:
    """The covariances of columns."""
    a = Image("a", float32, i, k)
    p = Range("p", 0, a.extent.k)
    mean = stage("mean", rsum(a[i, p], p) / float32(a.extent.k), i)
    centred = stage("centred", a[i, k] - mean[i], i, k)
    return stage("covariance", rsum(centred[i, p] * centred[j, p], p) / float32(a.extent.k - 1), i, j), a


@case(lambda a: np.corrcoef(a, rowvar=False).astype(np.float32), within=1e-3, i=500, j=500, k=1000)
def correlation() -> Made:
    """The correlations of columns."""
    a = Image("a", float32, i, k)
    p = Range("p", 0, a.extent.k)
    mean = stage("mean", rsum(a[i, p], p) / float32(a.extent.k), i)
    centred = stage("centred", a[i, k] - mean[i], i, k)
    size = stage("size", sqrt(rsum(centred[i, p] * centred[i, p], p)), i)
    unit = stage("unit", centred[i, k] / size[i], i, k)
    return stage("correlation", rsum(unit[i, p] * unit[j, p], p), i, j), a


@case(x=1600, y=1200)
def deriche() -> Made:
    """Deriche's recursive smoothing, along rows from both sides and then along columns."""
    a = gray()
    width, height = a.extent.x, a.extent.y
    p, q = Range("p", 1, width), Range("q", 1, height)
    right = stage("right", 0.25 * a[x, y], boundary=None)
    right[p, y] = 0.25 * a[p, y] + 0.75 * right[p - 1, y]
    left = stage("left", 0.25 * a[x, y])
    left[width - 1 - p, y] = 0.25 * a[width - 1 - p, y] + 0.75 * left[width - p, y]
    both = stage("both", right[x, y] + left[x, y])
    down = stage("down", 0.25 * both[x, y])
    down[x, q] = 0.25 * both[x, q] + 0.75 * down[x, q - 1]
    up = stage("up", 0.25 * both[x, y])
    up[x, height - 1 - q] = 0.25 * both[x, height - 1 - q] + 0.75 * up[x, height - q]
    return stage("smooth", down[x, y] + up[x, y]), a
