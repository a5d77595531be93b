"""Helpers of segmentation: thresholds, clusters, masks, distances, fronts."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import (
    around,
    c,
    colour,
    column,
    cv2,
    gaussian,
    gray,
    i,
    j,
    k,
    ndimage,
    row,
    separable,
    shifted,
    stage,
    total,
    x,
    y,
)
from tilesmith.language import (
    Image,
    Range,
    Stage,
    argmax,
    argmin,
    exp,
    float32,
    int32,
    log,
    maximum,
    minimum,
    repeat_edge,
    rmax,
    rsum,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)


def _counts(a: Image) -> Stage:
    """The histogram of bytes."""
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    counts = stage("counts", uint32(0), i)
    counts[a[p, q]] += 1
    return counts


@case(lambda a: cv2.threshold(a, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)[1], apart=2e-2)
def otsu_threshold() -> Made:
    """Otsu's threshold: the histogram, sums below each value, the best variance between, the mask."""
    a = gray(type=uint8)
    counts, r, s = _counts(a), Range("r", 1, 256), Range("s", 0, 256)
    below = stage("below", float32(counts[i]), i)
    below[r] = below[r - 1] + below[r]
    sums = stage("sums", float32(counts[i]) * float32(i), i)
    sums[r] = sums[r - 1] + sums[r]
    apart = sums[255] * below[i] / below[255] - sums[i]
    between = stage("between", apart * apart / maximum(below[i] * (below[255] - below[i]), 1.0), i)
    best = Stage("best")
    best[()] = argmax(between[s], s)
    return stage("mask", select(int32(a[x, y]) > best[()][0], uint8(255), uint8(0))), a


@case()
def adaptive_mean_threshold() -> Made:
    """Bytes compared with the mean of 11 x 11 around them."""
    a = gray(type=uint8)
    sums = stage("sums_x", row(a, [1] * 11, to=uint16))
    total_ = stage("sums", column(sums, [1] * 11))
    mean = stage("mean", (int32(total_[x, y]) + 60) // 121)
    return stage("mask", select(int32(a[x, y]) > mean[x, y] - 5, uint8(255), uint8(0)))


@case()
def adaptive_gaussian_threshold() -> Made:
    """Floats compared with a Gaussian of 11 x 11 around them."""
    a = gray()
    mean = separable("mean", a, gaussian(2.0, 5))
    return stage("mask", select(a[x, y] > mean[x, y] - 0.02, uint8(255), uint8(0)))


def _sauvola(a: Any) -> Any:
    mean = ndimage.uniform_filter(a, 15, mode="nearest")
    square = ndimage.uniform_filter(a * a, 15, mode="nearest")
    return mean * (1 + 0.2 * (np.sqrt(np.maximum(square - mean * mean, 0)) / 0.5 - 1))


@case(_sauvola, within=1e-3)
def sauvola_threshold() -> Made:
    """Sauvola's local threshold, by means and deviations of 15 x 15."""
    a = gray()
    p, q = around(7)
    squared = stage("squared", a[x, y] * a[x, y])
    along, along2 = stage("along", rsum(a[x + p, y], p)), stage("along2", rsum(squared[x + p, y], p))
    mean = stage("mean", rsum(along[x, y + q], q) / 225.0)
    square = stage("square", rsum(along2[x, y + q], q) / 225.0)
    spread = sqrt(maximum(square[x, y] - mean[x, y] * mean[x, y], 0.0))
    return stage("threshold", mean[x, y] * (1.0 + 0.2 * (spread / 0.5 - 1.0)))


@case(lambda a: cv2.inRange(a, (90, 40, 20), (200, 160, 120)))
def in_range() -> Made:
    """Interleaved bytes all of whose channels lie in their ranges."""
    a = colour(type=uint8, interleaved=True)
    tests = [(a[x, y, d] >= lo) & (a[x, y, d] <= hi) for d, (lo, hi) in enumerate(((90, 200), (40, 160), (20, 120)))]
    return stage("mask", select(tests[0] & tests[1] & tests[2], uint8(255), uint8(0)))


@case(k=8)
def nearest_centre() -> Made:
    """The number of the nearest of eight colours, for each pixel: a step of k-means."""
    a, centre = colour(), Image("centre", float32, c, k)
    r = Range("r", 0, 8)
    apart = [a[x, y, d] - centre[d, r] for d in range(3)]
    nearest = stage("nearest", argmin(total(d * d for d in apart), r))
    return stage("label", uint8(nearest[x, y][0])), centre


@case(k=8)
def cluster_sums() -> Made:
    """Sums and counts of the pixels of each of eight labels: the other step of k-means."""
    a, label = gray("a"), gray("label", uint8)
    p, q = Range("p", 0, label.extent.x), Range("q", 0, label.extent.y)
    sums, counts = stage("sums", 0.0, k), stage("counts", uint32(0), k)
    sums[label[p, q] % 8] += a[p, q]
    counts[label[p, q] % 8] += 1
    return sums, counts, a, label


@case()
def chan_vese_step() -> Made:
    """Two steps of an active contour without edges (Chan and Vese), with given means."""
    a, now = gray("a"), gray("phi")
    level: Image | Stage = now
    for step in (1, 2):
        up, down, left, right, at = (shifted(level, *d) for d in ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0)))
        gx, gy = stage(f"gx{step}", (right - left) * 0.5), stage(f"gy{step}", (down - up) * 0.5)
        size = stage(f"size{step}", sqrt(gx[x, y] ** 2 + gy[x, y] ** 2 + 1e-4))
        nx, ny = stage(f"nx{step}", gx[x, y] / size[x, y]), stage(f"ny{step}", gy[x, y] / size[x, y])
        curve = (nx[x + 1, y] - nx[x - 1, y] + ny[x, y + 1] - ny[x, y - 1]) * 0.5
        pull = (a[x, y] - 0.3) ** 2 - (a[x, y] - 0.7) ** 2
        near = 1.0 / (3.1415927 * (1.0 + at * at))
        level = stage(f"phi{step}", at + 0.5 * near * (0.2 * curve + pull))
    assert isinstance(level, Stage)
    return level


