"""Assets of pages: addresses with the hash of the content, packages that lack a file, compression."""

from __future__ import annotations

import re

import pytest

from tilesmith.app.service.dashboard import assets
from tilesmith.app.service.dashboard.pages import policy, templates

STYLE = re.compile(r'href="(/static/[0-9a-f]{16}/style\.css)"')


@pytest.fixture
def without_cache():
    assets.find.cache_clear()
    yield
    assets.find.cache_clear()


@pytest.mark.parametrize("name", sorted(assets.ASSETS))
def test_assets_are_kept_by_browsers_for_good(shared, name: str) -> None:
    found = assets.find(name)
    if found is None:
        pytest.skip(f"the package that brings {name} is not installed")
    answer = shared.client.get(found.href)
    assert answer.content == found.content
    assert answer.headers["content-type"] == found.media_type
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/static/0123456789abcdef/style.css", "/static/0/none.css", "/static/0/../main.py"])
def test_another_content_has_another_address(shared, path: str) -> None:
    assert shared.client.get(path).status_code == 404


def test_pages_lead_to_the_style_sheet_of_both_themes(shared) -> None:
    url = STYLE.search(shared.client.get("/").text)[1]
    assert "prefers-color-scheme: dark" in shared.client.get(url).text


def test_a_file_of_an_installed_package_is_an_asset(without_cache, monkeypatch) -> None:
    monkeypatch.setitem(assets.ASSETS, "vendor/index.js", assets.vendor("jinja2", "jinja2/__init__.py"))
    assert re.fullmatch(r"/static/[0-9a-f]{16}/vendor/index\.js", assets.href("vendor/index.js"))
    assert _script("vendor/index.js").startswith('<script type="module" src="/static/')


@pytest.mark.parametrize("source", [("no-such-package", "a.js"), ("jinja2", "jinja2/none.js")])
def test_a_page_says_what_a_package_lacks(without_cache, monkeypatch, source: tuple[str, str]) -> None:
    monkeypatch.setitem(assets.ASSETS, "vendor/editor.js", assets.vendor(*source))
    assert assets.href("vendor/editor.js") is None
    assert "This page lacks vendor/editor.js" in _script("vendor/editor.js")
    assert "<script" not in _script("vendor/editor.js")


def _script(name: str) -> str:
    text = '{% from "macros.html" import script with context %}{{ script(name, "editor") }}'
    return templates.from_string(text).render(name=name).strip()


def test_pages_are_compressed_and_answers_of_the_api_are_not(shared) -> None:
    shared.schedule()
    accepts = {"Accept-Encoding": "gzip"}
    page = shared.client.get("/", headers=accepts)
    assert page.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["vary"]
    assert "content-encoding" not in shared.client.get("/", headers={"Accept-Encoding": "identity"}).headers
    assert "content-encoding" not in shared.client.get("/v1/errors", headers=accepts).headers


def test_an_editor_may_bring_style_elements_that_carry_the_nonce() -> None:
    assert "style-src 'self' 'nonce-abc';" in policy("abc")
