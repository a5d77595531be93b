"""Shapes of a group beyond TACO 2019: inlining decided by cost, and rows whose stages share one loop over vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.register_windows import FusedRow, How
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.inlining import bounded, levels_of, local_producers, taken_over
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder, needs_memory, nested, real_consumers
from tilesmith.scheduler.search.tile_sizes import LoopStructure, structure_of
from tilesmith.scheduler.search.vectorize_and_parallelize import most_row_lanes, row_shifts, vector_of

WIDEST = 8
"""Bytes of the widest type that there is."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The way the levels of a shape are found: inlining by Alg. 2 of the paper or by cost, rows fused or not."""

    by_cost: bool
    fused: bool


PAPER = Kind(False, False)
KINDS = (PAPER, Kind(False, True), Kind(True, True), Kind(True, False))
FUSED_FIRST = (*KINDS[1:3], KINDS[0], KINDS[3])


def shapes(
    members: Members, order: LoopOrder, kinds: Sequence[Kind], platform: Platform
) -> Iterator[tuple[Kind, LoopStructure]]:
    """The shapes of one loop order from the levels of Alg. 1, each different one once; of those inlined by cost
    that without fused rows only where there is none with them, which has always cost less. Where only fused rows are
    wanted, and there are none, it is the shape without them."""
    levels, trivial = levels_of(members, order)
    by_cost: dict[str, Choice] | None = None
    yielded: list[Kind] = []
    for kind in kinds:
        choices = trivial
        if kind.by_cost:
            choices = by_cost = by_cost or inline_by_cost(members, levels, order)
            if len(kinds) > 1 and (Kind(True, True) in yielded or _levels(by_cost) == _levels(trivial)):
                continue
        fused = fuse_rows(members, choices, order, platform) if kind.fused else choices
        if fused is not None:
            yielded.append(kind)
            yield kind, structure_of(members, order, fused)
    if not yielded:
        yield kinds[-1], structure_of(members, order, choices)


def _levels(choices: dict[str, Choice]) -> dict[str, Levels | None]:
    return {name: c.levels for name, c in choices.items()}


def inline_by_cost(members: Members, choices: dict[str, Choice], order: LoopOrder) -> dict[str, Choice]:
    """The choices of Alg. 1, with a stage inline where computing it at every place that it is read at costs less than
    computing it once, storing it, and loading it at these places. From the output backwards, so that how often the
    readers are computed is known."""
    result = dict(choices)
    places: dict[str, float] = {members.output: 1.0}
    for name in reversed(members.names[:-1]):
        read, again, once = _again(members, name, places.__getitem__)
        free = _free_points(members, name)
        loads = members.facts.stages[name].loads / free
        if free > 1:  # places and points are both many: which are more is for the model to tell
            once *= PARAMS.inline_doubt
        inline = result[name].levels is None
        if needs_memory(members, name) is None and name not in members.shared:
            if again <= once and loads * read <= PARAMS.inlined_most_loads:
                levels = result[name].levels
                if levels is not None:
                    reason = f"at {read:g} places it costs {again:.3g} operations, kept {once:.3g}"
                    result[name] = Choice(None, reason, "inlined by cost")
                    for producer in local_producers(members, name):
                        result[producer] = taken_over(result[producer], levels, name, order)
                inline = True
            elif inline and read > 1:
                row = order.innermost + 1
                reason = f"inline at {read:g} places it costs {again:.3g} operations, kept {once:.3g}: once a row"
                result[name] = Choice(order.levels(row, row), reason, "kept by cost")
                inline = False
        places[name] = read if inline else 1.0
    return nested(members, bounded(members, result, order), order)


