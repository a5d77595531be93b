"""Alg. 1 of TACO 2019: the compute and store level of every stage of a group, by reuse."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilesmith.records import record
from tilesmith.scheduler.analysis.reuse import FULL
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT, Levels
from tilesmith.scheduler.features.groups.incremental_footprint import ONE, Motion, hulled, slides
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner


@record(frozen=True, slots=True)
class Choice:
    """The choice of compute_at and store_at of a stage, its reason, and the algorithm that made it; `levels` None is
    inline."""

    levels: Levels | None
    reason: str
    source: str = "TACO 2019, Alg. 1"


_OF_OUTPUT = Choice(None, "the output has loops of its own")


@dataclass(frozen=True)
class LoopOrder:
    """D_m, innermost first: `loops` as the group has them. The first `unrolled` of them are loops of few iterations,
    which are no level: they are unrolled inside the innermost real loop. `rows` has the size of tiles of a few rows: of
    an unrolled loop they are computed side by side, along any other what is read again is kept from tile to tile. Dims
    of `whole` are those that an update does not keep in place: nothing can be computed inside a loop with one of theirs
    around it.

    A step of the loop over vectors has so many `vectors` of a register of each point (see `search.ecm.register_tiles`
    and `search.ecm.moves.two_vectors_a_step`); 0: one that is as wide as what is stored or computed wants it.

    `innermost` is the position of the innermost real loop, `least` the first that may be a level; `vectorised` is
    whether the innermost loop that is not unrolled runs along memory.
    """

    loops: tuple[str, ...]
    unrolled: int
    whole: frozenset[str] = frozenset()
    vectorised: bool = True
    rows: tuple[tuple[str, int], ...] = ()
    vectors: int = 0
    innermost: int = field(init=False)
    least: int = field(init=False)
    intra_loops: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        inside = [n for n, loop in enumerate(self.loops) if dim_of(loop) in self.whole]
        innermost = next(n for n in range(self.unrolled, len(self.loops)) if n not in inside)
        object.__setattr__(self, "innermost", innermost)
        intra = tuple(loop for loop in self.loops if loop == inner(dim_of(loop)))
        object.__setattr__(self, "intra_loops", intra)
        object.__setattr__(self, "least", max((innermost, *(n + 1 for n in inside))))

    def side_by_side(self, output: StageFacts) -> dict[str, int]:
        """The dims whose loops are unrolled, with their iterations."""
        rows = dict(self.rows)
        dims = map(dim_of, self.loops[: self.unrolled])
        return {d: rows[d] if d in rows else output.extent(d) for d in dims}

    def intra(self, dim: str) -> int:
        """Position of the intra-tile loop of `dim`; those inside the innermost real loop count as that."""
        return self.innermost if dim in self.whole else max(self.loops.index(inner(dim)), self.innermost)

    def levels(self, compute: int, store: int) -> Levels:
        """The levels `compute` and `store`, or the nearest that are allowed."""
        return Levels(max(compute, self.least), max(store, self.least))

    def name(self, levels: Levels) -> str:
        """The levels as people read them."""
        return f"compute at {self.loops[levels.compute]}, store at {self.loops[levels.store]}"


class _Reuse(NamedTuple):
    """Overlap of a stage in one loop of a consumer: `position` in D_m, None where the loop is not one of D_m."""

    consumer: str
    loop: str
    position: int | None
    overlap: float


def choose_levels(members: Members, order: LoopOrder) -> dict[str, Choice]:
    """TACO 2019, Alg. 1, for every stage of the group but its output, from the output backwards.

    A loop of a consumer is a loop of D_m where its dim follows (through the chain of consumers) a dim of the
    output; names need not agree. Loops of few iterations count as the innermost loop. Reuse is full where a
    footprint does not move with a loop at all. Beyond the paper, what one consumer reads is reused if another one,
    which runs ahead of it along a loop, has read it before.
    """
    dims = tuple(d for d in dict.fromkeys(map(dim_of, order.loops)) if order.intra(d) > order.innermost)
    known = _known_choices(members.facts)
    output = known.setdefault((members.output, order), _Chosen(len(known), _OF_OUTPUT, dict.fromkeys(dims, ONE)))
    chosen, choices = {members.output: output}, dict[str, Choice]()
    for name in reversed(members.names[:-1]):
        readers = [chosen[c].number for c in members.consumers[name]]
        key = (name, members.follows[name], name in members.shared, *readers)
        found = known.get(key)
        if found is None:
            choice, motions = _chosen(members, order, name, dims, chosen, choices)
            found = known[key] = _Chosen(len(known), choice, motions)
        chosen[name], choices[name] = found, found.choice
    return choices


class _Chosen(NamedTuple):
    """The choice for a stage, and its motion along the dims of the loops outside of the innermost one. It follows from
    what the stage follows and from those of its readers, by their `number`: it is the same in all groups in which these
    are."""

    number: int
    choice: Choice
    motions: Mapping[str, Motion | None]


@once
def _known_choices(facts: Facts) -> dict[Hashable, _Chosen]:
    return {}


def _chosen(
    members: Members,
    order: LoopOrder,
    name: str,
    dims: Sequence[str],
    chosen: Mapping[str, _Chosen],
    choices: Mapping[str, Choice],
) -> tuple[Choice, dict[str, Motion | None]]:
    """The choice for a stage, and its motion along `dims`, from those of its readers."""
    needed = {d: _needed(members, name, d, chosen) for d in dims}
    choice = _by_reuse(members, order, name, list(_ahead(members, order, name, needed)))
    if members.facts.stages[name].updates:
        for least, why in (_rows_of_scans(members, order, name), _across_rows(members, order, name)):
            choice = _of_several_rows(choice, least, why, order)
    choice = _outside_consumers(choice, name, members, choices, order)
    store = -1 if choice.levels is None else choice.levels.store
    return choice, {d: _sliding(members, name, d) if order.intra(d) < store else needed[d] for d in dims}


def _needed(members: Members, name: str, dim: str, chosen: Mapping[str, _Chosen]) -> Motion | None:
    """The part of a stage that an iteration of the output's loop over `dim` needs for what is new of its consumers."""
    found = []
    for consumer in members.consumers[name]:
        motion = chosen[consumer].motions[dim]
        if motion is not None:
            read = members.facts.stages[consumer].read_of[name]
            found.append(members.through(consumer, read, motion, dim))
    return hulled(found)


