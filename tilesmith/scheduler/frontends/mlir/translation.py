"""A function of tensors as a document: a stage for every structured operation of linalg.

A tensor is what it is read by: an input, a stage, or a value that needs none (a fill, a slice). Dims of documents are
those of tensors in reverse, so that the last dim of a tensor, the fastest one in memory, is the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import BroadcastOp, ReduceOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from tilesmith.scheduler.frontends.document.fresh_names import fresh
from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.mlir.scalars import (
    REDUCTIONS,
    Inexpressible,
    expression,
    is_scalar,
    joined,
    literal,
    type_name,
    written_out,
)
from tilesmith.scheduler.frontends.mlir.text import Text

MOST_DIMS = 5
MOST_WRITTEN_OUT = 64
"""The elements of a constant that is written into expressions, and the terms of a reduction that reads one."""
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Read: TypeAlias = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that may be read: `read` makes an expression of an index for each dim. `stage` is the name of the stage
    that computes it, where there is one; `constant`: its elements are numbers."""

    shape: tuple[int, ...]
    type: str
    read: Read
    stage: str | None = None
    constant: bool = False


@dataclass
class Draft:
    """The document as it comes about. `weights` are the values of inputs that the text has."""

    document: dict[str, Any]
    weights: dict[str, Array] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def translated(text: Text) -> Draft:
    """The document of a function. Raises ImportFailed, with all operations that cannot be expressed."""
    return _Translation(text).run()


