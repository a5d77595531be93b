"""Checked syntax -> typed expression: names, arity, types, reductions, bounds of indices.

Children before parents, without recursion. The result of a node is an expression, a plain number (a literal
whose neighbours give it a type), a TupleValue, or None: something in it is wrong and has been reported, so
that nothing built on it is reported again.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from scheduler.errors import Problem
from scheduler.lang.bounds import Interval, Leaf, interval, leaf_interval
from scheduler.lang.expr import (
    Access, Binary, BinaryOp, Call, Cast, Compare, CompareOp, Const, Expr, InputBound, Logical, ParamRef, Reduce,
    ReduceOp, RVar, Select, Unary, Var, walk,
)  # fmt: skip
from scheduler.lang.functions import FUNCTIONS, Value, select, shift
from scheduler.lang.limits import Limits
from scheduler.lang.parse import REDUCTIONS, Frame, Syntax
from scheduler.lang.pipeline import Param
from scheduler.lang.rules import common_type, constant, convert, default_type
from scheduler.lang.types import BOOL, FLOAT32, INT32, ScalarType

_BINARY: dict[type[ast.operator], BinaryOp] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], CompareOp] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.GtE: ">=", ast.Gt: ">",
}  # fmt: skip
_REDUCE: dict[str, ReduceOp] = {
    "sum": "sum", "product": "product", "min": "min", "max": "max", "any": "any", "all": "all",
    "argmin": "argmin", "argmax": "argmax",
}  # fmt: skip
_WIDEST = INT32


@dataclass(frozen=True, slots=True)
class Readable:
    """An input or stage as its readers see it. A type is None where it is not known because of an error."""

    is_input: bool
    dims: tuple[str, ...]
    types: tuple[ScalarType | None, ...]


@dataclass(slots=True)
class Names:
    """What a document declares. `broken` are names whose declarations are wrong: reading them is no second error."""

    params: Mapping[str, Param]
    readables: dict[str, Readable]
    broken: Collection[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class TupleValue:
    """Several values at once. `whole`: it may be the value of a stage as it stands (argmin, argmax)."""

    parts: tuple[Expr | None, ...]
    whole: bool


Result = Value | TupleValue | None


def close_to(name: str, known: Iterable[str]) -> str | None:
    """A hint that offers the nearest known name, if one is near."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {matches[0]!r}?" if matches else None


def fold(e: Expr) -> Expr:
    """`e`, or the constant that an integer expression of constants is."""
    if isinstance(e, Const) or not e.type.is_integer or not all(_is_constant(n) for n in walk(e)):
        return e
    ends = interval(e).numeric
    return Const(int(ends[0]), e.type) if ends is not None and ends[0] == ends[1] else e


def _is_constant(e: Expr) -> bool:
    return isinstance(e, Const | Binary | Unary | Cast) or (
        isinstance(e, Call) and e.function in ("min", "max", "clamp", "abs", "absd")
    )


