"""Regions of outputs to compute when the caller names none: the largest that the inputs allow.

A search over boxes that asks only one question, `query`: which regions of the inputs does this region
of the outputs need? A larger box never needs less, so each side is grown by itself, with bisection.
Sides that can grow without end (boundaries make any region possible) take the size of the largest input. An output
that has a boundary itself ends where its domain does: what lies beyond is a continuation, which only readers see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region, RegionError, Scalar, checked_params
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import InputBound, ParamRef
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.semantics import Array
from tilesmith.scheduler.rewrites.fuse_outputs import alike
from tilesmith.scheduler.rewrites.passes import normalise

Query: TypeAlias = Callable[[Mapping[str, Region]], Mapping[str, Region]]

_REACH = 64  # how many times the largest extent in sight a side may grow before it counts as unbounded


def largest_regions(pipeline: Pipeline, inputs: Mapping[str, Image], params: Mapping[str, Scalar]) -> dict[str, Region]:
    """`default_regions` by the analysis of the pipeline: nothing is compiled or run."""
    images = {name: tuple(zip(i.min, i.extent, strict=True)) for name, i in inputs.items()}
    values = {name: value.item() for name, value in checked_params(pipeline, params).items()}

    normal = normalise(pipeline)

    def query(regions: Mapping[str, Region]) -> Mapping[str, Region]:
        return required_regions(normal, regions, values, images)

    return default_regions(query, pipeline, images, values)


def default_regions(
    query: Query, pipeline: Pipeline, inputs: Mapping[str, Region], params: Mapping[str, Scalar]
) -> dict[str, Region]:
    """(min, extent) per dim of every output: its domain where it has a boundary, else the largest region whose needs
    the `inputs` ((min, extent) per dim) cover; outputs that are alike have the same one. `query` maps regions of
    outputs to the regions of inputs that they need.

    Raises RegionError, naming input and dim, where not even one point can be computed.
    """
    domains = {name: _domain(pipeline.stage(name), pipeline, inputs, params) for name in pipeline.outputs}
    return {
        name: region
        for names in alike(pipeline)
        for region in [domains[names[0]] or _Search(query, pipeline, inputs, names).largest()]
        for name in names
    }


def _domain(
    stage: Stage, pipeline: Pipeline, inputs: Mapping[str, Region], params: Mapping[str, Scalar]
) -> Region | None:
    """The domain of a stage's boundary for these inputs; None where it has none, or nothing lies in it."""
    if stage.boundary is None or stage.boundary.domain is None:
        return None

    def leaf(e: Leaf) -> Array:
        match e:
            case InputBound():
                low, extent = inputs[e.input][pipeline.input(e.input).dims.index(e.dim)]
                return np.asarray(low if e.which == "min" else extent, e.type.numpy)
            case ParamRef():
                return np.asarray(params[e.name], e.type.numpy)
            case _:
                raise InternalError(f"the domain of {stage.name} depends on data")

    ends = [tuple(int(evaluate(end, leaf)) for end in both) for both in stage.boundary.domain]
    return tuple((low, extent) for low, extent in ends) if all(extent > 0 for _, extent in ends) else None


