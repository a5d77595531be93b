"""Streaming (non-temporal) stores of the output of a group."""

from __future__ import annotations

from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.forms import Flag
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement


class Stream(Primitive[bool]):
    """Streaming stores of whole vectors of the output, where the machine has them: lines that nobody reads soon are not
    read before they are written, and push nothing out of the caches.

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
            raise at.refuse("streaming stores, but it has no vectors, or updates")
        if vector.dim != at.stage.storage[0]:
            raise at.refuse(f"streaming stores, but '{vector.dim}' is not fastest in memory")

    def difference(self, value: bool) -> str:
        return f"written by {_stores(value)}"

    def assignment_note(self, value: bool) -> str:
        return "streaming stores" if value else ""

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        found = self.of(record)
        return None if found == fixed else f"'{name}' is written by {_stores(found)}, not by {_stores(fixed)}"


def _stores(stream: bool) -> str:
    return "streaming stores" if stream else "ordinary stores"
