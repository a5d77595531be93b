"""Rules over expressions: data, written in the pipeline language with pattern variables `?a`.

A rule holds for types, each of its `Instance`s for the types of one expression. An instance is typed like any
expression: its pattern variables are `Var`s, whose names begin with `?`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from tilesmith.scheduler.ir.pipeline.constant_folding import is_power_of_two
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, Var, children, walk
from tilesmith.scheduler.rewrites.expression_rules.conditions import Condition, Holds
from tilesmith.scheduler.rewrites.expression_rules.equality import Kind, kind, same
from tilesmith.scheduler.rewrites.expression_rules.matching import Binding, bindings
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds, proved
from tilesmith.scheduler.rewrites.expression_rules.template import argument_of, built

Exactness = Literal["exact", "rounding", "approximate"]
"""Exactness: the part of a value that a rule keeps: every bit (a NaN stays a NaN); all but rounding and the sign of
zero, where nothing overflows, underflows or is NaN; or about the value. Of integers, rules but the last keep every
bit."""


NOT_EXACT: Final[Mapping[Exactness, str]] = {
    "rounding": "the rule is exact but for rounding",
    "approximate": "the rule is approximate",
}
"""Why a strict schedule takes no such rule."""


@dataclass(frozen=True, slots=True)
class Example:
    """A rule at work: texts of the pipeline language, in which every name is a variable of the `type`."""

    before: str
    after: str
    type: str = "float32"


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule as it is written."""

    name: str
    match: str
    result: str
    exact: Exactness = "exact"
    where: tuple[str, ...] = ()
    example: Example | None = None

    @property
    def drawing(self) -> str:
        """Before and after, and under which conditions."""
        conditions = f"  where {', '.join(self.where)}" if self.where else ""
        return f"{self.match}  ->  {self.result}{conditions}"


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule at certain types: `match` and `result` are of one type, and the variables of `result` and `where` are
    among those of `match`, or logarithms of them."""

    match: Expr
    result: Expr
    where: tuple[Condition, ...]

    @property
    def variables(self) -> tuple[Var, ...]:
        """The pattern variables, in the order of their first occurrence."""
        return tuple(dict.fromkeys(n for n in walk(self.match) if isinstance(n, Var)))

    @property
    def logarithms(self) -> tuple[Var, ...]:
        """The logarithms that the result and the conditions speak of."""
        parts = (self.result, *(c.e for c in self.where if isinstance(c, Holds)))
        found = (n for part in parts for n in walk(part) if isinstance(n, Var) and not n.name.startswith("?"))
        return tuple(dict.fromkeys(found))

    @property
    def has_floats(self) -> bool:
        """True if rounding can make a difference."""
        return any(n.type.is_float for part in (self.match, self.result) for n in walk(part))


@dataclass(frozen=True)
class ExpressionRule:
    """A rule that was read: what was written, and its instances, one at least."""

    text: RuleText
    instances: tuple[Instance, ...]

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def exact(self) -> Exactness:
        return self.text.exact

    @property
    def kinds(self) -> Collection[Kind]:
        """The kinds of the expressions that it may match."""
        return self._by_kind.keys()

    @cached_property
    def _by_kind(self) -> dict[Kind, list[tuple[Instance, frozenset[type]]]]:
        """The instances by the kind of what they match, with the classes of its operands that are no variables."""
        found: dict[Kind, list[tuple[Instance, frozenset[type]]]] = {}
        for instance in self.instances:
            operands = frozenset(type(part) for part in children(instance.match)) - {Var}
            found.setdefault(kind(instance.match), []).append((instance, operands))
        return found

    def rewritten(self, e: Expr, bounds: Bounds, strict: bool) -> Expr | str:
        """`e` rewritten by the first instance that matches, its conditions proved; or why none is. Of floats, what is
        not exact is none under `strict`."""
        why = f"it is no {self.text.match}"
        classes = set(map(type, children(e)))
        for instance, operands in self._by_kind.get(kind(e), ()):
            if not operands <= classes:
                continue
            if strict and self.exact != "exact" and instance.has_floats:
                why = NOT_EXACT[self.exact]
                continue
            for binding in bindings(instance.match, e):
                new = _rewritten(instance, binding, bounds)
                if not isinstance(new, str):
                    if not same(new, e):
                        return new
                    new = "it would change nothing"
                why = new
        return why


def _rewritten(instance: Instance, binding: Binding, bounds: Bounds) -> Expr | str:
    for logarithm in instance.logarithms:
        value = binding[argument_of(logarithm)]
        if not isinstance(value, Const) or not is_power_of_two(int(value.value)):
            return f"{argument_of(logarithm)} is no constant power of two"
        binding = {**binding, logarithm.name: Const(int(value.value).bit_length() - 1, logarithm.type)}
    for condition in instance.where:
        if not proved(condition, binding, bounds):
            return f"it is not known that {condition.text}"
    return built(instance.result, binding)
