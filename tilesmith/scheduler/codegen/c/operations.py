"""One operation of the loop program as a C expression, scalar or vector (GCC and Clang vector extensions)."""

from __future__ import annotations

from math import copysign

from tilesmith.scheduler.codegen.c import integer_division, masks
from tilesmith.scheduler.codegen.c.addresses import address, index, permutation
from tilesmith.scheduler.codegen.c.conversions import cast, truncated
from tilesmith.scheduler.codegen.c.functions import call
from tilesmith.scheduler.codegen.c.integer_functions import LONG_PRODUCT
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.types import scalar, short
from tilesmith.scheduler.codegen.c.vector_shifts import SHIFTS
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT16, INT32, UINT32, ScalarType


def expression(o: Operands, d: Define) -> str:
    """The C expression of a definition."""
    r, op = d.result, d.op
    match op:
        case ops.Unary():
            return _unary(o, r, op.op, op.a)
        case ops.Binary(op=sign, a=a, b=b):
            return _logical(o, r, sign, a, b) if r.type.kind == "bool" else _binary(o, r, sign, a, b)
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
            return f"{o.function('fma', r.type, r.lanes)}({', '.join(o.wide(x, r.lanes) for x in (op.a, op.b, op.c))})"
        case ops.Cast():
            if r.type.bits == 64 and op.a.type.is_integer and op.a.type.bits < 64:
                o.widened[r.name] = op.a.type
            return cast(o, r, op.a, op.saturate)
        case ops.Truncate():
            return truncated(o, r, op.a)
        case ops.ResizeMask():
            return (o.bit_mask if r.name in o.bits else o.mask)(op.a, r.mask_bits, r.lanes)
        case ops.Broadcast():
            return o.mask(op.a, r.mask_bits, r.lanes) if r.type == BOOL else o.wide(op.a, r.lanes)
        case ops.Copy(held=True):
            return f"{o.function('opaque', r.type, r.lanes)}({op.a.name})"
        case ops.Copy():
            return op.a.name
        case ops.DotPairs(a=a, b=b):
            pairs = b.name if b.lanes > 1 else f"({o.of(INT16, 2 * r.lanes)})({o.wide(b, r.lanes)})"
            return f"{o.function('madd', r.type, r.lanes)}({a.name}, {pairs})"
        case ops.SumNeighbours(a=a, b=b):
            if b.literal == 0:
                return f"{o.function(f'sums_{a.type.bits}', r.type, r.lanes)}({a.name})"
            return f"{o.function(f'sads_{a.type.bits}', r.type, r.lanes)}({a.name}, {o.wide(b, a.lanes)})"
        case ops.Narrow() | ops.Shuffle():
            return permutation(o, r, op)
        case ops.WidenPart():
            return _widened(o, r, op)
        case ops.WidenLanes():
            return _widened_lanes(o, r, op)
        case ops.FromIndex() | ops.ToIndex() | ops.Lanes():
            return index(o, r, op)
        case _:
            return address(o, r, op)


# choices ------------------------------------------------------------


