"""Baselines: what results of a commit are compared with. The rules are these:

- A reference that is a branch means its latest commit, for each platform and way of scheduling. Any other means the
  commit of that name, or the nearest ancestor of it that has results.
- A result that a person accepted, with a reason, takes the place of the baseline for its commit and what descends from
  it, until a nearer ancestor was recorded on the branch that is compared with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilesmith.app.comparison.compare import Comparison, compare
from tilesmith.app.comparison.results import Measured, Result, Series, from_schedule
from tilesmith.app.service.baselines import repository
from tilesmith.app.service.baselines.repository import Commit, Stored
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.scheduler.errors import Problem

BADGE_LIMIT = 0.05


@dataclass(frozen=True, slots=True)
class Baseline:
    """The results that a reference means."""

    kind: Literal["branch", "commit"]
    stored: tuple[Stored, ...]


class Baselines:
    """Results of projects. `told` is called with what a branch's new results are against those before."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.told: Callable[[Commit, tuple[Comparison, ...]], None] = lambda at, found: None

    def record(
        self, at: Commit, items: Sequence[tuple[str, Measured | None]], token: str | None
    ) -> tuple[tuple[Stored, ...], tuple[Comparison, ...]]:
        """Keeps the results of schedules, by id, as those of a commit; they, and their comparison with what the branch
        had before. ApiError `bad_request`, which names the schedules that are not there."""
        found = [self._result(n, schedule_id, measured) for n, (schedule_id, measured) in enumerate(items)]
        before = repository.of_branch(self._db, at.project, at.branch)
        stored = repository.add(self._db, at, found, token, now_us())
        mine = {r.series for r in found}
        compared = compare(found, (s.result for s in before if s.result.series in mine), BADGE_LIMIT)
        self.told(at, compared)
        return stored, compared

    def acknowledge(self, at: Commit, schedule_id: str, reason: str, token: str | None) -> Stored:
        """Keeps that a person accepts the result of a schedule at a commit. ApiError `schedule_not_found`."""
        result = self._result(0, schedule_id, None, "schedule_not_found")
        return repository.add(self._db, at, [replace(result, reason=reason)], token, now_us())[0]

    def _result(self, number: int, schedule_id: str, measured: Measured | None, missing: str = "bad_request") -> Result:
        content = schedule_rows.find(self._db, schedule_id)
        if content is None:
            message = f"there is no schedule {schedule_id[:64]!r}"
            problem = Problem("schedule_not_found", f"/results/{number}/schedule_id", message)
            raise ApiError(missing, message, (problem,) if missing == "bad_request" else ())
        return from_schedule(json.loads(content.content), measured)

    def baseline(self, project: str, ref: str, ancestors: Sequence[str]) -> Baseline:
        """The results that a commit is compared with. `ancestors` are the commit and those before it, the nearest
        first. ApiError `baseline_not_found`."""
        rows = repository.at_commits(self._db, project, list(dict.fromkeys((ref, *ancestors))))
        found = Baseline("branch", repository.of_branch(self._db, project, ref))
        if not found.stored:
            found = Baseline("commit", _nearest(rows, _from(ref, ancestors)))
        accepted = _accepted(rows, ref, ancestors)
        if not found.stored and not accepted:
            raise ApiError("baseline_not_found", f"project {project} has no results of {ref[:100]!r}")
        kept = {s.result.series: s for s in found.stored} | accepted
        return replace(found, stored=tuple(kept[series] for series in sorted(kept)))

    def latest(self, project: str, branch: str) -> tuple[tuple[Stored, ...], tuple[Comparison, ...]]:
        """The latest results of a branch, and their comparison with those of its commit before. ApiError
        `project_not_found`."""
        self.check(project)
        now = repository.of_branch(self._db, project, branch)
        commits = {s.commit for s in now}
        page = repository.page(self._db, project, repository.Filters(branch=branch), None, 50 * max(1, len(now)))
        before = {s.result.series: s.result for s in reversed(page) if s.commit not in commits}
        mine = {s.result.series for s in now}
        compared = compare((s.result for s in now), (r for s, r in before.items() if s in mine), BADGE_LIMIT)
        return now, compared

    def check(self, project: str) -> None:
        """ApiError `project_not_found` where nothing was recorded for the project."""
        if not repository.has_project(self._db, project):
            raise ApiError("project_not_found", f"nothing was recorded for project {project[:64]!r}")


def _from(ref: str, ancestors: Sequence[str]) -> list[str]:
    """The commit and those before it, where the list has it; else the list is of what is before it."""
    after = list(ancestors[ancestors.index(ref) :]) if ref in ancestors else [ref, *ancestors]
    return list(dict.fromkeys(after))


def _nearest(rows: Iterable[Stored], commits: Sequence[str]) -> tuple[Stored, ...]:
    """The results of the first commit that has any, for each platform and way of scheduling."""
    place = {commit: n for n, commit in enumerate(commits)}
    own = sorted((s for s in rows if s.commit in place and s.result.reason is None), key=lambda s: place[s.commit])
    first: dict[tuple[str, str], str] = {}
    kept: dict[Series, Stored] = {}
    for stored in own:
        series = stored.result.series
        if first.setdefault((series.platform, series.variant), stored.commit) == stored.commit:
            kept.setdefault(series, stored)
    return tuple(kept.values())


def _accepted(rows: Iterable[Stored], branch: str, ancestors: Sequence[str]) -> dict[Series, Stored]:
    """Accepted results that count: nearer than any that was recorded on the branch."""
    place = {commit: n for n, commit in enumerate(ancestors)}
    own = [s for s in rows if s.commit in place and (s.result.reason is not None or s.branch == branch)]
    own.sort(key=lambda s: (place[s.commit], s.result.reason is None))
    nearest: dict[Series, Stored] = {}
    for stored in own:
        nearest.setdefault(stored.result.series, stored)
    return {series: s for series, s in nearest.items() if s.result.reason is not None}
