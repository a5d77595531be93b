"""Edges: gradients, ridges, zero crossings, banks of oriented filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import (
    EDGE,
    SOBEL_X,
    SOBEL_Y,
    around,
    column,
    cv2,
    filters,
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
    Term,
    absd,
    atan2,
    exp,
    float32,
    int16,
    int32,
    maximum,
    mirror_image,
    rmax,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
)


def _sobel(a: Any) -> Any:
    return tuple(cv2.Sobel(a, cv2.CV_32F, dx, 1 - dx, borderType=EDGE) for dx in (1, 0))


@case(_sobel)
def sobel_gradient() -> Made:
    """Both derivatives by Sobel's kernels."""
    a = gray()
    return stage("gx", window(a, SOBEL_X)), stage("gy", window(a, SOBEL_Y))


def _scharr(a: Any) -> Any:
    return cv2.magnitude(
        cv2.Scharr(a, cv2.CV_32F, 1, 0, borderType=EDGE), cv2.Scharr(a, cv2.CV_32F, 0, 1, borderType=EDGE)
    )


@case(_scharr)
def scharr_magnitude() -> Made:
    """The magnitude of Scharr's gradient."""
    a = gray()
    gx = stage("gx", window(a, [[-3, 0, 3], [-10, 0, 10], [-3, 0, 3]]))
    gy = stage("gy", window(a, [[-3, -10, -3], [0, 0, 0], [3, 10, 3]]))
    return stage("magnitude", sqrt(gx[x, y] * gx[x, y] + gy[x, y] * gy[x, y]))


@case(lambda a: filters.prewitt(a))
def prewitt_magnitude() -> Made:
    """Prewitt's gradient, the root of the mean square of both directions."""
    a = gray(boundary=mirror_image)
    gx = stage("gx", window(a, [[-1, 0, 1]] * 3) / 3)
    gy = stage("gy", window(a, [[-1] * 3, [0] * 3, [1] * 3]) / 3)
    return stage("magnitude", sqrt((gx[x, y] * gx[x, y] + gy[x, y] * gy[x, y]) / 2))


@case()
def roberts_cross() -> Made:
    """Roberts' cross of 8-bit images, the sum of the magnitudes."""
    a = gray(type=uint8)
    wide = stage("wide", int16(a[x, y]))
    cross = abs(wide[x, y] - wide[x + 1, y + 1]) + abs(wide[x + 1, y] - wide[x, y + 1])
    return stage("edges", sat_uint8(cross))


@case(lambda a: cv2.Laplacian(a, cv2.CV_16S, ksize=3, borderType=EDGE))
def laplacian_of_bytes() -> Made:
    """The Laplacian with a kernel of 3 x 3, of bytes."""
    a = gray(type=uint8)
    return stage("laplacian", window(a, [[2, 0, 2], [0, -8, 0], [2, 0, 2]], to=int16))


@case(lambda a: ndimage.gaussian_laplace(a, 1.5, mode="nearest", radius=6), within=1e-3)
def laplacian_of_gaussian() -> Made:
    """The Laplacian of a Gaussian of sigma 1.5, by its two separable parts."""
    a, g = gray(), gaussian(1.5, 6)
    second = [w * ((d - 6) ** 2 / 1.5**4 - 1 / 1.5**2) for d, w in enumerate(g)]
    gx, sx = stage("gx", row(a, g)), stage("sx", row(a, second))
    return stage("laplacian", column(sx, g) + column(gx, second))


def _dog(a: Any) -> Any:
    return ndimage.gaussian_filter(a, 1.0, mode="nearest", radius=4) - ndimage.gaussian_filter(
        a, 1.6, mode="nearest", radius=6
    )


@case(_dog)
def difference_of_gaussians() -> Made:
    """The difference of two Gaussians."""
    a = gray()
    fine, coarse = separable("fine", a, gaussian(1.0, 4)), separable("coarse", a, gaussian(1.6, 6))
    return stage("difference", fine[x, y] - coarse[x, y])


