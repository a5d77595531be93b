"""Streams of memory that the rows of a stage go along: how many side by side, how far each is in order, and what is
asked for ahead."""

from __future__ import annotations

from math import inf, prod

from tilesmith.cost_models.amounts import Amount, chosen, largest
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.traffic.cache_traffic import WHOLE, state
from tilesmith.scheduler.features.traffic.column_walks import slower
from tilesmith.scheduler.features.traffic.layer_conditions import bytes_apart
from tilesmith.scheduler.features.traffic.running_group import RunningGroup


def streams(group: RunningGroup, name: str, run: Run) -> float:
    """Rows of memory that are walked side by side, columns aside. The loops of a long reduction walk along
    a row for all of its terms there, one row after the other."""
    together, facts = group.reads[name].side_by_side, group.facts
    long = group.has_loops(name)
    rows = 0.0 if run.registers else float(together * len(facts.definitions[name].types))
    for read in group.reads[name].reads:
        if read.producer not in group.registers:
            width = sum(float(s.width) for s in read.roughly if s.var == run.row and s.known)
            in_turn = long and width * facts.stages[read.producer].bytes_per_point >= facts.line_bytes
            rows += float(together) if in_turn else max(1.0, read.points * together / (1 + width))
    return rows


def lines_asked(group: RunningGroup, name: str, run: Run) -> float:
    """Lines that one step asks for ahead: of each row of what it reads from outside of the group, but those that
    the iteration before of the loop around has read, those that its vector spans. Of vectors shorter than a line
    several ask for the same one, which comes once; a load more does not show beside that. What several stages of a
    loop read is asked for once; of a row that the iteration before has gone along, nothing."""
    if run.lanes == 1:
        return 0.0
    members, asked = group.members, 0.0
    effective, around = group.reads[name], _around(group, name, run)
    for read, part in group.layers.of_reads(name):
        along = [s for s in read.roughly if s.known and s.var == run.row]
        if members.is_local(read.producer) or not along:
            continue
        if around is not None and not group.has_loops(name) and _is_read_again(read, around):
            continue
        size = members.facts.stages[read.producer].bytes_per_point
        lines = run.lanes * float(abs(along[0].rate)) * size / members.facts.line_bytes
        rows = read.points / (1 + sum(float(s.width) for s in along))
        for s in read.roughly:
            if s.known and s.var is not None and s.var == around:
                together = effective.apart.get(s.var, 1)
                rows *= min(1.0, max(1.0, abs(float(s.rate)) * together) / s.extent(together))
        asked += max(1.0 / effective.side_by_side, rows) * lines * part
    return asked


def _is_read_again(read: Read, around: str) -> bool:
    """True if the dim `around` does not move the place of a read, which no data tells."""
    return not read.looked_up and all(s.known and s.var != around for s in read.roughly)


def rows_walked(group: RunningGroup, name: str, run: Run) -> float:
    """Rows of images from outside of the group that one step goes along side by side, but those that the iteration
    before of the loop around has read; and those of the output, unless it is written past the caches. None where
    updates or loops inside of vectors go through them."""
    members, effective = group.members, group.reads[name]
    stage = members.facts.stages[name]
    if run.lanes == 1 or stage.updates or group.has_loops(name):
        return 0.0
    around, together = _around(group, name, run), effective.side_by_side
    stored = name == members.output and not group.running.stream
    walked = float(together * len(members.facts.definitions[name].types)) if stored else 0.0
    for read in effective.reads:
        producer = members.facts.stages[read.producer]
        spans = {d: s for d, s in zip(producer.dims, read.roughly, strict=True) if s.known}
        along = [d for d, s in spans.items() if s.var == run.row]
        if members.is_local(read.producer) or read.looked_up or not along:
            continue
        rows = read.points * together / (1 + sum(float(spans[d].width) for d in along))
        across = [spans[d] for d in slower(producer, along) if d in spans]  # interleaved channels are of one row
        extents = [(s, effective.apart.get(s.var or "", 1)) for s in across]
        rows = min(rows, float(prod(s.extent(n) for s, n in extents)))
        for s, n in extents:
            if s.var is not None and s.var == around:
                rows *= min(1.0, max(1.0, abs(float(s.rate)) * n) / s.extent(n))
        walked += rows
    return walked


def _around(group: RunningGroup, name: str, run: Run) -> str | None:
    """The dim of a stage whose loop is the next around its row."""
    nest, follows = group.nest, group.members.follows[name]
    facts = group.facts.stages[name]
    dims = _besides_row(facts, run)
    if group.is_fused(name) or name == group.members.output:
        moving = [d for d in dims if follows[d].var is not None]
        return min(moving, key=lambda d: nest.intra(str(follows[d].var)), default=None)
    return dims[0] if dims else None