class _Translation:
    def __init__(self, text: Text) -> None:
        self.text = text
        self.taken: set[str] = set()
        self.tensors: dict[SSAValue, Tensor] = {}
        self.scalars: dict[SSAValue, str] = {}
        self.inputs: list[dict[str, Any]] = []
        self.params: list[dict[str, Any]] = []
        self.stages: list[dict[str, Any]] = []
        self.estimates: dict[str, list[list[int]]] = {}
        self.problems: list[tuple[str, str | None]] = []
        self.weights: dict[str, Array] = {}

    def run(self) -> Draft:
        function = self.text.function
        if len(function.body.blocks) != 1:
            raise ImportFailed((f"{self.text.place(function)}: control flow is not expressed", None))
        block = function.body.block
        for number, argument in enumerate(block.args):
            self.told(function, partial(self.argument, argument, number))
        outputs: list[str] = []
        for op in block.ops:
            if op.name == "func.return":
                self.told(op, partial(self.returned, op, outputs))
            elif not self.lost(op):
                self.told(op, partial(self.operation, op))
        if not self.problems and not outputs:
            self.problems.append((f"{self.text.place(function)}: nothing is returned", "return the tensors to compute"))
        if self.problems:
            raise ImportFailed(*self.problems)
        name = fresh(function.sym_name.data, set())
        document: dict[str, Any] = {"format": 1, "name": name}
        if self.params:
            document["params"] = self.params
        document |= {"inputs": self.inputs, "stages": self.stages, "outputs": outputs, "estimates": self.estimates}
        return Draft(document, self.weights)

    def told(self, op: Operation, translate: Callable[[], object]) -> None:
        """Translates, or notes what cannot be expressed at the operation's line."""
        try:
            translate()
        except Inexpressible as error:
            self.problems.append((f"{self.text.place(op)}: {error}", error.hint))

    def lost(self, op: Operation) -> bool:
        """True where an operand comes from what could not be expressed, and was told."""
        return any(o not in self.tensors and o not in self.scalars for o in op.operands)

    # What comes in and goes out

    def argument(self, value: SSAValue, number: int) -> None:
        name = fresh(value.name_hint or f"argument{number}", self.taken)
        if is_scalar(value):
            self.params.append({"name": name, "type": type_name(value.type)})
            self.scalars[value] = name
            return
        shape, element = _shaped(value)
        self.tensors[value] = self.input(name, shape, element)

    def input(self, name: str, shape: tuple[int, ...], type: str) -> Tensor:
        dims = _dims(len(shape))
        self.inputs.append({"name": name, "type": type, "dims": list(reversed(dims))})
        self.estimates[name] = [[0, n] for n in reversed(shape)]
        return Tensor(shape, type, _access(name))

    def returned(self, op: Operation, outputs: list[str]) -> None:
        outputs.extend(self.output(op, k) for k in range(len(op.operands)))

    def output(self, op: Operation, k: int) -> str:
        if op.operands[k] not in self.tensors:
            if op.operands[k] in self.scalars:
                raise Inexpressible("a scalar that is returned", "return a tensor")
            raise ImportFailed(*self.problems)
        tensor = self.tensors[op.operands[k]]
        stage = tensor.stage
        if stage is None or stage in self.estimates:
            stage = self.stage(f"result{k}", tensor.shape, tensor.type, tensor.read).stage
        assert stage is not None
        self.estimates[stage] = [[0, n] for n in reversed(tensor.shape)]
        return stage

    def stage(self, name: str, shape: tuple[int, ...], type: str, value: Read, **more: Any) -> Tensor:
        """A stage of `value` at its dims."""
        stage, dims = fresh(name, self.taken), _dims(len(shape))
        self.stages.append({"name": stage, "dims": list(reversed(dims)), "value": value(dims), "type": type, **more})
        return Tensor(shape, type, _access(stage), stage)

    # Operations

    def operation(self, op: Operation) -> None:
        match op.name:
            case "tensor.empty":
                shape, type = _shaped(op.results[0])
                self.tensors[op.results[0]] = Tensor(shape, type, lambda _: literal(0, type))
            case "tensor.splat":
                shape, type = _shaped(op.results[0])
                value = self.scalars[op.operands[0]]
                self.tensors[op.results[0]] = Tensor(shape, type, lambda _: value)
            case "tensor.pad":
                self.pad(op)
            case "tensor.extract_slice":
                self.extract_slice(op)
            case "tensor.expand_shape" | "tensor.collapse_shape":
                self.reshape(op)
            case "arith.constant" if isinstance(op.results[0].type, TensorType):
                self.constant(op)
            case "linalg.fill":
                self.fill(op)
            case "linalg.broadcast" | "linalg.reduce":
                self.by_dimensions(op)
            case _ if isinstance(op, LinalgStructuredOperation):
                maps = [m.data for m in op.get_indexing_maps()]
                parallel = [t.data == IteratorType.PARALLEL for t in op.get_iterator_types()]
                self.structured(op, maps, parallel, op.body.block, len(op.inputs))
            case _ if len(op.results) == 1 and is_scalar(op.results[0]) and not op.regions:
                self.scalars[op.results[0]] = expression(op, [self.scalars[o] for o in op.operands])
            case _:
                raise Inexpressible("this operation is not expressed", "see docs/mlir.md for those that are")

    def constant(self, op: Operation) -> None:
        """A constant tensor: a number where all elements are the same, a choice of few numbers; else an input, of which
        the text has the values."""
        shape, type = _shaped(op.results[0])
        value: Any = op.properties["value"]
        if not isinstance(value, DenseIntOrFPElementsAttr):
            raise Inexpressible("a constant of this kind", "write its elements, dense<...>")
        if value.is_splat():
            said = literal(value.get_values()[0], type)
            self.tensors[op.results[0]] = Tensor(shape, type, lambda _: said)
            return
        dtype = np.bool_ if type == "bool" else np.dtype(type)
        elements = np.array(value.get_values(), dtype).reshape(shape)
        if elements.size <= MOST_WRITTEN_OUT:
            self.tensors[op.results[0]] = Tensor(shape, type, _table(elements, type), constant=True)
            return
        name = fresh(op.results[0].name_hint or "constant", self.taken)
        self.weights[name] = elements
        self.tensors[op.results[0]] = self.input(name, shape, type)

    def fill(self, op: Operation) -> None:
        shape, type = _shaped(op.results[0])
        value = self.scalars[op.operands[0]]
        if type_name(op.operands[0].type) != type:
            value = f"{type}({value})"
        self.tensors[op.results[0]] = Tensor(shape, type, lambda _: value)

    def pad(self, op: Any) -> None:
        """A copy of the source with a constant boundary, read at shifted places."""
        if op.low or op.high:
            raise Inexpressible("padding that is known when it runs", "write it as numbers")
        shape, _ = _shaped(op.results[0])
        source = self.tensors[op.source]
        low = op.static_low.get_values()
        block = op.region.block
        inside = self.body(block, dict(zip(block.args, _dims(len(shape)), strict=True)))
        value = inside(block.last_op.operands[0])
        if any(map(_used, block.args)):
            raise Inexpressible("padding with a value that depends on the place", "pad with a constant")
        domain = [[0, n] for n in reversed(source.shape)]
        boundary = {"kind": "constant", "value": value, "domain": domain}
        within = self.stage(f"{op.results[0].name_hint or 'pad'}_source", source.shape, source.type, source.read,
                            boundary=boundary)  # fmt: skip
        self.tensors[op.results[0]] = Tensor(
            shape, source.type, lambda at: within.read([_moved(i, -lo) for i, lo in zip(at, low, strict=True)])
        )

    def extract_slice(self, op: Any) -> None:
        if op.offsets or op.sizes or op.strides:
            raise Inexpressible("a slice that is known when it runs", "write offsets, sizes and strides as numbers")
        shape, type = _shaped(op.results[0])
        source = self.tensors[op.source]
        offsets, sizes, strides = (
            list(p.get_values()) for p in (op.static_offsets, op.static_sizes, op.static_strides)
        )
        for start, size, stride, n in zip(offsets, sizes, strides, source.shape, strict=True):
            if start < 0 or start + (size - 1) * stride >= n or stride < 1 or size < 1:
                raise Inexpressible("a slice that is not within its tensor")
        kept = _kept(sizes, shape)

        def read(at: Sequence[str]) -> str:
            places = iter(at)
            return source.read([
                _moved(f"{next(places)} * {stride}" if stride > 1 else next(places), start) if k in kept else str(start)
                for k, (start, stride) in enumerate(zip(offsets, strides, strict=True))
            ])  # fmt: skip

        self.tensors[op.results[0]] = Tensor(shape, type, read)

    def reshape(self, op: Any) -> None:
        """Dims that are split or joined, as arithmetic of indices."""
        shape, type = _shaped(op.results[0])
        source = self.tensors[op.operands[0]]
        reassociation: ArrayAttr[Any] = op.reassociation
        parts = [[i.value.data for i in group] for group in reassociation]
        expanded = op.name == "tensor.expand_shape"
        long, short = (shape, source.shape) if expanded else (source.shape, shape)
        if [k for p in parts for k in p] != list(range(len(long))) or len(parts) != len(short):
            raise Inexpressible("this reassociation")
        if any(int(np.prod([long[k] for k in p])) != n for p, n in zip(parts, short, strict=True)):
            raise Inexpressible("a reassociation of other sizes")

        def read(at: Sequence[str]) -> str:
            if expanded:
                return source.read([_joined([at[k] for k in p], [shape[k] for k in p]) for p in parts])
            return source.read(
                [i for at_, p in zip(at, parts, strict=True) for i in _parted(at_, [long[k] for k in p])]
            )

        self.tensors[op.results[0]] = Tensor(shape, type, read)

    def by_dimensions(self, op: Operation) -> None:
        """linalg.broadcast and linalg.reduce, which name dimensions instead of maps."""
        assert isinstance(op, BroadcastOp | ReduceOp)
        named = op.dimensions.get_values()
        rank = len(_shaped(op.init if isinstance(op, BroadcastOp) else op.input)[0])
        if len(set(named)) != len(named) or any(not 0 <= d < rank for d in named):
            raise Inexpressible("these dimensions")
        rest = AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in range(rank) if d not in named))
        whole = AffineMap.identity(rank)
        if isinstance(op, BroadcastOp):
            self.structured(op, [rest, whole], [True] * rank, op.hidden_region.block, 1)
        else:
            self.structured(op, [whole, rest], [d not in named for d in range(rank)], op.region.block, 1)

    def structured(self, op: Operation, maps: list[AffineMap], parallel: list[bool], block: Block, inputs: int) -> None:
        """A stage of what the body yields, with a reduction where there are loops of that kind."""
        extents = _extents(op, maps)
        for k, result in enumerate(op.results):
            shape, type = _shaped(result)
            at = maps[inputs + k]
            if not all(isinstance(e, AffineDimExpr) for e in at.results):
                raise Inexpressible(
                    "an output that is written at other places than its loops", "permute the loops alone"
                )
            mine = [e.position for e in at.results if isinstance(e, AffineDimExpr)]
            if len(set(mine)) != len(mine) or any(not parallel[d] for d in mine):
                raise Inexpressible("an output with the same loop twice, or with one of a reduction")
            if any(p and d not in mine for d, p in enumerate(parallel)) and any(
                n > 1 for d, n in enumerate(extents) if d not in mine and parallel[d]
            ):
                raise Inexpressible("an output without one of the parallel loops", "make it a reduction")
            name = result.name_hint or op.name.rpartition(".")[2]
            self.tensors[result] = self.result(op, name, k, maps, mine, extents, block, inputs, (shape, type))

    def result(
        self, op: Operation, name: str, k: int, maps: list[AffineMap], mine: list[int], extents: list[int],
        block: Block, inputs: int, of: tuple[tuple[int, ...], str],
    ) -> Tensor:  # fmt: skip
        shape, type = of
        loops = [f"r{d}" for d in range(len(extents))]
        for dim, d in zip(_dims(len(shape)), mine, strict=True):
            loops[d] = dim
        reduced = [d for d in range(len(extents)) if d not in mine]
        yielded = block.last_op
        if yielded is None or not yielded.operands:
            raise Inexpressible("a body that yields nothing")

        def inside(v: SSAValue, loops: Sequence[str] = loops) -> str:
            return self.body(block, self.elements(op, maps, block, loops), loops)(v)

        if not reduced:
            value = inside(yielded.operands[k])
            return self.stage(name, shape, type, lambda _: value)
        own = block.args[inputs + k]
        first = self.elements(op, maps, block, loops)[own]
        if any(block.args[inputs + j] is not own and _used(block.args[inputs + j]) for j in range(len(op.results))):
            raise Inexpressible("reductions that read each other", "write an operation for each")
        combined = _combination(yielded.operands[k], own)
        if combined is not None:
            reduction, element = combined
            spans = [range(extents[d]) for d in reduced]
            if any(t.constant for o in op.operands if (t := self.tensors.get(o))) and _few(spans):
                places = (_at(loops, dict(zip(reduced, place, strict=True))) for place in product(*spans))
                rest = written_out(reduction, [inside(element, place) for place in places])
            else:
                ranges = " ".join(f"for {loops[d]} in range({extents[d]})" for d in reduced)
                rest = f"{reduction}({inside(element)} {ranges})"
            value = joined(reduction, first, rest, type)
            return self.stage(name, shape, type, lambda _: value)
        stage = fresh(name, self.taken)
        dims = list(reversed(_dims(len(shape))))
        elements = self.elements(op, maps, block, loops) | {own: f"{stage}({', '.join(dims)})"}
        domain = {loops[d]: [0, extents[d]] for d in reversed(reduced)}
        update = {"domain": domain, "at": dims, "value": self.body(block, elements, loops)(yielded.operands[k])}
        self.stages.append({"name": stage, "dims": dims, "value": first, "type": type, "updates": [update]})
        return Tensor(shape, type, _access(stage), stage)

    def elements(
        self, op: Operation, maps: Sequence[AffineMap], block: Block, loops: Sequence[str]
    ) -> dict[SSAValue, str]:
        """The arguments of a body: of every operand the element that its map says."""
        found: dict[SSAValue, str] = {}
        for argument, operand, at in zip(block.args, op.operands, maps, strict=False):
            tensor = self.tensors.get(operand)
            found[argument] = (
                self.scalars[operand] if tensor is None else tensor.read([_index(e, loops) for e in at.results])
            )
        return found

    def body(
        self, block: Block, values: Mapping[SSAValue, str], loops: Sequence[str] = ()
    ) -> Callable[[SSAValue], str]:
        """The expressions of values in a body, whose arguments are `values`."""
        known = dict(values)

        def value(v: SSAValue) -> str:
            if v in self.scalars and v not in known:
                return self.scalars[v]
            if v not in known:
                raise Inexpressible(f"the value {v.name_hint or ''} of a body")
            return known[v]

        for op in block.ops:
            if op.name in ("linalg.yield", "tensor.yield"):
                continue
            try:
                if op.name == "linalg.index":
                    dim: Any = op.properties["dim"]
                    known[op.results[0]] = loops[dim.value.data]
                elif len(op.results) == 1 and is_scalar(op.results[0]) and not op.regions:
                    known[op.results[0]] = expression(op, [value(o) for o in op.operands])
                else:
                    raise Inexpressible("an operation that is not of scalars")
            except Inexpressible as error:
                place = self.text.place(op)
                raise Inexpressible(f"in its body, {place}: {error}", error.hint) from None
        return value


