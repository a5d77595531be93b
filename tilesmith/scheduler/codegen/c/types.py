"""Names of C types, literals, and index expressions as C text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilesmith.scheduler.ir.index import Atom, Index, Terms
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

_SHORT = {"bool": "b", "int": "i", "uint": "u", "float": "f"}


def scalar(t: ScalarType) -> str:
    """The C type of a scalar in a register."""
    if t.is_float:
        return "float" if t.bits == 32 else "double"
    return "_Bool" if t == BOOL else f"{t.name}_t"


def element(t: ScalarType) -> str:
    """The C type of an element in memory: bool is a byte."""
    return "uint8_t" if t == BOOL else scalar(t)


def short(t: ScalarType) -> str:
    """The type's short name in vector types and helper functions: f32, u8."""
    return f"{_SHORT[t.kind]}{t.bits}"


def vector(kind: str, bits: int, lanes: int) -> str:
    """The vector type of `lanes` elements of a kind ("int", "uint", "float") and size."""
    return f"{_SHORT[kind]}{bits}x{lanes}"


def function_name(name: str, t: ScalarType, lanes: int) -> str:
    """The C name of a function of vectors of `t`."""
    return f"ts_{name}_{short(t)}x{lanes}"


def literal(value: int | float | bool, t: ScalarType, long: str = "INT64_C({})", ulong: str = "UINT64_C({})") -> str:
    """A C literal of exactly that value and type; `long` and `ulong` are how a language writes those of 64 bits."""
    if t.is_float:
        return _float_literal(float(value), t.bits)
    if t == BOOL:
        return "1" if value else "0"
    n = int(value)
    form = {("int", 64): long, ("uint", 64): ulong, ("uint", 32): "{}u"}.get((t.kind, t.bits), "{}")
    if t.kind == "int" and n == t.min and t.bits >= 32:
        return f"(-{form.format(-n - 1)} - 1)"
    text = form.format(abs(n))
    return f"(-{text})" if n < 0 else text


def _float_literal(x: float, bits: int) -> str:
    suffix = "f" if bits == 32 else ""
    if math.isnan(x):
        return "NAN" if bits == 32 else "(double)NAN"
    if math.isinf(x):
        return ("-" if x < 0 else "") + ("INFINITY" if bits == 32 else "(double)INFINITY")
    text = _shortest_float32(x) if bits == 32 else repr(x)
    if not any(c in text for c in ".en"):
        text += ".0"
    text += suffix
    return f"({text})" if text.startswith("-") else text


def _shortest_float32(x: float) -> str:
    plain = 1e-4 <= abs(x) < 1e9 or x == 0
    if plain and len(repr(x)) <= FLT_DIG + len("."):  # no other number of so few digits is the same in single precision
        return repr(x)
    import numpy as np

    if plain:
        return str(np.format_float_positional(np.float32(x), unique=True, trim="0"))
    return str(np.format_float_scientific(np.float32(x), unique=True, trim="0"))


FLT_DIG = 6
"""Decimal digits that single precision keeps."""


def words(text: str) -> set[str]:
    """The words of a C text: names, keywords, numbers."""
    return set(text.translate(_BETWEEN_WORDS).split())


_BETWEEN_WORDS = {n: " " for n in range(128) if not (chr(n).isalnum() or chr(n) == "_")}


def _is_negative(term: tuple[Atom, int]) -> bool:
    return term[1] < 0


class Symbols:
    """C text of index expressions. `names` maps the symbols of the analysis to C variables; others are their own."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self._sums: dict[Terms, str] = {}

    def text(self, x: Index) -> str:
        """`x` as an int64_t expression, in parentheses where it needs them."""
        out = self.bare(x)
        one = len(x.terms) == 1 and not x.const and x.terms[0][1] == 1 and x.terms[0][0].kind != "mul"
        return f"({out})" if not one and (" " in out or out.startswith("-")) else out

    def bare(self, x: Index) -> str:
        """The expression of `text` without outer parentheses."""
        if not x.terms:
            return str(x.const)
        found = self._sums.get(x.terms)
        if found is None:
            found = self._sums[x.terms] = self._sum(x.terms)
        return self._plus(found, x.const) if x.const else found

    def _plus(self, text: str, n: int) -> str:
        return f"{text} + {n}" if n > 0 else f"{text} - {-n}"

    def _sum(self, terms: Terms) -> str:
        out = ""
        for atom, c in sorted(terms, key=_is_negative):
            piece = self._term(atom, abs(c))
            if not out:
                out = piece if c > 0 else f"-{piece}"
            else:
                out += f" + {piece}" if c > 0 else f" - {piece}"
        return out

    def _term(self, atom: Atom, c: int) -> str:
        text = self._atom(atom)
        return text if c == 1 else f"{c} * {text}"

    def _atom(self, a: Atom) -> str:
        if a.kind == "sym":
            return self.names.get(a.key, a.key)
        if a.kind in ("min", "max"):
            out = self.bare(a.args[0])
            for arg in a.args[1:]:
                out = f"ts_{a.kind}({out}, {self.bare(arg)})"
            return out
        if a.kind == "mul":
            return f"{self.text(a.args[0])} * {self.text(a.args[1])}"
        left, right = a.args
        if right.is_const and right.const & (right.const - 1) == 0:
            if a.kind == "div":
                return f"({self.text(left)} >> {right.const.bit_length() - 1})"
            return f"({self.text(left)} & {right.const - 1})"
        name = "ts_floor_div" if a.kind == "div" else "ts_remainder"
        return f"{name}({self.bare(left)}, {self.bare(right)})"
