"""Arithmetic of bounds that may leave 64 bits: computed with checks, so that it ends the call and not the program."""

from __future__ import annotations

from tilesmith.scheduler.analysis.bounds_inference import param_symbol
from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.ir.index import Atom, Index, Terms
from tilesmith.scheduler.ir.loop.program import Let, OverflowGuard, Statement
from tilesmith.scheduler.ir.loop.signature import Parameter

COORDINATE = 1 << 32
"""No min, extent or checked end is larger, in either direction."""
LIMIT = 1 << 62


class Magnitudes:
    """Magnitudes of bounds, statement by statement: mins and extents are 32-bit, params as declared."""

    def __init__(self, params: tuple[Parameter, ...]) -> None:
        self._known: dict[str, int] = {}
        for p in params:
            if p.type.is_integer:
                lo, hi = p.type.min if p.min is None else int(p.min), p.type.max if p.max is None else int(p.max)
                self._known[param_symbol(p.name)] = max(abs(lo), abs(hi))

    def needed(self, s: Statement) -> Statement | None:
        """`s` without what is sure to stay in 64 bits anyway; None where nothing is left to do."""
        if not isinstance(s, OverflowGuard):
            return s
        wide = tuple(x for x in s.wide if self._of(x)[1] >= LIMIT)
        return OverflowGuard(s.low, s.high, wide) if s.low or s.high or wide else None

    def far(self, s: Statement) -> bool:
        """True if the arithmetic of `s`, the next statement, may leave 64 bits."""
        match s:
            case Let():
                self._known[s.name], peak = self._of(s.value)
                return peak >= LIMIT
            case OverflowGuard():
                peak = max(self._of(x)[1] for x in (*s.low, *s.high, *s.wide))
                for x in (*s.low, *s.high):  # no lower end is above the upper one
                    if len(x.terms) == 1 and x.terms[0][0].kind == "sym" and abs(x.terms[0][1]) == 1:
                        self._known[x.terms[0][0].key] = COORDINATE + abs(x.const)
                return peak >= LIMIT
        return False

    def _of(self, x: Index) -> tuple[int, int]:
        """The largest magnitude of `x`, and of anything on the way to it."""
        total = peak = abs(x.const)
        for atom, c in x.terms:
            value, inside = self._atom(atom)
            total += abs(c) * value
            peak = max(peak, inside)
        return total, max(peak, total)

    def _atom(self, a: Atom) -> tuple[int, int]:
        if a.kind == "sym":
            value = self._known.get(a.key, COORDINATE)
            return value, value
        parts = [self._of(x) for x in a.args]
        peak = max(p for _, p in parts)
        if a.kind == "mul":
            value = parts[0][0] * parts[1][0]
            return value, max(peak, value)
        return (parts[0][0] if a.kind == "div" else max(v for v, _ in parts)), peak


class FarSymbols(Symbols):
    """Index expressions whose sums and products set `far` where they overflow."""

    def text(self, x: Index) -> str:
        return self.bare(x) if x.terms else super().text(x)

    def _plus(self, text: str, n: int) -> str:
        return f"ts_far_sum({text}, {n}, &far)"

    def _sum(self, terms: Terms) -> str:
        out = ""
        for atom, c in terms:
            piece = self._term(atom, c)
            out = f"ts_far_sum({out}, {piece}, &far)" if out else piece
        return out

    def _term(self, atom: Atom, c: int) -> str:
        text = self._atom(atom)
        return text if c == 1 else f"ts_far_product({text}, {c}, &far)"

    def _atom(self, a: Atom) -> str:
        if a.kind == "mul":
            return f"ts_far_product({self.bare(a.args[0])}, {self.bare(a.args[1])}, &far)"
        return super()._atom(a)
