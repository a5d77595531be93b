"""Estimated boxes: what every stage and input is computed or read on, at the sizes that the pipeline estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.bounds_inference import (
    Box,
    Interval,
    bound_symbol,
    domain_intervals,
    interval_of,
    number_of,
    param_symbol,
    settled_box,
    told,
    variables,
)
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, InputBound, ParamRef, RVar, map_children
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import INT32

Bounds = tuple[int, int]
Region = tuple[Bounds, ...]
WIDEST = 1 << 30


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimated bounds: the `regions` of stages and inputs, (min, extent) per dim, and the runtime `symbols` that
    bounds are made of. `dims` are those of every stage and input."""

    regions: dict[str, Region]
    symbols: dict[str, int]
    dims: dict[str, tuple[str, ...]]

    def range_of(self, r: RVar) -> Bounds:
        """(min, extent) of a reduction variable; extent 1 where nothing says how many there are."""
        if isinstance(r.lo, Const) and isinstance(r.extent, Const):
            return int(r.lo.value), max(int(r.extent.value), 1)
        try:
            lo, extent = interval_of(r.lo, {})[0].value(self.symbols), interval_of(r.extent, {})[1].value(self.symbols)
        except KeyError:
            return 0, 1
        return lo, max(extent, 1)

    def trips(self, r: RVar) -> int:
        """Iterations of a reduction variable."""
        return self.range_of(r)[1]

    def with_sizes(self, e: Expr) -> Expr:
        """`e` with the values of its integer params and of the bounds of inputs, as far as they are estimated."""
        if isinstance(e, ParamRef) and not e.type.is_float:
            value = self.symbols.get(param_symbol(e.name))
            return e if value is None else Const(value, e.type)
        if isinstance(e, InputBound):
            value = self.symbols.get(bound_symbol(e.input, e.which, e.dim))
            return e if value is None else Const(value, e.type)
        return map_children(e, self.with_sizes)


def estimated_regions(pipeline: Pipeline) -> dict[str, Region]:
    """The `regions` of `estimates`."""
    return estimates(pipeline).regions


def estimates(pipeline: Pipeline, stage_accesses: Mapping[str, tuple[StageAccess, ...]] | None = None) -> Estimates:
    """The boxes of every live stage and every input that is read, at the estimated output sizes; stages with updates
    are computed on their settled boxes.

    `pipeline` is normalised. A dim whose range follows from nothing known has the document's own estimate for it; one
    of an input is as an output's dim of that name; others have extent 1. An estimate of a stage or input that the
    document has widens what is inferred. Of an input without one that has a boundary what is around the outputs is
    filled in; inputs are as large as their boxes, where edges of rows or reductions over an input depend on the size.
    Raises ScheduleError where a place is needed that no int32 names.
    """
    symbols = symbols_of(pipeline, dict(pipeline.estimates))
    accesses_of = {s.name: accesses(s) for s in pipeline.stages} if stage_accesses is None else stage_accesses
    found, unknown = _boxes(pipeline, accesses_of, symbols)
    for image in pipeline.inputs:
        for dim, (lo, hi) in zip(image.dims, found.get(image.name, ()), strict=False):
            symbols.setdefault(bound_symbol(image.name, "min", dim), lo)
            symbols.setdefault(bound_symbol(image.name, "extent", dim), hi - lo + 1)
    if unknown:
        found, _ = _boxes(pipeline, accesses_of, symbols)
    dims = {**{s.name: s.dims for s in pipeline.stages}, **{i.name: i.dims for i in pipeline.inputs}}
    _check_reach(found, dims)
    return Estimates({name: tuple((lo, hi - lo + 1) for lo, hi in box) for name, box in found.items()}, symbols, dims)


def _boxes(
    pipeline: Pipeline, accesses_of: Mapping[str, tuple[StageAccess, ...]], symbols: Mapping[str, int]
) -> tuple[dict[str, tuple[Bounds, ...]], bool]:
    """(first, last) per dim of everything, and whether some range followed from nothing known."""
    dims = {**{s.name: s.dims for s in pipeline.stages}, **{i.name: i.dims for i in pipeline.inputs}}
    known, numbers = dict(pipeline.estimates), told(symbols)
    unknown = False
    need: dict[str, list[Bounds | None]] = {
        name: [(lo, lo + extent - 1) for lo, extent in known[name]] for name in pipeline.outputs
    }
    for stage in reversed(pipeline.stages):
        if stage.name not in need:
            continue
        box = _settled(need[stage.name], known.get(stage.name))
        if stage.updates:
            box, open_ = _updated(stage, box, numbers)
            unknown = unknown or open_
        need[stage.name] = list(box)
        found = accesses_of[stage.name]
        env = {**numbers, **variables(stage, _constant(box))}
        for a in found:
            if a.producer != stage.name:
                here = need.setdefault(a.producer, [None] * len(dims[a.producer]))
                for d, bounds in enumerate(footprint_of(a, env)):
                    here[d] = _hull(here[d], bounds)
                    unknown = unknown or bounds is None
    of_outputs = {d: ends for n in reversed(pipeline.outputs) for d, ends in zip(dims[n], need[n], strict=True)}
    images = {i.name for i in pipeline.inputs}
    boxes = {}
    for name, needed in need.items():
        guess = [of_outputs.get(d) if name in images else None for d in dims[name]]
        boxes[name] = _settled(needed, known.get(name), guess)
    return boxes | _inside_outputs(pipeline, accesses_of, boxes), unknown


