"""Forms of pages: where they may come from, and where they lead."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse

from tilesmith.app.service.errors import ApiError


async def _from_our_page(request: Request) -> None:
    """ApiError `cross_origin` unless the browser says that a page of this service sends the form: it sends the user's
    password along whoever asks. An Origin of another site has been refused before."""
    site = request.headers.get("sec-fetch-site")
    if site != "same-origin" and (site is not None or "origin" not in request.headers):
        raise ApiError("cross_origin", "a form is sent from a page of this service; programs use the routes under /v1")


FromOurPage: Any = Depends(_from_our_page)


def seen(address: str) -> RedirectResponse:
    """The answer to a form: the browser fetches the page at `address`, and reloading it sends nothing twice."""
    return RedirectResponse(address, 303)