class Builder:
    """Builds one expression. `variables` are the dims and domain variables that it may name."""

    def __init__(
        self, syntax: Syntax, names: Names, variables: Mapping[str, Var], limits: Limits, problems: list[Problem]
    ) -> None:
        self.syntax, self.names, self.variables = syntax, names, variables
        self.limits, self.problems = limits, problems
        self.results: dict[ast.expr, Result] = {}

    # What check.py asks for

    def values(self, types: Sequence[ScalarType | None] = ()) -> tuple[Expr | None, ...]:
        """The expression as the value of a stage: one expression, or those of an argmin.

        `types`: what a lone literal becomes, where that is known.
        """
        result = self._run()
        if isinstance(result, TupleValue) and result.whole:
            return result.parts
        if isinstance(result, int | float) and len(types) == 1 and types[0] is not None:
            return (self.literal(self.syntax.root, result, types[0]),)
        return (self.settle(self.syntax.root, self._single(self.syntax.root)),)

    def index(self) -> Expr | None:
        """The expression as an index of the left side of an update."""
        self._run()
        return self._index(self.syntax.root, "the index")

    def bound(self) -> Expr | None:
        """The expression as a bound of a domain."""
        self._run()
        return self._bound(self.syntax.root)

    def predicate(self) -> Expr | None:
        """The expression as a condition."""
        self._run()
        return self.boolean(self.syntax.root, self._single(self.syntax.root))

    # What functions.py asks for

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

    def boolean(self, node: ast.expr, value: Value | None) -> Expr | None:
        """`value`, which has to be bool."""
        if value is None:
            return None
        if isinstance(value, int | float) or value.type != BOOL:
            shown = "a number" if isinstance(value, int | float) else value.type.name
            self.problem("bad_predicate", f"A condition has to be bool, not {shown}.", node, "compare, e.g. ... != 0")
            return None
        return value

    # The nodes

    def _run(self) -> Result:
        for node, frame in reversed(self.syntax.order):
            self.results[node] = self._node(node, frame)
        return self.results[self.syntax.root]

    def _single(self, node: ast.expr) -> Value | None:
        """The result of `node` where one value is needed."""
        result = self.results[node]
        if isinstance(result, TupleValue):
            hint = f"pick one of the {len(result.parts)} components, e.g. ...[0]"
            self.problem("tuple_needs_component", "This is a tuple, and one value is needed.", node, hint)
            self.results[node] = None
            return None
        return result

    def _node(self, node: ast.expr, frame: Frame | None) -> Result:
        match node:
            case ast.Name():
                return self._name(node, frame)
            case ast.Constant():
                return self._constant(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.Call():
                return self._call(node, frame)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp():
                return self._logical(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Attribute():
                return self._attribute(node)
            case _:
                return None  # reported with the syntax

    def _name(self, node: ast.Name, frame: Frame | None) -> Expr | None:
        name, loops = node.id, frame
        while loops is not None:
            if name in loops.names:
                return Var(name)
            loops = loops.outer
        if (variable := self.variables.get(name)) is not None:
            return variable
        if (param := self.names.params.get(name)) is not None:
            return ParamRef(name, param.type)
        if name in self.names.broken:
            return None
        if name in self.names.readables:
            message = f"{name!r} is read without indices."
            example = f"{name}({', '.join(self.names.readables[name].dims)})"
            self.problem("unknown_name", message, node, f"write {example}")
            return None
        if name in FUNCTIONS or name in REDUCTIONS:
            self.problem("unknown_name", f"The function {name!r} is used without arguments.", node)
            return None
        inner = {n for f in _frames(frame) for n in f.names}
        hint = close_to(name, [*self.variables, *self.names.params, *inner])
        self.problem("unknown_name", f"Nothing here is called {name!r}.", node, hint)
        return None

    def _constant(self, node: ast.Constant) -> Value | None:
        value = node.value
        if isinstance(value, bool):
            return Const(value, BOOL)
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            if value - value == 0:
                return value
            self.problem("literal_out_of_range", "The literal is too large for any type.", node)
            return None
        self.problem("unsupported_syntax", "Literals are integers, floats, True and False.", node)
        return None

    def _unary(self, node: ast.UnaryOp) -> Value | None:
        value = self._single(node.operand)
        if value is None:
            return None
        if isinstance(node.op, ast.Not):
            checked = self.boolean(node.operand, value)
            return None if checked is None else Unary("not", checked, BOOL)
        if isinstance(value, int | float) and not isinstance(node.op, ast.Invert):
            return -value if isinstance(node.op, ast.USub) else value
        operand = self.settle(node.operand, value)
        if operand is None:
            return None
        if isinstance(node.op, ast.Invert):
            if operand.type.is_float:
                self.problem("type_error", f"'~' needs an integer or bool, not {operand.type}.", node)
                return None
            return Unary("~", operand, operand.type)
        if operand.type == BOOL:
            self.problem("type_error", "A sign needs a number, not bool.", node, "write not ...")
            return None
        return operand if isinstance(node.op, ast.UAdd) else Unary("-", operand, operand.type)

    def _binary(self, node: ast.BinOp) -> Expr | None:
        op = _BINARY.get(type(node.op))
        left, right = self._single(node.left), self._single(node.right)
        if op is None or left is None or right is None:
            return None
        if op in ("<<", ">>"):
            return shift(self, node, op, left, right)
        if op == "**" and (power := self._integer_power(node, left, right)) is not False:
            return power
        unified = self.unify((node.left, node.right), (left, right), f"'{op}'")
        if unified is None:
            return None
        a, b = unified
        if op in ("&", "|", "^"):
            if a.type.is_float:
                self.problem("type_error", f"'{op}' needs integers or bools, not {a.type}.", node)
                return None
        elif a.type == BOOL:
            word = "and, or, not, & and | combine bools"
            self.problem("type_error", f"'{op}' needs numbers, not bool.", node, word)
            return None
        elif op == "/" and not a.type.is_float:
            hint = "write // for integers, or convert with float32(...)"
            self.problem("type_error", f"'/' needs a floating operand, not {a.type}.", node, hint)
            return None
        return Binary(op, a, b, a.type)

    def _integer_power(self, node: ast.BinOp, left: Value, right: Value) -> Expr | bool | None:
        """`**` with a constant integer exponent; False where the operands are floats (or one of them is)."""
        count = self.settle(node.right, right) if isinstance(right, int) else right
        if count is None:
            return None
        if isinstance(count, float) or not count.type.is_integer:
            return False
        base = self.settle(node.left, left)
        count = convert(fold(count), INT32)
        if base is None:
            return None
        if base.type == BOOL:
            self.problem("type_error", "'**' needs numbers, not bool.", node)
        elif isinstance(count, Const):
            if count.value >= 0 or base.type.is_float:
                return Binary("**", base, count, base.type)
            self.problem("bad_exponent", "An integer cannot be raised to a negative power.", node.right)
        elif base.type.is_float:
            return False
        else:
            hint = "write a constant, or convert with float32(...)"
            self.problem("bad_exponent", "'**' of integers needs a constant exponent.", node.right, hint)
        return None

    def _compare(self, node: ast.Compare) -> Expr | None:
        nodes = (node.left, node.comparators[0])
        left, right = (self._single(n) for n in nodes)
        op = _COMPARE.get(type(node.ops[0]))
        if len(node.ops) > 1 or op is None or left is None or right is None:
            return None
        unified = self.unify(nodes, (left, right), f"'{op}'")
        if unified is None:
            return None
        if unified[0].type == BOOL and op not in ("==", "!="):
            self.problem("type_error", f"'{op}' does not order bools.", node)
            return None
        return Compare(op, unified[0], unified[1])

    def _logical(self, node: ast.BoolOp) -> Expr | None:
        parts = [self.boolean(n, self._single(n)) for n in node.values]
        good = [p for p in parts if p is not None]
        return self.conjoin(good, "and" if isinstance(node.op, ast.And) else "or") if len(good) == len(parts) else None

    @staticmethod
    def conjoin(parts: Sequence[Expr], op: str = "and") -> Expr:
        """`parts` joined from the left by `and` or `or`."""
        result = parts[0]
        for part in parts[1:]:
            result = Logical("and" if op == "and" else "or", result, part)
        return result

    def _conditional(self, node: ast.IfExp) -> Expr | None:
        condition, a, b = (self._single(n) for n in (node.test, node.body, node.orelse))
        if condition is None or a is None or b is None:
            return None
        return select(self, node.test, (node.body, node.orelse), condition, (a, b))

    def _attribute(self, node: ast.Attribute) -> Expr | None:
        """`input.min.x`, `input.extent.x`."""
        inner = node.value
        if not isinstance(inner, ast.Attribute) or not isinstance(inner.value, ast.Name):
            hint = "write input.min.x or input.extent.x, of an input and one of its dims"
            self.problem("unsupported_syntax", "'.' is only for the bounds of inputs.", node, hint)
            return None
        name, which, dim = inner.value.id, inner.attr, node.attr
        owner = self.names.readables.get(name)
        if owner is None or not owner.is_input:
            if name in self.names.broken:
                return None
            inputs = [n for n, r in self.names.readables.items() if r.is_input]
            self.problem("unknown_name", f"No input is called {name!r}.", node, close_to(name, inputs))
            return None
        if dim not in owner.dims:
            hint = close_to(dim, owner.dims) or f"its dims are {', '.join(owner.dims)}"
            self.problem("unknown_name", f"The input {name!r} has no dim {dim!r}.", node, hint)
            return None
        if which == "min":
            return InputBound(name, "min", dim)
        if which == "extent":
            return InputBound(name, "extent", dim)
        hint = close_to(which, ("min", "extent")) or "an input has min and extent"
        self.problem("unknown_name", f"An input has no {which!r}.", node, hint)
        return None

    def _subscript(self, node: ast.Subscript) -> Expr | None:
        value = self.results[node.value]
        if value is None:
            return None
        if not isinstance(value, TupleValue):
            hint = "indices are written in round brackets, e.g. f(x, y)" if isinstance(node.value, ast.Name) else None
            self.problem("not_a_tuple", "This has one value only, there is no component to pick.", node, hint)
            return None
        which = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if type(which) is not int or not 0 <= which < len(value.parts):
            message = f"The component is a number from 0 to {len(value.parts) - 1}."
            self.problem("bad_component", message, node.slice)
            return None
        return value.parts[which]

    def _call(self, node: ast.Call, frame: Frame | None) -> Result:
        if not isinstance(node.func, ast.Name) or node.keywords:
            return None
        name = node.func.id
        if name in self.names.readables:
            return self._access(node, name, self.names.readables[name])
        if node.args and isinstance(node.args[0], ast.GeneratorExp) and name in REDUCTIONS:
            return self._reduce(node, node.args[0], _REDUCE[name], frame)
        if (function := FUNCTIONS.get(name)) is not None:
            return self._function(node, name, function.least, function.most)
        if name in self.names.broken:
            return None
        if name in REDUCTIONS:
            hint = f"write {name}(... for r in range(lo, end))"
            self.problem("wrong_arguments", f"{name}() reduces over a loop.", node, hint)
        elif name == "range":
            self.problem("unsupported_syntax", "range() belongs into a reduction.", node)
        elif name in self.variables or name in self.names.params:
            self.problem("unknown_function", f"{name!r} is a number and cannot be called.", node)
        else:
            hint = close_to(name, [*self.names.readables, *FUNCTIONS, *REDUCTIONS])
            self.problem("unknown_function", f"No input, stage or function is called {name!r}.", node, hint)
        return None

    def _function(self, node: ast.Call, name: str, least: int, most: int | None) -> Expr | None:
        if len(node.args) < least or (most is not None and len(node.args) > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            plural = "" if least == 1 else "s"
            message = f"{name}() takes {wanted} argument{plural}, not {len(node.args)}."
            self.problem("wrong_arguments", message, node)
            return None
        args = [value for arg in node.args if (value := self._single(arg)) is not None]
        return FUNCTIONS[name].build(self, name, node, args) if len(args) == len(node.args) else None

    def _access(self, node: ast.Call, name: str, owner: Readable) -> Expr | TupleValue | None:
        if len(node.args) != len(owner.dims):
            what = "input" if owner.is_input else "stage"
            wanted = ", ".join(owner.dims)
            message = f"The {what} {name!r} has {len(owner.dims)} dims and is read with {len(node.args)} indices."
            self.problem("wrong_arity", message, node, f"write {name}({wanted})")
            return None
        of = [f"index {i + 1} ({dim!r}) of {name!r}" for i, dim in enumerate(owner.dims)]
        indices = [self._index(arg, text) for arg, text in zip(node.args, of, strict=True)]
        good = tuple(i for i in indices if i is not None)
        if len(good) < len(indices):
            return None
        parts = tuple(None if t is None else Access(name, good, k, t) for k, t in enumerate(owner.types))
        return parts[0] if len(parts) == 1 else TupleValue(parts, whole=False)

    def _index(self, node: ast.expr, what: str) -> Expr | None:
        """An int32 whose bounds are provable."""
        value = self.settle(node, self._single(node))
        if value is None:
            return None
        if not value.type.is_integer:
            hint = "convert with int32(...)"
            self.problem(
                "type_error", f"{what[0].upper()}{what[1:]} has to be an integer, not {value.type}.", node, hint
            )
            return None
        if type(value) is not Var and type(value) is not Const:
            causes = [n for n in walk(value) if isinstance(n, Access | ParamRef | Call | Reduce | Cast)]
            if (causes or value.type != INT32) and not self._provable(value):
                self._unbounded(node, what, value, causes)
                return None
        return convert(value, INT32)

    def _provable(self, value: Expr) -> bool:
        found = interval(value, self._leaf)
        ends = found.numeric
        return found.bounded and (ends is None or (ends[0] >= INT32.min and ends[1] <= INT32.max))

    def _leaf(self, leaf: Leaf) -> Interval:
        if isinstance(leaf, ParamRef):
            param = self.names.params[leaf.name]
            if param.min is not None and param.max is not None:
                return Interval(param.min, param.max)
        return leaf_interval(leaf)

    def _unbounded(self, node: ast.expr, what: str, value: Expr, causes: list[Expr]) -> None:
        reads = sorted({n.name for n in causes if isinstance(n, Access)})
        params = sorted({n.name for n in causes if isinstance(n, ParamRef) and not interval(n, self._leaf).bounded})
        if reads:
            reason = f"depends on the values of {', '.join(map(repr, reads))}"
            hint = "bound it with clamp(..., lo, hi), min and max, or %, or convert it to a narrow type"
        elif params:
            reason = f"depends on the param {', '.join(map(repr, params))}"
            hint = "give the param a min and a max, or bound the index with clamp(..., lo, hi)"
        else:
            reason, hint = f"is computed as {value.type}", "bound it with clamp(..., lo, hi)"
        message = f"{what[0].upper()}{what[1:]} {reason}, and no bounds can be proved for it."
        self.problem("unbounded_index", message, node, hint)

    # Reductions

    def _reduce(self, node: ast.Call, loops: ast.GeneratorExp, op: ReduceOp, frame: Frame | None) -> Result:
        domain = self._domain(loops, frame)
        tests = [test for loop in loops.generators for test in loop.ifs]
        checked = [self.boolean(test, self._single(test)) for test in tests if test in self.results]
        where = [t for t in checked if t is not None]
        body = self.settle(loops.elt, self._single(loops.elt)) if loops.elt in self.results else None
        if domain is None or body is None or len(where) < len(tests):
            return None
        if (op in ("any", "all")) != (body.type == BOOL):
            wanted = "a bool" if op in ("any", "all") else "a number"
            self.problem("type_error", f"{op}() needs {wanted}, not {body.type}.", loops.elt)
            return None
        condition = self.conjoin(where) if where else None
        if op not in ("argmin", "argmax"):
            return Reduce(op, body, domain, condition, 0, body.type)
        types = [INT32] * len(domain) + [body.type]
        return TupleValue(tuple(Reduce(op, body, domain, condition, k, t) for k, t in enumerate(types)), whole=True)

    def _domain(self, loops: ast.GeneratorExp, frame: Frame | None) -> tuple[RVar, ...] | None:
        if len(loops.generators) > self.limits.domain_variables:
            message = f"A reduction has at most {self.limits.domain_variables} loops."
            self.problem("limit_exceeded", message, loops)
            return None
        taken = {*self.variables, *self.names.params, *(n for f in _frames(frame) for n in f.names)}
        domain: list[RVar] = []
        for loop in loops.generators:
            if not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
                return None  # reported with the syntax
            name = loop.target.id
            if name in taken:
                self.problem("shadowed_name", f"The loop variable {name!r} has a name that is taken.", loop.target)
            elif len(name) > 64:
                self.problem("bad_identifier", "A name has at most 64 characters.", loop.target)
            taken.add(name)
            args = loop.iter.args
            ends = [self._bound(arg) if arg in self.results else None for arg in args]
            if len(ends) == 1:
                ends.insert(0, Const(0, INT32))
            lo, end = ends
            extent = None if lo is None or end is None else self._extent(loop.iter, lo, end)
            if lo is not None and extent is not None:
                domain.append(RVar(name, lo, extent))
        return tuple(domain) if len(domain) == len(loops.generators) else None

    def _extent(self, node: ast.expr, lo: Expr, end: Expr) -> Expr | None:
        """How many values range(lo, end) has."""
        if isinstance(lo, Const) and isinstance(end, Const):
            extent = int(end.value) - int(lo.value)
            if extent < 1:
                self.problem("empty_range", f"range({lo.value}, {end.value}) is empty.", node)
                return None
            return self.literal(node, extent, INT32)
        if isinstance(lo, Const) and lo.value == 0:
            return end
        if isinstance(end, Binary) and end.op == "+" and end.left == lo:
            return end.right
        return Binary("-", end, lo, INT32)

    def _bound(self, node: ast.expr) -> Expr | None:
        """An int32 made of constants, params and input bounds."""
        value = self.settle(node, self._single(node))
        if value is None:
            return None
        if not value.type.is_integer:
            self.problem("bad_bounds", f"A bound is an integer, not {value.type}.", node)
            return None
        for part in walk(value):
            if isinstance(part, Var):
                reason = f"it depends on {part.name!r}"
            elif isinstance(part, Access):
                reason = f"it reads {part.name!r}"
            elif isinstance(part, Reduce) or (isinstance(part, Call) and part.function == "random"):
                reason = "it is computed from more than that"
            else:
                continue
            message = f"A bound is made of constants, params, and mins and extents of inputs, but {reason}."
            self.problem("bad_bounds", message, node, "loop over all and say 'if' which to take")
            return None
        return convert(fold(value), INT32)


def _frames(frame: Frame | None) -> Iterable[Frame]:
    while frame is not None:
        yield frame
        frame = frame.outer


__all__ = ["Builder", "Names", "Readable", "Select", "TupleValue", "close_to", "fold"]