def _compare(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    if r.lanes == 1:
        return f"{o.name(a)} {op} {o.name(b)}"
    if r.name in o.bits:
        return f"{o.function(masks.COMPARISONS[op], a.type, r.lanes)}({o.wide(a, r.lanes)}, {o.wide(b, r.lanes)})"
    if a.type == BOOL:
        return f"{o.mask(a, r.mask_bits, r.lanes)} {op} {o.mask(b, r.mask_bits, r.lanes)}"
    return f"{o.wide(a, r.lanes)} {op} {o.wide(b, r.lanes)}"


def _logical(o: Operands, r: Value, sign: str, a: Value, b: Value) -> str:
    """Bool results of operators on bools."""
    mask = o.bit_mask if r.name in o.bits else o.mask
    x, y = (o.name(v) if r.lanes == 1 else mask(v, r.mask_bits, r.lanes) for v in (a, b))
    return f"{x} {sign} {y}"


def _select(o: Operands, r: Value, c: Value, a: Value, b: Value) -> str:
    if r.lanes == 1:
        return f"{o.name(c)} ? {o.name(a)} : {o.name(b)}"
    if r.type == BOOL:
        m, x, y = (o.mask(v, r.mask_bits, r.lanes) for v in (c, a, b))
        return f"({x} & {m}) | ({y} & ~{m})"
    x, y = o.wide(a, r.lanes), o.wide(b, r.lanes)
    if c.lanes == 1:
        return f"{o.name(c)} ? {x} : {y}"
    if c.name in o.bits:
        mask = o.bit_mask(c, r.type.bits, r.lanes)
        if _is_zero(a) or _is_zero(b):
            mask, x = (mask, x) if _is_zero(b) else (f"~{mask}", y)
            return f"{o.function(masks.CHOSEN_OR_ZERO, r.type, r.lanes)}({mask}, {x})"
        return f"{o.function(masks.CHOSEN, r.type, r.lanes)}({mask}, {x}, {y})"
    mask = o.mask(c, r.type.bits, r.lanes)
    if _is_zero(b):
        return o.chosen_or_zero(r.type, r.lanes, mask, x)
    if _is_zero(a):
        return o.chosen_or_zero(r.type, r.lanes, f"~{mask}", y)
    return o.chosen(r.type, r.lanes, mask, x, y)


def _is_zero(v: Value) -> bool:
    """True of the number that has no bit set: -0.0 has one."""
    return v.literal is not None and v.literal == 0 and copysign(1.0, v.literal) > 0


def _widened(o: Operands, r: Value, op: ops.WidenPart) -> str:
    """The bits of a group, shifted so that those of one of its elements are all that is left of them."""
    bits, first = op.a.type.bits, op.part * op.a.type.bits
    above = r.type.bits - first - bits
    unsigned, own = o.of(ScalarType("uint", r.type.bits), r.lanes), o.of(r.type, r.lanes)
    group = f"({unsigned}){op.a.name}"
    if op.a.type.kind == "int":
        signed = o.of(ScalarType("int", r.type.bits), r.lanes)
        highest = f"({group} << {above})" if above else group
        return f"({own})(({signed}){highest} >> {r.type.bits - bits})"
    shifted = f"({group} >> {first})" if first else group
    return f"({own})({shifted} & {(1 << bits) - 1})" if above else f"({own}){shifted}"


def _widened_lanes(o: Operands, r: Value, op: ops.WidenLanes) -> str:
    """The bytes of the lanes at the lower ends of elements, with zeros above; or at the upper ends, shifted down."""
    size, zeros = op.a.type.bytes, (None,) * (r.type.bytes - op.a.type.bytes)
    signed = op.a.type.kind == "int"
    picks = list[int | None]()
    for lane in op.picks:
        own = range(size * lane, size * (lane + 1))
        picks += (*zeros, *own) if signed else (*own, *zeros)
    found = o.bytes_by_parts(op.a.name, tuple(picks))
    if signed:
        found = f"(({o.of(ScalarType('int', r.type.bits), r.lanes)}){found} >> {r.type.bits - op.a.type.bits})"
    return f"({o.type_of(r)}){found}"


# arithmetic ------------------------------------------------------------


def _binary(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    if op in ("<<", ">>"):
        return _shift(o, r, op, a, b)
    if op in ("//", "%", "**"):
        return _divide(o, r, op, a, b)
    return _arithmetic(o, r, op, a, b)


def _arithmetic(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    if r.type.is_float or op in ("&", "|", "^"):
        left = o.wide(a, r.lanes) if r.lanes > 1 and a.lanes == 1 and b.lanes == 1 else o.name(a)
        return f"{left} {op} {o.name(b)}"
    return _wrapping(o, r, op, a, b)


def _wrapping(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    """+ - * of integers: through unsigned types, where wrapping is defined."""
    t = r.type
    if r.lanes == 1:
        if t.kind == "uint" and (t.bits >= 32 or op != "*"):
            return f"({scalar(t)})({o.name(a)} {op} {o.name(b)})"
        u = f"uint{max(t.bits, 32)}_t"
        return f"({scalar(t)})(({u}){o.name(a)} {op} ({u}){o.name(b)})"
    if op == "*" and (kind := _halves(o, r, a, b)) is not None:
        return f"{o.function(f'{LONG_PRODUCT}_{kind}', t, r.lanes)}({o.wide(a, r.lanes)}, {o.wide(b, r.lanes)})"
    if t.kind == "uint":
        return f"{o.name(a)} {op} {o.name(b)}"
    u = o.vector("uint", t.bits, r.lanes)
    splat = a.lanes > 1 or b.lanes > 1
    x, y = (
        o.name(v) if splat and v.literal is not None and v.literal >= 0 else f"({u}){o.wide(v, r.lanes)}"
        for v in (a, b)
    )
    return f"({o.of(t, r.lanes)})({x} {op} {y})"


def _halves(o: Operands, r: Value, a: Value, b: Value) -> str | None:
    """The kind of integers of 32 bits that both factors of a product of 64 fit; None where there is none."""
    if r.type.bits != 64:
        return None
    for t in (INT32, UINT32):
        if all(
            t.min <= v.literal <= t.max if v.literal is not None else _fits(o.widened.get(v.name), t) for v in (a, b)
        ):
            return t.kind
    return None


def _fits(of: ScalarType | None, t: ScalarType) -> bool:
    return of is not None and t.min <= of.min and of.max <= t.max


def _unary(o: Operands, r: Value, op: str, a: Value) -> str:
    t = r.type
    if op == "not":
        mask = o.bit_mask if r.name in o.bits else o.mask
        return f"!{o.name(a)}" if r.lanes == 1 else f"~{mask(a, r.mask_bits, r.lanes)}"
    if op == "~":
        return f"({scalar(t)})~{o.name(a)}" if r.lanes == 1 else f"~{o.name(a)}"
    if t.is_float:
        return f"-{o.name(a)}"
    if r.lanes == 1:
        return f"({scalar(t)})(0 - (uint{max(t.bits, 32)}_t){o.name(a)})"
    u = o.vector("uint", t.bits, r.lanes)
    return f"({o.of(t, r.lanes)})(({u}){{0}} - ({u}){o.name(a)})"


def _shift(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    t = r.type
    if r.lanes > 1:
        if b.literal is not None and 0 <= b.literal < t.bits and a.lanes > 1:
            return _shift_by_constant(o, r, op, a, int(b.literal))
        if b.lanes == 1:
            return _shift_by_scalar(o, r, op, a, b)
        if b.type.kind == "uint" and b.type.bits == t.bits:
            return f"{o.function(SHIFTS[op], t, r.lanes)}({o.wide(a, r.lanes)}, {b.name})"
        return o.lanewise(r, lambda n: _shift_of_scalars(op, t, b.type, o.lane(a, n), o.lane(b, n)))
    return _shift_of_scalars(op, t, b.type, o.name(a), o.name(b))


def _shift_by_constant(o: Operands, r: Value, op: str, a: Value, k: int) -> str:
    t = r.type
    if op == "<<" and t.kind == "int":
        return f"({o.of(t, r.lanes)})(({o.vector('uint', t.bits, r.lanes)}){a.name} << {k})"
    return f"{a.name} {op} {k}"


def _shift_by_scalar(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    """One count for all lanes: they are shifted its way, or all are 0, or their signs."""
    t, count = r.type, _count(b.type, o.name(b))
    own, u = o.of(t, r.lanes), o.vector("uint", t.bits, r.lanes)
    left = f"({own})(({u}){a.name} << (uint{t.bits}_t)({{}} & {t.bits - 1}))"
    right = f"{a.name} >> ({scalar(t)})({{}} & {t.bits - 1})"
    sign = f"{a.name} >> {t.bits - 1}" if t.kind == "int" else f"({own}){{0}}"
    one, other = (left, right) if op == "<<" else (right, left)
    beyond, far = (f"({own}){{0}}", sign) if op == "<<" else (sign, f"({own}){{0}}")
    forth = f"{count} < {t.bits} ? {one.format(count)} : {beyond}"
    if b.type.kind == "uint":
        return f"({forth})"
    return f"({count} >= 0 ? ({forth}) : {count} > -{t.bits} ? {other.format(f'-{count}')} : {far})"


def _count(t: ScalarType, name: str) -> str:
    """A count as an int64; those that it cannot hold, or not negate, are too large anyway."""
    if t.bits == 64:
        return f"({name} > 64 ? 64 : (int64_t){name})" if t.kind == "uint" else f"ts_max({name}, -64)"
    return f"(int64_t){name}"


def _shift_of_scalars(op: str, t: ScalarType, right: ScalarType, a: str, b: str) -> str:
    return f"ts_shift_{short(t)}({a}, {'' if op == '<<' else '-'}{_count(right, b)})"


def _divide(o: Operands, r: Value, op: str, a: Value, b: Value) -> str:
    t = r.type
    if r.lanes == 1:
        return _divide_scalar(op, t, o.name(a), o.name(b))
    if t.is_float:
        if op == "**":
            return o.power(t, r.lanes, a, b)
        x, y = o.wide(a, r.lanes), o.wide(b, r.lanes)
        quotient = f"{o.function('floor', t, r.lanes)}({x} / {y})"
        return quotient if op == "//" else f"{x} - {quotient} * {y}"
    if b.literal is not None and b.literal > 0 and a.lanes > 1:
        return _divide_by_constant(o, r, op, a.name, int(b.literal))
    name = integer_division.QUOTIENT if op == "//" else integer_division.REMAINDER
    if integer_division.has(name, t, r.lanes):
        return f"{o.function(name, t, r.lanes)}({o.wide(a, r.lanes)}, {o.wide(b, r.lanes)})"
    return o.lanewise(r, lambda n: _divide_scalar(op, t, o.lane(a, n), o.lane(b, n)))


def _divide_scalar(op: str, t: ScalarType, a: str, b: str) -> str:
    if t.is_float:
        f = "" if t.bits == 64 else "f"
        if op == "**":
            return f"pow{f}({a}, {b})"
        quotient = f"floor{f}({a} / {b})"
        return quotient if op == "//" else f"{a} - {quotient} * {b}"
    return f"ts_{'div' if op == '//' else 'mod'}_{short(t)}({a}, {b})"


def _divide_by_constant(o: Operands, r: Value, op: str, x: str, k: int) -> str:
    """Division and remainder of a vector by a positive constant."""
    t = r.type
    if k & (k - 1) == 0:
        return f"{x} >> {k.bit_length() - 1}" if op == "//" else f"{x} & {k - 1}"
    name = integer_division.BY_CONSTANT
    if integer_division.has(name, t, r.lanes):
        quotient = f"{o.function(name, t, r.lanes)}({x}, {integer_division.inverse(t, k)})"
        if op == "//":
            return quotient
        u = o.vector("uint", t.bits, r.lanes)
        by = f"({k} - ({u}){{0}})"
        if t.bits > 8:
            return f"({o.of(t, r.lanes)})(({u}){x} - ({u}){quotient} * {by})"
        product = f"{o.function(integer_division.PRODUCT, t, r.lanes)}({quotient}, ({o.of(t, r.lanes)}){by})"
        return f"({o.of(t, r.lanes)})(({u}){x} - ({u}){product})"
    if t.kind == "uint":
        return f"{x} {'/' if op == '//' else '%'} {k}"
    zero = f"({o.of(t, r.lanes)}){{0}}"
    if op == "//":  # the mask is -1 where the remainder is negative
        return f"{x} / {k} + ({x} % {k} < {zero})"
    return f"{x} % {k} + ({k} & ({x} % {k} < {zero}))"
