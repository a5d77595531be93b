"""/static: assets under addresses with the hash of their content, which browsers keep for good."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tilesmith.app.service.dashboard.assets import ASSETS, find
from tilesmith.app.service.errors import ApiError

router = APIRouter()


@router.get("/static/{digest}/{name:path}")
def static(digest: str, name: str) -> Response:
    """The asset of that content; ApiError `not_found` where it is another by now."""
    asset = find(name) if name in ASSETS else None
    if asset is None or asset.digest != digest:
        raise ApiError("not_found", "there is nothing at this address")
    return Response(
        asset.content, media_type=asset.media_type, headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )
