"""A serialised Halide pipeline as plain data: its Funcs, their definitions, and Halide's expressions.

Halide's schema is `src/halide_ir.fbs` of its sources; the numbers below are places in the tables there.
Let expressions are written out where they are used, as one shared object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from flatbuffers import number_types as numbers

from tilesmith.scheduler.frontends.halide.flatbuffer import MALFORMED, BadBuffer, Table, root

VERSIONS = (21,)
"""Major versions of Halide whose serialised pipelines are known: their form may change with each."""


@dataclass(frozen=True, slots=True)
class HalideType:
    """`code` is int, uint, float, handle or bfloat."""

    code: str
    bits: int
    lanes: int = 1

    def __str__(self) -> str:
        name = "bool" if (self.code, self.bits) == ("uint", 1) else f"{self.code}{self.bits}"
        return name if self.lanes == 1 else f"{name}x{self.lanes}"


HALIDE_BOOL, HALIDE_INT32 = HalideType("uint", 1), HalideType("int", 32)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An expression of Halide. `op` is the class of Halide's IR in lower case.

    `name` is that of a variable or of what is called; `kind` how it is called: image, halide, intrinsic, ...;
    `param` the parameter that a variable or an image belongs to; `component` counts a tuple; `value` is a number's.
    """

    op: str
    type: HalideType
    args: tuple[Node, ...] = ()
    name: str = ""
    kind: str = ""
    param: str = ""
    buffer: str = ""
    component: int = 0
    value: int | float | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A reduction variable, `lo <= name < lo + extent`."""

    name: str
    lo: Node
    extent: Node


@dataclass(frozen=True, slots=True)
class Definition:
    """A pure or update definition: at `args`, `values`, for the `domain` where `predicate` holds."""

    args: tuple[Node, ...]
    values: tuple[Node, ...]
    domain: tuple[Loop, ...]
    predicate: Node | None
    scheduled: bool


@dataclass(frozen=True, slots=True)
class HalideFunc:
    """A Func. `storage` are its dims, fastest first; `estimates` has (min, extent) by dim."""

    name: str
    args: tuple[str, ...]
    definitions: tuple[Definition, ...]
    extern: str
    storage: tuple[str, ...]
    estimates: Mapping[str, tuple[int | None, int | None]]
    output_params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HalideBuffer:
    """A Buffer that the pipeline has inside: (min, extent, stride) by dim, and its bytes."""

    name: str
    type: HalideType
    dims: tuple[tuple[int, int, int], ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class HalideParameter:
    """An ImageParam, or a Param where it is no buffer."""

    name: str
    is_buffer: bool
    type: HalideType
    dimensions: int


@dataclass(frozen=True, slots=True)
class HalideConstraint:
    """A dim of a buffer: the stride that is asked for, and the estimates."""

    stride: int | None
    min: int | None
    extent: int | None


@dataclass(frozen=True, slots=True)
class HalideProgram:
    """Everything of a pipeline that matters to what it computes. `strides` are those asked for of output
    buffers, by their names; `requirements` are conditions that are checked when it is called. `parameters` are those
    of the caller, ImageParams and Params, of which the bytes have little; `constraints` those of buffers, by name."""

    version: str
    funcs: Mapping[str, HalideFunc]
    outputs: tuple[str, ...]
    strides: Mapping[str, tuple[int | None, ...]]
    buffers: Mapping[str, HalideBuffer]
    requirements: tuple[Node, ...]
    parameters: tuple[HalideParameter, ...] = ()
    constraints: Mapping[str, tuple[HalideConstraint, ...]] = field(default_factory=dict)


def read(data: bytes) -> HalideProgram:
    """The pipeline in `data`. Raises BadBuffer for other bytes, and for those of a version that is not known."""
    try:
        return _program(data)
    except MALFORMED:
        raise BadBuffer("the bytes are no serialised pipeline of Halide") from None


def _program(data: bytes) -> HalideProgram:
    table = root(data)
    version = table.text(8)
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) not in VERSIONS:
        raise BadBuffer(f"pipelines of Halide {version or '?'} are not known, only of {', '.join(map(str, VERSIONS))}")
    funcs = [_whole(t) for t in table.tables(0)]
    return HalideProgram(
        version=version,
        funcs={f.name: f for f in funcs},
        outputs=tuple(table.texts(1)),
        strides={t.text(4): tuple(_number(c, 4) for c in t.tables(6)) for t in table.tables(5)},
        buffers={b.name: b for b in map(_buffer, table.tables(7))},
        requirements=tuple(_expr(t.union(0), {}) for kind, t in table.unions(2) if _STATEMENTS[kind] == "assert"),
        parameters=tuple(
            HalideParameter(t.text(3), t.truth(0), _type(t.table(1)), t.integer(2)) for t in table.tables(6)
        ),
        constraints={t.text(4): tuple(map(_constraint, t.tables(6))) for t in table.tables(5)},
    )


def walk(node: Node) -> Iterator[Node]:
    """`node` and what it is made of, each object once."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if id(n) not in seen:
            seen.add(id(n))
            yield n
            stack.extend(reversed(n.args))


