"""What every page has to hold, in every width and theme."""

from __future__ import annotations

from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

LOOKS: tuple[tuple[int, int, Literal["light", "dark"]], ...] = ((360, 800, "dark"), (1280, 900, "light"))
"""Widths, heights and themes that pages are looked at in. No rule of the style sheets is for both a width and a theme
(`test_no_rule_is_for_a_width_and_a_theme`), so each of either is enough."""
FOCUSABLE = """Array.from(document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
)).filter(e => !e.disabled && e.checkVisibility())"""
CHOICE = """e => e.type == 'radio' && window.all.filter(o => o.name == e.name)[0] != e"""
"""Of radio buttons Tab reaches one; arrows lead to the others."""
NAME = "e => e.tagName + ' ' + (e.getAttribute('aria-label') || e.textContent).trim().slice(0, 40)"


def looks_well(page: Page, contrast: bool = True) -> None:
    """In every look the page is accessible and fits; it is left in the last, a laptop's."""
    for width, height, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        accessible(page, contrast)
        fits(page)


def accessible(page: Page, contrast: bool = True) -> None:
    """No violation of any of axe's rules. That of contrast looks at each word: it takes most of the time."""
    rules = {} if contrast else {"color-contrast": {"enabled": False}}
    found = Axe().run(page, options={"resultTypes": ["violations"], "rules": rules})  # no list of all that is well
    assert found.violations_count == 0, found.generate_report()


def fits(page: Page) -> None:
    """The body does not scroll sideways."""
    wide = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
        Array.from(document.body.querySelectorAll('*'))
          .filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('[tabindex]'))
          .map(e => e.outerHTML.slice(0, 120)).slice(0, 5)"""
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), wide


def by_keyboard(page: Page) -> None:
    """Every control is reached by the Tab key, held down: as many presses take half as long again."""
    page.evaluate("document.addEventListener('focusin', e => window.reached.add(e.target))")
    count = page.evaluate(f"window.reached = new Set(), (window.all = {FOCUSABLE}).length")
    for _ in range(count + 5):
        page.keyboard.down("Tab")
    page.keyboard.up("Tab")
    missed = page.evaluate(f"window.all.filter(e => !window.reached.has(e) && !({CHOICE})(e)).map({NAME})")
    assert missed == []


def transferred(page: Page) -> int:
    """Bytes that came over the wire for the page and what it loads, as they came: compressed."""
    return int(
        page.evaluate(
            """performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
              .reduce((sum, e) => sum + e.encodedBodySize, 0)"""
        )
    )
