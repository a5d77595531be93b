"""The updates of a stage: loops over its free dims and the update's domain, in the order that the schedule says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import prod

from tilesmith.scheduler.analysis import access_functions
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.bounds_inference import Box, Interval
from tilesmith.scheduler.analysis.dependence import (
    default_order,
    free_dims,
    independent,
    steady_parts,
    way_through,
    written_box,
)
from tilesmith.scheduler.analysis.flat_rows import is_flat_update
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import goes_back, is_row_scan, paired_scans
from tilesmith.scheduler.analysis.update_sweeps import Sweep, joins_last, planes, sweeps, words_of_blocks
from tilesmith.scheduler.ir.index import Index, const, maximum, minimum
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.program import Comment, If, Loop, Ordered
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.expressions import Expr, RVar, Select
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import BOOL
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.interleaved_channels import layouts, pixels_along
from tilesmith.scheduler.lowering.loop_nest import run
from tilesmith.scheduler.lowering.memory import load, store_channels
from tilesmith.scheduler.lowering.nest import Body, Nest
from tilesmith.scheduler.lowering.prefetches import Ahead
from tilesmith.scheduler.lowering.row_recurrences import Follower, run_recurrence
from tilesmith.scheduler.lowering.transposed_scans import RowNest, run_transposed, values_read

SHARED_POINTS = 4
"""Points of an update that are computed side by side, at most."""

STEPS_TOGETHER = (8, 4)
"""Steps of a scan down columns that each of its vectors takes before the next vector: as many rows, each a stream of
its own, are under way at once. Fewer where rows share sets of the first cache, whose ways they would take from each
other."""


@dataclass(frozen=True, slots=True)
class StagePasses:
    """A stage that values fill and updates pass over, as `loops` say, in `buffers`. `fill` emits the values of a box.
    `expected` are the (min, extent) that the stage's dims are expected to have, `estimate` gives an index at the
    estimates. The second level of caches has `cache_bytes`; there are so many `threads`, of which one may wait for
    another if `threads_wait`."""

    stage: Stage
    buffers: tuple[Buffer, ...]
    loops: tuple[UpdateLoops, ...]
    fill: Callable[[Box], None]
    expected: Mapping[str, tuple[int, int]]
    estimate: Callable[[Index], int]
    cache_bytes: int
    threads: int
    threads_wait: bool

    def apart(self, dim: int) -> int:
        """The elements that are expected from one place along a dim to the next, as the stage lies in its buffer."""
        dims = self.stage.dims
        faster = self.stage.storage[: self.stage.storage.index(dims[dim])]
        return prod(self.estimate(self.buffers[0].extent[dims.index(d)]) for d in faster)


def run_passes(b: Builder, sources: Sources, of: StagePasses, box: Box) -> None:
    """Emits the values of a stage and its updates on `box`: plane by plane where all of them are independent, and of a
    plane block by block those of a sweep, and one after the other.

    *Legal when* `box` is settled: it holds everything that the updates write and read of the stage.
    """
    found = [s for s in sweeps(of.stage, of.loops) if not s.shared or of.threads_wait]
    around = planes(of.stage, of.loops)

    def plane(box: Box) -> None:
        if not any(s.first == 0 for s in found):
            of.fill(box)
        done = 0
        for one in found:
            _updates(b, sources, of, box, range(done, one.first))
            others = tuple(d for d in one.around if d not in around)
            _at_each(b, of.stage, box, others, partial(_blocks, b, sources, of, found=one))
            done = one.updates.stop
        _updates(b, sources, of, box, range(done, len(of.stage.updates)))

    _at_each(b, of.stage, box, around, plane)


def _at_each(b: Builder, stage: Stage, box: Box, around: tuple[str, ...], emit: Callable[[Box], None]) -> None:
    """The code that `emit` makes of a box, at one place of the dims `around`, the last outermost, before the next."""
    if not around:
        emit(box)
        return
    *others, dim = around
    d = stage.dims.index(dim)
    lo, hi = box[d]
    if lo == hi:
        _at_each(b, stage, box, tuple(others), emit)
        return
    with b.scope() as body:
        var = b.fresh(dim)
        at = b.declare(var, ends=(lo, hi))
        _at_each(b, stage, (*box[:d], (at, at), *box[d + 1 :]), tuple(others), emit)
    b.emit(Loop(var, lo, hi, const(1), tuple(body)))


def _blocks(b: Builder, sources: Sources, of: StagePasses, box: Box, *, found: Sweep) -> None:
    """The blocks of a sweep at one place of all dims around them: of each its values, and then its updates; of those
    that come behind others the block that is so far behind."""
    stage, dim = of.stage, found.dim
    d = stage.dims.index(dim)
    lo, hi = box[d]
    until = hi + found.behind[-1]
    with b.scope() as body:
        var = b.fresh(dim)
        at = b.declare(var, ends=(lo, until))
        for behind, several in groupby(found.updates, lambda n: found.behind[n - found.first]):
            which, back = list(several), at - behind
            if found.back:
                end = lo + hi - back
                begin = end if found.rows == 1 else b.let(maximum(end - (found.rows - 1), lo), f"{dim}_from")
            else:
                begin, end = back, back
                if found.rows > 1:
                    end = b.let(minimum(begin + (found.rows - 1), hi), f"{dim}_until")
            within = [back - lo] if behind else []  # before the first block, or after the last
            within += [hi - back] if behind < found.behind[-1] else []
            with b.condition() if within else nullcontext(()) as passes:
                block = (*box[:d], (begin, end), *box[d + 1 :])
                if which[0] == 0:
                    of.fill(block)
                *others, last = which
                if found.shared:
                    _updates(b, sources, of, block, others, found)
                    with b.condition() as ordered:
                        _updates(b, sources, of, block, [last], found)
                    b.emit(Ordered(tuple(ordered)))
                else:
                    _updates(b, sources, of, block, which, found)
            if within:
                b.emit(If(tuple(within), tuple(passes)))
    updates = f"updates {found.first} to {found.updates[-1]}" if len(found.ways) > 1 else f"update {found.first}"
    late = (f", update {n} {rows} behind" for n, rows in zip(found.updates, found.behind, strict=True) if rows)
    comment = f"{stage.name}: {'' if found.first else 'values and '}{updates}, {words_of_blocks(found)}{''.join(late)}"
    b.emit(Loop(var, lo, until, const(found.rows), tuple(body), found.shared, comment=comment))


def _updates(
    b: Builder, sources: Sources, of: StagePasses, box: Box, which: Sequence[int], within: Sweep | None = None
) -> None:
    """These updates, one after the other. In a block of a sweep, what goes through its dim does so in the block."""
    stage, paired = of.stage, paired_scans(of.stage, of.loops)
    rows = [n for n in which if is_row_scan(stage, stage.updates[n], of.loops[n])]
    ahead = _rows_ahead(sources, of, within, which[0]) if within is not None and which else 0
    joined = within.updates[-1] if within is not None and joins_last(stage, of.loops, within) else None
    pending = list(which)
    scans: list[RowNest] = []
    while pending:
        n = pending.pop(0)
        update = stage.updates[n]
        loops = of.loops[n]
        read, nest = _nest(b, sources, of, box, n, within)
        along = along_recurrence(stage, update, loops)
        if along is not None:
            if pending[:1] == [joined]:
                then = Follower(stage.updates[n + 1], *_nest(b, sources, of, box, n + 1, within))
                if run_recurrence(b, stage, of.buffers[0], update, along, read, nest, then):
                    pending.pop(0)
                    continue
            if not run_recurrence(b, stage, of.buffers[0], update, along, read, nest):
                run(b, read, replace(nest, vector=None))
            continue
        if n not in rows:
            with _strip(b, of, nest) as inside:
                run(b, read, inside(nest))
            continue
        scans.append(RowNest(update, read, nest, ahead if n == rows[-1] else 0))
        if n not in paired or n + 1 not in which:
            with _strip(b, of, nest) as inside:
                run_transposed(b, stage, of.buffers, [replace(s, nest=inside(s.nest)) for s in scans])
            scans = []


def _nest(
    b: Builder, sources: Sources, of: StagePasses, box: Box, n: int, within: Sweep | None
) -> tuple[Sources, Nest]:
    """The loops of update `n`, with what they read."""
    stage, update, loops = of.stage, of.stage.updates[n], of.loops[n]
    b.emit(Comment(f"update {n} of {stage.name}: {', '.join(reversed(loops.loops)) or 'once'}"))
    bounds = dict(zip(stage.dims, box, strict=True)) | {r.name: _range(b, sources, r) for r in update.domain}
    way = within.ways[n - within.first] if within is not None else None
    if within is not None and way is not None:
        place = update.at[stage.dims.index(within.dim)]
        bounds[way] = _in_block(b, sources, place, way, bounds[way], bounds[within.dim], within.back)
    together = _steps_together(b, sources, of, n, bounds)
    for loop in together:  # a domain may end before it begins
        lo, hi = bounds[loop]
        bounds[loop] = lo, b.let(maximum(hi, lo - 1), f"{loop}_until")
    nest = Nest(
        f"{stage.name}:{n}",
        _body(b, stage, of.buffers, update, one_by_one=bool(together) or loops.vector is None),
        bounds,
        loops.loops,
        loops.vector,
        _side_by_side(stage, update, loops, of.expected),
        together,
        parallel=loops.parallel if within is None else None,
        own=stage.name,
        once=True,
        ordered=loops.vector is not None and not independent(stage, update, loops.loops, loops.vector.dim),
        estimate=of.estimate,
        back=_goes_back(update, loops),
        flat=_flat_channels(sources, of, update, loops),
    )
    ahead = _next_rows(b, sources, of, n, bounds, together) or sources.ahead
    return replace(sources, ahead=ahead, steady=steady_parts(stage, update, loops.loops)), nest


@contextmanager
def _strip(b: Builder, of: StagePasses, nest: Nest) -> Iterator[Callable[[Nest], Nest]]:
    """The nest, and others like it, as they are inside of the loop over strips of its vectors, where threads share
    these: one for each of them at the estimates."""
    vector = nest.vector
    if vector is None or nest.parallel != vector.dim:
        yield lambda other: other
        return
    lo, hi = nest.bounds[vector.dim]
    width = -(-of.estimate(hi - lo + 1) // (of.threads * vector.lanes)) * vector.lanes
    with b.scope() as body:
        strip = b.fresh(vector.dim)
        at = b.declare(strip, ends=(lo, hi))
        ends = at, b.let(minimum(at + (width - 1), hi), f"{vector.dim}_until")
        yield lambda other: replace(other, bounds={**other.bounds, vector.dim: ends}, parallel=None)
    b.emit(Loop(strip, lo, hi, const(width), tuple(body), True))


def _rows_ahead(sources: Sources, of: StagePasses, block: Sweep, update: int) -> int:
    """Rows by which scans of a block ask ahead for what values read: from where this update is to the next block, since
    scans wait for little else. 0 where the second level of caches would not hold that beside the blocks, or where the
    values have been computed before."""
    stage = of.stage
    if block.first:
        return 0
    read = {(e.name, e.component): e.type.bytes for e in values_read(stage, sources.buffers)}
    row, own, others = of.expected[stage.storage[0]][1], sum(t.bytes for t in stage.types), sum(read.values())
    held = row * ((block.held + block.rows) * own + 2 * block.rows * others)
    if block.dim != stage.storage[1] or held > of.cache_bytes:
        return 0
    ahead = block.rows + block.behind[update]
    return -ahead if block.back else ahead


def _steps_together(
    b: Builder, sources: Sources, of: StagePasses, n: int, bounds: Mapping[str, Interval]
) -> dict[str, int]:
    """The steps of update `n`, a scan down columns, that each of its vectors takes together (unroll-and-jam), by its
    loop, where rows that it reads end before those of memory do, and are not in the second level of caches: each of
    these begins a stream anew, and several are under way at once. Whole rows go on where the one before ends: one
    stream, which is faster than several; and as many rows as are followed side by side, as those of a few frames, go on
    where the next rows are taken."""
    stage, update, loops = of.stage, of.stage.updates[n], of.loops[n]
    if loops.vector is None or loops.loops[0] != loops.vector.dim or len(loops.loops) < 2 or BOOL in stage.types:
        return {}
    row, around = loops.loops[:2]
    if around == loops.parallel or row not in free_dims(stage, update):
        return {}
    ways = (way_through(stage, update, d) for d in stage.storage[1:])
    if not any(way is not None and way.loop == around and way.reach for way in ways):
        return {}
    extents = {loop: of.estimate(hi - lo + 1) for loop, (lo, hi) in bounds.items() if loop in loops.loops}
    if extents[around] <= b.core.prefetch.rows:
        return {}
    at_hand = prod(extents.values()) * sum(t.bytes for t in stage.types) <= of.cache_bytes
    points, apart = extents[row], set[int]()
    for a in accesses(stage):
        buffer = sources.buffers.get((a.producer, a.component))
        if a.definition == n + 1 and buffer is not None and not (at_hand and a.producer == stage.name):
            for d in (d for d, used in enumerate(a.used) if around in used and d != buffer.unit):
                between = of.apart(d) if a.producer == stage.name else of.estimate(buffer.stride[d])
                if (between - points) * buffer.type.bytes >= b.core.prefetch.half_late_bytes:
                    apart.add(between * buffer.type.bytes)
    if not apart:
        return {}
    return {around: STEPS_TOGETHER[any(bytes_ % b.core.pages.page_bytes == 0 for bytes_ in apart)]}


def _next_rows(
    b: Builder, sources: Sources, of: StagePasses, n: int, bounds: Mapping[str, Interval], together: Mapping[str, int]
) -> Ahead | None:
    """The rows that the next iteration of the loop right around the vectors of update `n` reads, or the next of so many
    `together`, to be asked for ahead:
    those of arrays larger than the second level of caches, which holds two of them, of which each begins a page or more
    after the end of the one before, as those of planes do. What fetches ahead by itself stops at the end of a page, and
    follows each row anew; rows that lie one after the other are a stream to it. None where there are none."""
    loops = of.loops[n]
    if loops.vector is None or loops.vector.dim == loops.loops[-1]:
        return None
    row, around = loops.loops[loops.loops.index(loops.vector.dim) :][:2]
    page, rows = b.core.pages.page_bytes, dict[str, dict[int, int]]()
    points, steps = (of.estimate(hi - lo + 1) for lo, hi in (bounds[row], bounds[around]))
    for a in accesses(of.stage):
        buffer = sources.buffers.get((a.producer, 0))
        if a.definition != n + 1 or buffer is None or a.producer == of.stage.name:
            continue
        loops_of = ({v: access_functions.variable(v) for v in used} for used in a.used)
        spans = [access_functions.span_of(i, known) for i, known in zip(a.access.indices, loops_of, strict=True)]
        for d, span in enumerate(spans):
            if span.var != around or spans[buffer.unit].var != row or int(span.rate) != span.rate:
                continue
            bytes_, step = points * buffer.type.bytes, of.estimate(buffer.stride[d]) * buffer.type.bytes
            apart = abs(int(span.rate)) * step
            if apart >= bytes_ + page and 2 * bytes_ <= of.cache_bytes < steps * apart:
                rows.setdefault(a.producer, {})[d] = int(span.rate) * together.get(around, 1)
    return Ahead(rows=rows) if rows else None


def _in_block(
    b: Builder, sources: Sources, place: Expr, loop: str, whole: Interval, block: Interval, back: bool
) -> Interval:
    """The iterations of a loop that write into a block: of those of the whole dim, where each writes at `place`, and
    goes `back` or not."""
    outside = Evaluator(b, sources, None)
    moved = outside.lane(place, outside.frame({loop: Lane(const(0))})).base
    (first, last), (lo, hi) = whole, block
    begin, end = (moved - hi, moved - lo) if back else (lo - moved, hi - moved)
    return b.let(maximum(first, begin), f"{loop}_lo"), b.let(minimum(last, end), f"{loop}_hi")


def _goes_back(update: Update, loops: UpdateLoops) -> bool:
    """True if the loop right around the vectors goes from each row to one before it in memory."""
    if loops.vector is None:
        return False
    around = loops.loops[loops.loops.index(loops.vector.dim) + 1 :][:1]
    return any(goes_back(update, loop) for loop in around)


def _flat_channels(sources: Sources, of: StagePasses, update: Update, loops: UpdateLoops) -> str | None:
    """The dim of channels of an update whose rows are flat, all of which vectors compute together."""
    pixels = pixels_along(of.buffers[0], loops.vector)
    if pixels is None:
        return None
    lie = layouts(sources.buffers, of.buffers[0].channels)
    return pixels.channel if is_flat_update(of.stage, update, pixels, sources.inlined, lie) else None


def _side_by_side(
    stage: Stage, update: Update, loops: UpdateLoops, expected: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """The innermost loops, where they are short dims inside of vectors, or of longer loops without vectors: what they
    have in common, such as places that data says, is worked out once, and tables that neighbours take in turn each have
    an address of their own."""
    found: dict[str, tuple[int, int]] = {}
    if not loops.loops:
        return found
    free, points = free_dims(stage, update), 1
    row = loops.loops[-1] if loops.vector is None else loops.vector.dim
    for loop in loops.loops:
        points *= expected[loop][1] if loop in free and loop in expected else SHARED_POINTS + 1
        if loop == row or points > SHARED_POINTS:
            break
        found[loop] = expected[loop]
    return found


def left_to_values(
    b: Builder, sources: Sources, stage: Stage, schedules: tuple[UpdateLoops, ...], box: Box
) -> list[Box]:
    """The part of `box` that the values of `stage` have to fill: not what its first update writes before anything reads
    it."""
    if not stage.updates:
        return [box]
    update = stage.updates[0]
    written = written_box(stage, update, schedules[0].loops if schedules else default_order(stage, update))
    if not written:
        return [box]
    left, middle = [], list(box)
    for dim, (variable, moved) in written.items():
        d = stage.dims.index(dim)
        (lo, hi), (first, last) = middle[d], (end + moved for end in _range(b, sources, variable))
        for part in ((lo, minimum(hi, first - 1)), (maximum(lo, last + 1), hi)):
            least = part[1] - part[0]
            if not least.is_const or least.const >= 0:
                left.append((*middle[:d], part, *middle[d + 1 :]))
        middle[d] = (maximum(lo, first), minimum(hi, last))
    return left


def _range(b: Builder, sources: Sources, r: RVar) -> Interval:
    """The values of a domain's variable: the first and the last."""
    outside = Evaluator(b, sources, None)
    frame = outside.frame({})
    lo = outside.lane(r.lo, frame).base
    return lo, lo + outside.lane(r.extent, frame).base - 1


