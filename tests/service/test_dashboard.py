"""The pages: lists that search and page, one schedule, nothing of a document unescaped, no script anywhere."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tilesmith.app.service.dashboard.highlight import MAX_BYTES, c_html, style_sheet

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """Checks that tags are balanced, and collects what tests ask about."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def page(service, url, status=200):
    answer = service.client.get(url, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    found = Page(answer.text)
    assert not any(
        (tag == "script" and "src" not in a) or "style" in a or any(k.startswith("on") for k in a)
        for tag, a in found.tags
    )
    assert ("html", {"lang": "en"}) in found.tags
    return found


def test_an_empty_store_says_what_to_do(service):
    assert "/v1/schedules" in page(service, "/").text


@pytest.mark.parametrize("path", ["/pipelines/harris", "/schedule/1", "/schedules/none"])
def test_an_address_that_is_none_is_a_page_in_a_browser(service, path: str) -> None:
    assert {"/schedules/none": "No such schedule"}.get(path, "There is nothing at this address") in page(
        service, path, 404
    ).text
    assert service.client.get(path).headers["content-type"] == "application/problem+json"


def test_schedules_are_listed_with_links_that_work(service):
    ids = [service.schedule(name) for name in ("blur", "harris2")]
    found = page(service, "/")
    assert "2 schedules" in found.text
    for schedule_id in ids:
        assert f"/schedules/{schedule_id}" in found.links
    for link in found.links:
        if link.startswith("/"):
            assert service.client.get(link).status_code == 200, link


def test_the_list_is_searched(service):
    service.schedule("blur")
    service.schedule("sharp")
    found = page(service, "/?q=shar")
    assert "1 schedule with" in found.text
    assert "sharp" in found.text
    assert "blur" not in found.text
    assert "No schedule" in page(service, "/?q=nothing").text


def test_the_list_pages(service):
    names = [f"p{n}" for n in range(5)]
    for name in names:
        service.schedule(name)
    url, seen = "/?limit=2&order=name", []
    while url:
        found = page(service, url)
        seen += [w for w in found.words if w in names]
        following = [a["href"] for t, a in found.tags if t == "a" and a.get("rel") == "next"]
        url = following[0] if following else None
    assert seen == names


def test_one_schedule_shows_everything(service):
    schedule_id = service.schedule()
    found = page(service, f"/schedules/{schedule_id}")
    for words in ("blur on host", schedule_id, "default", "Loop nest", "Decisions", "blur_y"):
        assert words in found.text
    assert f"code.c of {schedule_id}" in "".join(found.words)
    assert "loopnest.txt of" in found.text
    for link in found.links:
        assert service.client.get(link).status_code == 200, link


def test_a_group_tells_its_loops_and_those_of_updates(service):
    vector = {"dim": "x", "lanes": 8}
    inside = {"stage": "sums", "compute": "y.inner", "store": "x.outer", "fold": True, "storage": "memory"}
    updates = [{"loops": ["x", "r", "y"], "vector": vector, "parallel": None}, {"loops": ["s"], "vector": None}]
    service.scheduling.groups = [
        {
            "output": "blur_y",
            "loops": ["x.inner", "y.inner", "x.outer", "y.outer"],
            "tiles": [{"dim": "x", "size": None}, {"dim": "y", "size": 64}],
            "parallel": "y.outer",
            "vector": vector,
            "unroll": ["c"],
            "placements": [
                {**inside, "order": ["x", "y"], "vector": vector, "updates": updates},
                {"stage": "gone", "compute": "inline", "store": "inline", "storage": "memory"},
            ],
            "updates": [{"loops": ["y", "t"], "vector": None, "parallel": "t"}],
        }
    ]
    text = page(service, f"/schedules/{service.schedule()}").text
    for words in (
        "tiles of x whole, y 64; 8 lanes along x; c unrolled; threads over y.outer",
        "memory, folded x, y; 8 lanes update 0: x, r, y; 8 lanes along x update 1: s",
        "update 0: y, t; threads over t",
        "inline: gone",
    ):
        assert words in text


def test_a_degraded_schedule_says_so(service):
    service.scheduling.degraded = "nothing fits <here>"
    schedule_id = service.schedule()
    assert "nothing fits <here>" in page(service, f"/schedules/{schedule_id}").text
    assert "degraded" in page(service, "/").text


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}"])
def test_nothing_of_a_document_or_a_query_is_markup(service, text):
    schedule_id = service.schedule(text)
    for url in ("/", f"/schedules/{schedule_id}"):
        found = page(service, url)
        assert text in found.text
    assert text in [a.get("value") for _, a in _inputs(service, text)]


def _inputs(service, text):
    answer = service.client.get("/", params={"q": text})
    return [(t, a) for t, a in Page(answer.text).tags if t == "input"]


def test_an_unknown_schedule_is_a_page_for_people_and_a_document_for_programs(service):
    assert "No such schedule" in page(service, "/schedules/none", 404).text
    answer = service.client.get("/schedules/none", headers={"Accept": "application/json"})
    assert answer.json()["code"] == "schedule_not_found"


def test_a_wrong_query_is_a_page_too(service):
    assert "cursor" in page(service, "/?cursor=x", 400).text


def test_code_is_highlighted_and_escaped():
    html = c_html('int f(void) { return "<b>" != 0; }')
    assert '<span class="kt">int</span>' in html
    assert "<b>" not in html
    plain = c_html("<" * (MAX_BYTES + 1))
    assert "<<" not in plain
    assert ".code .kt" in style_sheet()


def test_candidates_are_shown_with_a_chart(service):
    found = page(service, f"/schedules/{service.schedule()}")
    assert "Predicted (ms)" in found.text
    assert "<nothing>" in found.text
    assert any(tag == "svg" and a.get("role") == "img" and a.get("aria-label") for tag, a in found.tags)


def test_what_is_fixed_and_cut_is_shown(service):
    fixed = {"blur_x": {"compute": "inline"}}
    schedule_id = service.schedule(options={"method": "default", "fixed": fixed})
    text = page(service, f"/schedules/{schedule_id}").text
    assert "Fixed by the caller" in text
    assert '"compute": "inline"' in text
