"""Places: rotations, warps, enlargements, seams."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import EDGE, c, colour, cv2, gray, stage, total, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    absd,
    clamp,
    cos,
    exp,
    float32,
    floor,
    int32,
    lerp,
    maximum,
    minimum,
    round_,
    rsum,
    select,
    sin,
    uint8,
    uint32,
)


@case(lambda a: np.ascontiguousarray(a.T), x=1536, y=2560)
def transposed() -> Made:
    """Rows as columns."""
    a = gray(boundary=None)
    return stage("turned", a[y, x])


@case(lambda a: cv2.rotate(a, cv2.ROTATE_90_CLOCKWISE), x=1536, y=2560)
def quarter_turn() -> Made:
    """A quarter turn of bytes."""
    a = Image("a", uint8, x, y)
    turned = stage("turned", a[y, a.extent.y - 1 - x])
    return turned, Sized(a, own={"x": 2560, "y": 1536})


@case(lambda a: cv2.flip(a, -1))
def half_turn() -> Made:
    """A half turn of interleaved bytes."""
    a = colour(type=uint8, boundary=None, interleaved=True)
    return stage("turned", a[a.extent.x - 1 - x, a.extent.y - 1 - y, c], x, y, c, storage=(c, x, y)), a


def _between(f: Image | Stage, at_x: Term, at_y: Term, *rest: Term | int) -> Term:
    """The value between pixels, wherever that is."""
    fx, fy = floor(at_x), floor(at_y)
    px, py = clamp(int32(fx), -10000, 10000), clamp(int32(fy), -10000, 10000)
    wx, wy = clamp(at_x - fx, 0.0, 1.0), clamp(at_y - fy, 0.0, 1.0)
    one = lerp(f[(px, py, *rest)], f[(px + 1, py, *rest)], wx)
    return lerp(one, lerp(f[(px, py + 1, *rest)], f[(px + 1, py + 1, *rest)], wx), wy)


def _affine(a: Any) -> Any:
    matrix = np.array([[0.9, 0.2, -30.0], [-0.2, 0.9, 200.0]], np.float32)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(a, matrix, (a.shape[1], a.shape[0]), flags=flags, borderMode=EDGE)


@case(_affine, within=5e-2, apart=1e-3)
def affine_warp() -> Made:
    """An affine map, linear between pixels."""
    a = gray()
    fx, fy = float32(x), float32(y)
    at_x, at_y = stage("at_x", fx * 0.9 + fy * 0.2 - 30.0), stage("at_y", fy * 0.9 - fx * 0.2 + 200.0)
    return stage("warped", _between(a, at_x[x, y], at_y[x, y])), a


@case(apart=1e-4)
def perspective_warp() -> Made:
    """A perspective map of bytes, the nearest pixel."""
    a = colour(type=uint8, interleaved=True)
    fx, fy = float32(x), float32(y)
    d = stage("d", 1.0 / (fx * 1e-4 + fy * 5e-5 + 1.0))
    at_x = stage("at_x", int32(round_(clamp((fx * 1.05 + fy * 0.1 + 12.0) * d[x, y], -10000.0, 10000.0))))
    at_y = stage("at_y", int32(round_(clamp((fy * 1.1 - fx * 0.02 + 7.0) * d[x, y], -10000.0, 10000.0))))
    px, py = clamp(at_x[x, y], -10000, 10000), clamp(at_y[x, y], -10000, 10000)
    return stage("warped", a[px, py, c], x, y, c, storage=(c, x, y)), a


@case(within=1e-3)
def radial_undistortion() -> Made:
    """Brown's radial distortion taken away, linear between pixels."""
    a = colour()
    u, v = (float32(x) - 1280.0) / 1500.0, (float32(y) - 768.0) / 1500.0
    r2 = stage("r2", u * u + v * v)
    scale = stage("scale", (1.0 + r2[x, y] * (-0.2 + 0.05 * r2[x, y])) * 1500.0)
    at_x, at_y = stage("at_x", u * scale[x, y] + 1280.0), stage("at_y", v * scale[x, y] + 768.0)
    return stage("straight", _between(a, at_x[x, y], at_y[x, y], c), x, y, c), a


