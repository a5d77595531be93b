"""Built-in functions as C expressions, of scalars and of vectors."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.conversions import cast
from tilesmith.scheduler.codegen.c.elementary_functions import FLOAT_FUNCTIONS
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.types import literal, scalar, short
from tilesmith.scheduler.codegen.c.wide_integers import check_exact
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, FLOAT64, INT32, UINT32, ScalarType


def call(o: Operands, r: Value, f: str, args: tuple[Value, ...]) -> str:
    """`f` of `args` as the type of `r`."""
    t = r.type
    if f in ("min", "max") and r.lanes > 1:
        return _function(o, f, t, r.lanes, args)
    if f in ("min", "max"):
        a, b = (o.name(v) for v in args)
        return f"{a} {'<' if f == 'min' else '>'} {b} ? {a} : {b}"
    if r.lanes > 1 and (text := _vector(o, r, f, args)) is not None:
        return text
    types = tuple(a.type for a in args)
    check_exact(o.functions.architecture, f, types)
    if r.lanes > 1:
        return o.lanewise(r, lambda n: _scalar(f, t, types, tuple(o.lane(a, n) for a in args)))
    if (lanes := o.vector_calls.get((f, t))) is not None and o.functions.in_vectors(f, t):
        # a point has one value, in a vector and beyond the last one: the C library's may differ in the last bit
        return f"{_vector(o, Value(t, lanes), f, args)}[0]"
    return _scalar(f, t, types, tuple(o.name(a) for a in args))


# vectors ------------------------------------------------------------


def _vector(o: Operands, r: Value, f: str, args: tuple[Value, ...]) -> str | None:
    """The function of whole vectors, where there is one."""
    t = r.type
    if f == "pow":
        return o.power(t, r.lanes, *args)
    if f in FLOAT_FUNCTIONS:
        numbers = (o.numbers(t, r.lanes),) if f == "exp" and t == FLOAT32 and o.functions.in_vectors(f, t) else ()
        return f"{o.function(f, t, r.lanes)}({', '.join((*(o.wide(a, r.lanes) for a in args), *numbers))})"
    match f:
        case _ if f.startswith("as_"):
            return f"({o.of(t, r.lanes)}){o.wide(args[0], r.lanes)}"
        case "abs":
            return _abs(o, r, args[0])
        case "absd":
            return _absd(o, r, *args)
        case "halving_add":
            # the mean without a carry: what both have, plus half of what differs
            x, y = (o.wide(v, r.lanes) for v in args)
            return f"({x} & {y}) + (({x} ^ {y}) >> 1)"
        case "rounding_halving_add" | "sat_add" | "sat_sub" | "opaque":
            return _function(o, f, t, r.lanes, args)
        case "rounding_shift_right":
            return _rounding_shift(args[0], args[1]) if args[0].lanes > 1 else None
        case "lerp" if t.is_float and args[2].type.is_float:
            a, b, w = (o.wide(v, r.lanes) for v in args)
            return f"{a} + ({b} - {a}) * {w}" if args[2].type == t else None
        case "random":
            return _random(o, r, args)
    return None


def _function(o: Operands, f: str, t: ScalarType, lanes: int, args: tuple[Value, ...]) -> str:
    return f"{o.function(f, t, lanes)}({', '.join(o.wide(a, lanes) for a in args)})"


def _abs(o: Operands, r: Value, a: Value) -> str:
    t = r.type
    if t.kind == "uint":
        return a.name
    if not t.is_float:
        return _function(o, "abs", t, r.lanes, (a,))
    i = o.vector("int", t.bits, r.lanes)
    return f"({o.of(t, r.lanes)})(({i}){a.name} & INT{t.bits}_MAX)"


def _absd(o: Operands, r: Value, a: Value, b: Value) -> str:
    t = r.type
    x, y = o.wide(a, r.lanes), o.wide(b, r.lanes)
    if t.is_float:
        i = o.vector("int", t.bits, r.lanes)
        return f"({o.of(t, r.lanes)})(({i})({x} - {y}) & INT{t.bits}_MAX)"
    most, least = (_function(o, f, a.type, r.lanes, (a, b)) for f in ("max", "min"))
    u = o.vector("uint", t.bits, r.lanes)
    return f"({o.of(t, r.lanes)})(({u}){most} - ({u}){least})"


def _rounding_shift(a: Value, count: Value) -> str | None:
    """Half is added by adding the bit that leaves last."""
    n = count.literal
    if n is None or not 0 <= n < a.type.bits:
        return None
    return f"({a.name} >> {n}) + (({a.name} >> {n - 1}) & 1)" if n else a.name


def _random(o: Operands, r: Value, args: tuple[Value, ...]) -> str:
    """The hash of the arguments before the first vector is one for all lanes."""
    h, wide = "0x9E3779B9u", False
    for a in args:
        if a.lanes == 1 and not wide:
            h = f"ts_mix({h}, (uint32_t){o.name(a)})"
            continue
        u = o.of(UINT32, r.lanes)
        start = h if wide else f"{h} - ({u}){{0}}"
        lane = f"(uint32_t){o.name(a)} - ({u}){{0}}" if a.lanes == 1 else cast(o, Value(UINT32, r.lanes), a, False)
        h, wide = f"{o.function('mix', UINT32, r.lanes)}({start}, {lane})", True
    i = o.vector("int", 32, r.lanes)
    return f"__builtin_convertvector(({i})({h} >> 8), {o.of(FLOAT32, r.lanes)}) * 0x1p-24f"


# scalars ------------------------------------------------------------


def _scalar(f: str, t: ScalarType, types: tuple[ScalarType, ...], args: tuple[str, ...]) -> str:
    s, suffix = short(t), "f" if t.is_float and t.bits == 32 else ""
    if f in FLOAT_FUNCTIONS:
        return f"{FLOAT_FUNCTIONS[f]}{suffix}({', '.join(args)})"
    match f:
        case _ if f.startswith("as_"):
            return f"ts_bits_{short(types[0])}_{s}({args[0]})"
        case "abs" if t.is_float:
            return f"fabs{suffix}({args[0]})"
        case "absd" if t.is_float:
            return f"fabs{suffix}({args[0]} - {args[1]})"
        case "abs":
            u, a = f"uint{max(t.bits, 32)}_t", args[0]
            return f"({scalar(t)})({a} < 0 ? 0 - ({u}){a} : ({u}){a})" if t.kind == "int" else a
        case "absd" if t.bits < INT32.bits:  # a branch would be mispredicted every other time
            return f"({scalar(t)})__builtin_abs({args[0]} - {args[1]})"
        case "absd":
            u = f"uint{max(t.bits, 32)}_t"
            a, b = args
            return f"({scalar(t)})({a} > {b} ? ({u}){a} - ({u}){b} : ({u}){b} - ({u}){a})"
        case "opaque":
            return f"ts_opaque_{s}({args[0]})"
        case "random":
            h = "0x9E3779B9u"
            for a in args:
                h = f"ts_mix({h}, (uint32_t){a})"
            return f"(float)({h} >> 8) * 0x1p-24f"
        case "sat_add" | "sat_sub":
            return f"ts_exact_{s}((__int128){args[0]} {'+' if f == 'sat_add' else '-'} {args[1]})"
        case "halving_add" | "rounding_halving_add":
            more = " + 1" if f == "rounding_halving_add" else ""
            return f"({scalar(t)})(((__int128){args[0]} + {args[1]}{more}) >> 1)"
        case "rounding_shift_right":
            return f"ts_exact_{s}(ts_scaled({args[0]}, {_count(types[1], args[1])}, 1))"
        case "mul_shift_right" if s == "u64":
            return f"ts_mul_shift_u64({args[0]}, {args[1]}, {_count(types[2], args[2])})"
        case "mul_shift_right":
            product = f"(__int128){args[0]} * {args[1]}"
            return f"ts_exact_{s}(ts_scaled({product}, {_count(types[2], args[2])}, 0))"
        case "lerp":
            return _lerp(t, types[2], *args)
    raise AssertionError(f)


def _lerp(t: ScalarType, weight: ScalarType, a: str, b: str, w: str) -> str:
    """See `tilesmith.scheduler.ir.pipeline.semantics`."""
    if t.is_float:
        if not weight.is_float:
            wide = FLOAT64 if weight.bits > 16 else t
            w = f"({scalar(t)})(({scalar(wide)}){w} / {literal(weight.max, wide)})"
        elif weight != t:
            w = f"({scalar(t)}){w}"
        return f"{a} + ({b} - {a}) * {w}"
    top = (1 << t.bits) - 1
    if weight.is_float:
        wide = FLOAT64 if t.bits > 16 else weight
        w = f"ts_{short(wide)}_to_u{t.bits}(({scalar(wide)}){w} * {literal(top, wide)})"
    elif weight.bits <= t.bits:
        w = f"(__int128){w} * {top // weight.max}u"
    else:
        w = f"{w} / {weight.max // top}u"
    return f"({scalar(t)})ts_lerp({a}, {b}, {w}, {top}{'u' if t.bits < 64 else 'ULL'})"


def _count(t: ScalarType, a: str) -> str:
    return f"({a} > 127 ? 127 : (int64_t){a})" if t.kind == "uint" and t.bits == 64 else a
