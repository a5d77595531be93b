"""Loads, gathers, shuffles and index vectors as C expressions."""

from __future__ import annotations

from scheduler.codegen.c import gathers
from scheduler.codegen.c.conversions import cast
from scheduler.codegen.c.lookup_tables import lookup
from scheduler.codegen.c.neighbours import neighbours
from scheduler.codegen.c.operands import Operands
from scheduler.codegen.c.types import scalar
from scheduler.ir.index import Index, const
from scheduler.ir.loop.program import Define, Gathered, Lane, Value, told_by_vectors
from scheduler.ir.pipeline.types import BOOL, INT32, UINT8, ScalarType

OPS = (
    "load", "near", "held", "into_line", "beyond", "lookup", "run", "gather", "pairs", "fours", "shuffle", "narrow",
    "lanes", "from_index", "to_index",
)  # fmt: skip


def address(o: Operands, d: Define) -> str:
    """The C expression of a definition with one of OPS."""
    r, first = d.result, d.args[0]
    match d.op:
        case "from_index":
            assert isinstance(first, Index)
            return f"(int32_t){o.symbols.text(first)}"
        case "to_index":
            assert isinstance(first, Value)
            return f"(int64_t){o.name(first)}"
        case "lanes":
            assert isinstance(first, Index)
            pattern = d.attrs[0]
            assert isinstance(pattern, tuple)
            wraps = ScalarType("uint", r.type.bits)  # lanes that nobody needs may lie beyond the last coordinate
            t, unsigned = o.of(r.type, r.lanes), o.of(wraps, r.lanes)
            return f"({t})(({scalar(wraps)}){o.symbols.text(first)} + ({unsigned}){{{', '.join(map(str, pattern))}}})"
        case "load":
            return _load(o, d)
        case "near":
            return _near(o, d)
        case "held" | "into_line" | "beyond":
            place, element, width = d.attrs
            assert isinstance(first, Index)
            assert isinstance(element, ScalarType)
            assert isinstance(width, int)
            stored = UINT8 if element == BOOL else element
            return f"{o.function(d.op, stored, width)}({place} + {o.symbols.text(first)})"
        case "shuffle":
            return _shuffle(o, d)
        case "narrow":
            return _narrow(o, d)
        case "lookup":
            return _lookup(o, d)
        case "run":
            return _run(o, d)
        case "pairs":
            return _pairs(o, d)
        case "fours":
            return _fours(o, d)
    return _gather(o, d)


def _load(o: Operands, d: Define) -> str:
    r, row, at = d.result, d.attrs[0], d.args[0]
    assert isinstance(at, Index)
    if r.lanes == 1:
        text = f"{row}[{o.symbols.bare(at)}]"
        return f"{text} != 0" if r.type == BOOL else text
    kind = "uint" if r.type == BOOL else r.type.kind
    text = f"*(const {o.unaligned(kind, r.type.bits, r.lanes)} *)({row} + {o.symbols.text(at)})"
    return f"{text} != 0" if r.type == BOOL else text


def _near(o: Operands, d: Define) -> str:
    """`row[at]` for neighbours of which those from `first` to `last` exist; lanes beyond have any of them."""
    r, (at, first, last) = d.result, d.args
    t = UINT8 if r.type == BOOL else r.type
    places = ", ".join(o.symbols.bare(x) for x in (at, first, last) if isinstance(x, Index))
    text = f"{o.function('near', t, r.lanes)}({d.attrs[0]}, {places})"
    return f"{text} != 0" if r.type == BOOL else text


def _lookup(o: Operands, d: Define) -> str:
    """`row[at]` for a vector of bytes, the indices in one vector or two; the table is whole where none of the further
    arguments is negative."""
    (row, parts), r = d.attrs, d.result
    assert isinstance(parts, int)
    at = [a for a in d.args if isinstance(a, Value)]
    tests = [f"{o.symbols.text(x)} >= 0" for x in d.args if isinstance(x, Index)]
    found = o.function(lookup(parts, len(at)), r.type, r.lanes)
    return f"{found}({row}, {' && '.join(tests)}, {', '.join(a.name for a in at)})"


def _run(o: Operands, d: Define) -> str:
    """`row[at]` for a run of neighbours, clamped: a row that is long enough is read from the first of them on, or at
    the last place where a vector fits."""
    at, more, last = d.args
    assert isinstance(at, Value)
    assert isinstance(more, Index)
    assert isinstance(last, Index)
    lanes = d.result.lanes
    index = at.name if at.type == INT32 else f"({o.of(INT32, lanes)}){at.name}"
    ends = f"{o.symbols.text(more)} >= 0, {o.symbols.text(last)}"
    return f"{o.function('run', d.result.type, lanes)}({d.attrs[0]}, {ends}, {index})"


def _shuffle(o: Operands, d: Define) -> str:
    picks = d.attrs[0]
    assert isinstance(picks, tuple)
    a, b = d.args
    assert isinstance(a, Value)
    assert isinstance(b, Value)
    found = neighbours(picks, d.result.type)
    if found and a.lanes == b.lanes == len(picks):
        return f"{o.function(found, d.result.type, len(picks))}({a.name}, {b.name})"
    return f"__builtin_shufflevector({a.name}, {b.name}, {', '.join(map(str, picks))})"


