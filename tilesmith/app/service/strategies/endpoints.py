"""/v1/strategies: store one, list them, read one, delete one. Shipped ones are there by name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tilesmith.app.service.bodies import json_body
from tilesmith.app.service.context import Admin, Read, Services, Submit
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.named_documents import Known
from tilesmith.app.service.paging import Paging, merged_page
from tilesmith.app.service.schedules.answers import StrategyIdentity
from tilesmith.app.service.schedules.examples import ROWS
from tilesmith.app.service.strategies import repository
from tilesmith.app.service.strategies.schemas import Strategy, StrategyList, StrategySummary
from tilesmith.app.service.times import instant

router = APIRouter(prefix="/v1/strategies", tags=["strategies"])
KIND = "strategies"


@router.post(
    "",
    dependencies=[Submit],
    status_code=201,
    response_model=Strategy,
    responses={200: {"model": Strategy, "description": "It is known already"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}, "examples": {"rows": {"value": ROWS}}}},
        }
    },
    operation_id="storeStrategy",
    summary="Store a strategy",
)
async def add(request: Request, services: Services) -> Response:
    """The body is the document. It is checked whole, its rules too, and kept in canonical form under its content
    hash."""
    found = await services.engine.inspect_strategy(await json_body(request))
    new = await asyncio.to_thread(services.strategies.add, found)
    known = await asyncio.to_thread(services.strategies.find, found.id)
    return JSONResponse(_strategy(known), 201 if new else 200, {"Location": f"/v1/strategies/{found.id}"})


@router.get("", dependencies=[Read], operation_id="listStrategies", summary="List strategies")
def every(services: Services, paging: Paging) -> StrategyList:
    """All strategies by name, shipped and stored together, without the documents."""
    after = paging.key(KIND, (str, str))
    shipped = (
        ((s.name, s.id), StrategySummary(id=s.id, name=s.name, source="shipped", href=f"/v1/strategies/{s.name}"))
        for s in services.strategies.shipped.values()
    )
    stored = (((row.name, row.id), _stored(row)) for row in repository.page(services.db, after, paging.limit + 1))
    page = merged_page(shipped, stored, after, KIND, paging.limit)
    return StrategyList(items=list(page.items), next_cursor=page.next_cursor)


@router.get(
    "/{name_or_id}", dependencies=[Read], response_model=Strategy, operation_id="getStrategy", summary="One strategy"
)
def one(name_or_id: str, services: Services) -> Response:
    return JSONResponse(_strategy(services.strategies.find(name_or_id)))


@router.delete(
    "/{name_or_id}", dependencies=[Admin], status_code=204, operation_id="deleteStrategy", summary="Delete a strategy"
)
def remove(name_or_id: str, services: Services) -> None:
    """A stored one, by its id. Its schedules stay: they have the document."""
    if not repository.remove(services.db, name_or_id):
        raise ApiError("strategy_not_found", f"no strategy {name_or_id[:64]!r} is stored")


def _stored(row: Any) -> StrategySummary:
    created = instant(row.created_us)
    return StrategySummary(
        id=row.id, name=row.name, source="stored", created_at=created, href=f"/v1/strategies/{row.id}"
    )


def _strategy(known: Known[StrategyIdentity]) -> dict[str, Any]:
    strategy = known.identity
    return {
        "id": strategy.id,
        "name": strategy.name,
        "source": "shipped" if known.shipped else "stored",
        "href": f"/v1/strategies/{strategy.name if known.shipped else strategy.id}",
        "document": json.loads(strategy.document),
    }
