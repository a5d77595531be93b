"""The playground in a browser: typed, mended and scheduled by keyboard alone; kept in a link; without scripts."""

from __future__ import annotations

import pytest
from browser.checks import accessible, by_keyboard, fits, looks_well, transferred
from browser.conftest import empty_site
from playwright.sync_api import Page, expect
from support.tools import require_editor

from tilesmith.app.service.dashboard import assets
from tilesmith.scheduler import pipelines

MOST_BYTES = 300_000
FOCUSED = """(e => e.shadowRoot?.activeElement?.getAttribute('aria-label') ?? e.textContent.trim())
  (document.activeElement)"""


@pytest.fixture(autouse=True)
def _editor():
    require_editor()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service of its own: what is scheduled here would be in everybody's lists."""
    with empty_site(tmp_path_factory.mktemp("playground")) as made:
        yield made


def editor(page: Page):
    """The text to write in, once the editor is there."""
    found = page.locator("#editor").get_by_role("textbox", name="Pipeline, YAML or JSON")
    expect(found).to_be_visible()
    return found


def tab_to(page: Page, name: str):
    """Presses Tab until the focus is on what is called so."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"Tab does not reach {name}")


def paste(page: Page, text: str) -> None:
    """Pastes by keyboard: typed lines would be indented by the editor once more."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.keyboard.press("Control+v")


def test_a_pipeline_is_written_mended_and_scheduled_by_keyboard(visit):
    page = visit("/playground")
    text = editor(page)
    tab_to(page, "Pipeline, YAML or JSON")
    page.keyboard.press("Control+a")
    paste(page, pipelines.text("blur").replace("name: blur\n", "name: mine\n"))
    page.keyboard.type("wrong: 1")
    problem = page.locator("#problems li")
    expect(problem).to_contain_text("There is no key 'wrong' here.")
    expect(problem.get_by_role("button")).to_have_text("Line 19, column 1")
    expect(page.locator("#said")).to_have_text("1 problem")
    expect(text.locator(".cm-lintRange-error")).to_have_text("wrong")
    page.keyboard.press("Control+Home")
    page.keyboard.press("F8")  # to the problem
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    expect(page.locator("#problems")).to_have_text("No problems.")
    expect(text.locator(".cm-lintRange-error")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="mine on host")).to_be_visible()
    expect(page.locator("#said")).to_contain_text("Scheduled: predicted")
    for heading in ("Loop nest", "Decisions", "C"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    assert "#include" in page.locator("#result pre.code").inner_text()
    tab_to(page, "Schedule")  # out of the editor


def test_a_problem_leads_to_its_place(visit):
    page = visit("/playground")
    text = editor(page)
    text.press("Control+Home")
    page.keyboard.type("nonsense: 1\n")
    page.get_by_role("button", name="Line 1, column 1").press("Enter")
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    expect(page.locator("#problems")).to_have_text("No problems.")


def test_a_link_keeps_what_is_written(visit):
    page = visit("/playground?example=unsharp")
    text = editor(page)
    page.get_by_label("Platform").select_option("i7-6700")
    page.get_by_label("Strict floating point").check()
    text.press("Control+Home")
    page.keyboard.type("# of mine\n")
    expect(page.locator("#problems")).to_have_text("No problems.")
    page.wait_for_function("location.hash.length > 100")
    again = visit(page.url)
    expect(editor(again)).to_contain_text("# of mine")
    expect(editor(again)).to_contain_text("name: unsharp")
    expect(again.get_by_label("Platform")).to_have_value("i7-6700")
    expect(again.get_by_label("Strict floating point")).to_be_checked()


def test_a_link_that_was_cut_is_told(visit):
    page = visit("/playground#text=abc")
    expect(page.locator("#said")).to_have_text("The link does not hold a whole text.")
    expect(editor(page)).to_contain_text("name: blur")


def test_a_link_is_copied(visit):
    page = visit("/playground")
    editor(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy a link to this").click()
    expect(page.locator("#said")).to_have_text("The link is copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_role("link", name="Skip to content").press("Enter")
    expect(page.locator("#said")).to_have_text("The link is copied.")


def test_it_is_small_and_accessible_and_fits_and_the_keyboard_reaches_everything(visit):
    page = visit("/playground")
    text = editor(page)
    assert 100_000 < transferred(page) < MOST_BYTES
    by_keyboard(page)
    looks_well(page)
    text.press("Control+Enter")
    expect(page.get_by_role("heading", name="blur on host")).to_be_visible()
    text.press("Control+End")
    page.keyboard.type("wrong: 1\n")
    expect(page.locator("#problems li")).to_have_count(1)
    looks_well(page)


def test_it_works_without_scripts(visit):
    page = visit("/playground", scripts=False)
    field = page.get_by_label("Pipeline, YAML or JSON")
    field.fill(pipelines.text("blur") + "wrong: 1\n")
    page.get_by_role("button", name="Schedule").click()
    expect(page.locator("#problems")).to_contain_text("Line 19, column 1")
    page.get_by_label("Pipeline, YAML or JSON").fill(pipelines.text("blur"))
    page.get_by_role("button", name="Schedule").click()
    expect(page.get_by_role("heading", name="blur on host")).to_be_visible()
    expect(page.get_by_label("Pipeline, YAML or JSON")).to_have_value(pipelines.text("blur"))


def test_a_copy_without_the_editor_does_the_same_in_a_text_field(visit, monkeypatch):
    monkeypatch.setitem(assets.ASSETS, "editor.js", assets.made("editor.that-is-not-there.js"))
    assets.find.cache_clear()
    try:
        page = visit("/playground")
    finally:
        assets.find.cache_clear()
    expect(page.get_by_text("This copy lacks the editor")).to_be_visible()
    field = page.get_by_label("Pipeline, YAML or JSON")
    field.press("Control+Home")
    page.keyboard.type("# mine\nwrong: 1\n")
    page.get_by_role("button", name="Line 2, column 1").press("Enter")
    assert field.evaluate("e => e.selectionStart") == len("# mine\n")
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    expect(page.locator("#problems")).to_have_text("No problems.")
    accessible(page)
    fits(page)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="blur on host")).to_be_visible()
