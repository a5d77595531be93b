"""Halide's expressions as ours: the same types, the same wrapping, division and conversion."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tilesmith.scheduler.frontends.halide.serialized import HalideType, Node
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    InputBound,
    Logical,
    LogicalOp,
    ParamRef,
    Select,
    Unary,
)
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, FLOAT64, INT32, TYPES, UINT8, ScalarType


class Inexpressible(Exception):
    """`what` of Halide has no counterpart; `node` is where."""

    def __init__(self, what: str, node: Node | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.node, self.hint = what, node, hint


Read = Callable[[Node, tuple[Expr, ...], ScalarType], Expr]


@dataclass
class Translator:
    """Expressions of one definition. `variables` is what its variables stand for, `params` the scalars by Halide's
    names, `inputs` the images (our name and dims); `read` makes a read of an image or Func; `fail` is told everything
    that cannot be expressed, `remarks` collects what is expressed by something that is not quite the same. `own` are
    the values that an update finds, one of each component, and `component` counts the value that is translated."""

    variables: Mapping[str, Expr]
    params: Mapping[str, str]
    inputs: Mapping[str, tuple[str, tuple[str, ...]]]
    read: Read
    fail: Callable[[Inexpressible], None]
    remarks: dict[str, None]
    known: Callable[[Node], tuple[str, Node] | None] = lambda node: None
    own: tuple[Expr, ...] = ()
    component: int = 0
    _done: dict[int, Expr] = field(default_factory=dict)

    def expr(self, node: Node) -> Expr:
        """`node` in our language; where it cannot be expressed, a zero in its place."""
        if id(node) not in self._done:
            try:
                self._done[id(node)] = self._expr(node)
            except Inexpressible as error:
                error.node = error.node or node
                self.fail(error)
                self._done[id(node)] = Const(0, TYPES.get(f"{node.type.code}{node.type.bits}", FLOAT32))
        return self._done[id(node)]

    def _expr(self, node: Node) -> Expr:
        if node.args and (fast := self.known(node)) is not None:
            return self._approximated(*fast)
        match node.op:
            case "int" | "float":
                return constant(node)
            case "variable":
                return self._variable(node)
            case "cast":
                return _cast(self.expr(node.args[0]), scalar_type(node.type, node))
            case "reinterpret":
                return self._reinterpret(node)
            case "select":
                c, a, b = (self.expr(x) for x in node.args)
                return Select(c, a, b, a.type)
            case "not":
                return Unary("not", self.expr(node.args[0]), BOOL)
            case "call":
                return self._call(node)
            case op if op in _BINARY or op in _COMPARE or op in ("and", "or", "div", "min", "max"):
                return _operation(op, self.expr(node.args[0]), self.expr(node.args[1]))
            case _:
                raise Inexpressible(f"{node.op} expressions", node)

    def _approximated(self, name: str, operand: Node) -> Expr:
        """A fast_... function of Halide, which is written out there, as the function that it approximates."""
        value = self.expr(operand)
        self.remarks[f"hl.fast_{name} became {name}, which it approximates"] = None
        return Call(name, (value,), value.type)

    def _variable(self, node: Node) -> Expr:
        if node.name in self.variables:
            return self.variables[node.name]
        if node.param in self.inputs or node.buffer in self.inputs:
            name, dims = self.inputs[node.param or node.buffer]
            which, _, number = node.name.rpartition(".")[0].rpartition(".")[2], "", node.name.rpartition(".")[2]
            if which in ("min", "extent") and number.isdigit() and int(number) < len(dims):
                return InputBound(name, "min" if which == "min" else "extent", dims[int(number)])
        elif node.param in self.params:
            return ParamRef(self.params[node.param], scalar_type(node.type, node))
        raise Inexpressible(
            f"the variable {node.name}, which is no dim, reduction variable, Param or image bound", node
        )

    def _reinterpret(self, node: Node) -> Expr:
        source, target = _operand(node, 0).type, scalar_type(node.type, node)
        if source.code in ("int", "uint") and target.is_integer:
            return _cast(self.expr(node.args[0]), target)
        value = self.expr(node.args[0])
        if value.type == target:
            return value
        if BOOL in (value.type, target) or value.type.bits != target.bits:
            raise Inexpressible(f"the bits of {source} as {node.type}", node)
        return Call(f"as_{target.name}", (value,), target)

    def _undefined(self, type: ScalarType) -> Expr:
        """The value of `undef`: in an update the one that is there, elsewhere 0, with a remark."""
        if self.component < len(self.own) and self.own[self.component].type == type:
            return self.own[self.component]
        self.remarks["hl.undef became 0 where no update defines the value"] = None
        return Const(False if type == BOOL else 0.0 if type.is_float else 0, type)

    def _call(self, node: Node) -> Expr:
        if node.kind in ("image", "halide"):
            return self.read(node, tuple(self.expr(a) for a in node.args), scalar_type(node.type, node))
        name = re.sub(r"_f(32|64)$", "", node.name)
        if name in _PASSED_ON:
            if remark := _PASSED_ON[name]:
                self.remarks[remark] = None
            return self.expr(_operand(node, 1 if name == "require" else 0))
        if name == "undef":
            return self._undefined(scalar_type(node.type, node))
        if name == "return_second" and (printed := _printed(node)) is not None:
            raise Inexpressible("hl.print", printed, "take it out: its value is the first thing that it prints")
        type = scalar_type(node.type, node)
        args = [self.expr(a) for a in node.args]
        if remark := _REMARKS.get(name):
            self.remarks[remark] = None
        if type.is_float and name in _FLOAT_FUNCTIONS and len(args) == (2 if name in _OF_TWO else 1):
            return Call(name, tuple(args), type)
        if name not in _BUILT:
            raise Inexpressible(f"{name}()", node)
        try:
            return _BUILT[name](args, type)
        except IndexError:
            raise _few(node) from None


def _few(node: Node) -> Inexpressible:
    return Inexpressible(f"{node.name or node.op}() of {len(node.args)} operands", node)


def _operand(node: Node, n: int) -> Node:
    """An operand, which files that no compiler of Halide wrote may not have."""
    if n >= len(node.args):
        raise _few(node)
    return node.args[n]


def _printed(node: Node) -> Node | None:
    """The call that prints, of hl.print or hl.print_when, which then give a value."""
    first = _operand(node, 0)
    while first.name == "if_then_else" or first.op == "select":
        first = _operand(first, 1)
    return first if first.name == "halide_print" else None


_REMARK_STRICT = "strict_float became plain arithmetic: --strict keeps all of it in the order written"


def scalar_type(t: HalideType, node: Node | None = None) -> ScalarType:
    """Our type of that name. Raises Inexpressible where we have none."""
    if t == HalideType("uint", 1):
        return BOOL
    found = TYPES.get(f"{t.code}{t.bits}") if t.lanes == 1 else None
    if found is None:
        hint = "use float32, and convert where the pipeline is called" if t.code in ("float", "bfloat") else None
        raise Inexpressible(f"the type {t}", node, hint)
    return found


def constant(node: Node) -> Expr:
    """A number. Infinities, numbers beyond the type, and NaN, which have no literals, are quotients by zero."""
    t, value = scalar_type(node.type, node), node.value
    assert value is not None
    if t == BOOL:
        return Const(value != 0, BOOL)
    if not t.is_float:
        return Const(int(value), t)
    if abs(value) <= t.largest:
        return Const(float(value), t)
    top = 0.0 if math.isnan(value) else math.copysign(1.0, value)
    return Binary("/", Const(top, t), Const(0.0, t), t)


def _cast(e: Expr, to: ScalarType, saturate: bool = False) -> Expr:
    if e.type == to:
        return e
    if to == BOOL and not saturate:  # Halide keeps the lowest bit, and ours asks whether it is zero
        whole = _cast(e, INT32) if e.type.is_float else e
        return Compare("!=", Binary("&", whole, Const(1, whole.type), whole.type), Const(0, whole.type))
    if isinstance(e, Const) and not isinstance(e.value, float) and to.is_integer and to.min <= e.value <= to.max:
        return Const(int(e.value), to)
    return Cast(e, to, saturate and e.type != BOOL)


_BINARY: dict[str, BinaryOp] = {"add": "+", "sub": "-", "mul": "*", "mod": "%"}
_COMPARE: dict[str, CompareOp] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OF_BOOLS: dict[str, LogicalOp] = {"and": "and", "or": "or", "min": "and", "max": "or", "mul": "and"}


def _operation(op: str, a: Expr, b: Expr) -> Expr:
    if a.type == BOOL:
        if op in _OF_BOOLS:
            return Logical(_OF_BOOLS[op], a, b)
        if op in ("add", "sub"):  # one bit, which wraps
            return Binary("^", a, b, BOOL)
        if op in ("lt", "le", "gt", "ge"):
            return Compare(_COMPARE[op], Cast(a, UINT8), Cast(b, UINT8))
    if op in _COMPARE:
        return Compare(_COMPARE[op], a, b)
    if op == "div":
        return Binary("/" if a.type.is_float else "//", a, b, a.type)
    if op in _BINARY:
        return Binary(_BINARY[op], a, b, a.type)
    return Call(op, (a, b), a.type)


_FLOAT_FUNCTIONS = frozenset(
    ("sqrt", "exp", "log", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "tanh", "floor", "ceil",
     "round", "trunc")
)  # fmt: skip

_OF_TWO = frozenset(("pow", "atan2"))

# Calls that stand for one of their operands, with what is to be said about it.
_PASSED_ON: dict[str, str | None] = {
    "likely": None,
    "likely_if_innermost": None,
    "strict_float": _REMARK_STRICT,
    "memoize_expr": None,
    "require": None,
}
_REMARKS = {
    **dict.fromkeys(
        ("strict_add", "strict_sub", "strict_mul", "strict_div", "strict_min", "strict_max", "strict_fma"),
        _REMARK_STRICT,
    ),
    "fast_inverse": "hl.fast_inverse became 1 / x, which it approximates",
    "fast_inverse_sqrt": "hl.fast_inverse_sqrt became 1 / sqrt(x), which it approximates",
    "unsafe_promise_clamped": "hl.unsafe_promise_clamped became clamp",
}

Built = Callable[[Sequence[Expr], ScalarType], Expr]


def _wider(t: ScalarType, node: str, kind: str | None = None) -> ScalarType:
    if t.bits == 64:
        raise Inexpressible(f"{node} of 64 bits, which needs 128")
    return TYPES[f"{kind or t.kind}{2 * t.bits}"]


def _unsigned(t: ScalarType) -> ScalarType:
    return TYPES[f"uint{t.bits}"] if t.is_integer else t


def _binary(op: BinaryOp) -> Built:
    return lambda a, t: Binary(op, _cast(a[0], t), _cast(a[1], t), t)


def _bits(op: BinaryOp, logical: LogicalOp | None) -> Built:
    def build(a: Sequence[Expr], t: ScalarType) -> Expr:
        if t == BOOL and logical is not None:
            return Logical(logical, a[0], a[1])
        return Binary(op, a[0], _cast(a[1], t), t)

    return build


def _shift(op: BinaryOp) -> Built:
    return lambda a, t: Binary(op, _cast(a[0], t), _small(a[1], t), t)


def _small(count: Expr, t: ScalarType) -> Expr:
    """A constant count as a literal of the type that is shifted."""
    return _cast(count, t) if isinstance(count, Const) else count


def _call(function: str, *, count: int | None = None) -> Built:
    def build(a: Sequence[Expr], t: ScalarType) -> Expr:
        args = [_small(x, t) if k == count else x for k, x in enumerate(a)]
        return Call(function, tuple(args), t)

    return build


def _magnitude(function: str) -> Built:
    """abs, absd: unsigned in Halide, where ours keep the type and wrap."""
    return lambda a, t: _cast(Call(function, tuple(a), a[0].type), t)


def _lerp(a: Sequence[Expr], t: ScalarType) -> Expr:
    if t == BOOL:
        raise Inexpressible("lerp() of bools")
    zero, one, weight = a
    if t.is_float and weight.type.is_integer:
        weight = Binary("/", _cast(weight, t), Const(float(weight.type.max), t), t)
    return Call("lerp", (zero, one, weight), t)


def _halving_sub(a: Sequence[Expr], t: ScalarType) -> Expr:
    wide = _wider(t, "halving_sub()", "int")
    return _cast(Binary(">>", Binary("-", _cast(a[0], wide), _cast(a[1], wide), wide), Const(1, wide), wide), t)


def _rounding_mul_shift_right(a: Sequence[Expr], t: ScalarType) -> Expr:
    wide = _wider(t, "rounding_mul_shift_right()")
    product = Binary("*", _cast(a[0], wide), _cast(a[1], wide), wide)
    return Cast(Call("rounding_shift_right", (product, _small(a[2], wide)), wide), t, saturate=True)


def _to_zero(op: BinaryOp) -> Built:
    """Division that rounds towards zero, by magnitudes: the quotient's sign is that of both, the rest's the first's."""

    def build(a: Sequence[Expr], t: ScalarType) -> Expr:
        if t.kind == "uint":
            return Binary(op, a[0], a[1], t)
        zero, u = Const(0, t), _unsigned(t)
        first, second = (_cast(Call("abs", (x,), t), u) for x in a)
        size = _cast(Binary(op, first, second, u), t)
        negative: Expr = Compare("<", a[0], zero)
        if op == "//":
            negative = Compare("!=", negative, Compare("<", a[1], zero))
        return Select(negative, Unary("-", size, t), size, t)

    return build


