"""The answer to a request: a schedule with its C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilesmith.app.profiler.tuning import Tuned
    from tilesmith.cost_models.interface import Breakdown
    from tilesmith.platforms import Platform
    from tilesmith.scheduler.codegen.artifact import CSource
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
    from tilesmith.scheduler.ir.plan import Plan
    from tilesmith.scheduler.ir.schedule.schedule import Schedule
    from tilesmith.scheduler.search import Candidate, Trace


@dataclass(frozen=True, slots=True)
class Result:
    """A schedule with its C: found by a search, with its trace and cost, or written by hand, without."""

    key: str
    plan: Plan
    platform: Platform
    source: CSource
    trace: Trace | None
    predicted: Breakdown | None
    timings_ms: dict[str, float]
    passes_ms: dict[str, float]
    candidates: tuple[Candidate, ...] = ()
    tuned: Tuned | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it was written."""
        return self.plan.written

    @property
    def schedule(self) -> Schedule:
        return self.plan.schedule
