"""Maps of cost over tile sizes: the choice costs what the schedule is predicted to, the others what they would."""

from dataclasses import replace

import pytest

from tilesmith.cost_models.ecm import Ecm
from tilesmith.platforms import load
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Tile
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.tile_costs import TileCosts, tile_costs

MACHINE = load("i7-6700")


NEAR = 5e-3
"""The difference of a price among those of all sizes from that of one: how often stages run in a loop that they share
is one figure for all sizes."""


def plan_of(name: str) -> Plan:
    return autoschedule(pipelines.load(name), MACHINE, SearchOptions("default")).plan


def at(costs: TileCosts, sizes: tuple[int, ...]) -> float:
    first, *others = (of.index(size) for of, size in zip(costs.sizes, sizes, strict=True))
    return costs.costs[first][others[0] if others else 0]


def of_group(plan: Plan, output: str) -> float:
    return sum(float(s.total) for s in predict(plan, MACHINE, Ecm()).stages if s.group == output)


@pytest.mark.parametrize("name", ["blur", "harris", "bilateral_grid", "interpolate", "vdsr"])
def test_the_choice_costs_what_is_predicted(name: str) -> None:
    plan = plan_of(name)
    found = tile_costs(plan, MACHINE, Ecm())
    assert found
    for costs in found:
        assert at(costs, costs.chosen) == pytest.approx(of_group(plan, costs.output), rel=NEAR)
        assert [len(costs.costs), len(costs.costs[0])] == [*map(len, costs.sizes), 1][:2]
        assert all(list(of) == sorted(set(of)) for of in costs.sizes)


def test_another_size_costs_what_a_schedule_with_it_does() -> None:
    plan = plan_of("harris")
    (costs,) = tile_costs(plan, MACHINE, Ecm())
    (group,) = plan.schedule.groups
    y = costs.dims.index("y")
    size = next(n for n in costs.sizes[y] if n >= 100)
    tiles = tuple(Tile(t.dim, size if t.dim == "y" else t.size) for t in group.tiles)
    other = replace(plan, schedule=replace(plan.schedule, groups=(replace(group, tiles=tiles),)))
    sizes = tuple(size if n == y else chosen for n, chosen in enumerate(costs.chosen))
    assert at(costs, sizes) == pytest.approx(of_group(other, group.output), rel=NEAR)
    assert at(costs, sizes) != at(costs, costs.chosen)


def test_a_document_has_a_row_for_each_size_of_the_first_dim() -> None:
    found = TileCosts("out", ("x", "y"), ((8, 16), (1, 2, 4)), (16, 4), ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
    document = found.to_document()
    assert document["dims"][1] == {"dim": "y", "sizes": [1, 2, 4], "chosen": 4}
    assert document["costs"][1][2] == 6.0
