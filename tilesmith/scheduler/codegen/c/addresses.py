"""Loads, gathers, shuffles and index vectors as C expressions."""

from __future__ import annotations

from itertools import takewhile
from typing import Protocol, assert_never

from tilesmith.scheduler.codegen.c import gathers, masks, windows
from tilesmith.scheduler.codegen.c.conversions import cast
from tilesmith.scheduler.codegen.c.integer_functions import PACKED, PACKED_BY_PARTS
from tilesmith.scheduler.codegen.c.lane_gathers import Pairs, lane_gather, narrow_gather, place
from tilesmith.scheduler.codegen.c.lookup_tables import lookup
from tilesmith.scheduler.codegen.c.neighbours import JOINED, joins, neighbours
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.types import Symbols, scalar
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Scatter
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT16, INT32, UINT8, ScalarType

QUARTER_BYTES = 16
"""Bytes of the quarters of the longest registers, within which instructions permute bytes."""


def index(o: Operands, r: Value, op: ops.FromIndex | ops.ToIndex | ops.Lanes) -> str:
    """The C expression of an index as a value, or the other way around."""
    match op:
        case ops.FromIndex():
            return f"(int32_t){o.symbols.text(op.at)}"
        case ops.ToIndex():
            return f"(int64_t){o.name(op.a)}"
        case ops.Lanes():
            wraps = ScalarType("uint", r.type.bits)  # lanes that nobody needs may lie beyond the last coordinate
            t, unsigned = o.of(r.type, r.lanes), o.of(wraps, r.lanes)
            pattern = ", ".join(map(str, op.pattern))
            return f"({t})(({scalar(wraps)}){o.symbols.text(op.at)} + ({unsigned}){{{pattern}}})"
        case _:
            assert_never(op)


def permutation(o: Operands, r: Value, op: ops.Shuffle | ops.Narrow) -> str:
    """The C expression of a permutation of the lanes of two vectors."""
    match op:
        case ops.Shuffle(a=a, picks=picks) if r.name in o.bits:
            return f"{o.function(masks.part(picks[0], a.lanes), masks.mask_of(r.mask_bits), r.lanes)}({a.name})"
        case ops.Shuffle(a=a, b=b, picks=picks):
            found = neighbours(picks, r.type)
            if found and a.lanes == b.lanes == len(picks):
                return f"{o.function(found, r.type, len(picks))}({a.name}, {b.name})"
            if a.lanes == b.lanes and 2 * a.lanes == len(picks) and joins(picks, r.type):
                return f"{o.function(JOINED, r.type, len(picks))}({a.name}, {b.name})"
            return _by_groups(o, r, op) or _by_eighths(o, r, op) or o.shuffle(a.name, b.name, picks)
        case ops.Narrow(a=a, b=b, saturate=True):
            return f"{o.function(PACKED_BY_PARTS if op.by_parts else PACKED, r.type, r.lanes)}({a.name}, {b.name})"
        case ops.Narrow(a=a, b=b):
            own = o.type_of(r)
            return o.shuffle(f"({own}){a.name}", f"({own}){b.name}", tuple(range(0, 2 * r.lanes, 2)))
        case _:
            assert_never(op)


