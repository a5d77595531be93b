"""Counts of one stage for the model `ecm`, and a machine whose figures are all known."""

from __future__ import annotations

from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import (
    GroupWork,
    Transfer,
    Work,
)
from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.platforms.core import Core

FAR = 1e12
"""Bytes that fit no cache."""


def machine(**figures: object) -> CpuPlatform:
    """One thread at 1 GHz, 16-byte vectors: a cycle is a nanosecond."""
    platform = catalog.load("i7-6700").model_copy(update={"threads": 1, "clock_ghz": 1.0, "vector_bytes": 16})
    parameters = platform.ecm_parameters.model_copy(update={"prefetch_share": 1.0, **figures})
    return platform.model_copy(update={"ecm": parameters})


def with_core(core: Core, **figures: object) -> CpuPlatform:
    return machine(**figures).model_copy(update={"core": core})


def work(**changes: object) -> Work:
    """A million steps of four floats, one addition a point, everything in the first level."""
    usual = Work(
        in_output=True,
        lanes=4,
        operations=(("f32", Operations(add=1)),),
        loads=(Transfer("aligned", 4, 1.0),),
        stores=(Transfer("aligned", 4, 1.0),),
        rows=1000.0,
        steps=1e6,
        singles=0.0,
        working=(64.0,),
        loaded=(0.0,),
        stored=(0.0,),
        run_bytes=float("inf"),
    )
    return usual._replace(**changes)  # type: ignore[arg-type]


def counts(of: Work, **changes: object) -> GroupCounts:
    group = GroupWork(parallel=1.0, tiles=1.0, circulating_bytes=FAR)._replace(**changes)  # type: ignore[arg-type]
    stage = StageCounts("out", False, 4e6, 4e6, Operations(add=1), (), 4, False, 0.0, 0.0, of)
    return GroupCounts("out", 1, (("x", of.steps),), (), (stage,), group)


def terms(of: GroupCounts, platform: CpuPlatform) -> dict[str, float]:
    (stage,) = Ecm().price(of, platform).stages
    return {t.name: float(t.value) for t in stage.terms}


def both(*limits: float) -> float:
    """Cycles of a step with these limits."""
    return float(sum(limit**3 for limit in limits) ** (1 / 3))
