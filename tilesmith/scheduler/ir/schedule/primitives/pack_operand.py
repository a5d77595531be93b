"""Packing of operands: what a stage reads again and again, copied to where it lies as it is read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Form, Identifier
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.schedule import Packing, Schedule


class PackingForm(Form):
    stage: Identifier
    operand: Identifier
    dim: Identifier
    packed: Identifier


class PackOperand(Primitive[tuple[Packing, ...]]):
    """A copy of an operand, which is a stage of its own, with the boundary within which it is read: computed at a loop
    over tiles, it is their panel. `rewrites.pack_operands` refuses what does not move with the dim.

        for j by 16: for i: for j in tile:        for j by 16:
          c(j, i) = sum(a(k, i) * b(j, k)   ->      for k: for j in tile: b_c(j, k) = b(j, k)
                        for k)                      for i: for j in tile:
                                                      c(j, i) = sum(a(k, i) * b_c(j, k) for k)
    """

    key = "packings"
    records = (Schedule,)
    default: tuple[Packing, ...] = ()
    form = Annotated[tuple[PackingForm, ...], Field(max_length=MAX_STAGES)]

    def read(self, parsed: tuple[PackingForm, ...]) -> tuple[Packing, ...]:
        return tuple(Packing(p.stage, p.operand, p.dim, p.packed) for p in parsed)

    def write(self, value: tuple[Packing, ...]) -> Any:
        return [asdict(p) for p in value]

    def difference(self, value: tuple[Packing, ...]) -> str:
        return f"operands packed: {', '.join(p.packed for p in value) or 'none'}"

    def notes(self, value: tuple[Packing, ...]) -> tuple[str, ...]:
        return tuple(f"{p.packed}: what {p.stage} reads of {p.operand} along {p.dim}, packed" for p in value)
