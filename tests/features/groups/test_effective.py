"""Reads of stages through those that are inline in them, and for points that are computed together."""

from __future__ import annotations

import pytest
from support.small_pipelines import E, F, chain, pipeline, stage, summed, x, y

from tilesmith.scheduler.analysis.access_functions import hull, span_of, variable
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of, told_apart
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Var
from tilesmith.scheduler.rewrites.passes import normalise


def test_stages_that_are_inline_are_listed_after_what_they_read() -> None:
    facts = gather(normalise(chain(5)))
    *others, output = facts.graph.stages
    members = members_of(facts, output, facts.graph.stages)
    (reads,) = effective(members, frozenset(others)).values()
    assert reads.with_inlined(output) == list(facts.graph.stages)


def test_reads_by_way_of_a_stage_are_the_same_whatever_else_is_inline() -> None:
    """They are worked out once: sets of stages that are inline have most of their reads in common."""
    of = pipeline(
        "both",
        [
            stage("a", "xy", F("f")(x, y) + F("f")(x + 1, y)),
            stage("b", "xy", F("g")(x, y) + F("g")(x, y + 1)),
            stage("out", "xy", F("a")(x, y) + F("a")(x + 2, y) + F("b")(x, y)),
        ],
        {"out": (64, 64)},
        {"f": "xy", "g": "xy"},
    )
    members = members_of(gather(normalise(of)), "out", ("a", "b", "out"))
    some, every = (
        {r.producer: r for r in effective(members, frozenset(inline))["out"].reads} for inline in ("a", "ab")
    )
    assert (some.keys(), every.keys()) == ({"b", "f"}, {"f", "g"})
    assert some["f"] is every["f"]
    assert every["f"].points == 4


@pytest.mark.parametrize("apart", [1, 4])
def test_what_all_points_together_read_is_loaded_once_however_far_apart_its_places_are(apart: int) -> None:
    """Five times eight places, so many elements from each other, for each of four rows of weights."""
    i, j, c = (E(Var(n)) for n in "ijc")
    read = F("input")(x + i * apart, y + j * apart) * F("weights")(i, j, c)
    of = pipeline(
        "filters",
        [stage("out", "xyc", summed(read, i=(0, 5), j=(0, 8)))],
        {"out": (64, 64, 16)},
        {"input": "xy", "weights": "ijc"},
    )
    members = members_of(gather(normalise(of)), "out", ("out",))
    found = {r.producer: r.points for r in effective(members, frozenset(), {"c": 4})["out"].reads}
    assert found == {"input": 5 * 8 / 4, "weights": 5 * 8}


@pytest.mark.parametrize(("channels", "rows"), [(8, 4 + 2), (64, 4 * 3)])
def test_windows_of_loops_are_shared_within_an_iteration_only(channels: int, rows: int) -> None:
    """Three rows each of four points: six where terms are written out, one a point and iteration in loops."""
    q, k = (E(Var(n)) for n in "qk")
    of = pipeline(
        "windows",
        [stage("out", "xy", summed(F("input")(x, y + q, k) * F("weights")(q, k), q=(0, 3), k=(0, channels)))],
        {"out": (64, 64)},
        {"input": "xyk", "weights": "qk"},
    )
    members = members_of(gather(normalise(of)), "out", ("out",))
    found = {r.producer: r.points for r in effective(members, frozenset(), {"y": 4})["out"].reads}
    assert found == {"input": channels * rows / 4, "weights": channels * 3 / 4}


def reads_of(low: str, high: str, side_by_side: int = 1) -> dict[str, float]:
    """Elements of `image` and points of two inline stages that a point of their reader needs."""
    values = {"low": low, "high": high, "out": "high(x, y) - low(x, y)"}
    document = {
        "format": 1, "name": "two", "inputs": [{"name": "image", "type": "int16", "dims": ["x", "y"]}],
        "stages": [{"name": name, "dims": ["x", "y"], "value": value} for name, value in values.items()],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64]]},
    }  # fmt: skip
    members = members_of(gather(normalise(load(document))), "out", ("low", "high", "out"))
    rows = {"y": side_by_side} if side_by_side > 1 else {}
    found = effective(members, frozenset({"low", "high"}), rows)["out"]
    return {r.producer: r.points for r in found.reads} | found.inlined


AROUND = [f"image(x + {2 * p}, y + {2 * q})" for q in (-1, 0, 1) for p in (-1, 0, 1) if (p, q) != (0, 0)]
CROSS = "image(x - 1, y) + image(x + 1, y) + image(x, y - 1) + image(x, y + 1)"


@pytest.mark.parametrize(("rows", "elements"), [(1, 8), (4, 3 * 8)])
def test_what_several_inline_stages_read_alike_is_loaded_once(rows: int, elements: int) -> None:
    """Eight neighbours two elements apart, by both; four rows side by side have three columns of eight."""
    low, high = (f"{function}({', '.join(AROUND)})" for function in ("min", "max"))
    assert reads_of(low, high, rows) == {"image": elements / rows, "low": 1.0, "high": 1.0}


@pytest.mark.parametrize(("rows", "elements"), [(1, 5), (8, 10 + 2 * 8)])
def test_elements_that_no_stage_reads_are_not_of_the_box(rows: int, elements: int) -> None:
    """A cross of five in a box of nine: of eight rows ten elements of its column, and two beside each."""
    assert reads_of(CROSS, "image(x, y)", rows)["image"] == elements / rows


def test_elements_at_places_of_stages_that_are_inline_are_told_apart() -> None:
    """A cross of crosses has 13 elements of 25; a sum of three that are two apart has three beside another one."""
    assert reads_of(CROSS, CROSS.replace("image", "low"))["image"] == 9 + 4
    assert reads_of("sum(image(x + 2 * k, y) for k in range(-1, 2))", "image(x + 1, y)")["image"] == 3 + 1


def test_rows_of_what_is_enlarged_are_told_apart_by_where_they_may_begin() -> None:
    """Rows side by side of what is enlarged twice read one row after the other by twos, which ones is not known."""
    halves = span_of((y // 2).e, {"y": variable("y")})
    assert [told_apart(halves, n) for n in (1, 2, 8)] == [1, 2, 8]
    assert halves.extent(8) == 5
    two = hull(halves, span_of((y // 2 + 1).e, {"y": variable("y")}))
    assert [told_apart(two, n) for n in (1, 2, 8)] == [two.extent(1), 2 * two.extent(1), 2 * (two.extent(1) + 3)]


def test_accesses_that_move_by_different_dims_stay_apart_through_what_is_inline() -> None:
    """A layer whose last channel says how much of the others shows, inline in the next one."""
    shown = "layer(x, y, c) * layer(x, y, 3)"
    document = {
        "format": 1,
        "name": "layers",
        "inputs": [{"name": "layer", "type": "float32", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}],
        "stages": [
            {"name": "first", "dims": ["x", "y", "c"], "value": shown},
            {"name": "out", "dims": ["x", "y", "c"], "value": f"first(x, y, c) + {shown}"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 16], [0, 3]]},
    }
    facts = gather(normalise(load(document)))
    found = effective(members_of(facts, "out", facts.graph.stages), frozenset({"first"}))
    (read,) = found["out"].reads
    assert not all(s.known for s in read.spans)
    assert [tuple(s.var for s in spans) for spans, _ in read.several] == [("x", "y", "c"), ("x", "y", None)]
