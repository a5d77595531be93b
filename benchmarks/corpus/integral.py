"""Sums of all that is above and to the left, and what is made of them."""

from __future__ import annotations

import numpy as np

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import cv2, gray, stage, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    float32,
    float64,
    int32,
    maximum,
    minimum,
    sat_uint8,
    select,
    sqrt,
    uint8,
    uint16,
)


def _table(name: str, value: Term, a: Image) -> Stage:
    """The summed-area table of a value, over the extents of an image."""
    p, q = Range("p", 1, a.extent.x), Range("q", 1, a.extent.y)
    rows = stage(f"{name}_x", value)
    rows[p, y] = rows[p - 1, y] + rows[p, y]
    table = stage(name, rows[x, y])
    table[x, q] = table[x, q - 1] + table[x, q]
    return table


def _corner(f: Stage, at_x: Term, at_y: Term) -> Term:
    """The table's value, 0 before its first point."""
    return select((at_x < 0) | (at_y < 0), 0, f[maximum(at_x, 0), maximum(at_y, 0)])


def _box(f: Stage, a: Image, left: int, up: int, right: int, down: int) -> Term:
    """The sum of a rectangle around a point, within the image."""
    x0, x1 = maximum(x + left, 0) - 1, minimum(x + right, a.extent.x - 1)
    y0, y1 = maximum(y + up, 0) - 1, minimum(y + down, a.extent.y - 1)
    return _corner(f, x1, y1) - _corner(f, x0, y1) - _corner(f, x1, y0) + _corner(f, x0, y0)


@case(lambda a: cv2.integral(a)[1:, 1:])
def summed_area_table() -> Made:
    """The summed-area table of bytes."""
    a = gray(type=uint8)
    return _table("table", int32(a[x, y]), a), a


@case(lambda a: tuple(f[1:, 1:] for f in cv2.integral2(a, sdepth=cv2.CV_32S, sqdepth=cv2.CV_64F)))
def integral_of_squares() -> Made:
    """The tables of bytes and of their squares."""
    a = gray(type=uint8)
    value = float64(a[x, y])
    return _table("table", int32(a[x, y]), a), _table("squares", value * value, a), a


@case(lambda a: np.cumsum(np.cumsum(a, 1, dtype=np.float32), 0, dtype=np.float32), within=1e-3)
def summed_area_of_floats() -> Made:
    """The summed-area table of floats."""
    a = gray()
    return _table("table", a[x, y], a), a


@case(x=1920, y=1080)
def wide_box_by_table() -> Made:
    """The mean of up to 61 x 61 within the image, by a table."""
    a = gray(type=uint8)
    table = _table("table", int32(a[x, y]), a)
    width = minimum(x + 30, a.extent.x - 1) - maximum(x - 30, 0) + 1
    height = minimum(y + 30, a.extent.y - 1) - maximum(y - 30, 0) + 1
    return stage("mean", sat_uint8(float32(_box(table, a, -30, -30, 30, 30)) / float32(width * height) + 0.5)), a


@case(x=1920, y=1080)
def haar_features() -> Made:
    """Three features of rectangles, as Viola and Jones have them."""
    a = gray(type=uint8)
    t_ = _table("table", int32(a[x, y]), a)
    left, right = stage("left", _box(t_, a, -12, -12, -1, 11)), stage("right", _box(t_, a, 0, -12, 11, 11))
    up, down = stage("up", _box(t_, a, -12, -12, 11, -1)), stage("down", _box(t_, a, -12, 0, 11, 11))
    inner = stage("inner", _box(t_, a, -4, -12, 3, 11))
    both = left[x, y] + right[x, y]
    return (
        stage("vertical", left[x, y] - right[x, y]), stage("horizontal", up[x, y] - down[x, y]),
        stage("line", both - 3 * inner[x, y]), a,
    )  # fmt: skip


@case(x=1920, y=1080)
def local_deviation() -> Made:
    """The deviation of 31 x 31 by two tables of integers."""
    a = gray(type=uint8)
    sums = _table("sums", int32(a[x, y]), a)
    squares = _table("squares", int32(a[x, y]) * int32(a[x, y]), a)
    mean = stage("mean", float32(_box(sums, a, -15, -15, 15, 15)) * (1.0 / 961))
    square = stage("square", float32(_box(squares, a, -15, -15, 15, 15)) * (1.0 / 961))
    return stage("deviation", sqrt(maximum(square[x, y] - mean[x, y] * mean[x, y], 0.0))), a


@case(lambda a: np.cumsum(a, 1, dtype=np.int32))
def running_sums_of_rows() -> Made:
    """The running sums of 16-bit rows."""
    a = gray(type=uint16)
    p = Range("p", 1, a.extent.x)
    sums = stage("sums", int32(a[x, y]))
    sums[p, y] = sums[p - 1, y] + sums[p, y]
    return sums, a


@case(lambda a: np.maximum.accumulate(a, 0))
def running_maximum_of_columns() -> Made:
    """The greatest so far of each column of floats."""
    a = gray()
    q = Range("q", 1, a.extent.y)
    high = stage("high", a[x, y])
    high[x, q] = maximum(high[x, q - 1], high[x, q])
    return high, a
