"""Blocks of stages that run over a whole picture: histograms, running sums, recursive filters, means."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.drawing.canvas import MOST, C, Canvas, Picture, X, Y, converted
from benchmarks.drawing.pointwise import I, over_channels, table
from tilesmith.scheduler.frontends.python.frontend import Range, Term, clamp, rmax, rsum, sqrt, uint32


def equalised(canvas: Canvas, p: Picture) -> Picture:
    """A histogram, its running sum, and the table that they make."""
    if p.type != "uint8":
        return table(canvas, p)
    grey = over_channels(canvas, p)
    width, height = canvas.size(p.scale)
    rx, ry = Range(canvas.name("rx"), 0, width), Range(canvas.name("ry"), 0, height)
    histogram = canvas.stage("histogram", [I], uint32(0))
    histogram.update(grey.at(rx, ry), histogram[grey.at(rx, ry)] + 1)
    total = canvas.stage("total", [I], histogram[I])
    b = Range(canvas.name("b"), 1, 256)
    total.update(b, total[b - 1] + total[b])
    levels = canvas.stage("levels", [I], converted("uint8", total[I] // (width * height // 255 + 1)))
    return canvas.like(p, "equalised", levels[p.at()])


def integral_box(canvas: Canvas, p: Picture) -> Picture:
    """The mean of a wide window from four corners of an integral image."""
    if p.channels > 1 or p.type != "uint8":
        return recursive(canvas, p)
    width, height = canvas.size(p.scale)
    radius = canvas.random.choice((5, 12, 25))
    rows = canvas.stage("rows", [X, Y], uint32(p.at()))
    rx = Range(canvas.name("rx"), 1, width)
    rows.update((rx, Y), rows[rx - 1, Y] + rows[rx, Y])
    sums = canvas.stage("sums", [X, Y], rows[X, Y])
    ry = Range(canvas.name("ry"), 1, height)
    sums.update((X, ry), sums[X, ry - 1] + sums[X, ry])

    def ends(v: Term, size: int) -> tuple[Term, Term]:
        return clamp(v - radius - 1, 0, size - 1), clamp(v + radius, 0, size - 1)

    (left, right), (top, bottom) = ends(X, width), ends(Y, height)
    total = sums[right, bottom] - sums[left, bottom] - sums[right, top] + sums[left, top]
    return canvas.like(p, "window", converted("uint8", total // (2 * radius + 1) ** 2))


def recursive(canvas: Canvas, p: Picture) -> Picture:
    """A first-order recursive filter, there and back, down columns or along rows."""
    if not p.is_float:
        return centred(canvas, p)
    width, height = canvas.size(p.scale)
    down = canvas.random.random() < 0.6
    size = height if down else width
    a = canvas.random.choice((0.5, 0.7, 0.9))
    for back in (False, True)[: canvas.random.choice((1, 2, 2))]:
        stage = canvas.stage("recursive", p.dims, p.at())
        made = replace(p, source=stage)
        r = Range(canvas.name("r"), 1, size)
        here = size - 1 - r if back else r
        before = here + 1 if back else here - 1

        def at(k: Term, q: Picture = made) -> Term:
            return q.at(X, k) if down else q.at(k, Y)

        place = (X, here, C) if down else (here, Y, C)
        stage.update(place[: len(p.dims)], at(here) * (1.0 - a) + at(before) * a)
        p = made
    return p


def centred(canvas: Canvas, p: Picture) -> Picture:
    """Every row less its mean."""
    width, _ = canvas.size(p.scale)
    r = Range(canvas.name("r"), 0, width)
    value = rsum(uint32(p.at(r)), r) // width
    dims = (Y, C) if p.channels > 1 else (Y,)
    means = canvas.stage("means", dims, value)
    less = p.signed() - converted("int32", means[dims if p.channels > 1 else Y]) + (MOST[p.type] // 2)
    return canvas.like(p, "centred", canvas.cut(p, less))


def normalised(canvas: Canvas, p: Picture) -> Picture:
    """Every value relative to mean and spread of the whole picture, or to its greatest value."""
    if not p.is_float:
        return centred(canvas, p)
    width, height = canvas.size(p.scale)
    grey = over_channels(canvas, p)
    rx, ry = Range(canvas.name("rx"), 0, width), Range(canvas.name("ry"), 0, height)
    if canvas.random.random() < 0.5:
        most = canvas.stage("most", [], rmax(grey.at(rx, ry), ry, rx))
        return canvas.like(p, "scaled", canvas.cut(p, p.at() / (most[()] + 0.01)))
    area = 1.0 / (width * height)
    rows = canvas.stage("row_sums", [Y], rsum(grey.at(rx, Y), rx))
    squares = canvas.stage("row_squares", [Y], rsum(grey.at(rx, Y) * grey.at(rx, Y), rx))
    mean = canvas.stage("mean", [], rsum(rows[ry], ry) * area)
    square = canvas.stage("square", [], rsum(squares[ry], ry) * area)
    spread = sqrt(clamp(square[()] - mean[()] * mean[()], 0.0, 1.0) + 0.01)
    return canvas.like(p, "scaled", canvas.cut(p, (p.at() - mean[()]) / spread * 0.25 + 0.5))
