"""Factoring of reductions (Halide's rfactor): partial results that can be computed side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Flag, Form, Identifier, Number
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.schedule import Factor, Schedule


class FactorForm(Form):
    stage: Identifier
    reduction: Number
    variable: Identifier
    parts: Annotated[int, Field(strict=True, ge=2, le=4096)]
    partial: Identifier
    interleaved: Flag = False
    neighbours: Annotated[int, Field(strict=True, ge=1, le=64)] = 1


class RFactor(Primitive[tuple[Factor, ...]]):
    """Reductions in parts, which a stage of their own holds. `rewrites.rfactor` refuses what cannot be cut.

    for r in 0..n:                for part in 0..4:
      f() += g(r)           ->      for r in 0..n/4:
                                      parts(part) += g(part * n/4 + r)
                                  for part in 0..4:
                                    f() += parts(part)
    """

    key = "factors"
    records = (Schedule,)
    default: tuple[Factor, ...] = ()
    form = Annotated[tuple[FactorForm, ...], Field(max_length=MAX_STAGES)]

    def read(self, parsed: tuple[FactorForm, ...]) -> tuple[Factor, ...]:
        return tuple(Factor(**f.model_dump()) for f in parsed)

    def write(self, value: tuple[Factor, ...]) -> Any:
        documents = [asdict(f) for f in value]
        return [{k: v for k, v in d.items() if (k, v) != ("neighbours", 1)} for d in documents]

    def difference(self, value: tuple[Factor, ...]) -> str:
        return "reductions cut otherwise"