def _finite(kind: str) -> Built:
    def build(a: Sequence[Expr], t: ScalarType) -> Expr:
        size, limit = Call("abs", (a[0],), a[0].type), Const(a[0].type.largest, a[0].type)
        return Compare("!=", a[0], a[0]) if kind == "nan" else Compare(">" if kind == "inf" else "<=", size, limit)

    return build


def _fused(a: Sequence[Expr], t: ScalarType) -> Expr:
    return Binary("+", Binary("*", a[0], a[1], t), a[2], t)


def _inverse(a: Sequence[Expr], t: ScalarType) -> Expr:
    return Binary("/", Const(1.0, t), a[0], t)


def _concatenated(a: Sequence[Expr], t: ScalarType) -> Expr:
    """The first one has the lowest bits."""
    wide = TYPES[f"uint{t.bits}"]
    whole = _cast(a[0], wide)
    for k, part in enumerate(a[1:], 1):
        whole = Binary("|", whole, Binary("<<", _cast(part, wide), Const(k * part.type.bits, wide), wide), wide)
    return _cast(whole, t)


def _rounding_shift_left(a: Sequence[Expr], t: ScalarType) -> Expr:
    """A negative count is a rounding shift to the right."""
    count = a[1]
    if isinstance(count, Const):
        n = int(count.value)
        if n >= 0:
            return Binary("<<", a[0], Const(n, t), t)
        return Call("rounding_shift_right", (a[0], Const(-n, t)), t)
    if count.type.kind == "uint":
        return Binary("<<", a[0], count, t)
    back = Call("rounding_shift_right", (a[0], Unary("-", count, count.type)), t)
    return Select(Compare("<", count, Const(0, count.type)), back, Binary("<<", a[0], count, t), t)


