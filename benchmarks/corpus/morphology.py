"""Morphology and filters of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import EDGE, around, cv2, gray, ndimage, separable, shifted, stage, total, x, y
from tilesmith.language import Image, Stage, Term, maximum, minimum, rmax, rmin, sat_sub, select, uint8, uint16


def _box(side: int) -> Any:
    return np.ones((side, side), np.uint8)


def _flat(name: str, f: Image | Stage, radius: int, kind: Any) -> Stage:
    """The least or greatest of a square, by rows and columns."""
    p, q = around(radius)
    along = stage(f"{name}_x", kind(f[x + p, y], p))
    return stage(name, kind(along[x, y + q], q))


@case(lambda a: cv2.erode(a, _box(3), borderType=EDGE))
def erode_bytes() -> Made:
    """The least of 3 x 3 bytes."""
    return _flat("eroded", gray(type=uint8), 1, rmin)


@case(lambda a: cv2.dilate(a, _box(15), borderType=EDGE))
def dilate_15() -> Made:
    """The greatest of 15 x 15 bytes."""
    return _flat("dilated", gray(type=uint8), 7, rmax)


@case(lambda a: cv2.dilate(cv2.erode(a, _box(5), borderType=EDGE), _box(5), borderType=EDGE), apart=5e-3)
def opening() -> Made:
    """An opening of 16-bit images by 5 x 5."""
    return _flat("opened", _flat("eroded", gray(type=uint16), 2, rmin), 2, rmax)


_DISK = [(p, q) for q in range(-3, 4) for p in range(-3, 4) if p * p + q * q <= 10]


def _disk() -> Any:
    found = np.zeros((7, 7), np.uint8)
    for p, q in _DISK:
        found[q + 3, p + 3] = 1
    return found


@case(lambda a: cv2.erode(cv2.dilate(a, _disk(), borderType=EDGE), _disk(), borderType=EDGE), apart=5e-3)
def closing_by_disk() -> Made:
    """A closing by a disk of radius 3, of bytes."""
    a = gray(type=uint8)
    wide = stage("dilated", maximum(*(shifted(a, *at) for at in _DISK)))
    return stage("closed", minimum(*(shifted(wide, *at) for at in _DISK)))


@case(lambda a: cv2.subtract(cv2.dilate(a, _box(3), borderType=EDGE), cv2.erode(a, _box(3), borderType=EDGE)))
def morphological_gradient() -> Made:
    """Dilation less erosion, of floats."""
    a = gray()
    return stage("gradient", _flat("high", a, 1, rmax)[x, y] - _flat("low", a, 1, rmin)[x, y])


@case()
def white_top_hat() -> Made:
    """An image less its opening by 9 x 9."""
    a = gray(type=uint8)
    opened = _flat("opened", _flat("eroded", a, 4, rmin), 4, rmax)
    return stage("hat", sat_sub(a[x, y], opened[x, y]))


@case()
def hit_or_miss() -> Made:
    """Upper left corners of a binary image."""
    a = gray(type=uint8)
    on = stage("on", a[x, y] > 127)
    hit = on[x, y] & on[x + 1, y] & on[x, y + 1]
    miss = on[x - 1, y] | on[x, y - 1] | on[x - 1, y - 1]
    return stage("corner", select(hit & ~miss, uint8(255), uint8(0)))


@case()
def thinning() -> Made:
    """Two rounds of Zhang and Suen's thinning."""
    a = gray(type=uint8)
    now = stage("on", select(a[x, y] > 100, uint8(1), uint8(0)))
    for half in range(4):
        ring = [shifted(now, *at) for at in ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))]
        count = total(ring)
        turns = total(select((ring[d] == 0) & (ring[(d + 1) % 8] == 1), uint8(1), uint8(0)) for d in range(8))
        one, other = (ring[0] * ring[2] * ring[4], ring[2] * ring[4] * ring[6])
        if half % 2:
            one, other = (ring[0] * ring[2] * ring[6], ring[0] * ring[4] * ring[6])
        gone = (count >= 2) & (count <= 6) & (turns == 1) & (one == 0) & (other == 0)
        now = stage(f"thin{half}", select(gone, uint8(0), now[x, y]))
    return stage("skeleton", now[x, y] * 255)


@case()
def geodesic_dilation() -> Made:
    """Eight steps of a reconstruction: dilations of a marker under a mask."""
    mask = gray("mask", uint8)
    marker = gray("marker", uint8)
    now = stage("step0", minimum(marker[x, y], mask[x, y]))
    for step in range(1, 9):
        near = [shifted(now, *at) for at in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))]
        now = stage(f"step{step}", minimum(maximum(*near), mask[x, y]))
    return now


def _sorted(values: list[Term], *pairs: tuple[int, int]) -> list[Term]:
    found = list(values)
    for u, v in pairs:
        found[u], found[v] = minimum(found[u], found[v]), maximum(found[u], found[v])
    return found


@case(lambda a: cv2.medianBlur(a, 3))
def median_3x3() -> Made:
    """The median of 3 x 3 bytes: columns are sorted, then the middle ones."""
    a = gray(type=uint8)
    up, at, down = a[x, y - 1], a[x, y], a[x, y + 1]
    low = stage("low", minimum(up, at, down))
    high = stage("high", maximum(up, at, down))
    middle = stage("middle", maximum(minimum(up, at), minimum(maximum(up, at), down)))
    lows = maximum(low[x - 1, y], low[x, y], low[x + 1, y])
    highs = minimum(high[x - 1, y], high[x, y], high[x + 1, y])
    m0, m1, m2 = middle[x - 1, y], middle[x, y], middle[x + 1, y]
    middles = maximum(minimum(m0, m1), minimum(maximum(m0, m1), m2))
    return stage("median", maximum(minimum(lows, middles), minimum(maximum(lows, middles), highs)))


@case()
def majority() -> Made:
    """A binary image smoothed by the majority of 5 x 5."""
    a = gray(type=uint8)
    on = stage("on", select(a[x, y] > 127, uint8(1), uint8(0)))
    votes = separable("votes", on, [1] * 5)
    return stage("smooth", select(votes[x, y] > 12, uint8(255), uint8(0)))


_HILL = [[1.0 - 0.1 * (p * p + q * q) for p in (-1, 0, 1)] for q in (-1, 0, 1)]


@case(lambda a: ndimage.grey_dilation(a, structure=np.array(_HILL, np.float32), mode="nearest"))
def dilation_by_a_hill() -> Made:
    """A dilation by a structuring element that is not flat."""
    a = gray()
    shifts = [(p - 1, q - 1) for q in range(3) for p in range(3)]
    return stage("dilated", maximum(*(shifted(a, p, q) + _HILL[q + 1][p + 1] for p, q in shifts)))


@case(lambda a: ndimage.rank_filter(a, 1, footprint=_cross(), mode="nearest"))
def second_least() -> Made:
    """The second least of a cross of five."""
    a = gray(type=uint16)
    values = [shifted(a, *at) for at in ((0, -1), (-1, 0), (0, 0), (1, 0), (0, 1))]
    found = _sorted(values, (3, 4), (2, 3), (1, 2), (0, 1), (3, 4), (2, 3), (1, 2))
    return stage("second", found[1])


def _cross() -> Any:
    return np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)
