"""Stages at hand in registers while a row is computed: a vector of each, and those before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from tilesmith.scheduler.ir.index import Index, divide, maximum, minimum
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Copy, Shuffle
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.expressions import Compare, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL, UINT8
from tilesmith.scheduler.lowering.index_vectorization import ANYWHERE, NotUniformBound, Places
from tilesmith.scheduler.lowering.lane_divergence import together

Coordinates = tuple[Index, ...]


def mask_bits(stage: Stage, component: int) -> int:
    """Bits that a lane of a stage's values has as a mask in a register: those of the widest numbers that it compares; 0
    of values that are no masks."""
    if stage.types[component] != BOOL:
        return 0
    compared = [e.left.type.bits for e in walk(stage.values[component]) if isinstance(e, Compare)]
    return max(compared, default=UINT8.bits)


def _period(places: tuple[int, ...]) -> int:
    """Lanes after which places go on in the same order."""
    period = 1
    while any(b - a != period for a, b in zip(places, places[period:], strict=False)):
        period *= 2
    return period


@dataclass(slots=True)
class Stream:
    """One row of a stage: `at` are its coordinates in the other dims.

    The row of the output reaches from `lo` to `hi`; of this one `first` to `last` are needed at most, and
    `lo + within[0]` to `hi + within[1]` for certain. While the output's vector at x is computed, readers ask
    for elements from x + `least` to the last of the vector at x + `most`, and the stream's own vector is the one at
    x + `lead`. Leads are whole vectors: what is loaded and stored on the way keeps its alignment. With `whole` nothing
    but needed elements may be computed without clamping every lane.
    """

    stage: Stage
    component: int
    at: Coordinates
    most: int
    least: int
    first: Index
    last: Index
    within: tuple[int, int]
    lead: int = 0
    whole: bool = False
    previous: list[Value] = field(default_factory=list)

    def history(self, lanes: int) -> int:
        """Vectors before the current one that the readers reach."""
        return -(-(self.lead - self.least) // lanes)


@dataclass(slots=True)
class Streams:
    """The streams of a row, and the evaluator's way to them. `dims` has the moving dim of every stage that may be
    one, `rings` the coordinates of the row of those that are stored: their other rows are read from memory. While
    `planning`, requests and the bounds of loads are noted; then requests are answered by lanes of the streams.
    `reader` is the stream that is being computed: None is the output. `ahead` is how far ahead rows of rings are
    read from memory, `reach` from where to where, relative to the output's vector (None where that is not known),
    `before` are the names that there were before the row was planned, `part` is which of the vectors that one iteration
    computes this is. The row of the output reaches from one of its `ends` to the other, and `base` is where some
    vector of the row begins."""

    dims: Mapping[str, int]
    stages: Mapping[str, Stage]
    rings: Mapping[str, Coordinates]
    row_base: Index
    lanes: int
    planning: bool
    builder: Builder
    before: Set[str]
    known: dict[tuple[str, int, Coordinates], Stream] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    reach: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    reader: Stream | None = None
    compute: Callable[[Stream], Value] | None = None
    part: int = 0
    ends: tuple[Index, Index] = (ANYWHERE, ANYWHERE)
    base: Index = ANYWHERE
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = self.builder.depth

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of an access to stage `name`, or None where its lanes are of no row at hand, or not known
        ones of it."""
        stage = self.stages[name]
        d = self.dims[stage.name]
        lane = index[d]
        if lane.pattern is None or any(not other.uniform for n, other in enumerate(index) if n != d):
            return None
        shift = lane.base - self.row_base
        if not shift.is_const or len(lane.pattern) != self.lanes:
            return None
        at = tuple(other.base for n, other in enumerate(index) if n != d)
        if any(self.builder.depth_of(x) >= self.depth for x in at):
            return None  # a row that changes inside the loop has no window
        if any(s in self.builder.depths and s not in self.before for x in at for s in x.symbols()):
            return None  # a row that data tells of, looked up for this row
        places = tuple(shift.const + p for p in lane.pattern)
        if self.rings.get(stage.name, at) != at:
            if self.planning:  # the row may be the same one all the same
                offset = max(places) - (self.lanes - 1)
                self.ahead[stage.name] = max(self.ahead.get(stage.name, offset), offset)
            return None
        return self._lanes(stage, component, at, places)

    def _lanes(self, stage: Stage, component: int, at: Coordinates, places: tuple[int, ...]) -> Value:
        """The elements `places` of a row, from the one on at which the output's vector begins."""
        b = self.builder
        type_ = stage.types[component]
        mask = mask_bits(stage, component)
        key = (stage.name, component, at)
        if self.planning:
            self._note(key, stage, places)
            planned = Value(type_, self.lanes, f"planned {key} {places}", None, mask)
            return b.define(Copy(planned), type_, self.lanes, mask_bits=mask)
        s = self.known[key]
        window = [self.vector(s), *s.previous]
        found = [divmod(s.lead - p + self.lanes - 1, self.lanes) for p in places]
        picks = [(back, self.lanes - 1 - lane) for back, lane in found]
        used = sorted({back for back, _ in picks}, reverse=True)
        if len(used) == 1 and [lane for _, lane in picks] == list(range(self.lanes)):
            return window[used[0]]
        vectors, lanes = [window[n] for n in used], [(used.index(n), lane) for n, lane in picks]
        if len(vectors) > 2:
            return together(b, vectors, lanes, self.lanes)
        picked = Shuffle(vectors[0], vectors[-1], tuple(n * self.lanes + lane for n, lane in lanes))
        return b.define(picked, type_, self.lanes, hint=stage.name, mask_bits=mask)

    def vector(self, s: Stream) -> Value:
        """The stream's own vector, computed when it is first asked for: of several rows side by side those that are
        done with need no registers when the last ones are computed. Loops and conditions that ask for it begin after
        it: the next vectors need it, too."""
        compute = self.compute
        assert compute is not None

        def make() -> Value:
            with self.builder.outside(self.depth):
                return compute(s)

        found = self.builder.remember(self.depth, ("stream", s.stage.name, s.component, s.at, self.part), make)
        assert isinstance(found, Value)
        return found

    def _note(self, key: tuple[str, int, Coordinates], stage: Stage, places: tuple[int, ...]) -> None:
        r, size = self.reader, self.lanes
        lead, within, (first, last) = (0, (0, 0), self.ends) if r is None else (r.lead, r.within, (r.first, r.last))
        shifts = [p - n - lead for n, p in enumerate(places)]
        within = within[0] + max(shifts), within[1] + min(shifts)
        if min(shifts) == max(shifts):
            first, last = first + shifts[0], last + shifts[0]
        else:  # of each period what any of its lanes reads
            period = _period(places)
            least, most = (end(p - lead for p in places[:period]) for end in (min, max))
            first, last = (
                self.base + divide(at - self.base, period).scaled(period) + moved
                for at, moved in ((first, least), (last, most))
            )
        furthest, least = max(places) - (size - 1), min(places)
        s = self.known.setdefault(key, Stream(stage, key[1], key[2], furthest, least, first, last, within))
        s.most, s.least = max(s.most, furthest), min(s.least, least)
        s.first, s.last = minimum(s.first, first), maximum(s.last, last)
        s.within = min(s.within[0], within[0]), max(s.within[1], within[1])

    def _note_reach(self, buffer: Buffer, lane: Lane) -> None:
        shift = lane.base - self.row_base
        if lane.pattern is None or not shift.is_const:
            self.reach[buffer.stage] = None
            return
        found = self.reach.get(buffer.stage, (shift.const, shift.const))
        if found is not None:
            ends = (shift.const + min(lane.pattern), shift.const + max(lane.pattern))
            self.reach[buffer.stage] = (min(found[0], ends[0]), max(found[1], ends[1]))

    def loads(self, places: Places, buffer: Buffer, index: tuple[Lane, ...]) -> None:
        """Notes while planning where a load from memory stays inside of its buffer: whole vectors may be computed
        there, needed or not. Places that are data are known to lie inside only where they are needed."""
        if not self.planning or places.exact:
            return
        if buffer.where == "thread" and index:
            self._note_reach(buffer, index[buffer.unit])
        for d, lane in enumerate(index):
            if lane.uniform or (buffer.ring[d] is not None and lane.vector is None):
                continue
            try:
                if lane.pattern is None:
                    raise NotUniformBound
                start = lane.base - buffer.origin[d]
                places.require(start + min(lane.pattern))
                places.require(buffer.extent[d] - 1 - start - max(lane.pattern))
            except NotUniformBound:
                if self.reader is not None:
                    self.reader.whole = True