def _rounding_shift_right(a: Sequence[Expr], t: ScalarType) -> Expr:
    """A negative count is a shift to the left, which wraps."""
    count = a[1]
    if isinstance(count, Const) and int(count.value) < 0:
        return Binary("<<", a[0], Const(-int(count.value), t), t)
    right = Call("rounding_shift_right", (a[0], _small(count, t)), t)
    if isinstance(count, Const) or count.type.kind == "uint":
        return right
    left = Binary("<<", a[0], Unary("-", count, count.type), t)
    return Select(Compare("<", count, Const(0, count.type)), left, right, t)


def _exponentials(x: Expr, op: BinaryOp) -> Expr:
    """Half of e**x and e**-x, joined."""
    t = x.type
    up, down = Call("exp", (x,), t), Call("exp", (Unary("-", x, t),), t)
    return Binary("*", Const(0.5, t), Binary(op, up, down, t), t)


def _sinh(a: Sequence[Expr], t: ScalarType) -> Expr:
    """Near 0 a polynomial: there the exponentials cancel."""
    x = a[0]
    square = Binary("*", x, x, t)
    series: Expr = Const(1.0, t)
    for k in range(17 if t == FLOAT64 else 11, 1, -2):  # x + x**3 / 3! + ..., from the last term on
        share = Binary("*", square, Const(1 / (k * (k - 1)), t), t)
        series = Binary("+", Const(1.0, t), Binary("*", share, series, t), t)
    near = Compare("<", Call("abs", (x,), t), Const(1.0, t))
    return Select(near, Binary("*", x, series, t), _exponentials(x, "-"), t)


