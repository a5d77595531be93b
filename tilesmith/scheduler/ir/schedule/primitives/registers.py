"""Storage in registers: the window of a stage along the vectorised loop rotates in registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, inner

Storage = Literal["memory", "registers"]


class StoreIn(Primitive[Storage]):
    """The storage of a stage: memory, or registers where it is computed at the vectorised loop (CGO 2021).

    for x.inner by 8:                     g0, g1 = g(x - 8 ...), g(x ...)
      f(x) = g(x - 1) + g(x + 1)    ->    for x.inner by 8:
                                            g0, g1 = g1, g(x + 8 ...)
                                            f(x) = shifted(g0, g1) + ...
    """

    key = "storage"
    records = (Placement,)
    default: Storage = "memory"
    always = True
    form = Storage
    fixed_form = Storage | None

    def check(self, value: Storage, at: Site) -> None:
        group, placement = at.group, at.placement
        if value != "registers" or placement is None:
            return
        if at.stage.updates or at.output.updates:
            raise at.refuse("updates are not kept in registers, nor beside them")
        if group.vector is None:
            raise at.refuse("registers need a group that is vectorised")
        loop = inner(group.vector.dim)
        if placement.compute != loop:
            raise at.refuse(f"in registers it must be computed at the vectorised loop '{loop}'")
        if group.loops.index(placement.store) != group.loops.index(loop) + 1:
            raise at.refuse("in registers its store level must be exactly one loop further out")
        if not placement.fold:
            raise at.refuse("in registers its storage is folded")
        if placement.vector is not None and placement.vector.lanes != group.vector.lanes:
            raise at.refuse("in registers it must have as many lanes as the group")
        for consumer in at.readers():
            other = group.placement(consumer)
            if other is not None and other.compute != placement.compute:
                raise at.refuse(f"in registers, but its consumer '{consumer}' is not computed at the same loop")

    def difference(self, value: Storage) -> str:
        return ""

    def allocation(self, placement: Placement, line: str) -> str:
        kept = f"keep {placement.stage} in registers, rotating along the vectorised loop"
        return kept if placement.storage == "registers" else line

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        if fixed != "registers":
            return
        if site.stage.updates:
            yield (), f"'{site.name}' has updates: not in registers"
        compute = site.fixed["compute"]
        if compute is not None and compute.endswith(".outer"):
            yield (), f"what is in registers is computed at the vectorised loop, not at {compute} (compute)"
        if site.fixed["vector"] == 1:
            yield (), f"registers hold vectors, and '{site.name}' has none (vector)"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        if isinstance(record, Group):
            return f"'{name}' is the output of a group, not kept in registers" if fixed == "registers" else None
        return None if record.storage == fixed else f"'{name}' is in {record.storage}, not in {fixed}"
