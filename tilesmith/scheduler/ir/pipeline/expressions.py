"""Typed expressions of the pipeline language: frozen trees, compared by value. Hashes are of what tells most of them
apart.

Types are settled when a tree is built (of documents by `frontends.document.type_checker`): the operands of an
arithmetic node have the node's type already, conversions are explicit `Cast` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from operator import attrgetter, is_
from typing import Any, Literal, TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType

BinaryOp = Literal["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
UnaryOp = Literal["-", "~", "not"]
CompareOp = Literal["<", "<=", "==", "!=", ">=", ">"]
LogicalOp = Literal["and", "or"]
ReduceOp = Literal["sum", "product", "min", "max", "any", "all", "argmin", "argmax"]


@record(frozen=True, slots=True)
class Const:
    """A literal. Floats are held as the float64 nearest to the value rounded to `type`."""

    value: int | float | bool
    type: ScalarType

    def __hash__(self) -> int:
        return hash(self.value)


@record(frozen=True, slots=True)
class Var:
    """A dim of the stage, a domain variable of an update, or a comprehension variable."""

    name: str
    type: ScalarType = INT32

    def __hash__(self) -> int:
        return hash(self.name)


@record(frozen=True, slots=True)
class ParamRef:
    """The value of a runtime scalar: one that its declared `min` and `max` allow, where it has them."""

    name: str
    type: ScalarType
    min: int | float | None = None
    max: int | float | None = None


@record(frozen=True, slots=True)
class InputBound:
    """`input.min.x` or `input.extent.x`: known when the compiled code is called."""

    input: str
    which: Literal["min", "extent"]
    dim: str
    type: ScalarType = INT32


@record(frozen=True, slots=True)
class Access:
    """Component `component` of input or stage `name` at the integer `indices` (in the order of its dims). In an index
    `ends` are the least and the greatest value that were proved of it."""

    name: str
    indices: tuple[Expr, ...]
    component: int
    type: ScalarType
    ends: tuple[int | float | None, int | float | None] | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.name, self.indices))


@record(frozen=True, slots=True)
class Binary:
    """Both operands have `type`, except the exponent of an integer `**` (a `Const`) and the count of a shift."""

    op: BinaryOp
    left: Expr
    right: Expr
    type: ScalarType

    def __hash__(self) -> int:
        return hash((self.op, self.left, self.right))


@record(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    operand: Expr
    type: ScalarType


@record(frozen=True, slots=True)
class Compare:
    """Both operands are of one type; the result is bool."""

    op: CompareOp
    left: Expr
    right: Expr
    type: ScalarType = BOOL


@record(frozen=True, slots=True)
class Logical:
    op: LogicalOp
    left: Expr
    right: Expr
    type: ScalarType = BOOL


@record(frozen=True, slots=True)
class Select:
    """`if_true if condition else if_false`; both sides may be evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr
    type: ScalarType


@record(frozen=True, slots=True)
class Call:
    """A built-in function: `min max clamp abs absd lerp mux`, the integer idioms, `random`, the float functions."""

    function: str
    args: tuple[Expr, ...]
    type: ScalarType


@record(frozen=True, slots=True)
class Cast:
    """Conversion to `type`: truncates floats, wraps integers; saturates instead where `saturate`."""

    operand: Expr
    type: ScalarType
    saturate: bool = False


@record(frozen=True, slots=True)
class RVar:
    """A reduction variable over `lo <= name < lo + extent`."""

    name: str
    lo: Expr
    extent: Expr


@record(frozen=True, slots=True)
class Reduce:
    """An inline reduction of `body` over `domain`; the last variable of `domain` is the innermost loop,
    as in a Python comprehension.

    `argmin` and `argmax` yield the tuple (variables in the order written..., best value); `component` picks one.
    """

    op: ReduceOp
    body: Expr
    domain: tuple[RVar, ...]
    where: Expr | None
    component: int
    type: ScalarType


