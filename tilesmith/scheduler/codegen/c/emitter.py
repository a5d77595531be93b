"""Loop program to one self-contained C file and its header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from tilesmith.platforms.base import row_addresses
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.elementary_functions import EVERY_LANE, FLOAT_FUNCTIONS
from tilesmith.scheduler.codegen.c.entry import Entry, header_of, known_names, safe_comment, symbol_names, used_lines
from tilesmith.scheduler.codegen.c.gathers import shared_places
from tilesmith.scheduler.codegen.c.nesting import wrapped
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.codegen.c.prelude import (
    INCLUDES,
    entry_name,
    helpers_used,
)
from tilesmith.scheduler.codegen.c.row_macros import row_macros
from tilesmith.scheduler.codegen.c.statements import Statements
from tilesmith.scheduler.codegen.c.types import Symbols, element, words
from tilesmith.scheduler.codegen.c.wide_integers import for_architecture
from tilesmith.scheduler.ir.loop.ops import Call
from tilesmith.scheduler.ir.loop.program import Define, Program, Statement
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.loop.traversal import used, walk
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.loop_passes.bit_masks import in_bits

FLAGS = ("-std=gnu11",)
RELAXED = (
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
    "-freciprocal-math",
)  # fmt: skip
STRICT = ("-ffp-contract=off", "-fno-math-errno")
SCALAR_STAYS_SCALAR = ("-fno-tree-vectorize",)
"""Code that is worth vectors has them already; the rest (edges, tails) would only grow."""
LANES_AT_ONCE = ("-ftree-slp-vectorize",)
"""Flags of code with a function written for every lane of a vector (`sqrtf(v[0]), sqrtf(v[1]), ...`), of which the
compiler is to make one instruction. Of no other code: with them GCC 12 miscompiles sums of comparisons."""
INSTRUCTIONS_BY_NAME = "x86_64"
"""The architecture whose instructions of vectors are called by their names."""

FLUSHING = "arm"
VECTORS_THAT_FLUSH = """\
/* Vectors of floats take subnormal numbers for 0 here: no compiler has any without leave. */
#pragma GCC optimize("unsafe-math-optimizations")"""
"""For the architecture FLUSHING. As an option of the compiler it would change that for all of the caller's program."""


def emit_c(program: Program) -> CSource:
    """The C of a loop program: the same bytes for the same program. What it needs beside the pipeline is in its header,
    out of sight of those who call it."""
    entry = entry_name(program.name)
    header_name = f"{program.name}.h"
    emitter = _Emitter(program, entry, header_name)
    code = emitter.run()
    header = header_of(program, entry) + emitter.support()
    flags = FLAGS + (STRICT if program.strict else RELAXED) + SCALAR_STAYS_SCALAR
    if EVERY_LANE in header and program.architecture != INSTRUCTIONS_BY_NAME:
        flags += LANES_AT_ONCE
    return CSource(code, header, header_name, entry, flags, program.estimates)


SUPPORT = "TILESMITH_SUPPORT"
"""Defined where the C file includes its header."""


