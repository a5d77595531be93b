"""Expression -> text of the language, with the fewest brackets. Reading the text back gives the same expression.

A literal is written bare where its neighbours give it its type, and as a conversion, `uint8(3)`, where they do not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tilesmith.scheduler.ir.pipeline.expressions import (  # fmt: skip
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    RVar,
    Select,
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, ScalarType

_OR, _AND, _NOT, COMPARE, UNARY, _POWER, ATOM = 1, 2, 3, 4, 11, 12, 13
BINARY = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "**": _POWER}

_Text = tuple[str, int]  # and how tightly it binds


def to_text(e: Expr, type: ScalarType | None = None, tuples: Collection[str] = ()) -> str:
    """`e` in the language. `type` is the one that its place gives to a lone literal, if it does.

    `tuples` are the names of the tuple-valued stages, whose reads are written with `[k]`; reads of a
    component other than the first always are. One component of an argmin is printed as such, with `[k]`.
    """
    texts: dict[int, _Text] = {}
    for node in reversed(list(walk(e))):
        if id(node) not in texts:
            text = _node(node, texts)
            if isinstance(node, Access) and (node.component or node.name in tuples):
                text = f"{text[0]}[{node.component}]", ATOM
            texts[id(node)] = text
    if isinstance(e, Const) and e.type == type:
        return _bare(e)[0]
    return texts[id(e)][0]


def values_to_text(
    values: Sequence[Expr], types: Sequence[ScalarType] = (), tuples: Collection[str] = ()
) -> str | list[str]:
    """The values of a stage as the document has them: one text, one argmin, or a list."""
    first = values[0]
    if len(values) > 1 and is_whole_argmin(values):
        return to_text(first, tuples=tuples).removesuffix("[0]")
    texts = [to_text(v, types[k] if types else None, tuples) for k, v in enumerate(values)]
    return texts[0] if len(texts) == 1 else texts


def is_whole_argmin(values: Sequence[Expr]) -> bool:
    """True if `values` are all the components of one argmin or argmax, in order."""
    first = values[0]
    if not isinstance(first, Reduce) or len(values) != len(first.domain) + 1 or first.op not in ("argmin", "argmax"):
        return False
    if all(isinstance(v, Reduce) and v.body is first.body and v.domain is first.domain for v in values):
        same = True
    else:  # compared as text: comparing deep trees by value would recurse
        same = len({to_text(v).rpartition("[")[0] for v in values}) == 1
    return same and [v.component if isinstance(v, Reduce) else None for v in values] == list(range(len(values)))


def _bare(e: Const) -> _Text:
    if e.type == BOOL:
        return ("True" if e.value else "False"), ATOM
    if e.type.is_float:
        # The shortest decimal that reads back as the same value of the type.
        text = repr(float(str(np.float32(e.value))) if e.type.bits == 32 else float(e.value))
    else:
        text = str(e.value)
    return text, UNARY if text.startswith("-") else ATOM


def _typed(e: Const) -> _Text:
    return (_bare(e)[0], ATOM) if e.type == BOOL else (f"{e.type}({_bare(e)[0]})", ATOM)


def _alone(e: Const) -> _Text:
    """A literal without neighbours."""
    return _bare(e) if e.type in (INT32, FLOAT32, BOOL) else _typed(e)


def _node(e: Expr, texts: dict[int, _Text]) -> _Text:
    match e:
        case Const():
            return _alone(e)
        case Var() | ParamRef():
            return e.name, ATOM
        case InputBound():
            return f"{e.input}.{e.which}.{e.dim}", ATOM
        case Access():
            return _access(e, texts)
        case Binary():
            return _binary(e, texts)
        case Unary():
            operand = _typed(e.operand) if e.op == "-" and isinstance(e.operand, Const) else texts[id(e.operand)]
            if e.op == "not":
                return f"not {_at_least(operand, _NOT)}", _NOT
            return f"{e.op}{_at_least(operand, UNARY)}", UNARY
        case Compare():
            left, right = _group((e.left, e.right), texts)
            return f"{_at_least(left, COMPARE + 1)} {e.op} {_at_least(right, COMPARE + 1)}", COMPARE
        case Logical():
            level = _AND if e.op == "and" else _OR
            left, right = texts[id(e.left)], texts[id(e.right)]
            return f"{_at_least(left, level)} {e.op} {_at_least(right, level + 1)}", level
        case Select():
            sides = _group((e.if_true, e.if_false), texts)
            return f"select({texts[id(e.condition)][0]}, {sides[0][0]}, {sides[1][0]})", ATOM
        case Cast():
            return f"{'sat_' if e.saturate else ''}{e.type}({texts[id(e.operand)][0]})", ATOM
        case Call():
            return f"{e.function}({', '.join(t for t, _ in _arguments(e, texts))})", ATOM
        case Reduce():
            return _reduce(e, texts), ATOM


def _at_least(text: _Text, level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


def _group(parts: Sequence[Expr], texts: dict[int, _Text]) -> list[_Text]:
    """Operands of one type: literals are bare where another operand, or the default, gives them the type."""
    settled = any(not isinstance(p, Const) for p in parts) or parts[0].type in (INT32, FLOAT32, BOOL)
    return [(_bare(p) if settled else _typed(p)) if isinstance(p, Const) else texts[id(p)] for p in parts]


def _pair(left: Expr, right: Expr, texts: dict[int, _Text]) -> list[_Text]:
    """Operands that may have different types: a literal takes the type of the other one."""
    if left.type == right.type:
        return _group((left, right), texts)
    return [_typed(p) if isinstance(p, Const) else texts[id(p)] for p in (left, right)]


def _binary(e: Binary, texts: dict[int, _Text]) -> _Text:
    level = BINARY[e.op]
    if e.op in ("<<", ">>"):
        left, right = _pair(e.left, e.right, texts)
    elif e.op == "**" and e.right.type.is_integer:
        left, right = texts[id(e.left)], texts[id(e.right)]
    else:
        left, right = _group((e.left, e.right), texts)
    if e.op == "**":
        return f"{_at_least(left, ATOM)} ** {_at_least(right, UNARY)}", level
    return f"{_at_least(left, level)} {e.op} {_at_least(right, level + 1)}", level


def _arguments(e: Call, texts: dict[int, _Text]) -> list[_Text]:
    match e.function:
        case "random":
            return [texts[id(a)] for a in e.args]
        case "min" | "max":
            return _group(_flat(e), texts)
        case "mux":
            return [texts[id(e.args[0])], *_group(e.args[1:], texts)]
        case "rounding_shift_right":
            return _pair(e.args[0], e.args[1], texts)
        case "mul_shift_right" | "lerp":
            last = e.args[2]
            given = last.type == e.type or (e.function == "lerp" and last.type == FLOAT32)
            literal = _bare if given else _typed
            return [*_group(e.args[:2], texts), literal(last) if isinstance(last, Const) else texts[id(last)]]
        case _:
            return _group(e.args, texts)


def _flat(e: Call) -> list[Expr]:
    """The arguments of a `min` or `max` of many, which is a nest of pairs to the left."""
    parts: list[Expr] = []
    first: Expr = e
    while isinstance(first, Call) and first.function == e.function and len(first.args) == 2:
        parts.append(first.args[1])
        first = first.args[0]
    return [first, *reversed(parts)]


def _access(e: Access, texts: dict[int, _Text]) -> _Text:
    return f"{e.name}({', '.join(texts[id(_index(i))][0] for i in e.indices)})", ATOM


def _index(e: Expr) -> Expr:
    """An index less its conversion to int32, which goes without saying."""
    plain = isinstance(e, Cast) and e.type == INT32 and not e.saturate and e.operand.type.is_integer
    return e.operand if plain and isinstance(e, Cast) and not isinstance(e.operand, Const) else e


def _reduce(e: Reduce, texts: dict[int, _Text]) -> str:
    loops = "".join(f" for {r.name} in {_range(r, texts)}" for r in e.domain)
    # A bare `a if c else b` cannot come from here: choices are printed as select().
    where = "" if e.where is None else f" if {texts[id(e.where)][0]}"
    component = f"[{e.component}]" if e.op in ("argmin", "argmax") else ""
    return f"{e.op}({texts[id(e.body)][0]}{loops}{where}){component}"


def _range(r: RVar, texts: dict[int, _Text]) -> str:
    if isinstance(r.lo, Const) and isinstance(r.extent, Const):
        return f"range({r.lo.value}, {int(r.lo.value) + int(r.extent.value)})"
    lo, extent = texts[id(r.lo)][0], texts[id(r.extent)]
    if isinstance(r.lo, Const) and r.lo.value == 0:
        return f"range(0, {extent[0]})"
    if isinstance(r.extent, Binary) and r.extent.op == "-" and texts[id(r.extent.right)][0] == lo:
        return f"range({lo}, {texts[id(r.extent.left)][0]})"
    return f"range({lo}, {lo} + {_at_least(extent, BINARY['+'] + 1)})"
