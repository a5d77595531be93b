"""Statements of the loop program as lines of C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import inf
from typing import assert_never

from tilesmith.scheduler.codegen.c.addresses import scattered
from tilesmith.scheduler.codegen.c.allocations import Allocations
from tilesmith.scheduler.codegen.c.control import advanced, opened, peeled
from tilesmith.scheduler.codegen.c.lane_gathers import place
from tilesmith.scheduler.codegen.c.nesting import Nesting
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.operations import expression
from tilesmith.scheduler.codegen.c.outlining import (
    WORTH_A_CALL,
    captured,
    mentioned,
    names_inside,
    normal_form,
    part,
    renamed,
    seldom,
    shared,
    struct,
)
from tilesmith.scheduler.codegen.c.repeated_loops import RepeatedLoops, is_over_rows
from tilesmith.scheduler.codegen.c.row_distances import Products, apart, products
from tilesmith.scheduler.codegen.c.row_macros import RowMacros
from tilesmith.scheduler.codegen.c.row_places import counted_from, row_places
from tilesmith.scheduler.codegen.c.stores import stored
from tilesmith.scheduler.codegen.c.types import Symbols, element
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.index import Index, const, divide
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
from tilesmith.scheduler.ir.loop.traversal import assigned, defined, defined_inside, used, walk
from tilesmith.scheduler.ir.loop.values import Buffer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32


class Statements:
    """Prints statements."""

    def __init__(self, symbols: Symbols, operands: Operands) -> None:
        self.symbols = symbols
        self.operands = operands
        self.memory = Allocations(symbols)
        self.rows = 0  # that have numbers of their own
        self.row_macros: RowMacros = {}
        self.rows_known: list[tuple[Products, RowPointer]] = []  # in scope
        self.depth = 0  # of the block that is printed
        self.names: dict[str, str] = {}  # in scope, with their types
        self.past: dict[str, str] = {}  # that were, with their types
        self.outlined: list[str] = []  # lines of functions of their own
        self.functions = 0  # that there are
        self.inside = 0  # how many of them around what is printed
        self.opaque: dict[str, Index] = {}  # rows that rolled loops read more than once, with the place they begin at
        self.repeated = RepeatedLoops()
        self.in_structs: set[str] = set()  # registers that are, by then
        self.made: dict[object, tuple[str, list[int]]] = {}  # functions, with which names of their texts they have
        self.shared: dict[str, tuple[Function, list[str]]] = {}  # functions of groups, with all that they are given
        self.shared_lines: list[str] = []

    def block(self, statements: Body, indent: int) -> list[str]:
        """The lines of a block."""
        self.depth += indent
        outer, rows = len(self.names), len(self.rows_known)
        windows = {n: self._windows(s, statements) for n, s in enumerate(statements) if isinstance(s, PeeledLoop)}
        numbered: dict[int, Mapping[str, str]] = {}
        in_structs = {name for found in windows.values() for name in found}
        self.in_structs |= in_structs
        nesting, lines = Nesting(self.single, self.depth), []
        for n, s in enumerate(statements):
            match s:
                case Accumulator() if s.result.name in in_structs:
                    continue
                case Define():
                    c_type = "int64_t" if isinstance(s.op, ops.ToIndex) else self.operands.type_of(s.result)
                    lines += nesting.define(s.result.name, c_type, expression(self.operands, s))
                case (
                    Let()
                    | RowPointer()
                    | Accumulator()
                    | Prefetch()
                    | Assign()
                    | Store()
                    | StreamAligned()
                    | StreamLine()
                ):
                    lines += nesting.use(self._lines(s, indent)[0])
                case If():
                    first, *others = self._lines(s, indent)
                    lines += nesting.use(first)
                    lines += others
                case PeeledLoop():
                    numbered[self.functions] = windows[n]
                    lines += nesting.flush() + self._peeled(s, windows[n], statements[n + 1 :])
                case _:
                    lines += nesting.flush() + self._lines(s, indent)
            self.names.update(self._declared(s))
        del self.rows_known[rows:]
        while len(self.names) > outer:
            name, c_type = self.names.popitem()
            self.past[name] = c_type
        self.depth -= indent
        pad = "    " * indent
        lines += nesting.flush()
        for number, found in numbered.items():
            lines = renamed(lines, found, f"w{number}.")
        return [pad + line if line else line for line in lines]

    def _lines(self, s: Statement, indent: int) -> list[str]:
        text, bare = self.symbols.text, self.symbols.bare
        match s:
            case Let():
                return [f"const int64_t {s.name} = {bare(s.value)};"]
            case OverflowGuard():
                pairs = zip_longest(s.low, s.high, fillvalue=const(0))
                tests = [f"ts_far({bare(lo)}, {bare(hi)})" for lo, hi in pairs]
                tests += [f"{text(x)} == INT64_MIN" for x in s.wide]
                return [f"if (UNLIKELY({' || '.join(tests)})) return TILESMITH_E_ARGUMENT;"]
            case MutableIndex():
                return [f"int64_t {s.name} = {bare(s.value)};"]
            case AssignIndex():
                return [f"{s.name} = {bare(s.value)};"]
            case Apart():
                return self._apart(s)
            case Function():
                return self._shared(s)
            case Invoke():
                return [self._invoked(s)]
            case Ordered():
                return ["ORDERED", "{", *self._inner(s.body), "}"]
            case Define() | PeeledLoop():
                raise AssertionError("a block prints them")
            case Accumulator():
                return [f"{self.operands.type_of(s.result)} {s.result.name} = {self._fitted(s.start, s.result)};"]
            case Assign():
                return [f"{s.target.name} = {self._fitted(s.value, s.target)};"]
            case RowPointer():
                row = f"OPAQUE({self._row(s)})" if s.result in self.opaque else self._row(s)
                return [f"{self._pointer(s.buffer)}const {s.result} = {row};"]
            case Store() | StreamAligned() | StreamLine():
                return [stored(self.operands, s)]
            case Scatter():
                return scattered(self.operands, s)
            case PeelVectors():
                return peeled(self.symbols, s)
            case Loop():
                return self._loop(s)
            case If():
                conditions = [f"{text(x)} >= 0" for x in s.nonnegative]
                if s.condition is not None:
                    conditions.append(self.operands.name(s.condition))
                lines = [f"if ({' && '.join(conditions)}) {{", *self._inner(s.body)]
                return [*lines, *(["} else {", *self._inner(s.otherwise)] if s.otherwise else []), "}"]
            case Comment():
                return ["", f"/* {s.text} */"]
            case Scratch() | Bind() | Allocate() | Free() | CopyOut():
                return self.memory.lines(s)
            case Fence():
                return ["ts_fence();"]
            case PrefetchEnds():
                return [f"ts_ask_ends({s.row} + {text(s.first)}, {s.row} + {text(s.last + 1)});"]
            case Prefetch():
                return [f"__builtin_prefetch({s.row} + {text(s.index)}{', 0, 2' if s.far else ''});"]
            case Compute() | FusedRow():
                raise InternalError(f"a computation is not expanded: {type(s).__name__}")
            case _:
                assert_never(s)

    def _inner(self, body: Body) -> list[str]:
        return self.block(body, 1)

    def _row(self, s: RowPointer) -> str:
        """A pointer to a row: from that of a row nearby if there is one, as compilers address both by one register
        then, which is up to 5 % of a pipeline's time; or by its coordinates."""
        own, begin = products(s.offset), self.opaque.get(s.result, const(0))
        alike = (row for theirs, row in reversed(self.rows_known) if row.buffer is s.buffer and theirs == own)
        near = [row for row in alike if self.opaque.get(row.result, const(0)) == begin]
        ways = ((row.result, apart(s.offset, row.offset)) for row in near)
        found = next((place(row, self.symbols.bare(by)) for row, by in ways if by is not None), None)
        self.rows_known.append((own, s))
        macro = self.row_macros.get(s.buffer.pointer)
        if found is not None:
            return found
        whole = None if macro is None else macro.call(self.symbols, s, self.names)
        return place(whole or place(s.buffer.pointer, self.symbols.bare(s.offset)), self.symbols.bare(begin))

    def _pointer(self, b: Buffer) -> str:
        """The type of pointers into a buffer."""
        const = "const " if b.where == "argument" and b.stage not in self.outputs else ""
        return f"{const}{element(b.type)} *"

    def _declared(self, s: Statement) -> dict[str, str]:
        """The names that a statement declares, with their types in C."""
        match s:
            case Define(result=r) | Accumulator(result=r):
                index = isinstance(s, Define) and isinstance(s.op, ops.ToIndex)
                return {r.name: "int64_t" if index else self.operands.type_of(r)}
            case RowPointer():
                return {s.result: self._pointer(s.buffer)}
            case Bind():
                return {m.buffer.pointer: self._pointer(m.buffer) for m in s.scratch.buffers}
            case Allocate():
                strides = [name for name in defined(s) if name != s.memory.buffer.pointer]
                return {**dict.fromkeys(strides, "int64_t"), s.memory.buffer.pointer: self._pointer(s.memory.buffer)}
            case Scratch():
                return {**self.memory.layout_names(s), **dict.fromkeys(defined(s), "int64_t")}
            case _:
                return dict.fromkeys(defined(s), "int64_t")

    outputs: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()
    addresses: float = inf  # rows of which a loop has the addresses in registers
    crowded_sums: float = inf  # bytes of sums that leave few registers to a loop

    # values ------------------------------------------------------------

    def _fitted(self, v: Value, target: Value) -> str:
        """A value as that of a register."""
        o = self.operands
        if target.lanes == 1:
            return o.name(v)
        return o.mask(v, target.mask_bits, target.lanes) if target.type == BOOL else o.wide(v, target.lanes)

    # loops ------------------------------------------------------------

    def _loop(self, s: Loop) -> list[str]:
        head = ["", f"/* {s.comment} */"] if s.comment else []
        lines = self._loop_lines(s)
        if self.inside or self.operands.kept or not is_over_rows(s, self.in_structs):
            return [*head, *lines]
        rows = s.hi - s.lo + 1
        some = "" if rows.is_const and rows.const > 0 else f"{self.symbols.bare(s.lo)} <= {self.symbols.bare(s.hi)}"
        return [*head, self.repeated.add(s, lines, some)]

    def _loop_lines(self, s: Loop) -> list[str]:
        bare = self.symbols.bare
        lines: list[str] = []
        if s.parallel and s.body and isinstance(s.body[-1], Ordered):
            lines.append("PARALLEL_ORDERED")
        elif s.parallel:
            lines.append(f"PARALLEL(ts_share({bare(divide(s.hi - s.lo, s.step.const) + 1)}))")
        elif self._is_rolled(s):
            lines.append(self._rolled(s))
            s = counted_from(s, self.opaque)
        more = f"{s.var} <= {bare(s.hi)}"
        more = f"UNLIKELY({more})" if s.once else more
        lines.append(f"for (int64_t {s.var} = {bare(s.lo)}; {more}; {advanced(self.symbols, s)}) {{")
        lines += opened(self.symbols, s)
        before = self._numbers(s)
        self.names.update(dict.fromkeys(defined_inside(s), "int64_t"))
        lines += [*self._inner(s.body), "}"]
        for lanes, _ in before:
            del self.operands.kept[lanes]
        return [*(line for _, line in before), *lines]

    def _is_rolled(self, s: Loop) -> bool:
        """True for a loop of a known number of iterations whose sums leave few registers: they do not wait for each
        other as it is. Clang, which unrolls it, loads ahead for all iterations, and spills sums for that."""
        sums = (t for x in s.body if isinstance(x, Assign) and (t := x.target).lanes > 1 and t.type != BOOL)
        return (s.hi - s.lo).is_const and sum(t.lanes * t.type.bytes for t in sums) >= self.crowded_sums

    def _rolled(self, s: Loop) -> str:
        """The word for such a loop, whose rows are opaque if there are several of one buffer, and it reads several
        elements of each: from the place on that all of these are counted from, which would take a register for each
        element. Where an iteration has more rows of one buffer than there are registers for addresses, it has no room
        for those of the next one."""
        own = [x for x in s.body if isinstance(x, RowPointer)]
        uses = Counter(name for x in s.body for name in used(x))
        rows = [*(row for _, row in self.rows_known), *own]
        most = max(Counter(x.buffer.pointer for x in rows if x.result in uses).values(), default=0)
        if most > 1:
            several = [x.result for x in own if uses[x.result] > 1]
            self.opaque |= dict.fromkeys(several, const(0)) | row_places(s, several)
        return "ROLLED_ROWS" if most > self.addresses else "ROLLED"

    def _numbers(self, s: Loop) -> list[tuple[int, str]]:
        """Ahead of a row of vectors: the numbers of each size of vectors that `exp` takes in it."""
        o, found = self.operands, []
        for r in _exponentials(s.body) if s.seen is not None and not s.parallel else ():
            if r.lanes > 1 and r.lanes not in o.kept and r.type == FLOAT32 and o.functions.in_vectors("exp", r.type):
                name, made = f"exp{self.rows}_x{r.lanes}", o.numbers(r.type, r.lanes, keep=True)
                found.append((r.lanes, f"const {made.split('(')[0]}_t {name} = {made};"))
                o.kept[r.lanes] = name
        self.rows += bool(found)
        return found

    def _peeled(self, s: PeeledLoop, windows: Mapping[str, str], after: Sequence[Statement]) -> list[str]:
        """A loop with peeled ends: the body is a function, for both of them. What it reads is in a struct, where it has
        copies of the windows, too: nothing that the middle computes with has an address. Other registers that the body
        changes are copied to it and back."""
        bare, n = self.symbols.bare, self.functions
        self.functions += 1
        kind = "SMALL" if sum(1 for _ in walk(s.body)) >= WORTH_A_CALL else "INLINE"
        body, given = self._function(s.body, 2, {s.var: "int64_t"}, windows, by_struct=True)
        body = renamed(renamed(body, given, "own->"), windows, f"w{n}.")
        kept = [f"struct windows{n} w;"] if windows else []
        self.outlined += struct(f"windows{n}", windows) if windows else []
        self.outlined += struct(f"row_ends{n}", given, kept)
        self.outlined += [
            f"{kind} void row_ends{n}(int64_t {s.var}, int64_t {s.var}_end, struct row_ends{n} *own) {{",
            *([f"    struct windows{n} w{n} = own->w;"] if windows else []),
            f"    for (; {s.var} <= {s.var}_end; {s.var}++) {{",
            *body,
            "    }",
            *([f"    own->w = w{n};"] if windows else []),
            "}",
            "",
        ]
        later = {x for one in walk(tuple(after)) for x in used(one)}
        own, (from_, to) = f"ends{n}", s.skip
        changed = {assigned(x) for x in walk(s.body)}.intersection(given)
        there = [f"{own}.{x} = {x};" for x in given if x in changed]
        back = [f"{x} = {own}.{x};" for x in given if x in changed]
        return [
            *(["", f"/* {s.comment} */"] if s.comment else []),
            *([f"struct windows{n} w{n} = {{0}};"] if windows else []),
            f"struct row_ends{n} {own} = {{{', '.join([*given, *([f'w{n}'] if windows else [])])}}};",
            f"row_ends{n}({bare(s.lo)}, {bare(from_ - 1)}, &{own});",
            *([f"w{n} = {own}.w;"] if windows else []),
            *back,
            *self.block(s.middle, 0),
            *([f"{own}.w = w{n};"] if windows else []),
            *there,
            f"row_ends{n}({bare(to)}, {bare(s.hi)}, &{own});",
            *([f"w{n} = {own}.w;"] if not later.isdisjoint(windows) else []),
            *back,
        ]

    def _apart(self, s: Apart) -> list[str]:
        """A block that is a function of what it reads: one that another block is, too, if it differs in names alone. A
        part is called for every row: it reads a struct, as so many arguments would cost 8 % of a pipeline's time."""
        if any(isinstance(x, Scratch | Allocate | Free | CopyOut | OverflowGuard) for x in walk(s.body)):
            return ["{", *self._inner(s.body), "}"]  # it is about the call
        body, given = self._function(s.body, 1, {}, (), by_struct=not s.seldom)
        text, names = normal_form(body, {*names_inside(s.body), *given}, self.row_macros)
        key = s.seldom, text, tuple(map(given.get, names))
        if key not in self.made:
            name = f"{'seldom' if s.seldom else 'part'}{self.functions}"
            self.functions += 1
            self.outlined += seldom(name, given, body) if s.seldom else part(name, given, body)
            self.made[key] = name, [names.index(x) for x in given]
        name, order = self.made[key]
        arguments = ", ".join(names[n] for n in order)
        return [f"{name}({arguments});" if s.seldom else f"{name}(&(struct {name}){{{arguments}}});"]

    def _shared(self, s: Function) -> list[str]:
        """No line here, but a function of what the block has names for, and of what it reads from outside."""
        own = dict.fromkeys(s.symbols, "int64_t") | {b.pointer: self._pointer(b) for b in s.buffers}
        self.memory.name_layouts(s)
        for layout in s.scratch:
            own |= self.memory.layout_names(layout)
        outside, depth, self.depth = self.names, self.depth, 0
        self.names = {**outside, **own}
        body = self.block(s.body, 1)
        self.names, self.depth = outside, depth
        self.past |= own
        read = mentioned(self.repeated.whole(body), self.row_macros)
        given = {**captured(read, own), **captured(read, outside)}
        self.shared_lines += shared(s, given, body)
        self.shared[s.name] = s, list(given)
        return []

    def _invoked(self, s: Invoke) -> str:
        f, given = self.shared[s.function]
        names = dict(zip(f.symbols, map(self.symbols.bare, s.symbols), strict=True))
        names |= {own.pointer: b.pointer for own, b in zip(f.buffers, s.buffers, strict=True)}
        for own, layout in zip(f.scratch, s.scratch, strict=True):
            names |= zip(self.memory.layout_names(own), self.memory.layout_names(layout), strict=True)
        return f"{s.function}({', '.join(names.get(name, name) for name in given)});"

    def _function(
        self, body: Body, indent: int, more: Mapping[str, str], but: Iterable[str], by_struct: bool
    ) -> tuple[list[str], dict[str, str]]:
        """The lines of a block that is a function of its own, which declares `more`, and the names that it reads from
        outside, all `but` some, with their types. Macros do not know what it has in a struct."""
        macros, self.row_macros = self.row_macros, {} if by_struct else self.row_macros
        outside, kept, self.operands.kept = self.names, self.operands.kept, {}
        depth, self.depth = self.depth, 0
        self.inside += 1
        self.names = {**outside, **more}
        lines = self.block(body, indent)
        self.names, self.depth, self.operands.kept = outside, depth, kept
        self.inside -= 1
        given = captured(mentioned(lines, self.row_macros).difference(but), outside)
        self.row_macros = macros
        return lines, given

    def _windows(self, s: PeeledLoop, block: Body) -> dict[str, str]:
        """The registers of a block that begin as 0, and which the body of one of its loops changes, of no other, with
        their types."""
        others = (x for one in block if isinstance(one, PeeledLoop) and one is not s for x in walk(one.body))
        changed = {assigned(x) for x in walk(s.body)}.difference(map(assigned, others))
        cells = [
            x.result for x in block if isinstance(x, Accumulator) and x.result.name in changed and x.start.literal == 0
        ]
        return {r.name: self.operands.type_of(r) for r in sorted(cells, key=self.operands.type_of)}


def _exponentials(body: Body) -> Iterator[Value]:
    """The values that `exp` computes, in `body` and inside."""
    for s in walk(body):
        match s:
            case Define(op=ops.Call(function="exp")):
                yield s.result
            case _:
                pass
