"""Corners and other interest points."""

from __future__ import annotations

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import (
    INTERIOR,
    SOBEL_X,
    SOBEL_Y,
    around,
    column,
    cv2,
    gaussian,
    gray,
    ndimage,
    row,
    separable,
    shifted,
    stage,
    total,
    window,
    x,
    y,
)
from tilesmith.language import (
    Image,
    Stage,
    absd,
    int16,
    int32,
    maximum,
    minimum,
    mirror_interior,
    rmax,
    sat_uint8,
    select,
    sqrt,
    uint8,
)


def _gradients(a: Image) -> tuple[Stage, Stage]:
    return stage("gx", window(a, SOBEL_X)), stage("gy", window(a, SOBEL_Y))


def _tensor(gx: Stage, gy: Stage, side: int) -> tuple[Stage, Stage, Stage]:
    """Sums of the products of the gradient over a square."""
    products = {"xx": gx[x, y] * gx[x, y], "xy": gx[x, y] * gy[x, y], "yy": gy[x, y] * gy[x, y]}
    xx, xy, yy = (separable(f"s{name}", stage(name, value), [1] * side) for name, value in products.items())
    return xx, xy, yy


def _least_eigenvalue(a: Image) -> Stage:
    xx, xy, yy = _tensor(*_gradients(a), 3)
    half = stage("half", (xx[x, y] - yy[x, y]) * 0.5)
    return stage("least", (xx[x, y] + yy[x, y]) * 0.5 - sqrt(half[x, y] ** 2 + xy[x, y] ** 2))


@case(lambda a: cv2.cornerMinEigenVal(a, 3, ksize=3, borderType=INTERIOR) * 144, within=1e-3, apart=2.5e-3)
def shi_tomasi() -> Made:
    """The least eigenvalue of the structure tensor (Shi and Tomasi)."""
    return _least_eigenvalue(gray(boundary=mirror_interior))


@case()
def good_features() -> Made:
    """Corners by the least eigenvalue that are the largest of 7 x 7."""
    least = _least_eigenvalue(gray())
    p, q = around(3)
    high = stage("high_x", rmax(least[x + p, y], p))
    highest = stage("highest", rmax(high[x, y + q], q))
    return stage("corners", least[x, y] * maximum(1.0 - 20.0 * (highest[x, y] - least[x, y]), 0.0))


@case()
def moravec() -> Made:
    """Moravec's measure: the least sum of squared differences to eight shifted windows."""
    a = gray(type=uint8)
    found = []
    for number, (p, q) in enumerate(((1, 0), (0, 1), (1, 1), (1, -1))):
        apart = stage(f"d{number}", int32(absd(shifted(a, p, q), a[x, y])))
        squared = stage(f"s{number}", apart[x, y] * apart[x, y])
        box = stage(f"b{number}", window(squared, [[1] * 3] * 3))
        found += [box[x, y], shifted(box, -p, -q)]
    return stage("measure", minimum(*found))


_RING = (
    (0, -3), (1, -3), (2, -2), (3, -1), (3, 0), (3, 1), (2, 2), (1, 3), (0, 3), (-1, 3), (-2, 2), (-3, 1), (-3, 0),
    (-3, -1), (-2, -2), (-1, -3),
)  # fmt: skip


@case()
def fast_9() -> Made:
    """The score of FAST-9: the largest threshold with which nine pixels in a row of a circle are brighter or darker."""
    a = gray(type=uint8)
    apart = [stage(f"d{d}", int16(shifted(a, *at)) - int16(a[x, y])) for d, at in enumerate(_RING)]
    bright = maximum(*(minimum(*(apart[(d + e) % 16][x, y] for e in range(9))) for d in range(16)))
    dark = minimum(*(maximum(*(apart[(d + e) % 16][x, y] for e in range(9))) for d in range(16)))
    return stage("score", sat_uint8(maximum(bright, -dark)))


@case()
def kitchen_rosenfeld() -> Made:
    """Curvature of the level line times the gradient (Kitchen and Rosenfeld)."""
    a = gray()
    gx, gy = _gradients(a)
    xx, yy, xy = stage("xx", window(gx, SOBEL_X)), stage("yy", window(gy, SOBEL_Y)), stage("xy", window(gx, SOBEL_Y))
    u, v = gx[x, y], gy[x, y]
    above = xx[x, y] * v * v + yy[x, y] * u * u - 2.0 * xy[x, y] * u * v
    return stage("response", above / (u * u + v * v + 1e-6))


@case()
def foerstner() -> Made:
    """Precision and roundness of Förstner and Gülch."""
    xx, xy, yy = _tensor(*_gradients(gray()), 5)
    det = stage("det", xx[x, y] * yy[x, y] - xy[x, y] * xy[x, y])
    trace = stage("trace", xx[x, y] + yy[x, y])
    w = stage("w", det[x, y] / (trace[x, y] + 1e-6))
    return w, stage("q", 4.0 * det[x, y] / (trace[x, y] * trace[x, y] + 1e-6))


@case()
def susan() -> Made:
    """The area of SUSAN: how many of 37 pixels around are about as bright."""
    a = gray(type=uint8)
    disk = [(p, q) for q in range(-3, 4) for p in range(-3, 4) if p * p + q * q <= 10 and (p, q) != (0, 0)]
    alike = [select(absd(shifted(a, *at), a[x, y]) < 27, uint8(1), uint8(0)) for at in disk]
    area = stage("area", total(alike))
    return stage("corner", select(area[x, y] < 18, 18 - area[x, y], uint8(0)))


@case()
def hessian_blobs() -> Made:
    """The determinant of the Hessian at three scales, and the largest of them."""
    a = gray()
    found = []
    for number, sigma in enumerate((1.2, 2.0, 3.2)):
        smooth = separable(f"smooth{number}", a, gaussian(sigma, round(3 * sigma)))
        xx, yy = row(smooth, [1, -2, 1]), column(smooth, [1, -2, 1])
        xy = window(smooth, [[0.25, 0, -0.25], [0, 0, 0], [-0.25, 0, 0.25]])
        found.append(stage(f"det{number}", sigma**4 * (xx * yy - 0.81 * xy * xy)))
    return stage("blobs", maximum(*(f[x, y] for f in found)))


@case(lambda a: np.where(a == ndimage.maximum_filter(a, 11, mode="nearest"), a, 0))
def peaks() -> Made:
    """Values that are the largest of 11 x 11 (the maximum in both dims as reductions)."""
    a = gray()
    p, q = around(5)
    along = stage("along", rmax(a[x + p, y], p))
    highest = stage("highest", rmax(along[x, y + q], q))
    return stage("peaks", select(a[x, y] == highest[x, y], a[x, y], 0.0))