def _narrow(o: Operands, d: Define) -> str:
    """The lanes of two vectors of integers as half as wide: their low halves."""
    r = d.result
    own = o.type_of(r)
    a, b = (x.name for x in d.args if isinstance(x, Value))
    evens = ", ".join(map(str, range(0, 2 * r.lanes, 2)))
    return f"__builtin_shufflevector(({own}){a}, ({own}){b}, {evens})"


def _gather(o: Operands, d: Define) -> str:
    r, row, dims = d.result, d.attrs[0], d.attrs[1]
    assert isinstance(dims, tuple)
    if gathers.is_gathered(r.type, r.lanes):
        found = _gathered_at_once(o, d, dims)
        if found is not None:
            return found
    lanes = ", ".join(f"{row}[{offset(o, dims, n)}]" for n in range(r.lanes))
    text = lanes if r.lanes == 1 else f"({o.of(r.type, r.lanes)}){{{lanes}}}"
    return f"{text} != 0" if r.type == BOOL else text


def _gathered_at_once(o: Operands, d: Define, dims: tuple[Gathered, ...]) -> str | None:
    """A gather as one instruction, where one vector of indices says where in a row, or as two, where two vectors say
    which row and where. With one index and a stride, or one that many gathers share, lanes are addressed as fast one by
    one."""
    r = d.result
    if not told_by_vectors(dims, r.lanes):
        return None
    row, found = _told(o, d, dims)
    match found:
        case [(at, "1")] if not o.shared_places & {g.lane.vector.name for g in dims if g.lane.vector is not None}:
            return f"{o.function(gathers.NEAR, r.type, r.lanes)}({row}, {at})"
        case [(a, step), (b, other)]:
            return f"{o.function(gathers.FAR, r.type, r.lanes)}({row}, {a}, {step}, {b}, {other})"
    return None


def _told(o: Operands, d: Define, dims: tuple[Gathered, ...]) -> tuple[str, list[tuple[str, str]]]:
    """The row that a gather begins in, and the vectors that tell its places, each with its stride."""
    r, found, common = d.result, [], []
    for g in dims:
        assert g.lane.vector is not None
        name = cast(o, Value(INT32, r.lanes), g.lane.vector, False)  # no coordinate is beyond 32 bits with a sign
        if g.lane.base != const(0):
            name = f"(({o.vector('uint', 32, r.lanes)}){name} + (uint32_t){o.symbols.text(g.lane.base)})"
        stride = "1" if g.stride.is_const and g.stride.const == 1 else o.symbols.text(g.stride)
        found.append((name if g.ring is None else f"({o.of(INT32, r.lanes)})({name} & {g.ring - 1})", stride))
        if g.ring is None and (g.origin.terms or g.origin.const):
            common.append(f"{o.symbols.text(g.origin)} * {stride}")
    return f"{d.attrs[0]} - ({' + '.join(common)})" if common else str(d.attrs[0]), found


def _fours(o: Operands, d: Define) -> str:
    """A fourth of the lanes of a gather, each with the three that follow it in memory."""
    r, dims, part = d.result, d.attrs[1], d.attrs[2]
    assert isinstance(dims, tuple)
    row, found = _told(o, d, dims)
    found += [(f"({o.of(INT32, r.lanes)}){{0}}", "0")] * (2 - len(found))
    places = ", ".join(f"{at}, {step}" for at, step in found)
    return f"{o.function(gathers.FOURS, r.type, r.lanes)}({row}, {places}, {part})"


def _pairs(o: Operands, d: Define) -> str:
    """Half of the lanes of a gather, each with its right neighbour."""
    r, row, dims, half = d.result, d.attrs[0], d.attrs[1], d.attrs[2]
    assert isinstance(dims, tuple)
    assert isinstance(half, int)
    count = r.lanes // 2
    load = o.function("pair", r.type, r.lanes)
    pairs = ", ".join(f"{load}({row} + {offset(o, dims, n)})" for n in range(half * count, (half + 1) * count))
    return f"({o.of(r.type, r.lanes)})({o.vector('uint', 2 * r.type.bits, count)}){{{pairs}}}"


def offset(o: Operands, dims: tuple[Gathered, ...], n: int) -> str:
    """The offset of lane n in an address that differs from lane to lane."""
    return " + ".join(_one_offset(o, g, n) for g in dims)


def _one_offset(o: Operands, g: Gathered, n: int) -> str:
    at = lane_index(o, g.lane, n)
    if g.within is not None:
        lo, hi = (o.symbols.bare(x) for x in g.within)
        at = f"tilesmith_max(tilesmith_min({at}, {hi}), {lo})"
    if g.ring is not None:
        at = f"({at} & {g.ring - 1})"
    elif g.origin.terms or g.origin.const:
        at = f"({at} - {o.symbols.text(g.origin)})"
    if g.stride.is_const and g.stride.const == 1:
        return at
    return f"{at} * {o.symbols.text(g.stride)}"


def lane_index(o: Operands, lane: Lane, n: int) -> str:
    """The index of lane n."""
    if lane.vector is not None:
        at = f"(int64_t){o.lane(lane.vector, n)}"
        return f"({at} + {o.symbols.text(lane.base)})" if lane.base != const(0) else at
    shift = lane.pattern[n] if lane.pattern is not None else 0
    return o.symbols.text(lane.base + shift)