def _inside_outputs(
    pipeline: Pipeline, accesses_of: Mapping[str, tuple[StageAccess, ...]], boxes: Mapping[str, tuple[Bounds, ...]]
) -> dict[str, tuple[Bounds, ...]]:
    """The boxes of inputs without estimates; along dims in which a boundary keeps all accesses inside, without the
    surroundings of the outputs: who has an image asks for results of its size."""
    of_outputs: dict[str, Bounds] = {}
    for name in reversed(pipeline.outputs):
        of_outputs.update(zip(pipeline.stage(name).dims, boxes[name], strict=True))
    images = [i for i in pipeline.inputs if i.name in boxes and pipeline.estimate(i.name) is None]
    names = {i.name for i in images}
    read = (a for found in accesses_of.values() for a in found if a.producer in names)
    needed = {(a.producer, d) for a in read for d, i in enumerate(a.access.indices) if inside(i, a.producer) is i}
    return {
        image.name: tuple(
            box if (image.name, d) in needed or dim not in of_outputs else _without_surroundings(box, of_outputs[dim])
            for d, (dim, box) in enumerate(zip(image.dims, boxes[image.name], strict=True))
        )
        for image in images
    }


def _without_surroundings(box: Bounds, output: Bounds) -> Bounds:
    """The part of what is read of an image that is where the output is; all of it where that is less than two thirds,
    since the image is of another size then."""
    first, last = max(box[0], output[0]), min(box[1], output[1])
    return (first, last) if 3 * (last - first + 1) > 2 * (box[1] - box[0] + 1) else box


def _updated(stage: Stage, box: tuple[Bounds, ...], numbers: Mapping[str, Interval]) -> tuple[tuple[Bounds, ...], bool]:
    """The settled box (`bounds.settled_box`) of a stage with updates, and whether a part of it is not known."""
    result: list[Bounds] = []
    unknown = False
    settled = settled_box(stage, _constant(box), numbers)
    for (lo, hi), (first, last) in zip(box, settled, strict=True):
        unknown = unknown or not (first.is_const and last.is_const)
        low, high = first.const if first.is_const else lo, last.const if last.is_const else hi
        result.append((low, high) if high - low < WIDEST else (lo, hi))
    return tuple(result), unknown


def _constant(box: tuple[Bounds, ...]) -> Box:
    return tuple((const(lo), const(hi)) for lo, hi in box)


def _check_reach(boxes: Mapping[str, tuple[Bounds, ...]], dims: Mapping[str, tuple[str, ...]]) -> None:
    """Places are int32: a pipeline that needs others at its estimates can never run."""
    for name, box in boxes.items():
        for dim, (lo, hi) in zip(dims[name], box, strict=True):
            if lo < INT32.min or hi > INT32.max:
                raise ScheduleError(
                    f"'{name}' is needed from {lo} to {hi} in dim '{dim}' at the estimated sizes, and no image "
                    "reaches that far; estimate smaller outputs, or scale by less"
                )


def symbols_of(pipeline: Pipeline, estimates: Mapping[str, Region]) -> dict[str, int]:
    """Values of the runtime symbols that the estimates and the params' defaults give."""
    symbols = {param_symbol(p.name): number_of(p, p.default) for p in pipeline.params if p.default is not None}
    for image in pipeline.inputs:
        for dim, (lo, extent) in zip(image.dims, estimates.get(image.name, ()), strict=False):
            symbols[bound_symbol(image.name, "min", dim)] = lo
            symbols[bound_symbol(image.name, "extent", dim)] = extent
    return symbols


def _settled(
    box: list[Bounds | None], estimate: Region | None, guess: Sequence[Bounds | None] | None = None
) -> tuple[Bounds, ...]:
    """The box of what is needed and estimated; where neither is known what is guessed, or a point."""
    result: list[Bounds] = []
    for d, bounds in enumerate(box):
        own = None if estimate is None else (estimate[d][0], estimate[d][0] + estimate[d][1] - 1)
        result.append(_hull(own, bounds) or (guess[d] if guess else None) or (0, 0))
    return tuple(result)


def _hull(a: Bounds | None, b: Bounds | None) -> Bounds | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a[0], b[0]), max(a[1], b[1])


def footprint_of(a: StageAccess, env: Mapping[str, Interval]) -> Iterator[Bounds | None]:
    """(first, last) per dim of what an access reads, None where nothing known bounds it; `env` has numbers. An index
    that its span does not tell exactly, as x // 4 * 5 + x % 4, is evaluated, as for the code's own bounds."""
    for d, span in enumerate(a.spans):
        bounds = None
        if not span.known or span.clamps or span.lo != span.hi:
            bounds = _evaluated(a, a.access.indices[d], env)
        if bounds is None:
            bounds = _moved(span, env) if span.known else _evaluated(a, inside(a.access.indices[d], a.producer), env)
        yield bounds


def _moved(span: Span, env: Mapping[str, Interval]) -> Bounds:
    lo, hi = (0, 0) if span.var is None else (end.const for end in env[span.var])
    ends = (lo, hi) if span.rate >= 0 else (hi, lo)
    return span.first(ends[0]), span.last(ends[1])


def _evaluated(a: StageAccess, index: Expr, env: Mapping[str, Interval]) -> Bounds | None:
    """Interval arithmetic over an index; None where a bound is not known or as wide as a type."""
    inner = {**env, **domain_intervals(a.reductions, env)} if a.reductions else env
    low, high = interval_of(index, inner)
    bounds = low.const, high.const
    known = low.is_const and high.is_const and bounds[1] - bounds[0] < WIDEST
    return bounds if known else None
