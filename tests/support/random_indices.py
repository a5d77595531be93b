"""Random index expressions, and their values by plain arithmetic: brute force for spans and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Select,
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32, INT64, UINT8, UINT16, ScalarType

DATA = {"bytes": UINT8, "shorts": INT16, "words": UINT16}
SYMBOLS = ("n", "image.min.x", "image.extent.x")
KINDS = ("sum", "sum", "scale", "divide", "divide", "clamp", "clamp", "extreme", "select", "wrap", "data")
Values = Mapping[str, int]


def number(n: int, type_: ScalarType = INT32) -> Const:
    return Const(n, type_)


class Indices:
    """Draws int32 expressions over `variables`, data, an integer param and the bounds of an input."""

    def __init__(self, seed: int, variables: tuple[str, ...], data: bool = True, bounds: bool = True) -> None:
        self.random = Random(seed)
        self.variables = variables
        self.data = data
        self.bounds = bounds

    def draw(self, depth: int) -> Expr:
        r = self.random
        if depth == 0 or r.random() < 0.1:
            return self._leaf()
        kind = r.choice(
            ("sum", "sum", "scale", "divide", "divide", "clamp", "clamp", "extreme", "select", "wrap", "data")
        )
        a = self.draw(depth - 1)
        match kind:
            case "sum":
                b = self.draw(depth - 1) if r.random() < 0.5 else number(r.randint(-9, 9))
                return Binary(r.choice(("+", "-")), a, b, INT32)
            case "scale":
                k = number(r.choice((-3, -2, -1, 0, 2, 3)))
                return Unary("-", a, INT32) if r.random() < 0.2 else Binary("*", *r.choice(((a, k), (k, a))), INT32)
            case "divide":
                return Binary("//", a, number(r.choice((-3, -2, 0, 1, 2, 2, 3, 4))), INT32)
            case "clamp":
                lo = self._bound(depth)
                hi = Binary("+", lo, number(r.randint(0, 12)), INT32) if r.random() < 0.7 else self._bound(depth)
                return Call("clamp", (a, lo, hi), INT32)
            case "extreme":
                b = self.draw(depth - 1) if r.random() < 0.5 else number(r.randint(-9, 9))
                return Call(r.choice(("min", "max")), r.choice(((a, b), (b, a))), INT32)
            case "select":
                return Select(Compare("<", self._leaf(), self._leaf()), a, self.draw(depth - 1), INT32)
            case "wrap":
                return Binary(r.choice(("%", "&")), a, number(r.choice((1, 2, 3, 7, 8))), INT32)
        if not self.data:
            return a
        return Binary("+", a, self._narrow(depth), INT32) if r.random() < 0.5 else self._narrow(depth)

    def _leaf(self) -> Expr:
        r = self.random
        choice = r.random()
        if choice < 0.7 and self.variables:
            return Var(r.choice(self.variables))
        if choice < 0.85 or not self.bounds:
            return number(r.randint(-9, 9))
        return r.choice((ParamRef("n", INT32), InputBound("image", "min", "x"), InputBound("image", "extent", "x")))

    def _bound(self, depth: int) -> Expr:
        """Mostly what stands still, as the bounds of clamps are; at times anything."""
        if self.random.random() < 0.15:
            return self.draw(min(depth - 1, 1))
        return number(self.random.randint(-9, 9)) if self.random.random() < 0.6 else self._still()

    def _still(self) -> Expr:
        if not self.bounds:
            return number(self.random.randint(-9, 9))
        return self.random.choice((ParamRef("n", INT32), InputBound("image", "min", "x")))

    def _narrow(self, depth: int) -> Expr:
        """Data of a narrow type, with arithmetic that wraps in it, as an int32."""
        r = self.random
        name = r.choice(tuple(DATA))
        type_ = DATA[name]
        value: Expr = Access(name, (Var("x"),) if self.variables else (number(0),), 0, type_)
        if r.random() < 0.6:
            k = number(r.randint(0, 9), type_)
            value = Binary(r.choice(("+", "-", "*", "//", "%", "&", ">>")), value, k, type_)
        if r.random() < 0.3:
            value = Cast(value, r.choice((UINT8, INT16, INT64)), saturate=r.random() < 0.5)
        if r.random() < 0.2 and type_.kind == "int":
            value = Unary("-", value, value.type)
        return Cast(value, INT32)


def value_of(e: Expr, at: Values, data: Random) -> int:
    """The value at the variables and symbols `at`; data is drawn anew at every read, from its whole range, and so are
    conditions that depend on variables."""

    def rec(node: Expr) -> int:
        return value_of(node, at, data)

    match e:
        case Const():
            return int(e.value)
        case Var():
            return at[e.name]
        case ParamRef():
            return at[e.name]
        case InputBound():
            return at[f"{e.input}.{e.which}.{e.dim}"]
        case Access():
            ends = (e.type.min, e.type.max)
            return data.choice((*ends, data.randint(*ends)))
        case Unary():
            return wrapped(-rec(e.operand), e.type)
        case Cast():
            n = rec(e.operand)
            return min(max(n, e.type.min), e.type.max) if e.saturate else wrapped(n, e.type)
        case Select(condition=Compare(left=left, right=right)):
            moves = any(isinstance(n, Var) for n in walk(e.condition))
            taken = data.random() < 0.5 if moves else rec(left) < rec(right)
            return rec(e.if_true) if taken else rec(e.if_false)
        case Call(function="clamp"):
            v, lo, hi = (rec(a) for a in e.args)
            return max(min(v, hi), lo)
        case Call():
            return (min if e.function == "min" else max)(rec(a) for a in e.args)
        case Binary():
            return wrapped(_binary(e.op, rec(e.left), rec(e.right)), e.type)
    raise AssertionError(e)


def _binary(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return 0 if b == 0 else (a // b if b > 0 else -(a // -b))
        case "%":
            return 0 if b == 0 else a % abs(b)
        case "&":
            return a & b
    assert op == ">>", op
    return a >> b


def wrapped(n: int, t: ScalarType) -> int:
    return (n - t.min) % (1 << t.bits) + t.min
