"""Pipelines of dense linear algebra on images: layers of networks, products of matrices."""

from __future__ import annotations

from benchmarks.drawing.canvas import C, Canvas, Picture, X, Y, converted
from tilesmith.scheduler.frontends.python.frontend import Image, Range, Stage, Term, clamp, maximum, rmax, rsum

SIZES = ((128, 128, 16), (112, 112, 32), (64, 64, 32), (56, 56, 64), (32, 32, 64), (256, 256, 8), (240, 135, 16))
"""Width, height and channels of what layers work on."""
KINDS = ("dense", "dense", "depthwise", "pointwise", "pointwise", "pool")


def network(canvas: Canvas) -> list[Picture]:
    """Layers: convolutions with bias and rectifier, residual sums, pooling."""
    r = canvas.random
    canvas.width, canvas.height, channels = r.choice(SIZES)
    p = canvas.image("float32", channels, interleaved=r.random() < 0.4)
    quantised = r.random() < 0.2
    if quantised:
        return [_quantised(canvas)]
    for kind in [r.choice(KINDS) for _ in range(r.randint(2, 6))]:
        before = p
        p = _layer(canvas, p, kind)
        if p.like(before) and r.random() < 0.4:
            p = canvas.like(p, "residual", p.at() + before.at())
    return [p]


def _layer(canvas: Canvas, p: Picture, kind: str) -> Picture:
    i, j = Range(canvas.name("i"), 0, 3), Range(canvas.name("j"), 0, 3)
    if kind == "pool":
        if p.scale > 1:
            return p
        i, j = Range(canvas.name("i"), 0, 2), Range(canvas.name("j"), 0, 2)
        return canvas.like(p, "pooled", rmax(p.at(2 * X + i, 2 * Y + j), j, i), scale=p.scale + 1)
    k = Range(canvas.name("k"), 0, p.channels)
    bias = canvas.data("biases", "float32", p.channels)
    if kind == "depthwise":
        weights = canvas.data("weights", "float32", 3, 3, p.channels, 1)
        value = rsum(p.at(X + i - 1, Y + j - 1) * weights[i, j, C, 0], j, i)
    elif kind == "pointwise":
        weights = canvas.data("weights", "float32", 1, 1, p.channels, p.channels)
        value = rsum(p.at(c=k) * weights[0, 0, k, C], k)
    else:
        weights = canvas.data("weights", "float32", 3, 3, p.channels, p.channels)
        value = rsum(p.at(X + i - 1, Y + j - 1, k) * weights[i, j, k, C], k, j, i)
    total = canvas.like(p, kind, value)
    return canvas.like(p, "rectified", maximum(total.at() + bias[C] * 0.1, 0.0))


def _quantised(canvas: Canvas) -> Picture:
    """A convolution of bytes, its sums as 32-bit integers, and bytes again."""
    p = canvas.image("uint8", canvas.random.choice((8, 16, 32)))
    for _ in range(canvas.random.randint(1, 2)):
        weights = canvas.data("weights", "int8", 3, 3, p.channels, p.channels)
        i, j, k = (Range(canvas.name(n), 0, e) for n, e in (("i", 3), ("j", 3), ("k", p.channels)))
        product = converted("int32", p.at(X + i - 1, Y + j - 1, k)) * converted("int32", weights[i, j, k, C])
        total = canvas.like(p, "sums", rsum(product, k, j, i), type="int32")
        p = canvas.like(p, "bytes", converted("uint8", clamp((total.at() >> 11) + 128, 0, 255)))
    return p


def products(canvas: Canvas) -> list[Picture]:
    """A product of matrices, or of three, and what follows it value by value."""
    r = canvas.random
    n = r.choice((256, 384, 500, 512, 640))
    canvas.width = canvas.height = n
    a, b = (canvas.data("matrix", "float32", n, n) for _ in range(2))
    found = _product(canvas, a, b, n)
    if r.random() < 0.4:
        found = _product(canvas, found, canvas.data("matrix", "float32", n, n), n)
    p = Picture(found, "float32")
    if r.random() < 0.6:
        bias = canvas.data("biases", "float32", n)
        p = canvas.like(p, "rectified", maximum(p.at() - bias[X] * 0.5, 0.0))
    return [p]


def _product(canvas: Canvas, a: Image | Stage, b: Image, n: int) -> Stage:
    k = Range(canvas.name("k"), 0, n)
    value: Term = rsum(a[k, Y] * b[X, k], k) * (2.0 / n)
    return canvas.stage("product", [X, Y], value)
