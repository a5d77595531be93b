"""Blocks of stages that look around: filters, edges, order statistics, and places that data say."""

from __future__ import annotations

from benchmarks.drawing.canvas import C, Canvas, Picture, X, Y, added, converted
from benchmarks.drawing.pointwise import over_channels
from tilesmith.scheduler.frontends.python.frontend import (
    Range,
    Term,
    absd,
    clamp,
    float32,
    int32,
    lerp,
    maximum,
    minimum,
    mux,
    rmax,
    rmin,
    rsum,
    sqrt,
)

BINOMIAL = {1: (1, 2, 1), 2: (1, 4, 6, 4, 1), 3: (1, 6, 15, 20, 15, 6, 1)}
Taps = list[tuple[int, int, int]]


def gaussian(canvas: Canvas, p: Picture, radius: int | None = None) -> Picture:
    """A binomial filter, by rows and columns or at once."""
    n = radius or canvas.random.choice((1, 1, 2, 3))
    weights = BINOMIAL[n]
    if n < 3 and canvas.random.random() < 0.3:
        taps = [(i - n, j - n, a * b) for j, b in enumerate(weights) for i, a in enumerate(weights)]
        return canvas.weighted(p, "gauss", taps)
    across: Taps = [(i - n, 0, w) for i, w in enumerate(weights)]
    down: Taps = [(0, i - n, w) for i, w in enumerate(weights)]
    first, second = canvas.random.choice(((across, down), (down, across)))
    return canvas.weighted(canvas.weighted(p, "gauss_1", first), "gauss_2", second)


def box(canvas: Canvas, p: Picture) -> Picture:
    """A mean of a window as reductions, separable or not."""
    n = canvas.random.choice((1, 1, 2, 3, 4))
    side = 2 * n + 1
    i, j = Range(canvas.name("i"), -n, n + 1), Range(canvas.name("j"), -n, n + 1)
    if canvas.random.random() < 0.4:
        value = rsum(p.wide(X + i, Y + j, total=side * side), j, i)
        return canvas.like(p, "box", canvas.narrowed(p, value, side * side))
    first = canvas.like(p, "box_x", canvas.narrowed(p, rsum(p.wide(X + i, Y, total=side), i), side))
    return canvas.like(p, "box_y", canvas.narrowed(p, rsum(first.wide(X, Y + j, total=side), j), side))


def chain(canvas: Canvas, p: Picture) -> Picture:
    """Small filters one after the other."""
    cross: Taps = [(0, 0, 4), (-1, 0, 1), (1, 0, 1), (0, -1, 1), (0, 1, 1)]
    square: Taps = [(a, b, 1 + (a == 0) + (b == 0)) for b in (-1, 0, 1) for a in (-1, 0, 1)]
    taps = canvas.random.choice((cross, square))
    for _ in range(canvas.random.randint(3, 8)):
        p = canvas.weighted(p, "step", taps)
    return p


def convolution(canvas: Canvas, p: Picture) -> Picture:
    """A window weighted by an input."""
    if not p.is_float:
        return gaussian(canvas, p, 3)
    n = canvas.random.choice((1, 2, 3))
    i, j = Range(canvas.name("i"), 0, 2 * n + 1), Range(canvas.name("j"), 0, 2 * n + 1)
    weights = canvas.data("weights", "float32", 2 * n + 1, 2 * n + 1)
    value = rsum(p.at(X + i - n, Y + j - n) * weights[i, j], j, i)
    return canvas.like(p, "convolved", value * (2.0 / (2 * n + 1) ** 2))


