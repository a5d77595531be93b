"""Conversions between types as C expressions."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.integer_functions import widening
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.types import literal, scalar, short
from tilesmith.scheduler.codegen.c.wide_integers import check_exact
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, FLOAT64, INT32, UINT32, ScalarType


def cast(o: Operands, r: Value, a: Value, saturate: bool) -> str:
    """`a` as the type of `r`: integers wrap, or saturate; floats are truncated and saturate, NaN becomes 0."""
    t, source = r.type, a.type
    if r.lanes == 1:
        if saturate:
            check_exact(o.functions.architecture, "saturate", (source,))
        return _scalar(t, source, o.name(a), saturate)
    if t == BOOL:
        return f"{a.name} != ({o.of(source, a.lanes)}){{0}}"
    if source == BOOL:
        return _from_bool(o, r, a)
    if source.is_float and t.is_integer:
        if source == FLOAT32 and t in (INT32, UINT32):
            return f"{o.function(f'to_{short(t)}', source, r.lanes)}({a.name})"
        return o.lanewise(r, lambda n: _scalar(t, source, o.lane(a, n), saturate))
    if saturate and t.is_integer:
        return _saturated(o, a, t, r.lanes)
    return _converted(o, a.name, source, t, r.lanes)


def truncated(o: Operands, r: Value, a: Value) -> str:
    """Floats within the range of an integer type of half as many bits at most. `r` may have as many as they, from which
    those are taken."""
    if a.type != FLOAT64:
        middle = ScalarType("int", a.type.bits)
    else:
        middle = INT32 if r.type.bits < INT32.bits or r.type == INT32 else ScalarType("int", 64)
    if a.type.bits == middle.bits == 64:
        ints = f"{o.function('to_i64', a.type, r.lanes)}({a.name})"
    else:
        ints = f"__builtin_convertvector({a.name}, {o.of(middle, r.lanes)})"
    return _steps(o, ints, middle, r.type, r.lanes)


def _from_bool(o: Operands, r: Value, a: Value) -> str:
    t = r.type
    ones = f"({o.mask(a, t.bits, r.lanes)} & 1)"
    if t.kind == "int":
        return ones
    if t.is_float:
        one = "0x3F800000" if t.bits == 32 else "0x3FF0000000000000"
        return f"({o.of(t, r.lanes)})({o.mask(a, t.bits, r.lanes)} & {one})"
    return f"({o.of(t, r.lanes)}){ones}"


def _scalar(t: ScalarType, source: ScalarType, a: str, saturate: bool) -> str:
    if t == BOOL:
        return f"{a} != 0"
    if source.is_float and t.is_integer:
        return f"ts_{short(source)}_to_{short(t)}({a})"
    if saturate and t.is_integer and source.is_integer:
        return f"ts_exact_{short(t)}({a})"
    return f"({scalar(t)}){a}"


def _converted(o: Operands, a: str, source: ScalarType, t: ScalarType, lanes: int) -> str:
    """Conversion by what the machines have instructions for: sizes are halved step by step."""
    if source.is_integer and t.is_integer and source.bits == t.bits:
        return f"({o.of(t, lanes)}){a}"
    if source.is_integer and t.is_float and source.bits < 32:
        a, source = _steps(o, a, source, INT32, lanes), INT32
    if t == FLOAT64 and source.bits == 32:
        return f"{o.function('to_f64', source, lanes)}({a})"
    if source.is_integer and t.is_integer:
        return _steps(o, a, source, t, lanes)
    return f"__builtin_convertvector({a}, {o.of(t, lanes)})"


def _steps(o: Operands, a: str, source: ScalarType, t: ScalarType, lanes: int) -> str:
    kind, bits = source.kind, source.bits
    if bits < t.bits:
        return f"{o.function(widening(source), t, lanes)}({a})"
    while bits != t.bits:
        bits //= 2
        step = ScalarType(kind if bits != t.bits else t.kind, bits)
        a = f"__builtin_convertvector({a}, {o.of(step, lanes)})"
    return a if source.bits != t.bits else f"({o.of(t, lanes)}){a}"


def _saturated(o: Operands, a: Value, t: ScalarType, lanes: int) -> str:
    source, text = a.type, a.name
    for name, inside, end in (("min", t.max >= source.max, t.max), ("max", t.min <= source.min, t.min)):
        if not inside:
            text = f"{o.function(name, source, lanes)}({text}, ({literal(end, source)} - ({o.of(source, lanes)}){{0}}))"
    return _converted(o, text, source, t, lanes)
