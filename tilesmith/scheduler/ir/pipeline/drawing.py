"""Graphs drawn as SVG for notebooks, in layers from top to bottom: no script, and the page's own colours.

Boxes let the page's colour through, light or dark, and what lies behind them is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from itertools import count

MOST_NODES = 150
"""Boxes of a picture in which something is to be seen."""
_CHARACTER, _HEIGHT, _GAP, _DEPTH, _MARGIN = 7.5, 40, 24, 84, 12


@dataclass(frozen=True, slots=True)
class Node:
    """A box: its name, a note below it, the nodes before it that it `reads`, and its `group`, which has one colour;
    None: it is dashed, as inputs are. `is_output`: it has a thick border."""

    name: str
    note: str
    reads: tuple[str, ...]
    group: int | None = None
    is_output: bool = False


def graph(title: str, nodes: Sequence[Node]) -> str:
    """The nodes, each below all that it reads; empty for more than can be seen."""
    if len(nodes) > MOST_NODES:
        return ""
    layers = _layers(nodes)
    widths = [sum(map(_width, layer)) + _GAP * (len(layer) - 1) for layer in layers]
    full, at = max(widths, default=0), dict[str, tuple[float, float]]()
    for depth, (layer, width) in enumerate(zip(layers, widths, strict=True)):
        left = _MARGIN + (full - width) / 2
        for node in layer:
            at[node.name] = (left + _width(node) / 2, _MARGIN + depth * _DEPTH)
            left += _width(node) + _GAP
    lines = [_edge(at[read], at[node.name]) for node in nodes for read in node.reads if read in at]
    boxes = [_box(node, *at[node.name]) for node in nodes]
    size = f"{full + 2 * _MARGIN:.0f} {_DEPTH * len(layers) - (_DEPTH - _HEIGHT) + 2 * _MARGIN:.0f}"
    behind = "".join(f"<rect {_outline(node, *at[node.name])}/>" for node in nodes)
    mask = f"behind-{sha256(behind.encode()).hexdigest()[:16]}"  # of this picture: ids are those of the whole page
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" viewBox="0 0 {size}" '
        f'style="max-width:100%;width:{full + 2 * _MARGIN:.0f}px" font-family="sans-serif" font-size="12" '
        f'text-anchor="middle" fill="currentColor" stroke="none">'
        f'<mask id="{mask}" maskUnits="userSpaceOnUse" x="0" y="0" width="100%" height="100%">'
        f'<rect width="100%" height="100%" fill="#fff"/><g fill="#000">{behind}</g></mask>'
        f'<g mask="url(#{mask})">{"".join(lines)}</g>{"".join(boxes)}</svg>'
    )


def _layers(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes below all that they read and next to what reads them, each layer in the order of what it reads."""
    depth: dict[str, int] = {}
    for node in nodes:
        depth[node.name] = max((depth[read] + 1 for read in node.reads if read in depth), default=0)
    above: dict[str, int] = {}
    for node in reversed(nodes):
        depth[node.name] = above.get(node.name, depth[node.name])
        above |= {read: min(depth[node.name] - 1, above.get(read, depth[node.name])) for read in node.reads}
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        layers[depth[node.name]].append(node)
    place: dict[str, float] = {}
    for layer in layers:
        means = {n.name: _mean([place[read] for read in n.reads if read in place]) for n in layer}
        layer.sort(key=lambda n: means[n.name])
        place |= {node.name: position - (len(layer) - 1) / 2 for position, node in zip(count(), layer, strict=False)}
    return layers


def _mean(places: list[float]) -> float:
    return sum(places) / len(places) if places else 0.0


def _width(node: Node) -> float:
    return _CHARACTER * max(len(node.name), len(node.note), 4) + 16


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = (start[0], start[1] + _HEIGHT), end
    half = (y + to_y) / 2
    path = f"M{x:.1f},{y:.1f} C{x:.1f},{half:.1f} {to_x:.1f},{half:.1f} {to_x:.1f},{to_y:.1f}"
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>'


def _box(node: Node, x: float, y: float) -> str:
    dashed = ' stroke-dasharray="4 3" fill="none"' if node.group is None else f' fill="{_colour(node.group)}"'
    border = f'stroke="currentColor" stroke-width="{2.5 if node.is_output else 1}"'
    note = f'<text x="{x:.1f}" y="{y + 32}" font-size="10" fill-opacity="0.75">{escape(node.note)}</text>'
    outline = _outline(node, x, y)
    return f'<rect {outline} {border}{dashed}/><text x="{x:.1f}" y="{y + 17}">{escape(node.name)}</text>{note}'


def _outline(node: Node, x: float, y: float) -> str:
    return f'x="{x - _width(node) / 2:.1f}" y="{y}" width="{_width(node):.1f}" height="{_HEIGHT}" rx="6"'


def _colour(group: int) -> str:
    """A colour of its own for each group, through which the page's shows: light or dark."""
    return f"hsla({(210 + 137 * group) % 360},70%,55%,0.25)"
