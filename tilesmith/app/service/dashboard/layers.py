"""Layered drawings of graphs (Sugiyama's method): places of equal boxes, and the bends of the lines between them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
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
    graph: nx.Graph[int] = nx.Graph(edges)
    graph.add_nodes_from(range(count))
    places: dict[_Node, Point] = {}
    follows: dict[_Node, list[_Node]] = {}
    right = 0.0
    for number, members in enumerate(sorted(map(sorted, nx.connected_components(graph)))):
        inside = set(members)
        positions, width = _component(number, members, [e for e in edges if e[0] in inside], follows)
        places |= {node: (x + right, y) for node, (x, y) in positions.items()}
        right += width + 1
    return Layout(
        tuple(places[_BOX, n] for n in range(count)),
        tuple(tuple(places[at] for at in _path(edge, follows)) for edge in edges),
        max((x for x, _ in places.values()), default=0.0),
        max((y for _, y in places.values()), default=0.0),
    )


def _component(
    number: int, members: Sequence[int], edges: Sequence[tuple[int, int]], follows: dict[_Node, list[_Node]]
) -> tuple[dict[_Node, Point], float]:
    """Places of the boxes and bends of one component, and its width; `follows` is added to. Each is laid out alone: the
    library wants its boxes to be 0, 1, 2, ..., and numbers bends after them."""
    if not edges:
        return {(_BOX, n): (0.0, 0.0) for n in members}, 0.0

    def node(n: int | str) -> _Node:
        return (_BOX, members[int(n)]) if int(n) < len(members) else (number, int(n))

    dense = {n: at for at, n in enumerate(members)}
    ((positions, width, height, found),) = from_edges(
        [(dense[a], dense[b]) for a, b in edges],
        vertex_spacing=1.0,
        dummy_vertices=True,
        dummy_size=BEND,
        ranking_type="up",
    )
    for a, b in found or ():
        follows.setdefault(node(a), []).append(node(b))
    left = min(x for _, (x, _) in positions)
    return {node(n): (x - left, height - y) for n, (x, y) in positions}, width


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
