"""Interpreter of the loop IR in NumPy: what a program computes, statement by statement, whatever pass it has been
through. It checks what the verifier cannot: that every access stays inside of its buffer, and that no two iterations of
a parallel loop touch an element that one of them writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np

from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.interpreter_memory import Array, Block, Memory
from tilesmith.scheduler.ir.loop.interpreter_values import Values
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    Apart,
    Assign,
    AssignIndex,
    Bind,
    Body,
    Comment,
    CopyOut,
    Define,
    Extents,
    Fence,
    Free,
    Function,
    If,
    Invoke,
    Let,
    Loop,
    MutableIndex,
    Ordered,
    OverflowGuard,
    PeeledLoop,
    PeelVectors,
    Prefetch,
    PrefetchEnds,
    Program,
    RowPointer,
    Scatter,
    Scratch,
    Statement,
    Store,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.types import UINT8

Number: TypeAlias = int | float | bool


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the caller: its elements, and the first index of each dim."""

    elements: Array
    lo: tuple[int, ...]


def execute(program: Program, images: Mapping[str, Image], params: Mapping[str, Number]) -> None:
    """A call: writes the outputs among `images`, by the C names of the arguments. `params` are by name.

    Raises MemoryFault where the program leaves a buffer, or races; ValueError where an image does not hold what is
    required of it.
    """
    _Machine(program, images, params).run()


