"""The list of schedules in a browser: searched, sorted, two picked, a note saved by a form."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect


def test_a_search_is_typed(site, visit):
    page = visit("/")
    page.get_by_role("searchbox").fill("harris host")
    page.keyboard.press("Enter")
    expect(page.locator("table.list tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="harris", exact=True)).to_have_attribute(
        "href", f"/schedules/{site.schedules['harris']}"
    )
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("table.list tbody tr")).to_have_count(len(site.schedules))


def test_headings_sort_both_ways(visit):
    page = visit("/")
    page.get_by_role("link", name="Predicted (ms)").click()
    heading = page.get_by_role("columnheader", name="Predicted (ms)")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    first = page.locator("tbody td.number").first.inner_text()
    page.get_by_role("link", name="Predicted (ms)").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert page.locator("tbody td.number").first.inner_text() != first


def test_two_schedules_are_picked_by_keyboard(site, visit):
    page = visit("/")
    picks = {side: page.locator(f"input[name={side}][value='{site.schedules[name]}']") for side, name in PICKED.items()}
    for pick in picks.values():
        pick.focus()
        page.keyboard.press("Space")
    page.route("**/compare?*", lambda route: route.fulfill(body="compared"))
    with page.expect_request(re.compile("/compare")) as asked:
        page.get_by_role("button", name="Compare").focus()
        page.keyboard.press("Enter")
    asked_for = parse_qs(urlsplit(asked.value.url).query)
    assert asked_for == {side: [site.schedules[name]] for side, name in PICKED.items()}


PICKED = {"a": "harris", "b": "harris elsewhere"}


def test_a_note_is_saved_by_the_form_of_the_page(site, visit):
    page = visit(f"/schedules/{site.schedules['unsharp']}/notes")
    page.get_by_label("Note").fill("Looks sharp")
    page.get_by_label("Tags").fill("sharp, release-3")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(f"{site.url}/schedules/{site.schedules['unsharp']}")
    assert site.client.get(f"/v1/schedules/{site.schedules['unsharp']}/notes").json() == {
        "note": "Looks sharp",
        "tags": ["release-3", "sharp"],
    }


def test_thumbnails_are_loaded(visit):
    page = visit("/")
    page.wait_for_load_state("networkidle")
    pictures = page.locator("td.picture img")
    assert pictures.count() >= 6
    assert pictures.evaluate_all("all => all.every(e => e.complete && e.naturalWidth > 0)")