@case(x=1600, y=1200)
def city_block_distance() -> Made:
    """The distance to the nearest dark pixel along rows and columns: four scans."""
    a = gray(type=uint8)
    width, height = a.extent.x, a.extent.y
    p, q = Range("p", 1, width), Range("q", 1, height)
    far = stage("right", select(a[x, y] < 16, int32(0), int32(100000)))
    far[p, y] = minimum(far[p, y], far[p - 1, y] + 1)
    back = stage("left", far[x, y])
    back[width - 1 - p, y] = minimum(back[width - 1 - p, y], back[width - p, y] + 1)
    down = stage("down", back[x, y])
    down[x, q] = minimum(down[x, q], down[x, q - 1] + 1)
    up = stage("up", down[x, y])
    up[x, height - 1 - q] = minimum(up[x, height - 1 - q], up[x, height - q] + 1)
    return up, a


@case()
def back_projection() -> Made:
    """How usual the hue and saturation of each pixel are in a histogram of 32 x 32."""
    a = Image("a", uint8, x, y, c, boundary=repeat_edge, storage=(c, x, y))
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    counts = stage("counts", uint32(0), i, j)
    counts[a[p, q, 0] >> 3, a[p, q, 1] >> 3] += 1
    high = Stage("high")
    r, s = Range("r", 0, 32), Range("s", 0, 32)
    high[()] = rmax(counts[r, s], s, r)
    part = counts[a[x, y, 0] >> 3, a[x, y, 1] >> 3]
    return stage("usual", sat_uint8(float32(part) * 255.0 / float32(high[()]))), a


@case()
def label_spreading() -> Made:
    """Six steps in which the least label of the neighbours that are on spreads."""
    a, on = gray("a", uint32), gray("on", uint8)
    now = stage("label0", select(on[x, y] > 90, a[x, y], uint32(0)))
    for step in range(1, 7):
        low = minimum(
            *(select(v > 0, v, now[x, y]) for v in (shifted(now, *d) for d in ((1, 0), (-1, 0), (0, 1), (0, -1))))
        )
        now = stage(f"label{step}", select(now[x, y] > 0, minimum(now[x, y], low), uint32(0)))
    return now


@case()
def mixture_likelihood() -> Made:
    """The logarithm of the likelihood of each pixel in a mixture of four Gaussians of colours."""
    a = colour()
    parts = []
    for g in range(4):
        apart = [(a[x, y, d] - (0.2 + 0.15 * g + 0.05 * d)) * (3.0 + g) for d in range(3)]
        parts.append(stage(f"part{g}", 0.25 * exp(-0.5 * total(v * v for v in apart))))
    return stage("likelihood", log(total(f[x, y] for f in parts) + 1e-6))


@case()
def running_background() -> Made:
    """A running mean and variance of frames, and where the newest one is not in them."""
    a, mean, spread = gray("a", uint8), gray("mean"), gray("spread")
    apart = stage("apart", float32(a[x, y]) - mean[x, y])
    new_mean = stage("new_mean", mean[x, y] + 0.05 * apart[x, y])
    square = apart[x, y] * apart[x, y]
    new_spread = stage("new_spread", spread[x, y] + 0.05 * (square - spread[x, y]))
    mask = stage("mask", select(square > 6.25 * spread[x, y] + 16.0, uint8(255), uint8(0)))
    return new_mean, new_spread, mask