def _by_groups(o: Operands, r: Value, op: ops.Shuffle) -> str | None:
    """A permutation of groups of neighbours, shorter than what any register permutes, as one of elements as wide as
    these: GCC looks for instructions that permute elements of the size that it is told. None of other permutations."""
    picks, bits, lanes = op.picks, r.type.bits, op.a.lanes
    if r.type == BOOL or _in_order(picks):
        return None
    while bits < INT32.bits and min(lanes, len(picks)) > 2 and _in_pairs(picks):
        picks, bits, lanes = tuple(p // 2 for p in picks[::2]), 2 * bits, lanes // 2
    if bits == r.type.bits:
        return None
    whole = o.of(ScalarType("uint", bits), lanes)
    return f"({o.type_of(r)}){o.shuffle(f'({whole}){op.a.name}', f'({whole}){op.b.name}', picks)}"


def _by_eighths(o: Operands, r: Value, op: ops.Shuffle) -> str | None:
    """A permutation of the bytes of a register of AVX-512 as two, of its eighths and of the bytes of each quarter:
    without VBMI there is no instruction for all of it, and GCC makes four of it. None where a quarter is made of more
    than two eighths, and where all are made of the quarters that lie there, which is an instruction, or lie as they
    did but for padding, which GCC leaves out."""
    picks, eighth, quarter = op.picks, QUARTER_BYTES // 2, QUARTER_BYTES
    if r.type.bits != 8 or r.lanes != 4 * quarter or op.a.lanes % eighth or op.a.lanes != op.b.lanes:
        return None
    padding = len(list(takewhile(picks[-1].__eq__, reversed(picks))))
    if _in_order(picks[: r.lanes - padding]):
        return None
    parts = [picks[n : n + quarter] for n in range(0, r.lanes, quarter)]
    used = [tuple(dict.fromkeys(p // eighth for p in part)) for part in parts]
    there = op.a.lanes == r.lanes and all(e // 2 % 4 == n for n, of in enumerate(used) for e in of)
    if there or max(map(len, used)) > 2:
        return None
    eighths = tuple(e for of in used for e in (of[0], of[-1]))
    inside = tuple(
        n * quarter + of.index(p // eighth) * eighth + p % eighth
        for n, (part, of) in enumerate(zip(parts, used, strict=True))
        for p in part
    )
    whole = o.of(ScalarType("uint", 8 * eighth), op.a.lanes // eighth)
    put = f"({o.type_of(r)}){o.shuffle(f'({whole}){op.a.name}', f'({whole}){op.b.name}', eighths)}"
    return put if inside == tuple(range(r.lanes)) else o.shuffle(put, put, inside)


def _in_order(picks: tuple[int, ...]) -> bool:
    return all(n - picks[0] == at for at, n in enumerate(picks))


def _in_pairs(picks: tuple[int, ...]) -> bool:
    return all(p % 2 == 0 and q == p + 1 for p, q in zip(picks[::2], picks[1::2], strict=True))


def address(o: Operands, r: Value, op: ops.Memory) -> str:
    """The C expression of what is read from memory, or asked of an address."""
    match op:
        case ops.Load():
            return _load(o, r, op)
        case ops.LoadPair():
            return f"{o.function('two', INT16, 1)}({place(op.row, o.symbols.bare(op.at))})"
        case ops.ClampedLoad():
            return _clamped_load(o, r, op)
        case ops.Gather():
            return _gather(o, r, op)
        case ops.GatherPairs():
            return _pairs(o, r, op)
        case ops.GatherFours():
            return _fours(o, r, op)
        case ops.MonotoneGather():
            return _monotone_gather(o, r, op)
        case ops.WindowGather():
            if not windows.has_windows(r.type, r.lanes):
                return _gather(o, r, ops.Gather(op.row, (LaneOffset(Lane(const(0), None, op.at), const(1), const(0)),)))
            ends = f"{o.symbols.bare(op.enough)}, {o.symbols.bare(op.last)}"
            return f"{o.function(windows.NAME, r.type, r.lanes)}({op.row}, {ends}, {_places(o, r, op.at)})"
        case ops.EdgeGather():
            places = ", ".join(o.symbols.bare(x) for x in (op.first, op.low, op.high))
            return f"{o.function('edge', r.type, r.lanes)}({op.row}, {places}, {_places(o, r, op.at)})"
        case ops.Lookup():
            return _lookup(o, r, op)
        case ops.CarriedElements() | ops.VectorsIntoLine():
            name = "held" if isinstance(op, ops.CarriedElements) else "into_line"
            stored = UINT8 if op.element == BOOL else op.element
            return f"{o.function(name, stored, op.width)}({op.row} + {o.symbols.text(op.at)})"
        case ops.Misalignment():
            return f"{o.function('beyond', op.element, 1)}({op.row} + {o.symbols.text(op.at)})"
        case _:
            assert_never(op)


def _load(o: Operands, r: Value, op: ops.Load) -> str:
    if r.lanes == 1:
        text = f"{op.row}[{o.symbols.bare(op.at)}]"
    else:
        text = f"LOAD({o.of(r.type, r.lanes)}, {place(op.row, o.symbols.bare(op.at))})"
    return f"{text} != 0" if r.type.kind == "bool" else text


def _clamped_load(o: Operands, r: Value, op: ops.ClampedLoad) -> str:
    t = UINT8 if r.type == BOOL else r.type
    places = ", ".join(o.symbols.bare(x) for x in (op.at, op.first, op.last))
    text = f"{o.function('near', t, r.lanes)}({op.row}, {places})"
    return f"{text} != 0" if r.type == BOOL else text


def _lookup(o: Operands, r: Value, op: ops.Lookup) -> str:
    tests = [f"{o.symbols.text(x)} >= 0" for x in op.whole]
    found = o.function(lookup(op.parts, len(op.at)), r.type, r.lanes)
    return f"{found}({op.row}, {' && '.join(tests)}, {', '.join(a.name for a in op.at)})"


def _monotone_gather(o: Operands, r: Value, op: ops.MonotoneGather) -> str:
    """A row that is long enough is read from the first of them on, or at the last place where a vector fits."""
    ends = f"{o.symbols.text(op.enough)} >= 0, {o.symbols.text(op.last)}"
    return f"{o.function('run', r.type, r.lanes)}({op.row}, {ends}, {_places(o, r, op.at)})"


def _places(o: Operands, r: Value, at: Value) -> str:
    """A vector of places as integers with a sign."""
    return at.name if at.type == INT32 else f"({o.of(INT32, r.lanes)}){at.name}"


def _gather(o: Operands, r: Value, op: ops.Gather) -> str:
    if gathers.is_gathered(r.type, r.lanes):
        found = _gathered_at_once(o, r, op)
        if found is not None:
            return found
    if op.narrow and r.type != BOOL:
        return _narrow(o, r, op, None)
    if r.lanes > 1 and r.type != BOOL:
        vectors = {g.lane.vector: o.type_of(g.lane.vector) for g in op.offsets if g.lane.vector is not None}
        told = lane_gather(o.symbols, r, op, o.of(r.type, r.lanes), vectors)
        if told is not None:
            return o.gathered(*told)
    lanes = ", ".join(f"{op.row}[{offset(o, op.offsets, n)}]" for n in range(r.lanes))
    text = lanes if r.lanes == 1 else f"({o.of(r.type, r.lanes)}){{{lanes}}}"
    return f"{text} != 0" if r.type == BOOL else text


def _narrow(o: Operands, r: Value, op: ops.Gather | ops.GatherPairs, pairs: Pairs | None) -> str:
    """A gather by offsets that are computed as one vector."""
    told = [g.lane.vector for g in op.offsets if g.lane.vector is not None]
    places = [
        _places(o, r, at) if at.type.bits == INT32.bits else cast(o, Value(INT32, at.lanes), at, False) for at in told
    ]
    return o.gathered(*narrow_gather(o.symbols, r, op, o.of(r.type, r.lanes), places, pairs))


def _gathered_at_once(o: Operands, r: Value, op: ops.Gather) -> str | None:
    """A gather as one instruction, where one vector of indices says where in a row, or lane by lane of addresses that
    are computed as vectors, where two say which row and where. With one index and a stride, or one that many gathers
    share, lanes are addressed as fast one by one."""
    if not ops.told_by_vectors(op.offsets, r.lanes):
        return None
    row, found = _told(o, r, op)
    match found:
        case [(at, "1")] if not o.shared_places & {g.lane.vector.name for g in op.offsets if g.lane.vector is not None}:
            return f"{o.function(gathers.NEAR, r.type, r.lanes)}({row}, {at})"
        case [(a, step), (b, other)]:
            return f"{o.function(gathers.FAR, r.type, r.lanes)}({row}, {a}, {step}, {b}, {other})"
    return None


def _told(o: Operands, r: Value, op: ops.Gather | ops.GatherFours) -> tuple[str, list[tuple[str, str]]]:
    """The row that a gather begins in, and the vectors that tell its places, each with its stride."""
    found, common = [], []
    for g in op.offsets:
        assert g.lane.vector is not None
        name = cast(o, Value(INT32, r.lanes), g.lane.vector, False)  # no coordinate is beyond 32 bits with a sign
        if g.lane.base != const(0):
            name = f"(({o.vector('uint', 32, r.lanes)}){name} + (uint32_t){o.symbols.text(g.lane.base)})"
        stride = "1" if g.stride.is_const and g.stride.const == 1 else o.symbols.text(g.stride)
        found.append((name if g.ring is None else f"({o.of(INT32, r.lanes)})({name} & {g.ring - 1})", stride))
        if g.ring is None and (g.origin.terms or g.origin.const):
            common.append(f"{o.symbols.text(g.origin)} * {stride}")
    return f"{op.row} - ({' + '.join(common)})" if common else op.row, found


def _fours(o: Operands, r: Value, op: ops.GatherFours) -> str:
    row, found = _told(o, r, op)
    found += [(f"({o.of(INT32, r.lanes)}){{0}}", "0")] * (2 - len(found))
    places = ", ".join(f"{at}, {step}" for at, step in found)
    return f"{o.function(gathers.FOURS, r.type, r.lanes)}({row}, {places}, {op.part})"


def _pairs(o: Operands, r: Value, op: ops.GatherPairs) -> str:
    count = r.lanes // 2
    load = o.function("pair", r.type, r.lanes)
    if op.narrow:
        o.vector("uint", 2 * r.type.bits, count)
        return _narrow(o, r, op, Pairs(load, op.half))
    lanes = range(op.half * count, (op.half + 1) * count)
    pairs = ", ".join(f"{load}({op.row} + {offset(o, op.offsets, n)})" for n in lanes)
    return f"({o.of(r.type, r.lanes)})({o.vector('uint', 2 * r.type.bits, count)}){{{pairs}}}"


class LaneNames(Protocol):
    """Printers of lane addresses: the text of indices, and of lanes of values."""

    @property
    def symbols(self) -> Symbols: ...
    def lane(self, v: Value, n: int) -> str: ...


def offset(o: LaneNames, offsets: tuple[LaneOffset, ...], n: int) -> str:
    """The offset of lane n in an address that differs from lane to lane."""
    return " + ".join(_one_offset(o, g, n) for g in offsets)


def scattered(o: LaneNames, s: Scatter) -> list[str]:
    """The stores of lanes that do not lie side by side, a line for each."""
    v = s.value
    one = " & 1" if v.type == BOOL else ""
    lines = [f"{s.row}[{offset(o, s.offsets, n)}] = {o.lane(v, n)}{one};" for n in range(v.lanes)]
    if s.within is None:
        return lines
    lo, hi = (o.symbols.text(x) for x in s.within)
    at = [lane_index(o, s.offsets[0].lane, n) for n in range(v.lanes)]
    return [f"if ({i} >= {lo} && {i} <= {hi}) {line}" for i, line in zip(at, lines, strict=True)]


def _one_offset(o: LaneNames, g: LaneOffset, n: int) -> str:
    at = lane_index(o, g.lane, n)
    if g.within is not None:
        lo, hi = (o.symbols.bare(x) for x in g.within)
        at = f"ts_max(ts_min({at}, {hi}), {lo})"
    if g.ring is not None:
        at = f"({at} & {g.ring - 1})"
    elif g.origin.terms or g.origin.const:
        at = f"({at} - {o.symbols.text(g.origin)})"
    if g.stride.is_const and g.stride.const == 1:
        return at
    return f"{at} * {o.symbols.text(g.stride)}"


def lane_index(o: LaneNames, lane: Lane, n: int) -> str:
    """The index of lane n."""
    if lane.vector is not None:
        at = f"(int64_t){o.lane(lane.vector, n)}"
        return f"({at} + {o.symbols.text(lane.base)})" if lane.base != const(0) else at
    shift = lane.pattern[n] if lane.pattern is not None else 0
    return o.symbols.text(lane.base + shift)