Expr: TypeAlias = (
    Const | Var | ParamRef | InputBound | Access | Binary | Unary | Compare | Logical | Select | Call | Cast | Reduce
)


def _parts_of_reduction(e: Reduce) -> tuple[Expr, ...]:
    bounds = tuple(end for r in e.domain for end in (r.lo, r.extent))
    return (*bounds, e.body) if e.where is None else (*bounds, e.where, e.body)


_PARTS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Access: attrgetter("indices"),
    Call: attrgetter("args"),
    Reduce: _parts_of_reduction,
    **dict.fromkeys((Binary, Compare, Logical), attrgetter("left", "right")),
    Select: attrgetter("condition", "if_true", "if_false"),
    **dict.fromkeys((Unary, Cast), lambda e: (e.operand,)),
}


def _remade_reduction(e: Reduce, *parts: Expr) -> Reduce:
    *ends, body = parts
    where = None if e.where is None else ends.pop()
    domain = tuple(RVar(r.name, *ends[2 * n : 2 * n + 2]) for n, r in enumerate(e.domain))
    return Reduce(e.op, body, domain, where, e.component, e.type)


_REMADE: dict[type, Callable[..., Expr]] = {
    Access: lambda e, *parts: Access(e.name, parts, e.component, e.type, e.ends),
    Call: lambda e, *parts: Call(e.function, parts, e.type),
    Binary: lambda e, left, right: Binary(e.op, left, right, e.type),
    Compare: lambda e, left, right: Compare(e.op, left, right, e.type),
    Logical: lambda e, left, right: Logical(e.op, left, right, e.type),
    Select: lambda e, condition, if_true, if_false: Select(condition, if_true, if_false, e.type),
    Unary: lambda e, operand: Unary(e.op, operand, e.type),
    Cast: lambda e, operand: Cast(operand, e.type, e.saturate),
    Reduce: _remade_reduction,
}
"""Constructors, by class, of an expression with other parts."""


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions of `e`, left to right; a reduction's bounds before its body."""
    parts = _PARTS.get(type(e))
    return () if parts is None else parts(e)


def walk(e: Expr) -> Iterator[Expr]:
    """`e` and every subexpression, each occurrence once, parents first."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        parts = _PARTS.get(type(node))
        if parts is not None:
            stack += parts(node)[::-1]


def reads_from(e: Expr, name: str | None) -> bool:
    """True if `e` reads the stage or input `name`."""
    return any(isinstance(n, Access) and n.name == name for n in walk(e))


def has_accesses(e: Expr) -> bool:
    """True if `e` reads any stage or input."""
    return any(isinstance(n, Access) for n in walk(e))


def variables_of(*parts: Expr) -> set[str]:
    """The names of the variables in expressions, those of the loops of their own reductions included."""
    return {n.name for e in parts for n in walk(e) if isinstance(n, Var)}


def reduction_loops_of(*parts: Expr) -> set[str]:
    """The names of the loops of the reductions in expressions."""
    return {r.name for e in parts for n in walk(e) if isinstance(n, Reduce) for r in n.domain}


def free_variables(e: Expr) -> tuple[str, ...]:
    """The names of the variables of `e` but those of the loops of its reductions, in the order of their first
    occurrence."""
    bound = reduction_loops_of(e)
    return tuple(dict.fromkeys(n.name for n in walk(e) if isinstance(n, Var) and n.name not in bound))


def map_children(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """`e` with every direct subexpression replaced by `f` of it; `e` itself where nothing changes."""
    parts_of = _PARTS.get(type(e))
    if parts_of is None:
        return e
    parts = parts_of(e)
    made = tuple(map(f, parts))
    return e if all(map(is_, made, parts)) else _REMADE[type(e)](e, *made)


def with_child(e: Expr, n: int, part: Expr) -> Expr:
    """`e` with the direct subexpression number `n` replaced."""
    parts = children(e)
    return _REMADE[type(e)](e, *parts[:n], part, *parts[n + 1 :])
