"""Index-set splitting: rows of which a remainder, such as y % 2, decides what is computed are written once for each
remainder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from tilesmith.scheduler.ir.index import Atom, Index, const
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit
from tilesmith.scheduler.ir.loop.program import If, Statement

LARGEST_DIVISOR = 4
MOST_REMAINDERS = 2
"""Rows are written once for each remainder of at most so many indices."""


class NeedRemainder(Misfit):
    """The computation depends on the remainder of `of` by `by`."""

    def __init__(self, of: Index, by: int) -> None:
        super().__init__(of, by)
        self.of = of
        self.by = by


def ask(b: Builder, undecided: Index, depth: int) -> None:
    """Raises NeedRemainder where `undecided` is made of a remainder that exists outside scope `depth`, and rows may
    be written once for each."""
    if len(b.remainders) >= MOST_REMAINDERS or b.depth_of(undecided) >= depth:
        return
    atoms = [atom for atom, _ in undecided.terms]
    if atoms and all(map(_is_small, atoms)):
        of, by = atoms[0].args
        raise NeedRemainder(of - of.const, by.const)


def _is_small(atom: Atom) -> bool:
    return atom.kind == "mod" and atom.args[1].is_const and 2 <= atom.args[1].const <= LARGEST_DIVISOR


def by_remainder(b: Builder, emit: Callable[[bool], None]) -> None:
    """Emits rows: once, or for each remainder that decides what they compute. `emit` is told whether it may ask for
    one, by NeedRemainder."""
    names = len(b.depths)
    try:
        with b.attempt():
            emit(True)
        return
    except NeedRemainder as need:
        index, by = need.of, need.by  # the exception itself has all that was emitted
    if set(index.symbols()).intersection(islice(b.depths, names, None)):
        emit(False)  # the index is made of data that these rows have read: there is nothing to ask before them
        return
    of = b.let(b.remainder(index, by), "remainder")
    otherwise: tuple[Statement, ...] = ()
    for r in reversed(range(by)):
        with b.condition({(index, by): r}) as body:
            by_remainder(b, emit)
        otherwise = (If((const(r) - of,), tuple(body), None, otherwise),) if r < by - 1 else tuple(body)
    for statement in otherwise:
        b.emit(statement)
