"""Streaming stores: the output of a group is written past the caches."""

from __future__ import annotations

from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.forms import Flag
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement


class Stream(Primitive[bool]):
    """Whole vectors of the output are written past the caches, where the machine can: lines that nobody reads soon are
    not read before they are written, and push nothing out.

        f(x ... x + 15) = ...   ->    stream f(x ... x + 15) = ...
    """

    key = "stream"
    default = False
    form = Flag
    fixed_form = Flag | None
    stands_alone = True

    def check(self, value: bool, at: Site) -> None:
        vector = at.group.vector
        if not value:
            return
        if vector is None or at.stage.updates:
            raise at.refuse("written past the caches, but it has no vectors, or updates")
        if vector.dim != at.stage.storage[0]:
            raise at.refuse(f"written past the caches, but '{vector.dim}' is not fastest in memory")

    def difference(self, value: bool) -> str:
        return f"written {_past(value)}"

    def assignment_note(self, value: bool) -> str:
        return "past the caches" if value else ""

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        found = self.of(record)
        return None if found == fixed else f"'{name}' is written {_past(found)}, not {_past(fixed)}"


def _past(stream: bool) -> str:
    return "past the caches" if stream else "through the caches"
