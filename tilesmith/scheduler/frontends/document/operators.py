"""The operators: which operands each takes, and what it makes of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final, Literal

from tilesmith.scheduler.frontends.document.typing_context import Context, Value
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Const,
    Expr,
    Logical,
    Select,
    Unary,
)
from tilesmith.scheduler.ir.pipeline.type_promotion import convert
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32

BINARY: Final[dict[type[ast.operator], BinaryOp]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
COMPARE: Final[dict[type[ast.cmpop], CompareOp]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.GtE: ">=", ast.Gt: ">",
}  # fmt: skip


def binary(b: Context, node: ast.BinOp, left: Value, right: Value) -> Expr | None:
    """Arithmetic, shifts and bits."""
    op = BINARY.get(type(node.op))
    if op is None:
        return None  # reported with the syntax
    if op in ("<<", ">>"):
        return _shift(b, node, op, left, right)
    if op == "**" and (power := _integer_power(b, node, left, right)) is not False:
        return power
    for operand, value in ((node.left, left), (node.right, right)):
        if op not in ("&", "|", "^") and not isinstance(value, int | float) and value.type == BOOL:
            hint = (
                "write `a if condition else b`, or convert with uint8(...) or float32(...); and, or, not combine bools"
            )
            b.problem("type_error", f"'{op}' needs numbers, not bool.", operand, hint)
            return None
    unified = b.unify((node.left, node.right), (left, right), f"'{op}'")
    if unified is None:
        return None
    first, second = unified
    kind = first.type
    if op in ("&", "|", "^"):
        if kind.is_float:
            hint = "a power is pow(a, b), or a ** b" if op == "^" else "compare first, as (a > 0) & (b > 0)"
            b.problem("type_error", f"'{op}' needs integers or bools, not {kind}.", node, hint)
            return None
    elif op == "/" and not kind.is_float:
        hint = "write // for integers, or convert with float32(...)"
        b.problem("type_error", f"'/' needs a floating operand, not {kind}.", node, hint)
        return None
    return Binary(op, first, second, kind)


def _integer_power(b: Context, node: ast.BinOp, left: Value, right: Value) -> Expr | Literal[False] | None:
    """`**` with a constant integer exponent; False where the operands are floats (or one of them is)."""
    count = b.settle(node.right, right) if isinstance(right, int) else right
    if count is None:
        return None
    if isinstance(count, float) or not count.type.is_integer:
        return False
    base = b.settle(node.left, left)
    count = convert(fold(count), INT32)
    if base is None:
        return None
    if base.type == BOOL:
        b.problem("type_error", "'**' needs numbers, not bool.", node)
    elif isinstance(count, Const):
        if count.value >= 0 or base.type.is_float:
            return Binary("**", base, count, base.type)
        b.problem("bad_exponent", "An integer cannot be raised to a negative power.", node.right)
    elif base.type.is_float:
        return False
    else:
        hint = "write a constant, or convert with float32(...)"
        b.problem("bad_exponent", "'**' of integers needs a constant exponent.", node.right, hint)
    return None


def _shift(b: Context, node: ast.BinOp, op: Literal["<<", ">>"], left: Value, right: Value) -> Expr | None:
    """The result has the type of what is shifted; a literal takes the type of the other operand."""
    if isinstance(left, int | float):
        other = INT32 if isinstance(right, int | float) else right.type
        value: Expr | None = b.literal(node.left, left, other)
    else:
        value = left
    if value is None:
        return None
    if not value.type.is_integer:
        b.problem("type_error", f"'{op}' shifts integers, not {value.type}.", node.left)
        return None
    count = b.literal(node.right, right, value.type) if isinstance(right, int | float) else right
    if count is None:
        return None
    if not count.type.is_integer:
        b.problem("type_error", f"'{op}' shifts by an integer, not by {count.type}.", node.right)
        return None
    if isinstance(count, Const) and not 0 <= count.value < value.type.bits:
        b.problem("bad_shift", f"The count of a shift of {value.type} is 0 to {value.type.bits - 1}.", node.right)
        return None
    return Binary(op, value, count, value.type)


def unary(b: Context, node: ast.UnaryOp, value: Value) -> Value | None:
    """Signs, `~` and `not`. A sign before a literal makes a literal."""
    if isinstance(node.op, ast.Not):
        checked = b.boolean(node.operand, value)
        return None if checked is None else Unary("not", checked, BOOL)
    if isinstance(value, int | float) and not isinstance(node.op, ast.Invert):
        return -value if isinstance(node.op, ast.USub) else value
    operand = b.settle(node.operand, value)
    if operand is None:
        return None
    if isinstance(node.op, ast.Invert):
        if operand.type.is_float:
            b.problem("type_error", f"'~' needs an integer or bool, not {operand.type}.", node)
            return None
        return Unary("not" if operand.type == BOOL else "~", operand, operand.type)
    if operand.type == BOOL:
        b.problem("type_error", "A sign needs a number, not bool.", node, "write not ...")
        return None
    return operand if isinstance(node.op, ast.UAdd) else Unary("-", operand, operand.type)


def compare(b: Context, node: ast.Compare, left: Value, right: Value) -> Expr | None:
    """Comparisons; bools are equal or not, and in no order."""
    op = COMPARE.get(type(node.ops[0]))
    if op is None or len(node.ops) > 1:
        return None  # reported with the syntax
    unified = b.unify((node.left, node.comparators[0]), (left, right), f"'{op}'")
    if unified is None:
        return None
    if unified[0].type == BOOL and op not in ("==", "!="):
        b.problem("type_error", f"'{op}' does not order bools.", node)
        return None
    return Compare(op, unified[0], unified[1])


def conjoin(parts: Sequence[Expr], op: Literal["and", "or"] = "and") -> Expr:
    """`parts` joined from the left."""
    result = parts[0]
    for part in parts[1:]:
        result = Logical(op, result, part)
    return result


def alternatives(b: Context, what: str, nodes: Sequence[ast.expr], args: Sequence[Value]) -> list[Expr] | None:
    """Values of which one is taken: they are of one type already, literals aside."""
    types = {a.type for a in args if not isinstance(a, int | float)}
    if len(types) > 1:
        names = " and ".join(sorted(t.name for t in types))
        b.problem("type_error", f"The sides of {what} have different types: {names}.", nodes[0], "convert one of them")
        return None
    only = next(iter(types), None)
    if only is not None and not only.is_float:
        for node, arg in zip(nodes, args, strict=True):
            if isinstance(arg, float):
                message = f"The sides of {what} have different types: {only} and a float."
                b.problem("type_error", message, node, "convert one of them")
                return None
    return b.unify(nodes, args, what)


def select(
    b: Context, test: ast.expr, sides: Sequence[ast.expr], condition: Value, values: Sequence[Value]
) -> Expr | None:
    """`a if c else b` and `select(c, a, b)`."""
    checked = b.boolean(test, condition)
    unified = alternatives(b, "the choice", sides, values)
    if checked is None or unified is None:
        return None
    return Select(checked, unified[0], unified[1], unified[0].type)
