"""Conditions of rules: their forms, those that are about types decided at once, the others read for each instance.

    ?k is constant               ?k is not constant         ?a does not read f
    type(?a) is uint8            type(?a) is not float      kinds: bool, integer, signed, unsigned, float
    type(?a) is type(?b)         type(?a) holds type(?b)    bits(?a) > bits(?b)

Anything else is an expression of the language, to be proved of what the variables stand for.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilesmith.scheduler.ir.pipeline.expressions import Expr
from tilesmith.scheduler.ir.pipeline.types import BOOL, TYPES, ScalarType

Typing: TypeAlias = Mapping[str, ScalarType]
_MANTISSA = {32: 24, 64: 53}
_V = r"\?([A-Za-z]\w*)"


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition that is an expression of pattern variables, to be proved."""

    e: Expr
    text: str


@dataclass(frozen=True, slots=True)
class IsConstant:
    """The condition that a pattern variable stands for a constant, or for anything else."""

    variable: str
    constant: bool
    text: str


@dataclass(frozen=True, slots=True)
class DoesNotRead:
    """The condition that what a pattern variable stands for does not read a stage or input."""

    variable: str
    name: str
    text: str


Condition: TypeAlias = Holds | IsConstant | DoesNotRead


@dataclass(frozen=True, slots=True)
class OfTypes:
    """A condition on the types of `variables`."""

    variables: tuple[str, ...]
    holds: Callable[[Typing], bool]


KINDS: Final[dict[str, Callable[[ScalarType], bool]]] = {
    "bool": lambda t: t == BOOL,
    "integer": lambda t: t.is_integer,
    "signed": lambda t: t.kind == "int",
    "unsigned": lambda t: t.kind == "uint",
    "float": lambda t: t.is_float,
    **{name: lambda t, name=name: t.name == name for name in TYPES if name != "bool"},  # type: ignore[misc]
}
_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


def holds_all(wide: ScalarType, narrow: ScalarType) -> bool:
    """True if every value of `narrow` is one of `wide`."""
    if wide == narrow:
        return True
    if wide.is_float and narrow.is_float:
        return wide.bits >= narrow.bits
    if wide.kind == "bool" or narrow.is_float:
        return False
    if wide.is_float:
        return max(-narrow.min, narrow.max) <= 1 << _MANTISSA[wide.bits]
    return wide.min <= narrow.min and narrow.max <= wide.max


def special(text: str) -> OfTypes | IsConstant | DoesNotRead | None:
    """The condition that `text` is, if it is of one of the forms that are no expressions. Variables are named without
    their sign in conditions on types, with it in the others. KeyError for a kind or type that there is not."""
    for form, make in _FORMS:
        if (found := form.fullmatch(text)) is not None:
            return make(text, *found.groups())
    return None


def _is_kind(text: str, a: str, negated: str | None, kind: str) -> OfTypes:
    wanted = KINDS[kind]
    return OfTypes((a,), lambda types: wanted(types[a]) is not bool(negated))


def _bits(text: str, a: str, order: str, b: str) -> OfTypes:
    return OfTypes((a, b), lambda types: _ORDERS[order](types[a].bits, types[b].bits))


_Made: TypeAlias = OfTypes | IsConstant | DoesNotRead
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[..., _Made]], ...]] = (
    (re.compile(rf"{_V} is (not )?constant"), lambda text, a, no: IsConstant("?" + a, not no, text)),
    (re.compile(rf"{_V} does not read ([A-Za-z_]\w*)"), lambda text, a, name: DoesNotRead("?" + a, name, text)),
    (
        re.compile(rf"type\({_V}\) is type\({_V}\)"),
        lambda text, a, b: OfTypes((a, b), lambda types: types[a] == types[b]),
    ),
    (
        re.compile(rf"type\({_V}\) holds type\({_V}\)"),
        lambda text, a, b: OfTypes((a, b), lambda types: holds_all(types[a], types[b])),
    ),
    (re.compile(rf"type\({_V}\) is (not )?([a-z]+[0-9]*)"), _is_kind),
    (re.compile(rf"bits\({_V}\) (<|<=|==|!=|>=|>) bits\({_V}\)"), _bits),
)
