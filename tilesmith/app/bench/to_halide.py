"""A checked pipeline as Halide functions: the same stages, the same arithmetic, in a compiler that we did not write.

`to_halide` makes one `hl.Func` per stage and one `hl.ImageParam` per input. Nothing is scheduled:
the judge computes every stage at root, the benchmarks hand the pipeline to an autoscheduler.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce as fold

import halide as hl

from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.ir.pipeline.expressions import (
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
    children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.semantics import RANDOM_SEED
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType

UNROLL_TERMS = 32
"""Constant reductions of at most this many terms are written out, as the authors of Halide's apps write them."""


class Untranslatable(Exception):
    """The pipeline uses something that has no counterpart in Halide; the message says what."""


@dataclass(frozen=True)
class HalidePipeline:
    """A pipeline in Halide. `outputs` in the order of the document; `stages` are the unextended functions."""

    pipeline: hl.Pipeline
    inputs: dict[str, hl.ImageParam]
    params: dict[str, hl.Param]
    stages: dict[str, hl.Func]
    outputs: tuple[hl.Func, ...]

    @property
    def arguments(self) -> list[hl.Argument]:
        """The arguments of the compiled function before its outputs: inputs, then params."""
        return [hl.Argument(i) for i in self.inputs.values()] + [hl.Argument(p) for p in self.params.values()]

    def compute_all_at_root(self) -> None:
        """The plainest schedule there is: every stage in full before its readers, rows vectorised by nobody."""
        for stage in self.stages.values():
            stage.compute_root()


def halide_type(t: ScalarType) -> hl.Type:
    """The Halide type of the same name."""
    match t.kind:
        case "bool":
            return hl.Bool()
        case "int":
            return hl.Int(t.bits)
        case "uint":
            return hl.UInt(t.bits)
        case "float":
            return hl.Float(t.bits)


def to_halide(pipeline: Pipeline, unroll_terms: int = UNROLL_TERMS, defined: bool = False) -> HalidePipeline:
    """`pipeline` in Halide. Raises Untranslatable, or hl.HalideError where Halide itself refuses.

    Some things that our language defines are undefined in Halide: overflow of signed 32 and 64 bit integers, shifts
    by the width or more, conversions of floats that do not fit. With `defined` they are spelt out, for a judge;
    without, they are written as an author of Halide code would write them. What remains different: floats
    may be contracted and reassociated, and the width in which Halide interpolates.
    """
    return _Translation(pipeline, unroll_terms, defined).run()


def constant(value: int | float | bool, t: ScalarType) -> hl.Expr:
    """A literal of exactly type `t`."""
    if t.kind == "bool":
        return hl.cast(hl.Bool(), hl.Expr(bool(value)))
    makers: dict[str, Callable[[int | float], hl.Expr]] = {
        "int8": hl.i8, "int16": hl.i16, "int32": hl.i32, "int64": hl.i64,
        "uint8": hl.u8, "uint16": hl.u16, "uint32": hl.u32, "uint64": hl.u64,
        "float32": hl.f32, "float64": hl.f64,
    }  # fmt: skip
    return makers[t.name](float(value) if t.is_float else int(value))


Environment = Mapping[str, hl.Expr]


