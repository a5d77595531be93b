"""/docs and /v1/schemas: the API to read and to try, and the JSON Schemas of documents.

Swagger UI comes out of a package that is installed with the service, so that no page loads anything from elsewhere.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse, JSONResponse

from tilesmith.app.service.context import Read
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.reference import schemas
from tilesmith.app.service.reference.schemas import SchemaList

router = APIRouter(tags=["reference"])

ASSETS = files("fastapi_swagger.resources")
Asset = Literal["swagger-ui-bundle.js", "swagger-ui.css"]
MEDIA_TYPES: dict[Asset, str] = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The API - tilesmith</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<main id="api">
<noscript><p>This page needs JavaScript; <a href="/openapi.json">the description</a> does not.</p></noscript>
</main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = """"use strict";
SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#api", deepLinking: true, displayRequestDuration: true, validatorUrl: null,
});
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Swagger UI writes style attributes, and its style sheet has pictures in it."""


class SchemaResponse(JSONResponse):
    """A JSON Schema."""

    media_type = "application/schema+json"


@router.get("/docs", include_in_schema=False)
async def docs() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})


@router.get("/docs/start.js", include_in_schema=False)
async def start() -> Response:
    return Response(START, media_type="text/javascript")


@router.get("/docs/{asset}", include_in_schema=False)
def asset(asset: Asset) -> Response:
    """A file of Swagger UI."""
    content = ASSETS.joinpath(asset).read_bytes()
    return Response(content, media_type=MEDIA_TYPES[asset], headers={"Cache-Control": "private, max-age=86400"})


@router.get("/v1/schemas", dependencies=[Read], operation_id="listSchemas", summary="List JSON Schemas")
def every() -> SchemaList:
    return schemas.listed()


@router.get(
    "/v1/schemas/{name}",
    dependencies=[Read],
    response_class=SchemaResponse,
    responses={200: {"content": {SchemaResponse.media_type: {"schema": {"type": "object"}}}}},
    operation_id="getSchema",
    summary="One JSON Schema",
)
def one(name: str) -> Response:
    """JSON Schema 2020-12 of a document, with this address as its `$id`."""
    found = schemas.schema(name)
    if found is None:
        names = ", ".join(link.name for link in schemas.listed().items)
        raise ApiError("schema_not_found", f"there is no schema {name[:64]!r}; schemas: {names}")
    return SchemaResponse(found)
