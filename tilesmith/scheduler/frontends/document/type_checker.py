"""Checked syntax -> typed expression: names, arity, types, reductions, bounds of indices.

Children before parents, without recursion. The result of a node is an expression, a plain number (a literal
whose neighbours give it a type), a TupleValue, or None: something in it is wrong and has been reported, so
that nothing built on it is reported again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tilesmith.scheduler.frontends.document import foreign_words
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS, Called
from tilesmith.scheduler.frontends.document.names import Readable, close_to
from tilesmith.scheduler.frontends.document.operators import binary, compare, conjoin, select, unary
from tilesmith.scheduler.frontends.document.parser import REDUCTIONS, Frame, frames
from tilesmith.scheduler.frontends.document.reductions import REDUCE, bound, reduce
from tilesmith.scheduler.frontends.document.typing_context import Context, Result, TupleValue, Value
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Expr, InputBound, ParamRef, Var
from tilesmith.scheduler.ir.pipeline.float_bounds import place_interval
from tilesmith.scheduler.ir.pipeline.type_promotion import convert
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval, Leaf, Leaves, leaf_interval, parts_of_value

_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})


class Builder(Context):
    """Builds one expression. `variables` are the dims and domain variables that it may name."""

    def values(self, types: Sequence[ScalarType | None] = ()) -> tuple[Expr | None, ...]:
        """The expression as the value of a stage: one expression, or those of an argmin.

        `types`: what a lone literal becomes, where that is known.
        """
        result = self._run()
        if isinstance(result, TupleValue) and result.whole:
            return result.parts
        if isinstance(result, int | float) and len(types) == 1 and types[0] is not None:
            return (self.literal(self.syntax.root, result, types[0]),)
        return (self.settle(self.syntax.root, self.single(self.syntax.root)),)

    def index(self) -> Expr | None:
        """The expression as an index of the left side of an update."""
        self._run()
        return self._index(self.syntax.root, "the index", None)

    def bound(self) -> Expr | None:
        """The expression as a bound of a domain."""
        self._run()
        return bound(self, self.syntax.root, self.single(self.syntax.root))

    def predicate(self) -> Expr | None:
        """The expression as a condition."""
        self._run()
        return self.boolean(self.syntax.root, self.single(self.syntax.root))

    # The nodes

    def _run(self) -> Result:
        for node, frame in reversed(self.syntax.order):
            build = self._BUILD.get(type(node))
            self.results[node] = None if build is None else build(self, node, frame)  # None: reported with the syntax
        return self.results[self.syntax.root]

    def _name(self, node: ast.Name, frame: Frame | None) -> Expr | None:
        name, loops = node.id, frame
        while loops is not None:
            if name in loops.names:
                return Var(name)
            loops = loops.outer
        if (variable := self.variables.get(name)) is not None:
            return variable
        if (param := self.names.params.get(name)) is not None:
            return ParamRef(name, param.type, *param.ends)
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
        inner = {n for f in frames(frame) for n in f.names}
        hint = close_to(name, [*self.variables, *self.names.params, *inner])
        self.problem("unknown_name", f"Nothing here is called {name!r}.", node, hint)
        return None

    def _constant(self, node: ast.Constant, frame: Frame | None) -> Value | None:
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

    def _unary(self, node: ast.UnaryOp, frame: Frame | None) -> Value | None:
        value = self.single(node.operand)
        return None if value is None else unary(self, node, value)

    def _binary(self, node: ast.BinOp, frame: Frame | None) -> Expr | None:
        left, right = self.single(node.left), self.single(node.right)
        return None if left is None or right is None else binary(self, node, left, right)

    def _compare(self, node: ast.Compare, frame: Frame | None) -> Expr | None:
        left, right = self.single(node.left), self.single(node.comparators[0])
        return None if left is None or right is None else compare(self, node, left, right)

    def _logical(self, node: ast.BoolOp, frame: Frame | None) -> Expr | None:
        parts = [p for n in node.values if (p := self.boolean(n, self.single(n))) is not None]
        return (
            conjoin(parts, "and" if isinstance(node.op, ast.And) else "or") if len(parts) == len(node.values) else None
        )

    def _conditional(self, node: ast.IfExp, frame: Frame | None) -> Expr | None:
        condition, a, b = (self.single(n) for n in (node.test, node.body, node.orelse))
        if condition is None or a is None or b is None:
            return None
        return select(self, node.test, (node.body, node.orelse), condition, (a, b))

    def _attribute(self, node: ast.Attribute, frame: Frame | None) -> Expr | None:
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

    def _subscript(self, node: ast.Subscript, frame: Frame | None) -> Expr | None:
        value = self.results.get(node.value)
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
            return self._access(node, name, self.names.readables[name], frame)
        if node.args and isinstance(node.args[0], ast.GeneratorExp) and name in REDUCTIONS:
            parts = reduce(self, node.args[0], REDUCE[name], frame)
            return None if parts is None else parts[0] if len(parts) == 1 else TupleValue(parts, whole=True)
        if (function := FUNCTIONS.get(name)) is not None:
            return self._function(node, name, function.least, function.most)
        if name in self.names.broken:
            return None
        if name in REDUCTIONS:
            example = f"write {name}(... for r in range(lo, end))"
            self.problem("wrong_arguments", f"{name}() reduces over a loop.", node, example)
        elif name == "range":
            self.problem("unsupported_syntax", "range() belongs into a reduction.", node)
        elif name in self.variables or name in self.names.params:
            self.problem("unknown_function", f"{name!r} is a number and cannot be called.", node)
        else:
            hint = foreign_words.function(name) or close_to(
                name, [*self.names.readables, *sorted(self.names.broken), *FUNCTIONS, *REDUCTIONS]
            )
            self.problem("unknown_function", f"No input, stage or function is called {name!r}.", node, hint)
        return None

    def _function(self, node: ast.Call, name: str, least: int, most: int | None) -> Expr | None:
        if len(node.args) < least or (most is not None and len(node.args) > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            plural = "" if least == 1 else "s"
            message = f"{name}() takes {wanted} argument{plural}, not {len(node.args)}."
            self.problem("wrong_arguments", message, node)
            return None
        args = [value for arg in node.args if (value := self.single(arg)) is not None]
        return FUNCTIONS[name].build(Called(self, name, node, args)) if len(args) == len(node.args) else None

    def _access(self, node: ast.Call, name: str, owner: Readable, frame: Frame | None) -> Expr | TupleValue | None:
        if len(node.args) != len(owner.dims):
            what = "input" if owner.is_input else "stage"
            wanted = ", ".join(owner.dims)
            message = f"The {what} {name!r} has {len(owner.dims)} dims and is read with {len(node.args)} indices."
            self.problem("wrong_arity", message, node, f"write {name}({wanted})")
            return None
        indices: list[Expr] = []
        for k, arg in enumerate(node.args):
            value = self.results.get(arg)
            if not (type(value) is Var or _is_shift(value)):  # most indices are x or x + 1
                value = self._index(arg, f"index {k + 1} ({owner.dims[k]!r}) of {name!r}", frame, owner.endless)
            if value is not None and not isinstance(value, int | float | TupleValue):
                indices.append(value)
        if len(indices) < len(node.args):
            return None
        at = tuple(indices)
        parts = tuple([None if t is None else Access(name, at, k, t) for k, t in enumerate(owner.types)])
        return parts[0] if len(parts) == 1 else TupleValue(parts, whole=False)

    def _index(self, node: ast.expr, what: str, frame: Frame | None, endless: bool = False) -> Expr | None:
        """An int32 whose bounds are provable; any of what is endless, whose boundary bounds it."""
        value = self.settle(node, self.single(node))
        if value is None:
            return None
        if not value.type.is_integer:
            message = f"{what[0].upper()}{what[1:]} has to be an integer, not {value.type}."
            self.problem("type_error", message, node, "convert with int32(...)")
            return None
        anywhere = endless and INT32.min <= value.type.min and value.type.max <= INT32.max
        if not (anywhere or (value.type is INT32 and (isinstance(value, Const) or _of_loops(value)))):
            place = self.names.ends.index(value)
            found = place_interval(place)
            if not found.bounded:
                found = place_interval(place, leaves=self._leaves(frame))
            ends = found.numeric
            if not found.bounded or (ends is not None and (ends[0] < INT32.min or ends[1] > INT32.max)):
                self._unbounded(node, what, value)
                return None
        return convert(value, INT32)

    def _leaves(self, frame: Frame | None) -> Leaves:
        """The intervals of the leaves of an expression in these loops: those of variables whose ends are constants."""
        ranges = dict(self.ranges)
        for f in frames(frame):
            for name, args in zip(f.names, f.ranges, strict=True):
                first, end = [0, *map(_number, args)][-2:]
                if first is not None and end is not None:
                    ranges[name] = Interval(first, end - 1)

        def leaf(of: Leaf) -> Interval:
            known = ranges.get(of.name) if isinstance(of, Var) else None
            return leaf_interval(of) if known is None else known

        return leaf

    def _unbounded(self, node: ast.expr, what: str, value: Expr) -> None:
        leaves = list(parts_of_value(value))
        reads = sorted({n.name for n in leaves if isinstance(n, Access)})
        params = sorted({n.name for n in leaves if isinstance(n, ParamRef) and not leaf_interval(n).bounded})
        if reads:
            reason = f"depends on the values of {_some(reads)}"
            hint = "bound it with clamp(..., lo, hi), min and max, or %, or convert it to a narrow type"
            if all(map(self.names.ends.at_run_time, reads)):
                hint = f"the bounds of {_some(reads)} are known at run time only: clamp what is read in the index, too"
        elif params:
            reason = f"depends on the param {_some(params)}"
            hint = "give the param a min and a max, or bound the index with clamp(..., lo, hi)"
        else:
            reason, hint = f"is computed as {value.type}", "bound it with clamp(..., lo, hi)"
        message = f"{what[0].upper()}{what[1:]} {reason}, and no bounds can be proved for it."
        self.problem("unbounded_index", message, node, hint)

    _BUILD: ClassVar[dict[type[ast.expr], Callable[[Builder, Any, Frame | None], Result]]] = {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.BinOp: _binary,
        ast.Call: _call,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _logical,
        ast.IfExp: _conditional,
        ast.Subscript: _subscript,
        ast.Attribute: _attribute,
    }


def _of_loops(value: Expr) -> bool:
    """Arithmetic of loop variables, input bounds and constants: its bounds are those of the loops."""
    loops = False
    for part in parts_of_value(value):
        if isinstance(part, Var | InputBound):
            loops = True
        elif not (isinstance(part, Const) or (isinstance(part, Binary) and part.op in _ARITHMETIC)):
            return False
    return loops


def _is_shift(value: Result) -> bool:
    """`x + 1` or `x - 1`: an index that needs no further look."""
    return (
        type(value) is Binary
        and (value.op == "+" or value.op == "-")
        and type(value.left) is Var
        and type(value.right) is Const
    )


def _number(node: ast.expr) -> int | None:
    """The integer that is written; None of anything else."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")
