"""Images in another size: nearest, linear and cubic interpolation, axis by axis; coordinates are exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import Size, fixed
from tilesmith.scheduler.frontends.tensors.tensor import Pointwise, Refused, Tensor, affine, axes

_LARGEST = 1 << 20  # of the numbers in a fraction of coordinates, whose products have to fit 32 bits


@dataclass(frozen=True, slots=True)
class Resampling:
    """Points along one axis: the point `k` of the result lies at `(k * step + start) / parts` of the source."""

    size: Size
    step: Size
    start: Size
    parts: Size

    def at(self, dim: str, more: Size | None = None) -> str:
        """The numerator of the place of `dim`, plus `more`."""
        start = self.start if more is None else self.start + more
        moved = dim if self.step == fixed(1) else f"{dim} * {self.step}"
        return affine((moved, 1), (start.estimate if start.known else start.text, 1))


def resampling(own: Size, size: Size, scale: Fraction | None, mode: str) -> Resampling:
    """The points for a coordinate transformation mode of ONNX; `scale` is that from source to result, None where it is
    that of the sizes."""
    source, result = (own, size) if scale is None else (fixed(scale.denominator), fixed(scale.numerator))
    match mode:
        case "pytorch_half_pixel" if size == fixed(1):
            found = Resampling(size, fixed(0), fixed(0), fixed(1))
        case "half_pixel" | "pytorch_half_pixel":
            found = Resampling(size, source * 2, source - result, result * 2)
        case "asymmetric":
            found = Resampling(size, source, fixed(0), result)
        case "align_corners":
            found = Resampling(size, own - 1, fixed(0), size - 1 if size.estimate > 1 else fixed(1))
        case _:
            raise Refused(f"the coordinate transformation mode {mode}")
    return _reduced(found)


def _reduced(points: Resampling) -> Resampling:
    parts = (points.step, points.start, points.parts)
    if not all(p.known for p in parts):
        return points
    common = gcd(*(p.estimate for p in parts)) or 1
    step, start, whole = (fixed(p.estimate // common) for p in parts)
    if max(whole.estimate, step.estimate) > _LARGEST:
        raise Refused("a scale that is no fraction of small numbers")
    return Resampling(points.size, step, start, whole)


def scale_of(value: float) -> Fraction:
    """A scale as the fraction that it stands for."""
    if not 0 < value < 1 << 16:
        raise Refused(f"a scale of {value}")
    return Fraction(value).limit_denominator(4096)


def resize(
    graph: Graph, x: Tensor, points: Sequence[Resampling | None], mode: str, rounding: str = "floor", a: float = -0.75
) -> Tensor:
    """The tensor at the points along each axis, None where it stays; beyond its ends it is continued. Of `nearest`,
    `rounding` is the nearest mode of ONNX; of `cubic`, `a` is the coefficient."""
    result = x
    chosen = [(axis, p) for axis, p in enumerate(points) if p is not None]
    if mode == "nearest":
        return _nearest(graph, result, dict(chosen), rounding)
    for axis, p in reversed(chosen):
        taps = _linear if mode == "linear" else _cubic
        result = graph.named(taps(graph, result, axis, p, a))
    return result


def _nearest(graph: Graph, x: Tensor, points: dict[int, Resampling], rounding: str) -> Tensor:
    dims, shape = axes(len(x.shape)), list(x.shape)
    indices = list(dims)
    for axis, p in points.items():
        shape[axis] = p.size
        indices[axis] = _inside(_rounded(p, dims[axis], rounding), x.shape[axis])
    return Pointwise(graph.read(graph.named(x), indices), x.type, tuple(shape), "resize")


def _rounded(p: Resampling, dim: str, rounding: str) -> str:
    double = Resampling(p.size, p.step * 2, p.start * 2, p.parts * 2)
    match rounding:
        case "floor":
            return f"({p.at(dim)}) // {p.parts}"
        case "ceil":
            return f"({p.at(dim, p.parts - 1)}) // {p.parts}"
        case "round_prefer_ceil":
            return f"({double.at(dim, p.parts)}) // {double.parts}"
        case "round_prefer_floor":
            return f"({double.at(dim, p.parts - 1)}) // {double.parts}"
    raise Refused(f"the nearest mode {rounding}")


def _inside(index: str, size: Size) -> str:
    return f"clamp({index}, 0, {size - 1})"


def _read(graph: Graph, x: Tensor, axis: int, p: Resampling, offset: int) -> str:
    indices = list(axes(len(x.shape)))
    place = f"({p.at(indices[axis])}) // {p.parts}"
    indices[axis] = _inside(place if offset == 0 else affine((place, 1), (offset, 1)), x.shape[axis])
    return graph.read(graph.named(x), indices)


def _shape(x: Tensor, axis: int, size: Size) -> tuple[Size, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])


def _fraction(x: Tensor, axis: int, p: Resampling) -> str:
    """The distance from the point before, from 0 to 1."""
    whole = f"{float(p.parts.estimate)}" if p.parts.known else f"float32({p.parts})"
    return f"(float32(({p.at(axes(len(x.shape))[axis])}) % {p.parts}) / {whole})"


def _linear(graph: Graph, x: Tensor, axis: int, p: Resampling, _: float) -> Tensor:
    before, after = (_read(graph, x, axis, p, k) for k in (0, 1))
    t = _fraction(x, axis, p)
    return Pointwise(f"{before} + ({after} - {before}) * {t}", x.type, _shape(x, axis, p.size), "resize")


def _cubic(graph: Graph, x: Tensor, axis: int, p: Resampling, a: float) -> Tensor:
    """Keys's cubic convolution."""
    t = _fraction(x, axis, p)

    def near(d: str) -> str:
        return f"((({a + 2}) * {d} - ({a + 3})) * {d} * {d} + 1.0)"

    def far(d: str) -> str:
        return f"(((({a}) * {d} - ({5 * a})) * {d} + ({8 * a})) * {d} - ({4 * a}))"

    factors = (far(f"({t} + 1.0)"), near(t), near(f"(1.0 - {t})"), far(f"(2.0 - {t})"))
    terms = [f"{_read(graph, x, axis, p, k)} * {f}" for k, f in zip((-1, 0, 1, 2), factors, strict=True)]
    return Pointwise(" + ".join(terms), x.type, _shape(x, axis, p.size), "resize")
