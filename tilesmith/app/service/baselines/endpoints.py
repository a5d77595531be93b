"""/v1/projects: results of commits recorded, asked for as baselines, listed, deleted; badges."""

from __future__ import annotations

import asyncio
from typing import Annotated

from anybadge import Badge
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from tilesmith.app.comparison.compare import Comparison, compare, regressed
from tilesmith.app.comparison.results import Measured, Series
from tilesmith.app.service import holdings
from tilesmith.app.service.baselines import repository, schemas
from tilesmith.app.service.baselines.repository import Commit, Filters, Stored
from tilesmith.app.service.bodies import described, json_body, text
from tilesmith.app.service.context import Admin, Bearer, Read, Services, Submit, TokenName, authenticated
from tilesmith.app.service.paging import Paging, next_page
from tilesmith.app.service.times import instant

router = APIRouter(prefix="/v1/projects", tags=["projects"])

KIND, RESULTS = "projects", "results"
TREND_POINTS = 1000

ProjectName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$")]
BranchName = Annotated[str, Query(max_length=255, description="Name of the branch")]
Wanted = Annotated[str | None, Query(max_length=255)]


@router.get("", dependencies=[Read], operation_id="listProjects", summary="List projects")
def every(services: Services, paging: Paging) -> schemas.ProjectList:
    """Projects that have results, by name."""
    after = paging.key(KIND, (str,))
    rows = repository.projects(services.db, None if after is None else str(after[0]), paging.limit + 1)
    page = next_page(rows, [(row.project,) for row in rows], KIND, paging.limit)
    items = [
        schemas.ProjectSummary(
            name=row.project,
            results=row.results,
            recorded_at=instant(row.recorded_us),
            href=f"/v1/projects/{row.project}/results",
        )
        for row in page.items
    ]
    return schemas.ProjectList(items=items, next_cursor=page.next_cursor)


@router.post(
    "/{project}/results",
    dependencies=[Submit],
    status_code=201,
    openapi_extra=described(schemas.RecordRequest),
    operation_id="recordResults",
    summary="Record results of a commit",
)
async def record(project: ProjectName, request: Request, services: Services, token: TokenName) -> schemas.Recorded:
    """Schedules by id: names, predicted times and ways of scheduling are those that the service has of them."""
    asked = await services.engine.model(await json_body(request), schemas.RecordRequest)
    await asyncio.to_thread(holdings.check, services.db, services.settings)
    at = Commit(project, asked.branch, asked.commit)
    items = [(r.schedule_id, Measured(**r.measured.model_dump()) if r.measured else None) for r in asked.results]
    stored, compared = await asyncio.to_thread(services.baselines.record, at, items, token)
    return schemas.Recorded(items=[_result(s) for s in stored], changes=[_change(c) for c in compared])


@router.get("/{project}/results", dependencies=[Read], operation_id="listResults", summary="The history of a project")
def history(
    project: ProjectName,
    services: Services,
    paging: Paging,
    branch: Wanted = None,
    commit: Wanted = None,
    pipeline: Wanted = None,
    platform: Wanted = None,
    variant: Wanted = None,
) -> schemas.ProjectResultList:
    """The newest first."""
    services.baselines.check(project)
    after = paging.key(RESULTS, (int, str))
    filters = Filters(branch, commit, pipeline, platform, variant)
    found = repository.page(services.db, project, filters, after, paging.limit + 1)
    page = next_page(found, [(s.recorded_us, s.id) for s in found], RESULTS, paging.limit)
    return schemas.ProjectResultList(items=[_result(s) for s in page.items], next_cursor=page.next_cursor)


@router.delete(
    "/{project}/results", dependencies=[Admin], operation_id="deleteResults", summary="Delete results of a project"
)
def delete(
    project: ProjectName, services: Services, only: Annotated[schemas.ResultFilters, Query()]
) -> schemas.Deleted:
    """All of them, or those that the filters take: of a branch that is gone, of a pipeline with another name now. A
    filter that there is not is refused: without it more would be deleted."""
    services.baselines.check(project)
    return schemas.Deleted(results=repository.remove(services.db, project, Filters(**only.model_dump())))