def edges(canvas: Canvas, p: Picture) -> Picture:
    """Sobel's gradients and their magnitude."""
    two = 2.0 if p.is_float else 2

    def side(dx: int, dy: int) -> Term:
        a, b, c = (p.signed(X + (dx or k), Y + (dy or k)) for k in (-1, 0, 1))
        return a + b * two + c

    gx = canvas.temporary(p, "gx", side(1, 0) - side(-1, 0)).at()
    gy = canvas.temporary(p, "gy", side(0, 1) - side(0, -1)).at()
    if p.is_float:
        return canvas.like(p, "edges", canvas.cut(p, sqrt(gx * gx + gy * gy + 0.001) * 0.25))
    size = converted("int32", maximum(gx, -gx)) + converted("int32", maximum(gy, -gy))
    return canvas.like(p, "edges", canvas.cut(p, size >> 2))


def corners(canvas: Canvas, p: Picture) -> Picture:
    """Products of gradients, their sums in a window, and a response: several readers of every stage."""
    if not p.is_float:
        return edges(canvas, p)
    ix = canvas.like(p, "ix", (p.at(X + 1) - p.at(X - 1)) * 0.5)
    iy = canvas.like(p, "iy", (p.at(X, Y + 1) - p.at(X, Y - 1)) * 0.5)
    sums = []
    for name, a, b in (("xx", ix, ix), ("yy", iy, iy), ("xy", ix, iy)):
        product = canvas.like(p, name, a.at() * b.at())
        around = [product.at(X + i, Y + j) for j in (-1, 0, 1) for i in (-1, 0, 1)]
        sums.append(canvas.like(p, f"sum_{name}", added(around)).at())
    xx, yy, xy = sums
    return canvas.like(p, "corners", canvas.cut(p, (xx * yy - xy * xy) / ((xx + yy) * (xx + yy) + 0.0001) * 4.0))


def sharpened(canvas: Canvas, p: Picture) -> Picture:
    """The source with the details that a blur takes away added again."""
    smooth = gaussian(canvas, p) if canvas.random.random() < 0.6 else box(canvas, p)
    if p.is_float:
        strength = canvas.random.choice((0.5, 1.0, 2.0))
        return canvas.like(p, "sharp", canvas.cut(p, p.at() + (p.at() - smooth.at()) * strength))
    return canvas.like(p, "sharp", canvas.cut(p, int32(p.at()) * 2 - int32(smooth.at())))


def morphology(canvas: Canvas, p: Picture) -> Picture:
    """Least and greatest values of windows: opened, closed, or their difference."""
    n = canvas.random.choice((1, 2, 3))

    def extreme(q: Picture, greatest: bool) -> Picture:
        i, j = Range(canvas.name("i"), -n, n + 1), Range(canvas.name("j"), -n, n + 1)
        over = rmax if greatest else rmin
        if canvas.random.random() < 0.3:
            return canvas.like(q, "window", over(q.at(X + i, Y + j), j, i))
        row = canvas.like(q, "window_x", over(q.at(X + i), i))
        return canvas.like(q, "window_y", over(row.at(X, Y + j), j))

    if canvas.random.random() < 0.4:
        return canvas.like(p, "range", extreme(p, True).at() - extreme(p, False).at())
    first = canvas.random.random() < 0.5
    return extreme(extreme(p, first), not first)


def median(canvas: Canvas, p: Picture) -> Picture:
    """The median of 3 x 3 by sorted columns: the least of the greatest, the middle of the middles, the greatest of the
    least, and of these the middle."""
    a, b, c = (p.at(X, Y + dy) for dy in (-1, 0, 1))
    low = canvas.like(p, "low", minimum(a, minimum(b, c)))
    high = canvas.like(p, "high", maximum(a, maximum(b, c)))
    mid = canvas.like(p, "mid", _middle(a, b, c))
    row = (-1, 0, 1)
    least = maximum(low.at(X - 1), maximum(low.at(X), low.at(X + 1)))
    most = minimum(high.at(X - 1), minimum(high.at(X), high.at(X + 1)))
    middle = _middle(*(mid.at(X + dx) for dx in row))
    return canvas.like(p, "median", _middle(least, middle, most))


def _middle(a: Term, b: Term, c: Term) -> Term:
    return maximum(minimum(a, b), minimum(maximum(a, b), c))


