"""Estimated bounds follow the reads, stay inside of clamps, and are widened by the document's estimates."""

from dataclasses import replace

from support.small_pipelines import (
    E,
    F,
    blur,
    clamp,
    exp,
    harris,
    pipeline,
    pyramid,
    stage,
    unsharp,
    x,
)

from tilesmith.scheduler.analysis.estimated_bounds import estimated_regions
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.pipeline.expressions import Cast, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32
from tilesmith.scheduler.rewrites.passes import normalise


def test_regions_follow_the_reads() -> None:
    regions = estimated_regions(blur(100, 50))
    assert regions["blur_y"] == ((0, 100), (0, 50))
    assert regions["blur_x"] == ((0, 100), (0, 52))
    assert regions["input"] == ((0, 102), (0, 52))
    assert estimated_regions(harris(60, 40))["gray"] == ((-2, 64), (-2, 44))
    assert estimated_regions(unsharp(60, 40))["kernel"] == ((0, 4),)
    levels = estimated_regions(pyramid(3, 64, 32))
    assert levels["down2"] == ((0, 17), (0, 9), (0, 4))
    assert levels["down0"][1] == (-3, 39)


def test_clamped_reads_stay_inside() -> None:
    out = stage("out", "x", F("row")(clamp(x - 5, 0, 20)) * 2.0)
    row = stage("row", "x", F("input")(x))
    assert estimated_regions(pipeline("p", [row, out], {"out": (100,)}, {"input": "x"}))["row"] == ((0, 21),)


def test_an_image_with_a_boundary_is_as_large_as_the_results() -> None:
    """Not where it is read at twice the rate, beside an index without a boundary, or where the document says more."""
    edge = Boundary("repeat_edge", None, None)

    def rows(index: E, read: E, said: int | None = None) -> tuple[tuple[int, int], ...]:
        out = stage("out", "x", F("input")(index) + F("input")(read))
        of = pipeline("p", [out], {"out": (100,)}, {"input": "x"})
        of = replace(of, inputs=tuple(replace(i, boundary=edge) for i in of.inputs))
        if said is not None:
            of = replace(of, estimates=tuple(sorted([*of.estimates, ("input", ((-2, said),))])))
        return estimated_regions(normalise(of))["input"]

    assert rows(x - 1, x + 1) == ((0, 100),)
    assert rows(x + 2, x + 3) == ((2, 98),)
    assert rows(x - 1, x * 2) == ((-1, 200),)
    assert rows(x - 1, x + 1, 104) == ((-2, 104),)
    bare = pipeline("p", [stage("out", "x", F("input")(x - 1) + F("input")(x + 1))], {"out": (100,)}, {"input": "x"})
    assert estimated_regions(normalise(bare))["input"] == ((-1, 102),)


def test_estimates_of_the_document_widen_what_is_inferred() -> None:
    index = E(Cast(F("input")(x).e, INT32))
    lut = stage("lut", "k", exp(E(Cast(Var("k"), FLOAT32))))
    out = stage("out", "x", F("lut")(index))
    of = pipeline("p", [lut, out], {"out": (100,)}, {"input": "x"})
    assert estimated_regions(of)["lut"] == ((0, 1),)  # an index that may be anything, and nothing said
    said = replace(of, estimates=tuple(sorted([*of.estimates, ("lut", ((0, 256),))])))
    assert estimated_regions(said)["lut"] == ((0, 256),)


def test_indices_of_several_remainders_have_exact_bounds() -> None:
    packed = stage("packed", "x", F("input")(x // 4 * 5 + x % 4) + F("input")(x // 4 * 5 + 4))
    regions = estimated_regions(pipeline("p", [packed], {"packed": (1920,)}, {"input": "x"}))
    assert regions["input"] == ((0, 2400),)


def test_an_input_that_nothing_but_its_own_size_says_is_as_an_output_of_these_dims() -> None:
    text = """
format: 1
name: columns
inputs: [{name: f, type: float32, dims: [x, y]}]
stages:
  - name: out
    dims: [x, y]
    value: 0.0
    updates: [{domain: {r: [0, f.extent.y]}, at: [x, r], value: "f(x, r)"}]
outputs: [out]
estimates: {out: [[0, 40], [0, 30]]}
"""
    assert estimated_regions(normalise(load_text(text, yaml=True)))["f"] == ((0, 40), (0, 30))
