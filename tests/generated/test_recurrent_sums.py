"""Recurrences whose steps each have a long sum, as those of recurrent networks, compiled: against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

STEPS = 7


def network(units: int, terms: int = 100) -> Pipeline:
    """A recurrent network of so many units, each of which has so many terms."""
    step = {
        "domain": {"k": [0, units], "r": [1, STEPS - 1]},
        "at": ["k", "r"],
        "value": f"0.5 * h(k, r) + sum(u(k, j) * h(j, r - 1) for j in range({terms}))",
    }
    return load(
        {
            "format": 1,
            "name": "network",
            "inputs": [{"name": n, "type": "float32", "dims": ["i", "t"]} for n in ("a", "u")],
            "stages": [{"name": "h", "dims": ["i", "t"], "value": "a(i, t)", "updates": [step]}],
            "outputs": ["h"],
            "estimates": {"h": [[0, units], [0, STEPS]]},
        }
    )


@pytest.mark.parametrize(
    ("units", "terms", "lanes"),
    [(128, 100, 16), (104, 100, 8), (103, 100, 4), (64, 3, 4)],
)
def test_sums_are_side_by_side_where_no_more_of_a_row_is_computed(units: int, terms: int, lanes: int) -> None:
    of = network(units, terms)
    made = compile_pipeline(of, machine(vector_bytes=16, threads=1))
    (loops,) = made.schedule.groups[0].updates
    assert loops.vector is not None
    assert (loops.vector.dim, loops.vector.lanes) == ("k", lanes)
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(7)
    a, u = rng.random((STEPS, units), np.float32), rng.random((units, units), np.float32) / units
    images, region = {"a": Image(a, (0, 0)), "u": Image(u, (0, 0))}, {"h": ((0, units), (0, STEPS))}
    (expected,) = interpreted(of, images, {}, region)["h"]
    status, got = call(library, made.source, of, images, {}, region)
    assert status == 0
    np.testing.assert_allclose(got["h"][0], expected, rtol=1e-4)
