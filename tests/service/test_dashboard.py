"""The pages: lists that search and page, one schedule, nothing of a document unescaped, no script anywhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tilesmith.app.service.dashboard.highlight import MAX_BYTES, c_html, style_sheet
from tilesmith.app.service.dashboard.thumbnails import COLOURS, drawing

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


@pytest.mark.parametrize("path", ["/pipelines/none", "/schedule/1", "/schedules/none"])
def test_an_address_that_is_none_is_a_page_in_a_browser(service, path: str) -> None:
    titles = {"/schedules/none": "No such schedule", "/pipelines/none": "No such pipeline"}
    assert titles.get(path, "There is nothing at this address") in page(service, path, 404).text
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


def test_the_list_is_found_above_a_schedule(service):
    found = service.client.get("/schedules?search=blur", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (308, "/?search=blur")
    assert service.client.get("/schedules", follow_redirects=False).headers["location"] == "/"


def test_the_list_is_searched(service):
    service.schedule("blur")
    service.schedule("sharp")
    found = page(service, "/?q=host+shar")
    assert "1 schedule with" in found.text
    assert "sharp" in found.text
    assert "blur" not in found.text
    assert "No schedule has all the words of" in page(service, "/?q=sharp+nothing").text


def test_the_list_is_filtered_by_its_form(service):
    service.client.put(f"/v1/schedules/{service.schedule('blur')}/notes", json={"tags": ["best"]})
    service.schedule("sharp")
    empty = "pipeline=&platform=&method=&since=&until="
    found = page(service, f"/?q=&tag=best&{empty}")
    assert "1 schedule, filtered" in found.text
    assert "/?tag=best" in found.links
    assert "No schedule passes the filters" in page(service, "/?until=2001-02-03").text
    assert ("details", {"open": None}) in found.tags
    assert ("input", {"type": "date", "name": "since", "value": "2001-02-03"}) in page(
        service, "/?since=2001-02-03"
    ).tags


def test_the_list_pages_onwards_and_back(service):
    names = [f"p{n}" for n in range(5)]
    for name in names:
        service.schedule(name)
    pages, url = [], "/?limit=2&order=name"
    while url:
        found = page(service, url)
        pages.append([w for w in found.words if w in names])
        url = _rel(found, "next")
    assert pages == [names[:2], names[2:4], names[4:]]
    back = page(service, _rel(found, "prev"))
    assert [w for w in back.words if w in names] == names[2:4]


def _rel(found, rel):
    return next((a["href"] for t, a in found.tags if t == "a" and a.get("rel") == rel), None)


@pytest.mark.parametrize(
    ("order", "heading", "sort", "href"),
    [
        ("newest", "Made (UTC)", "descending", "/?q=b&order=oldest"),
        ("oldest", "Made (UTC)", "ascending", "/?q=b"),
        ("measured", "Measured (ms)", "ascending", "/?q=b&order=-measured"),
        ("-measured", "Measured (ms)", "descending", "/?q=b&order=measured"),
    ],
)
def test_headings_sort_the_list(service, order, heading, sort, href):
    service.schedule("blur")
    found = page(service, f"/?q=b&order={order}")
    assert [a["aria-sort"] for t, a in found.tags if t == "th" and "aria-sort" in a] == [sort]
    assert href in found.links
    assert heading in found.words


def test_two_schedules_are_picked_to_be_compared(service):
    schedule_id = service.schedule("blur")
    assert not any(a.get("type") == "radio" for _, a in page(service, "/").tags)
    service.schedule("sharp")
    picks = [a for t, a in page(service, "/").tags if t == "input" and a.get("type") == "radio"]
    assert {(a["form"], a["name"]) for a in picks} == {("compare", "a"), ("compare", "b")}
    assert [a["name"] for a in picks if a["value"] == schedule_id] == ["a", "b"]


def test_a_schedule_has_a_thumbnail_that_browsers_keep(service):
    answer = service.client.get(f"/schedules/{service.schedule()}/thumbnail.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.text.count("<circle") == 2
    assert COLOURS[0] in answer.text


def test_thumbnails_draw_large_graphs():
    chain = [f"s{n}" for n in range(60)]
    svg = drawing(chain, pairwise(chain), {})
    places = [float(x) for x in re.findall(r'cx="([^"]+)"', svg)]
    assert places == sorted(places)
    assert (len(places), places[0] >= 0, places[-1] <= 96) == (60, True, True)


def test_notes_are_saved_by_a_form(service):
    schedule_id = service.schedule()
    url = f"/schedules/{schedule_id}/notes"
    assert "Notes on blur on host" in page(service, url).text
    saved = service.client.post(url, data={"note": "one\r\ntwo", "tags": "a, b c"})
    assert (saved.status_code, saved.headers["location"]) == (303, f"/schedules/{schedule_id}")
    assert service.client.get(f"/v1{url}").json() == {"note": "one\ntwo", "tags": ["a", "b", "c"]}
    assert "one\ntwo" in page(service, url).words


def test_a_form_that_is_wrong_comes_back_as_it_was(service):
    url = f"/schedules/{service.schedule()}/notes"
    answer = service.client.post(url, data={"note": "kept", "tags": "<b>"})
    assert answer.status_code == 422
    found = Page(answer.text)
    assert "Nothing is saved. tags" in found.text
    assert "kept" in found.words
    assert ("input", {"name": "tags", "value": "<b>"}) in found.tags


def test_forms_of_pages_take_a_token_as_the_password(start):
    service = start(admin_token="sesame-open-sesame")
    reader = service.client.post(
        "/v1/tokens", json={"name": "r", "scopes": ["read"]}, headers={"Authorization": "Bearer sesame-open-sesame"}
    ).json()["token"]
    url, data = "/schedules/none/notes", {"note": "x"}
    assert service.client.post(url, data=data).headers["www-authenticate"].startswith("Basic")
    assert service.client.post(url, data=data, auth=("me", reader)).status_code == 403
    assert service.client.post(url, data=data, auth=("me", "sesame-open-sesame")).status_code == 404


def test_one_schedule_shows_everything(service):
    schedule_id = service.schedule()
    found = page(service, f"/schedules/{schedule_id}")
    for words in ("blur on host", schedule_id, "default", "Loop nest", "Decisions", "blur_y"):
        assert words in found.text
    assert "int f(void) { return 0; }" in "".join(found.words)
    assert "derived from" in found.text
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
    assert any(tag == "img" and "candidates.svg" in a["src"] and a["alt"] for tag, a in found.tags)


def test_what_is_fixed_and_cut_is_shown(service):
    fixed = {"blur_x": {"compute": "inline"}}
    schedule_id = service.schedule(options={"method": "default", "fixed": fixed})
    text = page(service, f"/schedules/{schedule_id}").text
    assert "Fixed by the caller" in text
    assert '"compute": "inline"' in text
