"""Pages of platforms: all by name, caches drawn, evidence of every figure, and what if a figure were another."""

from __future__ import annotations

import html as markup
import re

import pytest

from tilesmith import platforms
from tilesmith.app.service.dashboard.platforms import size
from tilesmith.app.service.platforms.what_if import changeable, changed
from tilesmith.app.service.schedules import work


def text_of(service, url: str, status: int = 200) -> str:
    answer = service.client.get(url, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


def words_of(html: str) -> str:
    return markup.unescape(" ".join(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", html, flags=re.DOTALL).split()))


def names_of(html: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/platforms/([^"]+)"', html)


def test_platforms_are_listed_and_leafed_through_both_ways(service) -> None:
    mine = platforms.to_document(platforms.get("i7-6700")) | {"name": "mine", "sources": {"threads": "measured: by me"}}
    assert service.client.post("/v1/platforms", json=mine).status_code == 201
    service.schedule("blur", platform_name="mine")
    everything = [*platforms.catalog_names(), "host", "mine"]
    first = text_of(service, "/platforms?limit=8")
    following = re.search(r'<a href="([^"]+)" rel="next"', first)[1].replace("&amp;", "&")
    second = text_of(service, following)
    assert names_of(first) + names_of(second) == sorted(everything)
    back = re.search(r'<a href="([^"]+)" rel="prev"', second)[1].replace("&amp;", "&")
    assert names_of(text_of(service, back)) == names_of(first)
    assert "mine cpu users 8 32 KiB · 256 KiB · 8 MiB 34.1 measured 1" in words_of(second)


def test_a_platform_draws_its_caches(shared) -> None:
    html = text_of(shared, "/platforms/i7-6700")
    drawn = [len(re.findall("<rect", svg)) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert drawn == [8, 4, 4, 1, 1]
    assert "L2 4 of 256 KiB, 4 ways, lines of 64 bytes, 12 cycles, 64 bytes a cycle" in words_of(html)


def test_many_threads_are_not_all_drawn(shared) -> None:
    words = words_of(text_of(shared, "/platforms/epyc-9655"))
    assert re.search(r"32 of \d{2,} drawn", words)


def test_every_figure_says_where_it_is_from(shared) -> None:
    words = words_of(text_of(shared, "/platforms/i7-6700"))
    assert "threads 8 documented TACO 2019, Table 2" in words
    assert "memory_latency_ns 70 not calibrated estimate" in words
    assert "2 of 27 figures are estimates, not calibrated" in words


@pytest.mark.parametrize("name", [*platforms.catalog_names(), "host"])
def test_every_platform_is_a_page(shared, name: str) -> None:
    assert "What if" in words_of(text_of(shared, f"/platforms/{name}"))


def test_a_platform_that_is_none(shared) -> None:
    assert "No such platform" in words_of(text_of(shared, "/platforms/none", 404))


@pytest.mark.parametrize("name", platforms.catalog_names())
def test_every_figure_of_the_form_can_be_changed(name: str) -> None:
    platform = platforms.get(name)
    document = platforms.to_document(platform)
    for figure in changeable(platform):
        found = platforms.parse(changed(document, {figure.name: figure.value * 2}))
        assert {f.name: f.value for f in changeable(found)}[figure.name] == figure.value * 2
        assert found.name == f"{name}-what-if"
        assert found.source_of(figure.name) is None or "." in figure.name


@pytest.fixture
def scheduling(start):
    """A service that schedules."""
    return start(scheduling=work)


def test_another_cache_changes_prediction_and_decisions(scheduling) -> None:
    html = text_of(scheduling, "/platforms/i7-6700/what-if?pipeline=harris&l2.size_bytes=64&memory_bandwidth_gb_s=3")
    words = words_of(html)
    assert re.search(r"The predicted cost of harris goes from [\d.]+ to [\d.]+ ms \( ?\+\d+\.\d %", words)
    assert "Decided otherwise" in words
    assert 'name="l2.size_bytes" value="64"' in html
    assert scheduling.client.get("/v1/schedules").json()["items"] == []
    assert "i7-6700-what-if" not in scheduling.client.get("/v1/platforms").text


def test_the_same_figures_change_nothing(scheduling) -> None:
    words = words_of(text_of(scheduling, "/platforms/i7-6700/what-if?pipeline=blur&l2.size_bytes=256"))
    assert "stays" in words
    assert "Every decision stays" in words


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("pipeline=none", "there is no pipeline 'none'"),
        ("pipeline=blur&threads=many", "threads is a number"),
        ("pipeline=blur&threads=inf", "threads is a number"),
        ("pipeline=blur&l1.size_bytes=0", "/caches/0/size_bytes"),
        ("pipeline=blur&memory_bandwidth_gb_s=-1", "/memory_bandwidth_gb_s"),
    ],
)
def test_a_wrong_question_is_told_beside_its_form(scheduling, query: str, wrong: str) -> None:
    html = text_of(scheduling, f"/platforms/i7-6700/what-if?{query}", 422)
    assert wrong in words_of(html)
    assert 'role="alert"' in html


def test_bytes_as_people_say_them() -> None:
    assert [size(n) for n in (512, 32768, 1310720, 8 << 30)] == ["512 bytes", "32 KiB", "1.25 MiB", "8 GiB"]