_TYPE_CODES = ("int", "uint", "float", "handle", "bfloat")
_CALL_KINDS = ("image", "extern", "extern", "pure_extern", "halide", "intrinsic", "intrinsic")
_EXPRS = (
    "none", "int", "uint", "float", "string", "cast", "reinterpret", "add", "sub", "mul", "div", "mod", "min", "max",
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select", "load", "ramp", "broadcast", "let", "call",
    "variable", "shuffle", "vector_reduce", "undefined",
)  # fmt: skip
_STATEMENTS = ("none", "let", "assert")
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"))
_HANDLE = HalideType("handle", 64)

Lets = dict[str, Node]


def _type(table: Table | None) -> HalideType:
    if table is None:
        return _HANDLE
    return HalideType(
        _TYPE_CODES[table.integer(0, numbers.Int8Flags)], table.integer(1, numbers.Uint8Flags), table.integer(2)
    )


def _whole(t: Table) -> HalideFunc:
    try:
        return _func(t)
    except RecursionError:
        deep = f"an expression of the Func {t.text(0).partition('$')[0]} is nested too deeply: make Funcs of its parts"
        raise BadBuffer(deep) from None


def _func(t: Table) -> HalideFunc:
    init = t.table(8 - 1)
    args = tuple(t.texts(5))
    schedule = t.table(6)
    extern = t.text(12)
    definitions = [] if init is None else [init, *t.tables(8)]
    storage = [s.text(0) for s in schedule.tables(3)] if schedule else []
    return HalideFunc(
        name=t.text(0),
        args=args,
        definitions=tuple(_definition(d) for d in definitions),
        extern=extern,
        storage=tuple(storage) or args,
        estimates={b.text(0): (_number(b, 1), _number(b, 3)) for b in (schedule.tables(5) if schedule else ())},
        output_params=tuple(t.texts(10)),
    )


def _definition(t: Table) -> Definition:
    predicate = _expr(t.union(1), {})
    schedule = t.table(7)
    loops = schedule.tables(0) if schedule else []
    return Definition(
        args=tuple(_expr(u, {}) for u in t.unions(5)),
        values=tuple(_expr(u, {}) for u in t.unions(3)),
        domain=tuple(Loop(v.text(0), _expr(v.union(1), {}), _expr(v.union(3), {})) for v in loops),
        predicate=None if predicate.op in ("none", "undefined") or predicate.value == 1 else predicate,
        scheduled=bool(schedule and schedule.truth(6)),
    )


def _buffer(t: Table) -> HalideBuffer:
    dims = tuple((d.integer(0), d.integer(1), d.integer(2)) for d in t.tables(4))
    return HalideBuffer(t.text(1), _type(t.table(2)), dims, t.octets(5))


def _constraint(t: Table) -> HalideConstraint:
    return HalideConstraint(_number(t, 4), _number(t, 6), _number(t, 8))


def _number(t: Table, field: int) -> int | None:
    """A constant integer, where the expression there is one."""
    node = _expr(t.union(field), {})
    return int(node.value) if node.op == "int" and node.value is not None else None


def _expr(union: tuple[int, Table] | None, lets: Lets) -> Node:
    if union is None:
        return Node("none", _HANDLE)
    op, t = _EXPRS[union[0]], union[1]
    match op:
        case "int":
            return Node(op, _type(t.table(1)), value=t.integer(0, numbers.Int64Flags))
        case "uint":
            return Node("int", _type(t.table(1)), value=t.integer(0, numbers.Uint64Flags))
        case "float":
            return Node(op, _type(t.table(1)), value=t.real(0))
        case "string":
            return Node(op, _HANDLE, name=t.text(0))
        case "cast" | "reinterpret":
            return Node(op, _type(t.table(2)), (_expr(t.union(0), lets),))
        case "let":
            return _expr(t.union(3), {**lets, t.text(0): _expr(t.union(1), lets)})
        case "variable":
            return _variable(t, lets)
        case "call":
            return Node(
                op,
                _type(t.table(8)),
                tuple(_expr(u, lets) for u in t.unions(1)),
                name=t.text(0),
                kind=_CALL_KINDS[t.integer(3, numbers.Uint8Flags)],
                param=t.text(7),
                buffer=t.text(6),
                component=t.integer(5),
            )
        case "not":
            return Node(op, HALIDE_BOOL, (_expr(t.union(0), lets),))
        case "load" | "ramp" | "broadcast" | "shuffle" | "vector_reduce" | "undefined" | "none":
            return Node(op, _HANDLE)
        case _:
            args = tuple(_expr(t.union(2 * k), lets) for k in range(3 if op == "select" else 2))
            return Node(op, HALIDE_BOOL if op in _COMPARISONS else args[-1].type, args)


def _variable(t: Table, lets: Lets) -> Node:
    name, param = t.text(0), t.text(2)
    if not param and name in lets:
        return lets[name]
    return Node("variable", _type(t.table(1)), name=name, param=param, buffer=t.text(3))


__all__ = ["BadBuffer", "Definition", "HalideFunc", "HalideProgram", "HalideType", "Node", "read", "walk"]
