"""Facts of the images and scalars that a Halide pipeline is given: what its own data leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.scheduler.frontends.halide.serialized import HalideType


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Facts of a live ImageParam (or Buffer): estimates of (min, extent) and the stride asked for, by dim."""

    type: HalideType
    estimates: tuple[tuple[int | None, int | None], ...]
    strides: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ParamFacts:
    """Facts of a live Param."""

    type: HalideType
    default: int | float | bool | None
    least: int | float | None
    most: int | float | None
