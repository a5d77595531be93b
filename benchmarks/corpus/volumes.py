"""Volumes and stacks of frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import around, gaussian, ndimage, stage, total, x, y, z
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    clamp,
    float32,
    floor,
    int16,
    int32,
    lerp,
    maximum,
    repeat_edge,
    rmax,
    rsum,
    sat_uint8,
    sqrt,
    uint8,
    uint16,
)
from tilesmith.scheduler.frontends.python.frontend import Type


def _volume(type: Type = float32) -> Image:
    return Image("a", type, x, y, z, boundary=repeat_edge)


def _along(name: str, f: Image | Stage, weights: Sequence[float]) -> Stage:
    """The filter of these weights along all three dims."""
    half = len(weights) // 2
    one = stage(f"{name}_x", total(w * f[x + d - half, y, z] for d, w in enumerate(weights)), x, y, z)
    two = stage(f"{name}_y", total(w * one[x, y + d - half, z] for d, w in enumerate(weights)), x, y, z)
    return stage(name, total(w * two[x, y, z + d - half] for d, w in enumerate(weights)), x, y, z)


@case(lambda a: ndimage.gaussian_filter(a, 1.5, mode="nearest", radius=4), within=1e-3, x=256, y=256, z=128)
def gaussian_3d() -> Made:
    """A Gaussian along three dims."""
    return _along("smooth", _volume(), gaussian(1.5, 4))


@case(lambda a: ndimage.generic_gradient_magnitude(a, ndimage.sobel, mode="nearest"), within=1e-3, x=256, y=256, z=96)
def sobel_3d() -> Made:
    """The magnitude of Sobel's gradient in a volume."""
    a = _volume()
    parts = []
    for name, along in (("gx", 0), ("gy", 1), ("gz", 2)):
        terms = []
        for p, q, r in product((-1, 0, 1), repeat=3):
            at = (p, q, r)
            weight = at[along] * math.prod(1 if d == along else 2 - abs(v) for d, v in enumerate(at))
            if weight:
                terms.append(weight * a[x + p, y + q, z + r])
        parts.append(stage(name, total(terms), x, y, z))
    return stage("size", sqrt(total(f[x, y, z] * f[x, y, z] for f in parts)), x, y, z)


@case(lambda a: ndimage.uniform_filter(a, 5, mode="nearest"), within=1e-3, x=256, y=256, z=128)
def mean_3d() -> Made:
    """The mean of 5 x 5 x 5."""
    a = _volume()
    p, q, r = around(2, "pqr")
    one = stage("one", rsum(a[x + p, y, z], p), x, y, z)
    two = stage("two", rsum(one[x, y + q, z], q), x, y, z)
    return stage("mean", rsum(two[x, y, z + r], r) / 125.0, x, y, z)


@case(lambda a: ndimage.grey_dilation(a, (3, 3, 3), mode="nearest"), x=256, y=256, z=128)
def dilate_3d() -> Made:
    """The greatest of 3 x 3 x 3 of 16-bit voxels."""
    a = _volume(uint16)
    one = stage("one", maximum(*(a[x + d, y, z] for d in (-1, 0, 1))), x, y, z)
    two = stage("two", maximum(*(one[x, y + d, z] for d in (-1, 0, 1))), x, y, z)
    return stage("dilated", maximum(*(two[x, y, z + d] for d in (-1, 0, 1))), x, y, z)


@case(lambda a: a.max(0), x=512, y=512, z=100)
def maximum_projection() -> Made:
    """The greatest along z, of 16-bit voxels."""
    a = _volume(uint16)
    r = Range("r", 0, a.extent.z)
    return stage("projection", rmax(a[x, y, r], r)), a


@case(x=512, y=512, z=64)
def composited_rays() -> Made:
    """Rays along z through opacities, from front to back."""
    a = _volume()
    r = Range("r", 0, a.extent.z)
    light = stage("light", (0.0, 1.0), x, y)
    here = a[x, y, r] * 0.05
    light[x, y] = (light[x, y][0] + light[x, y][1] * here * a[x, y, r], light[x, y][1] * (1.0 - here))
    return stage("image", light[x, y][0]), a


@case(x=512, y=512, z=100)
def oblique_slice() -> Made:
    """A plane through a volume, linear between voxels."""
    a = _volume()
    u, v = float32(x), float32(y)
    places = (u * 0.9 + v * 0.1, u * -0.1 + v * 0.9 + 50.0, u * 0.1 + v * 0.08)
    whole = [stage(f"i{d}", floor(p)) for d, p in enumerate(places)]
    at = [clamp(int32(w[x, y]), -2000, 2000) for w in whole]
    part = [clamp(p - w[x, y], 0.0, 1.0) for p, w in zip(places, whole, strict=True)]
    planes = []
    for r in (0, 1):
        rows = [lerp(a[at[0], at[1] + q, at[2] + r], a[at[0] + 1, at[1] + q, at[2] + r], part[0]) for q in (0, 1)]
        planes.append(lerp(rows[0], rows[1], part[1]))
    return stage("slice", lerp(planes[0], planes[1], part[2])), a


@case(x=200, y=200, z=100)
def vessels_3d() -> Made:
    """The Hessian of a smoothed volume, its determinant and the sum of its diagonal."""
    s = _along("smooth", _volume(), gaussian(1.0, 2))

    def at(p: int, q: int, r: int) -> Term:
        return s[x + p, y + q, z + r]

    mid = 2.0 * s[x, y, z]
    xx = stage("xx", at(1, 0, 0) - mid + at(-1, 0, 0), x, y, z)
    yy = stage("yy", at(0, 1, 0) - mid + at(0, -1, 0), x, y, z)
    zz = stage("zz", at(0, 0, 1) - mid + at(0, 0, -1), x, y, z)
    xy = stage("xy", 0.25 * (at(1, 1, 0) - at(1, -1, 0) - at(-1, 1, 0) + at(-1, -1, 0)), x, y, z)
    xz = stage("xz", 0.25 * (at(1, 0, 1) - at(1, 0, -1) - at(-1, 0, 1) + at(-1, 0, -1)), x, y, z)
    yz = stage("yz", 0.25 * (at(0, 1, 1) - at(0, 1, -1) - at(0, -1, 1) + at(0, -1, -1)), x, y, z)
    i_ = (x, y, z)
    minor = yy[i_] * zz[i_] - yz[i_] * yz[i_]
    det = xx[i_] * minor - xy[i_] * (xy[i_] * zz[i_] - yz[i_] * xz[i_]) + xz[i_] * (xy[i_] * yz[i_] - yy[i_] * xz[i_])
    return stage("det", det, x, y, z), stage("trace", xx[i_] + yy[i_] + zz[i_], x, y, z)


@case(x=512, y=512, z=60)
def window_and_level() -> Made:
    """16-bit voxels between two values as bytes."""
    a = _volume(int16)
    return stage("bytes", sat_uint8((int32(a[x, y, z]) + 160) * 255 // 400), x, y, z)


@case(x=1280, y=720, z=16)
def temporal_smoothing() -> Made:
    """A recursive mean along frames of bytes."""
    a = _volume(uint8)
    r = Range("r", 1, a.extent.z)
    mean = stage("mean", float32(a[x, y, z]), x, y, z)
    mean[x, y, r] = 0.2 * mean[x, y, r] + 0.8 * mean[x, y, r - 1]
    return stage("bytes", sat_uint8(mean[x, y, z] + 0.5), x, y, z), a
