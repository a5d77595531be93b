"""Compute and store levels: the loops of a group at which a stage is computed and kept."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import LOOP, Loop
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site, is_unrolled
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Group, Placement

Level = Annotated[str, Field(strict=True, pattern=f"^({LOOP}|{INLINE})$")]


class ComputeAt(Primitive[str]):
    """The loop of the group in each of whose iterations a stage is computed, or INLINE: where it is read.

    f(x, y) = g(x, y) + ...       for y.inner:
                                    produce g:
    for y.inner:            ->        for x: g(x, y) = ...
      for x.inner:                  for x.inner:
        f(x, y) = ...                 f(x, y) = g(x, y) + ...
    """

    key = "compute"
    records = (Placement,)
    default = INLINE
    required = True
    form = Level
    fixed_form = Annotated[str, Field(strict=True, pattern=f"^({LOOP}|{INLINE}|{ROOT})$")] | None
    expected = "'inline', 'root', or a loop such as 'y.inner'"

    def check(self, value: str, at: Site) -> None:
        placement = _placement(at)
        if (value == INLINE) != (placement.store == INLINE):
            raise at.refuse("inline must be both its compute and its store level")
        if value == INLINE:
            if at.stage.updates:
                raise at.refuse("inline, but it has updates, which need memory")
            if placement.vector is not None or placement.storage != "memory":
                raise at.refuse("an inline stage has neither vectors nor storage")
            return
        check_level(self.key, value, at)
        for consumer in at.readers():
            other = at.group.placement(consumer)
            level = -1 if other is None else _position(at.group, other.compute)
            if _position(at.group, value) < level:
                raise at.refuse(f"computed at '{value}', inside the level of its consumer '{consumer}'")

    def difference(self, value: str) -> str:
        return ""

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        if isinstance(record, Group):
            return None if fixed == ROOT else f"'{name}' is the output of a group, not {_level(fixed)}"
        return None if record.compute == fixed else f"'{name}' is {_level(record.compute)}, not {_level(fixed)}"


class StoreAt(Primitive[str]):
    """The loop of the group for one iteration of which a stage is kept: that of its compute level, or one further out.
    Then what an iteration between them has left is not computed again, a sliding window.

        for y.inner:                  allocate g
          allocate g            ->    for y.inner:
          produce g                     produce g, what is new of it
    """

    key = "store"
    records = (Placement,)
    default = INLINE
    required = True
    form = Level
    fixed_form = Loop | None
    expected = "a loop such as 'y.outer'"

    def check(self, value: str, at: Site) -> None:
        compute = _placement(at).compute
        if compute == INLINE:
            return
        check_level(self.key, value, at)
        if at.group.loops.index(value) < at.group.loops.index(compute):
            raise at.refuse("its store level is inside its compute level")

    def difference(self, value: str) -> str:
        return ""

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        if isinstance(record, Group):
            return f"'{name}' is the output of a group, not stored at {fixed}"
        return None if record.store == fixed else f"'{name}' is stored at {record.store}, not at {fixed}"


def check_level(what: str, loop: str, at: Site) -> None:
    """The rule of levels: they are loops of the group that are not unrolled."""
    if loop not in at.group.loops:
        raise at.refuse(f"its {what} level '{loop}' is no loop of the group")
    if is_unrolled(at.group, loop):
        raise at.refuse(f"its {what} level '{loop}' is unrolled")


def _placement(at: Site) -> Placement:
    assert at.placement is not None  # of members only
    return at.placement


def _position(group: Group, loop: str) -> int:
    """0 for the innermost loop, -1 for one that the group has not: that is refused where it stands."""
    return group.loops.index(loop) if loop in group.loops else -1


def _level(compute: str) -> str:
    match compute:
        case "inline":
            return "inline"
        case "root":
            return "at root"
    return f"computed at {compute}"
