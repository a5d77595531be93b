"""Pages of pipelines: all by name, versions of one over time, the trend, results of commits; the page of jobs."""

from __future__ import annotations

import re

import pytest

from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.examples import BLUR


def text_of(service, url: str, status: int = 200) -> str:
    answer = service.client.get(url, headers={"Accept": "text/html"})
    assert answer.status_code == status
    return answer.text


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", html, flags=re.DOTALL).split())


def rows_of(html: str) -> list[str]:
    return [words_of(row) for row in re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)]


@pytest.fixture
def versions(service):
    """Two versions of `blur`, other than the shipped one, on two platforms; ids of their schedules."""
    found = []
    for doc in ("first", "second"):
        for platform in ("host", "i7-6700"):
            body = {"pipeline": {**BLUR, "name": "blur", "doc": doc}, "platform_name": platform}
            found.append(service.client.post("/v1/schedules", json=body).json()["id"])
    repository.set_measured(service.context.db, found[0], 2.5)
    return found


def test_pipelines_are_listed_by_name_with_what_they_have(service, versions) -> None:
    service.client.post("/v1/pipelines", json={**BLUR, "name": "mine"})
    rows = rows_of(text_of(service, "/pipelines?limit=200"))
    assert any(re.fullmatch(r"blur shipped 3 4 \d{4}-\d\d-\d\d \d\d:\d\d", row) for row in rows)
    assert "mine users 1 0 never" in rows
    assert "harris shipped 1 0 never" in rows
    names = [row.split()[0] for row in rows[1:]]
    assert names == sorted(names)


def test_pipelines_are_found_and_leafed_through_both_ways(service) -> None:
    for n in range(5):
        service.schedule(f"zz{n}")
    assert [row.split()[0] for row in rows_of(text_of(service, "/pipelines?q=ZZ"))[1:]] == [f"zz{n}" for n in range(5)]
    assert "No pipeline has" in text_of(service, "/pipelines?q=nothing")
    seen, url = [], "/pipelines?limit=7"
    while url:
        html = text_of(service, url)
        seen.append([row.split()[0] for row in rows_of(html)[1:]])
        url = rel(html, "next")
    assert [n for page in seen for n in page] == sorted(
        {*service.context.pipelines.shipped, *(f"zz{n}" for n in range(5))}
    )
    back = rows_of(text_of(service, rel(html, "prev")))
    assert [row.split()[0] for row in back[1:]] == seen[-2]


def rel(html: str, name: str) -> str | None:
    found = re.search(rf'<a href="([^"]+)" rel="{name}"', html)
    return found and found[1].replace("&amp;", "&")


def test_a_pipeline_shows_its_versions_the_newest_first(service, versions) -> None:
    rows = rows_of(text_of(service, "/pipelines/blur"))
    own = [row for row in rows if re.match(r"\d ", row)]
    assert [row.split()[0] for row in own] == ["3", "2", "1"]
    assert "a request 2" in own[0]
    assert "2.50" in own[1]
    assert "shipped 0 not scheduled yet" in own[2]


def test_a_trend_needs_two_versions_that_have_times(service, versions) -> None:
    assert "A trend needs two versions" in text_of(service, "/pipelines/blur")  # only one of them was measured
    repository.set_measured(service.context.db, versions[2], 2.0)
    assert "Least predicted and measured time of blur" in text_of(service, "/pipelines/blur")


def test_a_pipeline_shows_its_stages_and_its_document(service, versions) -> None:
    html = text_of(service, "/pipelines/blur")
    assert "stages of blur" in html
    assert "style=" not in html
    assert "second" in words_of(html)
    assert "&#34;name&#34;: &#34;blur&#34;" in html
    assert "Nobody has asked for one yet" in text_of(service, "/pipelines/harris")


def test_a_pipeline_shows_results_of_commits(service, versions) -> None:
    body = {"branch": "main", "commit": "c" * 40, "results": [{"schedule_id": versions[0]}]}
    predicted = {"unit": "microseconds", "total": 1500}
    service.scheduling.predicted = predicted
    assert service.client.post("/v1/projects/camera/results", json=body).status_code == 201
    (row,) = [row for row in rows_of(text_of(service, "/pipelines/blur")) if row.startswith("cccccccccccc")]
    assert "main camera host" in row


@pytest.mark.parametrize("name", ["<b>", 'a"b', "ä ö"])
def test_any_name_is_shown_as_it_is(service, name: str) -> None:
    service.schedule(name)
    html = text_of(service, "/pipelines?q=" + name.replace(" ", "%20"))
    assert name not in html or name == "ä ö"
    link = re.search(r'<a href="(/pipelines/[^"]+)"', html)[1]
    assert service.client.get(link).status_code == 200


def test_jobs_are_listed_filtered_and_leafed_through(service) -> None:
    assert "There are no jobs" in text_of(service, "/jobs")
    url = f"/v1/schedules/{service.schedule()}/builds"
    ids = [service.client.post(url, json={}).json()["id"] for _ in range(3)]
    service.client.delete(f"/v1/jobs/{ids[1]}")
    html = text_of(service, "/jobs?state=&kind=&schedule=")
    assert [row.split()[:3] for row in rows_of(html)[1:]] == [
        ["build", "queued", "blur"],
        ["build", "cancelled", "blur"],
        ["build", "queued", "blur"],
    ]
    assert f"/jobs/{ids[2]}" in html
    assert len(rows_of(text_of(service, "/jobs?state=cancelled&kind=build"))) == 2
    assert "No job passes the filters" in text_of(service, "/jobs?kind=tune")
    first = text_of(service, "/jobs?limit=2")
    second = text_of(service, rel(first, "next"))
    assert ids[0] in second
    assert ids[2] in text_of(service, rel(second, "prev"))
