"""Descriptors of places and of whole images."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import cv2, gaussian, gray, i, j, k, separable, shifted, stage, total, window, x, y
from tilesmith.language import (
    Range,
    Stage,
    absd,
    atan2,
    clamp,
    float64,
    int32,
    maximum,
    minimum,
    mux,
    rsum,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)


@case()
def local_binary_patterns() -> Made:
    """Which of eight neighbours are at least as bright."""
    a = gray(type=uint8)
    ring = ((1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1))
    bits = [select(shifted(a, *at) >= a[x, y], uint8(1 << d), uint8(0)) for d, at in enumerate(ring)]
    return stage("pattern", total(bits))


@case()
def census_transform() -> Made:
    """Which of 24 pixels around are darker, as bits."""
    a = gray(type=uint8)
    places = [(p, q) for q in range(-2, 3) for p in range(-2, 3) if (p, q) != (0, 0)]
    bits = [select(shifted(a, *at) < a[x, y], uint32(1 << d), uint32(0)) for d, at in enumerate(places)]
    return stage("census", total(bits))


@case()
def brief_bits() -> Made:
    """32 comparisons of smoothed pixels around each pixel (BRIEF)."""
    a, random_ = gray(type=uint8), Random(7)
    smooth = stage("smooth", window(a, [[1] * 5] * 5, to=uint16))
    bits = []
    for d in range(32):
        one, other = ((random_.randint(-9, 9), random_.randint(-9, 9)) for _ in range(2))
        bits.append(select(shifted(smooth, *one) < shifted(smooth, *other), uint32(1 << d), uint32(0)))
    return stage("bits", total(bits))


@case(x=320, y=192, k=9)
def gradient_histograms() -> Made:
    """Histograms of nine orientations over cells of 8 x 8, normalised over 2 x 2 cells (HOG)."""
    a = gray()
    gx, gy = stage("gx", a[x + 1, y] - a[x - 1, y]), stage("gy", a[x, y + 1] - a[x, y - 1])
    size = stage("size", sqrt(gx[x, y] ** 2 + gy[x, y] ** 2))
    turn = (atan2(gy[x, y], gx[x, y]) + 3.1415927) * (9 / 3.1415927)
    bin_ = stage("bin", uint8(clamp(turn, 0.0, 17.99)) % 9)
    p, q, r = Range("p", 0, 8), Range("q", 0, 8), Range("r", 0, 9)
    here = select(int32(bin_[8 * x + p, 8 * y + q]) == k, size[8 * x + p, 8 * y + q], 0.0)
    cells = stage("cells", rsum(here, q, p), x, y, k)
    energy = stage("energy", rsum(cells[x, y, r] * cells[x, y, r], r))
    norm = stage("norm", 1.0 / sqrt(total(energy[x + d, y + e] for e in (0, 1) for d in (0, 1)) + 1e-3))
    return stage("histogram", minimum(cells[x, y, k] * norm[x, y], 0.2), x, y, k), Sized(a, 8)


@case(x=1280, y=720, k=8)
def pooled_orientations() -> Made:
    """Eight maps of half gradients, each smoothed (DAISY)."""
    a = gray()
    gx, gy = stage("gx", a[x + 1, y] - a[x - 1, y]), stage("gy", a[x, y + 1] - a[x, y - 1])
    turns = [(math.cos(math.pi * d / 4), math.sin(math.pi * d / 4)) for d in range(8)]
    values = [maximum(gx[x, y] * u + gy[x, y] * v, 0.0) for u, v in turns]
    maps = stage("maps", mux(k, *values), x, y, k)
    return separable("pooled", maps, gaussian(2.0, 5), k)


@case(i=16, j=16)
def co_occurrences() -> Made:
    """How often 16 levels of gray lie beside each other."""
    a = gray(type=uint8)
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    counts = stage("counts", uint32(0), i, j)
    counts[a[p, q] >> 4, a[p + 1, q] >> 4] += 1
    return counts, a


def _moments(a: Any) -> Any:
    m = cv2.moments(a)
    return tuple(np.float64(m[name]) for name in ("m00", "m10", "m01", "m20", "m11", "m02"))


@case(_moments, within=1e-3)
def image_moments() -> Made:
    """Six moments of an image of bytes."""
    a = gray(type=uint8)
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    r0 = stage("r0", rsum(float64(a[p, y]), p), y)
    r1 = stage("r1", rsum(float64(a[p, y]) * float64(p), p), y)
    r2 = stage("r2", rsum(float64(a[p, y]) * float64(p) * float64(p), p), y)
    v = float64(q)
    sums = {"m00": r0[q], "m10": r1[q], "m01": r0[q] * v, "m20": r2[q], "m11": r1[q] * v, "m02": r0[q] * v * v}
    made = []
    for name, value in sums.items():
        made.append(Stage(name))
        made[-1][()] = rsum(value, q)
    return *made, a


@case(lambda a: cv2.calcHist([a], [0], None, [256], [0, 256])[:, 0].astype(np.uint32), i=256)
def histogram_of_bytes() -> Made:
    """A histogram of 256 bins."""
    a = gray(type=uint8)
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    counts = stage("counts", uint32(0), i)
    counts[a[p, q]] += 1
    return counts, a


@case(i=16, j=16)
def gradient_statistics() -> Made:
    """A joint histogram of the size of the gradient and of the brightness."""
    a = gray(type=uint8)
    size = stage("size", absd(a[x + 1, y], a[x - 1, y]) // 2 + absd(a[x, y + 1], a[x, y - 1]) // 2)
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    counts = stage("counts", uint32(0), i, j)
    counts[size[p, q] >> 4, a[p, q] >> 4] += 1
    return counts, a
