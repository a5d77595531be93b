"""Vectorisation: the points of a row are computed several at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilesmith.scheduler.ir.schedule.primitives.forms import Lanes, VectorForm
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Vector, dim_of, inner

MAX_LANES = 256


class Vectorize(Primitive[Vector | None]):
    """The vector of a group's output or of a member: `lanes` values at a time along a dim.

    for x.inner:                  vectorised by 8 for x.inner:
      f(x, y) = ...         ->      f(x ... x + 7, y) = ...
    """

    key = "vector"
    records = (Group, Placement)
    default: Vector | None = None
    always = True
    form = VectorForm | None
    fixed_form = Lanes

    def read(self, parsed: VectorForm | None) -> Vector | None:
        return None if parsed is None else Vector(parsed.dim, parsed.lanes)

    def write(self, value: Vector | None) -> Any:
        return None if value is None else {"dim": value.dim, "lanes": value.lanes}

    def check(self, value: Vector | None, at: Site) -> None:
        if value is None:
            return
        if value.dim not in at.stage.dims:
            raise at.refuse(f"vectorised in '{value.dim}', which is none of its dims")
        check_lanes(value, at)
        if at.placement is None:
            _check_group(value, at)
            return
        row = None if at.group.vector is None else inner(at.group.vector.dim)
        order = at.placement.order
        if at.placement.compute == row and order and order[0] != value.dim:
            raise at.refuse("its vectorised dim is not its innermost loop, as it is computed in one of vectors")

    def difference(self, value: Vector | None) -> str:
        return "no vectors" if value is None else f"{value.lanes} lanes along {value.dim}"

    def loop_words(self, value: Vector | None, loop: str) -> tuple[str, ...]:
        along = value is not None and loop in (value.dim, inner(value.dim))
        return (f"vectorised by {value.lanes}",) if value is not None and along else ()

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        if fixed != 1 and not site.stage.dims:
            yield (), f"'{site.name}' has no dims: there is nothing to give it in {self.key}"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        vector = self.of(record)
        lanes = 1 if vector is None else vector.lanes
        return None if lanes == fixed else f"'{name}' has {_lanes(lanes)}, not {_lanes(fixed)}"


def check_lanes(vector: Vector, at: Site) -> None:
    """The rule of lanes, of a stage or of one of its updates."""
    if not 2 <= vector.lanes <= MAX_LANES or vector.lanes & (vector.lanes - 1):
        raise at.refuse(f"{vector.lanes} lanes: it must be a power of two from 2 to {MAX_LANES}")


def _check_group(vector: Vector, at: Site) -> None:
    row = inner(vector.dim)
    loops = [loop for loop in at.group.loops if dim_of(loop) not in at.group.unroll]
    if vector.dim in at.group.unroll:
        raise at.refuse(f"'{vector.dim}' is both unrolled and vectorised")
    if loops[0] != row:
        raise at.refuse("the vectorised loop is not the innermost one that is not unrolled")
    if at.group.parallel == row:
        raise at.refuse(f"'{row}' is both vectorised and parallel")


def _lanes(lanes: int) -> str:
    return "no vectors" if lanes == 1 else f"{lanes} lanes"
