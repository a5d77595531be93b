"""Unrolling: short intra-tile loops of a group are written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.forms import Dims
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site, known_extent, twice
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, dim_of, inner

MAX_UNROLL = 32


class Unroll(Primitive[tuple[str, ...]]):
    """The dims of the output whose intra-tile loops are unrolled.

    for x.inner:                  for x.inner:
      for c.inner:          ->      f(x, 0) = ...
        f(x, c) = ...               f(x, 1) = ...
    """

    key = "unroll"
    default: tuple[str, ...] = ()
    always = True
    form = Dims
    fixed_form = Dims | None

    def check(self, value: tuple[str, ...], at: Site) -> None:
        if len(set(value)) != len(value):
            raise at.refuse("a dim is unrolled twice")
        for dim in value:
            if dim not in at.stage.dims:
                raise at.refuse(f"unrolled in '{dim}', which is none of its dims")
            if at.group.parallel == inner(dim):
                raise at.refuse(f"'{dim}' is both unrolled and parallel")
            extent = known_extent(at, dim)
            if extent is None or extent > MAX_UNROLL:
                raise at.refuse(f"unrolled in '{dim}', which has more than {MAX_UNROLL} iterations")

    def difference(self, value: tuple[str, ...]) -> str:
        return f"unrolled in {', '.join(value) or 'nothing'}"

    def loop_words(self, value: tuple[str, ...], loop: str) -> tuple[str, ...]:
        return ("unrolled",) if loop == inner(dim_of(loop)) and dim_of(loop) in value else ()

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        return (((n,), dim) for n, dim in enumerate(fixed))

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from twice(fixed)
        for dim, size in site.fixed["tiles"]:
            if size is not None and size > MAX_UNROLL and dim in fixed:
                yield (), f"the tile of '{dim}' is {size}: at most {MAX_UNROLL} are unrolled"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        found = self.of(record)
        if set(found) == set(fixed):
            return None
        return f"'{name}' is unrolled in {', '.join(found) or 'none'}, not {', '.join(fixed) or 'none'}"
