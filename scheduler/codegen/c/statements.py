"""Statements of the loop program as lines of C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from scheduler.codegen.c.addresses import lane_index, offset
from scheduler.codegen.c.operands import Operands
from scheduler.codegen.c.operations import expression
from scheduler.codegen.c.types import Symbols, element
from scheduler.ir.index import divide
from scheduler.ir.loop import ops
from scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
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
    If,
    Let,
    Loop,
    MutableIndex,
    OverflowGuard,
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
from scheduler.ir.loop.traversal import walk
from scheduler.ir.loop.values import Buffer, Value
from scheduler.ir.pipeline.types import BOOL, UINT8


class Statements:
    """Prints statements. `blocks` counts the blocks of memory that the function has in use, at most."""

    def __init__(self, symbols: Symbols, operands: Operands) -> None:
        self.symbols = symbols
        self.operands = operands
        self.blocks = 0
        self.rows = 0  # that have numbers of their own
        self._scratch: dict[str, str] = {}

    def block(self, statements: Body, indent: int) -> list[str]:
        """The lines of a block."""
        pad = "    " * indent
        lines: list[str] = []
        for s in statements:
            lines += [pad + line if line else line for line in self._lines(s, indent)]
        return lines

    def _lines(self, s: Statement, indent: int) -> list[str]:
        text, bare = self.symbols.text, self.symbols.bare
        match s:
            case Let():
                return [f"const int64_t {s.name} = {bare(s.value)};"]
            case OverflowGuard():
                tests = [f"{text(x)} < INT32_MIN" for x in s.low] + [f"{text(x)} > INT32_MAX" for x in s.high]
                tests += [f"{text(x)} == INT64_MIN" for x in s.wide]
                return [f"if ({' || '.join(tests)}) return TILESMITH_E_ARGUMENT;"]
            case MutableIndex():
                return [f"int64_t {s.name} = {bare(s.value)};"]
            case AssignIndex():
                return [f"{s.name} = {bare(s.value)};"]
            case Define():
                c_type = "int64_t" if isinstance(s.op, ops.ToIndex) else self.operands.type_of(s.result)
                return [f"const {c_type} {s.result.name} = {expression(self.operands, s)};"]
            case Accumulator():
                return [self._accumulator(s)]
            case Assign():
                return [f"{s.target.name} = {self._fitted(s)};"]
            case RowPointer():
                const = "" if s.buffer.where in ("thread", "call") or self._written(s.buffer) else "const "
                return [f"{const}{element(s.buffer.type)} *const {s.result} = {s.buffer.pointer} + {text(s.offset)};"]
            case Store():
                return self._store(s)
            case Scatter():
                return self._scatter(s)
            case StreamAligned():
                return [self._stream_aligned(s)]
            case StreamLine():
                function = self.operands.function("past", s.value.type, s.value.lanes)
                return [f"{function}({self._place(s)}, {s.value.name}, {bare(s.moved)}, {s.part});"]
            case PeelVectors():
                return self._split(s)
            case Loop():
                return self._loop(s, indent)
            case If():
                conditions = [f"{text(x)} >= 0" for x in s.nonnegative]
                if s.condition is not None:
                    conditions.append(self.operands.name(s.condition))
                lines = [f"if ({' && '.join(conditions)}) {{", *self._inner(s.body)]
                return [*lines, *(["} else {", *self._inner(s.otherwise)] if s.otherwise else []), "}"]
            case Comment():
                return ["", f"/* {s.text} */"]
            case Scratch():
                return self._layout(s)
            case Bind():
                return self._bind(s)
            case Allocate():
                return self._allocate(s.memory)
            case Free():
                return [f"tilesmith_give(slots, {s.buffer.pointer});"]
            case CopyOut():
                return self._copy_out(s)
            case Fence():
                return ["tilesmith_fence();"]
            case PrefetchEnds():
                return [f"tilesmith_ask_ends({s.row} + {text(s.first)}, {s.row} + {text(s.last + 1)});"]
            case Prefetch():
                return [f"__builtin_prefetch({s.row} + {text(s.index)}{', 0, 2' if s.far else ''});"]
            case _:
                assert_never(s)

    def _inner(self, body: Body) -> list[str]:
        return ["    " + line if line else line for line in self.block(body, 0)]

    def _written(self, buffer: Buffer) -> bool:
        return buffer.where == "argument" and buffer.stage in self.outputs

    outputs: frozenset[str] = frozenset()

    # values ------------------------------------------------------------

    def _accumulator(self, s: Accumulator) -> str:
        r, o = s.result, self.operands
        if r.lanes == 1:
            start = o.name(s.start)
        else:
            start = o.mask(s.start, r.mask_bits, r.lanes) if r.type == BOOL else o.wide(s.start, r.lanes)
        return f"{o.type_of(r)} {r.name} = {start};"

    def _fitted(self, s: Assign) -> str:
        o, t = self.operands, s.target
        if t.lanes == 1:
            return o.name(s.value)
        return o.mask(s.value, t.mask_bits, t.lanes) if t.type == BOOL else o.wide(s.value, t.lanes)

    def _place(self, s: Store | StreamAligned | StreamLine) -> str:
        return f"{s.row} + {self.symbols.text(s.index)}"

    def _store(self, s: Store) -> list[str]:
        o, v = self.operands, s.value
        if v.lanes == 1:
            line = f"{s.row}[{self.symbols.bare(s.index)}] = {o.name(v)};"
            if s.within is None:
                return [line]
            place, lo, hi = (self.symbols.text(x) for x in (s.index, *s.within))
            return [f"if ({place} >= {lo} && {place} <= {hi}) {line}"]
        t = UINT8 if v.type == BOOL else v.type
        target = o.unaligned(t.kind, t.bits, v.lanes)
        value = self._stored(v)
        if s.within is not None:
            return [f"{o.function('part', t, v.lanes)}({self._place(s)}, {value}{self._ends(s)});"]
        return [f"*({target} *)({self._place(s)}) = {value};"]

    def _ends(self, s: Store | StreamAligned) -> str:
        """Arguments that say which lanes are written."""
        if s.within is None:
            return ""
        lo, hi = (self.symbols.bare(x) for x in (s.within[0] - s.index, s.within[1] - s.index + 1))
        return f", {lo}, {hi}"

    def _scatter(self, s: Scatter) -> list[str]:
        o, v = self.operands, s.value
        one = " & 1" if v.type == BOOL else ""
        lines = [f"{s.row}[{offset(o, s.offsets, n)}] = {o.lane(v, n)}{one};" for n in range(v.lanes)]
        if s.within is None:
            return lines
        lo, hi = (self.symbols.text(x) for x in s.within)
        at = [lane_index(o, s.offsets[0].lane, n) for n in range(v.lanes)]
        return [f"if ({i} >= {lo} && {i} <= {hi}) {line}" for i, line in zip(at, lines, strict=True)]

    def _stream_aligned(self, s: StreamAligned) -> str:
        o, v = self.operands, s.value
        function = o.function("stream" if s.within is None else "ends", v.type, v.lanes)
        lanes = f"{s.before.name}, {v.name}, {s.picks.name}, {self.symbols.bare(s.apart)}{self._ends(s)}"
        return f"{function}({self._place(s)}, {lanes});"

    def _stored(self, v: Value) -> str:
        """A vector as it is in memory."""
        if v.type != BOOL:
            return v.name
        return f"({self.operands.vector('uint', 8, v.lanes)})({self.operands.mask(v, 8, v.lanes)} & 1)"

    # loops ------------------------------------------------------------

    def _split(self, s: PeelVectors) -> list[str]:
        bare = self.symbols.bare
        first, fits, scale = bare(s.lo), bare(s.end - s.lanes), ""
        if s.align > 1:
            shift = s.align.bit_length() - 1
            first, fits = f"({bare(s.lo + (s.align - 1))}) >> {shift}", f"({fits}) >> {shift}"
            scale = f"{s.align} * "
        last = f"tilesmith_last_vector({s.first}, {fits}, {s.lanes // s.align})"
        if s.given:
            conditions = " && ".join(f"{self.symbols.text(x)} >= 0" for x in s.given)
            last = f"{conditions} ? {last} : {s.first} - {s.lanes // s.align}"
        return [
            f"const int64_t {s.first} = {first};",
            f"const int64_t {s.last} = {last};",
            f"const int64_t {s.from_} = {scale}{s.first}, {s.to} = {scale}{s.last} + {s.lanes};",
        ]

    def _loop(self, s: Loop, indent: int) -> list[str]:
        bare, text = self.symbols.bare, self.symbols.text
        lines = ["", f"/* {s.comment} */"] if s.comment else []
        if s.parallel:
            lines.append(f"TILESMITH_PARALLEL(tilesmith_share({bare(divide(s.hi - s.lo, s.step.const) + 1)}))")
        step = f"{s.var}++" if s.step.is_const and s.step.const == 1 else f"{s.var} += {bare(s.step)}"
        lines.append(f"for (int64_t {s.var} = {bare(s.lo)}; {s.var} <= {bare(s.hi)}; {step}) {{")
        if s.skip is not None:
            from_, to = (text(x) for x in s.skip)
            met = (
                f"{s.var} == {from_}"
                if s.step.is_const and s.step.const == 1
                else f"{s.var} >= {from_} && {s.var} < {to}"
            )
            lines.append(f"    if ({met} && ({s.var} = {to}) > {bare(s.hi)}) break;")
        if s.seen is not None:
            at = f"tilesmith_max({s.var}, {text(s.seen.first)})" if s.seen.first is not None else s.var
            last = None if s.seen.last is None else text(s.seen.last)
            seen = at if last is None else f"{s.var} < {last} ? {at} : {last}"
            lines.append(f"    const int64_t {s.seen.name} = {seen};")
        before = self._numbers(s)
        lines += [*self._inner(s.body), "}"]
        for lanes, _ in before:
            del self.operands.kept[lanes]
        return [*(line for _, line in before), *lines]

    def _numbers(self, s: Loop) -> list[tuple[int, str]]:
        """Ahead of a row of vectors: the numbers of each size of vectors that `exp` takes in it."""
        o, found = self.operands, []
        for r in _exponentials(s.body) if s.seen is not None and not s.parallel else ():
            if r.lanes > 1 and r.lanes not in o.kept and o.functions.in_vectors("exp", r.type):
                name, made = f"exp{self.rows}_x{r.lanes}", o.numbers(r.type, r.lanes, keep=True)
                found.append((r.lanes, f"const {made.split('(')[0]}_t {name} = {made};"))
                o.kept[r.lanes] = name
        self.rows += bool(found)
        return found

    # memory ------------------------------------------------------------

    def _strides(self, memory: Extents, padded: bool) -> tuple[list[str], str]:
        """Lines that define the strides of a buffer, and the text of its number of elements."""
        text, lines = self.symbols.text, []
        size = f"sizeof({element(memory.buffer.type)})"
        elements = "1"
        for n, d in enumerate(memory.order):
            stride = memory.buffer.stride[d]
            if n > 0:
                lines.append(f"const int64_t {text(stride)} = {elements};")
                elements = f"tilesmith_times({text(stride)}, {text(memory.extents[n])})"
                if n == 1 and memory.buffer.channels and len(memory.order) > 2:
                    elements = f"tilesmith_pitch({elements}, {size})"
            elif len(memory.order) > 1 and not memory.buffer.channels:
                elements = f"tilesmith_pitch({self.symbols.bare(memory.extents[n])}, {size})"
            else:
                elements = text(memory.extents[n])
        return lines, elements

    def _layout(self, s: Scratch) -> list[str]:
        scratch = self._scratch[s.name] = f"scratch{self.blocks}"
        bytes_ = f"{scratch}_bytes"
        lines = ["", "/* buffers of every thread */", f"int64_t {bytes_} = 0;"]
        for memory in s.buffers:
            strides, elements = self._strides(memory, padded=True)
            b = memory.buffer
            lines += [
                *strides,
                f"const int64_t {b.pointer}_at = {bytes_};",
                f"{bytes_} += tilesmith_block({elements}, sizeof({element(b.type)}));",
            ]
        return lines + self._taken("char *const", scratch, f"tilesmith_times({bytes_}, TILESMITH_THREADS)")

    def _taken(self, c_type: str, name: str, size: str) -> list[str]:
        """A block of memory, as a pointer of that type and name."""
        self.blocks += 1
        return [
            f"{c_type} {name} = tilesmith_take(slots, {size});",
            f"if (!{name}) {{",
            "    status = TILESMITH_E_MEMORY;",
            "    goto finish;",
            "}",
        ]

    def _bind(self, s: Bind) -> list[str]:
        scratch = self._scratch[s.scratch.name]
        mine = f"mine_{scratch}"
        lines = [f"char *const {mine} = {scratch} + {scratch}_bytes * TILESMITH_THREAD;"]
        for memory in s.scratch.buffers:
            b = memory.buffer
            t = element(b.type)
            lines.append(f"{t} *restrict const {b.pointer} = ({t} *)({mine} + {b.pointer}_at);")
        return lines

    def _allocate(self, memory: Extents) -> list[str]:
        b = memory.buffer
        t = element(b.type)
        strides, elements = self._strides(memory, padded=True)
        return [
            "",
            *strides,
            f"const int64_t {b.pointer}_bytes = tilesmith_block({elements}, sizeof({t}));",
            *self._taken(f"{t} *restrict const", b.pointer, f"{b.pointer}_bytes"),
        ]

    def _copy_out(self, s: CopyOut) -> list[str]:
        """The output's region from a buffer that may be larger."""
        text, bare = self.symbols.text, self.symbols.bare
        out, source = s.output, s.source
        n = len(out.dims)
        size = f"sizeof({element(out.type)})"
        if n == 0:
            return [f"{out.pointer}[0] = {source.pointer}[0];"]
        pieces = []
        for d in range(n):
            pieces.append(f"({text(out.origin[d])} - {text(source.origin[d])}) * {text(source.stride[d])}")
        c = out.pointer.removesuffix("_data")
        return [
            "{",
            f"    const int64_t to[] = {{{', '.join(bare(x) for x in out.stride)}}};",
            f"    const int64_t from[] = {{{', '.join(bare(x) for x in source.stride)}}};",
            f"    const int64_t extent[] = {{{', '.join(f'{c}->extent[{d}]' for d in range(n))}}};",
            f"    tilesmith_copy((char *){out.pointer}, to, (const char *)({source.pointer} + {' + '.join(pieces)}),",
            f"                   from, extent, {n}, {size});",
            "}",
        ]


def _exponentials(body: Body) -> Iterator[Value]:
    """The values that `exp` computes, in `body` and inside."""
    for s in walk(body):
        match s:
            case Define(op=ops.Call(function="exp")):
                yield s.result
            case _:
                pass
