"""/v1/imports: a pipeline of another format as a document."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse

from tilesmith.app.service.bodies import media_type
from tilesmith.app.service.context import Services, Submit
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.imports.schemas import Imported

router = APIRouter(prefix="/v1/imports", tags=["imports"])
BYTES = "application/octet-stream"


@router.post(
    "/{importer}",
    dependencies=[Submit],
    response_model=Imported,
    openapi_extra={
        "requestBody": {"required": True, "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}
    },
    operation_id="importFile",
    summary="Make a document of a file in another format",
)
async def read(importer: Annotated[str, Path(max_length=64)], request: Request, services: Services) -> Response:
    """The body is the file. Nothing of it is run, and nothing is stored."""
    if media_type(request) != BYTES:
        raise ApiError("unsupported_media_type", f"send Content-Type: {BYTES}")
    return JSONResponse(await services.engine.import_content(importer, await request.body()))
