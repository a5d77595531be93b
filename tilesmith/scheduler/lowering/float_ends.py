"""Lowering of bounds that floats say: the ends of an interval as values, of which a box is made.

They are computed once for each box, and as they are written in every mode: a product that is fused with a sum, or a
division that becomes a product, would be rounded to another place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilesmith.scheduler.analysis.bounds_inference import param_symbol
from tilesmith.scheduler.ir.index import Atom
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, literal
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Compare, Const, Expr, Select, Unary, Var
from tilesmith.scheduler.ir.pipeline.float_bounds import Rounding
from tilesmith.scheduler.ir.pipeline.types import INT32


def opaque(b: Builder, value: Value) -> Value:
    """A float, of which no compiler knows what it was made of; as it is where floats are strict anyway."""
    if b.strict or not value.type.is_float:
        return value
    return b.define(ops.Call("opaque", (value,)), value.type, value.lanes)


def rounded_once(b: Builder, value: Value) -> Value:
    """A float as it was rounded for a place, where that is at hand: what is made of it is not computed twice, fused and
    as it is written, functions of it among that."""
    if b.strict or not value.type.is_float or value.literal is not None:
        return value
    return b.defined(ops.Call("opaque", (value,)), value.type, value.lanes) or value


def calls(params: Mapping[str, str]) -> Callable[[Builder, Atom], Value]:
    """The evaluator of functions in an index; `params` are the names of params in the program."""
    names = {param_symbol(p): name for p, name in params.items()}

    def call(b: Builder, atom: Atom) -> Value:
        assert isinstance(atom.function, Rounding)

        def value(e: Expr) -> Value:
            match e:
                case Const():
                    return literal(e.value, e.type)
                case Var():
                    arg = atom.args[int(e.name[1:])]
                    if e.type.is_float:
                        return Value(e.type, 1, names[arg.terms[0][0].key])
                    at = b.plain(arg)
                    return literal(at.const, INT32) if at.is_const else b.define(ops.FromIndex(at), INT32)
                case Binary(op="/"):
                    return made(ops.Binary("/", value(e.left), opaque(b, value(e.right))), e)
                case Binary():
                    return made(ops.Binary(e.op, value(e.left), value(e.right)), e)
                case Unary():
                    return made(ops.Unary(e.op, value(e.operand)), e)
                case Compare():
                    return made(ops.Compare(e.op, value(e.left), value(e.right)), e)
                case Select():
                    return made(ops.Select(value(e.condition), value(e.if_true), value(e.if_false)), e)
                case Cast():
                    return made(ops.Cast(value(e.operand)), e)
                case Call(function="clamp", args=(v, lo, hi)):
                    least = b.define(ops.Call("min", (value(v), value(hi))), e.type)
                    return b.define(ops.Call("max", (least, value(lo))), e.type)
                case Call():
                    return b.define(ops.Call(e.function, tuple(map(value, e.args))), e.type)
            raise AssertionError(e)

        def made(op: ops.Operation, e: Expr) -> Value:
            result = b.define(op, e.type)
            return opaque(b, result) if isinstance(e, Binary) else result

        return value(atom.function.expr)

    return call
