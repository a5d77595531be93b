"""Inlining has an end: chains without overlap neither multiply nor nest without bound."""

from __future__ import annotations

import pytest
from machines import machine
from support.methods import PAPER_OPTIONS

from scheduler.compile import compile_pipeline
from scheduler.errors import ScheduleError
from scheduler.lang.document import load
from scheduler.schedule import INLINE


def chain(stages: int, value: str) -> dict:
    """`value` reads the stage before as `f`."""
    names = [f"s{k}" for k in range(stages)]
    return {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": name, "dims": ["x", "y"], "value": value.replace("f(", f"{names[k - 1] if k else 'image'}(")}
            for k, name in enumerate(names)
        ],
        "outputs": [names[-1]],
        "estimates": {names[-1]: [[0, 64], [0, 64]]},
    }


MEAN = "(f(2 * x, 2 * y) + f(2 * x + 1, 2 * y) + f(2 * x, 2 * y + 1) + f(2 * x + 1, 2 * y + 1)) * 0.25"


@pytest.mark.parametrize(("stages", "value"), [(9, MEAN), (200, "f(x, y) + 1.0")])
def test_inlining_neither_multiplies_nor_nests_without_end(stages, value):
    compiled = compile_pipeline(load(chain(stages, value)), machine(), PAPER_OPTIONS)
    placements = [p for g in compiled.schedule.groups for p in g.placements]
    assert any(p.compute != INLINE for p in placements)
    assert len(compiled.source.code) < 1_000_000
    assert "a limit of ours" in {d.source for d in compiled.trace.decisions}


def test_a_pipeline_that_reaches_beyond_every_image_is_refused():
    with pytest.raises(ScheduleError, match="no image reaches that far"):
        compile_pipeline(load(chain(30, MEAN)), machine(), PAPER_OPTIONS)


def test_short_chains_stay_inline():
    compiled = compile_pipeline(load(chain(3, MEAN)), machine(), PAPER_OPTIONS)
    assert all(p.compute == INLINE for g in compiled.schedule.groups for p in g.placements)