def fuse_rows(
    members: Members, choices: dict[str, Choice], order: LoopOrder, platform: Platform
) -> dict[str, Choice] | None:
    """The choices with what is computed once a row computed once a vector: its window along the row rotates in
    registers, and what later rows read is stored as well. None where there is nothing of the kind.

    CGO 2021; only for stages of one plain value that are read by shifts along the row, and by nothing that is computed
    further out, as far as registers go (see `analysis.register_windows`).
    """
    definitions = members.facts.definitions
    output = definitions[members.output]
    if not order.vectorised or output.updates or order.least != order.innermost:
        return None
    if platform.work_items > 1:  # they share the points of a row, and registers that rotate are one work-item's
        return None
    at = order.innermost
    if not any(c.levels is not None and c.levels.compute == c.levels.store == at + 1 for c in choices.values()):
        return None  # nothing is kept for one row alone
    facts = members.facts.stages[members.output]
    if platform.vector_bytes < 2 * WIDEST or vector_of(facts, facts.computed_bytes, platform) is None:
        return None
    row = FusedRow(row_shifts(members), most_row_lanes(members, platform))
    result = dict(choices)
    rotating = 0
    for name in reversed(members.names[:-1]):
        levels = choices[name].levels
        all_readers = [definitions[r] for r in members.consumers[name]]
        if levels is None:
            many = row.add(definitions[name], all_readers, "inline")
            if many is not None:
                result[name] = Choice(order.levels(at + 1, at + 1), f"{many}: computed once a row", "a limit of ours")
            continue
        if levels.compute != at + 1 or name not in row.shifted or definitions[name].updates:
            continue
        if name in members.facts.partial and row.shifted[name] != members.facts.stages[name].row:
            continue  # it was made for vectors along memory
        readers = [r for r in real_consumers(members, name, result) if r != members.output]
        if any(_compute(result[r]) != at for r in readers):
            continue
        registers = levels.store == at + 1
        if not (_few_rows(members, name, result) if registers else _row_by_row(members, name, order)):
            continue
        if row.add(definitions[name], all_readers, "registers" if registers else "memory") is not None:
            continue
        rotating += registers
        where = "its window rotates in registers" if registers else "its rows stay in a ring"
        reason = f"{choices[name].reason}; computed once a vector, {where}"
        result[name] = Choice(Levels(at, levels.store, registers), reason, choices[name].source)
    return nested(members, result, order) if rotating else None


def _compute(choice: Choice) -> int | None:
    return None if choice.levels is None else choice.levels.compute


def neighbours(members: Members, shape: LoopStructure, name: str, platform: Platform) -> Iterator[LoopStructure]:
    """Shapes that differ from `shape` in how the stage `name` is computed, where that is allowed and may pay. A stage
    that other groups have too is no different: each computes its own."""
    order, choices = shape.order, shape.choices
    own = choices[name].levels
    for other, what in _other_levels(members, shape, name):
        changed = {**choices, name: Choice(other, f"{what}: the model prices it lower", "cost")}
        if other is None and own is not None and own.store > own.compute:
            for producer in local_producers(members, name):  # what slid along is the producers' to keep
                if choices[producer].levels is None:
                    changed[producer] = taken_over(choices[producer], own, name, order)
        allowed = nested(members, bounded(members, changed, order), order)
        if _rows_together(members, allowed, order, platform):
            yield structure_of(members, order, allowed)


def _other_levels(members: Members, shape: LoopStructure, name: str) -> Iterator[tuple[Levels | None, str]]:
    """Other levels of a stage, and what it is then: inline instead of kept, or kept for the row instead of inline. Of
    what could be in registers in fused rows only what is computed further out, of a plane at once, is done differently:
    there, for each row."""
    own, row = shape.choices[name].levels, shape.order.innermost + 1
    if any(at.registers for at in shape.levels.values()) and name in row_shifts(members):
        apart = own is not None and own.compute > row and not members.facts.stages[name].updates
        if apart and _few_rows(members, name, shape.choices):
            yield Levels(row - 1, row, True), "computed again for each row"
        return
    if needs_memory(members, name) is not None:
        return
    read, again, once = _again(members, name, lambda c: 1.0)
    if own is None and again > once / PARAMS.inline_doubt and read > 1:
        yield shape.order.levels(row, row), "kept for a row"
    if own is not None and again < once * PARAMS.inline_doubt:
        yield None, "computed where it is read"