def _cosh(a: Sequence[Expr], t: ScalarType) -> Expr:
    return _exponentials(a[0], "+")


def _root(x: Expr, one: float) -> Expr:
    t = x.type
    return Call("sqrt", (Binary("+", Binary("*", x, x, t), Const(one, t), t),), t)


def _asinh(a: Sequence[Expr], t: ScalarType) -> Expr:
    """The inverse hyperbolic sine by the logarithm of a magnitude; near 0, where that loses digits, by a polynomial."""
    x = a[0]
    size = Call("abs", (x,), t)
    far = Call("log", (Binary("+", size, _root(size, 1.0), t),), t)
    signed = Select(Compare("<", x, Const(0.0, t)), Unary("-", far, t), far, t)
    square, series = Binary("*", x, x, t), cast("Expr", Const(1.0, t))
    for k in range(21, 0, -2):  # 1 - x**2 / 6 + 3 x**4 / 40 - ..., from the last term on
        share = Binary("*", square, Const(-k * k / ((k + 1) * (k + 2)), t), t)
        series = Binary("+", Const(1.0, t), Binary("*", share, series, t), t)
    return Select(Compare("<", size, Const(0.25, t)), Binary("*", x, series, t), signed, t)


def _acosh(a: Sequence[Expr], t: ScalarType) -> Expr:
    return Call("log", (Binary("+", a[0], _root(a[0], -1.0), t),), t)


