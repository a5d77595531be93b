"""/v1/tokens: made, listed and revoked by those who hold the scope admin."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tilesmith.app.service.context import Admin, Services
from tilesmith.app.service.tokens import schemas

router = APIRouter(prefix="/v1/tokens", tags=["tokens"], dependencies=[Admin])


@router.post("", status_code=201, operation_id="createToken", summary="Make a token")
def create(request: schemas.TokenRequest, services: Services) -> schemas.NewTokenDocument:
    """The text of the token is in this answer and nowhere else. From the first token on, every request needs one."""
    made = services.tokens.create(request.name, request.scopes, request.expires_at)
    return schemas.NewTokenDocument(
        id=made.id, name=made.name, scopes=made.scopes, expires_at=made.expires_at, token=made.token
    )


@router.get("", operation_id="listTokens", summary="List tokens")
def every(services: Services) -> schemas.TokenList:
    return schemas.TokenList(items=services.tokens.every())


@router.delete(
    "/{token_id}", status_code=204, response_class=Response, operation_id="revokeToken", summary="Revoke a token"
)
def revoke(token_id: str, services: Services) -> Response:
    services.tokens.revoke(token_id)
    return Response(status_code=204)
