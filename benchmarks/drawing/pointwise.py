"""Blocks of stages that change values where they are: colours, curves, tables, and several pictures into one."""

from __future__ import annotations

from benchmarks.drawing.canvas import BITS, MOST, C, Canvas, Picture, X, Y, added, converted
from tilesmith.scheduler.frontends.python.frontend import (
    Range,
    Term,
    Var,
    absd,
    clamp,
    exp,
    float32,
    int32,
    lerp,
    maximum,
    minimum,
    mux,
    power,
    rmax,
    rsum,
    sqrt,
    uint32,
)

I = Var("i")  # noqa: E741
LUMA = (77, 150, 29)
ENTRIES = 1024


def as_float(canvas: Canvas, p: Picture) -> Picture:
    """Integers as floats from 0 to 1."""
    return canvas.like(p, "real", float32(p.at()) * (1.0 / MOST[p.type]), type="float32")


def as_integers(canvas: Canvas, p: Picture, type: str) -> Picture:
    """Floats from 0 to 1 as integers, for an output."""
    most = float(MOST[type])
    return canvas.like(p, "level", converted(type, clamp(p.at() * most + 0.5, 0.0, most)), type=type)


def curve(canvas: Canvas, p: Picture) -> Picture:
    """A curve of floats as a formula; of integers as their inverse, or squared."""
    v, r = p.at(), canvas.random
    if not p.is_float:
        squared = converted(p.type, uint32(v) * uint32(v) >> BITS[p.type])
        return canvas.like(p, "curve", r.choice((squared, ~v, v - (v >> 2))))
    a = r.uniform(0.2, 0.8)
    shapes = (
        lambda: v * (1.0 + a + v * (v * a - 2.0 * a)),
        lambda: v * v * (3.0 - 2.0 * v),
        lambda: v * (1.0 + a) / (v + a),
        lambda: power(maximum(v, 0.001), 0.4545),
        lambda: sqrt(maximum(v, 0.0) + 0.001),
        lambda: 1.0 - exp(v * (-1.0 - a)),
        lambda: clamp((v - 0.5) * (1.0 + a) + 0.5, 0.0, 1.0),
        lambda: clamp(v * canvas.param("gain", 1.0 + a / 4, 0.0, 4.0), 0.0, 1.0),
    )
    return canvas.like(p, "curve", r.choice(shapes)())


def table(canvas: Canvas, p: Picture) -> Picture:
    """A curve as a table: of integers its entries, of floats what lies between two of them."""
    if p.is_float:
        at = Range(canvas.name("n"), 0, 3)
        entries = canvas.stage("table", [I], rsum(sqrt(float32(I) * (1.0 / ENTRIES) + float32(at)), at) / 4.2)
        place = canvas.like(p, "place", clamp(p.at(), 0.0, 1.0) * float(ENTRIES - 2))
        below = int32(clamp(place.at(), 0.0, float(ENTRIES - 2)))
        weight = clamp(place.at() - float32(below), 0.0, 1.0)
        return canvas.like(p, "looked_up", lerp(entries[below], entries[below + 1], weight))
    shift = 0 if p.type == "uint8" else canvas.random.choice((4, 6, 8))
    bits = (8 if p.type == "uint8" else 16) - shift
    most = float((256 if p.type == "uint8" else 65536) - 1)
    made = converted(p.type, sqrt(float32(I) * (1.0 / (1 << bits))) * most)
    entries = canvas.stage("table", [I], made)
    index = p.at() >> shift if shift else p.at()
    return canvas.like(p, "looked_up", entries[index])


def matrix(canvas: Canvas, p: Picture) -> Picture:
    """Colours by a matrix of rows that add up to one."""
    if p.channels < 3:
        return curve(canvas, p)
    rows = []
    for k in range(3):
        row = [canvas.random.randint(-60, 60) for _ in range(3)]
        row[k] += 256 - sum(row)
        rows.append(row)
    values: list[Term] = []
    for row in rows:
        if p.is_float:
            values.append(clamp(added([p.at(c=k) * (w / 256) for k, w in enumerate(row)]), 0.0, 1.0))
        else:
            values.append(canvas.cut(p, added([int32(p.at(c=k)) * w for k, w in enumerate(row)]) + 128 >> 8))
    if p.channels > 3:
        values.append(p.at(c=3))
    return canvas.like(p, "matrix", mux(C, *values))