def bilateral(canvas: Canvas, p: Picture) -> Picture:
    """Neighbours weighted by how near their values are."""
    if not p.is_float:
        return median(canvas, p)
    n = canvas.random.choice((1, 2))
    values, weights = [], []
    for j in range(-n, n + 1):
        for i in range(-n, n + 1):
            v = p.at(X + i, Y + j)
            d = v - p.at()
            w = 1.0 / (1.0 + d * d * 20.0 + 0.2 * (i * i + j * j))
            values.append(v * w)
            weights.append(w)
    if canvas.random.random() < 0.5:
        return canvas.like(p, "bilateral", added(values) / added(weights))
    top, bottom = canvas.like(p, "weighted", added(values)), canvas.like(p, "weights", added(weights))
    return canvas.like(p, "bilateral", top.at() / bottom.at())


def diffusion(canvas: Canvas, p: Picture) -> Picture:
    """Steps of an edge-preserving diffusion."""
    if not p.is_float:
        return chain(canvas, p)
    for _ in range(canvas.random.randint(2, 5)):
        flow = []
        for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            d = p.at(X + dx, Y + dy) - p.at()
            flow.append(d / (1.0 + d * d * 10.0))
        p = canvas.like(p, "diffused", p.at() + added(flow) * 0.2)
    return p


def census(canvas: Canvas, p: Picture) -> Picture:
    """The number of neighbours whose values are near: sums of differences at several places."""
    if p.is_float:
        return bilateral(canvas, p)
    terms = [
        converted("uint32", absd(p.at(X + dx, Y + dy), p.at(X - dx, Y - dy)))
        for dx, dy in ((1, 0), (0, 1), (1, 1), (-1, 1), (2, 0), (0, 2), (2, 1), (1, 2))
    ]
    return canvas.like(p, "differences", converted(p.type, added(terms) >> 3))


def warped(canvas: Canvas, p: Picture) -> Picture:
    """The picture at places that a displacement says, linearly between rows and columns."""
    width, height = canvas.size(p.scale)
    grey = over_channels(canvas, p)
    if not p.is_float:
        shift = 6 if p.type == "uint8" else 14
        moved = clamp(X + int32(grey.at() >> shift), 0, width - 1)
        return canvas.like(p, "warped", p.at(moved, clamp(Y + 1, 0, height - 1)))
    place = canvas.like(grey, "place", clamp(float32(X) + grey.at() * 3.0, 0.0, float(width - 2)))
    below = int32(clamp(place.at(), 0.0, float(width - 2)))
    weight = clamp(place.at() - float32(below), 0.0, 1.0)
    return canvas.like(p, "warped", lerp(p.at(below), p.at(below + 1), weight))


def local_contrast(canvas: Canvas, p: Picture) -> Picture:
    """Values relative to mean and spread of a window."""
    if not p.is_float:
        return sharpened(canvas, p)
    mean = box(canvas, p)
    square = canvas.like(p, "squared", p.at() * p.at())
    spread = box(canvas, square)
    deviation = sqrt(maximum(spread.at() - mean.at() * mean.at(), 0.0) + 0.01)
    return canvas.like(p, "normal", canvas.cut(p, (p.at() - mean.at()) / deviation * 0.25 + 0.5))


def demosaiced(canvas: Canvas, p: Picture) -> Picture:
    """Three planes of half the size from the sites of a mosaic, put together at the full size."""
    if p.channels > 1:
        return edges(canvas, p)
    half = p.scale + 1
    sites = [
        canvas.like(p, n, p.at(2 * X + dx, 2 * Y + dy), scale=half)
        for n, dx, dy in (("g0", 0, 0), ("r", 1, 0), ("b", 0, 1), ("g1", 1, 1))
    ]
    green = canvas.like(sites[0], "green", canvas.narrowed(p, sites[0].wide() + sites[3].wide(), 2))
    back = [q.at(X // 2, Y // 2) for q in (sites[1], green, sites[2])]
    return canvas.like(p, "colours", mux(C, *back), channels=3)