def _sliding(members: Members, name: str, dim: str) -> Motion | None:
    spans = [s for s in members.follows[name].values() if s.var == dim]
    return slides(members.line(spans[0])) if spans else None


def _ahead(members: Members, order: LoopOrder, name: str, needed: Mapping[str, Motion | None]) -> Iterator[_Reuse]:
    """Reuse between consumers: an iteration needs more of the stage than is new to it."""
    if len(members.consumers[name]) < 2:
        return
    for dim, motion in needed.items():
        sliding = _sliding(members, name, dim)
        if motion is not None and sliding is not None:
            amount = motion.last - motion.first + 1 - sliding.points / motion.active
            if amount >= 1:
                yield _Reuse(" or ".join(members.consumers[name]), dim, order.intra(dim), amount)


def _by_reuse(members: Members, order: LoopOrder, name: str, ahead: list[_Reuse]) -> Choice:
    if name in members.shared:
        return Choice(
            None,
            "trivial, and read by several stages that are cut apart: computed where it is read",
            "TACO 2019, Alg. 4",
        )
    reuse = [*_reuses(members, order, name), *ahead]
    if not reuse:
        kept = needs_memory(members, name)
        if kept is None:
            return Choice(None, "no value is read by two iterations of any loop of a consumer")
        row = order.innermost + 1
        return Choice(order.levels(row, row), f"{kept}: computed once a row", "a limit of ours")
    mapped = [r for r in reuse if r.position is not None]
    if not mapped:
        loop = f"{reuse[0].consumer}'s loop over {reuse[0].loop}"
        at = order.innermost
        return Choice(order.levels(at, at), f"reused in {loop}, which is no loop of the group: innermost loop")
    outermost = max(r.position or 0 for r in mapped)
    there = [r for r in mapped if r.position == outermost]
    full = all(r.overlap == FULL for r in there)
    first = there[0]
    amount = "all of it" if full else f"{int(max(r.overlap for r in there if r.overlap != FULL))} of its extent"
    reason = f"{amount} is read again by the next iteration of {first.consumer} over {first.loop}"
    if outermost == order.innermost or full:
        why = "it does not move with that loop" if full else "that is the innermost loop"
        return Choice(order.levels(outermost + 1, outermost + 1), f"{reason}; {why}: computed one loop further out")
    return Choice(order.levels(outermost, outermost + 1), f"{reason}: slides along it")


