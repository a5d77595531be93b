"""Context of the type rules of one expression: its problems, and what literals and operands become."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tilesmith.scheduler.errors import Problem
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import Names
from tilesmith.scheduler.frontends.document.parser import Syntax
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, Var
from tilesmith.scheduler.ir.pipeline.type_promotion import common_type, constant, convert, default_type
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval

Value = Expr | int | float  # a plain number is a literal: its neighbours give it a type


@dataclass(frozen=True, slots=True)
class TupleValue:
    """Several values at once. `whole`: it may be the value of a stage as it stands (argmin, argmax)."""

    parts: tuple[Expr | None, ...]
    whole: bool


Result = Value | TupleValue | None


class Context:
    """State of the check of one expression. `variables` are the dims and domain variables that it may name, `ranges`
    the intervals of those with constant ends; `results` those of the nodes that were checked."""

    def __init__(
        self,
        syntax: Syntax,
        names: Names,
        variables: Mapping[str, Var],
        limits: Limits,
        problems: list[Problem],
        ranges: Mapping[str, Interval] = MappingProxyType({}),
    ) -> None:
        self.syntax, self.names, self.variables = syntax, names, variables
        self.limits, self.problems = limits, problems
        self.ranges = ranges
        self.results: dict[ast.expr, Result] = {}

    def problem(self, code: str, message: str, node: ast.expr, hint: str | None = None) -> None:
        self.problems.append(Problem(code, self.syntax.pointer, message, hint, node.col_offset))

    def literal(self, node: ast.expr, value: int | float, type: ScalarType) -> Const | None:
        """The literal as a constant of `type`, or a problem."""
        const = constant(value, type)
        if const is None:
            if isinstance(value, float) and not type.is_float:
                self.problem("type_error", f"A floating literal cannot be {type}.", node, f"write {type}(...)")
            elif type == BOOL:
                self.problem("type_error", "A number cannot be bool.", node, "write True or False, or compare")
            else:
                hint = "write int64(...)" if type == INT32 else f"convert the other operand, {type} is too narrow"
                shown = f"{value} " if abs(value) < 1 << 70 else ""
                self.problem("literal_out_of_range", f"The literal {shown}does not fit {type}.", node, hint)
        return const

    def settle(self, node: ast.expr, value: Value | None) -> Expr | None:
        """`value` with a type of its own: a literal alone is int32 or float32."""
        return self.literal(node, value, default_type(value)) if isinstance(value, int | float) else value

    def unify(self, nodes: Sequence[ast.expr], values: Sequence[Value], what: str) -> list[Expr] | None:
        """`values` brought to their common type."""
        if len(values) == 2 and (quick := self._alike(nodes, values[0], values[1])) is not None:
            return quick
        type: ScalarType | None = None
        for node, value in zip(nodes, values, strict=True):
            if isinstance(value, int | float):
                continue
            joined = value.type if type is None else common_type(type, value.type)
            if joined is None:
                message = f"{what} cannot combine {type} and {value.type}."
                self.problem("type_error", message, node, "convert the bool, e.g. with uint8(...)")
                return None
            type = joined
        if type is None or type.is_integer:
            floating = any(isinstance(v, float) for v in values)
            type = FLOAT32 if floating else type or INT32
        unified: list[Expr] = []
        for node, value in zip(nodes, values, strict=True):
            converted = self.literal(node, value, type) if isinstance(value, int | float) else convert(value, type)
            if converted is not None:
                unified.append(converted)
        return unified if len(unified) == len(values) else None

    def _alike(self, nodes: Sequence[ast.expr], a: Value, b: Value) -> list[Expr] | None:
        """The usual pairs: two values of one type, or one and a literal that fits it. None: look closer."""
        if isinstance(a, int | float):
            if isinstance(b, int | float):
                return None
            const = constant(a, b.type)
            return None if const is None else [const, b]
        if isinstance(b, int | float):
            const = constant(b, a.type)
            return None if const is None else [a, const]
        return [a, b] if a.type is b.type else None

    def boolean(self, node: ast.expr, value: Value | None) -> Expr | None:
        """`value`, which has to be bool."""
        if value is None:
            return None
        if isinstance(value, int | float) or value.type != BOOL:
            shown = "a number" if isinstance(value, int | float) else value.type.name
            self.problem("bad_predicate", f"A condition has to be bool, not {shown}.", node, "compare, e.g. ... != 0")
            return None
        return value

    def single(self, node: ast.expr) -> Value | None:
        """The result of `node` where one value is needed."""
        result = self.results.get(node)  # None, too, for what the syntax check kept out
        if isinstance(result, TupleValue):
            hint = f"pick one of the {len(result.parts)} components, e.g. ...[0]"
            self.problem("tuple_needs_component", "This is a tuple, and one value is needed.", node, hint)
            self.results[node] = None
            return None
        return result
