"""/v1/pipelines: store one, list them, read one. Shipped ones are there by name."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from tilesmith.app.service.bodies import json_body
from tilesmith.app.service.context import Admin, Read, Services, Submit
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.named_documents import Known
from tilesmith.app.service.paging import Paging, merged_page
from tilesmith.app.service.pipelines import repository
from tilesmith.app.service.pipelines.schemas import Pipeline, PipelineList, PipelineSummary
from tilesmith.app.service.schedules.answers import PipelineIdentity
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.app.service.times import instant

router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])
KIND = "pipelines"


@router.post(
    "",
    dependencies=[Submit],
    status_code=201,
    response_model=Pipeline,
    responses={200: {"model": Pipeline, "description": "It is known already"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/PipelineDocument"},
                    "examples": {"blur": {"value": BLUR}},
                }
            },
        }
    },
    operation_id="storePipeline",
    summary="Store a pipeline",
)
async def add(request: Request, services: Services) -> Response:
    """The body is the document. It is checked whole, and kept in canonical form under its content hash."""
    found = await services.engine.inspect(await json_body(request))
    new = await asyncio.to_thread(services.pipelines.add, found)
    known = await asyncio.to_thread(services.pipelines.find, found.id)
    location = {"Location": f"/v1/pipelines/{found.id}"}
    return JSONResponse(_pipeline(known), 201 if new else 200, location)


@router.get("", dependencies=[Read], operation_id="listPipelines", summary="List pipelines")
def every(
    services: Services,
    paging: Paging,
    name: Annotated[str | None, Query(max_length=64, description="Those of this name")] = None,
) -> PipelineList:
    """All pipelines by name, shipped and stored together, without the documents."""
    after = paging.key(KIND, (str, str))
    shipped = (
        (
            (p.name, p.id),
            PipelineSummary(id=p.id, name=p.name, stages=p.stages, source="shipped", href=f"/v1/pipelines/{p.name}"),
        )
        for p in services.pipelines.shipped.values()
        if name is None or p.name == name
    )
    stored = (((row.name, row.id), _stored(row)) for row in repository.page(services.db, name, after, paging.limit + 1))
    page = merged_page(shipped, stored, after, KIND, paging.limit)
    return PipelineList(items=list(page.items), next_cursor=page.next_cursor)


@router.get(
    "/{name_or_id}", dependencies=[Read], response_model=Pipeline, operation_id="getPipeline", summary="One pipeline"
)
def one(name_or_id: str, services: Services) -> Response:
    return JSONResponse(_pipeline(services.pipelines.find(name_or_id)))


@router.delete(
    "/{name_or_id}", dependencies=[Admin], status_code=204, operation_id="deletePipeline", summary="Delete a pipeline"
)
def remove(name_or_id: str, services: Services) -> None:
    """A stored one, by its id. Its schedules stay: they have the document."""
    if not repository.remove(services.db, name_or_id):
        shipped = name_or_id in services.pipelines.shipped
        raise ApiError(
            "pipeline_not_found",
            f"pipeline {name_or_id[:64]!r} ships with tilesmith; only stored ones are deleted"
            if shipped
            else f"no pipeline is stored with the id {name_or_id[:64]!r}; GET /v1/pipelines?name=... lists the ids",
        )


def _stored(row: Any) -> PipelineSummary:
    return PipelineSummary(
        id=row.id,
        name=row.name,
        stages=row.stages,
        source="stored",
        created_at=instant(row.created_us),
        href=f"/v1/pipelines/{row.id}",
    )


def _pipeline(known: Known[PipelineIdentity]) -> dict[str, Any]:
    pipeline = known.identity
    return {
        "id": pipeline.id,
        "name": pipeline.name,
        "stages": pipeline.stages,
        "source": "shipped" if known.shipped else "stored",
        "href": f"/v1/pipelines/{pipeline.name if known.shipped else pipeline.id}",
        "document": json.loads(pipeline.document),
    }
