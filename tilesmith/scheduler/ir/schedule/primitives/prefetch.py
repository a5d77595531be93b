"""Software prefetch: loops over vectors ask ahead for what they read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement

MAX_PREFETCH = 1 << 20

Distance = Annotated[int, Field(strict=True, ge=0, le=MAX_PREFETCH)]


class Prefetch(Primitive[int]):
    """Software prefetch: bytes ahead, along a row, of what loops over vectors read of inputs and of other groups; 0
    leaves that to the machine.

        for x.inner by 8:             for x.inner by 8:
          f(x) = g(x) + 1       ->      prefetch g(x + 512)
                                        f(x) = g(x) + 1
    """

    key = "prefetch"
    default = 0
    form = Distance
    fixed_form = Distance | None
    stands_alone = True

    def check(self, value: int, at: Site) -> None:
        if value < 0:
            raise at.refuse("prefetch is a number of bytes ahead")

    def difference(self, value: int) -> str:
        return f"prefetches {f'{value} bytes' if value else 'nothing'} ahead"

    def notes(self, value: int) -> tuple[str, ...]:
        return (f"prefetches {value} bytes ahead",) if value else ()

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        found = self.of(record)
        return None if found == fixed else f"'{name}' prefetches {found} bytes ahead, not {fixed}"
