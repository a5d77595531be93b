"""A group and its reads: which loop of the output every dim of a member follows, and what is read through
stages that are inlined."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf, prod
from types import MappingProxyType
from typing import Any

from tilesmith.scheduler.analysis.access_functions import Span, hull, variable
from tilesmith.scheduler.analysis.sliding_windows import group_spans, read_otherwise
from tilesmith.scheduler.features.groups.incremental_footprint import Motion, through
from tilesmith.scheduler.features.groups.loop_nest import Line, Nest, line
from tilesmith.scheduler.features.operations.reduction_loops import long_reductions
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read, composed, inlined_read, moved_offsets, together
from tilesmith.scheduler.ir.memo import Memo, once
from tilesmith.scheduler.ir.pipeline.types import INT32

FEW = 16
"""Positions of a dim that are all taken to be read, where it is not known which."""


class Follows(dict[str, Span]):
    """The span of each dim of a stage in the dims of a group's output; `along` has the first that moves with each of
    these. It is one object for all groups of the same facts in which these are the same, and is told apart as that."""

    __slots__ = ("along",)

    def __init__(self, spans: Iterable[tuple[str, Span]]) -> None:
        super().__init__(spans)
        self.along: dict[str | None, Span] = {}
        for span in self.values():
            self.along.setdefault(span.var, span)

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


@dataclass(frozen=True, slots=True)
class Members:
    """The stages of one group: `names` in topological order, the output last.

    `follows` maps every stage to the span of each of its dims in the output's dims: through the whole chain
    of consumers, whoever of them is inlined. A dim that follows no single dim of the output is UNKNOWN; one that is not
    pure (`StageFacts.pure`) stands for the whole of itself and follows nothing.
    `consumers` are those inside the group, in topological order. `shared` are stages that other groups have
    too: each computes its own, inline unless it pays to keep it for a row. `unfolded` are stages whose window is not
    provable: of readers that go through different clamps one stays behind at an edge, and what is computed for such a
    stage may be asked for all at once. `lines` are spans in integers, `moved` the motions of reads, those of all groups
    of the same facts, and `memo` has whatever else follows from the group alone.
    """

    facts: Facts
    output: str
    names: tuple[str, ...]
    follows: dict[str, Follows]
    consumers: dict[str, tuple[str, ...]]
    shared: frozenset[str] = frozenset()
    unfolded: frozenset[str] = frozenset()
    lines: dict[tuple[int, int], tuple[Span, Line]] = field(default_factory=dict, compare=False, repr=False)
    moved: dict[Hashable, tuple[Read, Motion | None]] = field(default_factory=dict, compare=False, repr=False)
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)

    def followed(self, stage: str, dim: str) -> str | None:
        """The dim of the output that `dim` of `stage` follows."""
        return self.follows[stage][dim].var

    def line(self, span: Span, most: int = INT32.max) -> Line:
        """The span in integers, of a dim of so many elements, kept: by identity, since hashing fractions costs more
        than this."""
        found = self.lines.get((id(span), most))
        if found is None:
            found = self.lines[id(span), most] = (span, line(span, most))
        return found[1]

    def through(self, reader: str, read: Read, motion: Motion, dim: str) -> Motion | None:
        """The motion of a stage's reads with the loop over the output's `dim`, where the stage has this motion: the
        same in all groups of the same facts in which the stage's dims follow the same."""
        own = self.follows[reader]
        key = (id(read), own, motion, dim)
        found = self.moved.get(key)
        if found is None:
            found = self.moved[key] = (read, through(read, own, motion, dim, self.line))
        return found[1]

    def kept(self, nest: Nest) -> dict[Hashable, Any]:
        """Whatever follows from the facts and `nest` alone: of this very one, not of its equals."""
        return _of_nests(self.facts).setdefault(nest, {})

    def is_local(self, name: str) -> bool:
        """True if `name` is a stage of the group."""
        return name in self.follows


@once
def _lines(facts: Facts) -> dict[tuple[int, int], tuple[Span, Line]]:
    return {}


