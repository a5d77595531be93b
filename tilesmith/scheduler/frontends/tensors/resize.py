"""Images in another size: nearest, linear and cubic interpolation, axis by axis; coordinates are exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilesmith.scheduler.frontends.tensors.graph import Graph
from tilesmith.scheduler.frontends.tensors.sizes import Size
from tilesmith.scheduler.frontends.tensors.tensor import Pointwise, Refused, Tensor, affine, axes

_LARGEST = 1 << 20  # of the numbers in a fraction of coordinates, whose products have to fit 32 bits


@dataclass(frozen=True, slots=True)
class Resampling:
    """Points along one axis: the point `k` of the result lies at `(k * step + start) / parts` of the source."""

    size: Size
    step: int
    start: int
    parts: int

    def at(self, dim: str, more: int = 0) -> str:
        """The numerator of the place of `dim`, plus `more`."""
        return affine((dim, self.step), (self.start + more, 1))


def resampling(own: Size, size: Size, scale: Fraction, mode: str) -> Resampling:
    """The points for a coordinate transformation mode of ONNX; `scale` is that from source to result."""
    inverse = 1 / scale
    match mode:
        case "half_pixel":
            step, start = inverse, inverse / 2 - Fraction(1, 2)
        case "pytorch_half_pixel":
            step, start = (inverse, inverse / 2 - Fraction(1, 2)) if size.estimate > 1 else (Fraction(0), Fraction(0))
        case "asymmetric":
            step, start = inverse, Fraction(0)
        case "align_corners":
            if not (own.known and size.known):
                raise Refused("align_corners of a size that is not known", "fix the sizes of the model's inputs")
            step, start = Fraction(own.estimate - 1, max(size.estimate - 1, 1)), Fraction(0)
        case _:
            raise Refused(f"the coordinate transformation mode {mode}")
    parts = (step.denominator * start.denominator) // _common(step.denominator, start.denominator)
    found = Resampling(size, int(step * parts), int(start * parts), parts)
    if max(found.parts, found.step) > _LARGEST:
        raise Refused(f"a scale of {float(scale)}, which is no fraction of small numbers")
    return found


def _common(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


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
    double = Resampling(p.size, 2 * p.step, 2 * p.start, 2 * p.parts)
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
    return f"(float32(({p.at(axes(len(x.shape))[axis])}) % {p.parts}) / {float(p.parts)})"


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
