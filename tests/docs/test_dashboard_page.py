"""The page on the dashboard lists every page."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from tilesmith.app.service.dashboard import endpoints

PAGE = Path(__file__).parents[2] / "docs" / "dashboard.md"


def test_every_page_is_documented() -> None:
    served = {
        f"{method} {route.path_format}"
        for module in endpoints.PAGES
        for route in module.router.routes
        for method in _methods(route)
    }
    documented = re.findall(r"^\| `((?:GET|POST) [^`]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(served)


def _methods(route: BaseRoute) -> set[str]:
    assert isinstance(route, Route)
    return (route.methods or set()) - {"HEAD"}


def test_pages_are_no_part_of_the_api() -> None:
    app = FastAPI()
    app.include_router(endpoints.router)
    assert app.openapi()["paths"] == {}
