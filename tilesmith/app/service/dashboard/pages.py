"""Pages: templates, what may be in them, and who may read or change."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import Depends
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from tilesmith.app.service.context import Read, in_browsers
from tilesmith.app.service.dashboard import assets
from tilesmith.app.service.dashboard.navigation import NAVIGATION

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


def error_page(problem: dict[str, Any], status: int, headers: dict[str, str]) -> HTMLResponse:
    """A problem document for people."""
    return html("error.html", status, headers, problem={"request_id": ""} | problem)