@once
def _motions_of(facts: Facts) -> dict[Hashable, tuple[Read, Motion | None]]:
    return {}


@once
def _of_nests(facts: Facts) -> dict[Nest, dict[Hashable, Any]]:
    return {}


@once
def _known_follows(facts: Facts) -> dict[tuple[str, tuple[Span, ...]], Follows]:
    return {}


@once
def _known_reached(facts: Facts) -> dict[tuple[int, Follows], tuple[Read, tuple[Span, ...]]]:
    return {}


@once
def _known_effective(facts: Facts) -> dict[tuple[str, tuple[tuple[str, int], ...]], list[Effective]]:
    return {}


def members_of(facts: Facts, output: str, names: tuple[str, ...], shared: frozenset[str] = frozenset()) -> Members:
    """The group of `output` with stages `names` (in topological order, the output among them)."""
    inside = set(names)
    spans: dict[str, tuple[Span, ...]] = {output: tuple(variable(d) for d in facts.stages[output].dims)}
    consumers: dict[str, list[str]] = {name: [] for name in names}
    follows: dict[str, Follows] = {}
    for name in reversed(names):
        own = follows[name] = _follows(facts, name, spans[name])
        for read in facts.stages[name].reads:
            if read.producer in inside:
                consumers[read.producer].append(name)
                here = _reached(facts, read, own)
                known = spans.get(read.producer)
                spans[read.producer] = here if known is None else tuple(map(_hull, known, here))
    read_by = {n: tuple(reversed(c)) for n, c in consumers.items()}
    unfolded = _unfolded(facts, names, follows, read_by)
    return Members(facts, output, names, follows, read_by, shared, unfolded, _lines(facts), _motions_of(facts))


def _follows(facts: Facts, name: str, spans: tuple[Span, ...]) -> Follows:
    known = _known_follows(facts)
    key = (name, spans)
    found = known.get(key)
    if found is None:
        found = known[key] = Follows(zip(facts.stages[name].dims, spans, strict=True))
    return found


def _reached(facts: Facts, read: Read, own: Follows) -> tuple[Span, ...]:
    """The reads of a stage, in the dims of the output that its own follow."""
    known = _known_reached(facts)
    found = known.get((id(read), own))
    if found is None:
        found = known[id(read), own] = (read, composed(read.spans, own))
    return found[1]


def _unfolded(
    facts: Facts,
    names: tuple[str, ...],
    follows: Mapping[str, Mapping[str, Span]],
    consumers: Mapping[str, tuple[str, ...]],
) -> frozenset[str]:
    """Stages that clamps keep from following the output (see `windows`), and what is computed for them."""
    *others, output = (facts.definitions[n] for n in names)
    if all(read_otherwise(facts.definitions[n]).isdisjoint(names) for n in names):
        return frozenset()
    strict = group_spans(output, others)
    found: set[str] = set()
    for name in reversed(names[:-1]):
        known = zip(follows[name].values(), strict[name], strict=True)
        lost = any(ours.known and ours.var is not None and not theirs.known for ours, theirs in known)
        if lost or found.intersection(consumers[name]):
            found.add(name)
    return frozenset(found)


def _hull(a: Span, b: Span) -> Span:
    return a if a == b else hull(a, b)


@dataclass(frozen=True, slots=True, eq=False)
class Effective:
    """Reads of one stage that is not inlined, after inlining: `reads` reach stages that are computed for
    themselves and externals, `inlined` maps every stage inlined into this one to its evaluations a point, readers
    before what they read, `executed` to those of them that no `mux` skips. All are for each of the points that are
    computed at once, so many along each dim that is in `apart`, and that share what they read. It is one object for all
    groups of the same facts, and is told apart as that."""

    reads: tuple[Read, ...]
    inlined: dict[str, float]
    executed: dict[str, float]
    apart: Mapping[str, int]

    @property
    def side_by_side(self) -> int:
        """The number of points that are computed at once."""
        return prod(self.apart.values())

    def with_inlined(self, name: str) -> list[str]:
        """The stages that are computed for a point of this one, `name`, in topological order."""
        return [*reversed(self.inlined), name]

    def holds(self, inlined: frozenset[str]) -> bool:
        """True if these accesses are the same where the stages `inlined` are inlined."""
        return inlined.issuperset(self.inlined) and all(r.producer not in inlined for r in self.reads)


