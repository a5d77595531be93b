"""Every page, on a laptop and a phone, light and dark: accessible, nothing on the console, no sideways scrolling, by
keyboard, small. Pages that act have modules of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.checks import accessible, by_keyboard, fits, transferred
from browser.conftest import Site

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
MOST_BYTES = 300_000


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits(site, visit, name, width, theme):
    page = visit(PAGES[name](site), width, theme)
    accessible(page)
    fits(page)


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_everything(site, visit, name):
    by_keyboard(visit(PAGES[name](site)))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small(site, visit, name):
    assert 1000 < transferred(visit(PAGES[name](site))) < MOST_BYTES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_without_scripts(site, visit, name):
    page = visit(PAGES[name](site), scripts=False)
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("link", name="This page as JSON").count() == 1


def test_an_error_is_a_page_too(visit):
    page = visit("/?cursor=x", width=360)
    accessible(page)
    fits(page)
    assert len(visit.complaints) == 1  # the status, 400
    visit.complaints.clear()