def _body(b: Builder, stage: Stage, buffers: tuple[Buffer, ...], update: Update, one_by_one: bool = False) -> Body:
    """All values are computed before the first is stored. A condition that differs from lane to lane chooses between
    the new value and the old one: lanes write different places, so that storing an old value back is harmless. Points
    side by side differ in free dims, and none reads what another writes; those that come `one_by_one` are steps of a
    scan, which write different places, and read what those before them wrote: as it is in registers; or points without
    vectors, each of which an instruction may join to what memory has."""

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        evaluator.written = {}
        for some in [[env] for env in envs] if one_by_one else [envs]:
            points(evaluator, some)

    def points(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        if update.where is None:
            write(evaluator, envs, None)
            return
        for env in envs:
            conditional(evaluator, env)

    def conditional(evaluator: Evaluator, env: Mapping[str, Lane]) -> None:
        assert update.where is not None
        condition = evaluator.value(update.where, evaluator.frame(env))
        if condition.literal is not None:
            if condition.literal:
                write(evaluator, [env], None)
        elif condition.lanes > 1:
            write(evaluator, [env], condition)
        else:
            with b.condition() as inside:
                write(evaluator, [env], None)
            b.emit(If((), tuple(inside), condition))

    def write(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]], chosen: Value | None) -> None:
        stores = [place for env in envs for place in new(evaluator, env, chosen)]
        store_channels(b, stores)
        if one_by_one and (chosen is not None or update.where is None):
            evaluator.written |= {(buffer.component, at): value for buffer, at, value in stores}

    def new(
        evaluator: Evaluator, env: Mapping[str, Lane], chosen: Value | None
    ) -> Iterator[tuple[Buffer, tuple[Lane, ...], Value]]:
        frame = evaluator.frame(env)
        at = tuple(evaluator.lane(i, frame) for i in update.at)
        values = [evaluator.value(v, frame) for v in update.values]
        if chosen is not None:
            assert update.where is not None
            old = [load(b, buffer, at, buffer.type, True, b.depth) for buffer in buffers]
            values = [
                evaluator.op(ops.Select(chosen, new, kept), Select(update.where, e, e, e.type))
                for new, kept, e in zip(values, old, update.values, strict=True)
            ]
        for buffer, value in zip(buffers, values, strict=True):
            yield buffer, at, value

    return body
