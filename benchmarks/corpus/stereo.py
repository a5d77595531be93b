"""Disparities of two views."""

from __future__ import annotations

from benchmarks.corpus.registry import Made, case
from benchmarks.corpus.words import around, c, gray, k, separable, shifted, stage, total, x, y
from tilesmith.language import (
    Image,
    Range,
    Stage,
    Term,
    absd,
    argmax,
    argmin,
    int32,
    maximum,
    minimum,
    mux,
    rmin,
    rsum,
    select,
    sqrt,
    uint8,
    uint16,
)


@case(x=960, y=540, k=32)
def sum_of_differences() -> Made:
    """Block matching over 32 disparities with windows of 9 x 9: the volume of costs and where it is least."""
    a, b = gray("a", uint8), gray("b", uint8)
    cost = stage("cost", uint16(absd(a[x, y], b[x - k, y])), x, y, k)
    p, q, r = *around(4), Range("r", 0, 32)
    along = stage("along", rsum(cost[x + p, y, k], p), x, y, k)
    box = stage("box", rsum(along[x, y + q, k], q), x, y, k)
    best = stage("best", argmin(box[x, y, r], r))
    return stage("disparity", uint8(best[x, y][0]))


def _census(name: str, f: Image) -> Stage:
    places = [(p, q) for q in (-1, 0, 1) for p in (-2, -1, 0, 1, 2) if (p, q) != (0, 0)]
    bits = [select(shifted(f, *at) < f[x, y], uint16(1 << d), uint16(0)) for d, at in enumerate(places)]
    return stage(name, total(bits))


def _ones(value: Term) -> Term:
    """How many bits of 16 are set."""
    v = value - ((value >> 1) & 0x5555)
    v = (v & 0x3333) + ((v >> 2) & 0x3333)
    v = (v + (v >> 4)) & 0x0F0F
    return (v + (v >> 8)) & 0x1F


@case(x=960, y=540, k=32)
def census_matching() -> Made:
    """The census of 5 x 3 of both views, how many bits differ at 32 disparities, in windows of 5 x 5."""
    one, other = _census("one", gray("a", uint8)), _census("other", gray("b", uint8))
    differ = stage("differ", one[x, y] ^ other[x - k, y], x, y, k)
    cost = stage("cost", _ones(differ[x, y, k]), x, y, k)
    p, q, r = *around(2), Range("r", 0, 32)
    along = stage("along", rsum(cost[x + p, y, k], p), x, y, k)
    box = stage("box", rsum(along[x, y + q, k], q), x, y, k)
    best = stage("best", argmin(box[x, y, r], r))
    return stage("disparity", uint8(best[x, y][0]))


@case(x=640, y=360, k=32)
def semi_global_path() -> Made:
    """The costs of semi-global matching along one path, downwards."""
    a, b = gray("a", uint8), gray("b", uint8)
    cost = stage("cost", uint16(absd(a[x, y], b[x - k, y])), x, y, k)
    d, q, r = Range("d", 0, 32), Range("q", 1, a.extent.y), Range("r", 0, 32)
    path = stage("path", cost[x, y, k], x, y, k)
    low = rmin(path[x, q - 1, r], r)
    near = minimum(path[x, q - 1, maximum(d - 1, 0)], path[x, q - 1, minimum(d + 1, 31)]) + 5
    path[x, q, d] = cost[x, q, d] + minimum(path[x, q - 1, d], near, low + 40) - low
    best = stage("best", argmin(path[x, y, r], r))
    return stage("disparity", uint8(best[x, y][0])), a


@case(apart=1e-4, x=640, y=360, k=24)
def normalised_correlation() -> Made:
    """The normalised correlation of windows of 7 x 7 at 24 disparities, and where it is greatest."""
    a, b = gray("a"), gray("b")
    means = {f.name: separable(f"m{f.name}", f, [1 / 7] * 7) for f in (a, b)}
    squares = {f.name: separable(f"s{f.name}", stage(f"q{f.name}", f[x, y] * f[x, y]), [1 / 7] * 7) for f in (a, b)}
    spread = {n_: stage(f"v{n_}", squares[n_][x, y] - means[n_][x, y] ** 2) for n_ in ("a", "b")}
    both = stage("both", a[x, y] * b[x - k, y], x, y, k)
    joint = separable("joint", both, [1 / 7] * 7, k)
    above = joint[x, y, k] - means["a"][x, y] * means["b"][x - k, y]
    score = stage("score", above / sqrt(spread["a"][x, y] * spread["b"][x - k, y] + 1e-6), x, y, k)
    r = Range("r", 0, 24)
    best = stage("best", argmax(score[x, y, r], r))
    return stage("disparity", uint8(best[x, y][0]))


@case()
def left_right_check() -> Made:
    """Disparities that the other view does not confirm are taken away."""
    left, right = gray("left", uint8), gray("right", uint8)
    there = right[x - int32(left[x, y] & 63), y]
    return stage("checked", select(absd(left[x, y] & 63, there & 63) <= 1, left[x, y], uint8(0)))


@case()
def depth_to_points() -> Made:
    """The normals of the surface that a depth image is."""
    a = gray()
    dx, dy = stage("dx", (a[x + 1, y] - a[x - 1, y]) * 200.0), stage("dy", (a[x, y + 1] - a[x, y - 1]) * 200.0)
    size = stage("size", 1.0 / sqrt(dx[x, y] ** 2 + dy[x, y] ** 2 + 1.0))
    return stage("normal", mux(c, -dx[x, y] * size[x, y], -dy[x, y] * size[x, y], size[x, y]), x, y, c)
