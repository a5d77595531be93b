"""Templates of expressions that Halide writes out, to recognise them by: boundary conditions, inline reductions, and
the fast_ functions.

Boundary conditions and fast_ functions have no nodes of their own in Halide. What they look like is asked of the Halide
at hand: each is made once with holes in it, and an expression that is the same but for the holes was made so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from tilesmith.scheduler.frontends.halide.serialized import (
    Definition,
    HalideFunc,
    HalideProgram,
    Loop,
    Node,
    read,
    walk,
)
from tilesmith.scheduler.ir.pipeline.expressions import ReduceOp
from tilesmith.scheduler.ir.pipeline.pipeline import BoundaryKind

_HOLE = "tilesmith_hole"
_SOURCE = "tilesmith_source"
_FAST = ("exp", "log", "sin", "cos")
_BOUNDARIES: dict[str, BoundaryKind] = {
    "repeat_edge": "repeat_edge",
    "repeat_image": "repeat_image",
    "mirror_image": "mirror_image",
    "mirror_interior": "mirror_interior",
    "constant_exterior": "constant",
}


Domain: TypeAlias = tuple[tuple[Node, Node] | None, ...]


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A Func that continues `source` (an image or a Func, as it is called) beyond `domain`: (min, extent) by dim,
    None for dims that go on as they are."""

    kind: BoundaryKind
    source: Node
    domain: Domain
    value: Node | None


@dataclass(frozen=True, slots=True)
class InlineReduction:
    """A Func that hl.sum and its like made: `op` over `domain`, where `predicate` holds, of `body`."""

    op: ReduceOp
    domain: tuple[Loop, ...]
    predicate: Node | None
    body: Node


def fast_function(node: Node) -> tuple[str, Node] | None:
    """(function, operand) of an expression that hl.fast_exp or another of these made."""
    for name, template in _fast_templates().items():
        match = _Match()
        if template.op == node.op and match.same(template, node):
            return name, match.holes[_HOLE]
    return None


def wrapped(program: HalideProgram, func: HalideFunc) -> Wrapped | None:
    """`func` as a boundary condition, where it is one. Conditions on some dims are known where these are the first."""
    name = func.name.partition("$")[0]
    if name not in _BOUNDARIES or len(func.definitions) != 1:
        return None
    tries = (_wrapped(program, func, name, bounded) for bounded in range(len(func.args), 0, -1))
    return next((t for t in tries if t is not None), None)


def _wrapped(program: HalideProgram, func: HalideFunc, name: str, bounded: int) -> Wrapped | None:
    values = func.definitions[0].values
    template = _boundary_template(name, len(func.args), bounded)
    matches = [_Match() for _ in values]
    for k, (match, value) in enumerate(zip(matches, values, strict=True)):
        if not match.same(template, value) or match.source is None or match.source.component != k:
            return None
        if any(match.holes[f"_{d}"].name != arg for d, arg in enumerate(func.args)):
            return None
    holes, source = matches[0].holes, matches[0].source
    domain = tuple(
        (holes[f"{_SOURCE}.min.{d}"], holes[f"{_SOURCE}.extent.{d}"]) if d < bounded else None
        for d in range(len(func.args))
    )
    if source is None or name != "constant_exterior":
        return None if source is None else Wrapped(_BOUNDARIES[name], source, domain, None)
    # Halide keeps the reads inside by another Func, which repeats the edge of the same domain.
    inner = wrapped(program, program.funcs[source.name]) if source.name in program.funcs else None
    if inner is None or len(values) > 1 or not _same_domain(domain, inner.domain):
        return None
    return Wrapped("constant", inner.source, domain, holes[_HOLE])


def _same_domain(a: Domain, b: Domain) -> bool:
    return all(
        (p is None) == (q is None) and (p is None or q is None or (same(p[0], q[0]) and same(p[1], q[1])))
        for p, q in zip(a, b, strict=True)
    )


def inline_reduction(func: HalideFunc, reader: HalideFunc | None = None) -> InlineReduction | None:
    """`func` as an inline reduction, where it is one: by the name that Halide gave it and by what it does. One that has
    another name is so if its only `reader`, whose value reads it at the same dims, has them in another order: those of
    what hl.sum makes under a given name are in the order in which its terms have them."""
    name = func.name.partition("$")[0].rstrip("0123456789")
    if len(func.definitions) != 2 or (name not in _REDUCTIONS and (reader is None or not _is_turned(func, reader))):
        return None
    init, update = func.definitions
    if len(update.values) != 1 or not update.domain or not _at_dims(update, func):
        return None
    value = update.values[0]
    op, node_op = _REDUCTIONS.get(name) or _OPERATIONS.get(value.op, ("sum", ""))
    if value.op != node_op or not _is_identity(op, init.values[0]):
        return None
    own, body = value.args
    if not (own.op == "call" and own.name == func.name and _are_dims(own.args, func)):
        return None
    return InlineReduction(op, update.domain, update.predicate, body)


