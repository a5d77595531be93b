"""Colours: spaces, curves, histograms, compositing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import c, colour, cv2, gray, i, luma, stage, total, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    argmin,
    clamp,
    exp,
    float32,
    int32,
    log,
    maximum,
    minimum,
    mux,
    power,
    rmax,
    rmin,
    rsum,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
    uint32,
)


@case(lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2GRAY))
def gray_of_pixels() -> Made:
    """The luma of interleaved pixels."""
    return stage("gray", luma(colour(interleaved=True)))


@case(lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2GRAY), within=1 / 255)
def gray_of_bytes() -> Made:
    """The luma of interleaved bytes, in integers."""
    a = colour(type=uint8, interleaved=True)
    parts = [uint32(a[x, y, d]) * w for d, w in enumerate((4899, 9617, 1868))]
    return stage("gray", uint8((total(parts) + 8192) >> 14))


def _planes(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of interleaved pixels, for planes."""
    return lambda a: np.moveaxis(f(np.ascontiguousarray(np.moveaxis(a, 0, -1))), -1, 0)


@case(lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2YCrCb), within=2 / 255)
def ycrcb_of_bytes() -> Made:
    """YCrCb of interleaved bytes."""
    a = colour(type=uint8, interleaved=True)
    gray_ = stage("luma", (total(uint32(a[x, y, d]) * w for d, w in enumerate((4899, 9617, 1868))) + 8192) >> 14)
    red, blue = int32(a[x, y, 0]) - int32(gray_[x, y]), int32(a[x, y, 2]) - int32(gray_[x, y])
    cr, cb = ((red * 11682 + 8192) >> 14) + 128, ((blue * 9241 + 8192) >> 14) + 128
    return stage("ycrcb", sat_uint8(mux(c, int32(gray_[x, y]), cr, cb)), x, y, c, storage=(c, x, y))


@case(_planes(lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2HSV)), within=1e-3, apart=1e-3)
def hsv_of_floats() -> Made:
    """Hue, saturation and value."""
    a = colour()
    r, g, b = (a[x, y, d] for d in range(3))
    high, low = stage("high", maximum(r, g, b)), stage("low", minimum(r, g, b))
    spread = stage("spread", high[x, y] - low[x, y])
    turn = 60.0 / (spread[x, y] + 1.1920929e-7)
    angle = select(
        high[x, y] == r, (g - b) * turn, select(high[x, y] == g, (b - r) * turn + 120.0, (r - g) * turn + 240.0)
    )
    hue = stage("hue", select(angle < 0.0, angle + 360.0, angle))
    saturation = spread[x, y] / (high[x, y] + 1.1920929e-7)
    return stage("hsv", mux(c, hue[x, y], saturation, high[x, y]), x, y, c)


@case()
def rgb_of_hsv() -> Made:
    """Red, green and blue of hue (0 to 1), saturation and value."""
    a = colour()
    shift = mux(c, 5.0, 3.0, 1.0)
    turn = stage("turn", (shift + a[x, y, 0] * 6.0) % 6.0, x, y, c)
    part = clamp(minimum(turn[x, y, c], 4.0 - turn[x, y, c]), 0.0, 1.0)
    return stage("rgb", a[x, y, 2] * (1.0 - a[x, y, 1] * part), x, y, c)


def _root(value: Term) -> Term:
    return select(value > 0.008856, power(maximum(value, 0.008856), 1.0 / 3), 7.787 * value + 16.0 / 116)


def _xyz(a: Image | Stage) -> list[Term]:
    matrix = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
    white = (0.950456, 1.0, 1.088754)
    return [total(a[x, y, d] * (w / one) for d, w in enumerate(line)) for line, one in zip(matrix, white, strict=True)]


def _linear(value: Term) -> Term:
    return select(value > 0.04045, power((maximum(value, 0.04045) + 0.055) / 1.055, 2.4), value / 12.92)


@case(_planes(lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2Lab)), within=1e-2)
def lab_of_srgb() -> Made:
    """L*a*b* of sRGB: powers to linear light and roots."""
    a = colour()
    light = stage("light", _linear(a[x, y, c]), x, y, c)
    fx, fy, fz = (stage(f"f{d}", _root(v)) for d, v in zip("xyz", _xyz(light), strict=True))
    values = (116.0 * fy[x, y] - 16.0, 500.0 * (fx[x, y] - fy[x, y]), 200.0 * (fy[x, y] - fz[x, y]))
    return stage("lab", mux(c, *values), x, y, c)