def _of_several_rows(choice: Choice, least: int, why: str, order: LoopOrder) -> Choice:
    """The choice, or one for the rows of a tile where that is of fewer."""
    levels = choice.levels
    if levels is None or levels.compute >= least or least >= len(order.loops):
        return choice
    reason = f"{choice.reason}; {why}: computed for those of a tile"
    return Choice(order.levels(least, least), reason, "a limit of ours")


def _rows_of_scans(members: Members, order: LoopOrder, name: str) -> tuple[int, str]:
    """The level from which on a stage that is scanned along its rows has several of them, which are scanned side by
    side; 0 of all others."""
    scans = [(u.scan, u.trips) for u in members.facts.stages[name].updates if u.scan is not None]
    dims = (scan.vectors_across(trips, SMALL_EXTENT) for scan, trips in scans)
    followed = (members.followed(name, d) for d in dims if d is not None)
    return max((order.intra(d) + 1 for d in followed if d is not None), default=0), "its rows are scanned side by side"


def _across_rows(members: Members, order: LoopOrder, name: str) -> tuple[int, str]:
    """The level from which on a stage with updates has more than a point of a row, where those of the output cross its
    rows; 0 of all others."""
    crossing = across_rows(members, name)
    return 0 if crossing is None else order.intra(crossing) + 1, "its rows go across those of its readers"


def across_rows(members: Members, name: str) -> str | None:
    """The dim of the output that the rows of a stage with updates go along, where they are long and these are not the
    output's rows."""
    stage = members.facts.stages[name]
    if not stage.updates or stage.row is None or stage.extent(stage.row) <= SMALL_EXTENT:
        return None
    followed = members.followed(name, stage.row)
    return None if followed == members.facts.stages[members.output].row else followed


def needs_memory(members: Members, name: str) -> str | None:
    """Why the stage cannot be computed where it is read, or should not be; None where it can."""
    if members.facts.stages[name].updates:
        return "it has updates, which need memory"
    return "it holds partial results" if name in members.facts.partial else None


def _reuses(members: Members, order: LoopOrder, name: str) -> Iterator[_Reuse]:
    """Overlaps of `name` in the loops of its consumers (W_i)."""
    for consumer in members.consumers[name]:
        stage = members.facts.stages[consumer]
        for loop, amount in stage.read_of[name].reuse:
            followed = members.followed(consumer, loop) if loop in stage.dims else None
            yield _Reuse(consumer, loop, None if followed is None else order.intra(followed), amount)


def largest_overlaps(members: Members) -> dict[str, int]:
    """The largest overlap along every dim of the output (TACO 2019, Eq. 15); full reuse bounds no tile."""
    largest = dict.fromkeys(members.facts.stages[members.output].dims, 0)
    for name in members.names[:-1]:
        for consumer in members.consumers[name]:
            stage = members.facts.stages[consumer]
            for loop, amount in stage.read_of[name].reuse:
                followed = members.followed(consumer, loop) if loop in stage.dims else None
                if followed is not None and amount != FULL:
                    largest[followed] = max(largest[followed], int(amount))
    return largest


def _outside_consumers(
    choice: Choice, name: str, members: Members, choices: Mapping[str, Choice], order: LoopOrder
) -> Choice:
    """Alg. 1, step 3: a compute level inside that of a consumer is moved out to it, and the store level with it."""
    if choice.levels is None:
        return choice
    levels, reason = choice.levels, choice.reason
    for consumer in real_consumers(members, name, choices):
        if consumer == members.output:
            continue
        other = choices[consumer].levels
        assert other is not None
        if levels.compute < other.compute:
            levels = Levels(other.compute, max(levels.store, other.compute))
            reason = f"{choice.reason}; moved out to its consumer {consumer} at {order.loops[other.compute]}"
    return choice if levels is choice.levels else Choice(levels, reason, choice.source)


def nested(members: Members, choices: Mapping[str, Choice], order: LoopOrder) -> dict[str, Choice]:
    """The choices, every producer's compute level at its consumers' or further out (after inlining moved some)."""
    result = dict(choices)
    for name in reversed(members.names[:-1]):
        result[name] = _outside_consumers(result[name], name, members, result, order)
    return result


def real_consumers(members: Members, name: str, choices: Mapping[str, Choice]) -> tuple[str, ...]:
    """The stages that read `name`, itself or through stages that are inline, the output among them."""
    found: dict[str, None] = {}
    pending, seen = [name], {name}
    while pending:
        for consumer in members.consumers[pending.pop()]:
            if consumer in seen:
                continue
            seen.add(consumer)
            if consumer != members.output and choices[consumer].levels is None:
                pending.append(consumer)
            else:
                found[consumer] = None
    return tuple(found)
