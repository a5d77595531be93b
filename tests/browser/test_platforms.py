"""What-if in a browser: a cache is changed in the form, and the page says what that changes."""

from __future__ import annotations

from playwright.sync_api import expect


def test_a_smaller_cache_is_tried_by_keyboard(visit):
    page = visit("/platforms/i7-6700")
    page.get_by_label("Pipeline (name or id)").fill("harris")
    page.get_by_label("L2 size (KiB)").fill("64")
    page.get_by_label("Memory bandwidth (GB/s)").fill("3")
    page.keyboard.press("Enter")
    told = page.get_by_role("status")
    expect(told).to_contain_text("The predicted cost of harris goes from")
    expect(told).to_contain_text("Decided otherwise")
    expect(page.get_by_label("L2 size (KiB)")).to_have_value("64")
    page.get_by_role("link", name="As it is").click()
    expect(page.get_by_label("L2 size (KiB)")).to_have_value("256")
