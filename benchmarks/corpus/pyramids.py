"""Pyramids and scale spaces."""

from __future__ import annotations

import math

from benchmarks.corpus.registry import Made, Sized, case
from benchmarks.corpus.words import (
    c,
    colour,
    column,
    cv2,
    gaussian,
    gray,
    row,
    separable,
    shifted,
    stage,
    total,
    window,
    x,
    y,
)
from tilesmith.language import Image, Stage, clamp, exp, lerp, maximum, mirror_interior, select, uint8, uint16

_BINOMIAL = [0.0625, 0.25, 0.375, 0.25, 0.0625]


def _half(name: str, f: Image | Stage) -> Stage:
    """Smoothed and every second pixel."""
    along = stage(f"{name}_x", total(w * f[2 * x + d - 2, y] for d, w in enumerate(_BINOMIAL)))
    return stage(name, total(w * along[x, 2 * y + d - 2] for d, w in enumerate(_BINOMIAL)))


def _twice(name: str, f: Stage) -> Stage:
    """Twice as large, linear between pixels."""
    side = 2 * (x % 2) - 1
    along = stage(f"{name}_x", 0.75 * f[x // 2, y] + 0.25 * f[x // 2 + side, y])
    return stage(name, 0.75 * along[x, y // 2] + 0.25 * along[x, y // 2 + 2 * (y % 2) - 1])


@case(lambda a: cv2.pyrDown(a), x=1280, y=768)
def pyramid_step() -> Made:
    """A step down of a Gaussian pyramid."""
    a = gray(boundary=mirror_interior)
    return _half("half", a), Sized(a, 2)


@case(x=320, y=192)
def gaussian_pyramid() -> Made:
    """Three steps down, each an output."""
    a = gray()
    one = _half("one", a)
    two = _half("two", one)
    three = _half("three", two)
    return Sized(one, 4), Sized(two, 2), three, Sized(a, 8)


@case()
def laplacian_pyramid() -> Made:
    """Four levels of details and what is left, put together again with details made stronger."""
    a = gray()
    levels: list[Image | Stage] = [a]
    for d in range(4):
        levels.append(_half(f"g{d + 1}", levels[-1]))
    now = levels[-1]
    assert isinstance(now, Stage)
    for d in reversed(range(4)):
        coarse = levels[d + 1]
        assert isinstance(coarse, Stage)
        detail = stage(f"d{d}", levels[d][x, y] - _twice(f"u{d}", coarse)[x, y])
        now = stage(f"r{d}", _twice(f"w{d}", now)[x, y] + detail[x, y] * 1.5)
    return now


@case(apart=1e-5)
def scale_space_extrema() -> Made:
    """An octave of SIFT: five Gaussians, their differences, and what is greater than its 26 neighbours."""
    a = gray()
    smooth: list[Stage] = []
    for d in range(5):
        sigma = 1.6 * 2 ** (d / 2)
        smooth.append(separable(f"g{d}", a, gaussian(sigma, round(2.5 * sigma))))
    dogs = [stage(f"dog{d}", smooth[d + 1][x, y] - smooth[d][x, y]) for d in range(4)]
    found = []
    for d in (1, 2):
        near = [shifted(f, p, q) for f in dogs[d - 1 : d + 2] for q in (-1, 0, 1) for p in (-1, 0, 1)]
        highest = stage(f"high{d}", maximum(*near))
        found.append(select((dogs[d][x, y] == highest[x, y]) & (dogs[d][x, y] > 0.01), uint8(d), uint8(0)))
    return stage("extrema", maximum(*found))


@case(x=1280, y=768)
def exposure_fusion() -> Made:
    """Two exposures, weighted by contrast and how well they are exposed, blended in three levels."""
    images = [gray("a"), gray("b")]
    weights = []
    for f in images:
        contrast = stage(f"contrast_{f.name}", abs(window(f, [[0, 1, 0], [1, -4, 1], [0, 1, 0]])))
        apart = f[x, y] - 0.5
        weights.append(stage(f"w_{f.name}", contrast[x, y] * exp(-(apart * apart) * 12.5) + 1e-4))
    first: Stage = stage("share", weights[0][x, y] / (weights[0][x, y] + weights[1][x, y]))
    shares, levels = [first], [[f] for f in (stage("a0", images[0][x, y]), stage("b0", images[1][x, y]))]
    for d in (1, 2):
        shares.append(_half(f"share{d}", shares[-1]))
        for name, of in zip("ab", levels, strict=True):
            of.append(_half(f"{name}{d}", of[-1]))
    now = stage("top", lerp(levels[1][2][x, y], levels[0][2][x, y], clamp(shares[2][x, y], 0.0, 1.0)))
    for d in (1, 0):
        one, other = (of[d][x, y] - _twice(f"{n_}u{d}", of[d + 1])[x, y] for n_, of in zip("ab", levels, strict=True))
        mixed = stage(f"mixed{d}", lerp(other, one, clamp(shares[d][x, y], 0.0, 1.0)))
        now = stage(f"sum{d}", _twice(f"up{d}", now)[x, y] + mixed[x, y])
    return now


@case(x=160, y=96)
def mean_pyramid_of_bytes() -> Made:
    """Four levels of means of 2 x 2 of interleaved bytes (mip maps)."""
    a = colour(type=uint8, interleaved=True)
    levels: list[Image | Stage] = [a]
    for d in range(1, 5):
        sums = total(uint16(levels[-1][2 * x + p, 2 * y + q, c]) for q in (0, 1) for p in (0, 1))
        levels.append(stage(f"level{d}", uint8((sums + 2) >> 2), x, y, c, storage=(c, x, y)))
    return *(Sized(f, 2 ** (3 - d)) for d, f in enumerate(levels[1:])), Sized(a, 16)


@case()
def steerable_bands() -> Made:
    """Four oriented second derivatives of a Gaussian, steered from three, and what is left."""
    a, g = gray(), gaussian(1.2, 4)
    g2 = [w * ((d - 4) ** 2 / 1.2**4 - 1 / 1.2**2) for d, w in enumerate(g)]
    g1 = [w * (d - 4) / 1.2**2 for d, w in enumerate(g)]
    r0, r1, r2 = (stage(f"r{d}", row(a, w)) for d, w in enumerate((g, g1, g2)))
    xx, xy, yy = stage("xx", column(r2, g)), stage("xy", column(r1, g1)), stage("yy", column(r0, g2))
    bands = []
    for d in range(4):
        u, v = math.cos(math.pi * d / 4), math.sin(math.pi * d / 4)
        bands.append(stage(f"band{d}", u * u * xx[x, y] + 2 * u * v * xy[x, y] + v * v * yy[x, y]))
    return *bands, stage("low", column(r0, g))