class _Machine:
    def __init__(self, program: Program, images: Mapping[str, Image], params: Mapping[str, Number]) -> None:
        self.program = program
        self.memory = Memory()
        self.values = Values(self.memory, program.line_bytes)
        self.at, self.symbols, self.pointers = self.values.at, self.values.symbols, self.memory.pointers
        self.functions: dict[str, Function] = {}
        self.layouts: dict[str, Scratch] = {}  # that those of a function stand for
        for p in program.params:
            self.values.known[p.c_name] = semantics.constant(params[p.name], p.type)
            if p.type.is_integer:
                self.symbols[f"param.{p.name}"] = int(params[p.name])
        for a in program.arguments:
            image = images[a.c_name]
            strides = [s // image.elements.itemsize for s in image.elements.strides]
            for d, lo, extent, stride in zip(a.dims, image.lo, image.elements.shape, strides, strict=True):
                self.symbols |= {f"{a.c_name}.origin.{d}": lo, f"{a.c_name}.extent.{d}": extent}
                self.symbols[f"{a.c_name}.stride.{d}"] = stride
                for which, n in (("min", lo), ("extent", extent)):
                    self.symbols.setdefault(f"{a.name}.{which}.{d}", n)
            flat = _flat(image.elements)
            self.pointers[f"{a.c_name}_data"] = (Block(a.c_name, flat), 0)

    def run(self) -> None:
        p = self.program
        self.block(p.derivation)
        for one in p.derived:
            self.symbols[f"param.{one.name}"] = int(self.values.known[one.c_name])
        self.block(p.bounds)
        for name, box in p.required:
            argument = next(a for a in p.arguments if a.name == name)
            for d, (lo, hi) in zip(argument.dims, box, strict=True):
                first = self.symbols[f"{argument.c_name}.origin.{d}"]
                last = first + self.symbols[f"{argument.c_name}.extent.{d}"] - 1
                if self.at(lo) < first or self.at(hi) > last:
                    raise ValueError(f"'{name}' needs {self.at(lo)} to {self.at(hi)} along {d}")
        self.block(p.body)

    # statements ------------------------------------------------------------

    def block(self, body: Body) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        match s:
            case Define():
                with np.errstate(all="ignore"):
                    value = self.values.operation(s.result, s.op)
                if isinstance(s.op, ops.ToIndex):
                    self.symbols[s.result.name] = int(value)
                self.values.known[s.result.name] = value
            case Let() | MutableIndex() | AssignIndex():
                self.symbols[s.name] = self.at(s.value)
            case Accumulator():
                self.values.known[s.result.name] = self.values.of(s.start, s.result.lanes).copy()
            case Assign():
                self.values.known[s.target.name] = self.values.of(s.value, s.target.lanes).copy()
            case RowPointer():
                block, start = self.pointers[s.buffer.pointer]
                self.pointers[s.result] = (block, start + self.at(s.offset))
            case Store() | Scatter() | StreamAligned() | StreamLine():
                self.store(s)
            case PeelVectors():
                self.peel(s)
            case Loop():
                self.loop(s)
            case PeeledLoop():
                self.peeled(s)
            case Apart():
                self.block(s.body)
            case Ordered():  # after all that iterations before have done
                self.memory.ordered = True
                self.block(s.body)
                self.memory.ordered = False
            case If():
                holds = all(self.at(x) >= 0 for x in s.nonnegative)
                holds = holds and (s.condition is None or bool(self.values.of(s.condition, 1)))
                self.block(s.body if holds else s.otherwise)
            case Function():
                self.functions[s.name] = s
            case Invoke():
                self.invoke(s)
            case Scratch():
                for memory in s.buffers:
                    self.lay_out(memory)
            case Bind():
                given = self.layouts.get(s.scratch.name, s.scratch)
                for own, memory in zip(s.scratch.buffers, given.buffers, strict=True):
                    self.allocate(own.buffer, memory)
            case Allocate():
                self.lay_out(s.memory)
                self.allocate(s.memory.buffer, s.memory)
                if s.place is not None and self.same_points(s.memory, s.place):
                    self.put(s.memory.buffer, s.place)
            case Free():
                del self.pointers[s.buffer.pointer]
            case CopyOut():
                self.copy_out(s.output, s.source)
            case Comment() | Fence() | Prefetch() | PrefetchEnds() | OverflowGuard():
                pass
            case Compute() | FusedRow():
                raise NotImplementedError(f"{type(s).__name__} is run after the pass 'rows' has expanded it")
            case _:
                assert_never(s)

    def invoke(self, s: Invoke) -> None:
        f = self.functions[s.function]
        self.symbols.update(zip(f.symbols, [self.at(x) for x in s.symbols], strict=True))
        self.layouts.update(zip([own.name for own in f.scratch], s.scratch, strict=True))
        given = [self.pointers[b.pointer] for b in s.buffers]
        self.pointers.update(zip([b.pointer for b in f.buffers], given, strict=True))
        self.block(f.body)
        for b in f.buffers:
            del self.pointers[b.pointer]

    def peel(self, s: PeelVectors) -> None:
        first = -(-self.at(s.lo) // s.align)
        fits, step = (self.at(s.end) - s.lanes) // s.align, s.lanes // s.align
        none = fits < first or any(self.at(x) < 0 for x in s.given)
        last = first - step if none else fits
        ends = (first, last, first * s.align, last * s.align + s.lanes)
        self.symbols.update(zip((s.first, s.last, s.from_, s.to), ends, strict=True))

    def loop(self, s: Loop) -> None:
        if s.parallel:
            self.memory.watch()
        at, hi, step = self.at(s.lo), self.at(s.hi), self.at(s.step)
        while at <= hi:
            if s.skip is not None and self.at(s.skip[0]) <= at < self.at(s.skip[1]):
                at = self.at(s.skip[1])
                continue
            self.symbols[s.var] = at
            if s.parallel:
                self.memory.iteration = at
            if s.seen is not None:
                seen = at if s.seen.first is None else max(at, self.at(s.seen.first))
                last = None if s.seen.last is None else self.at(s.seen.last)
                self.symbols[s.seen.name] = seen if last is None or at < last else last
            self.block(s.body)
            at += step
        if s.parallel:
            self.memory.iteration = None

    def peeled(self, s: PeeledLoop) -> None:
        lo, from_, to, hi = (self.at(x) for x in (s.lo, *s.skip, s.hi))
        for at in range(lo, from_):
            self.symbols[s.var] = at
            self.block(s.body)
        self.block(s.middle)
        for at in range(to, hi + 1):
            self.symbols[s.var] = at
            self.block(s.body)

    # memory ------------------------------------------------------------

    def lay_out(self, m: Extents) -> None:
        """The strides of a buffer."""
        elements = 1
        for d, extent in zip(m.order, m.extents, strict=True):
            for name in m.buffer.stride[d].symbols():
                self.symbols[name] = elements
            elements *= self.at(extent)

    def allocate(self, b: Buffer, m: Extents) -> None:
        """The memory of a buffer, of those extents."""
        size = (int(np.prod([self.at(x) for x in m.extents], dtype=np.int64)) if m.extents else 1) + m.buffer.room
        rubbish = 85 if m.buffer.type.kind != "float" else np.nan  # what nothing has written yet
        self.pointers[b.pointer] = (Block(b.stage, np.full(size, rubbish, _stored(b))), 0)

    def same_points(self, m: Extents, place: Buffer) -> bool:
        """True if an image has exactly the points of a buffer."""
        own = (*m.buffer.origin, *(m.extents[m.order.index(d)] for d in range(len(m.order))))
        return [self.at(x) for x in own] == [self.at(x) for x in (*place.origin, *place.extent)]

    def put(self, buffer: Buffer, place: Buffer) -> None:
        """The memory of a buffer is that of an image."""
        for stride, theirs in zip(buffer.stride, place.stride, strict=True):
            self.symbols.update(dict.fromkeys(stride.symbols(), self.at(theirs)))
        self.pointers[buffer.pointer] = self.pointers[place.pointer]

    def store(self, s: Store | Scatter | StreamAligned | StreamLine) -> None:
        n = s.value.lanes
        lanes: Array = np.arange(n)
        value = self.values.of(s.value, n).reshape(n)
        chosen = np.full(n, True)
        match s:
            case Scatter():
                at = self.values.places(s.offsets, n)
                if s.within is not None:
                    index = self.values.lanes(s.offsets[0].lane, n)
                    chosen = (index >= self.at(s.within[0])) & (index <= self.at(s.within[1]))
            case Store():
                at = self.at(s.index) + lanes
                if s.within is not None:
                    chosen = (at >= self.at(s.within[0])) & (at <= self.at(s.within[1]))
            case StreamLine():
                at = self.at(s.index) + lanes
                moved = self.at(s.moved)
                chosen = lanes >= moved if moved > 0 else lanes < n + moved
            case StreamAligned():
                _, start = self.pointers[s.row]
                first_lane = self.at(s.index)
                at = (start + first_lane) // n * n - start + lanes
                if s.within is not None:
                    first, end = self.at(s.within[0]) - first_lane, self.at(s.within[1]) - first_lane + 1
                    chosen = (lanes >= first) & (lanes < end)
                both = np.concatenate([self.values.of(s.before, n), value])
                value = both[self.values.of(s.picks, n).astype(np.int64) % (2 * n)]
        self.memory.write(s.row, at[chosen], value[chosen])

    def copy_out(self, output: Buffer, source: Buffer) -> None:
        lo = [self.at(x) for x in output.origin]
        shape = [self.at(x) for x in output.extent]
        grid = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)

        def places(b: Buffer) -> Array:
            parts = (
                (first + at - self.at(origin)) * self.at(stride)
                for first, at, origin, stride in zip(lo, grid, b.origin, b.stride, strict=True)
            )
            return np.asarray(sum(parts, np.zeros(grid.shape[1], np.int64)))

        block, at = self.memory.access(source.pointer, places(source))
        self.memory.write(output.pointer, places(output), block.elements[at])


def _stored(b: Buffer) -> np.dtype:
    return UINT8.numpy if b.type.kind == "bool" else b.type.numpy


def _flat(a: Array) -> Array:
    """The elements of an image in the order of memory, bools as bytes: the same memory."""
    if a.dtype == np.bool_:
        a = a.view(np.uint8)
    order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
    flat = a.transpose(order).reshape(-1)
    if not np.shares_memory(flat, a):
        raise ValueError("an image has no gaps between its elements")
    return flat