@router.get(
    "/{project}/trends",
    dependencies=[Read],
    operation_id="listTrends",
    summary="Predicted and measured times over commits",
)
def trends(
    project: ProjectName,
    services: Services,
    branch: BranchName = "main",
    pipeline: Wanted = None,
    platform: Wanted = None,
) -> schemas.TrendList:
    """Points of each series of a branch, the oldest first: of its last 1,000 results in all."""
    services.baselines.check(project)
    filters = Filters(branch, None, pipeline, platform)
    series: dict[Series, list[Stored]] = {}
    for stored in reversed(repository.page(services.db, project, filters, None, TREND_POINTS)):
        series.setdefault(stored.result.series, []).append(stored)
    return schemas.TrendList(branch=branch, items=[_trend(s, series[s]) for s in sorted(series)])


@router.post(
    "/{project}/baseline", dependencies=[Read], operation_id="getBaseline", summary="What a commit is compared with"
)
def baseline(project: ProjectName, request: schemas.BaselineRequest, services: Services) -> schemas.Baseline:
    """The results that the reference means; in the place of some of them, those that a person accepted at one of the
    ancestors."""
    found = services.baselines.baseline(project, request.ref, request.ancestors)
    return schemas.Baseline(ref=request.ref, kind=found.kind, items=[_result(s) for s in found.stored])


@router.post(
    "/{project}/acknowledgements",
    dependencies=[Submit],
    status_code=201,
    operation_id="acknowledgeResult",
    summary="Accept a result at a commit",
)
def acknowledge(
    project: ProjectName, request: schemas.AcknowledgeRequest, services: Services, token: TokenName
) -> schemas.ProjectResult:
    """It is the baseline of that commit and of what descends from it, until a nearer ancestor was recorded."""
    holdings.check(services.db, services.settings)
    at = Commit(project, request.branch, request.commit)
    return _result(services.baselines.acknowledge(at, request.schedule_id, request.reason, token))


async def _may_see_badges(request: Request, services: Services, bearer: Bearer) -> None:
    if not services.settings.public_badges:
        await authenticated(request, bearer.credentials if bearer else None)


@router.get(
    "/{project}/badge.svg",
    dependencies=[Depends(_may_see_badges)],
    response_class=Response,
    responses=text("image/svg+xml"),
    operation_id="getBadge",
    summary="A badge",
)
def badge(project: ProjectName, services: Services, branch: BranchName = "main") -> Response:
    """The latest results of a branch against its commit before: how many pipelines, how many slower by 5 %."""
    stored, compared = services.baselines.latest(project, branch)
    text, color = _told(stored, compared)
    drawn = str(Badge("tilesmith", text, default_color=color).badge_svg_text)
    return Response(drawn, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})


def _told(stored: tuple[Stored, ...], compared: tuple[Comparison, ...]) -> tuple[str, str]:
    """The words of a badge, and its colour."""
    slower = len(regressed(compared))
    if not stored:
        return "no results", "lightgrey"
    if slower:
        return f"{slower} slower", "red"
    return f"{len(stored)} as fast", "green"


def _result(stored: Stored) -> schemas.ProjectResult:
    return schemas.ProjectResult(
        id=stored.id,
        branch=stored.branch,
        commit=stored.commit,
        token=stored.token,
        recorded_at=instant(stored.recorded_us),
        **stored.result.to_document(),
    )


def _change(found: Comparison) -> schemas.Change:
    s = found.series
    return schemas.Change(
        pipeline=s.pipeline, platform=s.platform, variant=s.variant, status=found.status, change=found.change
    )


def _trend(series: Series, points: list[Stored]) -> schemas.Trend:
    (compared,) = compare([points[-1].result], [points[0].result], 0.0)
    return schemas.Trend(
        pipeline=series.pipeline,
        platform=series.platform,
        variant=series.variant,
        unit=points[-1].result.unit,
        change=compared.change,
        points=[_result(s) for s in points],
    )
