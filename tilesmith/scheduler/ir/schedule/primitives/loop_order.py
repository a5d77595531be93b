"""Loop order: the loops of a group, and the loops of a member alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.forms import A_LOOP, Dims, Loops
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site, in_order, twice
from tilesmith.scheduler.ir.schedule.primitives.tile import TileDims
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, dim_of, inner, outer

_TILES = TileDims()


class LoopOrder(Primitive[tuple[str, ...]]):
    """The loops of a group, innermost first: all intra-tile loops before all inter-tile loops (D_m of TACO 2019).

    for y.inner:                  for x.inner:
      for x.inner:          ->      for y.inner:
        f(x, y) = ...                 f(x, y) = ...
    """

    key = "loops"
    default: tuple[str, ...] = ()
    always = True
    form = Loops
    fixed_form = Loops
    open: object = ()
    expected = A_LOOP

    def check(self, value: tuple[str, ...], at: Site) -> None:
        _TILES.check(at.group.tiles, at)  # it is tiles that make inter-tile loops
        expected = {inner(d) for d in at.stage.dims} | {outer(t.dim) for t in at.group.tiles}
        if len(value) != len(expected) or set(value) != expected:
            raise at.refuse(f"its loops must be {', '.join(sorted(expected)) or 'none'}: each once, no others")
        kinds = [loop.endswith(".outer") for loop in value]
        if kinds != sorted(kinds):
            raise at.refuse("intra-tile and inter-tile loops mix")

    def difference(self, value: tuple[str, ...]) -> str:
        return f"loops {' '.join(value)}"

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        return (((n,), loop) for n, loop in enumerate(fixed))

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from twice(fixed)
        kinds = [loop.endswith(".outer") for loop in fixed]
        if kinds != sorted(kinds):
            yield (), "inter-tile loops are outside of all intra-tile loops"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        loops = self.of(record)
        if in_order(fixed, loops):
            return None
        return f"the loops of '{name}' are {', '.join(loops)}, not {', '.join(fixed)}"


class MemberOrder(Primitive[tuple[str, ...]]):
    """The loops of a member of a group over its own dims, innermost first; of the dims of a group's output, where it is
    fixed, the order of their intra-tile loops.

        produce f:                    produce f:
          for y:                        for x:
            for x:              ->        for y:
              f(x, y) = ...                 f(x, y) = ...
    """

    key = "order"
    records = (Placement,)
    default: tuple[str, ...] = ()
    always = True
    form = Dims
    fixed_form = Dims
    open: object = ()

    def check(self, value: tuple[str, ...], at: Site) -> None:
        if value and sorted(value) != sorted(at.stage.dims):
            raise at.refuse("its loop order is not a permutation of its dims")

    def difference(self, value: tuple[str, ...]) -> str:
        return f"loops {' '.join(value)}"

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        return (((n,), dim) for n, dim in enumerate(fixed))

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        if fixed and not site.stage.dims:
            yield (), f"'{site.name}' has no dims: there is nothing to give it in {self.key}"
        yield from twice(fixed)
        loops = site.fixed["loops"]
        own = tuple(dim_of(loop) for loop in loops if loop == inner(dim_of(loop)))
        common = set(own) & set(fixed)
        if [d for d in own if d in common] != [d for d in fixed if d in common]:
            yield (), f"the loops are fixed in another order: {', '.join(loops)}"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        if isinstance(record, Placement):
            order = record.order
        else:
            order = tuple(dim_of(loop) for loop in record.loops if loop == inner(dim_of(loop)))
        if in_order(fixed, order):
            return None
        return f"the dims of '{name}' are in the order {', '.join(order)}, not {', '.join(fixed)}"