def _dims(rank: int) -> tuple[str, ...]:
    """The dims of a tensor, in its order."""
    return tuple(f"d{k}" for k in range(rank))


def _moved(index: str, by: int) -> str:
    return index if by == 0 else f"{index} {'+' if by > 0 else '-'} {abs(by)}"


def _table(elements: Array, type: str) -> Read:
    """The number at an index, where it is one; else a choice."""
    numbers = [literal(n, type) for n in elements.ravel().tolist()]

    def read(at: Sequence[str]) -> str:
        if all(i.isdigit() for i in at):
            return numbers[int(np.ravel_multi_index([int(i) for i in at], elements.shape))]
        return f"mux({_joined(at, elements.shape)}, {', '.join(numbers)})"

    return read


def _access(name: str) -> Read:
    return lambda at: f"{name}({', '.join(reversed(at))})"


def _shaped(value: SSAValue) -> tuple[tuple[int, ...], str]:
    """Shape and element type of a tensor whose sizes are known. Raises Inexpressible."""
    t = value.type
    if not isinstance(t, TensorType):
        raise Inexpressible(f"a value of type {t}", "tensors and scalars are expressed")
    shape = tuple(t.get_shape())
    if any(n < 1 for n in shape):
        raise Inexpressible(f"the type {t}: its sizes have to be known, and at least 1", "write them as numbers")
    if len(shape) > MOST_DIMS:
        raise Inexpressible(f"the type {t}: a tensor has at most {MOST_DIMS} dims")
    return shape, type_name(t.element_type)