@case(_planes(lambda a: cv2.cvtColor(a, cv2.COLOR_LRGB2Luv)), within=1e-2)
def luv_of_linear() -> Made:
    """L*u*v* of linear light."""
    a = colour()
    xx = stage("X", total(a[x, y, d] * w for d, w in enumerate((0.412453, 0.357580, 0.180423))))
    yy = stage("Y", total(a[x, y, d] * w for d, w in enumerate((0.212671, 0.715160, 0.072169))))
    zz = stage("Z", total(a[x, y, d] * w for d, w in enumerate((0.019334, 0.119193, 0.950227))))
    v = yy[x, y]
    light = stage("light", select(v > 0.008856, 116.0 * power(maximum(v, 0.008856), 1.0 / 3) - 16.0, 903.3 * v))
    d = stage("d", 1.0 / maximum(xx[x, y] + 15.0 * v + 3.0 * zz[x, y], 1e-6))
    u = 13.0 * light[x, y] * (4.0 * xx[x, y] * d[x, y] - 0.19793943)
    w = 13.0 * light[x, y] * (9.0 * v * d[x, y] - 0.46831096)
    return stage("luv", mux(c, light[x, y], u, w), x, y, c)


@case()
def rgb_of_nv12() -> Made:
    """Interleaved bytes of a plane of luma and a plane of chroma at half the size."""
    luma_ = Image("luma", uint8, x, y)
    chroma = Image("chroma", uint8, c, x, y)
    u, v = int32(chroma[0, x // 2, y // 2]) - 128, int32(chroma[1, x // 2, y // 2]) - 128
    bright = stage("bright", (int32(luma_[x, y]) - 16) * 298 + 128)
    red, green, blue = (bright[x, y] + part for part in (409 * v, -100 * u - 208 * v, 516 * u))
    return stage("rgb", sat_uint8(mux(c, red, green, blue) >> 8), x, y, c, storage=(c, x, y))


_SEPIA = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))


@case(lambda a: cv2.transform(a, np.array(_SEPIA)), within=1 / 255)
def sepia() -> Made:
    """A matrix of colours, on interleaved bytes."""
    a = colour(type=uint8, interleaved=True)
    toned = [total(float32(a[x, y, d]) * w for d, w in enumerate(line)) for line in _SEPIA]
    return stage("toned", sat_uint8(mux(c, *toned) + 0.5), x, y, c, storage=(c, x, y))


def _gamma(a: Any) -> Any:
    table = 255 * (np.arange(256, dtype=np.float32) / 255) ** np.float32(1 / 2.2) + 0.5
    return cv2.LUT(a, table.astype(np.uint8))


@case(_gamma, within=1 / 255)
def gamma_table() -> Made:
    """A gamma curve of bytes, by a table."""
    a = colour(type=uint8, interleaved=True)
    table = stage("table", uint8(255.0 * power(float32(i) / 255.0, 1 / 2.2) + 0.5), i)
    return stage("curved", table[a[x, y, c]], x, y, c, storage=(c, x, y))


@case()
def gray_world() -> Made:
    """White balance by the means of the channels."""
    a = colour()
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    sums = stage("sums", rsum(a[p, q, c], q, p), c)
    gray_ = Stage("level")
    gray_[()] = (sums[0] + sums[1] + sums[2]) / 3.0
    return stage("balanced", minimum(a[x, y, c] * (gray_[()] / (sums[c] + 1e-6)), 1.0), x, y, c), a


@case(lambda a: cv2.equalizeHist(a), within=1 / 255)
def equalised_histogram() -> Made:
    """A histogram of bytes, its running sum, and the table of it."""
    a = gray(type=uint8)
    p, q, r = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y), Range("r", 1, 256)
    counts = stage("counts", uint32(0), i)
    counts[a[p, q]] += 1
    below = stage("below", counts[i], i)
    below[r] = below[r - 1] + below[r]
    first = Stage("first")
    first[()] = argmin(select(counts[Range("s", 0, 256)] > 0, int32(0), int32(1)), Range("s", 0, 256))
    base = Stage("base")
    base[()] = below[clamp(first[()][0], 0, 255)]
    span = maximum(float32(below[255]) - float32(base[()]), 1.0)
    table = stage("table", sat_uint8((float32(below[i]) - float32(base[()])) * 255.0 / span + 0.5), i)
    return stage("equalised", table[a[x, y]]), a


