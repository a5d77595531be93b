"""The schedules that cost models are judged by."""

from __future__ import annotations

import pytest
from support.machines import machine
from support.shipped import loaded

from benchmarks.sampling import samples
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


@pytest.mark.parametrize("name", ["blur", "harris"])
def test_samples_are_legal_different_and_the_same_again(name: str) -> None:
    pipeline = loaded(name)
    drawn = list(samples(pipeline, machine(), 12, 3))
    for schedule in drawn:
        check(rewrite(pipeline, schedule))
    assert len(set(drawn)) == 12
    assert drawn == list(samples(pipeline, machine(), 12, 3))
    assert drawn != list(samples(pipeline, machine(), 12, 4))
