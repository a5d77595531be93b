"""One operation of the loop program as an OpenCL C expression, scalar or vector.

Overflow of signed integers has no meaning in the language: they are computed as unsigned ones.
"""

from __future__ import annotations

from tilesmith.scheduler.codegen.opencl import memory, types
from tilesmith.scheduler.codegen.opencl.functions import call
from tilesmith.scheduler.codegen.opencl.operands import Operands
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType


def expression(o: Operands, d: Define) -> str:
    """The expression of a definition."""
    r, op = d.result, d.op
    match op:
        case ops.Unary():
            return _unary(o, r, op.op, op.a)
        case ops.Binary(op=sign, a=a, b=b):
            return _logical(o, r, sign, a, b) if r.type == BOOL else _binary(o, r, sign, a, b)
        case ops.Compare():
            return _compare(o, r, op.op, op.a, op.b)
        case ops.Logical():
            return _logical(o, r, "&" if op.op == "and" else "|", op.a, op.b)
        case ops.Select():
            return _select(o, r, op.condition, op.a, op.b)
        case ops.Call(function="min" | "max", args=(a, b)) if r.type == BOOL:
            return _logical(o, r, "&" if op.function == "min" else "|", a, b)
        case ops.Call():
            return call(o, r, op.function, op.args)
        case ops.FusedProduct():
            return f"fma({', '.join(o.wide(x, r.lanes) for x in (op.a, op.b, op.c))})"
        case ops.Cast():
            return _cast(o, r, op.a, op.saturate)
        case ops.Truncate():
            return f"convert_{types.vector(r.type, r.lanes)}({o.typed(op.a)})"
        case ops.ResizeMask():
            return o.mask(op.a, r.mask_bits, r.lanes)
        case ops.Broadcast():
            return o.mask(op.a, r.mask_bits, r.lanes) if r.type == BOOL else o.wide(op.a, r.lanes)
        case ops.Copy():
            return op.a.name
        case ops.DotPairs():
            return _dot_pairs(o, r, op)
        case ops.SumNeighbours():
            return _sum_neighbours(o, r, op)
        case ops.Narrow(a=a, b=b):
            half = types.type_of(Value(r.type, r.lanes // 2, "", None, r.mask_bits))
            convert = f"convert_{half}_sat" if op.saturate else f"convert_{half}"
            halves = [f"{convert}({v.name})" for v in (a, b)]
            if op.by_parts:
                part = ops.PART_BYTES // r.type.bytes // 2
                places = [divmod(n, part) for n in range(r.lanes)]
                return o.picked(r, [f"({h})" for h in halves], [(k % 2, k // 2 * part + n) for k, n in places])
            return f"({types.type_of(r)})({', '.join(halves)})"
        case ops.WidenPart(a=a, part=part):
            picks = [(0, p) for p in range(part, a.lanes, a.lanes // r.lanes)]
            return f"convert_{types.type_of(r)}({o.picked(Value(a.type, r.lanes), (a.name,), picks)})"
        case ops.WidenLanes(a=a, picks=lanes):
            return f"convert_{types.type_of(r)}({o.picked(Value(a.type, r.lanes), (a.name,), [(0, p) for p in lanes])})"
        case ops.Shuffle(a=a, b=b):
            return o.picked(r, (a.name, b.name), [divmod(p, a.lanes) for p in op.picks])
        case ops.FromIndex():
            return f"(int){o.symbols.text(op.at)}"
        case ops.ToIndex():
            return f"(long){o.name(op.a)}"
        case ops.Lanes():
            own, wraps = types.vector(r.type, r.lanes), types.unsigned(r.type)
            pattern = o.lanewise(wraps, r.lanes, lambda n: str(op.pattern[n]))
            first = f"({types.vector(wraps, r.lanes)})(({types.scalar(wraps)}){o.symbols.text(op.at)})"
            return f"as_{own}({first} + {pattern})"
        case ops.CarriedElements() | ops.VectorsIntoLine() | ops.Misalignment():
            return "0"  # there are no streaming stores
        case _:
            return memory.loaded(o, r, op)


# choices ------------------------------------------------------------


def _compare(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    if r.lanes == 1:
        return f"{o.name(a)} {op} {o.name(b)}"
    if a.type == BOOL:
        return f"{o.mask(a, r.mask_bits, r.lanes)} {op} {o.mask(b, r.mask_bits, r.lanes)}"
    return _resized(f"{o.wide(a, r.lanes)} {op} {o.wide(b, r.lanes)}", a.type.bits, r)


def _resized(comparison: str, bits: int, r: Value) -> str:
    """A comparison of vectors of `bits` as the mask `r`."""
    return comparison if bits == r.mask_bits else f"convert_{types.type_of(r)}({comparison})"


def _logical(o: Operands, r: Value, sign: str, a: Value, b: Value) -> str:
    x, y = (o.name(v) if r.lanes == 1 else o.mask(v, r.mask_bits, r.lanes) for v in (a, b))
    return f"{x} {sign} {y}"


def _select(o: Operands, r: Value, c: Value, a: Value, b: Value) -> str:
    if r.lanes == 1:
        return f"{o.name(c)} ? {o.name(a)} : {o.name(b)}"
    if r.type == BOOL:
        m, x, y = (o.mask(v, r.mask_bits, r.lanes) for v in (c, a, b))
        return f"({x} & {m}) | ({y} & ~{m})"
    return f"select({o.wide(b, r.lanes)}, {o.wide(a, r.lanes)}, {o.mask(c, r.type.bits, r.lanes)})"


# conversions ------------------------------------------------------------


def _cast(o: Operands, r: Value, a: Value, saturate: bool) -> str:
    t, source = r.type, a.type
    if t == BOOL:
        zero = f"({types.vector(source, r.lanes)})(0)"
        return f"{o.name(a)} != 0" if r.lanes == 1 else _resized(f"{a.name} != {zero}", source.bits, r)
    own = types.vector(t, r.lanes)
    if source == BOOL:
        return f"({own}){o.name(a)}" if r.lanes == 1 else f"convert_{own}({a.name} & 1)"
    to_nearest = t.is_integer and (source.is_float or saturate)
    return f"convert_{own}{'_sat' if to_nearest else ''}({o.typed(a)})"


def _sum_neighbours(o: Operands, r: Value, op: ops.SumNeighbours) -> str:
    count, part = op.a.lanes // r.lanes, Value(op.a.type, r.lanes)
    terms = []
    for n in range(count):
        picks = [(0, p) for p in range(n, op.a.lanes, count)]
        a, b = (
            o.picked(part, (x.name,), picks) if x.lanes > 1 else f"({types.type_of(part)})({o.typed(x)})"
            for x in (op.a, op.b)
        )
        terms.append(f"convert_{types.type_of(r)}(abs_diff({a}, {b}))")
    return " + ".join(terms)


def _dot_pairs(o: Operands, r: Value, op: ops.DotPairs) -> str:
    own, wraps = types.vector(r.type, r.lanes), types.vector(types.unsigned(r.type), r.lanes)
    products = []
    for n, half in enumerate(("even", "odd")):
        factor = f"convert_{own}({op.b.name}.{half})" if op.b.lanes > 1 else f"({own})(as_short2({o.typed(op.b)}).s{n})"
        products.append(f"as_{wraps}(convert_{own}({op.a.name}.{half}) * {factor})")
    return f"as_{own}({' + '.join(products)})"


# arithmetic ------------------------------------------------------------


def _binary(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    if op in ("<<", ">>"):
        return _shift(o, r, op, a, b)
    if op in ("//", "%", "**"):
        return _divide(o, r, op, a, b)
    if not r.type.is_float and op in ("+", "-", "*"):
        return _wrapping(o, r, op, a, b)
    x, y = (o.name(v) if r.lanes == 1 else o.wide(v, r.lanes) for v in (a, b))
    return f"{x} {op} {y}" if r.lanes > 1 or r.type.is_float else f"({types.scalar(r.type)})({x} {op} {y})"


def _wrapping(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    t = r.type
    if r.lanes == 1:
        u = "ulong" if t.bits == 64 else "uint"
        return f"({types.scalar(t)})(({u}){o.name(a)} {op} ({u}){o.name(b)})"
    x, y = (o.wide(v, r.lanes) for v in (a, b))
    if t.kind == "uint":
        return f"{x} {op} {y}"
    wraps = types.vector(types.unsigned(t), r.lanes)
    return f"as_{types.vector(t, r.lanes)}(as_{wraps}({x}) {op} as_{wraps}({y}))"


def _unary(o: Operands, r: Value, op: str, a: Value) -> str:
    t = r.type
    if op == "not":
        return f"!{o.name(a)}" if r.lanes == 1 else f"~{o.mask(a, r.mask_bits, r.lanes)}"
    if op == "~":
        return f"({types.scalar(t)})~{o.name(a)}" if r.lanes == 1 else f"~{a.name}"
    return f"-{o.name(a)}" if t.is_float else _wrapping(o, r, "-", Value(t, 1, "", 0), a)


def _shift(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    t, left = r.type, op == "<<"
    if r.lanes == 1:
        return _shift_scalar(left, t, b.type, o.name(a), o.name(b))
    own, u = types.vector(t, r.lanes), types.unsigned(t)
    wraps, x = types.vector(u, r.lanes), o.wide(a, r.lanes)
    if b.literal is not None and 0 <= b.literal < t.bits:
        k = int(b.literal)
        return f"as_{own}(as_{wraps}({x}) << ({wraps})({k}))" if left else f"{x} >> ({own})({k})"
    if b.type != u:
        return o.lanewise(t, r.lanes, lambda n: _shift_scalar(left, t, b.type, o.lane(a, n), o.lane(b, n)))
    count = o.wide(b, r.lanes)
    if not left and t.kind == "int":
        return f"{x} >> as_{own}(min({count}, ({wraps})({t.bits - 1})))"
    moved = f"as_{wraps}({x}) {op} ({count} & ({wraps})({t.bits - 1}))"
    return f"as_{own}(select(({wraps})(0), {moved}, {count} < ({wraps})({t.bits})))"


def _shift_scalar(left: bool, t: ScalarType, right: ScalarType, a: str, b: str) -> str:
    count = f"(long){b}"
    if right.bits == 64:  # counts that a long cannot hold, or not negate, are too large anyway
        count = f"({b} > 64 ? 64 : (long){b})" if right.kind == "uint" else f"ts_max({b}, -64)"
    return f"ts_shift_{types.element(t)}({a}, {'' if left else '-'}{count})"


def _divide(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    t, lanes = r.type, r.lanes
    x, y = o.wide(a, lanes), o.wide(b, lanes)
    if op == "**":
        return f"pow({x}, {y})"
    if t.is_float:
        quotient = f"floor({x} / {y})"
        return quotient if op == "//" else f"{x} - {quotient} * {y}"
    if lanes > 1 and b.literal is not None and b.literal > 0:
        return _divide_by_constant(t, lanes, op, x, int(b.literal))
    function = f"ts_{'div' if op == '//' else 'mod'}_{types.element(t)}"
    if lanes == 1:
        return f"{function}({o.name(a)}, {o.name(b)})"
    return o.lanewise(t, lanes, lambda n: f"{function}({o.lane(a, n)}, {o.lane(b, n)})")


def _divide_by_constant(t: ScalarType, lanes: int, op: str, x: str, k: int) -> str:
    """Division and remainder of a vector by a positive constant. A comparison is -1 where it holds."""
    own = types.vector(t, lanes)
    if k & (k - 1) == 0:
        return f"{x} >> ({own})({k.bit_length() - 1})" if op == "//" else f"{x} & ({own})({k - 1})"
    by, zero = f"({own})({types.literal(k, t)})", f"({own})(0)"
    if t.kind == "uint":
        return f"{x} {'/' if op == '//' else '%'} {by}"
    if op == "//":
        return f"{x} / {by} + ({x} % {by} < {zero})"
    return f"{x} % {by} + ({by} & ({x} % {by} < {zero}))"
