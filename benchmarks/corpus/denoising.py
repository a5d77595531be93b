"""Smoothing, denoising, deblurring."""

from __future__ import annotations

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import (
    EDGE,
    INTERIOR,
    around,
    c,
    colour,
    column,
    cv2,
    gaussian,
    gray,
    row,
    separable,
    shifted,
    signal,
    stage,
    total,
    window,
    x,
    y,
)
from tilesmith.language import (
    Image,
    Stage,
    Term,
    Var,
    constant,
    exp,
    float32,
    int16,
    maximum,
    minimum,
    mirror_interior,
    rsum,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)


@case(lambda a: cv2.blur(a, (9, 9), borderType=EDGE), within=1e-3)
def box_blur() -> Made:
    """The mean of 9 x 9."""
    a = gray()
    p, q = around(4)
    along = stage("along", rsum(a[x + p, y], p))
    return stage("mean", rsum(along[x, y + q], q) / 81.0)


@case(lambda a: cv2.blur(a, (5, 5), borderType=EDGE), within=1 / 255)
def box_blur_of_bytes() -> Made:
    """The mean of 5 x 5 interleaved bytes."""
    a = colour(type=uint8, interleaved=True)
    along = stage("along", row(a, [1] * 5, c, to=uint16), x, y, c)
    return stage("mean", uint8((column(along, [1] * 5, c) + 12) // 25), x, y, c, storage=(c, x, y))


_G11 = gaussian(2.0, 5)


@case(lambda a: cv2.GaussianBlur(a, (11, 11), 2.0, borderType=EDGE))
def gaussian_blur() -> Made:
    """A Gaussian of sigma 2 and 11 x 11."""
    return separable("smooth", gray(), _G11)


@case(lambda a: cv2.GaussianBlur(a, (5, 5), 1.0, borderType=INTERIOR), within=2 / 255)
def gaussian_blur_of_bytes() -> Made:
    """A Gaussian of 5 x 5 of interleaved bytes, with weights of 8 bits."""
    a = colour(type=uint8, boundary=mirror_interior, interleaved=True)
    weights = [14, 62, 104, 62, 14]
    along = stage("along", row(a, weights, c, to=uint32), x, y, c)
    return stage("smooth", uint8((column(along, weights, c) + 32768) >> 16), x, y, c, storage=(c, x, y))


_MOTION = [[1 / 9 if p == q else 0.0 for p in range(9)] for q in range(9)]


@case(lambda a: cv2.filter2D(a, cv2.CV_32F, np.array(_MOTION, np.float32), borderType=EDGE))
def motion_blur() -> Made:
    """A kernel of 9 x 9 along a diagonal."""
    return stage("blurred", window(gray(), _MOTION))


@case()
def bilateral_filter() -> Made:
    """The bilateral filter of 7 x 7, with an exponential for each pair of pixels."""
    a = gray()
    p, q = around(3)
    apart = a[x + p, y + q] - a[x, y]
    weight = exp(-(float32(p * p + q * q) * 0.08 + apart * apart * 50.0))
    sums = stage("sums", rsum(weight * a[x + p, y + q], q, p))
    weights = stage("weights", rsum(weight, q, p))
    return stage("smooth", sums[x, y] / weights[x, y])


def _mean(name: str, f: Image | Stage, radius: int) -> Stage:
    p, q = around(radius)
    along = stage(f"{name}_x", rsum(f[x + p, y], p))
    return stage(name, rsum(along[x, y + q], q) * (1.0 / (2 * radius + 1) ** 2))


@case()
def guided_filter() -> Made:
    """The guided filter with windows of 17 x 17 (He, Sun and Tang)."""
    guide, a = gray("guide"), gray("a")
    both = stage("both", guide[x, y] * a[x, y])
    squared = stage("squared", guide[x, y] * guide[x, y])
    mg, ma, mb, ms = (_mean(name, f, 8) for name, f in (("mg", guide), ("ma", a), ("mb", both), ("ms", squared)))
    slope = stage("slope", (mb[x, y] - mg[x, y] * ma[x, y]) / (ms[x, y] - mg[x, y] * mg[x, y] + 0.01))
    offset = stage("offset", ma[x, y] - slope[x, y] * mg[x, y])
    return stage("filtered", _mean("m1", slope, 8)[x, y] * guide[x, y] + _mean("m2", offset, 8)[x, y])


@case()
def total_variation() -> Made:
    """Six steps of Chambolle's dual algorithm for total variation."""
    a = gray()
    px: Stage | None = None
    py: Stage | None = None
    for step in range(6):
        if px is None or py is None:
            div = stage(f"div{step}", 0.0 - 8.0 * a[x, y])
        else:
            inner = px[x, y] - px[x - 1, y] + py[x, y] - py[x, y - 1]
            div = stage(f"div{step}", inner - 8.0 * a[x, y])
        gx = stage(f"gx{step}", div[x + 1, y] - div[x, y])
        gy = stage(f"gy{step}", div[x, y + 1] - div[x, y])
        scale = stage(f"scale{step}", 1.0 / (1.0 + 0.248 * sqrt(gx[x, y] ** 2 + gy[x, y] ** 2)))
        old_x, old_y = (0.0, 0.0) if px is None or py is None else (px[x, y], py[x, y])
        px = stage(f"px{step}", (old_x + 0.248 * gx[x, y]) * scale[x, y])
        py = stage(f"py{step}", (old_y + 0.248 * gy[x, y]) * scale[x, y])
    assert px is not None
    assert py is not None
    return stage("smooth", a[x, y] - 0.125 * (px[x, y] - px[x - 1, y] + py[x, y] - py[x, y - 1]))


@case()
def perona_malik() -> Made:
    """Five steps of anisotropic diffusion with an exponential."""
    now: Image | Stage = gray()
    for step in range(5):
        flows = [shifted(now, *d) - now[x, y] for d in ((0, -1), (0, 1), (-1, 0), (1, 0))]
        now = stage(f"step{step}", now[x, y] + 0.2 * total(f * exp(-(f * f) * 100.0) for f in flows))
    assert isinstance(now, Stage)
    return now


@case(lambda a: signal.wiener(a, (5, 5), 0.01), within=1e-3)
def wiener_filter() -> Made:
    """The local Wiener filter of 5 x 5 with known noise."""
    a = gray(boundary=constant(0.0))
    p, q = around(2)
    mean = stage("mean", rsum(a[x + p, y + q], p, q) / 25.0)
    square = stage("square", rsum(a[x + p, y + q] * a[x + p, y + q], p, q) / 25.0)
    spread = stage("spread", square[x, y] - mean[x, y] * mean[x, y])
    fitted = mean[x, y] + (a[x, y] - mean[x, y]) * (1.0 - 0.01 / spread[x, y])
    return stage("filtered", select(spread[x, y] < 0.01, mean[x, y], fitted))


@case(apart=1e-3)
def kuwahara_filter() -> Made:
    """The mean of that of four quarters of 7 x 7 whose variance is least."""
    a = gray()
    squared = stage("squared", a[x, y] * a[x, y])
    mean, square = _block("mean", a), _block("square", squared)
    spread = stage("spread", square[x, y] - mean[x, y] * mean[x, y])
    best, least = mean[x - 3, y - 3], spread[x - 3, y - 3]
    for p, q in ((0, -3), (-3, 0), (0, 0)):
        closer = shifted(spread, p, q) < least
        best, least = select(closer, shifted(mean, p, q), best), minimum(shifted(spread, p, q), least)
    return stage("smooth", best)


def _block(name: str, f: Image | Stage) -> Stage:
    """The mean of 4 x 4 from a point on."""
    along = stage(f"{name}_x", total(f[x + d, y] for d in range(4)))
    return stage(name, total(along[x, y + d] for d in range(4)) * 0.0625)


_SPREAD = [[w * v for w in gaussian(1.2, 3)] for v in gaussian(1.2, 3)]


@case(within=1e-3)
def richardson_lucy() -> Made:
    """Three steps of Richardson and Lucy's deconvolution with a kernel of 7 x 7."""
    a = gray()
    now: Image | Stage = a
    for step in range(3):
        ratio = stage(f"ratio{step}", a[x, y] / (window(now, _SPREAD) + 1e-6))
        now = stage(f"step{step}", now[x, y] * window(ratio, _SPREAD))
    assert isinstance(now, Stage)
    return now


@case()
def haar_shrinkage() -> Made:
    """Small details between blocks of 2 x 2 and their means are taken away, at two levels."""
    a = gray()
    mean = stage("mean", 0.25 * total(a[2 * x + p, 2 * y + q] for q in (0, 1) for p in (0, 1)))
    wide = stage("wide", 0.25 * total(mean[2 * x + p, 2 * y + q] for q in (0, 1) for p in (0, 1)))
    apart = stage("apart", mean[x, y] - wide[x // 2, y // 2])
    soft = wide[x // 2, y // 2] + maximum(apart[x, y] - 0.05, 0.0) + minimum(apart[x, y] + 0.05, 0.0)
    kept = stage("kept", soft)
    fine = stage("fine", a[x, y] - mean[x // 2, y // 2])
    return stage("denoised", kept[x // 2, y // 2] + maximum(fine[x, y] - 0.1, 0.0) + minimum(fine[x, y] + 0.1, 0.0))


@case()
def median_of_frames() -> Made:
    """The median of five frames, a sorting network of lanes."""
    v = [gray(f"a{d}", uint8)[x, y] for d in range(5)]
    for p, q in ((0, 1), (3, 4), (2, 4), (2, 3), (1, 4), (0, 3), (0, 2), (1, 3), (1, 2)):
        v[p], v[q] = minimum(v[p], v[q]), maximum(v[p], v[q])
    return stage("median", v[2])


@case()
def deblocking() -> Made:
    """Small steps at the edges of blocks of 8 x 8 bytes are smoothed, first across columns, then across rows."""
    a = gray(type=uint8)
    wide = stage("wide", int16(a[x, y]))

    def smoothed(f: Stage, at: Var, left: Term, right: Term) -> Term:
        before, after = f[x, y] - left, right - f[x, y]
        first, last = (at % 8 == 0) & (abs(before) < 24), (at % 8 == 7) & (abs(after) < 24)
        return select(first, f[x, y] - before // 4, select(last, f[x, y] + after // 4, f[x, y]))

    across = stage("across", smoothed(wide, x, wide[x - 1, y], wide[x + 1, y]))
    two = smoothed(across, y, across[x, y - 1], across[x, y + 1])
    return stage("smooth", sat_uint8(two))
