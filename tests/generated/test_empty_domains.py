"""Domains that have no points at a call: nothing is required for them, nothing is computed for them."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import Region, call
from support.machines import here
from support.native import build, source_of
from support.places import document, image_of, inferred

from tilesmith.scheduler.interpreter import interpreter
from tilesmith.scheduler.search import SearchOptions, autoschedule

REGION: Region = ((0, 40), (0, 24))
COUNT = [{"name": "n", "type": "int32", "default": 3}]
FAR = {"twice": "far(x, y) * 2", "out": "near(x, y) + sum(twice(x + r, y + 9) for r in range(n))"}
UPDATE = {
    "twice": "far(x, y) * 2",
    "out": {
        "value": "near(x, y)",
        "updates": [{"domain": {"r": [1, "n"]}, "at": ["x", "r"], "value": "out(x, r - 1) + twice(x, r + 20)"}],
    },
}


@pytest.mark.parametrize("stages", [FAR, UPDATE], ids=["reduction", "update"])
def test_an_empty_domain_requires_nothing(stages: dict[str, object]) -> None:
    of = document(stages, {"near": "int32", "far": "int32"}, COUNT, size=(40, 24))
    source = source_of(of, autoschedule(of, here(), SearchOptions()).schedule, here())
    library = build(source, ("-O1",))
    for n in (3, 0, -2):
        seen = inferred(of, REGION, {"n": n}, {})
        given = {name: image_of(of, name, seen.get(name, ((0, 1), (0, 1)))) for name in ("near", "far")}
        read = interpreter.required_regions(of, given, {"n": n}, {"out": REGION})
        assert seen == {name: read[name] for name in ("near", "far") if name in read}
        assert ("far" in seen) == (n > 0)
        expected = interpreter.interpret(of, given, {"n": n}, {"out": REGION})["out"][0]
        status, got = call(library, source, of, given, {"n": n}, {"out": REGION})
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], expected)