@dataclass
class _Translation:
    """The state of one translation: what each name of the document is in Halide."""

    pipeline: Pipeline
    unroll_terms: int
    defined: bool
    inputs: dict[str, hl.ImageParam] = field(default_factory=dict)
    params: dict[str, hl.Param] = field(default_factory=dict)
    stages: dict[str, hl.Func] = field(default_factory=dict)
    readable: dict[str, hl.Func | hl.ImageParam] = field(default_factory=dict)  # with the boundary applied
    fresh: Iterator[int] = field(default_factory=itertools.count)

    def run(self) -> HalidePipeline:
        for i in self.pipeline.inputs:
            image = hl.ImageParam(halide_type(i.type), len(i.dims), i.name)
            if i.storage and i.storage != i.dims:
                image.dim(0).set_stride(hl.Expr())
                image.dim(i.dims.index(i.storage[0])).set_stride(1)
            self.inputs[i.name] = image
        for p in self.pipeline.params:
            self.params[p.name] = hl.Param(halide_type(p.type), p.name)
        for i in self.pipeline.inputs:
            self.readable[i.name] = self.extended(self.inputs[i.name], i.boundary)
        for s in self.pipeline.stages:
            self.stage(s)
        outputs = tuple(self.output(self.pipeline.stage(name)) for name in self.pipeline.outputs)
        return HalidePipeline(hl.Pipeline(list(outputs)), self.inputs, self.params, self.stages, outputs)

    def stage(self, s: Stage) -> None:
        func = hl.Func(s.name)
        variables = {d: hl.Var(d) for d in s.dims}
        env = {d: hl.Expr(v) for d, v in variables.items()}
        _define(func, tuple(variables.values()), [self.expr(v, env) for v in s.values])
        self.stages[s.name] = self.readable[s.name] = func
        for u in s.updates:
            self.update(s, func, u, variables)
        if s.storage and s.storage != s.dims:
            func.reorder_storage([variables[d] for d in s.storage])
        self.readable[s.name] = self.extended(func, s.boundary)

    def update(self, s: Stage, func: hl.Func, u: Update, variables: Mapping[str, hl.Var]) -> None:
        env: dict[str, hl.Expr] = {d: hl.Expr(v) for d, v in variables.items()}
        domain = None
        if u.domain:
            domain = self.domain(u.domain, env)
            env |= {r.name: hl.Expr(domain[i]) for i, r in enumerate(u.domain)}
        # A pure dim must be the Var itself, not an expression of it, or Halide takes it for another index.
        at = [
            variables[a.name] if isinstance(a, Var) and a.name in variables else self.index(a, env)
            for a in u.at
        ]  # fmt: skip
        values = [self.expr(v, env) for v in u.values]
        mine = {r.name for r in u.domain}
        if domain is not None and not any(_variables(e) & mine for e in (*u.at, *u.values)):
            values = [_repeated(v, domain) for v in values]
        if u.where is not None and domain is not None:
            domain.where(self.expr(u.where, env))
        elif u.where is not None:
            condition = self.expr(u.where, env)
            old = func[tuple(at)]
            components = [old] if len(values) == 1 else [old[k] for k in range(len(values))]
            values = [hl.select(condition, new, _as_expr(o)) for new, o in zip(values, components, strict=True)]
        _define(func, tuple(at), values)

    def output(self, s: Stage) -> hl.Func:
        """The stage, or a copy of it where other stages or its updates may use more of it than is asked for."""
        func = self.stages[s.name]
        if s.updates or self.is_read(s):
            copy = hl.Func(f"{s.name}_output")
            variables = tuple(hl.Var(d) for d in s.dims)
            value = func[variables]
            _define(copy, variables, [_as_expr(value[k] if len(s.values) > 1 else value) for k in range(len(s.values))])
            func = copy
        if s.storage and s.storage != s.dims:
            for buffer in func.output_buffers():
                buffer.dim(0).set_stride(hl.Expr())
                buffer.dim(s.dims.index(s.storage[0])).set_stride(1)
        return func

    def is_read(self, s: Stage) -> bool:
        """True if a stage other than itself reads it."""
        return any(
            isinstance(node, Access) and node.name == s.name
            for other in self.pipeline.stages
            if other.name != s.name
            for e in expressions(other)
            for node in walk(e)
        )

    def extended(self, source: hl.Func | hl.ImageParam, boundary: Boundary | None) -> hl.Func | hl.ImageParam:
        """`source` as its readers see it."""
        if boundary is None:
            return source
        arguments: list[object] = [source]
        if boundary.kind == "constant":
            if boundary.value is None:
                raise Untranslatable("a constant boundary without a value")
            arguments.append(self.expr(boundary.value, {}))
        if boundary.domain is not None:
            arguments.append([hl.Range(self.index(lo, {}), self.index(n, {})) for lo, n in boundary.domain])
        make = {
            "repeat_edge": hl.BoundaryConditions.repeat_edge,
            "repeat_image": hl.BoundaryConditions.repeat_image,
            "mirror_image": hl.BoundaryConditions.mirror_image,
            "mirror_interior": hl.BoundaryConditions.mirror_interior,
            "constant": hl.BoundaryConditions.constant_exterior,
        }[boundary.kind]
        return make(*arguments)

    def domain(self, variables: Sequence[RVar], env: Environment) -> hl.RDom:
        """A reduction domain, its first variable the innermost loop."""
        ranges = [hl.Range(self.index(r.lo, env), self.index(r.extent, env)) for r in variables]
        return hl.RDom(ranges, f"r{next(self.fresh)}")

    def index(self, e: Expr, env: Environment) -> hl.Expr:
        """`e` as a coordinate: Halide's are int32."""
        value = self.expr(e, env)
        return value if e.type == INT32 else hl.cast(hl.Int(32), value)

    def expr(self, e: Expr, env: Environment) -> hl.Expr:  # one arm a node class
        match e:
            case Const():
                return constant(e.value, e.type)
            case Var():
                return env[e.name]
            case ParamRef():
                return hl.Expr(self.params[e.name])
            case InputBound():
                dims = self.pipeline.input(e.input).dims
                dim = self.inputs[e.input].dim(dims.index(e.dim))
                return dim.min() if e.which == "min" else dim.extent()
            case Access():
                return self.access(e, env)
            case Binary():
                return self.binary(e, env)
            case Unary(op="not", operand=operand):
                return hl.logical_not(self.expr(operand, env))
            case Unary(op=op, operand=operand):
                value = self.expr(operand, env)
                if op == "-" and self.may_overflow(e.type):
                    return hl.cast(halide_type(e.type), -hl.cast(hl.UInt(e.type.bits), value))
                return -value if op == "-" else ~value
            case Compare():
                return _compare(e.op, self.expr(e.left, env), self.expr(e.right, env))
            case Logical():
                left, right = self.expr(e.left, env), self.expr(e.right, env)
                return left & right if e.op == "and" else left | right
            case Select():
                return hl.select(*(self.expr(x, env) for x in (e.condition, e.if_true, e.if_false)))
            case Call():
                return self.call(e, env)
            case Cast():
                return self.cast(e, env)
            case Reduce():
                return self.reduce(e, env)

    def access(self, e: Access, env: Environment) -> hl.Expr:
        indices = tuple(self.index(i, env) for i in e.indices)
        value = self.readable[e.name][indices]
        if e.name in self.stages and len(self.pipeline.stage(e.name).values) > 1:
            value = value[e.component]
        return _as_expr(value)

    def binary(self, e: Binary, env: Environment) -> hl.Expr:
        a = self.expr(e.left, env)
        if e.op == "**":
            if isinstance(e.right, Const) and e.right.type.is_integer and int(e.right.value) >= 0:
                return fold(lambda x, y: x * y, [a] * int(e.right.value), constant(1, e.type))
            return hl.pow(a, hl.cast(halide_type(e.type), self.expr(e.right, env)))
        b = self.expr(e.right, env)
        if e.op in ("<<", ">>"):
            if self.defined:
                return _shift(a, b, e)
            b = hl.cast(halide_type(ScalarType("int", e.type.bits)), b)  # keeps Halide from widening the result
        if e.op in ("+", "-", "*") and self.may_overflow(e.type):
            unsigned = hl.UInt(e.type.bits)
            return hl.cast(halide_type(e.type), _BINARY[e.op](hl.cast(unsigned, a), hl.cast(unsigned, b)))
        return _BINARY[e.op](a, b)

    def may_overflow(self, t: ScalarType) -> bool:
        """True if arithmetic of that type has to be spelt out: coordinates too, as one cannot tell them apart."""
        return self.defined and t.kind == "int" and t.bits == 64

    def cast(self, e: Cast, env: Environment) -> hl.Expr:
        value = self.expr(e.operand, env)
        if e.type == BOOL:
            return value if e.operand.type == BOOL else value != constant(0, e.operand.type)
        if (e.saturate or (self.defined and e.operand.type.is_float and e.type.is_integer)) and e.operand.type != BOOL:
            return hl.saturating_cast(halide_type(e.type), value)
        return hl.cast(halide_type(e.type), value)

    def call(self, e: Call, env: Environment) -> hl.Expr:
        args = [self.expr(a, env) for a in e.args]
        if e.function == "mux":
            return hl.mux(hl.cast(hl.Int(32), args[0]), args[1:])
        if e.function in ("min", "max"):
            return fold(hl.min if e.function == "min" else hl.max, args)
        if e.function == "random":
            return _random(args)
        if e.function == "mul_shift_right":
            args[2] = hl.cast(hl.UInt(e.type.bits), args[2])  # Halide wants the count unsigned
        if e.function == "lerp" and self.defined and e.type.is_integer and e.args[2].type.is_float:
            args[2] = hl.clamp(args[2], constant(0, e.args[2].type), constant(1, e.args[2].type))
        if e.function.startswith("as_"):
            return hl.reinterpret(halide_type(e.type), args[0])
        if e.function not in _CALLS:
            raise Untranslatable(f"no counterpart of {e.function}")
        # abs and absd change the type in Halide (of signed to unsigned); the cast keeps the document's.
        return hl.cast(halide_type(e.type), _CALLS[e.function](*args))

    def reduce(self, e: Reduce, env: Environment) -> hl.Expr:
        terms = _terms(e.domain)
        if terms is not None and len(terms) <= self.unroll_terms and e.op not in ("argmin", "argmax"):
            return self.written_out(e, env, terms)
        if self.defined and e.op in ("argmin", "argmax"):
            return self.extremum(e, env)
        # The last variable of a comprehension is the innermost loop, the first of a domain is.
        variables = tuple(reversed(e.domain))
        domain = self.domain(variables, env)
        inside = {**env, **{r.name: hl.Expr(domain[i]) for i, r in enumerate(variables)}}
        body = self.expr(e.body, inside)
        if not _variables(e.body) & {r.name for r in e.domain}:
            body = _repeated(body, domain)
        if e.op in ("any", "all"):
            body = hl.cast(hl.UInt(8), body)
        elif e.op not in ("argmin", "argmax") and e.body.type != e.type:
            body = hl.cast(halide_type(e.type), body)
        if e.where is not None:
            body = self.restricted(e, domain, body, inside)
        name = f"{e.op}{next(self.fresh)}"
        match e.op:
            case "sum":
                return hl.sum(domain, body, name)
            case "product":
                return hl.product(domain, body, name)
            case "min" | "all":
                best = hl.minimum(domain, body, name)
            case "max" | "any":
                best = hl.maximum(domain, body, name)
            case "argmin" | "argmax":
                found = (hl.argmin if e.op == "argmin" else hl.argmax)(domain, body, name)
                places = list(reversed(found[:-1]))
                return _as_expr([*places, found[-1]][e.component])
        return best != constant(0, ScalarType("uint", 8)) if e.type == BOOL else best

    def extremum(self, e: Reduce, env: Environment) -> hl.Expr:
        """An argmin or argmax that begins at the first place of its domain. Halide's own begins at 0, and stays there
        where nothing is better than the worst value of the type."""
        free = sorted(set().union(*(_variables(x) for x in (e.body, e.where) if x is not None)))
        dims = {name: hl.Var(name) for name in free if name not in {r.name for r in e.domain}}
        domain = self.domain(tuple(reversed(e.domain)), {})
        loops = {r.name: hl.Expr(domain[i]) for i, r in enumerate(reversed(e.domain))}
        inside = {**{name: hl.Expr(v) for name, v in dims.items()}, **loops}
        body, found = self.expr(e.body, inside), hl.Func(f"{e.op}{next(self.fresh)}")
        at, last = tuple(dims.values()), len(e.domain)
        _define(found, at, [*(self.index(r.lo, {}) for r in e.domain), _neutral(e, body)])
        if e.where is not None:
            domain.where(self.expr(e.where, inside))
        old = [_as_expr(found[at][k]) for k in range(last + 1)]
        better = body < old[last] if e.op == "argmin" else body > old[last]
        new = [*(loops[r.name] for r in e.domain), body]
        _define(found, at, [hl.select(better, n, o) for n, o in zip(new, old, strict=True)])
        return _as_expr(found[tuple(env[name] for name in dims)][e.component])

    def restricted(self, e: Reduce, domain: hl.RDom, body: hl.Expr, inside: Environment) -> hl.Expr:
        """`body` where the reduction's predicate holds: by the domain if Halide can, else by its neutral value."""
        if e.where is None:
            return body
        predicate = self.expr(e.where, inside)
        mine = {r.name for r in e.domain}
        outer = _variables(e.where) - mine
        if outer <= _variables(e.body):  # free variables of the predicate alone are not captured
            domain.where(predicate)
            return body
        if e.op in ("argmin", "argmax"):
            raise Untranslatable("argmin and argmax where the predicate depends on a dim that the value does not")
        return hl.select(predicate, body, _neutral(e, body))

    def written_out(self, e: Reduce, env: Environment, terms: list[tuple[int, ...]]) -> hl.Expr:
        values = []
        for point in terms:
            inside = {**env, **{r.name: hl.i32(v) for r, v in zip(e.domain, point, strict=True)}}
            value = self.expr(e.body, inside)
            if e.body.type != e.type:
                value = hl.cast(halide_type(e.type), value)
            if e.where is not None:
                value = hl.select(self.expr(e.where, inside), value, _neutral(e, value))
            values.append(value)
        operators: dict[str, Callable[[hl.Expr, hl.Expr], hl.Expr]] = {
            "sum": lambda a, b: a + b,
            "product": lambda a, b: a * b,
            "min": hl.min,
            "max": hl.max,
            "any": lambda a, b: a | b,
            "all": lambda a, b: a & b,
        }
        return fold(operators[e.op], values)