def _indented(text: str) -> str:
    """Blocks by two columns each."""
    return "\n".join([line[(len(line) - len(line.lstrip(" "))) // 4 * 2 :] for line in text.split("\n")])


def _vector_calls(statements: Sequence[Statement]) -> dict[tuple[str, ScalarType], int]:
    """The elementary functions that `statements` call of vectors, by name and type, each with the fewest lanes."""
    calls = [(s.op.function, s.result) for s in statements if isinstance(s, Define) and isinstance(s.op, Call)]
    found: dict[tuple[str, ScalarType], int] = {}
    for function, r in calls:
        if function in FLOAT_FUNCTIONS and r.lanes > 1:
            found[function, r.type] = min(r.lanes, found.get((function, r.type), r.lanes))
    return found


class _Emitter:
    def __init__(self, program: Program, entry: str, header_name: str) -> None:
        self.program = program
        self.entry = entry
        self.header_name = header_name
        self.mentioned: set[str] = set()
        self.symbols = Symbols(symbol_names(program))
        self.operands = Operands(self.symbols, program.strict, program.register_bytes, program.architecture)
        self.opened = Entry(program, entry, self.symbols, self.operands)
        self.statements = Statements(self.symbols, self.operands)
        self.statements.outputs = frozenset(a.name for a in program.arguments if a.output)
        self.statements.addresses = row_addresses(program.architecture)
        self.statements.crowded_sums = program.register_bytes * program.carried_vectors / 2

    def run(self) -> str:
        p = self.program
        self.operands.shared_places = shared_places(p.body)
        self.operands.bits = in_bits(p.body) if p.masks_are_bits else frozenset()
        statements = list(walk(p.body))
        uses = Counter(chain.from_iterable(map(used, statements)))
        definitions = Counter([s.result.name for s in statements if isinstance(s, Define)])
        self.operands.vector_calls = _vector_calls(statements)
        # a name that several blocks define is used in all of them
        self.statements.single = frozenset(name for name, times in definitions.items() if uses[name] == times)
        self.statements.row_macros = row_macros(self.symbols, statements)
        bound_lines = self.opened.bound_lines()
        self.statements.names = known_names(p)
        printer = self.statements
        body = printer.block(p.body, 1)
        types = printer.names | printer.past
        functions, body_lines = printer.repeated.resolved(body, types, printer.row_macros, printer.shared_lines)
        main = [*self.opened.opening(bound_lines), *self._run_lines(body_lines), *self._finish_lines(), "}", ""]
        macros = [macro.definition for macro in printer.row_macros.values()]
        lines, named = used_lines(
            [*macros, *([""] if macros else []), *printer.outlined, *functions, *main, *self._argv_lines()]
        )
        opening = self._opening()
        self.mentioned = named | words("\n".join(opening))
        return self._finished("\n".join([*opening, *(part for line in lines for part in wrapped(line))]))

    def _opening(self) -> list[str]:
        """The lines ahead of the functions."""
        p = self.program
        return [
            f"/* {p.name}: scheduled by tilesmith with method {p.method}."
            + (f"\n   {safe_comment(p.doc)}" if p.doc else ""),
            "   Compile with OpenMP for threads. */",
            *([VECTORS_THAT_FLUSH] if p.architecture == FLUSHING and not p.strict else []),
            f"#define {SUPPORT}",
            f'#include "{self.header_name}"',
            "",
        ]

    def support(self) -> str:
        """The part of the header that is the C file's own: what its text needs."""
        declared = self.operands.declarations(self.mentioned)
        parts = [
            f"\n#ifdef {SUPPORT} /* for {self.program.name}.c */",
            INCLUDES.rstrip(),
            "",
            f"enum {{ LINE = {self.program.line_bytes} }}; /* bytes of a cache line */",
            f"enum {{ CROWDED = {self.program.crowded_bytes} }}; /* bytes apart rows share too few sets */",
            f"enum {{ BLOCKS = {self._blocks} }}; /* blocks of memory in use at once, at most */",
            "",
            helpers_used(self.mentioned | words(declared)),
            f"{declared}\n#endif\n",
        ]
        return self._finished("\n".join(parts))

    def _finished(self, text: str) -> str:
        """The text for the architecture, blocks by two columns each."""
        return for_architecture(_indented(text), self.program.architecture)

    # the function ------------------------------------------------------------

    def _run_lines(self, body_lines: list[str]) -> list[str]:
        p = self.program
        lines = [""]
        if self._blocks:
            lines += [
                "    int32_t status = TILESMITH_E_MEMORY;",
                "    ts_slot own[BLOCKS] = {{0}};",
                "    ts_slot *const slots = __atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE) ? own : ts_kept;",
            ]
        for a in p.arguments:
            if a.dims:
                lines += self._pack(a)
        for a in p.arguments:
            t = element(a.type)
            const = "" if a.output else "const "
            data = f"{a.c_name}_image.data" if a.dims else f"{a.c_name}->data"
            lines.append(f"    {const}{t} *restrict const {a.c_name}_data = {data};")
            for n in range(len(a.dims)):
                lines.append(f"    const int64_t {a.c_name}_stride{n} = {a.c_name}_image.stride[{n}];")
        return [*lines, *body_lines]

    @property
    def _blocks(self) -> int:
        """Blocks of memory that a call has in use, at most: once the body is printed."""
        return self.statements.memory.blocks + sum(bool(a.dims) for a in self.program.arguments)

    def _pack(self, a: Argument) -> list[str]:
        """Images whose fastest dim is not contiguous are worked on in a dense copy."""
        order = ", ".join(str(a.dims.index(d)) for d in a.storage)
        image, size = f"{a.c_name}_image", f"sizeof({element(a.type)})"
        dense = f"ts_dense(slots, &{image}, (const int[]){{{order}}}, {size}, {int(not a.output)})"
        return [
            f"    tilesmith_buffer {image} = *{a.c_name};",
            f"    if (UNLIKELY(!{dense})) goto finish;",
        ]

    def _finish_lines(self) -> list[str]:
        p = self.program
        lines = [""]
        for a in p.arguments:
            if a.output and a.dims:
                image, size = f"{a.c_name}_image", f"sizeof({element(a.type)})"
                lines.append(f"    ts_undense(&{image}, {a.c_name}, {size});")
        if not self._blocks:
            return [*lines, "    return TILESMITH_OK;"]
        may_stay = "TILESMITH_KEEP && slots == ts_kept && status == TILESMITH_OK"
        return [
            *lines,
            "    status = TILESMITH_OK;",
            "finish:",
            f"    ts_end(slots, {may_stay});",
            "    return status;",
        ]

    def _argv_lines(self) -> list[str]:
        lines = self.opened.argv_lines()
        if not self._blocks:
            return [*lines, f"void {self.entry}_release(void) {{}}", ""]
        return [
            *lines,
            "/* Also when the library is unloaded. What a call has is that call's to give back. */",
            f"__attribute__((destructor)) void {self.entry}_release(void) {{",
            "    if (!__atomic_test_and_set(&ts_busy, __ATOMIC_ACQUIRE)) ts_end(ts_kept, 0);",
            "}",
            "",
        ]
