"""Built-in functions as OpenCL C expressions. The language has most of them, of scalars and of vectors."""

from __future__ import annotations

from tilesmith.scheduler.codegen.opencl import types
from tilesmith.scheduler.codegen.opencl.operands import Operands
from tilesmith.scheduler.codegen.opencl.types import element, literal, scalar
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT64, UINT32, ScalarType

FLOAT_FUNCTIONS = {
    **{f: f for f in ("sqrt", "exp", "log", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "tanh")},
    **{f: f for f in ("floor", "ceil", "trunc")}, "round": "rint",
}  # fmt: skip
_IDIOMS = {"sat_add": "add_sat", "sat_sub": "sub_sat", "halving_add": "hadd", "rounding_halving_add": "rhadd"}


def call(o: Operands, r: Value, f: str, args: tuple[Value, ...]) -> str:
    """`f` of `args` as the type of `r`."""
    t, lanes = r.type, r.lanes
    own = types.vector(t, lanes)
    if f in FLOAT_FUNCTIONS or f in _IDIOMS:
        return f"{(FLOAT_FUNCTIONS | _IDIOMS)[f]}({', '.join(o.wide(a, lanes) for a in args)})"
    match f:
        case _ if f.startswith("as_"):
            return f"as_{own}({o.wide(args[0], lanes)})"
        case "min" | "max":
            return _extreme(o, r, "<" if f == "min" else ">", *args)
        case "opaque":
            return f"ts_opaque_{own}({o.wide(args[0], lanes)})"
        case "abs" | "absd" if t.is_float:
            return f"fabs({' - '.join(o.wide(a, lanes) for a in args)})"
        case "abs" | "absd":
            name = "abs" if f == "abs" else "abs_diff"
            return f"as_{own}({name}({', '.join(o.wide(a, lanes) for a in args)}))"
        case "random":
            return _random(o, r, args)
        case "lerp" if t.is_float and args[2].type == t:
            a, b, w = (o.wide(v, lanes) for v in args)
            return f"{a} + ({b} - {a}) * {w}"
        case "rounding_shift_right" if (n := args[1].literal) is not None and 0 < n < t.bits and lanes > 1:
            a = o.wide(args[0], lanes)
            return f"({a} >> ({own})({n})) + (({a} >> ({own})({n - 1})) & ({own})(1))"
        case "rounding_shift_right" | "mul_shift_right" | "lerp":
            kinds = tuple(a.type for a in args)
            if lanes == 1:
                return _scalar(f, t, kinds, tuple(o.name(a) for a in args))
            return o.lanewise(t, lanes, lambda n: _scalar(f, t, kinds, tuple(o.lane(a, n) for a in args)))
        case _:
            raise AssertionError(f)


def _extreme(o: Operands, r: Value, sign: str, a: Value, b: Value) -> str:
    if r.lanes == 1:
        x, y = o.name(a), o.name(b)
        return f"{x} {sign} {y} ? {x} : {y}"
    x, y = o.wide(a, r.lanes), o.wide(b, r.lanes)
    if r.type.is_float:  # of NaN and zeros what a comparison says
        return f"select({y}, {x}, {x} {sign} {y})"
    return f"{'min' if sign == '<' else 'max'}({x}, {y})"


def _random(o: Operands, r: Value, args: tuple[Value, ...]) -> str:
    """The hash of the arguments before the first vector is one for all lanes."""
    h, lanes = "0x9E3779B9u", 1
    for a in args:
        if a.lanes > lanes:
            h, lanes = f"(uint{a.lanes})({h})", a.lanes
        own = types.vector(UINT32, lanes)
        word = f"convert_{own}({o.typed(a)})" if a.lanes == lanes else f"({own})((uint){o.name(a)})"
        h = f"ts_mix{lanes if lanes > 1 else ''}({h}, {word})"
    found = f"convert_{types.vector(r.type, lanes)}({h} >> 8) * 0x1p-24f"
    return found if lanes == r.lanes else f"(float{r.lanes})({found})"


def _scalar(f: str, t: ScalarType, kinds: tuple[ScalarType, ...], args: tuple[str, ...]) -> str:
    match f:
        case "rounding_shift_right":
            return f"ts_rounding_shift_{element(t)}({args[0]}, {_count(kinds[1], args[1])})"
        case "mul_shift_right":
            return f"ts_mul_shift_{element(t)}({args[0]}, {args[1]}, {_count(kinds[2], args[2])})"
        case _:
            return _lerp(t, kinds[2], *args)


def _lerp(t: ScalarType, weight: ScalarType, a: str, b: str, w: str) -> str:
    """See `tilesmith.scheduler.ir.pipeline.semantics`."""
    if t.is_float:
        if weight.is_float:
            w = f"({scalar(t)}){w}"
        else:
            wide = FLOAT64 if weight.bits > 16 else t
            w = f"({scalar(t)})(({scalar(wide)}){w} / {literal(weight.max, wide)})"
        return f"{a} + ({b} - {a}) * {w}"
    top = (1 << t.bits) - 1
    if weight.is_float:
        wide = FLOAT64 if t.bits > 16 else weight
        w = f"convert_{element(types.unsigned(t))}_sat(({scalar(wide)}){w} * {literal(top, wide)})"
    elif weight.bits <= t.bits:
        w = f"(ulong){w} * {top // weight.max}ul"
    else:
        w = f"{w} / {weight.max // top}ul"
    return f"({scalar(t)})ts_lerp({a}, {b}, {'1' if t.kind == 'int' else '0'}, {w}, {top}ul)"


def _count(t: ScalarType, a: str) -> str:
    return f"({a} > 127 ? 127 : (long){a})" if t.kind == "uint" and t.bits == 64 else a
