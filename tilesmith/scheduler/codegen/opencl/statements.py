"""Statements of the loop program as lines of OpenCL C."""

from __future__ import annotations

from typing import assert_never

from tilesmith.scheduler.codegen.c.addresses import scattered
from tilesmith.scheduler.codegen.c.control import advanced, opened, peeled
from tilesmith.scheduler.codegen.opencl import types
from tilesmith.scheduler.codegen.opencl.operands import Operands
from tilesmith.scheduler.codegen.opencl.operations import expression
from tilesmith.scheduler.codegen.opencl.work_items import ALONE, Shared
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.index import divide
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
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
    RowPointer,
    Scatter,
    Scratch,
    Statement,
    Store,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.values import Buffer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL

BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"


class Statements:
    """Prints the statements of a kernel. `written` are the arguments that kernels may write, by their pointers; the
    iterations of the loop `shared` are those of all work-groups, those of the `items` of the work-items of each. With
    `local` the buffers of a work-group are in local memory."""

    def __init__(
        self,
        operands: Operands,
        written: frozenset[str],
        shared: Loop | None,
        items: Shared = ALONE,
        local: bool = False,
    ) -> None:
        self.operands = operands
        self.symbols = operands.symbols
        self.written = written
        self.shared = shared
        self.items = items
        self.local = local

    def block(self, statements: Body) -> list[str]:
        """The lines of a block."""
        return [line for s in statements for line in self._lines(s)]

    def inner(self, body: Body) -> list[str]:
        """The lines of a block inside of another."""
        return ["    " + line if line else line for line in self.block(body)]

    def _lines(self, s: Statement) -> list[str]:
        text, bare = self.symbols.text, self.symbols.bare
        match s:
            case Let():
                return [f"const long {s.name} = {bare(s.value)};"]
            case MutableIndex():
                return [f"long {s.name} = {bare(s.value)};"]
            case AssignIndex():
                return [f"{s.name} = {bare(s.value)};"]
            case Define():
                own = "long" if isinstance(s.op, ops.ToIndex) else types.type_of(s.result)
                return [f"const {own} {s.result.name} = {expression(self.operands, s)};"]
            case Accumulator():
                return [f"{types.type_of(s.result)} {s.result.name} = {self._fitted(s.start, s.result)};"]
            case Assign():
                return [f"{s.target.name} = {self._fitted(s.value, s.target)};"]
            case RowPointer():
                return [f"{self.pointer(s.buffer)}{s.result} = {s.buffer.pointer} + {text(s.offset)};"]
            case Store() | StreamAligned() | StreamLine():  # nothing streams: nothing is held back, or left to others
                return self._store(s)
            case Scatter():
                return scattered(self.operands, s)
            case PeelVectors():
                return peeled(self.symbols, s)
            case Loop():
                return self._loop(s)
            case PeeledLoop():
                return self._peeled(s)
            case If():
                conditions = [f"{text(x)} >= 0" for x in s.nonnegative]
                if s.condition is not None:
                    conditions.append(self.operands.name(s.condition))
                lines = [f"if ({' && '.join(conditions)}) {{", *self.inner(s.body)]
                return [*lines, *(["} else {", *self.inner(s.otherwise)] if s.otherwise else []), "}"]
            case Comment():
                return ["", f"/* {s.text} */"]
            case Bind():
                return self._bind(s)
            case Fence() | Prefetch() | PrefetchEnds():
                return []
            case OverflowGuard() | Scratch() | Allocate() | Free() | CopyOut() | Apart() | Ordered():
                raise InternalError(f"a kernel has a step of the host: {type(s).__name__}")
            case Function() | Invoke():
                raise InternalError(f"a backend without functions is given one: {type(s).__name__}")
            case Compute() | FusedRow():
                raise InternalError(f"a computation is not expanded: {type(s).__name__}")
            case _:
                assert_never(s)

    def pointer(self, b: Buffer) -> str:
        """The type of pointers into a buffer."""
        const = "const " if b.where == "argument" and b.pointer not in self.written else ""
        space = "local" if self.local and b.where == "thread" else "global"
        return f"{space} {const}{types.element(b.type)} *"

    # values ------------------------------------------------------------

    def _fitted(self, v: Value, target: Value) -> str:
        o = self.operands
        if target.lanes == 1:
            return o.name(v)
        return o.mask(v, target.mask_bits, target.lanes) if target.type == BOOL else o.wide(v, target.lanes)

    def _stored(self, v: Value) -> str:
        """A vector as it is in memory."""
        if v.type != BOOL:
            return v.name
        return f"as_uchar{v.lanes}({self.operands.mask(v, 8, v.lanes)} & (char{v.lanes})(1))"

    def _store(self, s: Store | StreamAligned | StreamLine) -> list[str]:
        v, text = s.value, self.symbols.text
        if v.lanes == 1:
            line = f"{s.row}[{self.symbols.bare(s.index)}] = {self.operands.name(v)};"
        else:
            line = f"vstore{v.lanes}({self._stored(v)}, 0, {s.row} + {text(s.index)});"
        if isinstance(s, StreamLine) or s.within is None:
            return [line]
        lo, hi = s.within
        inside = f"if ({text(s.index)} >= {text(lo)} && {text(s.index + (v.lanes - 1))} <= {text(hi)}) {line}"
        if v.lanes == 1:
            return [inside]
        one = " & 1" if v.type == BOOL else ""
        lanes = []
        for n in range(v.lanes):
            at = s.index + n
            put = f"{s.row}[{self.symbols.bare(at)}] = {self.operands.lane(v, n)}{one};"
            lanes.append(f"    if ({text(at)} >= {text(lo)} && {text(at)} <= {text(hi)}) {put}")
        return [inside, "else {", *lanes, "}"]

    # loops ------------------------------------------------------------

    def _loop(self, s: Loop) -> list[str]:
        bare, text = self.symbols.bare, self.symbols.text
        lines = ["", f"/* {s.comment} */"] if s.comment else []
        first, condition = bare(s.lo), f"{s.var} <= {bare(s.hi)}"
        if s is self.shared:
            count = bare(divide(s.hi - s.lo, s.step.const) + 1)
            lines.append(f"const long ts_count = {count}, ts_group = get_group_id(0);")
            ends = [f"ts_count * {g} / (long)get_num_groups(0)" for g in ("ts_group", "(ts_group + 1)")]
            step = "" if s.step.const == 1 else f"{s.step.const} * "
            at, end = (f"{text(s.lo)} + {step}({x})" for x in ends)
            first, condition = at, f"{s.var} < {end}"
        step = advanced(self.symbols, s)
        together = s in self.items.rows
        if together:
            first, step = f"{first} + (long)get_local_id(0)", f"{s.var} += (long)get_local_size(0)"
        lines.append(f"for (long {s.var} = {first}; {condition}; {step}) {{")
        lines += opened(self.symbols, s)
        wait = [BARRIER] if together and self.items.barriers else []
        return [*lines, *self.inner(s.body), "}", *wait]

    def _peeled(self, s: PeeledLoop) -> list[str]:
        """The body once: the loop is at its first end, at the middle, and at its last end."""
        bare = self.symbols.bare
        from_, to = s.skip
        lines = ["", f"/* {s.comment} */"] if s.comment else []
        return [
            *lines,
            f"for (long {s.var} = {bare(s.lo)}, {s.var}_met = 0; ; {s.var}++) {{",
            f"    if (!{s.var}_met && {s.var} == {bare(from_)}) {{",
            f"        {s.var}_met = 1;",
            f"        {s.var} = {bare(to)};",
            *("    " + line for line in self.inner(s.middle)),
            "    }",
            f"    if ({s.var} > {bare(s.hi)}) break;",
            *self.inner(s.body),
            "}",
        ]

    # memory ------------------------------------------------------------

    def _bind(self, s: Bind) -> list[str]:
        mine = f"mine_{s.scratch.name}"
        lines = [f"global char *const {mine} = {s.scratch.name} + {s.scratch.name}_bytes * (long)get_group_id(0);"]
        if self.local:
            lines = [f"local char *const {mine} = {s.scratch.name};"]
        for m in s.scratch.buffers:
            own = self.pointer(m.buffer)
            lines.append(f"{own}restrict const {m.buffer.pointer} = ({own})({mine} + {m.buffer.pointer}_at);")
        return lines
