"""The canvas that a random pipeline is drawn on: names, sizes, inputs, and pictures that blocks of stages make of
pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tilesmith.scheduler.frontends.python import frontend
from tilesmith.scheduler.frontends.python.frontend import Boundary, Image, Param, Stage, Term, Type, Var, clamp
from tilesmith.scheduler.frontends.python.terms import Operand

X, Y, C = Var("x"), Var("y"), Var("c")
TYPES = {name: getattr(frontend, name) for name in ("uint8", "uint16", "int16", "int32", "uint32", "float32")}
BITS = {"uint8": 8, "uint16": 16}
MOST = {"uint8": 255, "uint16": 65535}
SIGNED = {"uint8": "int16", "uint16": "int32", "int16": "int32", "int32": "int32", "float32": "float32"}
"""The type that differences are taken in."""
BOUNDARIES = (*3 * (frontend.repeat_edge,), frontend.mirror_image, frontend.mirror_interior, *2 * (None,))


@dataclass(frozen=True)
class Picture:
    """An image or stage with dims x, y and, with more than one channel, c. Its integers are unsigned and use all of
    their type, floats lie between 0 and 1. `scale`: it is so many times halved."""

    source: Image | Stage
    type: str
    channels: int = 1
    scale: int = 0

    @property
    def is_float(self) -> bool:
        return self.type == "float32"

    @property
    def dims(self) -> tuple[Var, ...]:
        return (X, Y, C) if self.channels > 1 else (X, Y)

    def at(self, x: Operand = X, y: Operand = Y, c: Operand = C) -> Term:
        return self.source[(x, y, c) if self.channels > 1 else (x, y)]

    def wide(self, x: Operand = X, y: Operand = Y, c: Operand = C, total: int = 2) -> Term:
        """A value in a type that `total` times as much fits, and that many sums of it."""
        if self.is_float:
            return self.at(x, y, c)
        narrow = (total - 1).bit_length() + BITS[self.type] <= 16
        return converted("uint16" if narrow else "uint32", self.at(x, y, c))

    def signed(self, x: Operand = X, y: Operand = Y, c: Operand = C) -> Term:
        """A value in a type that has differences of it."""
        return self.at(x, y, c) if self.is_float else converted(SIGNED[self.type], self.at(x, y, c))

    def like(self, other: Picture) -> bool:
        return (self.channels, self.scale) == (other.channels, other.scale)


def converted(name: str, term: Term) -> Term:
    converts: Type = TYPES[name]
    return converts(term)


@dataclass
class Canvas:
    """The pipeline as far as it is drawn."""

    random: Random
    width: int
    height: int
    images: list[Image] = field(default_factory=list)
    estimates: dict[Image | Stage | str, list[tuple[int, int]]] = field(default_factory=dict)
    stages: int = 0
    boundary: Boundary | None = None
    _named: int = 0

    def name(self, kind: str) -> str:
        self._named += 1
        return f"{kind}_{self._named}"

    def size(self, scale: int = 0) -> tuple[int, int]:
        return max(self.width >> scale, 1), max(self.height >> scale, 1)

    def image(self, type: str, channels: int, interleaved: bool = False) -> Picture:
        """A new input of the full size."""
        dims = (X, Y, C) if channels > 1 else (X, Y)
        storage = (C, X, Y) if channels > 1 and interleaved else None
        image = Image(self.name("image"), TYPES[type], *dims, boundary=self.boundary, storage=storage)
        if self.boundary is not None:
            self.estimates[image] = self.region(Picture(image, type, channels))
        self.images.append(image)
        return Picture(image, type, channels)

    def data(self, kind: str, type: str, *extents: int) -> Image:
        """A new input that is no picture: weights, matrices."""
        image = Image(self.name(kind), frontend.__dict__[type], *(Var(d) for d in "ijkl"[: len(extents)]))
        self.estimates[image] = [(0, n) for n in extents]
        self.images.append(image)
        return image

    def param(self, kind: str, default: float, low: float, high: float) -> Param:
        return Param(self.name(kind), frontend.float32, default=default, min=low, max=high)

    def region(self, p: Picture) -> list[tuple[int, int]]:
        width, height = self.size(p.scale)
        return [(0, width), (0, height), (0, p.channels)][: len(p.dims)]

    def stage(self, kind: str, dims: Sequence[Var], value: Operand | tuple[Operand, ...], **more: Any) -> Stage:
        made = Stage(self.name(kind), **more)
        made[tuple(dims)] = value
        self.stages += 1
        return made

    def like(self, p: Picture, kind: str, value: Operand, **changed: Any) -> Picture:
        """A picture of the same shape as `p` but for what is `changed`."""
        shape = replace(p, **changed)
        return replace(shape, source=self.stage(kind, shape.dims, value))

    def temporary(self, p: Picture, kind: str, value: Operand, **changed: Any) -> Picture:
        """A picture of differences, which have the type that is for them."""
        return self.like(p, kind, value, type=SIGNED[p.type], **changed)

    def cut(self, p: Picture, value: Term) -> Term:
        """A float or a difference as a value of the picture `p`: what is beyond stops at the ends."""
        return clamp(value, 0.0, 1.0) if p.is_float else converted(p.type, clamp(value, 0, MOST[p.type]))

    def narrowed(self, p: Picture, value: Term, total: int) -> Term:
        """A sum of `wide` values over the total of its weights, rounded, in the type of the picture."""
        if p.is_float:
            return value * (1.0 / total)
        shifts = total & (total - 1) == 0
        rounded = value + total // 2
        return converted(p.type, rounded >> total.bit_length() - 1 if shifts else rounded // total)

    def weighted(self, p: Picture, kind: str, taps: Sequence[tuple[int, int, int]]) -> Picture:
        """The picture whose values are means: (dx, dy, weight) of each."""
        total = sum(abs(w) for _, _, w in taps)
        terms = []
        for dx, dy, w in taps:
            value = p.wide(X + dx if dx else X, Y + dy if dy else Y, total=total)
            terms.append(value if w == 1 else value * (float(w) if p.is_float else w))
        return self.like(p, kind, self.narrowed(p, added(terms), total))


def added(terms: Sequence[Term]) -> Term:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
