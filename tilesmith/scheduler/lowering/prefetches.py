"""Software prefetches: how far ahead a schedule asks, and the requests for lines of what vectors read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tilesmith.scheduler.ir.index import Atom, Index, const
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.program import Prefetch, PrefetchEnds
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Pointer
from tilesmith.scheduler.lowering import interleaved_channels
from tilesmith.scheduler.lowering.addresses import pixel_row_of, row_of, width_of
from tilesmith.scheduler.lowering.term_rows import TermRows


@dataclass(frozen=True, slots=True)
class Ahead:
    """Prefetches of vectors: `distance` bytes ahead along the rows that they read, by `rows` in dims of what they read,
    nothing where there is neither, and `again`, when it comes from the second level of caches. `near`: the rows are
    wanted soon, in the first. `terms` are rows that long reductions come to, of which each iteration of the outermost
    loop asks for those of the next."""

    distance: int = 0
    rows: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    again: bool = False
    near: bool = False
    terms: tuple[TermRows, ...] = ()


NOTHING_AHEAD = Ahead()


def ask_ahead(
    b: Builder, ahead: Ahead, buffer: Buffer, lanes: tuple[Lane, ...], depth: int, safe: bool = False
) -> None:
    """Asks for what vectors of an image will read further along its row, or in rows to come: every line that a vector
    spans, once for neighbours and for channels of the same pixels, the nearest of which may lie half a line apart. What
    is asked for far ahead comes to the second level of caches; from there loops of many rows ask for it again. A loop
    inside of that over vectors, whose scope has that `depth`, and that goes along the row by less than half a line,
    asks for nothing, nor does a loop that stays where it is: it would ask for the same line again and again. Nor is
    anything asked for of a row that the loop around goes along again in its next iteration. `safe` as in `load`."""
    rows = ahead.rows.get(buffer.stage, {})
    if not lanes or not (ahead.distance or rows) or buffer.where == "thread":
        return
    found = _walked(b, buffer, lanes, safe)
    if found is None:
        return
    row, base, count, along = found
    line = max(b.line_bytes // buffer.type.bytes, 1)
    if any(2 * abs(step) < line and b.depth_of(Index(0, ((atom, 1),))) > depth for atom, step in base.terms):
        return
    if not rows and (b.depth_of(base) < depth or _is_read_again(b, lanes, depth)):
        return
    far = not ahead.near and (bool(rows) or ahead.distance > b.core.prefetch.near_bytes)
    spread = line - 1 if ahead.near else 0  # vectors at any place, of which no neighbours ask
    way = _direction(b, base)

    def ask(first: int) -> None:
        side, place, step = _side_by_side(b, buffer, lanes, along, rows)
        at = base + (first + way * (ahead.distance // buffer.type.bytes))
        for d, n in rows.items():
            at = at + buffer.stride[d].scaled(n)
        asked = Prefetch(row, at, far, b.number((base - base.const, *side)), place, step)
        b.emit(asked)
        if far and ahead.again:
            soon = base + (first + way * (b.core.prefetch.again_bytes // buffer.type.bytes))
            b.emit(replace(asked, index=soon, far=False))

    for first in range(0, count + spread, line):
        key = ("prefetch", row, base - base.const, (base.const + first + line // 2) // line)
        b.remember(b.depth, key, partial(ask, first))


def _is_read_again(b: Builder, lanes: tuple[Lane, ...], depth: int) -> bool:
    """True if the loop around the one over vectors, whose scope has that `depth`, leaves the row where it is, and so do
    loops inside of that over vectors: the next iteration finds it in a cache."""
    around = b.around(depth)
    if around is None:
        return False
    pending, seen = [lane.base for lane in lanes], set[str]()
    while pending:
        for name in {name for atom, _ in pending.pop().terms for name in atom.symbols} - seen:
            seen.add(name)
            at = b.depth_of(name)
            if name in b.values:
                pending.append(b.values[name])
            elif at > depth or around <= at < depth or (at == depth and name not in b.ranges):
                return False
    return True


def _direction(b: Builder, at: Index) -> int:
    """1 where the innermost loop that moves an index makes it greater, or none does; -1 where it makes it less, as in
    a picture that is turned."""
    if at.is_const:
        return 1
    atom, step = max(at.terms, key=lambda term: b.depth_of(Index(0, ((term[0], 1),))))
    sign = 1 if step * b.steps.get(atom.key, 1) > 0 else -1
    if atom.key in b.values:
        return sign * _direction(b, b.values[atom.key])
    return sign * _direction(b, max(atom.args, key=b.depth_of)) if atom.args else sign


def _walked(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], safe: bool
) -> tuple[Pointer, Index, int, tuple[int, ...]] | None:
    """The row of memory that a vector is of, the first of its elements, how many it spans, and the dims that go along
    the row: interleaved pixels are one with all of their channels. None where elements are in several rows or at places
    that data says."""
    unit = lanes[buffer.unit]
    moving = [d for d, lane in enumerate(lanes) if not lane.uniform]
    if unit.pattern is not None and moving in ([], [buffer.unit]):
        least = min(unit.pattern)
        return row_of(b, buffer, lanes), unit.base + least, max(unit.pattern) - least + 1, (buffer.unit,)
    if safe:
        return None
    row = (buffer.unit, buffer.pixels)
    start = interleaved_channels.in_flat_row(b, buffer, lanes)
    if start is not None:
        return pixel_row_of(b, buffer, lanes), start, width_of(unit), row
    pixels = lanes[buffer.pixels].pattern if buffer.channels else None
    channel = interleaved_channels.channel_of(b, buffer, lanes)
    if channel is None or pixels is None:
        return None
    first = (lanes[buffer.pixels].base + min(pixels)).scaled(buffer.channels)
    inside = const(0) if channel.is_const else channel
    return pixel_row_of(b, buffer, lanes), first + inside, (max(pixels) - min(pixels) + 1) * buffer.channels, row


def _side_by_side(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], row: tuple[int, ...], ahead: Mapping[int, int]
) -> tuple[tuple[object, ...], int, int]:
    """The rows of a buffer, which go along the dims `row`, that differ from that of `lanes` in one dim only, the one
    whose rows are unrolled or whose loop is the innermost one around; the place of that row among them, and how many
    rows further they are in the next iteration of that loop."""
    rest = [d for d in range(len(lanes)) if d not in row]
    along = next((d for d in ahead if d not in row), None)
    if along is None:
        along = max(rest, key=lambda d: b.depth_of(lanes[d].base), default=None)
    if along is None:
        return (buffer.stage, buffer.component), 0, 1
    at = _inside(b, lanes[along].base)
    moving = max((c * b.steps.get(a.key, 1) for a, c in at.terms if a.kind == "sym"), key=abs, default=1)
    others = tuple(lanes[d].base for d in rest if d != along)
    side = (buffer.stage, buffer.component, along, at - at.const, others)
    return side, at.const if moving > 0 else -at.const, ahead.get(along, abs(moving))


def _inside(b: Builder, at: Index) -> Index:
    """An index where it lies inside of its image: without the clamps, mirrors and repetitions of what loops inside of
    others move."""
    while True:
        depth = b.depth_of(at)
        moving = [(atom, step) for atom, step in at.terms if b.depth_of(atom.index) == depth]
        if len(moving) != 1 or moving[0][1] != 1:
            return at
        atom = moving[0][0]
        found = b.values.get(atom.key) or _bounded(b, atom, depth)
        if found is None:
            return at
        at = at - atom.index + found


def _bounded(b: Builder, atom: Atom, depth: int) -> Index | None:
    """The index that is clamped, repeated or mirrored; None of other atoms. The ways of a mirror add up to what does
    not move."""
    found = [x for x in atom.args if b.depth_of(x) == depth]
    if atom.kind == "min" and len(found) == 2 and b.depth_of(found[0] + found[1]) < depth:
        return next((x for x in found if len(x.terms) == 1), None)
    one_of = atom.kind in ("min", "max") or (atom.kind == "mod" and found[:1] == [atom.args[0]])
    return found[0] if one_of and len(found) == 1 else None


def ask_for(b: Builder, buffer: Buffer, place: tuple[Lane, ...], count: int) -> None:
    """Asks for `count` elements of a row, from a place on, to come to the second level of caches: they are read later.
    Elements that are less than half a line are asked for with others of the line, or not at all."""
    line = max(b.line_bytes // buffer.type.bytes, 1)
    if 2 * count < line:
        return
    row, start = row_of(b, buffer, place), place[buffer.unit].base
    for first in range(0, count, line):
        b.emit(Prefetch(row, start + first, True, b.number(("asked", row, start + first))))


def ask_ends(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], first: Index, last: Index) -> None:
    """Asks for the lines that the next row begins and ends in: the next in the dim whose loop is the innermost one
    around this."""
    others = [d for d in range(len(lanes)) if d != buffer.unit]
    along = max(others, key=lambda d: b.depth_of(lanes[d].base), default=None)
    ahead = const(0) if along is None else buffer.stride[along]
    b.emit(PrefetchEnds(row_of(b, buffer, lanes), first + ahead, last + ahead))