@case()
def canny_suppression() -> Made:
    """Canny's edges up to the thinning, of bytes: a smooth image, the gradient, and what is less than its neighbours
    along it is 0."""
    a = gray(type=uint8)
    smooth = stage("smooth", int32(window(a, [[1, 2, 1], [2, 4, 2], [1, 2, 1]], to=uint16) // 16))
    gx, gy = stage("gx", window(smooth, SOBEL_X)), stage("gy", window(smooth, SOBEL_Y))
    strength = stage("strength", gx[x, y] * gx[x, y] + gy[x, y] * gy[x, y])
    ax, ay = abs(gx[x, y]), abs(gy[x, y])
    flat, steep, falling = 5 * ay < 2 * ax, 5 * ax < 2 * ay, (gx[x, y] < 0) != (gy[x, y] < 0)

    def s(p: int, q: int) -> Term:
        return shifted(strength, p, q)

    ahead = select(flat, s(1, 0), select(steep, s(0, 1), select(falling, s(1, -1), s(1, 1))))
    behind = select(flat, s(-1, 0), select(steep, s(0, -1), select(falling, s(-1, 1), s(-1, -1))))
    kept = (strength[x, y] >= ahead) & (strength[x, y] >= behind)
    return stage("thin", select(kept, sqrt(float32(strength[x, y])), 0.0))


@case()
def hysteresis_step() -> Made:
    """Two thresholds of Sobel's magnitude of bytes; in four steps weak edges beside strong ones become strong."""
    a = gray(type=uint8)
    gx, gy = stage("gx", window(a, SOBEL_X, to=int16)), stage("gy", window(a, SOBEL_Y, to=int16))
    size = stage("size", abs(gx[x, y]) + abs(gy[x, y]))
    state = stage("state0", uint8(select(size[x, y] > 300, 2, select(size[x, y] > 120, 1, 0))))
    for step in range(1, 5):
        p, q = around(1)
        near = rmax(state[x + p, y + q], q, p)
        state = stage(f"state{step}", select((state[x, y] == 1) & (near == 2), uint8(2), state[x, y]))
    return stage("edges", select(state[x, y] == 2, uint8(255), uint8(0)))


def _structure(a: Any) -> Any:
    gx, gy = (ndimage.sobel(a, axis, mode="nearest") for axis in (1, 0))
    return tuple(ndimage.gaussian_filter(v, 1.5, mode="nearest", radius=4) for v in (gx * gx, gx * gy, gy * gy))


@case(_structure, apart=2e-2)
def structure_tensor() -> Made:
    """The three components of the structure tensor, in a Gaussian window."""
    a, g = gray(), gaussian(1.5, 4)
    gx, gy = stage("gx", window(a, SOBEL_X)), stage("gy", window(a, SOBEL_Y))
    xx = stage("xx", gx[x, y] * gx[x, y])
    xy = stage("xy", gx[x, y] * gy[x, y])
    yy = stage("yy", gy[x, y] * gy[x, y])
    return separable("axx", xx, g), separable("axy", xy, g), separable("ayy", yy, g)


@case()
def hessian_ridges() -> Made:
    """Frangi's ridges at one scale: eigenvalues of the Hessian and what they say."""
    a = gray()
    smooth = separable("smooth", a, gaussian(2.0, 6))
    xx = stage("xx", row(smooth, [1, 0, -2, 0, 1]) * 0.25)
    yy = stage("yy", column(smooth, [1, 0, -2, 0, 1]) * 0.25)
    xy = stage("xy", window(smooth, [[1, 0, -1], [0, 0, 0], [-1, 0, 1]]) * 0.25)
    half = stage("half", (xx[x, y] - yy[x, y]) * 0.5)
    root = stage("root", sqrt(half[x, y] ** 2 + xy[x, y] ** 2))
    mean = (xx[x, y] + yy[x, y]) * 0.5
    low, high = stage("low", mean - root[x, y]), stage("high", mean + root[x, y])
    blob = high[x, y] ** 2 / (low[x, y] ** 2 + 1e-4)
    energy = low[x, y] ** 2 + high[x, y] ** 2
    return stage("ridges", maximum(-low[x, y], 0.0) * exp(-2.0 * blob) * (1.0 - exp(-200.0 * energy)))


_KIRSCH = ((-1, -1), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0))


def _kirsch_kernel(turn: int) -> list[list[float]]:
    weights = {_KIRSCH[(turn + d) % 8]: 5.0 if d < 3 else -3.0 for d in range(8)}
    return [[weights.get((p, q), 0.0) for p in (-1, 0, 1)] for q in (-1, 0, 1)]


def _kirsch(a: Any) -> Any:
    best = None
    for turn in range(8):
        kernel = np.array(_kirsch_kernel(turn), np.float32)
        found = cv2.filter2D(a, cv2.CV_32F, kernel, borderType=EDGE)
        best = found if best is None else cv2.max(best, found)
    return best


@case(_kirsch)
def kirsch_compass() -> Made:
    """The strongest of Kirsch's eight directions."""
    a = gray()
    return stage("strongest", maximum(*(window(a, _kirsch_kernel(turn)) for turn in range(8))))


def _gabor_kernel(turn: int) -> list[list[float]]:
    angle, found = math.pi * turn / 4, []
    for q in range(-3, 4):
        line = []
        for p in range(-3, 4):
            u, v = p * math.cos(angle) + q * math.sin(angle), q * math.cos(angle) - p * math.sin(angle)
            line.append(math.exp(-(u * u + 0.5 * v * v) / 8) * math.cos(2 * math.pi * u / 5))
        found.append(line)
    return found


def _gabor(a: Any) -> Any:
    found = [cv2.filter2D(a, cv2.CV_32F, np.array(_gabor_kernel(d), np.float32), borderType=EDGE) for d in range(4)]
    return np.sqrt(sum(f * f for f in found))


@case(_gabor)
def gabor_energy() -> Made:
    """The energy of four orientations of Gabor filters of 7 x 7."""
    a = gray()
    bank = [stage(f"gabor{d}", window(a, _gabor_kernel(d))) for d in range(4)]
    return stage("energy", sqrt(total(f[x, y] * f[x, y] for f in bank)))


def _orientation(a: Any) -> Any:
    gx, gy = _sobel(a)
    return np.arctan2(gy, gx)


@case(_orientation, apart=1e-4)
def gradient_orientation() -> Made:
    """The direction of Sobel's gradient."""
    a = gray()
    gx, gy = stage("gx", window(a, SOBEL_X)), stage("gy", window(a, SOBEL_Y))
    return stage("angle", atan2(gy[x, y], gx[x, y]))


@case()
def zero_crossings() -> Made:
    """Where a Laplacian of bytes after a blur changes its sign by more than a threshold (Marr and Hildreth)."""
    a = gray(type=uint8)
    smooth = stage("smooth", int16(window(a, [[1, 2, 1], [2, 4, 2], [1, 2, 1]], to=uint16) // 16))
    lap = stage("lap", window(smooth, [[0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    pairs = [(shifted(lap, p, q), shifted(lap, -p, -q)) for p, q in ((1, 0), (0, 1), (1, 1), (1, -1))]
    tests = [((u < 0) != (v < 0)) & (absd(u, v) > 8) for u, v in pairs]
    return stage("crossing", select(tests[0] | tests[1] | tests[2] | tests[3], uint8(255), uint8(0)))
