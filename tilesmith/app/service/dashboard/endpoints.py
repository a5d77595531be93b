"""The dashboard: a module a page, put together here. Pages are rendered on the server and read without scripts."""

from __future__ import annotations

from fastapi import APIRouter

from tilesmith.app.service.dashboard import (
    act,
    compare,
    job,
    jobs,
    notes,
    pipelines,
    platforms,
    playground,
    schedule,
    schedules,
    static,
    thumbnails,
)

PAGES = (schedules, schedule, compare, act, notes, thumbnails, pipelines, platforms, jobs, job, playground, static)

router = APIRouter(tags=["dashboard"], include_in_schema=False)
for _page in PAGES:
    router.include_router(_page.router)
