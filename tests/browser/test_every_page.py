"""Every page, on a phone and a laptop, dark and light: accessible, nothing on the console, no sideways scrolling, by
keyboard, small. Pages that act have modules of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser.checks import accessible, by_keyboard, fits, looks_well, transferred
from browser.conftest import Site

from tilesmith.app.service import dashboard

PAGES: dict[str, Callable[[Site], str]] = {
    "schedules": lambda site: "/",
    "schedules found": lambda site: "/?q=harris+host",
    "schedules not found": lambda site: "/?q=nothing+at+all",
    "schedules filtered": lambda site: "/?pipeline=blur&order=-predicted",
    "notes": lambda site: f"/schedules/{site.schedules['blur']}/notes",
    "schedule": lambda site: f"/schedules/{site.schedules['harris']}",
    "schedule of many stages": lambda site: f"/schedules/{site.schedules['camera']}",
    "comparison": lambda site: f"/compare?a={site.schedules['harris']}&b={site.schedules['harris elsewhere']}",
    "tuned schedule": lambda site: f"/schedules/{site.schedules['tuned']}",
    "pipelines": lambda site: "/pipelines",
    "pipelines found": lambda site: "/pipelines?q=blur",
    "pipeline": lambda site: "/pipelines/blur",
    "pipeline without schedules": lambda site: "/pipelines/lens_blur",
    "platforms": lambda site: "/platforms",
    "platform": lambda site: "/platforms/i7-6700",
    "device": lambda site: "/platforms/nvidia-a100",
    "what if": lambda site: "/platforms/i7-6700/what-if?pipeline=harris&l2.size_bytes=64",
    "jobs": lambda site: "/jobs",
    "jobs filtered": lambda site: "/jobs?state=failed",
}
LONG = ("schedule of many stages",)
"""Pages of thousands of words, in the colours of another page."""
MOST_BYTES = 300_000
STATIC = Path(dashboard.__file__).parent / "static"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small_and_accessible_and_fits_and_the_keyboard_reaches_everything(site, visit, name):
    page = visit(PAGES[name](site))
    assert 1000 < transferred(page) < MOST_BYTES
    looks_well(page, contrast=name not in LONG)
    by_keyboard(page)  # Tab goes the same way on a phone


def test_no_rule_is_for_a_width_and_a_theme():
    """Each width and each theme is looked at once, not each width in each theme."""
    queries = []
    for sheet in sorted(STATIC.glob("*.css")):
        before, *rest = sheet.read_text(encoding="utf-8").split("@media")
        for query in rest:
            assert before.count("{") == before.count("}"), "a query inside of a query"
            queries.append(query.partition("{")[0])
            before += query
    assert queries
    assert not [q for q in queries if "width" in q and "color-scheme" in q]


def test_pages_read_without_scripts(site, visit):
    page, found = visit("/", scripts=False), {}
    for name, path in PAGES.items():
        page.goto(path(site))
        heading, link = page.get_by_role("heading", level=1), page.get_by_role("link", name="This page as JSON")
        found[name] = heading.count(), link.count()
    assert found == dict.fromkeys(PAGES, (1, 1))


def test_an_error_is_a_page_too(visit):
    page = visit("/?cursor=x", width=360)
    accessible(page)
    fits(page)
    assert len(visit.complaints) == 1  # the status, 400
    visit.complaints.clear()
