"""Splitting of separable filters: a window that is a product, in two steps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Form, Identifier, Number
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.schedule import Schedule, Separation


class SeparationForm(Form):
    stage: Identifier
    window: Number
    dim: Identifier
    partial: Identifier
    through: Identifier | None = None


class SplitSeparable(Primitive[tuple[Separation, ...]]):
    """Windows along one dim first, which a stage of their own holds, then along the others.
    `rewrites.split_separable` refuses those that are no products.

        f(x, y) = sum(g(x + i, y + j)    ->    rows(x, y) = sum(g(x + i, y) for i)
                      for i for j)             f(x, y) = sum(rows(x, y + j) for j)
    """

    key = "separations"
    records = (Schedule,)
    default: tuple[Separation, ...] = ()
    form = Annotated[tuple[SeparationForm, ...], Field(max_length=MAX_STAGES)]

    def read(self, parsed: tuple[SeparationForm, ...]) -> tuple[Separation, ...]:
        return tuple(Separation(**s.model_dump()) for s in parsed)

    def write(self, value: tuple[Separation, ...]) -> Any:
        return [asdict(s) for s in value]

    def difference(self, value: tuple[Separation, ...]) -> str:
        return f"windows in two steps: {', '.join(s.partial for s in value) or 'none'}"

    def notes(self, value: tuple[Separation, ...]) -> tuple[str, ...]:
        return tuple(
            f"{s.partial}: window {s.window} of {s.stage}"
            f"{'' if s.through is None else f' with {s.through} put in'}, the part along {s.dim}"
            for s in value
        )
