"""/v1/platforms: describe a machine, list them, read one. The catalog and `host` are there by name."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tilesmith.app.service import holdings
from tilesmith.app.service.bodies import json_body
from tilesmith.app.service.context import Read, Services, Submit
from tilesmith.app.service.paging import Paging, merged_page
from tilesmith.app.service.platforms import repository
from tilesmith.app.service.platforms.reading import read
from tilesmith.app.service.platforms.schemas import Platform, PlatformList, PlatformSummary
from tilesmith.app.service.platforms.service import Known
from tilesmith.app.service.times import instant

router = APIRouter(prefix="/v1/platforms", tags=["platforms"])
KIND = "platforms"


@router.post(
    "",
    dependencies=[Submit],
    status_code=201,
    response_model=Platform,
    responses={200: {"model": Platform, "description": "It is known already"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PlatformDocument"}}},
        }
    },
    operation_id="storePlatform",
    summary="Store a platform",
)
async def add(request: Request, services: Services) -> Response:
    """The body is the description of a machine. Its name may be used once: a name means one machine for ever."""
    machine = await services.engine.read(read, await json_body(request))
    await asyncio.to_thread(holdings.check, services.db, services.settings)
    known, new = await asyncio.to_thread(services.platforms.add, machine)
    return JSONResponse(_platform(known), 201 if new else 200, {"Location": f"/v1/platforms/{known.name}"})


@router.get("", dependencies=[Read], operation_id="listPlatforms", summary="List platforms")
def every(services: Services, paging: Paging) -> PlatformList:
    """By name: the host, the catalog's, and stored ones."""
    after = paging.key(KIND, (str,))
    built_in = (
        ((name,), PlatformSummary(name=name, kind=known.document["kind"], source=known.source, href=_href(name)))
        for name, known in services.platforms.built_in.items()
    )
    stored = (((row.name,), _stored(row)) for row in repository.page(services.db, after, paging.limit + 1))
    page = merged_page(built_in, stored, after, KIND, paging.limit)
    return PlatformList(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/{name}", dependencies=[Read], response_model=Platform, operation_id="getPlatform", summary="One platform")
def one(name: str, services: Services) -> Response:
    return JSONResponse(_platform(services.platforms.find(name)))


def _href(name: str) -> str:
    return f"/v1/platforms/{name}"


def _stored(row: Any) -> PlatformSummary:
    return PlatformSummary(
        name=row.name, kind=row.kind, source="stored", created_at=instant(row.created_us), href=_href(row.name)
    )


def _platform(known: Known) -> dict[str, Any]:
    return {"name": known.name, "source": known.source, "href": _href(known.name), "document": known.document}
