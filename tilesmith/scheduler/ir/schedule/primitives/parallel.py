"""Parallel loops: the outermost loop of a group is run by threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import LOOP, Loop, absent
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, dim_of, inner, outer

NONE = "none"
"""The fixed value for no threads."""


class Parallel(Primitive[str | None]):
    """The loop whose iterations threads share, or None.

    for y.outer:                  parallel for y.outer:
      for y.inner:          ->      for y.inner:
        for x.inner:                  for x.inner:
    """

    key = "parallel"
    default: str | None = None
    always = True
    form = Loop | None
    fixed_form = Annotated[str | None, Field(strict=True, pattern=f"^({LOOP}|{NONE})$"), absent(NONE)]
    expected = "'none' or a loop such as 'y.outer'"

    def check(self, value: str | None, at: Site) -> None:
        if value is None:
            return
        if not at.group.loops or value != at.group.loops[-1]:
            raise at.refuse("the parallel loop is not its outermost loop")

    def difference(self, value: str | None) -> str:
        return f"threads over {value or 'nothing'}"

    def loop_words(self, value: str | None, loop: str) -> tuple[str, ...]:
        return ("parallel",) if loop == value else ()

    def of_fixed(self, fixed: Any) -> str | None:
        return None if fixed == NONE else str(fixed)

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        return iter(() if fixed == NONE else [((), str(fixed))])

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        if fixed == NONE:
            return
        dim, loops = dim_of(fixed), site.fixed["loops"]
        inside = fixed == inner(dim)
        tiled = [outer(d) for d, size in site.fixed["tiles"] if size is not None]
        outside = [*tiled, *(o for o in loops if o.endswith(".outer"))] if inside else []
        if fixed in loops and fixed != loops[-1]:
            outside = [loops[-1]]
        if outside:
            yield (), f"only the outermost loop is parallel: '{outside[0]}' is outside of it"
        if dim not in site.pure:
            yield (), f"an update of '{site.name}' does not keep '{dim}' in place"
        if inside and dim in (site.fixed["unroll"] or ()):
            yield (), f"'{dim}' is unrolled (unroll)"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        found = self.of(record) or NONE
        return None if found == fixed else f"the parallel loop of '{name}' is {found}, not {fixed}"
