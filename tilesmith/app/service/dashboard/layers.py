"""Layered drawings of graphs (Sugiyama's method): places of equal boxes, and the bends of the lines between them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fast_sugiyama import from_edges

BEND = 0.3
"""Room of a line that passes a layer, in that of a box."""

Point = tuple[float, float]

logging.getLogger("rust-sugiyama").setLevel(logging.WARNING)  # it tells of each of its steps


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of boxes by their number, in columns and rows from 0 on, and the points of every line from box to box;
    `columns` and `rows` are how many there are."""

    boxes: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    columns: float
    rows: float


def layered(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """The layout of so many boxes with these edges, which make no cycle and are different ones: what is read stands
    above its readers. The same for the same graph."""
    joined = sorted({n for edge in edges for n in edge})  # the library wants these to be 0, 1, 2, ...
    dense = {n: at for at, n in enumerate(joined)}
    places: dict[_Node, Point] = {}
    follows: dict[_Node, list[_Node]] = {}
    right = 0.0
    parts = from_edges(
        [(dense[a], dense[b]) for a, b in edges],
        vertex_spacing=1.0,
        dummy_vertices=True,
        dummy_size=BEND,
        ranking_type="up",
    )
    for number, (positions, width, height, found) in enumerate(parts):

        def node(n: int | str, number: int = number) -> _Node:
            return (_BOX, joined[int(n)]) if int(n) < len(joined) else (number, int(n))

        left = min(x for _, (x, _) in positions)
        places |= {node(n): (x - left + right, height - y) for n, (x, y) in positions}
        for a, b in found or ():
            follows.setdefault(node(a), []).append(node(b))
        right += width + 1
    for n in range(count):
        if n not in dense:
            places[_BOX, n] = (right, 0.0)
            right += 1
    lines = tuple(tuple(places[at] for at in _path(edge, follows)) for edge in edges)
    return Layout(
        tuple(places[_BOX, n] for n in range(count)),
        lines,
        max((x for x, _ in places.values()), default=0.0),
        max((y for _, y in places.values()), default=0.0),
    )


_BOX = -1
_Node = tuple[int, int]
"""A box, by _BOX and its number, or a bend, by those of the component and of its own."""


def _path(edge: tuple[int, int], follows: Mapping[_Node, Sequence[_Node]]) -> list[_Node]:
    """The nodes of an edge by way of its bends, each of which has one that follows."""
    start, end = ((_BOX, n) for n in edge)
    for first in follows.get(start, ()):
        path = [start, first]
        while path[-1][0] != _BOX:
            path.append(follows[path[-1]][0])
        if path[-1] == end:
            return path
    return [start, end]
