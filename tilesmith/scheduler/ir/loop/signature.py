"""Signature of the C function that a loop program is: its images, scalars, and the tables that it has itself."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.scheduler.ir.pipeline.types import ScalarType


@dataclass(frozen=True, slots=True)
class Argument:
    """An image of the C function: an input, or one component of an output. `made_by` is the stage whose value the
    output is: another of that is asked for on the same region."""

    name: str
    c_name: str
    type: ScalarType
    dims: tuple[str, ...]
    storage: tuple[str, ...]
    output: bool
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Values of an input that the code has itself, for callers that pass none, in the order of its storage, dense: min,
    extent and stride by dim."""

    c_name: str
    type: ScalarType
    min: tuple[int, ...]
    extent: tuple[int, ...]
    stride: tuple[int, ...]
    values: tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar of the C function. What is computed relies on `min` <= value <= `max` where they are not None."""

    name: str
    c_name: str
    type: ScalarType
    min: int | float | None = None
    max: int | float | None = None
