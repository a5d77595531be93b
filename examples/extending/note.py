"""A primitive: a note on a loop nest, or on a stage inside of one, which stays with the schedule."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site
from tilesmith.scheduler.ir.schedule.primitives.registry import register
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement

Text = Annotated[str, Field(strict=True, max_length=80)]


class Note(Primitive[str]):
    """A comment in the loop nest.

    for y.inner:                  for y.inner:
      f(x, y) = ...         ->      f(x, y) = ...  # by hand
    """

    key = "note"
    records = (Group, Placement)
    default = ""
    form = Text
    fixed_form = Text | None
    stands_alone = True

    def check(self, value: str, at: Site) -> None:
        if "\n" in value:
            raise at.refuse("its note has several lines")

    def difference(self, value: str) -> str:
        return f"noted '{value}'" if value else "without a note"

    def assignment_note(self, value: str) -> str:
        return value

    def allocation(self, placement: Placement, line: str) -> str:
        note = self.of(placement)
        return f"{line}  # {note}" if note else line


register(Note())