def over_channels(canvas: Canvas, p: Picture) -> Picture:
    """One channel of all: luma, mean, or the greatest."""
    if p.channels == 1:
        return p
    k = Range(canvas.name("k"), 0, p.channels)
    if p.channels == 3 and canvas.random.random() < 0.6:
        value = added([p.wide(c=n, total=256) * (float(w) if p.is_float else w) for n, w in enumerate(LUMA)])
        return canvas.like(p, "luma", canvas.narrowed(p, value, 256), channels=1)
    if canvas.random.random() < 0.5:
        return canvas.like(p, "greatest", rmax(p.at(c=k), k), channels=1)
    value = rsum(p.wide(c=k, total=p.channels), k)
    return canvas.like(p, "mean_of_channels", canvas.narrowed(p, value, p.channels), channels=1)


def saturation(canvas: Canvas, p: Picture) -> Picture:
    """Colours farther from their luma."""
    if p.channels != 3 or not p.is_float:
        return matrix(canvas, p)
    grey = over_channels(canvas, p)
    return canvas.like(p, "saturated", clamp(lerp(grey.at(), p.at(), 0.75) + (p.at() - grey.at()) * 0.5, 0.0, 1.0))


def split_tone(canvas: Canvas, p: Picture) -> Picture:
    """Opponent colours and back: planes computed apart, each of its own stage."""
    if p.channels != 3:
        return curve(canvas, p)
    r, g, b = (p.signed(c=k) for k in range(3))
    y = canvas.temporary(p, "y", _quarter(p, r + g + g + b), channels=1)
    u, v = (canvas.temporary(p, n, w - g, channels=1).at() for n, w in (("u", b), ("v", r)))
    green = y.at() - _quarter(p, u + v)
    return canvas.like(p, "rgb", mux(C, *(canvas.cut(p, plane) for plane in (v + green, green, u + green))))


def _quarter(p: Picture, value: Term) -> Term:
    return value * 0.25 if p.is_float else value >> 2


def combined(canvas: Canvas, p: Picture, q: Picture) -> Picture:
    """Two pictures of one shape and type into one."""
    a, b, r = p.at(), q.at(), canvas.random
    if p.is_float:
        shapes = (
            lerp(a, b, r.choice((0.25, 0.5, 0.75))),
            maximum(a, b),
            minimum(a, b),
            clamp(a - b + 0.5, 0.0, 1.0),
            a * b * 0.5 + a * 0.5,
            clamp(a * 1.5 - b * 0.5, 0.0, 1.0),
            a / (b + 0.5) * 0.5,
        )
        return canvas.like(p, "combined", r.choice(shapes))
    mean = converted(p.type, p.wide() + q.wide() >> 1)
    return canvas.like(p, "combined", r.choice((mean, mean, maximum(a, b), minimum(a, b), absd(a, b))))


def masked(canvas: Canvas, p: Picture, q: Picture) -> Picture:
    """One where a mask of one channel is, the other elsewhere: the mask is the first one's luma, stretched."""
    if not p.is_float:
        return combined(canvas, p, q)
    grey = over_channels(canvas, p)
    mask = canvas.like(grey, "mask", clamp((grey.at() - 0.4) * 4.0, 0.0, 1.0))
    return canvas.like(p, "masked", lerp(p.at(), q.at(), mask.at()))


def transposed(canvas: Canvas, p: Picture) -> Picture:
    """Rows as columns, and back after a step along them."""
    across = canvas.like(p, "columns", p.at(Y, X))
    taps = [(-1, 0, 1), (0, 0, 2), (1, 0, 1)]
    smooth = canvas.weighted(across, "smoothed", taps)
    return canvas.like(p, "rows", smooth.at(Y, X))