def _extents(op: Operation, maps: Sequence[AffineMap]) -> list[int]:
    """The number of iterations of every loop, from the first operand that a loop is a dim of."""
    found: dict[int, int] = {}
    for operand, at in zip(op.operands, maps, strict=True):
        if isinstance(operand.type, TensorType):
            for e, n in zip(at.results, operand.type.get_shape(), strict=True):
                if isinstance(e, AffineDimExpr):
                    found.setdefault(e.position, n)
    count = maps[0].num_dims if maps else 0
    if any(d not in found for d in range(count)):
        raise Inexpressible("a loop whose length no operand tells")
    return [found[d] for d in range(count)]


_OPERATORS = {
    AffineBinaryOpKind.Add: "+",
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.Mod: "%",
    AffineBinaryOpKind.FloorDiv: "//",
}


def _index(e: AffineExpr, loops: Sequence[str]) -> str:
    match e:
        case AffineDimExpr():
            return loops[e.position]
        case AffineConstantExpr():
            return str(e.value) if e.value >= 0 else f"({e.value})"
        case AffineBinaryOpExpr() if e.kind == AffineBinaryOpKind.CeilDiv:
            return f"(-(-{_index(e.lhs, loops)} // {_index(e.rhs, loops)}))"
        case AffineBinaryOpExpr():
            return f"({_index(e.lhs, loops)} {_OPERATORS[e.kind]} {_index(e.rhs, loops)})"
    raise Inexpressible(f"the index {e}")


