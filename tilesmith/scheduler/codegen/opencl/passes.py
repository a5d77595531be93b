"""Passes over loop programs for devices that run OpenCL C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilesmith.scheduler.codegen.opencl.types import MOST_LANES
from tilesmith.scheduler.ir.index import Index, const, multiply, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Body, CopyOut, Define, Loop, Program, RowPointer, Statement, Store
from tilesmith.scheduler.ir.loop.traversal import with_regions
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer, Value
from tilesmith.scheduler.ir.pass_manager import Pass, PassPipeline
from tilesmith.scheduler.loop_passes.passes import PASSES as OF_ALL
from tilesmith.scheduler.loop_passes.vector_legalization import by_registers


def _legalize(program: Program) -> Program:
    return replace(program, body=by_registers(program.body, program.register_bytes, MOST_LANES))


def expand_copies(body: Body) -> Body:
    """*Before*: what was asked for is copied out of a stage's own buffer in one step. *After*: by loops."""
    made: list[Statement] = []
    for s in body:
        made += _copied(s.output, s.source) if isinstance(s, CopyOut) else (with_regions(s, expand_copies),)
    return tuple(made)


def _copied(output: Buffer, source: Buffer) -> Body:
    """Rows of the output side by side, each along the dim that lies together in memory."""
    value = Value(source.type, 1, f"{output.pointer}_copied")
    index = [sym(f"{output.pointer}_{d}_copied") for d in output.dims]
    if not output.dims:
        return Define(value, ops.Load(source.pointer, const(0))), Store(output, output.pointer, const(0), value)
    unit = output.unit
    rows = [Pointer(f"{b.pointer}_row_of_{output.pointer}") for b in (source, output)]
    heads = [
        RowPointer(row, b, _place(b, index, [d for d in range(len(index)) if d != unit]) - b.origin[unit])
        for row, b in zip(rows, (source, output), strict=True)
    ]
    at = index[unit]
    body: Body = (Define(value, ops.Load(rows[0], at)), Store(output, rows[1], at, value))
    order = (unit, *(d for d in range(len(index)) if d != unit))
    for d in order:
        lo, var = output.origin[d], f"{output.pointer}_{output.dims[d]}_copied"
        loop = Loop(var, lo, lo + output.extent[d] - 1, const(1), body, parallel=d == order[-1])
        body = (*heads, loop) if d == unit else (loop,)
    return body


def _place(b: Buffer, index: Sequence[Index], dims: Iterable[int]) -> Index:
    """The place of a point of a buffer, as far as those dims go."""
    found = const(0)
    for d in dims:
        found = found + multiply(index[d] - b.origin[d], b.stride[d])
    return found


PASSES = PassPipeline(
    (
        Pass(
            "legalize-vectors",
            "vectors of any size",
            "no vector is wider than a register, or longer than those of the language",
            _legalize,
        ),
        *(p for p in OF_ALL.passes if p.name in ("share-strided-loads", "eliminate-dead-code")),
        Pass(
            "expand-copies",
            "outputs are copied out of stages' own buffers in one step",
            "they are copied by loops",
            lambda program: replace(program, body=expand_copies(program.body)),
        ),
    )
)
