"""Control flow and sizes as lines of C: what depends on indices alone, whatever computes."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.types import Symbols, element
from tilesmith.scheduler.ir.loop.program import Extents, Loop, PeelVectors


def peeled(symbols: Symbols, s: PeelVectors) -> list[str]:
    """The ends of the part of a row for vectors."""
    bare = symbols.bare
    first, fits, scale = bare(s.lo), bare(s.end - s.lanes), ""
    if s.align > 1:
        shift = s.align.bit_length() - 1
        first, fits = f"({bare(s.lo + (s.align - 1))}) >> {shift}", f"({fits}) >> {shift}"
        scale = f"{s.align} * "
    last = f"ts_last_vector({s.first}, {fits}, {s.lanes // s.align})"
    if s.given:
        conditions = " && ".join(f"{symbols.text(x)} >= 0" for x in s.given)
        last = f"{conditions} ? {last} : {s.first} - {s.lanes // s.align}"
    from_ = f"{s.from_} = {scale}{s.first}, " if s.from_ else ""
    return [
        f"const int64_t {s.first} = {first};",
        f"const int64_t {s.last} = {last};",
        f"const int64_t {from_}{s.to} = {scale}{s.last} + {s.lanes};",
    ]


def advanced(symbols: Symbols, s: Loop) -> str:
    """The step of a loop."""
    return f"{s.var}++" if s.step.is_const and s.step.const == 1 else f"{s.var} += {symbols.bare(s.step)}"


def opened(symbols: Symbols, s: Loop) -> list[str]:
    """The first lines of a loop's body: the jump over the iterations that it skips, and its variable as the body sees
    it."""
    bare, text, lines = symbols.bare, symbols.text, []
    if s.skip is not None:
        from_, to = (text(x) for x in s.skip)
        met = (
            f"{s.var} == {from_}" if s.step.is_const and s.step.const == 1 else f"{s.var} >= {from_} && {s.var} < {to}"
        )
        lines.append(f"    if ({met} && ({s.var} = {to}) > {bare(s.hi)}) break;")
    if s.seen is not None:
        at = f"ts_max({s.var}, {text(s.seen.first)})" if s.seen.first is not None else s.var
        last = None if s.seen.last is None else text(s.seen.last)
        seen = at if last is None else f"{s.var} < {last} ? {at} : {last}"
        lines.append(f"    const int64_t {s.seen.name} = {seen};")
    return lines


def strides(symbols: Symbols, memory: Extents) -> tuple[list[str], str]:
    """Lines that define the strides of a buffer, and the text of its number of elements."""
    text, lines = symbols.text, []
    size = f"sizeof({element(memory.buffer.type)})"
    elements = "1"
    for n, d in enumerate(memory.order):
        stride = memory.buffer.stride[d]
        if n > 0:
            lines.append(f"const int64_t {text(stride)} = {elements};")
            elements = f"ts_times({text(stride)}, {text(memory.extents[n])})"
            if n + 1 < len(memory.order):
                elements = f"ts_pitch({elements}, {size})"
        elif len(memory.order) > 1 and not memory.buffer.channels:
            elements = f"ts_pitch({symbols.bare(memory.extents[n])}, {size})"
        else:
            elements = text(memory.extents[n])
    return lines, f"{elements} + {memory.buffer.room}" if memory.buffer.room else elements