def _combination(value: SSAValue, own: SSAValue) -> tuple[str, SSAValue] | None:
    """The reduction that the body is, and its element; None where it is more than one operation of what it has."""
    op = value.owner
    if not isinstance(op, Operation) or op.name not in REDUCTIONS or own not in op.operands:
        return None
    if len(tuple(own.uses)) != 1 or type_name(own.type) == "bool":
        return None
    element = op.operands[1] if op.operands[0] is own else op.operands[0]
    return REDUCTIONS[op.name], element


def _few(spans: Sequence[range]) -> bool:
    return math.prod(map(len, spans)) <= MOST_WRITTEN_OUT


def _at(loops: Sequence[str], numbers: Mapping[int, int]) -> list[str]:
    return [str(numbers[d]) if d in numbers else loop for d, loop in enumerate(loops)]


def _used(value: SSAValue) -> bool:
    return bool(tuple(value.uses))


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> set[int]:
    """The dims of a slice that its result has: of those of one element some may be left out, the last ones that can."""
    kept: list[int] = []
    for k, n in enumerate(sizes):
        if len(kept) < len(shape) and shape[len(kept)] == n:
            kept.append(k)
        elif n != 1:
            raise Inexpressible("a slice whose result has another shape")
    if len(kept) != len(shape):
        raise Inexpressible("a slice whose result has another shape")
    return set(kept)


def _joined(at: Sequence[str], extents: Sequence[int]) -> str:
    """One index of several dims, the last one the fastest."""
    text = at[0]
    for index, n in zip(at[1:], extents[1:], strict=True):
        text = f"(({text}) * {n} + {index})"
    return text


def _parted(index: str, extents: Sequence[int]) -> list[str]:
    """Several indices of one."""
    found: list[str] = []
    below = 1
    for k, n in reversed(list(enumerate(extents))):
        part = f"(({index}) // {below})" if below > 1 else f"({index})"
        found.insert(0, part if k == 0 else f"({part} % {n})")
        below *= n
    return found