def _repeated(value: hl.Expr, domain: hl.RDom) -> hl.Expr:
    """`value`, mentioning the domain: Halide does not loop over a domain that the value does not mention."""
    return hl.select(hl.Expr(domain[0]) != hl.i32(2**31 - 1), value, hl.cast(value.type(), hl.i32(0)))


def _shift(a: hl.Expr, count: hl.Expr, e: Binary) -> hl.Expr:
    """A shift by any count: bits that leave are lost, a negative count shifts the other way."""
    t, bits = halide_type(e.type), e.type.bits
    # In a type that holds the count and its negation; Halide's counts are of the width of what is shifted.
    near = hl.cast(hl.Int(32), hl.clamp(count, _within(count, -bits), _within(count, bits)))
    up = near if e.op == "<<" else -near
    last = hl.i32(bits - 1)
    left = a << hl.cast(hl.Int(bits), hl.clamp(up, 0, last))
    right = a >> hl.cast(hl.Int(bits), hl.clamp(-up, 0, last))
    gone = a >> hl.cast(hl.Int(bits), last) if e.type.kind == "int" else hl.cast(t, hl.i32(0))
    return hl.select(up >= bits, hl.cast(t, hl.i32(0)), hl.select(up >= 0, left, hl.select(up <= -bits, gone, right)))


