"""Operations of one node of an expression: as it is written, and as the code executes it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from tilesmith.cost_models.operations import Operations
from tilesmith.scheduler.features.operations.elementary_functions import executed
from tilesmith.scheduler.ir.pipeline.constant_folding import is_power_of_two
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Compare, Const, Expr, Logical, Select, Unary
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, THIRD, ScalarType

CALLS = {
    "min": "select", "max": "select", "clamp": "select2", "mux": "select", "abs": "select", "absd": "select2",
    "lerp": "lerp", "sat_add": "add2", "sat_sub": "add2", "halving_add": "add2", "rounding_halving_add": "add3",
    "rounding_shift_right": "add2", "mul_shift_right": "multiply", "popcount": "bits", "count_leading_zeros": "bits2",
    "count_trailing_zeros": "bits", "as_float32": "free", "as_float64": "free", "as_int32": "free", "as_int64": "free",
    "as_uint32": "free", "as_uint64": "free",
}  # fmt: skip
COSTS = {
    "add2": Operations(add=2),
    "add3": Operations(add=3),
    "lerp": Operations(add=2, multiply=1),
    "multiply": Operations(multiply=1, add=1),
    "select": Operations(select=1),
    "select2": Operations(select=2),
    "function": Operations(function=1),
    # sums of fields of bits, and what sets all bits after the first (`ir.pipeline.bit_counts`)
    "bits": Operations(add=12, multiply=1),
    "bits2": Operations(add=22, multiply=1),
    "free": Operations(),
}
KINDS = tuple(f.name for f in fields(Operations))
BINARY = {"+": "add", "-": "add", "&": "add", "|": "add", "^": "add", "<<": "add", ">>": "add", "*": "multiply"}

Tally = dict[tuple[str, str], float]
"""Numbers of operations by element type (`i8`, ..., `f64`) and a kind."""


def element_type(t: ScalarType) -> str:
    """The name of a type among those that throughputs are known of."""
    if t.kind == "bool":
        return "i8"
    return f"f{max(32, t.bits)}" if t.is_float else f"i{t.bits}"


def add_written(e: Expr, n: float, counts: Tally) -> None:
    """Adds the operations of a node as it is written, `n` times; those of its children are their own."""
    of = e.type
    match e:
        case Binary() if e.op in BINARY:
            kind = BINARY[e.op]
        case Binary(op="**", right=Const(value=k)) if _is_small_power(e.type, k):
            kind, n = "multiply", n * max(0, int(k) - 1)
        case Binary(op="**"):
            kind = "function"
        case Binary():
            kind = "divide_by_constant" if isinstance(e.right, Const) else "divide"
        case Unary():
            kind = "add"
        case Compare():
            kind, of = "select", e.left.type
        case Logical() | Select():
            kind = "select"
        case Cast():
            of = max(e.type, e.operand.type, key=lambda t: t.bits)
            kind = "select" if e.type.kind == "bool" else "narrow" if e.type.bits < of.bits else "convert"
        case Call():
            cost = COSTS.get(CALLS.get(e.function, "function"), COSTS["function"])
            for name in ("add", "multiply", "select", "function"):
                amount = getattr(cost, name)
                if amount:
                    tally(of, name, n * amount, counts)
            return
        case _:
            return
    tally(of, kind, n, counts)


def add_executed(e: Expr, n: float, counts: Tally) -> None:
    """Adds the operations of a node as the code does them: an integer quotient by a power of two is a shift, and its
    remainder a mask; functions are what they are made of. What a `mux` picks from loops know. The bits of an integer
    are those of one of the same size, with a sign or without. Of those without, SSE and AVX2 have no instruction that
    tells which is greater: a minimum or maximum is compared with one of the two. That of AVX-512 takes as long, that of
    NEON half of it."""
    match e:
        case Binary() if e.op in BINARY:  # as most of them
            tally(e.type, BINARY[e.op], n, counts)
        case Cast() if e.type.is_integer and _has_instructions(e.operand.type, e.type):
            add_conversion(e.operand.type, e.type, n, counts, e.saturate)
        case Binary(op="/" | "//" | "%", right=Const(value=k)) if e.type.is_integer and is_power_of_two(int(k)):
            tally(e.type, "add", n, counts)
        case Binary(op="**") if not is_few_products(e):
            _add_function(function_of(e), 2, e.type, n, counts)
        case Compare(op="<" | "<=" | ">" | ">=") if e.left.type.kind == "uint":
            tally(e.left.type, "select", 2 * n, counts)
        case Call(function="mux"):
            pass
        case Call() if e.function not in CALLS:
            _add_function(function_of(e), len(e.args), e.type, n, counts)
        case _:
            add_written(e, n, counts)


def _has_instructions(source: ScalarType, integer: ScalarType) -> bool:
    return source.is_integer or (source.is_float and integer.bits < 64)


def add_conversion(source: ScalarType, target: ScalarType, n: float, counts: Tally, saturate: bool = False) -> None:
    """Adds conversions to an integer: one to a wider one, and to a shorter one as many as halve it step by step. Of
    floats that become integers as long, those that are too large, too small or no number are chosen apart."""
    if source.is_float and source.bits == target.bits:
        tally(source, "convert", n, counts)
        tally(source, "select", 3 * n, counts)
    elif source.bits < target.bits or (saturate and source.bits == target.bits):
        tally(target, "convert", n, counts)
    bits = source.bits
    while bits > target.bits:
        tally(source if bits == source.bits else ScalarType("int", bits), "narrow", n, counts)
        bits //= 2


def _add_function(function: str, args: int, of: ScalarType, n: float, counts: Tally) -> None:
    for name, made_of in executed(function, of, args).items():
        for kind in KINDS:
            if amount := getattr(made_of, kind):
                counts[name, kind] = counts.get((name, kind), 0) + n * amount


def function_of(e: Expr) -> str:
    """The function that an expression is computed by as others are: powers are, and some as cube roots."""
    match e:
        case Binary(op="**", right=Const(value=exponent)) | Call(function="pow", args=(_, Const(value=exponent))):
            return "cube root" if e.type == FLOAT32 and np.float32(exponent) == THIRD else "pow"
        case Call():
            return e.function
    return "pow"


def is_few_products(e: Expr) -> bool:
    """True if a power is made of products."""
    return isinstance(e, Binary) and isinstance(e.right, Const) and _is_small_power(e.type, e.right.value)


def _is_small_power(of: ScalarType, k: float) -> bool:
    return of.is_integer or (float(k).is_integer() and 0 < k < 9)


def tally(of: ScalarType, kind: str, n: float, counts: Tally) -> None:
    """Adds `n` operations of a kind on elements of a type."""
    key = element_type(of), kind
    counts[key] = counts.get(key, 0) + n