@case()
def stretched_contrast() -> Made:
    """The contrast between the least and the greatest value of each channel."""
    a = colour()
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    low, high = stage("low", rmin(a[p, q, c], q, p), c), stage("high", rmax(a[p, q, c], q, p), c)
    return stage("stretched", (a[x, y, c] - low[c]) / (high[c] - low[c] + 1e-6), x, y, c), a


@case()
def vibrance() -> Made:
    """More saturation where there is little."""
    a = colour()
    r, g, b = (a[x, y, d] for d in range(3))
    gray_ = stage("gray", luma(a))
    spread = stage("spread", maximum(r, g, b) - minimum(r, g, b))
    factor = stage("factor", 1.0 + 0.8 * (1.0 - spread[x, y]))
    return stage("vivid", clamp(gray_[x, y] + (a[x, y, c] - gray_[x, y]) * factor[x, y], 0.0, 1.0), x, y, c)


@case()
def reinhard_tone_map() -> Made:
    """Reinhard's tone curve by the mean of the logarithm of the luminance."""
    a = colour()
    bright = stage("bright", luma(a))
    p, q = Range("p", 0, a.extent.x), Range("q", 0, a.extent.y)
    rows = stage("rows", rsum(log(bright[p, y] + 1e-4), p), y)
    key = Stage("key")
    key[()] = exp(rsum(rows[q], q) / (float32(a.extent.x) * float32(a.extent.y)))
    scaled = stage("scaled", bright[x, y] * (0.18 / key[()]))
    curved = stage("curved", scaled[x, y] * (1.0 + scaled[x, y] / 4.0) / (1.0 + scaled[x, y]))
    return stage("mapped", clamp(a[x, y, c] * curved[x, y] / (bright[x, y] + 1e-4), 0.0, 1.0), x, y, c), a


@case(c=4)
def alpha_over() -> Made:
    """One image of bytes with alpha over another, interleaved."""
    a, b = colour("a", uint8, interleaved=True), colour("b", uint8, interleaved=True)
    alpha = stage("alpha", uint16(a[x, y, 3]))
    mixed = uint16(a[x, y, c]) * alpha[x, y] + uint16(b[x, y, c]) * (255 - alpha[x, y]) + 128
    return stage("over", uint8((mixed + (mixed >> 8)) >> 8), x, y, c, storage=(c, x, y))


@case()
def colour_difference() -> Made:
    """The distance of two images of linear light in L*a*b*."""
    a, b = colour("a"), colour("b")
    parts = []
    for f in (a, b):
        fx, fy, fz = (stage(f"f{d}{f.name}", _root(v)) for d, v in zip("xyz", _xyz(f), strict=True))
        parts.append((116.0 * fy[x, y], 500.0 * (fx[x, y] - fy[x, y]), 200.0 * (fy[x, y] - fz[x, y])))
    apart = [stage(f"d{d}", u - v) for d, u, v in zip("lab", *parts, strict=True)]
    return stage("distance", sqrt(total(f[x, y] ** 2 for f in apart)))


@case()
def statistics_transfer() -> Made:
    """Means and deviations of one image's channels, given to another (Reinhard's transfer of colour)."""
    a, b = colour("a"), colour("b")
    means, spreads = [], []
    for f in (a, b):
        p, q = Range("p", 0, f.extent.x), Range("q", 0, f.extent.y)
        count = float32(f.extent.x) * float32(f.extent.y)
        rows = stage(f"rows_{f.name}", rsum(f[p, y, c], p), y, c)
        squares = stage(f"squares_{f.name}", rsum(f[p, y, c] * f[p, y, c], p), y, c)
        mean = stage(f"mean_{f.name}", rsum(rows[q, c], q) / count, c)
        means.append(mean)
        square = rsum(squares[q, c], q) / count
        spreads.append(stage(f"spread_{f.name}", sqrt(maximum(square - mean[c] * mean[c], 1e-8)), c))
    moved = (a[x, y, c] - means[0][c]) * (spreads[1][c] / spreads[0][c]) + means[1][c]
    return stage("moved", moved, x, y, c), a, b