def _within(count: hl.Expr, value: int) -> hl.Expr:
    """`value` in the type of `count`, or the nearest there is."""
    width = min(count.type().bits(), 32)
    low, high = (0, 2**width - 1) if count.type().is_uint() else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    return hl.cast(count.type(), hl.i32(min(max(value, low), min(high, 2**31 - 1))))


def _as_expr(value: object) -> hl.Expr:
    """References to functions, variables and the like as what they stand for; there is no Expr of an Expr."""
    return value if isinstance(value, hl.Expr) else hl.Expr(value)


def _define(func: hl.Func, at: tuple[object, ...], values: list[hl.Expr]) -> None:
    func[at] = values[0] if len(values) == 1 else hl.Tuple(values)


def _variables(e: Expr) -> set[str]:
    """The variables that the translation of `e` has: nothing is left of what is raised to the power of 0."""
    if isinstance(e, Binary) and e.op == "**" and isinstance(e.right, Const) and e.right.value == 0:
        return set()
    if isinstance(e, Var):
        return {e.name}
    return set().union(*(_variables(c) for c in children(e)))


def _terms(domain: tuple[RVar, ...]) -> list[tuple[int, ...]] | None:
    """The points of a constant domain in loop order, or None where it is not constant or is empty."""
    ranges = []
    for r in domain:
        lo, extent = _integer(r.lo), _integer(r.extent)
        if lo is None or extent is None or not 1 <= extent <= 4096:
            return None
        ranges.append(range(lo, lo + extent))
    return list(itertools.product(*ranges))


