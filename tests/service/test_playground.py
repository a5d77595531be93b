"""The playground without scripts: examples to start from, problems with their places, schedule and C beside them."""

from __future__ import annotations

import re

import pytest
from service.test_dashboard import Page, page

from tilesmith.app.service.dashboard import assets
from tilesmith.app.service.schedules import work
from tilesmith.scheduler import pipelines

WRITTEN = pipelines.text("blur")
WRONG = WRITTEN.replace("input(x + 1, y)", "inptu(x + 1, y)")


@pytest.fixture
def real(start):
    """A service with real scheduling, in threads."""
    return start(scheduling=work)


def send(service, url="/playground", **fields):
    """The page that the form leads to."""
    own = {"Origin": service.url, "Accept": "text/html"}
    answer = service.client.post(url, data=fields, headers=own)
    assert answer.status_code == 200, answer.text
    return Page(answer.text)


def field(found):
    """What the text field of a page holds."""
    return "".join(found.words[found.words.index("Pipeline, YAML or JSON") :])


def test_it_starts_from_an_example(service):
    for name in pipelines.names():
        found = page(service, f"/playground?example={name}")
        assert pipelines.text(name) in field(found)
        assert ("option", {"selected": None}) in found.tags
    assert WRITTEN in field(page(service, "/playground"))
    page(service, "/playground?example=nothing", 404)


def test_it_starts_from_a_stored_pipeline_or_schedule(real):
    document = {**pipelines.document("blur"), "name": "mine"}
    schedule = real.client.post("/v1/schedules", json={"pipeline": document}).json()
    stored = real.client.post("/v1/pipelines", json=document).json()
    for url in (f"/playground?schedule={schedule['id']}", f"/playground?example={stored['id']}"):
        text = field(page(real, url))
        assert "name: mine" in text
        assert "dims: [x, y]" in text


def test_what_is_written_is_scheduled_and_shown(real):
    found = send(real, text=WRITTEN.replace("\n", "\r\n"), platform="i7-6700", strict="true")
    text = "".join(found.words)
    for words in ("blur on i7-6700", "parallel for", "Group of blur_y", "blur_x", "#include"):
        assert words in text
    assert re.search(r"[\d.]+ ms, by ecm", text)
    assert ("input", {"type": "checkbox", "name": "strict", "value": "true", "checked": None}) in found.tags
    shown = next(link for link in found.links if link.startswith("/schedules/"))
    stored = real.client.get(f"/v1{shown}").json()
    assert stored["options"]["strict"] is True
    assert stored["platform"] == "i7-6700"
    assert WRITTEN in field(found)


def test_problems_have_their_places(real):
    found = send(real, text=WRONG)
    place = WRONG.splitlines()[10].index("inptu") + 1
    assert ("li", {"data-line": "11", "data-column": str(place)}) in found.tags
    assert f"Line 11, column {place}" in found.text
    assert "inptu" in found.text
    assert WRONG in field(found)
    assert real.client.get("/v1/schedules").json()["items"] == []


def test_problems_alone_are_asked_for_as_one_types(real):
    found = send(real, "/playground/problems", text=WRONG)
    assert [tag for tag, a in found.tags if "data-line" in a] == ["li"]
    assert "html" not in {tag for tag, _ in found.tags}
    assert send(real, "/playground/problems", text=WRITTEN).text == "No problems."
    assert "Line 1, column 2" in send(real, "/playground/problems", text="{no json").text


def test_options_that_do_not_go_are_told(real):
    text = send(real, text=WRITTEN, method="of-no-one").text
    assert "there is no such method" in text
    assert "there is no platform" in send(real, text=WRITTEN, platform="nowhere").text


def test_nothing_of_a_text_is_markup(real):
    hostile = '</textarea><script>alert(1)</script>"><img src=x>'
    found = send(real, text=hostile)
    assert hostile in field(found)
    assert [a for tag, a in found.tags if tag == "script"] == [{"type": "module", "src": assets.href("playground.js")}]


def test_a_copy_without_the_editor_says_what_it_lacks(service, monkeypatch):
    monkeypatch.setitem(assets.ASSETS, "editor.js", assets.made("editor.that-is-not-there.js"))
    assets.find.cache_clear()
    try:
        found = page(service, "/playground")
    finally:
        assets.find.cache_clear()
    assert "make editor" in found.text
    assert not any("data-editor" in a for _, a in found.tags)
