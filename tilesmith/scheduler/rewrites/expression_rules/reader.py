"""Reading of rules: texts of the pipeline language with pattern variables, parsed and typed as those of documents are.

A pattern variable is written `?a`. One that is called, `?T(?a)` or `sat_?T(?a)`, stands for a type. `log2(?k)` is the
logarithm of a constant power of two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.document.names import Names
from tilesmith.scheduler.frontends.document.parser import Syntax, parse
from tilesmith.scheduler.frontends.document.type_checker import Builder
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var, children, variables_of
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.expression_rules.conditions import (
    Condition,
    DoesNotRead,
    Holds,
    IsConstant,
    OfTypes,
    Typing,
    special,
)
from tilesmith.scheduler.rewrites.expression_rules.equality import same
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule, Instance, RuleText
from tilesmith.scheduler.rewrites.expression_rules.template import LOG2
from tilesmith.scheduler.rewrites.expression_rules.type_inference import TypeClasses

LIMITS: Final = Limits(expression_chars=1000, expression_nodes=40, expression_depth=20)
MOST_VARIABLES: Final = 8
MOST_CONDITIONS: Final = 8
MOST_TYPES: Final = 3
"""Types of a rule that can be chosen one by one: there are eleven for each."""

_VARIABLE = re.compile(r"\?([A-Za-z]\w*)")
_LOG2 = re.compile(r"\blog2\(\s*\?([A-Za-z]\w*)\s*\)")
_HIDDEN = re.compile(r"(?<![A-Za-z0-9_?])_\w*")
Want = Literal["value", "condition"]


def read(text: RuleText, where: str = "") -> ExpressionRule:
    """The rule that `text` says, typed for all types that it has; `where` is the pointer to it in a document. Raises
    DocumentError with what is wrong with it. Whether it is true is not asked here."""
    return _Reader(text, where).rule()


@dataclass(frozen=True, slots=True)
class _Expression:
    """A text of a rule, its syntax tree, and its pointer."""

    text: str
    tree: ast.expr
    pointer: str

    def names(self) -> Iterator[str]:
        """The names of pattern variables, those that stand for types left out, and the arguments of log2."""
        called = {id(n.func) for n in ast.walk(self.tree) if isinstance(n, ast.Call)}
        for n in ast.walk(self.tree):
            if isinstance(n, ast.Name) and id(n) not in called:
                yield n.id.removeprefix("__log2_").removeprefix("_")

    def types(self) -> Iterator[str]:
        """The names of pattern variables that stand for types."""
        for n in ast.walk(self.tree):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name):
                name = n.func.id.removeprefix("sat_")
                if name.startswith("_"):
                    yield name.removeprefix("_")


class _Reader:
    def __init__(self, text: RuleText, where: str) -> None:
        self.text, self.where, self.problems = text, where, list[Problem]()
        self.variables: tuple[str, ...] = ()
        self.type_variables: tuple[str, ...] = ()
        self.parsed: dict[tuple[str, str], Syntax | None] = {}

    def rule(self) -> ExpressionRule:
        match, result = (self._parse(getattr(self.text, side), f"{self.where}/{side}") for side in ("match", "result"))
        conditions = self._conditions()
        if match is None or result is None or self.problems:
            raise DocumentError(tuple(self.problems))
        self._names(match, result, conditions)
        if self.problems:
            raise DocumentError(tuple(self.problems))
        instances = tuple(self._instances(match, result, conditions))
        if not instances:
            reason = Problem("bad_rule", self.where, f"The rule {self.text.name!r} has no types.", "see its conditions")
            raise DocumentError(tuple(self.problems[:1]) or (reason,))
        return ExpressionRule(self.text, instances)

    def _problem(self, code: str, pointer: str, message: str, hint: str | None = None) -> None:
        self.problems.append(Problem(code, pointer, message, hint))

    def _parse(self, text: str, pointer: str) -> _Expression | None:
        if (hidden := _HIDDEN.search(text)) is not None:
            hint = "pattern variables are written ?a"
            self.problems.append(
                Problem("unknown_name", pointer, f"Nothing is called {hidden[0]!r}.", hint, hidden.start() + 1)
            )
            return None
        plain = _VARIABLE.sub(r"_\1", _LOG2.sub(r"__log2_\1", text))
        syntax = parse(plain, pointer, LIMITS, self.problems)
        if syntax is None:
            return None
        if any(isinstance(n, ast.GeneratorExp) for n in ast.walk(syntax.root)):
            self._problem("unsupported_syntax", pointer, "A rule has no reductions: their loops have variables.")
            return None
        return _Expression(text, syntax.root, pointer)

    def _conditions(self) -> list[OfTypes | IsConstant | DoesNotRead | _Expression]:
        found: list[OfTypes | IsConstant | DoesNotRead | _Expression] = []
        if len(self.text.where) > MOST_CONDITIONS:
            self._problem("limit_exceeded", f"{self.where}/where", f"At most {MOST_CONDITIONS} conditions are allowed.")
            return found
        for n, condition in enumerate(self.text.where):
            pointer = f"{self.where}/where/{n}"
            try:
                said = special(condition.strip())
            except KeyError as kind:
                hint = "bool, integer, signed, unsigned, float, or the name of a type"
                self._problem("unknown_type", pointer, f"There is no type {kind}.", hint)
                continue
            made = said if said is not None else self._parse(condition, pointer)
            if made is not None:
                found.append(made)
        return found

    def _names(
        self,
        match: _Expression,
        result: _Expression,
        conditions: list[OfTypes | IsConstant | DoesNotRead | _Expression],
    ) -> None:
        """Sets the names of variables and types; all are those of the match."""
        self.variables = tuple(sorted(set(match.names())))
        self.type_variables = tuple(sorted(set(match.types())))
        known = {*self.variables, *self.type_variables}
        both = set(self.variables) & set(self.type_variables)
        for name in sorted(both):
            self._problem("shadowed_name", match.pointer, f"?{name} is a value, and a type.", "use two names")
        if len(known) > MOST_VARIABLES:
            self._problem("limit_exceeded", match.pointer, f"At most {MOST_VARIABLES} variables are allowed.")
        for part in (result, *conditions):
            match part:
                case OfTypes():
                    used, pointer = set(part.variables), f"{self.where}/where"
                case IsConstant() | DoesNotRead():
                    used, pointer = {part.variable[1:]}, f"{self.where}/where"
                case _Expression():
                    used, pointer = {*part.names(), *part.types()}, part.pointer
            for name in sorted(used - known):
                message = f"Nothing in the match is called ?{name}."
                self._problem("unknown_name", pointer, message, "pattern variables are written ?a")

    def _instances(
        self,
        match: _Expression,
        result: _Expression,
        conditions: list[OfTypes | IsConstant | DoesNotRead | _Expression],
    ) -> Iterator[Instance]:
        names = [f"_{n}" for n in (*self.variables, *self.type_variables)]
        classes = TypeClasses([f"_{n}" for n in self.type_variables])
        classes.add(match.tree, result.tree)
        if classes.classes(names) > MOST_TYPES:
            message = f"The variables have more than {MOST_TYPES} types that are independent of each other."
            self._problem("limit_exceeded", match.pointer, message, "say more with type(?a) is ..., or in the match")
            return
        of_types = [c for c in conditions if isinstance(c, OfTypes)]
        others = [c for c in conditions if not isinstance(c, OfTypes)]
        for chosen in classes.typings(names):
            types = {name[1:]: type for name, type in chosen.items()}
            if all(c.holds(types) for c in of_types):
                instance = self._instance(match, result, others, types)
                if instance is not None:
                    yield instance

    def _instance(
        self,
        match: _Expression,
        result: _Expression,
        conditions: list[IsConstant | DoesNotRead | _Expression],
        types: Typing,
    ) -> Instance | None:
        before = self._typed(match, types)
        after = None if before is None else self._typed(result, types, before.type)
        if before is None or after is None or before.type != after.type:
            return None
        if not children(before) or same(before, after) or not self._all_there(before):
            return None
        where = list[Condition]()
        for c in conditions:
            if not isinstance(c, _Expression):
                where.append(c)
            elif (proved := self._typed(c, types, want="condition")) is not None:
                where.append(Holds(proved, c.text.strip()))
            else:
                return None
        return Instance(before, after, tuple(where))

    def _all_there(self, e: Expr) -> bool:
        return variables_of(e) == {f"?{name}" for name in self.variables}

    def _typed(
        self, part: _Expression, types: Typing, wanted: ScalarType | None = None, want: Want = "value"
    ) -> Expr | None:
        """The expression at these types; None where it has none, and then the problems say why."""
        problems: list[Problem] = []
        syntax = self._syntax(part, types)
        if syntax is None:
            return None
        builder = Builder(syntax, Names({}, {}), self._scope(types), LIMITS, problems)
        made = builder.predicate() if want == "condition" else builder.values((wanted,))[0]
        self.problems += problems
        return None if problems else made

    def _syntax(self, part: _Expression, types: Typing) -> Syntax | None:
        """The syntax of the expression with its type variables replaced."""
        text = _LOG2.sub(r"__log2_\1", part.text)
        for name in self.type_variables:
            text = re.sub(rf"\?{name}\b", types[name].name, text)
        if (part.pointer, text) not in self.parsed:
            plain = _VARIABLE.sub(r"_\1", text)
            self.parsed[part.pointer, text] = parse(plain, part.pointer, LIMITS, self.problems)
        return self.parsed[part.pointer, text]

    def _scope(self, types: Typing) -> Mapping[str, Var]:
        values = {f"_{n}": Var(f"?{n}", types[n]) for n in self.variables}
        logarithms = {f"__log2_{n}": Var(LOG2.format(f"?{n}"), types[n]) for n in self.variables if types[n].is_integer}
        return {**values, **logarithms}