def _integer(e: Expr) -> int | None:
    match e:
        case Const(value=value) if e.type.is_integer:
            return int(value)
        case Unary(op="-", operand=Const(value=value)) if e.type.is_integer:
            return -int(value)
        case Cast(operand=operand) if e.type.is_integer:
            return _integer(operand)
        case Binary(op="-", left=left, right=right):
            a, b = _integer(left), _integer(right)
            return None if a is None or b is None else a - b
        case Binary(op="+", left=left, right=right):
            a, b = _integer(left), _integer(right)
            return None if a is None or b is None else a + b
        case _:
            return None


def _neutral(e: Reduce, value: hl.Expr) -> hl.Expr:
    """The neutral element of the reduction."""
    match e.op:
        case "sum" | "any":
            number = 0
        case "product" | "all":
            number = 1
        case "min" | "argmin":
            return value.type().max()
        case "max" | "argmax":
            return value.type().min()
    return hl.cast(value.type(), hl.i32(number))


def _compare(op: str, a: hl.Expr, b: hl.Expr) -> hl.Expr:
    match op:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case "==":
            return a == b
        case "!=":
            return a != b
        case ">=":
            return a >= b
        case _:
            return a > b


_BINARY: dict[str, Callable[[hl.Expr, hl.Expr], hl.Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}

_CALLS: dict[str, Callable[..., hl.Expr]] = {
    "clamp": hl.clamp,
    "abs": hl.abs,
    "absd": hl.absd,
    "lerp": hl.lerp,
    "sat_add": hl.saturating_add,
    "sat_sub": hl.saturating_sub,
    "halving_add": hl.halving_add,
    "rounding_halving_add": hl.rounding_halving_add,
    "rounding_shift_right": hl.rounding_shift_right,
    "mul_shift_right": hl.mul_shift_right,
    "popcount": hl.popcount,
    "count_leading_zeros": hl.count_leading_zeros,
    "count_trailing_zeros": hl.count_trailing_zeros,
    "sqrt": hl.sqrt,
    "exp": hl.exp,
    "log": hl.log,
    "pow": hl.pow,
    "sin": hl.sin,
    "cos": hl.cos,
    "tan": hl.tan,
    "asin": hl.asin,
    "acos": hl.acos,
    "atan": hl.atan,
    "atan2": hl.atan2,
    "tanh": hl.tanh,
    "floor": hl.floor,
    "ceil": hl.ceil,
    "round": hl.round,
    "trunc": hl.trunc,
}


def _random(args: list[hl.Expr]) -> hl.Expr:
    """The stateless hash of `semantics.random_float` in the IR of pipelines, in unsigned arithmetic that wraps."""
    h = hl.u32(RANDOM_SEED)
    for a in args:
        h = h ^ hl.cast(hl.UInt(32), a)
        h = (h ^ (h >> 16)) * hl.u32(0x85EBCA6B)
        h = (h ^ (h >> 13)) * hl.u32(0xC2B2AE35)
        h = h ^ (h >> 16)
    return hl.cast(hl.Float(32), h >> 8) * hl.f32(2.0**-24)