def copied(func: HalideFunc) -> Node | None:
    """The image or Func that `func`, made by Halide itself, is a mere copy of; None of any other."""
    name = func.name.partition("$")[0]
    if len(func.definitions) != 1 or len(func.definitions[0].values) != 1:
        return None
    value = func.definitions[0].values[0]
    if value.op != "call" or value.kind not in ("image", "halide") or not _are_dims(value.args, func):
        return None
    of_image = value.kind == "image" and name in (f"{value.name.partition('$')[0]}_im", f"{value.name}_im")
    return value if of_image or (name.startswith("lambda_") and name[7:].isdigit()) else None


def same(a: Node, b: Node) -> bool:
    """True if the two are the same expression."""
    return _Match().same(a, b)


_REDUCTIONS: dict[str, tuple[ReduceOp, str]] = {
    "sum": ("sum", "add"),
    "product": ("product", "mul"),
    "minimum": ("min", "min"),
    "maximum": ("max", "max"),
    "min": ("min", "min"),
    "max": ("max", "max"),
}


_OPERATIONS = {node_op: (op, node_op) for op, node_op in _REDUCTIONS.values()}


def _is_turned(func: HalideFunc, reader: HalideFunc) -> bool:
    """True if the values of a Func read another at its dims, which are those of the reader in another order."""
    if func.args == reader.args or sorted(func.args) != sorted(reader.args):
        return False
    reads = [n for value in reader.definitions[0].values for n in walk(value) if n.op == "call" and n.name == func.name]
    return bool(reads) and all(_are_dims(n.args, func) for n in reads)


def _is_identity(op: ReduceOp, node: Node) -> bool:
    """True if a reduction by `op` that starts at `node` is that of its terms alone."""
    if node.op not in ("int", "float") or node.value is None:
        return False
    t = node.type
    if op in ("sum", "product"):
        return node.value == (0 if op == "sum" else 1)
    if t.code == "float":
        return node.value == (float("inf") if op == "min" else float("-inf"))
    top = (1 << (t.bits - (t.code == "int"))) - 1
    return node.value == (top if op == "min" else -top - 1 if t.code == "int" else 0)


def _at_dims(definition: Definition, func: HalideFunc) -> bool:
    return _are_dims(definition.args, func)


def _are_dims(args: tuple[Node, ...], func: HalideFunc) -> bool:
    return len(args) == len(func.args) and all(
        a.op == "variable" and a.name == name for a, name in zip(args, func.args, strict=True)
    )


@dataclass(slots=True)
class _Match:
    """The expressions in the holes of a template: by the name of the variable that marks each; `source` is what is
    read."""

    holes: dict[str, Node] = field(default_factory=dict)
    source: Node | None = None
    _done: set[tuple[int, int]] = field(default_factory=set)

    def same(self, template: Node, node: Node) -> bool:
        if template is node:
            return True
        template, node = _plain(template), _plain(node)
        key = (id(template), id(node))
        if key in self._done:
            return True
        if template.op == "variable" and template.kind == _HOLE:
            if template.name in self.holes:
                return same(self.holes[template.name], node)
            self.holes[template.name] = node
            return True
        if template.kind == _SOURCE:
            if node.op != "call" or node.kind not in ("image", "halide") or self.source is not None:
                return False
            self.source = node
        elif (template.op, template.name, template.kind, template.value, template.component) != (
            node.op, node.name, node.kind, node.value, node.component
        ) or (template.type != node.type and template.op in ("cast", "reinterpret", "int", "float")):  # fmt: skip
            return False
        matched = len(template.args) == len(node.args) and all(
            self.same(t, n) for t, n in zip(template.args, node.args, strict=True)
        )
        if matched:
            self._done.add(key)
        return matched


def _plain(node: Node) -> Node:
    while node.op == "call" and node.name in ("likely", "likely_if_innermost"):
        node = node.args[0]
    return node


def _with_holes(node: Node, done: dict[int, Node]) -> Node:
    """A template of `node`: every variable is a hole, every image or Func the source."""
    if id(node) not in done:
        args = tuple(_with_holes(a, done) for a in node.args)
        kind = node.kind
        if node.op == "variable":
            kind = _HOLE
        elif node.op == "call" and node.kind in ("image", "halide"):
            kind = _SOURCE
        done[id(node)] = Node(node.op, node.type, args, node.name, kind, component=node.component, value=node.value)
    return done[id(node)]


@cache
def _fast_templates() -> Mapping[str, Node]:
    import halide as hl

    found = {}
    for name in _FAST:
        function = getattr(hl, f"fast_{name}", None)
        if function is not None:
            made = hl.Func(f"{_SOURCE}_{name}")
            made[hl.Var("x")] = function(hl.Expr(hl.Param(hl.Float(32), _HOLE)))
            found[name] = _learned(made)
    return found


@cache
def _boundary_template(name: str, dims: int, bounded: int) -> Node:
    import halide as hl

    image = hl.ImageParam(hl.UInt(8), dims, _SOURCE)
    ranges = [hl.Range(image.dim(d).min(), image.dim(d).extent()) for d in range(bounded)]
    outside = [hl.Expr(hl.Param(hl.UInt(8), _HOLE))] if name == "constant_exterior" else []
    return _learned(getattr(hl.BoundaryConditions, name)(image, *outside, ranges))


def _learned(func: object) -> Node:
    import halide as hl

    program = read(hl.serialize_pipeline(hl.Pipeline(func)))
    return _with_holes(program.funcs[program.outputs[0]].definitions[0].values[0], {})
