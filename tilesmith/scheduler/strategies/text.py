"""Text of a state: a line for each definition, and lines for each group of the schedule. Equal states, equal text."""

from __future__ import annotations

from collections.abc import Iterator

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.printer import to_text, values_to_text
from tilesmith.scheduler.ir.schedule.schedule import (
    INLINE,
    Group,
    Placement,
    UpdateLoops,
    Vector,
    dim_of,
    inner,
    outer,
)


def definition_lines(pipeline: Pipeline) -> Iterator[str]:
    """A line for each value and each update of the stages."""
    tuples = frozenset(s.name for s in pipeline.stages if len(s.values) > 1)
    for stage in pipeline.stages:
        yield from _definition(stage, tuples)


def group_lines(group: Group) -> Iterator[str]:
    """The loops of a group in a line, and a line for each member."""
    words = [_loop(group, loop) for loop in reversed(group.loops)]
    words += ["streaming stores"] if group.stream else []
    words += [f"prefetches {group.prefetch} bytes ahead"] if group.prefetch else []
    words += [f"{key} {value}" for key, value in group.attributes]
    yield f"{group.output}: " + ("; ".join(words) or "no loops")
    yield from _updates(group.output, group.updates)
    for placement in group.placements:
        yield f"  {placement.stage} in {group.output}: {_placement(placement)}"
        yield from _updates(placement.stage, placement.updates)


def _definition(stage: Stage, tuples: frozenset[str]) -> Iterator[str]:
    place = f"{stage.name}({', '.join(stage.dims)})"
    boundary = "" if stage.boundary is None else f", {stage.boundary.kind} beyond its domain"
    values = values_to_text(stage.values, stage.types, tuples)
    for value in [values] if isinstance(values, str) else values:
        yield f"{place} = {value}{boundary}"
    for update in stage.updates:
        yield _update(stage, update, tuples)


def _update(stage: Stage, update: Update, tuples: frozenset[str]) -> str:
    ranges = ", ".join(f"{r.name} from {to_text(r.lo)} for {to_text(r.extent)}" for r in update.domain)
    where = "" if update.where is None else f" where {to_text(update.where, tuples=tuples)}"
    at = ", ".join(to_text(e, tuples=tuples) for e in update.at)
    values = values_to_text(update.values, stage.types, tuples)
    return f"{stage.name}({at}) = {values}{where}" + (f" over {ranges}" if ranges else "")


def _loop(group: Group, loop: str) -> str:
    dim = dim_of(loop)
    words = ["parallel for"] if loop == group.parallel else ["for"]
    words.append(loop)
    tile = group.tile(dim)
    if loop == outer(dim) and tile is not None:
        words.append("tile whole" if tile.size is None else f"tile {tile.size}")
    if loop == inner(dim) and dim in group.unroll:
        words.append("unrolled")
    if loop == inner(dim) and group.vector is not None and group.vector.dim == dim:
        words.append(f"by vectors of {group.vector.lanes}")
    return " ".join(words)


def _placement(p: Placement) -> str:
    if p.compute == INLINE:
        return "inline"
    words = [f"computed at {p.compute}", f"stored at {p.store}" + ("" if p.fold else ", whole")]
    if p.storage == "registers":
        words.append("in registers")
    if p.order:
        words.append(f"loops {' '.join(p.order)}")
    if p.vector is not None:
        words.append(_vector(p.vector))
    words += [f"{key} {value}" for key, value in p.attributes]
    return "; ".join(words)


def _updates(stage: str, updates: tuple[UpdateLoops, ...]) -> Iterator[str]:
    for n, u in enumerate(updates):
        words = [f"loops {' '.join(u.loops) or 'none'}"]
        words += [_vector(u.vector)] if u.vector is not None else []
        words += [f"threads over {u.parallel}"] if u.parallel is not None else []
        yield f"  update {n} of {stage}: {'; '.join(words)}"


def _vector(vector: Vector) -> str:
    return f"vectors of {vector.lanes} along {vector.dim}"