def _atanh(a: Sequence[Expr], t: ScalarType) -> Expr:
    """Near 0 a polynomial, else half of the logarithm of (1 + x) / (1 - x)."""
    x, one = a[0], Const(1.0, t)
    quotient = Binary("/", Binary("+", one, x, t), Binary("-", one, x, t), t)
    far = Binary("*", Const(0.5, t), Call("log", (quotient,), t), t)
    square, series = Binary("*", x, x, t), cast("Expr", Const(1 / 25, t))
    for k in range(23, 0, -2):  # 1 + x**2 / 3 + x**4 / 5 + ..., from the last term on
        series = Binary("+", Const(1 / k, t), Binary("*", square, series, t), t)
    return Select(Compare("<", Call("abs", (x,), t), Const(0.25, t)), Binary("*", x, series, t), far, t)


def _choice(a: Sequence[Expr], t: ScalarType) -> Expr:
    return Select(a[0], a[1], a[2], t)


def _chosen(a: Sequence[Expr], t: ScalarType) -> Expr:
    return a[1] if len(a) == 2 else Call("mux", tuple(a), t)


def _clamped(a: Sequence[Expr], t: ScalarType) -> Expr:
    return Call("clamp", tuple(a), t)


_BUILT: dict[str, Built] = {
    "abs": _magnitude("abs"),
    "popcount": _call("popcount"),
    "count_leading_zeros": _call("count_leading_zeros"),
    "count_trailing_zeros": _call("count_trailing_zeros"),
    "extract_bits": lambda a, t: _cast(Binary(">>", a[0], _small(a[1], a[0].type), a[0].type), t),
    "concat_bits": _concatenated,
    "rounding_shift_left": _rounding_shift_left,
    "sinh": _sinh,
    "cosh": _cosh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "absd": _magnitude("absd"),
    "bitwise_and": _bits("&", "and"),
    "bitwise_or": _bits("|", "or"),
    "bitwise_xor": _bits("^", None),
    "bitwise_not": lambda a, t: Unary("not" if t == BOOL else "~", a[0], t),
    "shift_left": _shift("<<"),
    "shift_right": _shift(">>"),
    "lerp": _lerp,
    "mux": _chosen,
    "if_then_else": _choice,
    "select_mask": _choice,
    "saturating_cast": lambda a, t: _cast(a[0], t, saturate=t.is_integer),
    "saturating_add": _call("sat_add"),
    "saturating_sub": _call("sat_sub"),
    "halving_add": _call("halving_add"),
    "halving_sub": _halving_sub,
    "rounding_halving_add": _call("rounding_halving_add"),
    "sorted_avg": _call("halving_add"),
    "rounding_shift_right": _rounding_shift_right,
    "mul_shift_right": _call("mul_shift_right", count=2),
    "rounding_mul_shift_right": _rounding_mul_shift_right,
    "widening_add": _binary("+"),
    "widening_sub": _binary("-"),
    "widening_mul": _binary("*"),
    "widen_right_add": _binary("+"),
    "widen_right_sub": _binary("-"),
    "widen_right_mul": _binary("*"),
    "widening_shift_left": _shift("<<"),
    "widening_shift_right": _shift(">>"),
    "div_round_to_zero": _to_zero("//"),
    "mod_round_to_zero": _to_zero("%"),
    "unsafe_promise_clamped": _clamped,
    "promise_clamped": _clamped,
    "is_nan": _finite("nan"),
    "is_inf": _finite("inf"),
    "is_finite": _finite("finite"),
    "fast_inverse": _inverse,
    "fast_inverse_sqrt": lambda a, t: _inverse([Call("sqrt", (a[0],), t)], t),
    "strict_add": _binary("+"),
    "strict_sub": _binary("-"),
    "strict_mul": _binary("*"),
    "strict_div": _binary("/"),
    "strict_min": _call("min"),
    "strict_max": _call("max"),
    "strict_fma": _fused,
    **{f"strict_{n}": lambda a, t, op=op: Compare(op, a[0], a[1]) for n, op in _COMPARE.items()},  # type: ignore[misc]
}
