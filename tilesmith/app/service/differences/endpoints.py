"""/v1/compare: how one schedule differs from another."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from tilesmith.app.service.context import Read, Services
from tilesmith.app.service.differences.schemas import Difference
from tilesmith.app.service.differences.service import difference, sides

router = APIRouter(prefix="/v1/compare", tags=["schedules"])

Id = Annotated[str, Query(min_length=1, max_length=64, description="The id of a schedule")]


@router.get("", dependencies=[Read], operation_id="compareSchedules", summary="Compare two schedules")
async def compare(a: Id, b: Id, services: Services) -> Difference:
    """Decisions that differ, predicted cost by stage, loop nests and C as unified diffs. They may be of different
    pipelines and platforms. Where their costs are of different models, both are priced by `ecm`."""
    return await asyncio.to_thread(difference, *await sides(services, a, b))
