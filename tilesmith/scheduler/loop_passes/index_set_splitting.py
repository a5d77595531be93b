"""Index set splitting (Wolfe, High Performance Compilers for Parallel Computing, 1996): the iterations of a long
innermost loop in which clamps and remainders of its variable do nothing, as those of mirrored images, become a loop
without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import is_

from tilesmith.scheduler.ir.index import Atom, Index, const, divide, maximum, minimum, remade, sym
from tilesmith.scheduler.ir.loop.program import Apart, Body, Let, Loop, Statement
from tilesmith.scheduler.ir.loop.traversal import NESTING, block_of, defined, with_indices, with_regions

LONG_TRIPS = 64
"""Iterations from which on a loop may have its ends apart; one whose number only the call knows counts as long."""

SMALL_BODY = 48
"""Statements of a body that may stand twice, at most."""


def split(body: Body) -> Body:
    """The block with its long innermost loops split where clamps begin and cease to be at work. Iterations keep their
    order. What seldom runs is left as it is."""
    return block_of([x for s in body for x in _split(s)], body)


def _split(s: Statement) -> Body:
    if isinstance(s, Loop) and not any(isinstance(x, NESTING) for x in s.body):
        return _without_clamps(s) if _is_candidate(s) else (s,)
    if not isinstance(s, NESTING) or (isinstance(s, Apart) and s.seldom):
        return (s,)
    return (with_regions(s, split),)


def _is_candidate(loop: Loop) -> bool:
    trips = loop.hi - loop.lo + 1
    plain = loop.step == const(1) and not loop.parallel and loop.skip is None and loop.seen is None
    return plain and not (trips.is_const and trips.const < LONG_TRIPS) and len(loop.body) <= SMALL_BODY


def _without_clamps(loop: Loop) -> Body:
    """The loop as three, of which the middle one has the iterations that no clamp changes; itself without clamps."""
    clamps = _Clamps(loop.var, {name: _sum_of(s) for s in loop.body for name in defined(s)})
    middle = tuple([with_indices(s, clamps.undone) for s in loop.body])
    if not clamps.first and not clamps.last:
        return (loop,)
    end = maximum(loop.hi + 1, loop.lo)
    from_ = Let(f"{loop.var}_from", minimum(reduce(maximum, clamps.first, loop.lo), end))
    begin = sym(from_.name)
    to = Let(f"{loop.var}_to", maximum(reduce(minimum, [x + 1 for x in clamps.last], end), begin))
    after = sym(to.name)
    parts = (replace(loop, hi=begin - 1), replace(loop, lo=begin, hi=after - 1, body=middle), replace(loop, lo=after))
    ends = [p for p, found in zip(parts, (clamps.first, True, clamps.last), strict=True) if found]
    return from_, to, *ends


def _sum_of(s: Statement) -> Index | None:
    return s.value if isinstance(s, Let) else None


@dataclass(slots=True)
class _Clamps:
    """The clamps and remainders of a loop's variable that were taken out of indices: they do nothing from each of
    `first` on and up to each of `last`. `local` are the names that the loop's body defines, with the sums that some of
    them stand for."""

    var: str
    local: Mapping[str, Index | None]
    first: list[Index] = field(default_factory=list)
    last: list[Index] = field(default_factory=list)

    def undone(self, x: Index) -> Index:
        """The index without the clamps and remainders."""
        parts = [self._undone(a) for a, _ in x.terms]
        if all(part is a.index for part, (a, _) in zip(parts, x.terms, strict=True)):
            return x
        total = const(x.const)
        for part, (_, c) in zip(parts, x.terms, strict=True):
            total += part.scaled(c)
        return total

    def _undone(self, atom: Atom) -> Index:
        args = [self.undone(a) for a in atom.args]
        place = self._place(atom, args)
        if place is None:
            return atom.index if all(map(is_, args, atom.args)) else remade(atom, args)
        return place

    def _place(self, atom: Atom, args: Sequence[Index]) -> Index | None:
        """The one of `args` that the atom is where it does nothing, which goes along the variable: of several, as of
        what is mirrored, the one that does so forwards. Where that is is noted. None where there is none."""
        moving = [a for a in args if not self._is_invariant(a)]
        if len(moving) > 1:
            moving = [a for a in moving if self._written_out(a).coefficient(self.var) > 0]
        if len(moving) != 1 or not self._written_out(moving[0]).coefficient(self.var):
            return None
        (place,) = moving
        match atom.kind:
            case "min" | "max":
                others = [x for x in args if x is not place]
                ahead = [place - x if atom.kind == "max" else x - place for x in others]
            case "mod" if place is args[0] and not (args[1].is_const and args[1].const < LONG_TRIPS):
                ahead = [place, args[1] - place - 1]
            case _:
                return None
        linear = [self._written_out(x) for x in ahead]
        if not all(x.coefficient(self.var) and self._is_invariant(self._rest(x)) for x in linear):
            return None
        for x in linear:  # not negative where the atom does nothing
            c, rest = x.coefficient(self.var), self._rest(x)
            if c > 0:
                self.first.append(divide(rest.scaled(-1) + (c - 1), c))
            else:
                self.last.append(divide(rest, -c))
        return place

    def _written_out(self, x: Index) -> Index:
        """The index with sums in place of the names that the body has for them."""
        total = const(x.const)
        for a, c in x.terms:
            value = self.local.get(a.key) if a.kind == "sym" else None
            total += (a.index if value is None else self._written_out(value)).scaled(c)
        return total

    def _rest(self, x: Index) -> Index:
        return x - sym(self.var).scaled(x.coefficient(self.var))

    def _is_invariant(self, x: Index) -> bool:
        return not any(name == self.var or name in self.local for name in x.symbols())
