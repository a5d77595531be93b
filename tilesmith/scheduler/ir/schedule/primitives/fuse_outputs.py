"""Output fusion: outputs that are computed in one loop nest."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import MAX_STAGES, Form, Identifier
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.schedule import Joining, Schedule


class JoiningForm(Form):
    stages: Annotated[tuple[Identifier, ...], Field(max_length=MAX_STAGES)]
    joint: Identifier


class FuseOutputs(Primitive[tuple[Joining, ...]]):
    """Outputs of the same dims as the values of one stage. `rewrites.fuse_outputs` refuses those that are not.

    for y: for x: f(x, y) = ...        for y:
    for y: for x: g(x, y) = ...   ->     for x:
                                           f(x, y), g(x, y) = ..., ...
    """

    key = "joinings"
    records = (Schedule,)
    default: tuple[Joining, ...] = ()
    form = Annotated[tuple[JoiningForm, ...], Field(max_length=MAX_STAGES)]

    def read(self, parsed: tuple[JoiningForm, ...]) -> tuple[Joining, ...]:
        return tuple(Joining(j.stages, j.joint) for j in parsed)

    def write(self, value: tuple[Joining, ...]) -> Any:
        return [{"stages": list(j.stages), "joint": j.joint} for j in value]

    def difference(self, value: tuple[Joining, ...]) -> str:
        return f"outputs computed together: {'; '.join(', '.join(j.stages) for j in value) or 'none'}"

    def notes(self, value: tuple[Joining, ...]) -> tuple[str, ...]:
        return tuple(f"{j.joint}: {', '.join(j.stages)}, computed together" for j in value)
