"""Boundary propagation: stages inherit the repeated edge of what they read, and readers stop there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise


def pyramid(half: str, levels: int, kind: str = "repeat_edge") -> Pipeline:
    """Each level is `half` of the one before, {f} in it; the output reads the coarsest in the middle of the image."""
    names = ["input", *(f"level_{n}" for n in range(1, levels + 1))]
    stages = [{"name": name, "dims": ["x"], "value": half.format(f=f)} for f, name in pairwise(names)]
    by = 2**levels
    value = f"input(x) + {names[-1]}(x // {by} - 3) + {names[-1]}(x // {by} + 3)"
    boundary = {"kind": kind, "value": 7} if kind == "constant" else {"kind": kind}
    document = {
        "format": 1,
        "name": "pyramid",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x"], "boundary": boundary}],
        "stages": [*stages, {"name": "out", "dims": ["x"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64]], "input": [[0, 64]]},
    }
    return load(document)


HALVES = {
    "{f}(2 * x - 1) + 3 * {f}(2 * x) + {f}(2 * x + 2)": True,
    "sum({f}(2 * x + r) for r in range(-1, 3))": True,
    "select({f}(2 * x) > 0, {f}(2 * x + 1), 5)": True,
    "{f}(2 * x) + x": False,
    "{f}(2 * x) + {f}(-x)": False,
    "select(x % 2 == 0, {f}(2 * x), {f}(2 * x + 1))": False,
}


@pytest.mark.parametrize("size", [1, 2, 61, 64, 300])
@pytest.mark.parametrize("half", HALVES)
def test_readers_stop_at_the_edge_that_a_stage_inherits(half: str, size: int) -> None:
    pipeline = pyramid(half, 3)
    normal = normalise(pipeline)
    assert normalise(normal) is normal
    rng = np.random.default_rng(size)
    inputs = {"input": Image(rng.integers(-99, 99, size).astype(np.int32), (-3,))}
    regions = {"out": ((-70, 300),)}
    expected = interpret(pipeline, inputs, {}, regions)["out"][0]
    np.testing.assert_array_equal(interpret(normal, inputs, {}, regions)["out"][0], expected)


@pytest.mark.parametrize(("half", "inherits"), HALVES.items())
def test_what_lies_beyond_an_inherited_edge_is_not_computed(half: str, inherits: bool) -> None:
    found = required_regions(normalise(pyramid(half, 3)), {"out": ((0, 64),)}, {}, {"input": ((0, 64),)})
    ((lo, extent),) = found["level_1"]
    assert (lo >= -7 and lo + extent <= 40) == inherits


@pytest.mark.parametrize("kind", ["constant", "mirror_image", "repeat_image"])
def test_other_boundaries_are_not_inherited(kind: str) -> None:
    found = required_regions(
        normalise(pyramid("{f}(2 * x) + {f}(2 * x + 1)", 3, kind=kind)), {"out": ((0, 64),)}, {}, {"input": ((0, 64),)}
    )
    assert found["level_1"][0][0] <= -12


def test_places_that_inherited_data_says_are_inherited() -> None:
    pipeline = pyramid("{f}(2 * x) + {f}(2 * x + 1)", 3)
    table = "{f}(clamp({f}(2 * x), 0, 63)) + {f}(2 * x + 1)"
    by_data = pyramid(table, 3)
    for p in (pipeline, by_data):
        found = required_regions(normalise(p), {"out": ((0, 64),)}, {}, {"input": ((0, 64),)})
        assert found["level_2"][0][0] >= -5
    inputs = {"input": Image(np.arange(64, dtype=np.int32)[::-1].copy(), (0,))}
    regions = {"out": ((0, 64),)}
    np.testing.assert_array_equal(
        interpret(normalise(by_data), inputs, {}, regions)["out"][0], interpret(by_data, inputs, {}, regions)["out"][0]
    )