def bytes_in_order(
    group: RunningGroup, name: str, run: Run, points: Amount, rows: Amount, following: int | None, ahead: bool = False
) -> Amount:
    """Bytes in order that a row walks, with the next ones where these go on where it ends, as those of the group's
    own buffers do and those of an image whose loops are in the order of memory; infinite where there is no end of
    them, or the next one is asked for `ahead`, or hardware follows rows side by side. `following` is what
    `next_of_row` tells."""
    members = group.members
    facts = members.facts.stages[name]
    if run.row is not None and bytes_apart(facts, run.row, members.facts.line_bytes) > facts.bytes_per_point:
        return facts.bytes_per_point  # down a column each is in another row
    if name != members.output and all(members.is_local(r.producer) for r in group.reads[name].reads):
        return inf
    along = group.along_row(name, run)
    if along is None:
        return inf
    axis = group.nest.axes[along]
    length = points / largest(rows, 1.0) * facts.bytes_per_point
    at_once = _walked_at_once(group, name, run)
    if (ahead or _follows_side_by_side(group)) and (at_once or _new_rows(group, name, run) > 1):
        return inf
    if at_once or following is None:
        return length
    planes = _planes_bytes(group, name, along, length)
    if state(group.nest, axis.dim, group.level(name)) == WHOLE:
        return planes
    return chosen(axis.counts > 1, length, planes)


def _follows_side_by_side(group: RunningGroup) -> bool:
    """True if the output's rows are computed side by side, no reduction in a loop of its own, and hardware follows such
    rows from tile to tile."""
    output, core = group.members.output, group.members.facts.core
    together = group.reads[output].side_by_side > 1 and not group.has_loops(output)
    return together and core.prefetch.asked_rows_factor > 1.0


def _planes_bytes(group: RunningGroup, name: str, along: str, length: Amount) -> Amount:
    """Bytes in order of whole rows of so many bytes: those of a tile's part of a plane, where the tile goes on to
    the next plane; else no limit."""
    nest, facts = group.nest, group.facts.stages[name]
    follows = group.members.follows[name]
    moving = [(d, var) for d in facts.storage if (var := follows[d].var) not in (None, along) and facts.extent(d) > 1]
    if len(moving) < 2:
        return inf
    (across, dim), *others = moving
    axis = nest.axes[str(dim)]
    if state(nest, axis.dim, group.level(name)) == WHOLE:
        return inf
    planes: Amount = 1.0
    for _, other in others:
        planes = planes * nest.axes[str(other)].sizes
    rows = axis.sizes * (facts.extent(across) / axis.extent)
    return chosen((axis.counts > 1) & (planes > 1), length * rows, inf)


def _new_rows(group: RunningGroup, name: str, run: Run) -> float:
    """Rows of one image outside of the group that an iteration of the loop around a stage's rows walks at once, and
    none before it has: where one ends another has been walked already."""
    around, rows, facts = _around(group, name, run), 1.0, group.facts.stages[name]
    follows = next(iter(_besides_row(facts, run)), None)
    together = group.reads[name].apart.get(around, 1) if around is not None and around == follows else 1
    for read in group.reads[name].reads:
        if not group.members.is_local(read.producer):
            spans = (s for s in read.roughly if s.known and s.var is not None and s.var == around)
            new = (min(abs(float(s.rate)), float(s.extent(1)), read.points) for s in spans)
            rows = max(rows, *(n * together for n in new), 1.0)
    return rows


def _rows_in_order(group: RunningGroup, name: str, along: str) -> bool:
    """True if the loop around the rows of a stage goes from one to the next in memory. Inside of the level of a
    member loops are in the order of memory."""
    nest, facts = group.nest, group.facts.stages[name]
    follows = group.members.follows[name]
    level = 0 if name == group.members.output else group.levels[name].compute
    around = []
    for dim in facts.storage:
        var = follows[dim].var
        if var == along or facts.extent(dim) == 1:
            continue
        if var is None:
            return True
        if nest.intra(var) > nest.intra(along):  # those that are unrolled are rows of their own
            around.append(max(level, nest.intra(var)))
    return not around or around[0] == min(around)


def next_of_row(group: RunningGroup, name: str, run: Run) -> int | None:
    """The level whose next iteration goes on with a row that a tile breaks off; None where no tile does."""
    along = group.along_row(name, run)
    if along is None or _new_rows(group, name, run) > 1 or not _rows_in_order(group, name, along):
        return None
    return group.nest.inter(along)


def _walked_at_once(group: RunningGroup, name: str, run: Run) -> bool:
    """True if a tile has rows of a stage that lie one after the other and are walked at once: the one that goes on
    where one ends is the next tile's. Of rows in several planes each goes on in its own."""
    nest, facts, along = group.nest, group.facts.stages[name], group.along_row(name, run)
    if run.row is None or along is None:
        return False
    beyond = facts.storage[facts.storage.index(run.row) + 1 :]
    var = next((group.members.follows[name][d].var for d in beyond if facts.extent(d) > 1), None)
    return var is not None and nest.axes[var].is_cut and nest.intra(var) < nest.intra(along)


def _besides_row(facts: StageFacts, run: Run) -> list[str]:
    """The dims of a stage that its rows do not go along, as they lie in memory: channels beside each other they do."""
    dims = facts.storage if run.row is None or run.row != facts.row else facts.storage[facts.storage.index(run.row) :]
    return [d for d in dims if d != run.row and facts.extent(d) > 1]
