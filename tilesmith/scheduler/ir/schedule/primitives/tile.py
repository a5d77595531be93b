"""Tiling: dims of a group's output are cut into tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from tilesmith.scheduler.ir.schedule.primitives.forms import Form, Identifier, Size
from tilesmith.scheduler.ir.schedule.primitives.primitive import FixedSite, Primitive, Site
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Tile, dim_of, outer


class TileForm(Form):
    dim: Identifier
    size: Size | None = None


class TileDims(Primitive[tuple[Tile, ...]]):
    """Tiles of the output's dims: an inter-tile loop each, around all intra-tile loops.

    for y.inner:                  for y.outer in tiles of 32:
      for x.inner:          ->      for y.inner in 32:
        f(x, y) = ...                 for x.inner:
                                        f(x, y) = ...
    """

    key = "tiles"
    default: tuple[Tile, ...] = ()
    always = True
    form = Annotated[tuple[TileForm, ...], Field(max_length=16)]
    fixed_form = Annotated[dict[Identifier, Size | None], Field(max_length=16)]
    open: object = ()

    def read(self, parsed: tuple[TileForm, ...]) -> tuple[Tile, ...]:
        return tuple(Tile(t.dim, t.size) for t in parsed)

    def write(self, value: tuple[Tile, ...]) -> Any:
        return [{"dim": t.dim, "size": t.size} for t in value]

    def check(self, value: tuple[Tile, ...], at: Site) -> None:
        tiled = [t.dim for t in value]
        for tile in value:
            if tile.dim not in at.stage.dims:
                raise at.refuse(f"tiled in '{tile.dim}', which is none of its dims")
            if tile.size is not None and tile.size < 1:
                raise at.refuse(f"the tile of '{tile.dim}' is smaller than 1")
        if len(set(tiled)) != len(tiled):
            raise at.refuse("a dim has two tiles")

    def difference(self, value: tuple[Tile, ...]) -> str:
        return f"tiles {' x '.join(_size(t.size) for t in value) or 'none'}"

    def loop_size(self, value: tuple[Tile, ...], loop: str) -> str:
        tile = next((t for t in value if t.dim == dim_of(loop)), None)
        if tile is None:
            return ""
        if loop == outer(tile.dim):
            return " in 1 tile" if tile.size is None else f" in tiles of {tile.size}"
        return " in whole extent" if tile.size is None else f" in {tile.size}"

    def read_fixed(self, parsed: dict[str, int | None]) -> tuple[tuple[str, int | None], ...]:
        return tuple(sorted(parsed.items()))

    def write_fixed(self, fixed: Any) -> Any:
        return dict(fixed)

    def fixed_names(self, fixed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        return (((d,), d) for d, _ in fixed)

    def contradictions(self, fixed: Any, site: FixedSite) -> Iterator[tuple[tuple[str, ...], str]]:
        for dim, size in fixed:
            if size is not None and dim not in site.pure:
                yield (dim,), f"an update of '{site.name}' does not keep '{dim}' in place: no tiles"

    def refusal(self, name: str, fixed: Any, record: Group | Placement) -> str | None:
        tiles = {t.dim: t.size for t in self.of(record)}
        for dim, size in fixed:
            if tiles.get(dim) != size:
                return f"the tile of '{dim}' of '{name}' is {_size(tiles.get(dim))}, not {_size(size)}"
        return None


def _size(size: int | None) -> str:
    return "whole" if size is None else str(size)
