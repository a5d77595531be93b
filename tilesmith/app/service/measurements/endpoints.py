"""Measurements: of one schedule, and all of them, filtered."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tilesmith.app.service.context import Read, Services
from tilesmith.app.service.measurements import repository
from tilesmith.app.service.measurements.repository import Filters, Kind
from tilesmith.app.service.measurements.schemas import Measurement, MeasurementList
from tilesmith.app.service.paging import Paging, next_page
from tilesmith.app.service.times import instant

router = APIRouter(tags=["measurements"])

KIND = "measurements"
Name = Annotated[str | None, Query(max_length=64)]


@router.get(
    "/v1/schedules/{schedule_id}/measurements",
    dependencies=[Read],
    operation_id="listMeasurementsOfSchedule",
    summary="What jobs measured of a schedule",
)
def of_schedule(schedule_id: str, services: Services) -> MeasurementList:
    """Candidates of a tuned schedule, by rank; then runs, the newest first."""
    services.schedules.get(schedule_id)
    return MeasurementList(items=[_measurement(row) for row in repository.of_schedule(services.db, schedule_id)])


@router.get("/v1/measurements", dependencies=[Read], operation_id="listMeasurements", summary="List measurements")
def every(
    services: Services,
    paging: Paging,
    schedule: Annotated[str | None, Query(max_length=64, description="Id of a schedule")] = None,
    pipeline: Name = None,
    platform: Name = None,
    machine: Annotated[str | None, Query(max_length=200, description="`conditions.machine.description`")] = None,
    kind: Kind | None = None,
    estimated: Annotated[bool | None, Query(description="At the estimated sizes, or at others")] = None,
) -> MeasurementList:
    """The newest first."""
    after = paging.key(KIND, (int, str))
    filters = Filters(schedule, pipeline, platform, machine, kind, estimated)
    rows = repository.page(services.db, filters, after, paging.limit + 1)
    page = next_page(rows, [(row.measured_us, row.id) for row in rows], KIND, paging.limit)
    return MeasurementList(items=[_measurement(row) for row in page.items], next_cursor=page.next_cursor)


def _measurement(row: Any) -> Measurement:
    return Measurement(
        id=row.id,
        schedule_id=row.schedule_id,
        pipeline=row.pipeline,
        platform=row.platform,
        kind=row.kind,
        rank=row.candidate,
        predicted=row.predicted,
        estimated=row.estimated,
        minimum_ms=row.minimum_ms,
        median_ms=row.median_ms,
        interval_ms=None if row.low_ms is None else (row.low_ms, row.high_ms),
        times_ms=json.loads(row.times_ms),
        threads=row.threads,
        compile_ms=row.compile_ms,
        conditions=None if row.conditions is None else json.loads(row.conditions),
        error=row.error,
        measured_at=instant(row.measured_us),
    )