def effective(
    members: Members,
    inlined: frozenset[str],
    unrolled: Mapping[str, int] = MappingProxyType({}),
    registers: Collection[str] = (),
    rows: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> dict[str, Effective]:
    """The reads of every stage of the group that is not inlined, through those that are.

    A stage read inline at several positions, or along several paths, is evaluated once a distinct position:
    work grows with the edges of the graph, not with its paths. So many points of the output as its `unrolled` dims say
    share what they read; so do those that they need of stages in `registers`, and so many `rows` of other stages as
    are computed together.
    """
    known = _known_effective(members.facts)
    result: dict[str, Effective] = {}
    for name in members.names:
        if name not in inlined:
            apart = dict(rows.get(name, {}))
            if name in registers or (name == members.output and (unrolled or not apart)):
                apart = _side_by_side(members, name, unrolled)
            made = known.setdefault((name, tuple(apart.items())), [])
            found = next((e for e in made if e.holds(inlined)), None)
            if found is None:
                found = _find_effective(members.facts, name, inlined, apart)
                made.append(found)
            result[name] = found
    return result


def point_alone(members: Members, name: str, reads: Effective) -> Effective:
    """The reads of a point of a stage, with the same stages inline, were it not computed together with others."""
    if not reads.apart:
        return reads
    known = _known_effective(members.facts).setdefault((name, ()), [])
    inlined = frozenset(reads.inlined)
    found = next((e for e in known if e.holds(inlined)), None)
    if found is None:
        found = _find_effective(members.facts, name, inlined, {})
        known.append(found)
    return found


def _side_by_side(members: Members, name: str, unrolled: Mapping[str, int]) -> dict[str, int]:
    """The dims of a stage of which several points are needed at once, where that many are of the output's."""
    if name == members.output or not unrolled:
        return dict(unrolled)
    spans = members.follows[name].items()
    return {d: told_apart(s, unrolled[s.var]) for d, s in spans if s.known and s.var is not None and s.var in unrolled}


def _find_effective(facts: Facts, name: str, inlined: frozenset[str], unrolled: Mapping[str, int]) -> Effective:
    found = {r.producer: _once_for_all(r, unrolled) for r in facts.stages[name].reads}
    evaluations: dict[str, float] = {}
    executed: dict[str, float] = {}
    pending = [p for p in found if p in inlined]
    along = facts.stages[name].storage[:1]
    looped = long_reductions(facts.definitions[name]) > 0
    while pending:
        via = found[max(pending, key=facts.graph.stages.index)]
        pending.remove(via.producer)
        if unrolled:
            via = _shared_once(facts, via, unrolled, looped)
        evaluations[via.producer] = via.points
        executed[via.producer] = via.executed
        # of points that are computed together all sums are in one loop
        stage = facts.stages[via.producer]
        long = not unrolled and long_reductions(facts.definitions[via.producer]) > 0
        for read in stage.reads:
            reached = _inlined(facts, read, via, along, long)
            if reached.producer in found:
                reached = _together(facts, found[reached.producer], reached)
            elif reached.producer in inlined:
                pending.append(reached.producer)
            found[reached.producer] = reached
    reads = (r for p, r in found.items() if p not in inlined)
    if unrolled:
        reads = (_shared_once(facts, r, unrolled, looped) for r in reads)
    return Effective(tuple(reads), evaluations, executed, unrolled)


@once
def _known_reads(facts: Facts) -> dict[Hashable, tuple[Read, ...]]:
    """Reads that are made of others, by how and by the identity of those, which are kept beside them: sets of stages
    that are inlined have most of their reads in common."""
    return {}


def _inlined(facts: Facts, read: Read, via: Read, along: tuple[str, ...], long: bool) -> Read:
    """See `inlined_read`."""
    known, key = _known_reads(facts), (id(read), id(via), along, long)
    found = known.get(key)
    if found is None:
        dims = facts.stages[via.producer].dims
        found = known[key] = (inlined_read(read, via, dims, along, long), read, via)
    return found[0]


def _together(facts: Facts, one: Read, other: Read) -> Read:
    """Two reads of one producer as one, of no more than its distinct elements."""
    known, key = _known_reads(facts), (id(one), id(other))
    found = known.get(key)
    if found is None:
        both = together(one, other)
        found = known[key] = (both.at_most(both.distinct), one, other)
    return found[0]


def _shared_once(facts: Facts, read: Read, unrolled: Mapping[str, int], looped: bool) -> Read:
    """See `_shared`."""
    known, key = _known_reads(facts), (id(read), looped, *unrolled.items())
    found = known.get(key)
    if found is None:
        found = known[key] = (_shared(facts, read, unrolled, looped), read)
    return found[0]


def _once_for_all(read: Read, unrolled: Mapping[str, int]) -> Read:
    """The read of each point of a stage of which so many along its `unrolled` dims are computed side by side, where all
    of them read the same places: once for all, however far from each other these are."""
    if not unrolled or read.several or not read.moving.isdisjoint(unrolled) or not all(s.known for s in read.roughly):
        return read
    return read.shared(read.points / prod(unrolled.values()))


def _shared(facts: Facts, read: Read, unrolled: Mapping[str, int], looped: bool) -> Read:
    """The read with its positions for each point of a stage of which so many along its `unrolled` dims are computed
    side by side. What data or floats tell them apart by, each looks up for itself, however few places there are; of
    windows that reductions go through in loops, `looped`, points share what they read in the same iteration only."""
    if not (read.data_of | read.floats_of).isdisjoint(unrolled):
        return read
    producer = facts.stages[read.producer]
    if read.several:
        several = tuple((spans, min(n, _positions(producer, spans, unrolled, looped))) for spans, n in read.several)
        return read._replace(several=several).shared(sum(n for _, n in several))
    return read.shared(_distinct(read, unrolled, looped) or _positions(producer, read.spans, unrolled, looped))


def told_apart(span: Span, points: int) -> int:
    """The elements that so many neighbouring iterations touch, as their code tells them apart: of an index such as
    `y // 4` it does not know where among four the first of them is, so that each fourth follows the same line."""
    lines = min(points, span.rate.denominator)
    if lines == 1:
        return span.extent(points)
    step = abs(span.rate.numerator)
    return lines * min(-(-points // lines) * span.extent(1), step * (-(-points // lines) - 1) + span.extent(1))


def _distinct(read: Read, unrolled: Mapping[str, int], looped: bool) -> float:
    """Elements that a point needs of those that the points together read, by their offsets; 0 where these are not
    known, or windows are gone through in loops."""
    if looped or not read.offsets:
        return 0.0
    moves = product(*(range(n) for n in unrolled.values()))
    of = [dict(zip(unrolled, move, strict=True)) for move in moves]
    steps = (tuple(int(s.rate) * at.get(s.var or "", 0) for s in read.spans) for at in of)
    return len(moved_offsets(read.offsets, steps)) / len(of)


def _positions(producer: StageFacts, spans: tuple[Span, ...], unrolled: Mapping[str, int], looped: bool) -> float:
    """Elements of a producer that a point needs of those that the points together read."""
    positions = 1.0
    for dim, span in zip(producer.dims, spans, strict=True):
        if span.known:
            points = 1 if span.var is None else unrolled.get(span.var, 1)
            once = span._replace(hi=span.lo) if looped else span
            positions *= told_apart(once, points) * span.extent(1) / once.extent(1)
        elif producer.extent(dim) <= FEW:
            positions *= producer.extent(dim)
        else:
            return inf
    return positions / prod(unrolled.values())
