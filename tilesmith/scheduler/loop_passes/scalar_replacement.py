"""Redundant load elimination: what vectors from memory hold already is not loaded again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, sym
from tilesmith.scheduler.ir.loop.ops import Binary, Copy, Load, Shuffle
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Apart,
    Assign,
    Body,
    ClampedIndex,
    Define,
    Function,
    If,
    Invoke,
    Let,
    Loop,
    Ordered,
    PeeledLoop,
    RowPointer,
    Scatter,
    Statement,
    Store,
    Stores,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import NESTING, block_of, regions, values_of, with_regions
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer, Value

Key = tuple[Pointer, Index, Value, int]
"""A row, a place in it, what is loaded (without a name), and a number that changes where the row may be written.
Vectors with the same key differ in how many elements after that place they begin."""

Loads = Mapping[Key, Mapping[int, Define]]
"""The loads of a block by where they begin."""

Rows = dict[Pointer, Buffer]
"""The buffers of the rows that are known."""

NEIGHBOURS = 3
"""Loads that begin within a vector, at least, of which some are worth to be permutations: two are as many as are
needed for these."""


def every_other(body: Body, permuted_bytes: int) -> Body:
    """*Before*: every other element from x on is picked of two vectors, and every other from x + 1 on of two more.
    *After*: both are picked of the same two. Those from x - 2 or x + 2 on are these, moved by a lane, with one element
    of another load: most loads of such windows lie across two lines. Elements of fewer than `permuted_bytes` are not
    moved, which takes several instructions."""

    def block(statements: Body, rows: Rows) -> Body:
        picks = [s for s in statements if isinstance(s, Define) and isinstance(s.op, Shuffle)]
        if not picks:
            return statements
        loads = _loads(statements, rows)
        return _defined(statements, loads, _paired(picks, loads, permuted_bytes))

    return in_blocks(body, {}, block)


def carried(body: Body, line_bytes: int, most: int) -> Body:
    """*Before*: a loop over vectors that are as long as lines loads neighbours one by one, two lines for each. *After*:
    of such in a row of at least three, every other one is a permutation of the first vector and of that of the next
    iteration, which is kept for it, of `most` rows: the units that load and those that permute share the work. The last
    iteration, which has no next one, is as before.

    Where a loop that moves its last vector back onto the row reads more such rows than it could keep vectors of, all
    but the first neighbour are permutations of that one and the vector after it, which is loaded, too, as long as there
    is a whole one: loads are most of what such a loop does.

    *Legal when* iterations follow each other, the row stays the same, and its buffer is not written in the loop."""

    def block(statements: Body, rows: Rows) -> Body:
        found: list[Statement] = []
        for s in statements:
            if isinstance(s, Loop):
                found += _carrying(s, rows, line_bytes, most)
            else:
                found.append(s)
        return block_of(found, statements)

    return in_blocks(body, {}, block)


def windows(body: Body, line_bytes: int, permuted_bytes: int) -> Body:
    """*Before*: vectors that are as long as lines begin at many places of a row, two lines for each, and some of them
    are a vector apart. *After*: every other one that begins between two such is a permutation of these, so that the
    units that load and those that permute share the work, in blocks in which loads are most of it: of no more
    operations than loads. Elements of fewer than `permuted_bytes` are not moved, which takes several instructions."""

    def block(statements: Body, rows: Rows) -> Body:
        loads = _loads(statements, rows)
        if _operations(statements) > sum(map(len, loads.values())):
            return statements
        instead: dict[str, Define] = {}
        for (_, _, kind, _), starts in loads.items():
            n, bytes_ = kind.lanes, kind.type.bytes
            if not kind.mask_bits and n * bytes_ >= line_bytes and bytes_ >= permuted_bytes:
                instead |= {d.result.name: d for d in _between(starts, n)}
        return _defined(statements, loads, instead)

    return in_blocks(body, {}, block)


def _operations(statements: Body) -> int:
    """The number of operations on vectors in a block; products of floats are part of the sums that they go to."""
    count = 0
    for s in statements:
        match s:
            case Define(op=Binary(op="*")) if s.result.type.kind == "float":
                pass
            case Define() if any(a.lanes > 1 for a in values_of(s.op)):
                count += 1
            case _:
                pass
    return count


def _between(starts: Mapping[int, Define], n: int) -> Iterator[Define]:
    """Every other load of those that begin between two which are `n` elements apart, as a permutation of the two; each
    pair begins where the one before ends, or after it."""
    end = min(starts)
    for low in sorted(starts):
        if low < end or low + n not in starts:
            continue
        end = low + n
        near = [at for at in sorted(starts) if low < at < end]
        for at in near[::2] if len(near) >= NEIGHBOURS else ():
            picks = tuple(range(at - low, at - low + n))
            yield Define(starts[at].result, Shuffle(starts[low].result, starts[end].result, picks))


def in_blocks(statements: Body, rows: Rows, change: Callable[[Body, Rows], Body]) -> Body:
    """Changes every block, those inside of it first."""
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, RowPointer):
            rows[s.result] = s.buffer
        elif isinstance(s, NESTING):
            s = with_regions(s, lambda body: in_blocks(body, rows, change))
        found.append(s)
    return change(block_of(found, statements), rows)


def _loads(statements: Iterable[Statement], rows: Rows) -> Loads:
    found: dict[Key, dict[int, Define]] = defaultdict(dict)
    stores: dict[Pointer, int] = defaultdict(int)
    blocks = 0
    for s in statements:
        match s:
            case Store() | Scatter() | StreamAligned() | StreamLine():
                stores[s.buffer.pointer] += 1
            case Loop() | PeeledLoop() | Apart() | Ordered() | If() | Function() | Invoke():
                blocks += 1
            case Define(op=Load(row=row, at=at)) if s.result.lanes > 1 and row in rows:
                kind = Value(s.result.type, s.result.lanes, mask_bits=s.result.mask_bits)
                key = (row, at - at.const, kind, blocks + stores[rows[row].pointer])
                found[key].setdefault(at.const, s)
            case _:
                pass
    return found


def _defined(statements: Body, loads: Loads, instead: Mapping[str, Define]) -> Body:
    """The statements with the definitions `instead`, each after those that it is made of."""
    if not instead:
        return statements
    known = {d.result.name: d for starts in loads.values() for d in starts.values()} | dict(instead)
    found: list[Statement] = []
    done: set[str] = set()
    for s in statements:
        found += _with_parts(instead.get(s.result.name, s), known, done) if isinstance(s, Define) else (s,)
    return tuple(found)


def _with_parts(d: Define, known: Mapping[str, Define], done: set[str]) -> Iterator[Define]:
    """A definition after the `known` ones that it is made of, those that are not `done`."""
    if d.result.name not in done:
        done.add(d.result.name)
        for a in values_of(d.op):
            if a.name in known:
                yield from _with_parts(known[a.name], known, done)
        yield d


def _paired(picks: Iterable[Define], loads: Loads, permuted_bytes: int) -> dict[str, Define]:
    """The permutations, among those that pick lanes of two vectors, that pick every other element: of two vectors for
    both halves; of these for their neighbours."""
    place = {d.result.name: (key, at) for key, starts in loads.items() for at, d in starts.items()}
    halves: dict[Key, dict[int, Define]] = defaultdict(dict)
    for s in picks:
        if (found := _half(s, place)) is not None:
            halves[found[0]].setdefault(found[1], s)
    instead: dict[str, Define] = {}
    for key, starts in halves.items():
        pairs = _pairs(starts, sorted(starts), loads[key], key[2].lanes)
        moved = _moved(starts, loads[key], key[2].lanes) if key[2].type.bytes >= permuted_bytes else pairs
        fewer = len(_taken(starts, moved, place)) < len(_taken(starts, pairs, place))
        instead |= moved if fewer else pairs
    return instead


def _taken(starts: Mapping[int, Define], made: Mapping[str, Define], place: Mapping[str, object]) -> set[str]:
    """The loads that the halves are made of."""
    found = (made.get(d.result.name, d) for d in starts.values())
    return {a.name for d in found for a in values_of(d.op) if a.name in place}


def _pairs(
    starts: Mapping[int, Define], order: Sequence[int], loads: Mapping[int, Define], n: int
) -> dict[str, Define]:
    """Halves that begin next to each other, made of the same two vectors; those that come first in `order`."""
    found: dict[str, Define] = {}
    for at in order:
        low, high = loads.get(at), loads.get(at + n)
        if at + 1 not in starts or starts[at].result.name in found or low is None or high is None:
            continue
        for odd in (0, 1):
            result = starts[at + odd].result
            picks = tuple(range(odd, 2 * n, 2))
            found[result.name] = Define(result, Shuffle(low.result, high.result, picks))
    return found


def _moved(starts: Mapping[int, Define], loads: Mapping[int, Define], n: int) -> dict[str, Define]:
    """One such pair, and every other half made of the one that begins two elements nearer to it, and of a load that has
    the element that this one lacks: the first one, or the last. The pair is the one whose vectors are likely to lie in
    a line each, else that in the middle."""
    pairs = [at for at in sorted(starts) if at + 1 in starts] or sorted(starts)
    whole = [at for at in pairs if at % n == 0] or pairs
    centre = whole[len(whole) // 2]
    found = _pairs(starts, [centre], loads, n)
    made = {at: found.get(starts[at].result.name, starts[at]) for at in (centre, centre + 1) if at in starts}
    found |= {d.result.name: d for d in made.values()}
    least, most = min(made), max(made)
    for at in sorted(starts, key=lambda at: max(least - at, at - most)):
        nearer, lacks = (at + 2, at) if at < least else (at - 2, at + 2 * n - 2)
        other = next((begins for begins in sorted(loads) if begins <= lacks < begins + n), None)
        if at in made or nearer not in made or other is None:
            continue
        lane = n + lacks - other
        picks = (lane, *range(n - 1)) if at < least else (*range(1, n), lane)
        picked = Shuffle(made[nearer].result, loads[other].result, picks)
        made[at] = found[starts[at].result.name] = Define(starts[at].result, picked)
    return found


def _half(s: Define, place: Mapping[str, tuple[Key, int]]) -> tuple[Key, int] | None:
    """The first of the elements that `s` picks of two loads, if that is every other one."""
    match s:
        case Define(op=Shuffle(a=a, b=b, picks=picks)):
            n = a.lanes
            if a.name not in place or b.name not in place or s.result.lanes != n:
                return None
            (key, first), (other, second) = place[a.name], place[b.name]
            elements = [first + p if p < n else second + p - n for p in picks]
            if key == other and elements == list(range(elements[0], elements[0] + 2 * n, 2)):
                return key, elements[0]
        case _:
            pass
    return None


def _carrying(loop: Loop, rows: Rows, line_bytes: int, most: int) -> Body:
    """`loop` but for its last iteration, with what iterations keep for the next; and that iteration."""
    if loop.seen is not None and loop.seen.last is not None:
        return _beside(loop, loop.seen, loop.seen.last, rows, line_bytes, most)
    plain = loop.step == const(1) and loop.skip is None and loop.seen is None and not loop.parallel
    if not plain or any(map(regions, loop.body)):
        return (loop,)
    begin: list[Statement] = []
    ends: list[Statement] = []
    instead: dict[str, list[Define]] = {}
    for (row, at, kind, _), starts, near in _neighbours(loop, rows, line_bytes):
        n, first = kind.lanes, starts[near[0]]
        fixed = at - sym(loop.var).scaled(n)
        if fixed.mentions(loop.var):
            continue
        kept, start, following = (
            replace(first.result, name=f"{first.result.name}_{which}") for which in ("kept", "first", "next")
        )
        begin.append(Define(start, Load(row, fixed + loop.lo.scaled(n) + near[0])))
        begin.append(Accumulator(kept, start))
        ends.append(Assign(kept, following))
        hand = [Define(first.result, Copy(kept)), Define(following, Load(row, at + n + near[0]))]
        instead[first.result.name] = hand
        for p in near[1::2]:
            result = starts[p].result
            picks = tuple(range(p - near[0], p - near[0] + n))
            instead[result.name] = [*hand, Define(result, Shuffle(first.result, following, picks))]
    if not begin or len(ends) > most:
        return (loop,)
    but_last = replace(loop, hi=loop.hi - 1, body=(*_instead(loop.body, instead), *ends))
    final = replace(loop, lo=maximum(loop.lo, loop.hi), comment="the last of them")
    return If((loop.hi - loop.lo - 1,), (*begin, but_last)), final


def _neighbours(loop: Loop, rows: Rows, line_bytes: int) -> Iterator[tuple[Key, Mapping[int, Define], list[int]]]:
    """The loads of a loop, of vectors as long as lines, from rows that stay and are not written, where three or more
    begin within a vector; and where these do."""
    own = {s.result for s in loop.body if isinstance(s, RowPointer)}
    written = {s.buffer.pointer for s in loop.body if isinstance(s, Stores)}
    for key, starts in _loads(loop.body, rows).items():
        row, _, kind, _ = key
        near = [p for p in sorted(starts) if p <= min(starts) + kind.lanes]
        stays = row not in own and rows[row].pointer not in written
        if stays and not kind.mask_bits and kind.lanes * kind.type.bytes >= line_bytes and len(near) >= NEIGHBOURS:
            yield key, starts, near


def _instead(statements: Body, instead: Mapping[str, list[Define]]) -> Body:
    """The statements with those definitions in place of others, each once."""
    found: list[Statement] = []
    defined: set[str] = set()
    for s in statements:
        if not isinstance(s, Define):
            found.append(s)
            continue
        made = [x for x in instead.get(s.result.name, [s]) if x.result.name not in defined]
        defined.update(x.result.name for x in made)
        found += made
    return tuple(found)


def _beside(loop: Loop, seen: ClampedIndex, last: Index, rows: Rows, line_bytes: int, most: int) -> Body:
    """`loop` where a vector follows, with neighbours permuted, which moves nothing; and the rest of it."""
    if loop.skip is not None or loop.parallel or any(map(regions, loop.body)):
        return (loop,)
    if sum(isinstance(s, Define) and isinstance(s.op, Load) for s in loop.body) <= most * NEIGHBOURS:
        return (loop,)
    found = [x for x in _neighbours(loop, rows, line_bytes) if const(x[0][2].lanes) == loop.step]
    if len(found) <= most:
        return (loop,)
    instead: dict[str, list[Define]] = {}
    for (row, at, kind, _), starts, near in found:
        first = starts[near[0]]
        following = replace(first.result, name=f"{first.result.name}_next")
        hand = [first, Define(following, Load(row, at + kind.lanes + near[0]))]
        instead[first.result.name] = hand
        for p in near[1:]:
            picks = tuple(range(p - near[0], p - near[0] + kind.lanes))
            result = starts[p].result
            instead[result.name] = [*hand, Define(result, Shuffle(first.result, following, picks))]
    lanes, start, end = loop.step.const, f"{loop.var}_whole", f"{loop.var}_rest"
    begins = loop.lo + (minimum(const(1), seen.first - loop.lo).scaled(lanes) if seen.first is not None else const(0))
    whole = maximum(divide(last - sym(start), lanes), const(0)).scaled(lanes)
    body = _instead(loop.body, instead)
    whole_loop = replace(loop, lo=sym(start), hi=sym(end) - 1, seen=ClampedIndex(seen.name), body=body)
    rest = replace(loop, skip=(sym(start), sym(end)), comment="where none follows")
    return Let(start, begins), Let(end, sym(start) + whole), whole_loop, rest