def _again(members: Members, name: str, places: Callable[[str], float]) -> tuple[float, float, float]:
    """At how many places of a point of its readers the stage is read, and operations to compute it at each of them, and
    to compute it once, store and load it: all its points, where it has more dims than they. `places`: how often each
    reader is computed."""
    stages = members.facts.stages
    reads = ((places(c), stages[c].read_of[name]) for c in members.consumers[name])
    read = sum(times * max(1.0, r.points, r.executed, r.evaluated) for times, r in reads)
    load, store = members.facts.core.balance.load_operations, members.facts.core.balance.store_operations
    own = stages[name].arithmetic + stages[name].loads * load
    return read, read * own, _free_points(members, name) * (own + store) + read * load


@once
def _known_free(facts: Facts) -> dict[tuple[str, tuple[str, ...]], float]:
    return {}


def _free_points(members: Members, name: str) -> float:
    """Points of a stage for each that its readers have in the dims that move with theirs: the same in all groups in
    which it has these readers."""
    known, key = _known_free(members.facts), (name, members.consumers[name])
    found = known.get(key)
    if found is None:
        found = known[key] = _find_free_points(members, name)
    return found


def _find_free_points(members: Members, name: str) -> float:
    stage = members.facts.stages[name]
    reads = (members.facts.stages[c].read_of[name] for c in members.consumers[name])
    still = ([d for d, s in zip(stage.dims, r.roughly, strict=True) if s.var is None and s.known] for r in reads)
    return max(1, min(prod(map(stage.extent, dims)) for dims in still))


def _rows_together(members: Members, choices: dict[str, Choice], order: LoopOrder, platform: Platform) -> bool:
    """True if what is in registers is read in the loop over vectors only, and as far as these go."""
    if not any(c.levels is not None and c.levels.registers for c in choices.values()):
        return True
    definitions = members.facts.definitions
    row = FusedRow(row_shifts(members), most_row_lanes(members, platform))
    for name in reversed(members.names[:-1]):
        levels = choices[name].levels
        if levels is None or levels.compute == order.innermost:
            how: How = "inline" if levels is None else "registers" if levels.registers else "memory"
            if row.add(definitions[name], [definitions[r] for r in members.consumers[name]], how) is not None:
                return False
        if levels is not None and levels.registers:
            readers = [r for r in real_consumers(members, name, choices) if r != members.output]
            if levels.compute != order.innermost or any(_compute(choices[r]) != levels.compute for r in readers):
                return False
    return True


def _row_by_row(members: Members, name: str, order: LoopOrder) -> bool:
    """True if one row of the stage is new in each iteration of the loop around: of others the row computes none, or
    several, and with them what they read apart."""
    output = members.facts.stages[members.output]
    inside = {d for d in order.side_by_side(output) if output.extent(d) > 1}
    spans = (s for s in members.follows[name].values() if s.var is None or s.var != output.row)
    return all(s.known and (s.extent(1) == 1 if s.var is None else s.rate == 1 and s.var not in inside) for s in spans)


def _few_rows(members: Members, name: str, choices: Mapping[str, Choice]) -> bool:
    """True if a point of each reader reads few rows of the stage: each has a window of its own in registers. Of rows
    that data picks none has: the stage would be computed where it is read, for each row anew."""
    if name in _looked_up(members, choices):
        return False
    along = members.facts.stages[members.output].row
    for reader in members.consumers[name]:
        rows = 1.0
        for span in members.facts.stages[reader].read_of[name].spans:
            if span.var is None or members.followed(reader, span.var) != along:
                rows *= span.extent(1) if span.known else inf
        if rows > members.facts.core.registers.held:
            return False
    return True


def _looked_up(members: Members, choices: Mapping[str, Choice]) -> set[str]:
    """The stages of a group that are read where data says, also through stages that are inline."""
    definitions = members.facts.definitions
    found: dict[str, set[str]] = {}
    if not any(_reads_where_data_says(definitions[name]) for name in members.names):
        return set()
    for reader in reversed(members.names):
        inline = reader in choices and choices[reader].levels is None
        mine = found.get(reader, set()) if inline else set()
        for a in accesses(definitions[reader]):
            if a.producer in members.consumers:
                dims = zip(definitions[a.producer].dims, a.used, a.data, strict=True)
                found.setdefault(a.producer, set()).update(d for d, used, data in dims if data or used & mine)
    return {name for name, dims in found.items() if dims}


@once
def _reads_where_data_says(stage: Stage) -> bool:
    return any(any(a.data) for a in accesses(stage))
