"""Layered drawings: what is read stands above its readers, no two boxes share a place, lines go down."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tilesmith.app.service.dashboard.layers import layered


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Graphs without cycles, some boxes without lines."""
    count = draw(st.integers(1, 12))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    order = draw(st.permutations(range(count)))
    return count, [(order[a], order[b]) for a, b in edges]


@given(graphs())
def test_lines_go_down_from_box_to_box(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    found = layered(count, edges)
    assert len(set(found.boxes)) == len(found.boxes) == count
    for (a, b), line in zip(edges, found.lines, strict=True):
        assert (line[0], line[-1]) == (found.boxes[a], found.boxes[b])
        assert all(upper[1] < lower[1] for upper, lower in itertools.pairwise(line))
    assert all(0 <= x <= found.columns and 0 <= y <= found.rows for x, y in found.boxes)
    assert layered(count, edges) == found


def test_boxes_of_a_layer_stand_apart() -> None:
    found = layered(4, [(0, 1), (0, 2), (0, 3)])
    xs = sorted(x for x, y in found.boxes if y == 1)
    assert len(xs) == 3
    assert all(b - a >= 1 for a, b in itertools.pairwise(xs))


def test_a_line_that_passes_a_layer_goes_around_its_boxes() -> None:
    found = layered(3, [(0, 1), (1, 2), (0, 2)])
    bend = found.lines[2][1]
    assert bend[1] == found.boxes[1][1]
    assert abs(bend[0] - found.boxes[1][0]) > 0.5


def test_parts_of_a_graph_that_hang_together_stand_side_by_side() -> None:
    edges = [(9, 3), (8, 3), (1, 3), (4, 1), (5, 10), (7, 3), (8, 10), (8, 1), (9, 10), (7, 5), (8, 7), (0, 6), (2, 5)]
    found = layered(11, edges)
    alone = {found.boxes[n][0] for n in (0, 6)}
    others = {x for n, (x, _) in enumerate(found.boxes) if n not in (0, 6)}
    assert max(alone) + 1 <= min(others) or max(others) + 1 <= min(alone)
    assert all(line[0][1] < line[-1][1] for line in found.lines)
