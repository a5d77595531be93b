"""Rows of a stage and their vectors: how many begin, how many steps they take, what is left over for scalars."""

from __future__ import annotations

from tilesmith.cost_models.amounts import Amount, ceiling, chosen
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.traffic.cache_traffic import POINT, WHOLE, state
from tilesmith.scheduler.features.traffic.running_group import RunningGroup


def vectors_of_rows(group: RunningGroup, name: str, run: Run, points: Amount) -> tuple[Amount, Amount, Amount]:
    """Rows, steps, and points computed one by one; updates run through the rows of what they update."""
    if run.row is None:
        return points, points / run.lanes, 0.0
    rows, steps, singles = _along(group, name, run, run.row, points)
    return (rows, points / run.lanes, 0.0) if group.facts.stages[name].updates else (rows, steps, singles)


def _along(group: RunningGroup, name: str, run: Run, dim: str, points: Amount) -> tuple[Amount, Amount, Amount]:
    """Rows, steps and single points of rows along one dim: whole in a tile or in the image, or of one vector of the
    output."""
    counter, facts = group.counter, group.facts.stages[name]
    span = counter.members.follows[name][dim]
    if span.var is None or not span.known:
        length = float(span.extent(1) if span.known else facts.extent(dim))
        return _cut(points / length, length, run.lanes)
    axis, line = counter.nest.axes[span.var], counter.members.line(span, facts.extent(dim))
    of = group.running.stages[counter.members.output]
    if group.is_of_a_vector(name) and axis.dim == of.row and counter.levels[name].store == counter.levels[name].compute:
        return _cut(points / (line.mean_window() * of.lanes), float(line.extent(of.lanes)), run.lanes)
    around = state(counter.nest, axis.dim, group.level(name))
    if around == POINT:
        return _cut(points / line.mean_window(), float(line.window()), run.lanes)
    if around == WHOLE:
        length = float(line.extent(axis.extent))
        return _cut(points / length, length, run.lanes)
    full, last = line.extent(axis.sizes) * 1.0, line.extent(axis.last) * 1.0
    row = points / ((axis.counts - 1) * full + last)  # rows of the image
    first = _cut(row * (axis.counts - 1), full, run.lanes)
    second = _cut(row, last, run.lanes)
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def _cut(rows: Amount, length: Amount, lanes: int) -> tuple[Amount, Amount, Amount]:
    """Rows of one length: the last vector of a row begins early, where the row is not shorter than a vector."""
    if lanes == 1:
        return rows, rows * length, rows * 0.0
    vectors = ceiling(length / lanes)
    short = length < lanes
    return rows, rows * chosen(short, 0.0, vectors), rows * chosen(short, length, 0.0)
