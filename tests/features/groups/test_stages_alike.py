"""Stages that are the same but for names, as layers of a network are, and what their groups have in common."""

from __future__ import annotations

from typing import Any

import pytest

from tilesmith.cost_models import Ecm
from tilesmith.platforms import catalog
from tilesmith.scheduler.features.groups.stages_alike import group_form
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search.ecm.group_candidates import Planner
from tilesmith.scheduler.search.taco2019.grouping import Segment


def layers(*values: str, of: tuple[int, int] = (256, 32)) -> Facts:
    """The facts of stages in a row; a value says `{before}` for what is before it, and `{n}` for its number."""
    names = ["image", *(f"layer{n}" for n in range(len(values)))]
    document: dict[str, Any] = {
        "format": 1,
        "name": "layers",
        "inputs": [
            {"name": "image", "type": "float32", "dims": ["x", "c"]},
            {"name": "weights", "type": "float32", "dims": ["i", "c", "n"]},
        ],
        "stages": [
            {"name": name, "dims": ["x", "c"], "value": value.format(before=before, n=n)}
            for n, (before, name, value) in enumerate(zip(names, names[1:], values, strict=False))
        ],
        "outputs": [names[-1]],
        "estimates": {names[-1]: [[0, of[0]], [0, of[1]]]},
    }
    return gather(load(document))


PRODUCT = "sum({before}(x, r) * weights(r, c, {n}) for r in range(32))"


def test_layers_are_alike_but_for_the_first_and_the_last() -> None:
    facts = layers(*(PRODUCT,) * 5)
    keys = [group_form(facts, (name,)) for name in facts.graph.stages]
    assert keys[1] == keys[2] == keys[3]
    assert len(set(keys)) == 3, "the first reads an image, the last is an output"


def test_groups_are_alike_whose_stages_read_each_other_alike() -> None:
    facts = layers(*(PRODUCT,) * 5)
    two = group_form(facts, ("layer1", "layer2"))
    assert two == group_form(facts, ("layer2", "layer3"))
    assert two != group_form(facts, ("layer1", "layer3")), "the second of these reads nothing of the first"


@pytest.mark.parametrize(
    "other",
    [
        "sum({before}(x, r) * weights(r, c, {n}) for r in range(16))",
        "sum({before}(x, r) * weights(c, r, {n}) for r in range(32))",
        "sum({before}(x, r) * weights(r, c, {n}) for r in range(32)) + 1.0",
        "sum({before}(x, r) * {before}(x, c) for r in range(32))",
        "max({before}(x, c), 0.0)",
    ],
)
def test_stages_of_other_values_are_not_alike(other: str) -> None:
    facts = layers(PRODUCT, PRODUCT, other, PRODUCT)
    assert group_form(facts, ("layer1",)) != group_form(facts, ("layer2",))


def test_neighbours_of_other_extents_have_one_key_and_are_near_where_these_hardly_differ() -> None:
    facts = layers(*("{before}(x, c) + {before}(x + 1, c)",) * 6)
    forms = [group_form(facts, (name,)) for name in facts.graph.stages]
    assert len(set(forms)) == 6
    _, one, two, *_, before, _ = forms
    assert one.key == two.key == before.key
    assert all((one.is_near(two, 1.01), two.is_near(one, 1.01)))
    assert not any((one.is_near(before, 1.01), before.is_near(one, 1.01)))


def test_groups_are_apart_whose_stages_compute_more_than_their_output_needs() -> None:
    """As where another group reads more of one of them."""
    sums = "{before}(x, c) + {before}(x + 1, c)"
    facts = layers(*(sums,) * 5, "{before}(x, c) + layer1(x + 9, c)", sums)
    one, two = (group_form(facts, names) for names in (("layer1", "layer2"), ("layer2", "layer3")))
    assert one.key != two.key


def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outputs of the groups that planners work out from now on."""
    found, of = list[str](), Planner._sized

    def sized(self: Planner, segment: Segment, further: bool) -> Any:
        found.append(segment.output)
        return of(self, segment, further)

    monkeypatch.setattr(Planner, "_sized", sized)
    return found


@pytest.mark.parametrize("names", [(("layer1",), ("layer2",)), (("layer2", "layer3"), ("layer4", "layer5"))])
def test_plans_of_groups_that_are_alike_are_worked_out_once(
    names: tuple[tuple[str, ...], tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    blur = "{before}(x, c) + {before}(x, (c + 1) % 32)"
    facts = layers(*(PRODUCT,) * 4) if len(names[0]) == 1 else layers(*(blur, PRODUCT) * 4)
    one, two = (Segment(of[-1], of) for of in names)

    def planner() -> Planner:
        return Planner(facts, catalog.load("i7-6700"), Ecm(), False, lambda: False)

    searched = worked_out(monkeypatch)
    both, apart = planner(), planner()
    both.plans(one)
    assert both.plans(two) == apart.plans(two)
    assert both.finalise(both.plans(two)[0]).group == apart.finalise(apart.plans(two)[0]).group
    assert searched == [one.output, two.output], "the second by the planner that knows no other"


def test_plans_of_groups_that_hardly_differ_in_size_have_as_many_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = layers(*("{before}(x, c) + {before}(x + 1, c + 1)",) * 6, of=(4096, 2048))
    one, two = (Segment(of[-1], of) for of in (("layer1", "layer2"), ("layer3", "layer4")))
    searched = worked_out(monkeypatch)
    planner = Planner(facts, catalog.load("i7-6700"), Ecm(), False, lambda: False)
    found, others = planner.plans(one), planner.plans(two)
    assert searched == ["layer2"]
    points = [sum(facts.stages[n].root_points for n in s.names) for s in (one, two)]
    assert planner.cost(two) == pytest.approx(planner.cost(one) * points[1] / points[0])
    for plan, other in zip(found, others, strict=True):
        if plan.sized is None or other.sized is None:
            assert plan.sized is other.sized
            continue
        assert [c.levels for c in plan.sized.shape.choices.values()] == [
            c.levels for c in other.sized.shape.choices.values()
        ]
        for d, size in plan.sized.sizes.items():
            extents = [facts.stages[s.output].extent(d) for s in (one, two)]
            if dim_rows := dict(plan.sized.shape.order.rows).get(d):
                assert other.sized.sizes[d] == dim_rows
            else:
                assert -(-extents[1] // other.sized.sizes[d]) == -(-extents[0] // size)
        exact = planner.finalise(other).cost.total
        assert float(exact) == pytest.approx(other.total, rel=0.02)
