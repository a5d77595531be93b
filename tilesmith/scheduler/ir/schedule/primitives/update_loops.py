"""Loops of updates: their order, vectors and threads."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Dims, Form, Identifier, VectorForm
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site
from tilesmith.scheduler.ir.schedule.primitives.vectorize import Vectorize, check_lanes
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, UpdateLoops, dim_of, outer

_VECTOR = Vectorize()


class UpdateForm(Form):
    loops: Dims
    vector: VectorForm | None = None
    parallel: Identifier | None = None


class LoopsOfUpdates(Primitive[tuple[UpdateLoops, ...]]):
    """The loops of every update of a stage, of a group's output or of a member; without them each runs as it is
    defined, by one thread.

        update f:                     update f:
          for r:                        parallel for y:
            for y:              ->        for r:
              for x:                        vectorised by 8 for x:
                f(x, y) = ...                 f(x, y) = ...

    Threads share the outermost loop, or in every update of a sweep but the last the loop of its blocks, wherever it
    is: each thread has all of a block, but for the last update, which comes to the blocks in order. Of a loop over
    vectors that is the outermost each thread has a strip.
    """

    key = "updates"
    records = (Group, Placement)
    default: tuple[UpdateLoops, ...] = ()
    form = Annotated[tuple[UpdateForm, ...], Field(max_length=MAX_STAGES)]

    def read(self, parsed: tuple[UpdateForm, ...]) -> tuple[UpdateLoops, ...]:
        return tuple(UpdateLoops(u.loops, _VECTOR.read(u.vector), u.parallel) for u in parsed)

    def write(self, value: tuple[UpdateLoops, ...]) -> Any:
        return [{"loops": list(u.loops), "vector": _VECTOR.write(u.vector), "parallel": u.parallel} for u in value]

    def check(self, value: tuple[UpdateLoops, ...], at: Site) -> None:
        """Every loop of every update once, in an order that keeps what depends on what; vectors and threads only over
        loops whose iterations are independent."""
        if value and len(value) != len(at.stage.updates):
            raise at.refuse(f"it has {len(at.stage.updates)} updates, and the schedule {len(value)}")
        for n, loops in enumerate(value):
            _check_loops(n, loops, at)
        shared, updates = at.shared_blocks(value) if value else (None, 0)
        for n, loops in enumerate(value):
            _check_threads(n, loops, shared if n < updates else None, at)
        if at.placement is None:
            _check_around(at)

    def difference(self, value: tuple[UpdateLoops, ...]) -> str:
        return "updates in other loops"


def update_words(loops: UpdateLoops, loop: str) -> tuple[str, ...]:
    """Words before a loop of an update, in the loop nest."""
    return (*(("parallel",) if loop == loops.parallel else ()), *_VECTOR.loop_words(loops.vector, loop))


def _check_loops(n: int, loops: UpdateLoops, at: Site) -> None:
    update, what = at.stage.updates[n], f"update {n}"
    expected = at.default_order(update)
    if sorted(loops.loops) != sorted(expected):
        raise at.refuse(f"{what}: its loops must be {', '.join(expected) or 'none'}: each once, no others")
    if not at.may_reorder(update, loops.loops):
        raise at.refuse(f"{what}: in this order of loops it would read other values")


def _check_threads(n: int, loops: UpdateLoops, blocks: str | None, at: Site) -> None:
    update, what = at.stage.updates[n], f"update {n}"
    if loops.vector is not None:
        check_lanes(loops.vector, at)
        if loops.vector.dim not in loops.loops:
            raise at.refuse(f"{what}: vectorised in '{loops.vector.dim}', which is no loop of it")
    if loops.parallel is not None:
        in_blocks = loops.parallel == blocks  # of each block one thread has all loops
        if not in_blocks and (not loops.loops or loops.parallel != loops.loops[-1]):
            raise at.refuse(f"{what}: the parallel loop is not its outermost loop")
        if at.placement is not None or at.group.parallel is not None:
            raise at.refuse(f"{what}: threads inside of what threads may already run")
    of_lanes = None if loops.vector is None else loops.vector.lanes
    for loop, together in ((loops.parallel, None), (None if loops.vector is None else loops.vector.dim, of_lanes)):
        vectors = loop != loops.parallel and at.along_recurrence(update, loops)
        if loop is not None and not vectors and not at.independent(update, loops.loops, loop, together):
            raise at.refuse(f"{what}: that iterations of '{loop}' are independent cannot be proved")


def _check_around(at: Site) -> None:
    """Around values and updates together there are only loops over dims that every update keeps in place."""
    group, pure = at.group, at.pure_dims(at.stage)
    if len(pure) == len(at.stage.dims):
        return
    used = [("tiled", outer(t.dim)) for t in group.tiles]
    used += [("run by threads", group.parallel)] if group.parallel is not None else []
    for p in group.placements:
        if p.compute != INLINE and p.compute in group.loops and p.store in group.loops:
            used += [(f"the level of '{p.stage}'", p.compute), (f"the level of '{p.stage}'", p.store)]
    for what, loop in used:
        for outside in group.loops[group.loops.index(loop) :]:
            if dim_of(outside) not in pure:
                raise at.refuse(
                    f"'{loop}' is {what}, but '{outside}' runs along a dim that an update does not keep in place"
                )
