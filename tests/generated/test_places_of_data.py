"""Indices that go through the values of stages: what these may be is required, no more, and read."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import Region, call
from support.machines import here
from support.native import build, source_of
from support.places import assert_computes, assert_exact, document, inferred

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, autoschedule

REGION: Region = ((0, 64), (0, 48))
IMAGE = {"image": "uint8", "table": {"dims": ["i"], "type": "int32"}}
COUNT = {
    "dims": ["i"],
    "value": "int32(0)",
    "updates": [{"domain": {"r": [0, 64]}, "at": ["image(r, 0)"], "value": "min(count(image(r, 0)) + 1, 9)"}],
}
STAGES: dict[str, tuple[dict[str, object], tuple[int, int]]] = {
    "a clamp": ({"bin": "clamp(int32(image(x, y)) * 3 - 100, 2, 90)", "out": "table(bin(x, y))"}, (2, 90)),
    "a chain": (
        {"low": "int32(image(x, y)) % 7", "k": "select(x > 3, low(x, y), 40)", "out": "table(k(x, y) - low(x, y))"},
        (-6, 40),
    ),
    "updates that clamp": ({"count": COUNT, "out": "table(count(x)) + int32(image(x, y))"}, (0, 9)),
    "a choice": (
        {
            "best": {"dims": ["x", "y"], "value": "argmin(absd(image(x + r, y), image(x, y)) for r in range(-3, 5))"},
            "out": "table(best(x, y)[0])",
        },
        (-3, 4),
    ),
    "beyond an edge": (
        {
            "bin": {
                "value": "int32(image(x, y)) & 15",
                "boundary": {"kind": "constant", "value": "20", "domain": [[0, 64], [0, 48]]},
            },
            "out": "table(bin(x + 1, y))",
        },
        (0, 20),
    ),
}


@pytest.mark.parametrize("name", STAGES)
def test_the_values_of_a_stage_bound_an_index(name: str) -> None:
    stages, (lo, hi) = STAGES[name]
    of = document(stages, IMAGE)
    assert inferred(of, REGION, {}, {})["table"] == ((lo, hi - lo + 1),)
    plain = normalise(of)
    assert normalise(plain) is plain


@pytest.mark.parametrize("name", ["a chain", "updates that clamp"])
def test_code_reads_what_is_proved(name: str) -> None:
    assert_computes(document(STAGES[name][0], IMAGE), REGION, {}, {})


def test_a_stage_that_says_places_is_part_of_the_index() -> None:
    stages = {
        "at": {"dims": ["x"], "value": "(float32(x) + 0.5) * 1.7 - 0.5"},
        "left": {"dims": ["x"], "value": "int32(floor(at(x)))"},
        "out": "image(left(x), y) + image(left(x) + 1, left(y))",
    }
    of = document(stages, {"image": "int32"})
    for region in (REGION, ((-9, 33), (5, 7))):
        assert_exact(of, region, {}, {})
    assert_computes(of, REGION, {}, {})


def test_what_updates_may_make_is_refused() -> None:
    grows = {**COUNT, "updates": [{**COUNT["updates"][0], "value": "count(image(r, 0)) + 1"}]}  # type: ignore[index]
    with pytest.raises(DocumentError, match="unbounded_index"):
        document({"count": grows, "out": "table(count(x)) + int32(image(x, y))"}, IMAGE)


def test_a_chain_of_hundreds_of_stages_is_looked_at_without_recursion() -> None:
    stages = [{"name": "s0", "dims": ["x"], "value": "int32(image(x)) & 7"}]
    stages += [{"name": f"s{n}", "dims": ["x"], "value": f"max(s{n - 1}(x), s{n - 1}(x + 1))"} for n in range(1, 400)]
    of = load(
        {
            "format": 1,
            "name": "chain",
            "inputs": [{"name": "image", "type": "uint8", "dims": ["x"]}],
            "stages": [*stages, {"name": "out", "dims": ["x"], "value": "image(s399(x))"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )
    assert inferred(of, ((0, 64),), {}, {})["image"] == ((0, 64 + 399),)


KINDS = ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of_stage", [False, True])
def test_a_boundary_bounds_what_is_read_at_any_place(kind: str, of_stage: bool) -> None:
    domain = [[3, 29], [-5, 23]]
    edge = {"kind": kind, **({"value": "7"} if kind == "constant" else {})}
    stages: dict[str, object] = {"moved": "by(x, y) * 2.0"}
    if of_stage:
        stages["copy"] = {"value": "image(x, y) + 1", "boundary": {**edge, "domain": domain}}
    read = "copy" if of_stage else "image"
    stages["out"] = f"{read}(x + int32(floor(moved(x, y))), int32(moved(x, y)) - 2 * y)"
    image: dict[str, object] = {"type": "uint8", **({} if of_stage else {"boundary": edge})}
    pipeline = document(stages, {"image": image, "by": "float32"})
    rng = np.random.default_rng(3)
    by = rng.normal(0, 40, (48, 64)).astype(np.float32)
    for extreme in (np.inf, -np.inf, np.nan, 2.0**30, -(2.0**30)):
        by[rng.random(by.shape) < 0.1] = extreme
    pixels = rng.integers(0, 256, (23, 29), dtype=np.uint8)
    images = {"image": Image(pixels, (3, -5)), "by": Image(by, (0, 0))}
    expected = interpret(pipeline, images, {}, {"out": REGION})["out"][0]
    source = source_of(pipeline, autoschedule(pipeline, here(), SearchOptions()).schedule, here())
    status, got = call(build(source, ("-O1",)), source, pipeline, images, {}, {"out": REGION})
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], expected)


def test_updates_read_their_own_stage_without_its_boundary() -> None:
    sums = {
        "value": "int32(image(x, y))",
        "updates": [{"domain": {"r": [0, 64]}, "at": ["r", "y"], "value": "sums(sums(r, y), y) + 1"}],
        "boundary": {"kind": "repeat_edge", "domain": [[0, 64], [0, 48]]},
    }
    with pytest.raises(DocumentError, match="unbounded_index"):
        document({"sums": sums, "out": "sums(x - 1, y)"}, {"image": "uint8"})
