"""Method: a way to find schedules, by its name. It is asked a question and answers with candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tilesmith.cost_models.interface import CostModel, combined
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Group
from tilesmith.scheduler.search.candidates import Candidate, candidate
from tilesmith.scheduler.search.constraints.constraints import FREE, Fixed
from tilesmith.scheduler.search.deadline import Deadline
from tilesmith.scheduler.search.trace import Trace


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a search: schedules of a plan, whose groups are open, for a platform, by a cost model.

    `facts` are those of the plan's pipeline. At most `top` candidates are wanted, with everything that is `fixed`. A
    method that knows further rewrites, such as splitting windows, tries them unless the plan is `final`.
    """

    plan: Plan
    facts: Facts
    platform: Platform
    model: CostModel
    deadline: Deadline
    top: int = 1
    fixed: Fixed = FREE
    final: bool = False

    @property
    def strict(self) -> bool:
        return self.plan.schedule.strict

    def candidate(self, groups: Sequence[Group], degraded: str | None = None) -> Candidate:
        """The candidate of groups of all stages, counted and priced. Whether it is legal, `legality.verifier` says."""
        counts = [counts_of_group(self.facts, g, self.platform.threads) for g in groups]
        predicted = combined(self.model.price(c, self.platform) for c in counts)
        return candidate(self.facts, self.plan.scheduled(tuple(groups), degraded), counts, predicted)


@dataclass(frozen=True, slots=True)
class Answer:
    """Candidates, the best first and at least one, and the trace of that one."""

    candidates: tuple[Candidate, ...]
    trace: Trace


class Method(Protocol):
    """A search. `takes_fixed`: it keeps to decisions of the caller. `model` is the cost model that it decides by, by
    name; `takes_model`: another one may be asked for."""

    name: str
    takes_fixed: bool
    takes_model: bool
    model: str

    def search(self, question: Question) -> Answer:
        """The best schedules that it finds: legal ones, always. Raises FixedContradiction where none has all that is
        fixed."""
