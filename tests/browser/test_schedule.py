"""The page of one schedule in a browser: from a stage to its loop and its code and back, charts in both themes, two
schedules compared."""

from __future__ import annotations

import re

import pytest

LOADED = "e => e.complete && e.naturalWidth > 0"


def in_view(page, anchor: str) -> bool:
    """True if the element of that anchor is seen, and the address has it."""
    return page.url.endswith(f"#{anchor}") and bool(
        page.evaluate(
            """id => { const r = document.getElementById(id).getBoundingClientRect();
            return r.bottom > 0 && r.top < innerHeight; }""",
            anchor,
        )
    )


@pytest.mark.parametrize("scripts", [True, False])
def test_a_stage_leads_to_its_loop_and_its_code_and_back(site, visit, scripts):
    page = visit(f"/schedules/{site.schedules['harris']}", scripts=scripts)
    page.locator("#node-gray a").first.click()
    nest = page.url.partition("#")[2]
    assert re.fullmatch(r"nest-\d+", nest)
    page.locator(f"#{nest} a[href='#node-gray']").click()
    assert page.url.endswith("#node-gray")
    page.get_by_role("link", name="gray in the C").click()
    line = page.url.partition("#")[2]
    assert re.fullmatch(r"L\d+", line)
    page.locator(f"#{line} a").click()
    assert page.url.endswith("#node-gray")


def test_places_that_are_led_to_are_in_view(site, visit):
    page = visit(f"/schedules/{site.schedules['camera']}")
    page.get_by_role("link", name="curved in the C").click()
    assert in_view(page, page.url.partition("#")[2])
    page.get_by_role("link", name="curved in the stage graph").first.click()
    assert in_view(page, "node-curved")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_load_as_they_come_into_view_in_the_theme(site, visit, theme):
    page = visit(f"/schedules/{site.schedules['harris']}", theme=theme)
    images = page.locator("figure.chart img")
    assert images.count() >= 5
    for n in range(images.count()):
        images.nth(n).scroll_into_view_if_needed()
        page.wait_for_function(LOADED, arg=images.nth(n).element_handle())
    page.goto(images.first.get_attribute("src"))
    colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--text')")
    assert colour == {"light": "#1c2128", "dark": "#e6edf3"}[theme]


def test_the_graph_fits_the_page_on_demand(site, visit):
    page = visit(f"/schedules/{site.schedules['camera']}", width=360)
    width = "document.querySelector('.graph svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.get_by_label("Fit the graph to the page").check()
    assert page.evaluate(width) <= 360 < before


def test_rejected_choices_open_by_keyboard(site, visit):
    page = visit(f"/schedules/{site.schedules['harris']}")
    subject = page.locator("details.subject").filter(has=page.locator(".rejected")).first
    assert not subject.locator(".rejected").first.is_visible()
    subject.locator("summary").focus()
    page.keyboard.press("Enter")
    assert subject.locator(".rejected").first.is_visible()


def test_two_schedules_are_compared_by_the_id_of_the_other(site, visit):
    page = visit(f"/schedules/{site.schedules['harris']}")
    page.get_by_label("Compare with schedule").fill(site.schedules["harris elsewhere"])
    page.get_by_role("button", name="Compare").click()
    assert page.get_by_role("heading", level=1).inner_text() == "harris compared"
    assert page.locator(".sides tr").count() > 10
    image = page.locator("figure.chart img")
    image.scroll_into_view_if_needed()
    page.wait_for_function(LOADED, arg=image.element_handle())
    page.get_by_role("link", name="Swap A and B").click()
    assert f"b={site.schedules['harris']}" in page.url
