"""Pages: templates, what may be in them, and who may read or change."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from tilesmith.app.service.context import Read, in_browsers
from tilesmith.app.service.dashboard import assets
from tilesmith.app.service.dashboard.navigation import NAVIGATION
from tilesmith.app.service.paging import Page as Leaf

templates = Environment(
    loader=PackageLoader("tilesmith.app.service.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals |= {"asset": assets.href, "navigation": NAVIGATION, "version": version("tilesmith")}

Page: Any = Read
Change: Any = Depends(in_browsers("submit"))


def policy(nonce: str | None = None) -> str:
    """The Content-Security-Policy of a page: everything from here, scripts and styles in files of their own. With
    `nonce`, style elements that carry it, as editors make them."""
    styles = "'self'" if nonce is None else f"'self' 'nonce-{nonce}'"
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' blob:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def html(template: str, status: int = 200, headers: dict[str, str] | None = None, /, **values: Any) -> HTMLResponse:
    """The page of a template."""
    content = templates.get_template(template).render(**values)
    defaults = {"Cache-Control": "no-store", "Content-Security-Policy": policy()}
    return HTMLResponse(content, status, defaults | (headers or {}))


def address(path: str, **query: str | None) -> str:
    """The path with a query; what is empty is left out."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def leaves(request: Request, path: str, query: Mapping[str, str], page: Leaf[Any]) -> dict[str, str | None]:
    """Addresses of the first, the previous and the next page of a list; None where there is none."""
    here = {"limit": request.query_params.get("limit", ""), **query}
    back, on = page.previous_cursor, page.next_cursor
    return {
        "first": address(path, **here) if back else None,
        "previous": address(path, **here, cursor=back) if back else None,
        "next": address(path, **here, cursor=on) if on else None,
    }


def error_page(problem: dict[str, Any], status: int, headers: dict[str, str]) -> HTMLResponse:
    """A problem document for people."""
    return html("error.html", status, headers, problem={"request_id": ""} | problem)
