"""Blocks of stages at several scales: pyramids, wavelets, butterflies of rows."""

from __future__ import annotations

from benchmarks.drawing.canvas import MOST, SIGNED, Canvas, Picture, X, Y, added, converted
from benchmarks.drawing.stencils import gaussian
from tilesmith.scheduler.frontends.python.frontend import Term, Var, clamp, mux, select


def halved(canvas: Canvas, p: Picture) -> Picture:
    """Half the size, by a box or by 1 3 3 1."""
    if canvas.random.random() < 0.5:
        value = added([p.wide(2 * X + i, 2 * Y + j, total=4) for j in (0, 1) for i in (0, 1)])
        return canvas.like(p, "half", canvas.narrowed(p, value, 4), scale=p.scale + 1)
    taps = ((-1, 1), (0, 3), (1, 3), (2, 1))
    across = added([p.wide(2 * X + i, Y, total=8) * (float(w) if p.is_float else w) for i, w in taps])
    narrow = canvas.like(p, "half_x", canvas.narrowed(p, across, 8), scale=p.scale + 1)
    down = added([narrow.wide(X, 2 * Y + j, total=8) * (float(w) if p.is_float else w) for j, w in taps])
    return canvas.like(narrow, "half_y", canvas.narrowed(p, down, 8))


def doubled(canvas: Canvas, p: Picture) -> Picture:
    """Twice the size: the nearest, or three quarters of it and a quarter of the next."""
    if canvas.random.random() < 0.3:
        return canvas.like(p, "double", p.at(X // 2, Y // 2), scale=p.scale - 1)
    near, far = (3.0, 1.0) if p.is_float else (3, 1)
    across = p.wide(X // 2, Y, total=4) * near + p.wide(X // 2 - 1 + 2 * (X % 2), Y, total=4) * far
    wide = canvas.like(p, "double_x", canvas.narrowed(p, across, 4), scale=p.scale - 1)
    down = wide.wide(X, Y // 2, total=4) * near + wide.wide(X, Y // 2 - 1 + 2 * (Y % 2), total=4) * far
    return canvas.like(wide, "double_y", canvas.narrowed(p, down, 4))


def smooth(canvas: Canvas, p: Picture) -> Picture:
    """A wide blur: down some levels, and up again."""
    levels = canvas.random.randint(1, 4)
    q = p
    for _ in range(levels):
        q = halved(canvas, q)
    for _ in range(levels):
        q = doubled(canvas, q)
    return q


def details(canvas: Canvas, p: Picture) -> Picture:
    """A Laplacian pyramid with its levels weighted, and put together again."""
    if not p.is_float:
        return smooth(canvas, p)
    levels = [p]
    for _ in range(canvas.random.randint(2, 4)):
        levels.append(halved(canvas, levels[-1]))
    result = levels[-1]
    for level in reversed(levels[:-1]):
        up, coarse = doubled(canvas, result), doubled(canvas, _below(levels, level))
        weight = canvas.random.choice((0.5, 1.5))
        result = canvas.like(level, "detail", up.at() + (level.at() - coarse.at()) * weight)
    return canvas.like(result, "collapsed", canvas.cut(result, result.at()))


def _below(levels: list[Picture], level: Picture) -> Picture:
    return levels[levels.index(level) + 1]


def shrunk(canvas: Canvas, p: Picture) -> Picture:
    """Half the size for good."""
    return halved(canvas, gaussian(canvas, p, 1) if canvas.random.random() < 0.4 else p)


def haar(canvas: Canvas, p: Picture) -> list[Picture]:
    """The four bands of a step of Haar's wavelet: sums and differences of even and odd rows and columns."""
    a, b = p.signed(2 * X, Y), p.signed(2 * X + 1, Y)
    sums = (("low", a + b), ("high", a - b))
    rows = [canvas.temporary(p, name, _halved(p, value), scale=p.scale + 1) for name, value in sums]
    bands = []
    for row in rows:
        a, b = row.at(X, 2 * Y), row.at(X, 2 * Y + 1)
        bands += [canvas.like(row, "band", _halved(p, value)) for value in (a + b, a - b)]
    return bands


def _halved(p: Picture, value: Term) -> Term:
    return value * 0.5 if p.is_float else value >> 1


def lifted(canvas: Canvas, p: Picture) -> list[Picture]:
    """The four bands of a step of the 5/3 wavelet by lifting, rows first: odd ones less the mean of their neighbours,
    even ones more a quarter of these."""

    rows = _lifting_step(canvas, p, X)
    return [band for row in rows for band in _lifting_step(canvas, row, Y)]


def _lifting_step(canvas: Canvas, p: Picture, along: Var) -> tuple[Picture, Picture]:
    def at(k: Term) -> Term:
        return p.signed(k, Y) if along is X else p.signed(X, k)

    odd = at(2 * along + 1) - _halved(p, at(2 * along) + at(2 * along + 2))
    high = canvas.temporary(p, "odd", odd, scale=p.scale + (along is X))
    around = high.at() + (high.at(X - 1, Y) if along is X else high.at(X, Y - 1))
    update = around * 0.25 if p.is_float else around + 2 >> 2
    low = canvas.temporary(p, "even", at(2 * along) + converted(SIGNED[p.type], update), scale=p.scale + (along is X))
    return low, high


def denoised(canvas: Canvas, p: Picture) -> Picture:
    """Haar's bands, the small differences cut away, and back: every other row and column of it from other bands."""
    low, lh, hl, hh = haar(canvas, p)
    cut = []
    for band in (lh, hl, hh):
        limit = 0.25 if p.is_float else MOST[p.type] // 4
        cut.append(canvas.like(band, "kept", clamp(band.at(), -limit, limit)))
    x, y = X // 2, Y // 2
    a, b, c, d = (q.at(x, y) for q in (low, *cut))
    top = select(X % 2 == 0, a + c, a - c)
    step = select(X % 2 == 0, b + d, b - d)
    value = select(Y % 2 == 0, top + step, top - step)
    return canvas.like(p, "whole", canvas.cut(p, value))


def butterflies(canvas: Canvas, p: Picture) -> Picture:
    """Walsh and Hadamard's transform of blocks of rows, as steps that add and subtract strided rows; the signs back."""
    if not p.is_float:
        return denoised(canvas, p)
    steps = canvas.random.choice((2, 3))
    block = 1 << steps
    rows = [canvas.like(p, "row", p.at(X, block * Y + k)) for k in range(block)]
    for s in range(steps):
        pairs = [(rows[k & ~(1 << s)].at(), rows[k | 1 << s].at(), k >> s & 1) for k in range(block)]
        rows = [canvas.like(p, "wing", (a - b if minus else a + b) * 0.5) for a, b, minus in pairs]
    spread = mux(Y % block, *(row.at(X, Y // block) for row in rows))
    return canvas.like(p, "transformed", canvas.cut(p, spread * 0.5 + 0.25))
