"""/v1/validate: documents checked, and nothing kept of them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from tilesmith.app.service.bodies import described, json_body
from tilesmith.app.service.context import Read, Services
from tilesmith.app.service.validation.schemas import Validation, ValidationRequest
from tilesmith.app.service.validation.work import validated as check

router = APIRouter(tags=["validation"])


@router.post(
    "/v1/validate",
    dependencies=[Read],
    response_model=Validation,
    openapi_extra=described(ValidationRequest),
    operation_id="validateDocuments",
    summary="Check documents",
)
async def validate(request: Request, services: Services) -> Response:
    """Checks a pipeline, a platform, a strategy, as data or as text, and keeps nothing: 200 whatever is wrong with
    them. Problems of text have the line and column."""
    body = await json_body(request)
    found = await services.engine.run(check, body, services.settings.limits, reading=True)
    return Response(found, media_type="application/json")
