"""Groups of one kind, of which the search decides once whether operands are packed."""

from __future__ import annotations

from typing import Any

from tilesmith.platforms import catalog
from tilesmith.scheduler.features.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.ecm.variants import _but_for_names


def layers(*sizes: int) -> Any:
    """The facts of layers in a row, each a sum over so many channels of what is before it, with weights of its own."""
    before = ["image", *(f"layer{n}" for n in range(len(sizes)))]
    return gather(
        load(
            {
                "format": 1,
                "name": "layers",
                "inputs": [
                    {"name": "image", "type": "float32", "dims": ["x", "c"]},
                    {"name": "weights", "type": "float32", "dims": ["i", "c", "n"]},
                ],
                "stages": [
                    {
                        "name": name,
                        "dims": ["x", "c"],
                        "value": f"sum({of}(x, r) * weights(r, c, {n}) for r in range(0, {size}))",
                    }
                    for n, (of, name, size) in enumerate(zip(before, before[1:], sizes, strict=False))
                ],
                "outputs": [before[-1]],
                "estimates": {before[-1]: [[0, 256], [0, 32]]},
            }
        )
    )


def test_layers_are_alike_but_for_what_they_read_and_whether_they_are_outputs() -> None:
    facts = layers(32, 32, 32, 32, 16)
    keys = [_but_for_names(facts, (f"layer{n}",)) for n in range(5)]
    assert keys[1] == keys[2]
    assert len(set(keys)) == 4, "the first reads an image, the last but one has fewer channels, the last is an output"


def test_groups_are_told_apart_by_what_is_in_them() -> None:
    facts = layers(32, 32, 32, 32, 32)
    two = _but_for_names(facts, ("layer1", "layer2"))
    assert two == _but_for_names(facts, ("layer2", "layer3"))
    assert two != _but_for_names(facts, ("layer1", "layer3")), "the second of these reads nothing of the first"


def test_what_has_a_packed_operand_in_place_of_partial_results_may_leave_its_group() -> None:
    """With partial results of each score the sums of rows of them may as well be in its group."""
    scores = load(
        {
            "format": 1,
            "name": "scores",
            "inputs": [
                {"name": "q", "type": "float32", "dims": ["i", "t"]},
                {"name": "k", "type": "float32", "dims": ["i", "s"]},
            ],
            "stages": [
                {"name": "score", "dims": ["s", "t"], "value": "sum(q(i, t) * k(i, s) for i in range(64))"},
                {"name": "z", "dims": ["t"], "value": "sum(score(s, t) for s in range(512))"},
                {"name": "out", "dims": ["s", "t"], "value": "score(s, t) / z(t)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 512], [0, 512]]},
        }
    )
    found = autoschedule(scores, catalog.get("i7-6700"), SearchOptions("default")).schedule
    assert [p.packed for p in found.packings] == ["k_for_score"]
    assert "score" in [g.output for g in found.groups]