@case(x=1024, y=1024)
def polar_image() -> Made:
    """Rows as rays from the middle."""
    a = gray()
    half = float32(a.extent.x) * 0.5
    turn, reach = float32(y) * (6.2831853 / 1024), float32(x) * 0.5
    cosine, sine = stage("cosine", cos(turn), y), stage("sine", sin(turn), y)
    return stage("polar", _between(a, half + reach * cosine[y], half + reach * sine[y])), a


@case(within=1e-3)
def swirl() -> Made:
    """A turn that is less the farther from the middle."""
    a = gray()
    u, v = float32(x) - 1280.0, float32(y) - 768.0
    angle = stage("angle", 3.0 * exp(-(u * u + v * v) * 2e-6))
    cosine, sine = stage("cosine", cos(angle[x, y])), stage("sine", sin(angle[x, y]))
    at_x, at_y = u * cosine[x, y] - v * sine[x, y] + 1280.0, u * sine[x, y] + v * cosine[x, y] + 768.0
    return stage("turned", _between(a, at_x, at_y)), a


@case(lambda a: cv2.resize(a, None, fx=2, fy=2, interpolation=cv2.INTER_LINEAR), within=1e-3)
def twice_as_large() -> Made:
    """Twice as large, linear between pixels."""
    a = gray()
    side = 2 * (x % 2) - 1
    along = stage("along", 0.75 * a[x // 2, y] + 0.25 * a[x // 2 + side, y])
    return stage("large", 0.75 * along[x, y // 2] + 0.25 * along[x, y // 2 + 2 * (y % 2) - 1]), Sized(a, 0.5)


@case(lambda a: cv2.resize(a, None, fx=3, fy=3, interpolation=cv2.INTER_NEAREST), x=2400, y=1500)
def thrice_as_large() -> Made:
    """Every pixel of bytes nine times."""
    a = colour(type=uint8, interleaved=True)
    return stage("large", a[x // 3, y // 3, c], x, y, c, storage=(c, x, y)), Sized(a, 1 / 3)


_CUBIC = ((-0.03515625, 0.26171875, 0.87890625, -0.10546875), (-0.10546875, 0.87890625, 0.26171875, -0.03515625))


@case(lambda a: cv2.resize(a, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC), within=1e-3)
def twice_as_large_cubic() -> Made:
    """Twice as large, cubic between pixels."""
    a = gray()
    taps = [select((x % 2) == 0, _CUBIC[0][d], _CUBIC[1][d]) * a[x // 2 + (x % 2) + d - 2, y] for d in range(4)]
    along = stage("along", total(taps))
    down = [select((y % 2) == 0, _CUBIC[0][d], _CUBIC[1][d]) * along[x, y // 2 + (y % 2) + d - 2] for d in range(4)]
    return stage("large", total(down)), Sized(a, 0.5)


def _remapped(a: Any, u: Any, v: Any) -> Any:
    return cv2.remap(a, u * 2000, v * 1200, cv2.INTER_LINEAR, borderMode=EDGE)


@case(_remapped, within=5e-2, apart=1e-3)
def remap_by_images() -> Made:
    """An image sampled at the places that two others say."""
    a, u, v = gray("a"), gray("u"), gray("v")
    return stage("mapped", _between(a, u[x, y] * 2000.0, v[x, y] * 1200.0)), a


@case()
def mosaic() -> Made:
    """Blocks of 16 x 16 as their means."""
    a = gray(type=uint8)
    p, q = Range("p", 0, 16), Range("q", 0, 16)
    mean = stage("mean", uint8(rsum(uint32(a[16 * x + p, 16 * y + q]), q, p) >> 8))
    return stage("mosaic", mean[x // 16, y // 16])


@case(x=1600, y=1200)
def seam_energy() -> Made:
    """The least energy of a seam from the top to each pixel (seam carving)."""
    a = gray(type=uint8)
    across, down = absd(a[x + 1, y], a[x - 1, y]), absd(a[x, y + 1], a[x, y - 1])
    energy = stage("energy", int32(across) + int32(down))
    p, q = Range("p", 0, a.extent.x), Range("q", 1, a.extent.y)
    least = stage("least", energy[x, y])
    left, right = maximum(p - 1, 0), minimum(p + 1, a.extent.x - 1)
    least[p, q] = energy[p, q] + minimum(least[left, q - 1], least[p, q - 1], least[right, q - 1])
    return least, a