@dataclass(slots=True)
class _Search:
    """The search for outputs that are alike; the others do not matter, since needs add up side by side."""

    query: Query
    pipeline: Pipeline
    inputs: Mapping[str, Region]
    outputs: tuple[str, ...]
    reach: int = field(init=False)

    def __post_init__(self) -> None:
        estimates = [self.pipeline.estimate(name) or () for name in (*self.inputs, self.outputs[0])]
        sizes = [extent for region in (*self.inputs.values(), *estimates) for _, extent in region]
        self.reach = _REACH * max((1, *sizes))

    def largest(self) -> Region:
        natural = self._natural()
        box = next((b for b in self._starts(natural) if self._fits(b)), None) or self._settle(natural)
        for dim in range(len(box)):
            box = self._grow(box, dim, natural[dim])
        return box

    def _natural(self) -> Region:
        """The size of the inputs: per dim that of the one that is largest in a dim of that name, as others are tables
        or coarser; else the estimate's."""
        estimate = self.pipeline.estimate(self.outputs[0])
        region = []
        for index, dim in enumerate(self.pipeline.stage(self.outputs[0]).dims):
            owners = (i for i in self.pipeline.inputs if dim in i.dims and i.name in self.inputs)
            sides = [self.inputs[i.name][i.dims.index(dim)] for i in owners]
            planned = estimate[index] if estimate else (0, 1)
            region.append(max(sides, key=lambda side: side[1], default=planned))
        return tuple(region)

    def _starts(self, natural: Region) -> Iterator[Region]:
        """Boxes that are likely to be possible, larger ones first."""
        estimate = self.pipeline.estimate(self.outputs[0]) or natural
        yield natural
        yield estimate
        for region in (natural, estimate):
            yield tuple((low + extent // 2, 1) for low, extent in region)
            yield tuple((low, 1) for low, _ in region)

    def _excess(self, box: Region) -> Iterator[tuple[str, int, int, int]]:
        """Per dim of each input that `box` needs: (input, dim, how far below its min, how far beyond its end)."""
        need = self.query(dict.fromkeys(self.outputs, box))
        for name, available in self.inputs.items():
            for dim, ((low, extent), (has, size)) in enumerate(zip(need.get(name, ()), available, strict=False)):
                if extent > 0:
                    yield name, dim, has - low, (low + extent) - (has + size)

    def _fits(self, box: Region) -> bool:
        return all(below <= 0 and beyond <= 0 for _, _, below, beyond in self._excess(box))

    def _settle(self, natural: Region) -> Region:
        """One point that is possible, by walking downhill from the middle, dim by dim; RegionError without one."""
        point = [low + extent // 2 for low, extent in natural]
        for _ in range(3):
            before = list(point)
            for dim in range(len(point)):
                point[dim] = self._least(point, dim)
            if point == before or self._fits(tuple((p, 1) for p in point)):
                break
        box = tuple((p, 1) for p in point)
        if not self._fits(box):
            raise self._impossible(box)
        return box

    def _distance(self, point: list[int], dim: int, value: int) -> int:
        """Shortfall of the inputs, summed over their sides, for what the point with `value` in `dim` needs."""
        box = tuple((value if d == dim else p, 1) for d, p in enumerate(point))
        return sum(max(0, below) + max(0, beyond) for _, _, below, beyond in self._excess(box))

    def _least(self, point: list[int], dim: int) -> int:
        """The coordinate in `dim` that falls least short: a ternary search, since the distance has one valley."""
        low, high = point[dim] - self.reach, point[dim] + self.reach
        while high - low > 2:
            third = (high - low) // 3
            if self._distance(point, dim, low + third) <= self._distance(point, dim, high - third):
                high -= third
            else:
                low += third
        return min(range(low, high + 1), key=lambda v: (self._distance(point, dim, v), v))

    def _grow(self, box: Region, dim: int, natural: tuple[int, int]) -> Region:
        """`box` with both sides of `dim` as far out as they go."""
        low, extent = box[dim]
        beyond = self._limit(lambda by: self._with(box, dim, low, extent + by))
        before = self._limit(lambda by: self._with(box, dim, low - by, extent + by))
        end = low + extent + beyond if beyond is not None else max(low + extent, natural[0] + natural[1])
        start = low - before if before is not None else min(low, natural[0])
        if beyond is None and before is None:
            start, end = natural[0], natural[0] + natural[1]
        return self._with(box, dim, start, end - start)

    @staticmethod
    def _with(box: Region, dim: int, low: int, extent: int) -> Region:
        return (*box[:dim], (low, extent), *box[dim + 1 :])

    def _limit(self, grown: Callable[[int], Region]) -> int | None:
        """The largest number of points that a side can grow by; None where it grows without end."""
        far = list(self._excess(grown(self.reach)))
        if all(below <= 0 and beyond <= 0 for _, _, below, beyond in far):
            return None
        fits, fails = 0, self.reach
        guess, step = self._guess(list(self._excess(grown(0))), far), 1
        while fails - fits > 1:
            guess = min(max(guess, fits + 1), fails - 1)
            if self._fits(grown(guess)):
                fits, guess, step = guess, guess + step, 2 * step
            else:
                fails, guess = guess, guess - 1 if step == 1 else (fits + guess) // 2
                step = 2
        return fits

    def _guess(self, near: list[tuple[str, int, int, int]], far: list[tuple[str, int, int, int]]) -> int:
        """Growth of a side if needs grow evenly between none and `reach`: an estimate, right for affine accesses."""
        reached = {(name, dim): (below, beyond) for name, dim, below, beyond in far}
        guesses = [
            -now * self.reach // (then - now)
            for name, dim, *sides in near
            for now, then in zip(sides, reached.get((name, dim), ()), strict=False)
            if then > now
        ]
        return min(guesses, default=0)

    def _impossible(self, box: Region) -> RegionError:
        need = self.query(dict.fromkeys(self.outputs, box))
        asked = " and ".join(self.outputs)
        for name, dim, below, beyond in self._excess(box):
            if below > 0 or beyond > 0:
                low, extent = need[name][dim]
                has, size = self.inputs[name][dim]
                return RegionError(
                    f"input {name} is too small, dim {self.pipeline.input(name).dims[dim]}: even one point of "
                    f"{asked} needs {low}..{low + extent - 1}, the image has {has}..{has + size - 1}: pass a larger one"
                )
        return RegionError(f"no region of {asked} can be computed from these inputs")
