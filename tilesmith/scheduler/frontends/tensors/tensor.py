"""Tensors of a tensor program: constants, what a stage or input holds, and what is not a stage yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.tensors.sizes import Shape, Size, shape_of

DIMS: Final[tuple[tuple[str, ...], ...]] = (
    (), ("x",), ("x", "y"), ("x", "y", "c"), ("x", "y", "c", "n"), ("x", "y", "z", "c", "n"),
)  # fmt: skip
"""Names of the dims of stages by rank, the last axis first: images are N, C, H, W."""


class Refused(TilesmithError):
    """An operation that no pipeline can say, with the reason; `hint` is a remedy."""

    code = "not_expressible"

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A tensor of values that are known. `hint` is the name that its input is to have, `order` that of its axes in
    memory, the fastest first; () is the last axis first."""

    array: np.ndarray[Any, np.dtype[Any]]
    hint: str = "constant"
    order: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        return self.array.dtype.name

    @property
    def shape(self) -> Shape:
        return shape_of(self.array.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A tensor that an input or a stage holds. `order` are the axes that its dims are, the fastest in memory first;
    axes of one element may be left out."""

    name: str
    type: str
    shape: Shape
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise:
    """A tensor that is not a stage yet: `text` is its value at the dims of its rank, so that one reader which computes
    point by point has it in its own expression."""

    text: str
    type: str
    shape: Shape
    hint: str = "stage"


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Sizes as data, of which some are only known at a call: a vector, or a `single` one without axes."""

    sizes: tuple[Size, ...]
    single: bool
    type: str = "int64"

    @property
    def shape(self) -> Shape:
        return () if self.single else shape_of([len(self.sizes)])


Tensor: TypeAlias = Constant | Named | Pointwise | Extents


def axes(rank: int) -> tuple[str, ...]:
    """The dims of a stage in the order of the axes. Refused where there are too many."""
    if rank >= len(DIMS):
        raise Refused(f"a tensor of {rank} axes, at most {len(DIMS) - 1} can be said")
    return DIMS[rank][::-1]


def affine(*terms: tuple[str | int, int | str]) -> str:
    """A sum of products as an index: `(variable, factor)`, or `(number, 1)`."""
    text = ""
    for value, factor in terms:
        if value == 0 or factor == 0:
            continue
        negative = isinstance(value, int) and value < 0
        shown = str(abs(value)) if isinstance(value, int) else value
        part = shown if factor == 1 else f"{shown} * {factor}"
        text += f" {'-' if negative else '+'} {part}" if text else ("-" if negative else "") + part
    return text or "0"
