"""Tables of a scatter: where neighbours that go to the same place take several in turn."""

from __future__ import annotations

import pytest
from support.machines import machine

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.search import SearchOptions, autoschedule

A = "a(p, q)"


def histogram(
    place: str = A, term: str = "1", width: int = 1024, start: str = "uint32(0)", storage: str = "xy", bins: int = 256
) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "counts",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"], "storage": [*storage]}],
            "stages": [
                {
                    "name": "hist",
                    "dims": ["i"],
                    "value": start,
                    "updates": [
                        {
                            "domain": {"p": ["0", "a.extent.x"], "q": ["0", "a.extent.y"]},
                            "at": [place],
                            "value": f"hist({place}) + {term}",
                        }
                    ],
                }
            ],
            "outputs": ["hist"],
            "estimates": {"hist": [[0, bins]], "a": [[0, width], [0, width]]},
        }
    )


def tables(pipeline: Pipeline, strict: bool = False) -> list[tuple[str, int]]:
    """The variable that is cut into tables of each such factor, and how many there are."""
    factors = autoschedule(pipeline, machine(threads=1), SearchOptions(strict=strict)).schedule.factors
    return [(f.variable, f.parts) for f in factors if f.interleaved]


def test_neighbours_along_memory_take_four_tables_in_turn() -> None:
    assert tables(histogram()) == [("p", 4)]
    assert tables(histogram(storage="yx")) == [("q", 4)]


def test_weights_are_joined_in_another_order_unless_strict() -> None:
    weighted = histogram(term="float32(a(p, q))", start="0.0")
    assert tables(weighted) == [("p", 4)]
    assert tables(weighted, strict=True) == []


@pytest.mark.parametrize(
    "pipeline",
    [
        histogram(width=64),  # few pixels for each element
        histogram(place="(p * 5) % 256"),  # no data says where
        histogram(place="(int32(a(p, q)) * 64)", bins=16384),  # no room for two in the first cache
    ],
)
def test_one_table_where_several_do_not_pay(pipeline: Pipeline) -> None:
    assert tables(pipeline) == []


def test_what_is_explained() -> None:
    (decision,) = [d for d in autoschedule(histogram(), machine(threads=1)).trace.decisions if d.kind == "factor"]
    assert "tables" in decision.chosen
    assert "wait" in decision.reason


def test_tables_are_the_innermost_loop_without_vectors() -> None:
    schedule = autoschedule(histogram(), machine(threads=1)).schedule
    (partial,) = [f.partial for f in schedule.factors]
    (loops,) = [u for g in schedule.groups if g.output == partial for u in g.updates]
    assert loops.loops == ("p", "p_0", "q")
    assert loops.vector is None
