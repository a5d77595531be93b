"""Pipeline features: reads by producer, and inputs whose boundary changes nothing of them."""

from __future__ import annotations

import pytest
from support.small_pipelines import E, F, harris, mux, pipeline, stage, x, y

from tilesmith.scheduler.analysis.estimated_bounds import estimated_regions
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Var
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

KINDS = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior")


def pipeline_of(kind: str | None) -> Pipeline:
    """A stencil on one channel of an image, upsampled."""
    image = {"name": "a", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
    document = {
        "format": 1,
        "name": "stencil",
        "inputs": [image if kind is None else {**image, "boundary": {"kind": kind}}],
        "stages": [
            {"name": "s", "dims": ["x", "y"], "value": "a(x - 1, y, 2) // 2 + a(x + 1, y, 0) // 2"},
            {"name": "out", "dims": ["x", "y"], "value": "s(x, y) + s(x, y + 1) + a(x // 2, 2 * y, 1)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480]]},
    }
    return load(document)


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_sees_the_inside_of_an_image(kind: str) -> None:
    """The places that are read and how far they reach are those of the pipeline without a boundary, but for what this
    fills in around the output."""
    plain, bounded = pipeline_of(None), pipeline_of(kind)
    regions = estimated_regions(normalise(plain))
    assert regions["a"] == ((-1, 642), (0, 959), (0, 3))
    assert estimated_regions(normalise(bounded)) == {**regions, "a": ((0, 640), (0, 959), (0, 3))}
    seen, expected = gather(normalise(bounded)).stages, gather(normalise(plain)).stages
    assert [s.reads for s in seen.values()] == [s.reads for s in expected.values()]
    assert all(span.known for s in seen.values() for r in s.reads for span in r.roughly)


def test_reads_are_merged_by_producer() -> None:
    facts = gather(normalise(harris()))
    reads = {r.producer: r for r in facts.stages["Sxx"].reads}
    assert reads["Ixx"].points == 9
    assert [(s.lo, s.hi) for s in reads["Ixx"].spans] == [(-1, 1), (-1, 1)]
    assert facts.stages["gray"].reads[0].points == 3


@pytest.mark.parametrize(
    ("value", "points"),
    [
        ("pair(x)[0] * pair(x)[1]", 1),
        ("pair(x)[1]", 1),
        ("pair(x)[0] + pair(x + 1)[0] * pair(x + 1)[1]", 2),
        ("mux(x % 2, pair(x)[0], pair(x)[1])", 1),
        ("sum(pair(x + k)[0] * pair(x + k)[1] for k in range(3))", 3),
    ],
)
def test_components_of_a_point_are_read_at_once(value: str, points: int) -> None:
    """A point has the bytes and the operations of all of them."""
    document = {
        "format": 1, "name": "pairs", "inputs": [{"name": "a", "type": "float32", "dims": ["x"]}],
        "stages": [
            {"name": "pair", "dims": ["x"], "value": ["a(x) * 2.0", "a(x) + 1.0"]},
            {"name": "out", "dims": ["x"], "value": value},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64]]},
    }  # fmt: skip
    (read,) = gather(normalise(load(document))).stages["out"].reads
    assert read.executed == points


def test_reads_that_a_mux_skips() -> None:
    """A point reads one of four, through what is inline too, though all of them are different elements."""
    f = F("f")
    even = mux(f(x * 2, y), f(x * 2 + 1, y), f(x * 2, y + 1), f(x * 2 + 1, y + 1))
    parts, c = F("parts"), E(Var("c"))
    stages = [stage("parts", "xyc", even), stage("out", "xyc", parts(x, y, c) + parts(x + 1, y, c))]
    facts = gather(normalise(pipeline("muxed", stages, {"out": (16, 16, 4)}, {"f": "xy"})))
    (read,) = facts.stages["parts"].reads
    assert (read.points, read.executed) == (4, 1)
    members = members_of(facts, "out", facts.graph.stages)
    found = effective(members, frozenset({"parts"}))["out"]
    (through,) = found.reads
    assert (through.points, through.executed) == (8, 2)
    assert found.executed == {"parts": 2}


def test_what_a_loop_does_not_move_is_computed_in_each_iteration_where_it_is_inline() -> None:
    """Nested sums of 100 terms compute it in each; those of few terms are written out, an element once."""

    def read(n: int) -> tuple[float, float]:
        value = f"sum(table(i) * table(j) * line(i) for j in range({n}) for i in range({n}))"
        document = {
            "format": 1, "name": "pairs", "inputs": [{"name": "table", "type": "float32", "dims": ["i"]}],
            "stages": [
                {"name": "line", "dims": ["i"], "value": "table(i) * 2.0"},
                {"name": "whole", "dims": [], "value": value},
            ],
            "outputs": ["whole"], "estimates": {"whole": []},
        }  # fmt: skip
        found = gather(normalise(load(document))).stages["whole"].read_of["line"]
        return found.points, found.evaluated

    assert read(100) == (100, 10_000)
    assert read(4) == (4, 4)


@pytest.mark.parametrize(
    ("value", "storage", "along"),
    [
        ("sum(a(4 * i + c, y) for i in range(64))", ["c", "y"], "c"),  # each vector has a part of a sum in each lane
        ("sum(a(4 * i + c, y) for i in range(64))", ["y", "c"], "y"),
        ("sum(a(y, 4 * i + c) for i in range(64))", ["c", "y"], "y"),
        ("sum(a(c + i, y) for i in range(2))", ["c", "y"], "y"),
        ("a(c, y) * 2", ["c", "y"], "y"),  # pixels of four channels
    ],
)
def test_vectors_run_along_parts_of_sums_and_past_the_channels_of_pixels(
    value: str, storage: list[str], along: str
) -> None:
    document = {
        "format": 1,
        "name": "parts",
        "inputs": [{"name": "a", "type": "int32", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["c", "y"], "storage": storage, "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 4], [0, 480]]},
    }
    assert gather(normalise(load(document))).stages["out"].row == along


@pytest.mark.parametrize("index", ["max(min(x + 100 * y, 4799), 0)", "x + 100 * y"])
def test_steps_of_an_index_of_several_dims_are_those_inside_of_its_clamps(index: str) -> None:
    document = {
        "format": 1,
        "name": "flat",
        "inputs": [{"name": "a", "type": "float32", "dims": ["i"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": f"a({index})"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 40], [0, 48]]},
    }
    (read,) = gather(normalise(load(document))).stages["out"].reads
    assert read.beside is not None
    assert read.beside[:3] == ("x", "i", 1)
    assert read.moved_by == {"x", "y"}
